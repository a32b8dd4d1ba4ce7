"""Gradient boosting as a rival: trained on the first half, with all fields and on-line features."""

from __future__ import annotations

import numpy as np

from adlro.errors import ConfigError
from adlro.model.state import Counts, Floats, Mask
from adlro.workloads.history import Codes, History
from adlro.workloads.outcomes import Simple, Timeline, ends

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


def _columns(history: History, simple: Simple, trained: Mask) -> tuple[list[Floats], int]:
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
    numbers += [hour, simple.last_two, simple.user_mean, simple.median]
    known = [column for column in numbers if not np.isnan(column[trained]).all()]
    return words + known, len(words)


def boosted(history: History, line: Timeline, simple: Simple, later: Mask) -> Floats:
    """Log seconds [J] of the later jobs, nan of those before; trained on what had ended by then.

    Raises:
        ConfigError: scikit-learn is not there.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
    except ImportError as exc:
        raise ConfigError("this experiment needs scikit-learn: pip install scikit-learn") from exc
    split = history.submit_s[later].min()
    trained = ~later & ~np.isnan(line.log_s) & (ends(history) <= split)
    columns, words = _columns(history, simple, trained)
    table = np.column_stack(columns)
    model = HistGradientBoostingRegressor(
        loss="absolute_error",
        categorical_features=list(range(words)),
        max_iter=_ROUNDS,
        early_stopping=False,
        random_state=0,
    )
    rows = np.flatnonzero(trained)[-_MOST_JOBS:]
    model.fit(table[rows], line.log_s[rows])
    result = np.full(history.jobs, np.nan)
    result[later] = model.predict(table[later])
    return result
