"""Read lists of nodes (`scontrol show node`, Alibaba's node lists) and convert them to clusters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adlro.errors import ConfigError, TraceError, suggestion
from adlro.model import gpu
from adlro.workloads.formats.format import head_of
from adlro.workloads.formats.table import Defect, Rows, Style, Table, shown
from adlro.workloads.formats.text_file import TextFile

_MOST = 1 << 28  # bytes of a list of nodes
_MB_PER_GB = 1024
UNTYPED = "gpu"  # the name of a GPU that Slurm knows no type of
_WORD = re.compile(r"(?<!\S)(\w+)=(\S*)")
_GRES = re.compile(r"gpu(?::([^:,()]+))?:(\d{1,6})(?:\([^)]*\))?")
_DOWN = ("DOWN", "DRAIN", "FAIL", "MAINT")
_NOTHING = ("", "(null)")
_MOST_NAMES = 100_000  # in one list of hosts


class Node(NamedTuple):
    """One node as listed: its name, GPUs, cores, memory and partition."""

    name: str
    gpu: str  # as the list calls it
    gpus: int
    cores: int
    memory_gb: float
    partition: str = "main"


class NodeList(NamedTuple):
    """All nodes of a list, and notes about it, such as values that it lacks."""

    nodes: list[Node]
    notes: list[str]


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


def hosts(text: str) -> list[str]:
    """Return the host names that a list such as "r1,v[01-02,7]" stands for.

    Raises:
        TraceError: the text is not such a list, or stands for too many hosts.
    """
    found: list[str] = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*", text):
        found += _expanded(part, text)
        if len(found) > _MOST_NAMES:
            raise TraceError(f"{shown(text)} stands for more than {_MOST_NAMES:,} hosts")
    return found


def _expanded(part: str, text: str) -> list[str]:
    before, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, after = rest.partition("]")
    names: list[str] = []
    tails = _expanded(after, text)
    for piece in inside.split(","):
        span = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", piece)
        if not span:
            raise TraceError(f"{shown(text)} is not a list of hosts")
        first, last = int(span[1]), int(span[2] or span[1])
        if len(names) + (last - first + 1) * len(tails) > _MOST_NAMES:
            raise TraceError(f"{shown(text)} stands for more than {_MOST_NAMES:,} hosts")
        numbers = (str(n).zfill(len(span[1])) for n in range(first, last + 1))
        names += [before + number + tail for number in numbers for tail in tails]
    return names


def partitions(text: str) -> dict[str, str]:
    """Return the first partition of each node, by node name, from `scontrol show partition`.

    Raises:
        TraceError: the text has no partition with nodes.
    """
    found: dict[str, str] = {}
    for block in re.split(r"(?m)^(?=PartitionName=)", text)[1:]:
        words = dict(_WORD.findall(block))
        nodes = words.get("Nodes", "")
        for name in hosts("" if nodes in _NOTHING else nodes):
            found.setdefault(name, words["PartitionName"])
    if not found:
        raise TraceError("there is no partition with nodes; is this `scontrol show partition`?")
    return found


def _number(words: Mapping[str, str], key: str, where: str) -> int:
    text = words.get(key, "")
    if not re.fullmatch(r"\d{1,12}", text):
        raise TraceError(f"{where}: {key} must be a whole number, not {shown(text)}")
    return int(text)


def _gpu_of(words: Mapping[str, str], where: str) -> tuple[str, int]:
    """Return the name and the number of a node's GPUs; ("", 0) = it has none.

    Raises:
        TraceError: the node has GPUs of several types.
    """
    kinds: dict[str, int] = {}
    for name, count in _GRES.findall(words.get("Gres", "")):
        kinds[name or UNTYPED] = kinds.get(name or UNTYPED, 0) + int(count)
    kinds = {name: count for name, count in kinds.items() if count}
    if len(kinds) > 1:
        raise TraceError(
            f"{where}: has GPUs of several types ({', '.join(kinds)}); a node can have one type"
        )
    for name, count in kinds.items():
        return name, count
    return "", 0


def from_slurm(text: str, where: str, of_node: Mapping[str, str]) -> NodeList:
    """Return the nodes in the output of `scontrol show node`, with or without --oneliner.

    Args:
        text: the output.
        where: name of the file, for error messages.
        of_node: partition of each node, by node name; others get the first that the text names.

    Raises:
        TraceError: the text has no node, or a node does not have the form that scontrol writes.
    """
    nodes: list[Node] = []
    down = several = 0
    for block in re.split(r"(?m)^(?=NodeName=)", text)[1:]:
        words = dict(reversed(_WORD.findall(block)))  # the first of a key counts
        at = f"{where}: node {words['NodeName']!r}"
        name, count = _gpu_of(words, at)
        of = [part for part in words.get("Partitions", "").split(",") if part not in _NOTHING]
        several += len(of) > 1
        down += any(state in words.get("State", "") for state in _DOWN)
        memory = _number(words, "RealMemory", at) / _MB_PER_GB
        cores = _number(words, "CPUTot", at)
        partition = of_node.get(words["NodeName"]) or (of[0] if of else "main")
        nodes.append(Node(words["NodeName"], name, count, cores, memory, partition))
    if not nodes:
        raise TraceError(f"{where}: there is no node in it; is this `scontrol show node`?")
    notes = _gaps(nodes)
    if several:
        notes.append(f"{several:,} nodes are in several partitions: the first is taken")
    if down:
        notes.append(
            f"{down:,} nodes are down, drained or failing now: they are listed all the same"
        )
    return NodeList(nodes, notes)


def _gaps(nodes: Sequence[Node]) -> list[str]:
    """Return notes on nodes without memory or cores in the list, for which _tables writes 1."""
    with_gpus = [node for node in nodes if node.gpus > 0]
    no_memory = sum(node.memory_gb == 0 for node in with_gpus)
    no_cores = sum(node.cores == 0 for node in with_gpus)
    gaps = ((no_memory, "memory", "memory_gb"), (no_cores, "cores", "cores"))
    return [
        f"{count:,} nodes have no {what} in the list: {key} = 1 is written, correct it there"
        for count, what, key in gaps
        if count
    ]


def read(path: Path, of_node: Mapping[str, str]) -> NodeList:
    """Read the list of nodes in a file of any known format, plain or compressed by gzip.

    of_node: partition of each node, by node name; used for `scontrol show node` only.

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
        if not any(line.startswith("NodeName=") for line in head.lines):
            raise TraceError(
                f"{path}: is no list of nodes that is known: `scontrol show node` (also with "
                "--oneliner), openb nodes (sn,cpu_milli,memory_mib,gpu,model), PAI machines"
            )
        text = source.everything(_MOST).decode("utf-8", "replace")
        return from_slurm(text, str(path), of_node)
    finally:
        source.close()


