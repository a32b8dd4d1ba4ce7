"""Figures that summarise a history: time, demand, usage, missing fields."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from adlro.model.history import FIELDS, History
from adlro.model.state import WHOLE, Counts, Floats

_NEVER = "unknown"
OVERLOAD = (
    "more work was submitted than the cluster can do: waits then measure the length of the file"
)


class Usage(NamedTuple):
    """GPUs (or processors) in use over the time of a history: mean, peak and total hours."""

    unit: str  # "GPUs" or "processors"
    mean: float  # from the first to the last start of a job
    peak: float
    hours: float  # GPU-hours of all jobs together
    by: str  # jobs count from their "start", or "submission" if a start is unknown


class ClusterSize(NamedTuple):
    """Number of GPUs (or processors) of a cluster, and where this number comes from."""

    amount: float
    origin: str


def demand(history: History) -> tuple[str, Floats]:
    """Return the unit of demand, and the amount [J] that each job asks for; nan = unknown.

    The unit is "GPUs", or "processors" if no job's GPUs are known.
    """
    if (history.gpus >= 0).any():
        return "GPUs", np.where(history.gpus < 0, np.nan, history.gpus / WHOLE)
    return "processors", history.cores


def in_use(history: History) -> Usage | None:
    """Compute the GPUs (or processors) in use; None = no job has all of time, run time and demand.

    A job whose start is unknown counts from its submission.
    """
    unit, amount = demand(history)
    is_started = ~np.isnan(history.start_s)
    begin = np.where(is_started, history.start_s, history.submit_s)
    known = ~np.isnan(begin) & ~np.isnan(history.run_s) & ~np.isnan(amount)
    if not known.any():
        return None
    begin, run, amount = begin[known], history.run_s[known], amount[known]
    times = np.concatenate((begin + run, begin))
    change = np.concatenate((-amount, amount))
    order: Counts = np.lexsort((change > 0, times))  # at one time: ends first
    level = np.cumsum(change[order])
    span = float(begin.max() - begin.min())
    inside = np.clip(begin + run, None, begin.max()) - begin
    mean = float((inside * amount).sum() / span) if span > 0 else math.nan
    by = "start" if is_started[known].all() else "submission"
    hours = float((run * amount).sum() / 3600)
    return Usage(unit, mean, max(0.0, float(level.max())), hours, by)


def size_of(history: History, busy: Usage, given: int | None) -> ClusterSize:
    """Return the cluster size that load is computed with.

    It is the size `given`, else the one that the history's source states, else the peak usage.
    """
    stated = history.header.machine_gpus if busy.unit == "GPUs" else history.header.machine_cores
    if given is not None:
        return ClusterSize(given, "given")
    if stated is not None:
        return ClusterSize(stated, "stated by the source")
    return ClusterSize(busy.peak, "the most in use at once")


def date(history: History, seconds: float) -> str:
    """Format a time of the history: as a date if its origin is known, else as seconds."""
    origin = history.header.origin_unix_s
    if origin is None or math.isnan(seconds):
        return _NEVER if math.isnan(seconds) else f"{seconds:,.0f} s"
    try:
        text = datetime.fromtimestamp(origin + seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{origin + seconds:,.0f} s after 1970"
    clock = history.header.clock
    return f"{text} ({clock})" if clock else f"{text} UTC"


class Distribution(NamedTuple):
    """Median, mean, 95th percentile and maximum of one figure over the jobs."""

    median: float
    mean: float
    p95: float
    most: float


def spread(values: Floats) -> Distribution | None:
    """Return the distribution of the values that are not nan; None = there are none."""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return None
    return Distribution(
        float(np.median(known)),
        float(known.mean()),
        float(np.quantile(known, 0.95)),
        float(known.max()),
    )


def missing(history: History) -> dict[str, int]:
    """Return the number of jobs that lack each field, for fields that at least one job lacks.

    A job with a queue does not lack its partitions: these are recorded only where there are others.
    Nor does a job lack a mark of lost runs.
    """
    counts = {field: history.missing(field) for field in FIELDS if field != "lost"}
    counts["partitions"] = int(((history.partitions < 0) & (history.queue < 0)).sum())
    return {field: count for field, count in counts.items() if count}
