"""Constraints of recorded jobs: the pools of the cluster that each of them may use.

A job may use a pool whose nodes are in one of its partitions and have a GPU type and the features
that it asked for. What the history or the cluster does not record is not applied, and reported as
an assumption.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from adlro.config.history import Recorded
from adlro.errors import ConfigError
from adlro.model import gpu
from adlro.model.cluster import Layout
from adlro.model.history import History
from adlro.model.state import Counts, Mask, partition_bit
from adlro.workloads.assumptions import Assumptions

_UNNAMED = {"main"}  # partitions of a cluster file that names none
_TOKEN = re.compile(r"\s*([A-Za-z0-9_.:+/-]+|[&|,()\[\]])")
_LISTED = 5  # names in a sentence
_LONGEST = 1000  # letters of a feature constraint


def allowed_pools(
    history: History, recorded: Recorded, rows: Counts, layout: Layout, assumed: Assumptions
) -> Mask:
    """Return a mask [K, P] of the pools that each job's partitions, GPU types and features permit.

    Args:
        history: all jobs.
        recorded: which constraints the operator wants applied, and names of GPU types.
        rows: [K] rows of the jobs.
        layout: the empty cluster.
        assumed: receives a sentence for each constraint that is not applied, or that no node meets.

    Raises:
        ConfigError: no job was submitted to any partition of the cluster.
    """
    found = Found(history, recorded, rows, assumed)
    by_partition = _by_partition(found, layout)
    by_type = _by_type(found, layout)
    by_features = _by_features(found, layout)
    allowed = by_partition & by_type & by_features
    reported = _nowhere(by_partition) | _nowhere(by_type) | _nowhere(by_features)
    found.leave_out(
        _nowhere(allowed) & ~reported,
        "no node is in their partitions and also has the GPU type and features they ask for",
    )
    return allowed


class Found(NamedTuple):
    """The jobs of a history whose constraints are applied, and the report of what is assumed."""

    history: History
    recorded: Recorded
    rows: Counts  # [K]
    assumed: Assumptions

    def leave_out(self, homeless: Mask, why: str) -> None:
        """Report jobs [K] whose constraints no node meets; they are left out later.

        Raises:
            ConfigError: there are such jobs and the scenario is strict.
        """
        if not homeless.any():
            return
        row = int(self.rows[np.flatnonzero(homeless)[0]])
        first = repr(self.history.id[row]) if self.history.id else f"number {row + 1} of the file"
        text = f"left out: {why} (the first: job {first})"
        if self.recorded.strict:
            raise ConfigError(
                f"{self.recorded.file}: {homeless.sum():,} of {len(homeless):,} jobs: {why} (the "
                f"first: job {first}); correct the cluster file, or leave --strict away"
            )
        self.assumed.add(int(homeless.sum()), text)


def _some(names: Collection[str]) -> str:
    listed = ", ".join(repr(name) for name in sorted(names)[:_LISTED])
    return listed + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def _table(
    words: Sequence[str], layout: Layout, may_use: Callable[[str, int], bool]
) -> tuple[Mask, Mask]:
    """Return the pools [W + 1, P] that each word permits, and which words [W + 1] permit none.

    The last row is for jobs without a word, which may use all pools.
    """
    count = len(layout.pools)
    table: Mask = np.ones((len(words) + 1, count), np.bool_)
    for w, word in enumerate(words):
        table[w] = [may_use(word, p) for p in range(count)]
    return table, _nowhere(table)


def _nowhere(allowed: Mask) -> Mask:
    """Return a mask [K] of the rows of `allowed` [K, P] that have no pool."""
    nowhere: Mask = ~np.asarray(allowed.any(axis=1))
    return nowhere


def _by_partition(found: Found, layout: Layout) -> Mask:
    history, recorded, rows, assumed = found
    anywhere = np.ones((len(rows), len(layout.pools)), np.bool_)
    asked, queue = history.partitions[rows], history.queue[rows]
    has = (asked >= 0) | (queue >= 0)
    if not has.any():
        assumed.add(len(rows), "no partition is recorded: any partition")
        return anywhere
    if recorded.partitions == "ignore":
        assumed.add(int(has.sum()), "partition not applied, as the scenario says")
        return anywhere
    named = _submitted_to(history, rows)
    if not named & set(layout.partitions):
        if set(layout.partitions) == _UNNAMED:
            assumed.add(int(has.sum()), "partition not applied: the cluster file names none")
            return anywhere
        raise ConfigError(
            f"{recorded.file}: its jobs were submitted to {_some(named)}, but the partitions of "
            f"the cluster are {_some(layout.partitions)}: is this the cluster of another history? "
            "Correct partitions in the cluster file, or say partitions = 'ignore' (--partitions "
            "ignore)"
        )
    of_list, _ = _table(
        history.tables["partitions"],
        layout,
        lambda word, p: bool(set(word.split("|")) & layout.pool_partitions[p]),
    )
    of_queue, _ = _table(
        history.tables["queue"], layout, lambda word, p: word in layout.pool_partitions[p]
    )
    allowed: Mask = np.where((asked >= 0)[:, None], of_list[asked], of_queue[queue])
    homeless = _nowhere(allowed)
    absent = _submitted_to(history, rows[homeless])
    found.leave_out(homeless, f"submitted to a partition that no node is in, {_some(absent)}")
    assumed.add(int((~has).sum()), "no partition is recorded: any partition")
    return allowed


def _submitted_to(history: History, rows: Counts) -> set[str]:
    """Return the names of all partitions that these jobs were submitted to."""
    asked, queue = history.partitions[rows], history.queue[rows]
    lists, queues = history.tables["partitions"], history.tables["queue"]
    named = {name for code in np.unique(asked[asked >= 0]) for name in lists[code].split("|")}
    return named | {queues[code] for code in np.unique(queue[(asked < 0) & (queue >= 0)])}


def partition_bits(history: History, rows: Counts, layout: Layout) -> Counts:
    """Return the partitions [K] that jobs were submitted to as bits; 0 = none that is known."""
    number = {name: partition_bit(k) for k, name in enumerate(layout.partitions)}

    def bits(names: Collection[str]) -> int:
        return sum({number[name] for name in names if name in number})

    of_list = [bits(word.split("|")) for word in history.tables["partitions"]]
    of_queue = [bits([word]) for word in history.tables["queue"]]
    asked = np.array([*of_list, 0])[history.partitions[rows]]
    found: Counts = np.where(asked > 0, asked, np.array([*of_queue, 0])[history.queue[rows]])
    return found


def _has_type(name: str, p: int, recorded: Recorded, layout: Layout) -> bool:
    """Return whether the GPUs of a pool are of a type, by its own name of it or by its model."""
    if layout.pool_types[p].casefold() == name.casefold():
        return True
    model = layout.models[layout.pools["model"][p]]
    if name in recorded.gpu_names:
        return bool(gpu.find(recorded.gpu_names[name], layout.models) == model)
    if layout.pool_types[p]:
        return gpu.is_name_of(name, model)
    return model in gpu.among(name, layout.models)


def _by_type(found: Found, layout: Layout) -> Mask:
    history, recorded, rows, assumed = found
    anywhere = np.ones((len(rows), len(layout.pools)), np.bool_)
    asked = history.allowed[rows]
    if recorded.gpu_types == "ignore":
        assumed.add(int((asked >= 0).sum()), "GPU type not applied, as the scenario says")
        return anywhere

    def may_use(word: str, p: int) -> bool:
        return any(_has_type(name, p, recorded, layout) for name in word.split("|") if name)

    table, none = _table(history.tables["allowed"], layout, may_use)
    allowed: Mask = table[asked]
    if not (asked >= 0).any() and recorded.gpu_types == "requested":
        assumed.add(len(rows), "no requested GPU type is recorded: any type")
    if history.header.format.startswith("sacct"):
        several = np.array([*("|" in word for word in history.tables["allowed"]), False])
        assumed.add(int(several[asked].sum()), "asks for several GPU types: played on one of them")
    homeless = none[asked]
    absent = {history.tables["allowed"][code] for code in np.unique(asked[homeless]).tolist()}
    found.leave_out(
        homeless,
        f"they ask for a GPU type that no node has, {_some(absent)}; say what it is with --gpu if "
        "it is another name of one",
    )
    if recorded.gpu_types == "allocated":
        used = history.gpu_model[rows]
        table, none = _table(history.tables["gpu_model"], layout, may_use)
        fallback = (asked < 0) & (used >= 0) & ~none[used]
        allowed = np.where(fallback[:, None], table[used], allowed)
        assumed.add(int(fallback.sum()), "GPU type that it ran on taken as requested")
        unknown = (asked < 0) & ~fallback
        assumed.add(int(unknown.sum()), "neither requested nor used GPU type is known: any type")
    return allowed


def _by_features(found: Found, layout: Layout) -> Mask:
    history, _, rows, assumed = found
    asked = history.features[rows]
    if not any(layout.pool_features):
        assumed.add(int((asked >= 0).sum()), "features not applied: the cluster file names none")
        return np.ones((len(rows), len(layout.pools)), np.bool_)
    words = history.tables["features"]
    known = {word: parsed(word) for word in words}
    table, none = _table(
        words, layout, lambda word, p: known[word] is None or meets(word, layout.pool_features[p])
    )
    odd = np.array([*(known[word] is None for word in words), False])
    assumed.add(int(odd[asked].sum()), "features not applied: written in a way that is not known")
    homeless = none[asked]
    absent = {words[code] for code in np.unique(asked[homeless]).tolist()}
    found.leave_out(homeless, f"they ask for features that no node has, {_some(absent)}")
    allowed: Mask = table[asked]
    return allowed


def parsed(text: str) -> list[str] | None:
    """Return the tokens of a feature constraint such as "a100&(ib|eth)"; None = not understood.

    Node counts (a*2) are not understood.
    """
    if len(text) > _LONGEST:
        return None
    tokens, at = [], 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if not found:
            return None
        tokens.append({"[": "(", "]": ")", ",": "&"}.get(found[1], found[1]))
        at = found.end()
    try:
        rest = _or(tokens, frozenset())[1]
    except (IndexError, RecursionError):  # cut short, or brackets within brackets within ...
        return None
    return tokens if not rest else None


def meets(text: str, features: Collection[str]) -> bool:
    """Return whether nodes with these features meet a constraint that `parsed` understands."""
    tokens = parsed(text)
    return tokens is not None and _or(tokens, features)[0]


def _or(tokens: list[str], features: Collection[str]) -> tuple[bool, list[str]]:
    """Evaluate alternatives at the beginning of the tokens; return the result and the rest."""
    value, rest = _and(tokens, features)
    while rest and rest[0] == "|":
        other, rest = _and(rest[1:], features)
        value = value or other
    return value, rest


def _and(tokens: list[str], features: Collection[str]) -> tuple[bool, list[str]]:
    value, rest = _term(tokens, features)
    while rest and rest[0] == "&":
        other, rest = _term(rest[1:], features)
        value = value and other
    return value, rest


def _term(tokens: list[str], features: Collection[str]) -> tuple[bool, list[str]]:
    if tokens[0] == "(":
        value, rest = _or(tokens[1:], features)
        if rest[0] != ")":
            raise IndexError
        return value, rest[1:]
    if tokens[0] in "&|)":
        raise IndexError
    return tokens[0] in features, tokens[1:]
