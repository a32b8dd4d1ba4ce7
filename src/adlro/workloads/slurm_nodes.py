"""Read Slurm's lists of nodes and partitions: `scontrol show node`, as text or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from adlro.errors import TraceError
from adlro.model.cluster import host_of
from adlro.workloads.formats.table import shown

UNTYPED = "gpu"  # the name of a GPU that Slurm knows no type of
NO_PARTITION = "main"  # of a node whose list names none
_MB_PER_GB = 1024
_WORD = re.compile(r"(?<!\S)(\w+)=(\S*)")
_TYPED = re.compile(r"gres/gpu:([^=,]+)=(\d{1,6})(?=,|$)")
_COUNT = re.compile(r"\d{1,6}")
_NOTHING = ("", "(null)", "N/A")
_MOST_NAMES = 100_000  # in one list of hosts
_NAMED = 8  # nodes that a note names
# Words of State=, without the signs that Slurm appends ("DOWN*"). POWERED_DOWN is not among them:
# a node that sleeps is woken for a job.
_DRAINING = frozenset({"DRAIN", "DRAINING", "DRAINED"})
_DOWN = frozenset({"DOWN", "FAIL", "FAILING", "ERROR", "MAINT", "NOT_RESPONDING", "FUTURE"})
_JSON_KEYS = {
    "name": "NodeName",
    "cpus": "CPUTot",
    "effective_cpus": "CPUEfctv",
    "real_memory": "RealMemory",
    "gres": "Gres",
    "tres": "CfgTRES",
    "features": "AvailableFeatures",
    "active_features": "ActiveFeatures",
    "partitions": "Partitions",
}


class Node(NamedTuple):
    """One node as listed, or the part of one that has GPUs of one type ("a100@gpu07")."""

    name: str
    gpu: str  # as the list calls it
    gpus: int
    cores: int
    memory_gb: float
    partitions: tuple[str, ...] = (NO_PARTITION,)
    features: tuple[str, ...] = ()


class NodeList(NamedTuple):
    """All nodes of a list, and notes about it, such as values that it lacks."""

    nodes: list[Node]
    notes: list[str]


def some(names: Sequence[str]) -> str:
    """Return the first few of some names, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, as in "1 node" and "2 nodes"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


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


def partitions(text: str) -> dict[str, list[str]]:
    """Return the hosts of each partition, by its name, from `scontrol show partition`.

    Raises:
        TraceError: the text has no partition, or its nodes are not a list of hosts.
    """
    found: dict[str, list[str]] = {}
    for block in re.split(r"(?m)^(?=PartitionName=)", text)[1:]:
        words = dict(reversed(_WORD.findall(block)))
        nodes = words.get("Nodes", "")
        found[words["PartitionName"]] = hosts("" if nodes in _NOTHING else nodes)
    if not any(found.values()):
        raise TraceError("there is no partition with nodes; is this `scontrol show partition`?")
    return found


def _listed(text: str) -> list[str]:
    """Return the different entries of a comma-separated list; none if Slurm writes "(null)"."""
    return [one for one in dict.fromkeys(text.split(",")) if one not in _NOTHING]


def _number(words: Mapping[str, str], key: str, where: str) -> int:
    text = words.get(key, "")
    if not re.fullmatch(r"\d{1,12}", text):
        raise TraceError(f"{where}: {key} must be a whole number, not {shown(text)}")
    return int(text)


def _cores(words: Mapping[str, str], where: str) -> int:
    """Return the cores that jobs may use: without those that the system keeps, where known."""
    usable = _number(words, "CPUEfctv", where) if words.get("CPUEfctv") else 0
    return usable or _number(words, "CPUTot", where)


def _gpus_of(words: Mapping[str, str], where: str) -> dict[str, int]:
    """Return the number of a node's GPUs by type; UNTYPED is the type of those without one.

    Types that `Gres` leaves out are taken from `CfgTRES` if that accounts for all GPUs.

    Raises:
        TraceError: Gres names GPUs in a form that Slurm does not write.
    """
    found: dict[str, int] = {}
    for entry in re.sub(r"\([^)]*\)", "", words.get("Gres", "")).split(","):
        kind, *rest = entry.split(":")
        if kind != "gpu":
            continue
        parts = [part for part in rest if part != "no_consume"]
        count = int(parts.pop()) if parts and _COUNT.fullmatch(parts[-1]) else 1
        if len(parts) > 1 or "" in parts:
            raise TraceError(f"{where}: Gres has {shown(entry)}, which is not gpu:TYPE:NUMBER")
        name = parts[0] if parts else UNTYPED
        found[name] = found.get(name, 0) + count
    typed = {name: int(count) for name, count in _TYPED.findall(words.get("CfgTRES", ""))}
    if typed and (not found or (UNTYPED in found and sum(typed.values()) == sum(found.values()))):
        found = typed
    return {name: count for name, count in found.items() if count}


def _states(words: Mapping[str, str]) -> set[str]:
    """Return the words of a node's state: "MIXED*+DRAIN" has MIXED and DRAIN."""
    return set(re.findall(r"[A-Z_]+", words.get("State", "").upper()))


