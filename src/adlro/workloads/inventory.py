"""Read lists of nodes (Slurm's, and those of Alibaba's traces) and convert them to clusters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adlro.errors import ConfigError, TraceError, suggestion
from adlro.model import gpu
from adlro.workloads.formats.format import head_of
from adlro.workloads.formats.table import Defect, Rows, Style, Table
from adlro.workloads.formats.text_file import TextFile
from adlro.workloads.slurm_nodes import UNTYPED, Node, NodeList, counted, from_json, from_text

_MOST = 1 << 28  # bytes of a list of nodes
_MB_PER_GB = 1024


class _Columns(NamedTuple):
    """Names of the columns in one kind of node table, and the units of its numbers."""

    name: str
    gpu: str
    gpus: str
    cores: str
    memory: str  # "" = it does not say
    cores_unit: float = 1.0
    memory_unit_gb: float = 1.0


_TABLES = (
    _Columns("sn", "model", "gpu", "cpu_milli", "memory_mib", 1000.0, 1 / _MB_PER_GB),
    _Columns("machine", "gpu_type", "cap_gpu", "cap_cpu", "cap_mem"),
    _Columns("node_name", "gpu_model", "gpu_capacity_num", "cpu_num", ""),
)


def _refuse(wrong: Iterable[Defect], path: Path) -> None:
    for one in sorted(wrong, key=lambda one: one.line):
        raise TraceError(f"{path}:{one.line}: {one.text}; correct it")


def _of_rows(rows: Rows, at: _Columns, path: Path) -> list[Node]:
    gpus, cores = rows.whole(at.gpus, 1000), rows.whole(at.cores, 1e9)
    memory = rows.numbers(at.memory) if at.memory else np.zeros(len(rows))
    rows.note_where(
        np.isnan(gpus + cores + memory),
        "empty field",
        lambda _: "the number of GPUs or cores, or the memory, is empty",
    )
    _refuse(rows.wrong.values(), path)
    table = zip(rows.words(at.name), rows.words(at.gpu), gpus, cores, memory, strict=True)
    return [
        Node(name, model, int(g), int(c / at.cores_unit), float(m) * at.memory_unit_gb)
        for name, model, g, c, m in table
    ]


def _from_table(source: TextFile, at: _Columns) -> list[Node]:
    found: list[Node] = []
    for rows in Table(source, Style()).parts():
        if not rows.names:
            _refuse(rows.wrong.values(), source.path)
        found += _of_rows(rows, at, source.path)
    return found


def _gaps(nodes: Sequence[Node]) -> list[str]:
    """Return notes on nodes without memory or cores in the list, for which _tables writes 1."""
    with_gpus = [node for node in nodes if node.gpus > 0]
    no_memory = sum(node.memory_gb == 0 for node in with_gpus)
    no_cores = sum(node.cores == 0 for node in with_gpus)
    gaps = ((no_memory, "memory", "memory_gb"), (no_cores, "cores", "cores"))
    return [
        f"{counted(count, 'node')} without {what} in the list: {key} = 1 is written, correct it"
        for count, what, key in gaps
        if count
    ]


def from_slurm(text: str, where: str, of_partition: Mapping[str, Sequence[str]]) -> NodeList:
    """Return the nodes in the output of `scontrol show node`, also with --oneliner or --json.

    Args:
        text: the output.
        where: name of the file, for error messages.
        of_partition: hosts of each partition, beside those that the nodes themselves name.

    Raises:
        TraceError: the text has no node, or a node does not have the form that scontrol writes.
    """
    reader = from_json if text.lstrip("\ufeff \n\r\t").startswith("{") else from_text
    listed = reader(text.removeprefix("\ufeff"), where, of_partition)
    return listed._replace(notes=[*listed.notes, *_gaps(listed.nodes)])


def read(path: Path, of_partition: Mapping[str, Sequence[str]]) -> NodeList:
    """Read the list of nodes in a file of any known format, plain or compressed by gzip.

    of_partition: hosts of each partition; used for Slurm's lists only.

    Raises:
        TraceError: the file cannot be read, or is not a list of nodes in a known format.
    """
    source = TextFile(path)
    try:
        head = head_of(source.head)
        for at in _TABLES:
            if {at.name, at.gpu, at.gpus, at.cores} <= set(head.names):
                nodes = _from_table(source, at)
                return NodeList(nodes, _gaps(nodes))
        is_json = bool(head.lines) and head.lines[0].lstrip().startswith("{")
        if not is_json and not any(line.startswith("NodeName=") for line in head.lines):
            raise TraceError(
                f"{path}: is no list of nodes that is known: `scontrol show node` (also with "
                "--oneliner or --json), openb nodes (sn,cpu_milli,memory_mib,gpu,model), PAI "
                "machines"
            )
        text = source.everything(_MOST).decode("utf-8", "replace")
        return from_slurm(text, str(path), of_partition)
    finally:
        source.close()


class Request(NamedTuple):
    """What a user says about a list of nodes that is to become a cluster."""

    name: str = "cluster"
    models: Mapping[str, str] = {}  # GPU name in the list -> GPU name in the catalogue
    features: Collection[str] | None = None  # of nodes, to be kept; None = all


class Imported(NamedTuple):
    """The content of a cluster file, and lines that say how it was made."""

    tables: dict[str, object]
    lines: list[str]


class _Meaning(NamedTuple):
    """The model in the catalogue that a node's GPUs were taken for, and why."""

    model: str
    why: str
    others: tuple[str, ...] = ()  # models that they may be just as well


