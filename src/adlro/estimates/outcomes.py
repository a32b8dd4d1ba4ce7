"""What a history tells, and when: the order of ends and submissions, estimates that keep to it.

An estimate is made when a job is submitted, from jobs that had ended by then: an end at that very
moment counts, the job's own never does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.history import History
from adlro.model.state import Counts, Floats, Mask

SHORTEST = 1.0  # seconds of a job that ran for none
BINS, BINS_PER_LOG = 600, 25.0  # of the histogram behind the running median: to e^24 seconds


class Timeline(NamedTuple):
    """J jobs as they become known; E events."""

    log_s: Floats  # [J] log of the seconds it ran; nan = never known
    order: Counts  # [E] by time: j = job j ends, -1 - j = it is submitted
    time: Floats  # [E] seconds


class Simple(NamedTuple):
    """Log seconds [J] at each submission by estimators that need no memory; nan = nothing known."""

    median: Floats  # of all jobs that had ended
    last_two: Floats  # mean of the user's last two; jobs without a user are one user's
    user_mean: Floats  # mean of the logs of all jobs of the user


class Errors(NamedTuple):
    """How far estimates were off."""

    jobs: int
    mae_log: float  # mean of |log(estimate / truth)|
    within_2: float  # share of the jobs with an estimate between half and twice the truth
    under: float  # share of the jobs with an estimate below the truth


def ends(history: History) -> Floats:
    """When each job ended [J]: as recorded, else its start (or submission) + its run time."""
    start = np.where(np.isnan(history.start_s), history.submit_s, history.start_s)
    return np.where(np.isnan(history.end_s), start + history.run_s, history.end_s)


def timeline(submit: Floats, end: Floats, run_s: Floats) -> Timeline:
    """What is known when of J jobs; nan in any of the three = that is not known."""
    jobs = np.arange(len(submit))
    is_known = ~np.isnan(submit + end + run_s)
    log_s = np.where(is_known, np.log(np.maximum(run_s, SHORTEST)), np.nan)
    end = np.maximum(end, np.nextafter(submit, np.inf))  # nobody learns from itself
    comes = jobs[~np.isnan(submit)]
    known = jobs[is_known]
    time = np.concatenate((end[known], submit[comes]))
    kind = np.repeat((0, 1), (len(known), len(comes)))
    places = np.lexsort((kind, time))
    return Timeline(log_s, np.concatenate((known, -1 - comes))[places], time[places])


def timeline_of(history: History) -> Timeline:
    """What is known when of a history's jobs."""
    return timeline(history.submit_s, ends(history), history.run_s)


@njit
def count_in(histogram: Floats, log_s: float) -> None:
    """Add a run time to the histogram [BINS] behind the running median."""
    place = int(log_s * BINS_PER_LOG)
    histogram[min(max(place, 0), BINS - 1)] += 1.0


@njit
def median_of(histogram: Floats) -> float:
    """Median of what was counted, to 1 / BINS_PER_LOG; nan = nothing was."""
    total = 0.0
    for b in range(BINS):
        total += histogram[b]
    below = 0.0
    for b in range(BINS):
        if histogram[b] > 0 and below + histogram[b] >= total / 2:
            return float((b + (total / 2 - below) / histogram[b]) / BINS_PER_LOG)
        below += histogram[b]
    return np.nan


@njit_allocating
def follow_users(
    order: Counts, log_s: Floats, user: Counts, users: int
) -> tuple[Floats, Floats, Floats]:
    """The three estimates of Simple; user [J] in [0, users)."""
    jobs = len(log_s)
    median, last_two, mean = np.empty(jobs), np.empty(jobs), np.empty(jobs)
    histogram = np.zeros(BINS)
    count, total = np.zeros(users), np.zeros(users)
    last = np.zeros((users, 2))
    for event in order:
        if event >= 0:
            u, value = user[event], log_s[event]
            count_in(histogram, value)
            count[u] += 1
            total[u] += value
            last[u, 1] = last[u, 0] if count[u] > 1 else np.exp(value)
            last[u, 0] = np.exp(value)
        else:
            j = -1 - event
            u = user[j]
            median[j] = median_of(histogram)
            last_two[j] = np.log((last[u, 0] + last[u, 1]) / 2) if count[u] > 0 else np.nan
            mean[j] = total[u] / count[u] if count[u] > 0 else np.nan
    return median, last_two, mean


def simple(line: Timeline, user: Counts, users: int) -> Simple:
    """The estimators that need no memory; user [J] in [0, users)."""
    return Simple(*follow_users(line.order, line.log_s, user, users))


def simple_of(history: History, line: Timeline) -> Simple:
    """The same of a history's jobs."""
    return simple(line, history.user.astype(np.int64) + 1, len(history.tables["user"]) + 1)


def filled(estimate: Floats, requested_s: Floats, median: Floats) -> Floats:
    """Log seconds [J]: where an estimator knows nothing, the request; without one, the median."""
    asked = np.log(np.where(requested_s > 0, requested_s, np.nan))
    fallback = np.where(np.isnan(asked), median, asked)
    return np.where(np.isnan(estimate), fallback, estimate)


def errors(estimate: Floats, line: Timeline, counted: Mask) -> Errors:
    """How far log seconds [J] are off, over those of the counted jobs that have both."""
    off = (estimate - line.log_s)[counted]
    off = off[~np.isnan(off)]
    if len(off) == 0:
        return Errors(0, np.nan, np.nan, np.nan)
    near = np.abs(off) <= np.log(2)
    return Errors(len(off), float(np.abs(off).mean()), float(near.mean()), float((off < 0).mean()))


def later_part(history: History, share: float) -> Mask:
    """The jobs [J] after the first `share` of all by submission: those that errors are for."""
    place = np.empty(history.jobs, np.int64)
    place[np.argsort(history.submit_s, kind="stable")] = np.arange(history.jobs)
    known = int((~np.isnan(history.submit_s)).sum())
    later: Mask = (place >= int(share * known)) & ~np.isnan(history.submit_s)
    return later