def _model(name: str, names: Mapping[str, str]) -> str | None:
    try:
        return gpu.find(names.get(name, name)).name
    except ConfigError:
        return None


def _stem(members: Sequence[Node]) -> str:
    """Return the common prefix of the nodes' names, without digits or signs at its end."""
    first, last = min(node.name for node in members), max(node.name for node in members)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    stem = re.sub(r"[^A-Za-z]+$", "", first[:same])
    return stem[:60] or members[0].gpu[:60] or "nodes"


def as_cluster(listed: NodeList, names: Mapping[str, str], name: str) -> dict[str, object]:
    """Return the content of a cluster file, in which equal nodes form one group.

    Nodes without GPUs are left out.

    Args:
        listed: the nodes.
        names: GPU name in the list -> GPU name in the catalogue.
        name: of the cluster.

    Raises:
        ConfigError: no node has a GPU, a node is listed twice, `names` has a GPU that is not in the
            list, or a GPU is not in the catalogue.
    """
    with_gpus = [node for node in listed.nodes if node.gpus > 0]
    if not with_gpus:
        raise ConfigError("no node of the list has a GPU")
    twice = [name for name, count in Counter(n.name for n in with_gpus).items() if count > 1]
    if twice:
        raise ConfigError(f"node {twice[0]!r} is in the list more than once; correct the list")
    models = {node.gpu: _model(node.gpu, names) for node in with_gpus}
    for one in names:
        if one not in models:
            raise ConfigError(f"--gpu {one}: the list has no such GPU; {suggestion(one, models)}")
    unknown = [one for one, model in models.items() if model is None]
    if unknown:
        counts = {one: sum(n.gpus for n in with_gpus if n.gpu == one) for one in unknown}
        said = ", ".join(f"{one!r} ({count:,} GPUs)" for one, count in counts.items())
        raise ConfigError(
            f"the catalogue does not know {said}; say what each is with --gpu "
            f"'{unknown[0]}=MODEL', where MODEL is one of docs/gpus.md such as V100 32GB"
        )
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in with_gpus:
        key = (models[node.gpu], node.gpus, node.cores, node.memory_gb, node.partition)
        groups.setdefault(key, []).append(node)
    return {"name": name, "nodes": _tables(groups, models)}


def _tables(
    groups: Mapping[tuple[object, ...], list[Node]], models: Mapping[str, str | None]
) -> list[dict[str, object]]:
    tables: list[dict[str, object]] = []
    taken: set[str] = set()
    for members in groups.values():
        stem, number = _stem(members), 1
        label = stem
        while label in taken:
            number += 1
            label = f"{stem}.{number}"
        taken.add(label)
        one = members[0]
        tables.append(
            {
                "name": label,
                "count": len(members),
                "gpu": models[one.gpu],
                "gpus": one.gpus,
                "cores": max(1, one.cores),
                "memory_gb": one.memory_gb or 1.0,
                "partition": one.partition,
            }
        )
    return tables