def _meaning(node: Node, given: Mapping[str, str]) -> _Meaning | None:
    """Return what a node's GPUs are: as given, or by their name and the features of the node.

    None = the catalogue does not know them.
    """
    if node.gpu in given:
        return _Meaning(gpu.find(given[node.gpu]).name, "--gpu")
    try:
        alone, found = gpu.identify(node.gpu), gpu.identify(node.gpu, node.features)
    except ConfigError:
        return None
    telling = [one for one in node.features if gpu.identify(node.gpu, [one]) != alone]
    why = f"feature{'s' if len(telling) > 1 else ''} {', '.join(telling)}" if telling else ""
    return _Meaning(found.model.name, why, tuple(other.name for other in found.others))


def as_cluster(listed: NodeList, wanted: Request) -> Imported:
    """Return the content of a cluster file, in which equal nodes form one group.

    Nodes without GPUs are left out.

    Raises:
        ConfigError: no node has a GPU, a node is listed twice, the request names a GPU or a feature
            that is not in the list, or a GPU is not in the catalogue.
    """
    with_gpus = [node for node in listed.nodes if node.gpus > 0]
    if not with_gpus:
        raise ConfigError("no node of the list has a GPU")
    twice = [name for name, count in Counter(n.name for n in with_gpus).items() if count > 1]
    if twice:
        raise ConfigError(f"node {twice[0]!r} is in the list more than once; correct the list")
    meanings = _meanings(with_gpus, wanted.models)
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node, meaning in zip(_with_features(with_gpus, wanted.features), meanings, strict=True):
        sets = (frozenset(node.partitions), frozenset(node.features))
        groups.setdefault((meaning.model, *sets, *node[1:5]), []).append(node)
    without = len(listed.nodes) - len(with_gpus)
    left_out = [f"{counted(without, 'node')} without GPUs left out"] if without else []
    lines = [*_mapped(with_gpus, meanings), *left_out, *listed.notes]
    alike = {(key[0], key[1], *key[3:]) for key in groups}
    if len(groups) > len(alike):
        lines.append(
            f"features make {len(groups):,} groups of nodes out of {len(alike):,}, and no gang "
            "spans two: keep only those that jobs ask for (--features A,B), or none (--features '')"
        )
    return Imported({"name": wanted.name, "nodes": _tables(groups)}, lines)


