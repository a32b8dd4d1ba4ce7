"""The history that a scenario names: its file, the jobs that can be played, and their types.

A job's type is derived only from what is known at its submission: its name, a rule of the scenario,
or a hash of its id (of its position in the file if there are no ids). The run time is never used.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adlro.config.history import Recorded
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError, TraceError
from adlro.model import gpu
from adlro.model.cluster import Cluster, NodeGroup, host_of
from adlro.model.history import Codes, History
from adlro.model.state import WHOLE, Counts, Floats
from adlro.workloads import slurm_nodes
from adlro.workloads.formats import registry
from adlro.workloads.formats.gather import ReadOptions

_MOST_ACCOUNTS = 500  # more are treated as one
ONE_ACCOUNT = ("default",)


@functools.lru_cache(maxsize=4)
def _read(file: str, options: ReadOptions, _: tuple[int, ...]) -> History:
    return registry.read(Path(file), options)


def edition(recorded: Recorded | None) -> tuple[int, ...]:
    """Return a cache key that changes when a history's file changes.

    It holds the file's modification time, size and inode number; () = there is no history, or its
    file cannot be inspected.
    """
    try:
        found = Path(recorded.file).stat() if recorded else None
    except OSError:  # reading it raises a better error
        found = None
    return () if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def _options(recorded: Recorded) -> ReadOptions:
    return ReadOptions(recorded.lenient, recorded.format, tuple(recorded.columns.items()))


def history_of(recorded: Recorded) -> History:
    """Read the whole file that a scenario names, or return the cached result of an earlier read.

    Raises:
        TraceError: the file cannot be read.
    """
    return _read(recorded.file, _options(recorded), edition(recorded))


def gpus_of(history: History, recorded: Recorded) -> Floats:
    """Return the GPUs [J] that each job asks for, in thousandths of a GPU; nan = unknown.

    With gpus_from = "cores", each core counts as one GPU.
    """
    if recorded.gpus_from == "cores":
        return history.cores * WHOLE
    return np.where(history.gpus < 0, np.nan, history.gpus.astype(np.float64))


def window(history: History, recorded: Recorded) -> tuple[Counts, list[str]]:
    """Select the jobs that can be played: submitted in the window, with known GPUs and run time.

    Returns:
        Rows of these jobs in the history, sorted by the time when they became eligible, and
        sentences on the jobs left out (CPU-only jobs not counted).

    Raises:
        ConfigError: no job can be played.
    """
    gpus, submit = gpus_of(history, recorded), history.submit_s
    inside = ~np.isnan(submit)
    if recorded.from_s is not None:
        inside &= submit >= recorded.from_s
    if recorded.to_s is not None:
        inside &= submit < recorded.to_s
    without_run = inside & (gpus > 0) & np.isnan(history.run_s)
    cancelled = np.isin(history.status, _codes(history, "status", "cancelled"))
    never = without_run & cancelled & np.isnan(history.start_s)
    reasons = (
        ("have no time of submission", np.isnan(submit)),
        ("do not say how many GPUs", inside & np.isnan(gpus)),
        ("were cancelled before they started", never),
        ("have no run time", without_run & ~never),
    )
    left_out = [f"left out: {mask.sum():,} jobs {why}" for why, mask in reasons if mask.any()]
    kept = np.flatnonzero(inside & (gpus > 0) & ~np.isnan(history.run_s))
    if len(kept) == 0:
        why = "; ".join(left_out) or "none was submitted in the time from from_s to to_s"
        hint = "; play processors as GPUs with gpus_from = 'cores'" if "how many" in why else ""
        raise ConfigError(f"{recorded.file}: no job can be played ({why}){hint}")
    return kept[np.argsort(history.ready_s()[kept], kind="stable")], left_out


def _codes(history: History, column: str, word: str) -> list[int]:
    """Return the code of a word in a column, as a list; empty if it does not occur."""
    words = history.tables[column]
    return [words.index(word)] if word in words else []


def skipped(history: History) -> list[str]:
    """Return a sentence for each kind of lines that were skipped or corrected."""
    told = (
        "skipped: ",
        "earlier records of requeued jobs",
        "job ids",
        "times corrected",
        "starts before",
    )
    return [
        f"{kind}: {count:,} lines of the file"
        for kind, count in history.header.defects.items()
        if kind.startswith(told)
    ]


def _hashed(key: str) -> float:
    """Hash a text to a number in [0, 1)."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


@functools.lru_cache(maxsize=4)
def _uniform(file: str, options: ReadOptions, state: tuple[int, ...]) -> Floats:
    """Hash each job's id to a number [J] in [0, 1); without ids, its position in the file.

    state: edition of the file, a part of the cache key.
    """
    history = _read(file, options, state)
    keys = history.id or tuple(map(str, range(history.rows)))
    return np.array([_hashed(key) for key in keys])


