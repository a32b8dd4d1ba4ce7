"""The history that a scenario names: its file, the jobs that can be played, their types.

A job's type follows from what is known at its submission: its name, a rule of the scenario, or a
hash of its id (or of its place in the file), never from its run time.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
from pathlib import Path

import numpy as np

from adlro.config.history import Recorded
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.model import gpu
from adlro.model.history import Codes, History
from adlro.model.state import WHOLE, Counts, Floats
from adlro.workloads.formats import registry
from adlro.workloads.formats.gather import ReadOptions

_MOST_ACCOUNTS = 500  # more are treated as one
ONE_ACCOUNT = ("default",)


@functools.lru_cache(maxsize=4)
def _read(file: str, options: ReadOptions, _: tuple[int, ...]) -> History:
    return registry.read(Path(file), options)


def edition(recorded: Recorded | None) -> tuple[int, ...]:
    """Key of the present state of a history's file, for caches."""
    try:
        found = Path(recorded.file).stat() if recorded else None
    except OSError:  # reading it raises a better error
        found = None
    return () if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def _options(recorded: Recorded) -> ReadOptions:
    return ReadOptions(recorded.lenient, recorded.format, tuple(recorded.columns.items()))


def history_of(recorded: Recorded) -> History:
    """Read the whole file that a scenario names; cached, as several settings share it.

    Raises:
        TraceError: it cannot be read.
    """
    return _read(recorded.file, _options(recorded), edition(recorded))


def gpus_of(history: History, recorded: Recorded) -> Floats:
    """Thousandths of a GPU [J]; nan = unknown."""
    if recorded.gpus_from == "cores":
        return history.cores * WHOLE
    return np.where(history.gpus < 0, np.nan, history.gpus.astype(np.float64))


def window(history: History, recorded: Recorded) -> tuple[Counts, list[str]]:
    """Rows of the jobs that can be played, by submission, and sentences on those left out.

    Raises:
        ConfigError: there are none.
    """
    gpus, submit = gpus_of(history, recorded), history.submit_s
    inside = ~np.isnan(submit)
    if recorded.from_s is not None:
        inside &= submit >= recorded.from_s
    if recorded.to_s is not None:
        inside &= submit < recorded.to_s
    reasons = (
        ("have no time of submission", np.isnan(submit)),
        ("do not say how many GPUs", inside & np.isnan(gpus)),
        ("ask for no GPU", inside & (gpus == 0)),
        ("have no run time", inside & (gpus > 0) & np.isnan(history.run_s)),
    )
    left_out = [f"left out: {mask.sum():,} jobs {why}" for why, mask in reasons if mask.any()]
    kept = np.flatnonzero(inside & (gpus > 0) & ~np.isnan(history.run_s))
    if len(kept) == 0:
        why = "; ".join(left_out) or "none was submitted in the time from from_s to to_s"
        hint = "; play processors as GPUs with gpus_from = 'cores'" if "how many" in why else ""
        raise ConfigError(f"{recorded.file}: no job can be played ({why}){hint}")
    return kept[np.argsort(submit[kept], kind="stable")], left_out


def skipped(history: History) -> list[str]:
    """Sentences on the skipped lines of the file, by defect."""
    return [
        f"{kind}: {count:,} lines of the file"
        for kind, count in history.header.defects.items()
        if kind.startswith("skipped: ")
    ]


def _hashed(key: str) -> float:
    """Hash a key to a number in [0, 1)."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


@functools.lru_cache(maxsize=4)
def _uniform(file: str, options: ReadOptions, state: tuple[int, ...]) -> Floats:
    """Hash the id of each job [J] to [0, 1); its place in the file if there are no ids."""
    history = _read(file, options, state)
    keys = history.id or tuple(map(str, range(history.jobs)))
    return np.array([_hashed(key) for key in keys])


def types_of(scenario: Scenario, recorded: Recorded, history: History, rows: Counts) -> Counts:
    """Type of each job of these rows: by name, by rule, else by hash."""
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
    """Look up the number of each code's word; -1 for no word."""
    table = np.array([*of_word, -1])  # the last is for -1: no word
    found: Counts = table[codes]
    return found


def models_of(history: History, recorded: Recorded, column: str) -> list[gpu.GpuModel | None]:
    """GPU model of each word of a column; None = not in the catalogue."""
    found: list[gpu.GpuModel | None] = []
    for word in history.tables[column]:
        try:
            found.append(gpu.find(recorded.gpu_names.get(word, word)))
        except ConfigError:
            found.append(None)
    return found


def accounts_of(history: History) -> tuple[str, ...]:
    """Accounts, else queues; a single account if there are none or too many."""
    for column in ("account", "queue"):
        words = history.tables[column]
        if words:
            return words if len(words) <= _MOST_ACCOUNTS else ONE_ACCOUNT
    return ONE_ACCOUNT


def users_of(history: History) -> int:
    """Number of users, at least 1."""
    return max(1, len(history.tables["user"]))
