"""Gradient boosting as a rival: trained on what had ended, with all fields and on-line features."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from estimators import alike

from adlro.errors import ConfigError
from adlro.estimates.job_table import JobTable, end_times
from adlro.model.history import Codes, History
from adlro.model.state import Counts, Floats, Mask

_WORDS = ("user", "account", "queue", "qos", "name")
_MOST_WORDS = 250  # of a column: the most frequent ones
_MOST_JOBS = 100_000  # trained on: the latest
_GROUPS = (  # of alike jobs; "size" is all demands together
    (),
    ("user",),
    ("user", "requested_s"),
    ("user", "requested_s", "size"),
    ("user", "name"),
    (*_WORDS, "requested_s", "size"),
)
_ROUNDS = 150
_SETTINGS = {  # chosen on first halves; LightGBM's own (31 leaves, rate 0.1) overfit
    "objective": "l1", "num_leaves": 15, "learning_rate": 0.08, "feature_fraction": 0.5,
    "min_data_in_leaf": 100, "cat_smooth": 200.0, "cat_l2": 50.0, "num_threads": 1,
    "verbosity": -1, "seed": 0, "deterministic": True, "force_row_wise": True,
}  # fmt: skip


class Boosted(NamedTuple):
    """Predictions of gradient boosting and what they cost."""

    log_s: Floats  # [J] log seconds of the later jobs, nan of those before
    cpu_s: float


def _frequent(codes: Codes, trained: Mask) -> Floats | None:
    """The most frequent words as categories, all others as one; None = they tell nothing."""
    words, counts = np.unique(codes[trained], return_counts=True)
    if len(words) < 2:
        return None
    kept = words[np.argsort(-counts, kind="stable")][:_MOST_WORDS]
    numbers = {word: float(place) for place, word in enumerate(kept.tolist())}
    return np.array([numbers.get(code, float(_MOST_WORDS)) for code in codes.tolist()])


def _whole(values: Counts) -> Floats:
    return np.where(values < 0, np.nan, values.astype(np.float64))


def online(history: History, jobs: JobTable) -> list[Floats]:
    """Columns [J] of statistics of alike jobs at each submission; equal groups count once."""
    sizes = (history.gpus, history.nodes, history.cores, history.memory_mb, history.gpu_memory_mb)
    values = {name: getattr(history, name) for name in (*_WORDS, "requested_s")}
    values["size"] = alike.codes_of(*sizes)
    found, seen = [], []
    for names in _GROUPS:
        group = alike.codes_of(np.zeros(history.rows), *(values[name] for name in names))
        if any(np.array_equal(group, other) for other in seen):
            continue
        seen.append(group)
        found += list(alike.statistics(jobs, group).T)
    return found


def _columns(history: History, extra: list[Floats], trained: Mask) -> tuple[list[Floats], int]:
    """Columns [J], and how many of them, the first ones, are categories."""
    categories = [_frequent(getattr(history, name), trained) for name in _WORDS]
    words = [column for column in categories if column is not None]
    amounts = (
        history.requested_s, _whole(history.gpus), _whole(history.nodes), history.cores,
        history.memory_mb, history.gpu_memory_mb,
    )  # fmt: skip
    hour = (history.submit_s + (history.header.origin_unix_s or 0.0)) % 86_400.0
    with np.errstate(divide="ignore"):
        numbers = [np.log(amount) for amount in amounts]
    numbers = [np.where(np.isfinite(column), column, np.nan) for column in numbers]
    numbers += [hour, *extra]
    known = [column for column in numbers if not np.isnan(column[trained]).all()]
    return words + known, len(words)


def _predicted(table: Floats, log_s: Floats, rows: Counts, part: Counts, words: int) -> Floats:
    """What trees grown from some rows say of a part; the first `words` columns are categories.

    Raises:
        ConfigError: LightGBM is not there.
    """
    try:
        import lightgbm
    except ImportError as exc:
        raise ConfigError("this experiment needs LightGBM: pip install lightgbm") from exc
    data = lightgbm.Dataset(
        table[rows], log_s[rows], categorical_feature=list(range(words)), params=_SETTINGS
    )
    return np.asarray(lightgbm.train(dict(_SETTINGS), data, _ROUNDS).predict(table[part]))


def boosted(history: History, jobs: JobTable, later: Mask, parts: int) -> Boosted:
    """Predict the later jobs.

    They are cut into `parts` by submission; before each part the trees are grown again from all
    jobs that had ended by then.

    Raises:
        ConfigError: LightGBM is not there.
    """
    before = time.process_time()
    result = np.full(history.rows, np.nan)
    rows = np.flatnonzero(later)
    rows = rows[np.argsort(history.submit_s[rows], kind="stable")]
    ended = np.where(np.isnan(jobs.log_s), np.inf, end_times(history))
    extra = online(history, jobs)
    for part in np.array_split(rows, parts):
        begin = history.submit_s[part[0]]
        trained = (history.submit_s < begin) & (ended <= begin)
        columns, words = _columns(history, extra, trained)
        table = np.column_stack(columns)
        known = np.flatnonzero(trained)
        latest = known[np.argsort(ended[known], kind="stable")][-_MOST_JOBS:]
        result[part] = _predicted(table, jobs.log_s, latest, part, words)
    return Boosted(result, time.process_time() - before)


def fingerprint(history: History, jobs: JobTable, later: Mask, parts: int) -> str:
    """Hash all that `boosted` depends on: the history, its events, the settings and this code."""
    digest = hashlib.blake2b(f"{parts}".encode(), digest_size=16)
    columns = [column for column in history if isinstance(column, np.ndarray)]
    for array in (*columns, jobs.log_s, jobs.order, jobs.time, later):
        digest.update(np.ascontiguousarray(array).tobytes())
    for path in (Path(__file__), Path(alike.__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def cached(path: Path, mark: str) -> Boosted | None:
    """Return the stored predictions of this fingerprint, if any."""
    try:
        with np.load(path) as file:
            if str(file["fingerprint"]) != mark:
                return None
            return Boosted(file["log_s"], float(file["cpu_s"]))
    except (OSError, ValueError, KeyError):
        return None


def store(path: Path, mark: str, found: Boosted) -> None:
    """Write predictions for `cached`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, fingerprint=np.array(mark), log_s=found.log_s, cpu_s=np.array(found.cpu_s))