def types_of(scenario: Scenario, recorded: Recorded, history: History, rows: Counts) -> Counts:
    """Return the job type of each of these rows of a history.

    It is the type with the job's name (only if the speeds are those of named types), else that of
    the first rule that matches, else a type chosen by a hash in proportion to the types' shares.
    """
    names = [job_type.name for job_type in scenario.types]
    found = np.full(len(rows), -1)
    if recorded.speeds in ("gavel-types", "own"):
        of_word = [names.index(word) if word in names else -1 for word in history.tables["name"]]
        found = by_code(history.name[rows], of_word)
    for rule in recorded.rules:
        like, number = rule.like.lower(), names.index(rule.type)
        words = history.tables[rule.field]
        of_word = [number if fnmatch.fnmatch(word.lower(), like) else -1 for word in words]
        ruled = by_code(getattr(history, rule.field)[rows], of_word)
        found = np.where(found < 0, ruled, found)
    rest = np.flatnonzero(found < 0)
    share = np.cumsum([job_type.share for job_type in scenario.types])
    u = _uniform(recorded.file, _options(recorded), edition(recorded))[rows[rest]]
    found[rest] = np.minimum(np.searchsorted(share / share[-1], u, side="right"), len(share) - 1)
    return found


def by_code(codes: Codes, of_word: list[int]) -> Counts:
    """Return of_word[code] for each of the codes [J]; -1 for the code -1, which means no word."""
    table = np.array([*of_word, -1])  # the last is for -1: no word
    found: Counts = table[codes]
    return found


class RanOn(NamedTuple):
    """GPU models that the jobs of a history ran on."""

    models: tuple[gpu.GpuModel, ...]  # [M]
    of_job: Counts  # [J] index of the job's model in `models`; -1 = unknown


def ran_on(history: History, recorded: Recorded, cluster: Cluster) -> RanOn:
    """Return the GPU model that each job ran on.

    The name of its GPUs is looked up in the scenario's `gpu_names`, then among the types of the
    cluster's nodes, then in the catalogue. The hosts of the job decide between models of one type,
    and say the model of a job without a name; without them the first model of the type counts.
    """
    of_host: dict[str, list[NodeGroup]] = {}
    for group in cluster.nodes:
        for host in group.hosts:
            of_host.setdefault(host_of(host), []).append(group)
    types, lists = ("", *history.tables["gpu_model"]), ("", *history.tables["hosts"])
    hosts = history.hosts.astype(np.int64) + 1 if of_host else 0
    place = (history.gpu_model.astype(np.int64) + 1) * len(lists) + hosts
    distinct, number = np.unique(place, return_inverse=True)
    found: list[gpu.GpuModel | None] = []
    for code, at in zip(*np.divmod(distinct, len(lists)), strict=True):
        groups = _groups(types[code], lists[at], cluster, of_host)
        found.append(_model_of(types[code], groups, recorded, cluster))
    models = tuple(dict.fromkeys(model for model in found if model is not None))
    of_place = [-1 if model is None else models.index(model) for model in found]
    return RanOn(models, np.array(of_place, np.int64)[number])


def _groups(
    name: str, hosts: str, cluster: Cluster, of_host: Mapping[str, list[NodeGroup]]
) -> list[NodeGroup]:
    """Return the groups of nodes that a job may have run on, by its GPU type and hosts.

    "" = the type or the hosts are not known. Hosts are used only where the type leaves a choice.
    """
    typed = [group for group in cluster.nodes if name and _has_type(group, name)]
    if name and len({group.gpu for group in typed}) < 2:
        return typed
    try:
        named = slurm_nodes.hosts(hosts)
    except TraceError:
        named = []
    there = [group for host in named for group in of_host.get(host, ())]
    return [group for group in there if not name or _has_type(group, name)] or typed


def _has_type(group: NodeGroup, name: str) -> bool:
    return group.gpu_type.casefold() == name.casefold()


def _model_of(
    name: str, groups: Sequence[NodeGroup], recorded: Recorded, cluster: Cluster
) -> gpu.GpuModel | None:
    """Return the model of a job's GPUs, given their name and groups that it may have run on."""
    given = recorded.gpu_names.get(name)
    models = list(dict.fromkeys(cluster.model_of(group.gpu) for group in groups))
    if given is None and (len(models) == 1 or (name and models)):
        return models[0]
    try:
        return cluster.model_of(given or name) if name else None
    except ConfigError:
        return None


def accounts_of(history: History) -> tuple[str, ...]:
    """Return the names of the history's accounts, or of its queues if there are no accounts.

    If there are neither, or more than 500, all jobs belong to the one account "default".
    """
    for column in ("account", "queue"):
        words = history.tables[column]
        if words:
            return words if len(words) <= _MOST_ACCOUNTS else ONE_ACCOUNT
    return ONE_ACCOUNT


def users_of(history: History) -> int:
    """Return the number of users of the history, at least 1."""
    return max(1, len(history.tables["user"]))
