"""Gradient boosting as a rival: trained on what had ended, with all fields and on-line features."""

from __future__ import annotations

import numpy as np

from adlro.errors import ConfigError
from adlro.estimates.by_user_kernel import LAST_TWO, MEDIAN, USER_MEAN
from adlro.estimates.job_table import JobTable, end_times
from adlro.model.history import Codes, History
from adlro.model.state import Counts, Floats, Mask

_WORDS = ("user", "account", "queue", "qos", "name")
_MOST_WORDS = 250  # of a column; scikit-learn takes 255
_MOST_JOBS = 100_000  # trained on: the latest
_ROUNDS = 300


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


def _columns(history: History, statistics: Floats, trained: Mask) -> tuple[list[Floats], int]:
    """Columns [J], and how many of them, the first ones, are categories.

    statistics [J, 4]: see by_user_kernel.
    """
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
    numbers += [hour, *(statistics[:, column] for column in (LAST_TWO, USER_MEAN, MEDIAN))]
    known = [column for column in numbers if not np.isnan(column[trained]).all()]
    return words + known, len(words)


def _predicted(table: Floats, log_s: Floats, rows: Counts, part: Counts, words: int) -> Floats:
    """What trees grown from some rows say of a part; the first `words` columns are categories.

    Raises:
        ConfigError: scikit-learn is not there.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
    except ImportError as exc:
        raise ConfigError("this experiment needs scikit-learn: pip install scikit-learn") from exc
    model = HistGradientBoostingRegressor(
        loss="absolute_error",
        categorical_features=list(range(words)),
        max_iter=_ROUNDS,
        early_stopping=False,
        random_state=0,
    )
    model.fit(table[rows], log_s[rows])
    return np.asarray(model.predict(table[part]))


def boosted(
    history: History, jobs: JobTable, statistics: Floats, later: Mask, parts: int
) -> Floats:
    """Log seconds [J] of the later jobs, nan of those before.

    The later jobs are cut into `parts` by submission; before each part the trees are grown again
    from all jobs that had ended by then.

    Raises:
        ConfigError: scikit-learn is not there.
    """
    result = np.full(history.jobs, np.nan)
    rows = np.flatnonzero(later)
    rows = rows[np.argsort(history.submit_s[rows], kind="stable")]
    ended = np.where(np.isnan(jobs.log_s), np.inf, end_times(history))
    for part in np.array_split(rows, parts):
        begin = history.submit_s[part[0]]
        trained = (history.submit_s < begin) & (ended <= begin)
        columns, words = _columns(history, statistics, trained)
        table = np.column_stack(columns)
        known = np.flatnonzero(trained)
        latest = known[np.argsort(ended[known], kind="stable")][-_MOST_JOBS:]
        result[part] = _predicted(table, jobs.log_s, latest, part, words)
    return result