def _meanings(nodes: Sequence[Node], given: Mapping[str, str]) -> list[_Meaning]:
    """Return what each node's GPUs are in the catalogue.

    Raises:
        ConfigError: `given` has a GPU that no node has, or the catalogue lacks a model.
    """
    names = dict.fromkeys(node.gpu for node in nodes)
    for one, model in given.items():
        if one not in names:
            raise ConfigError(f"--gpu {one}: the list has no such GPU; {suggestion(one, names)}")
        try:
            gpu.find(model)
        except ConfigError as exc:
            raise ConfigError(f"--gpu {one}: {exc}") from exc
    known = {(node.gpu, node.features): node for node in nodes}  # few are different
    found = {key: _meaning(node, given) for key, node in known.items()}
    unknown: Counter[str] = Counter()
    for node in nodes:
        if found[node.gpu, node.features] is None:
            unknown[node.gpu] += node.gpus
    if unknown:
        said = ", ".join(f"{one!r} ({counted(n, 'GPU')})" for one, n in unknown.items())
        raise ConfigError(
            f"the catalogue does not know {said}; say what each is with --gpu "
            f"'{next(iter(unknown))}=MODEL', where MODEL is one of docs/gpus.md such as V100 32GB"
        )
    meanings = (found[node.gpu, node.features] for node in nodes)
    return [meaning for meaning in meanings if meaning is not None]


def _with_features(nodes: Sequence[Node], kept: Collection[str] | None) -> list[Node]:
    """Return the nodes without features other than those to be kept; None keeps all.

    Raises:
        ConfigError: no node has a feature that is to be kept.
    """
    if kept is None:
        return list(nodes)
    known = dict.fromkeys(name for node in nodes for name in node.features)
    for name in kept:
        if name not in known:
            raise ConfigError(f"--features: no node has {name!r}; {suggestion(name, known)}")
    return [n._replace(features=tuple(f for f in n.features if f in kept)) for n in nodes]


def _mapped(nodes: Sequence[Node], meanings: Sequence[_Meaning]) -> list[str]:
    """Return a line for each GPU name of the list and the model that it was taken for."""
    count = Counter((node.gpu, meaning) for node, meaning in zip(nodes, meanings, strict=True))
    lines = []
    for (name, meaning), number in count.items():
        listed = name if name == UNTYPED else f"gpu:{name}"
        doubt = f"or {', '.join(meaning.others)}: --gpu '{name}=MODEL'" if meaning.others else ""
        reasons = "; ".join(filter(None, (meaning.why, doubt)))
        why = f" ({reasons})" if reasons else ""
        lines.append(f"{listed} on {counted(number, 'node')} → {meaning.model}{why}")
    return lines


def _stem(members: Sequence[Node]) -> str:
    """Return the common prefix of the nodes' names, without digits or signs at its end."""
    first, last = min(node.name for node in members), max(node.name for node in members)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    stem = re.sub(r"[^A-Za-z]+$", "", first[:same])
    return stem[:60] or members[0].gpu[:60] or "nodes"


def _tables(groups: Mapping[tuple[object, ...], list[Node]]) -> list[dict[str, object]]:
    """Return the [[nodes]] tables of groups of equal nodes; the model is the first of each key."""
    tables: list[dict[str, object]] = []
    hosts = {node.name for members in groups.values() for node in members}
    taken: set[str] = set()
    for (model, *_), members in groups.items():
        own = {node.name for node in members}
        stem, number = _stem(members), 1
        label = stem
        while label in taken or (label in hosts and label not in own):
            number += 1
            label = f"{stem}.{number}"
        taken.add(label)
        one = members[0]
        table: dict[str, object] = {
            "name": label,
            "hosts": [node.name for node in members],
            "gpu": model,
            **({} if one.gpu in ("", UNTYPED) else {"gpu_type": one.gpu}),
            "gpus": one.gpus,
            "cores": max(1, one.cores),
            "memory_gb": one.memory_gb or 1.0,
        }
        if len(one.partitions) == 1:
            table["partition"] = one.partitions[0]
        else:
            table["partitions"] = list(one.partitions)
        if one.features:
            table["features"] = list(one.features)
        tables.append(table)
    return tables