def _split(whole: Node, kinds: Mapping[str, int]) -> list[Node]:
    """Return a node for each type of its GPUs, with cores and memory in proportion to them.

    The parts add up to the node; they are called TYPE@NODE if there are several.
    """
    total, ends = sum(kinds.values()), [0]
    for count in kinds.values():
        ends.append(ends[-1] + count)
    return [
        whole._replace(
            name=f"{kind}@{whole.name}" if len(kinds) > 1 else whole.name,
            gpu=kind,
            gpus=last - first,
            cores=whole.cores * last // total - whole.cores * first // total,
            memory_gb=whole.memory_gb * (last - first) / total,
        )
        for kind, (first, last) in zip(kinds, pairwise(ends), strict=True)
    ]


class _Found(NamedTuple):
    """Names of nodes with GPUs about which notes are made."""

    draining: list[str]
    down: list[str]
    mixed: list[str]
    homeless: list[str]  # in no partition

    def notes(self) -> list[str]:
        kept = "kept as if in service, take those that stay away out of `hosts`"
        said = (
            (self.draining, "draining now", f"running jobs end and none starts; {kept}"),
            (self.down, "down now", f"nothing runs there; {kept}"),
            (
                self.mixed,
                "with several types of GPU",
                "split into one node for each type, TYPE@HOST, with cores and memory in proportion "
                "to its GPUs",
            ),
            (self.homeless, "in no partition", f"{NO_PARTITION!r} is written, correct it there"),
        )
        return [
            f"{counted(len(names), 'node')} {what} ({some(names)}): {text}"
            for names, what, text in said
            if names
        ]


def _nodes(
    tables: Iterable[Mapping[str, str]], where: str, of_partition: Mapping[str, Sequence[str]]
) -> NodeList:
    """Return the nodes that the keys and values of `scontrol show node` describe."""
    named: dict[str, list[str]] = {}  # host -> partitions that list it
    for partition, members in of_partition.items():
        for host in members:
            named.setdefault(host, []).append(partition)
    nodes: list[Node] = []
    found = _Found([], [], [], [])
    for words in tables:
        name = words.get("NodeName", "")
        if name in _NOTHING:
            raise TraceError(f"{where}: a node has no name")
        at = f"{where}: node {shown(name)}"
        kinds, states = _gpus_of(words, at), _states(words)
        own = (*_listed(words.get("Partitions", "")), *named.get(name, ()))
        features = _listed(words.get("ActiveFeatures", ""))
        whole = Node(
            name,
            "",
            0,
            _cores(words, at),
            _number(words, "RealMemory", at) / _MB_PER_GB,
            tuple(dict.fromkeys(own)) or (NO_PARTITION,),
            tuple(features or _listed(words.get("AvailableFeatures", ""))),
        )
        nodes += _split(whole, kinds) if kinds else [whole]
        tests = (states & _DRAINING, states & _DOWN, len(kinds) > 1, not own)
        for members, is_so in zip(found, tests, strict=True):
            if kinds and is_so:
                members.append(name)
    if not nodes:
        raise TraceError(f"{where}: there is no node in it; is this `scontrol show node`?")
    return NodeList(nodes, found.notes() + _absent(of_partition, nodes))


def _absent(of_partition: Mapping[str, Sequence[str]], nodes: Sequence[Node]) -> list[str]:
    """Return notes on partitions whose hosts are not among the nodes."""
    known = {host_of(node.name) for node in nodes}
    notes = []
    for partition, members in of_partition.items():
        unknown = [host for host in members if host not in known]
        if len(unknown) == len(members):
            notes.append(f"partition {partition!r} has no node of the list: its jobs fit nowhere")
        elif unknown:
            what = counted(len(unknown), "host")
            notes.append(
                f"partition {partition!r} names {what} that the list lacks: {some(unknown)}"
            )
    return notes


def from_text(text: str, where: str, of_partition: Mapping[str, Sequence[str]]) -> NodeList:
    """Return the nodes in the output of `scontrol show node`, with or without --oneliner.

    A node with GPUs of several types becomes several nodes.

    Args:
        text: the output.
        where: name of the file, for error messages.
        of_partition: hosts of each partition, beside those that the nodes themselves name.

    Raises:
        TraceError: the text has no node, or a node does not have the form that scontrol writes.
    """
    blocks = re.split(r"(?m)^(?=NodeName=)", text)[1:]
    # The first of a key counts: texts such as Reason= may hold anything, and come last.
    return _nodes((dict(reversed(_WORD.findall(b))) for b in blocks), where, of_partition)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):  # { "set": true, "infinite": false, "number": 4 }
        value = value.get("number")
    return "" if value is None else str(value)


def from_json(text: str, where: str, of_partition: Mapping[str, Sequence[str]]) -> NodeList:
    """Return the nodes in the output of `scontrol show node --json`; like from_text otherwise.

    Raises:
        TraceError: the text is not JSON, or has no list of nodes of the form that Slurm writes.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise TraceError(f"{where}: is not valid JSON: {exc}") from exc
    entries = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise TraceError(f"{where}: has no list 'nodes'; is this `scontrol show node --json`?")
    tables = []
    for entry in entries:
        words = {key: _plain(entry.get(name)) for name, key in _JSON_KEYS.items()}
        states = (_plain(entry.get(key)) for key in ("state", "state_flags"))
        tables.append({**words, "State": ",".join(states)})
    return _nodes(tables, where, of_partition)
