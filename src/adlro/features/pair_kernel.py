"""The features of every pair of an active job and a pool, for a learned policy that may preempt.

Active jobs are waiting or running. start_kernel.py has the features for policies that only start
jobs; here too the meaning of a feature's name never changes. Times are in units of `tau`, the
geometric mean of the remaining times of the open jobs.

Dimensions: A active jobs, oldest first, P pools. A pair is *open* if a plan may use it. A job is
*open* if one of its pairs is open; a job that is pinned to the pool where it runs is not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.feasibility import width
from adlro.model.state import Floats, Mask, Row
from adlro.model.view import RECENT, View
from adlro.planning.active_jobs import ActiveJobs

PAIR_FEATURES = (
    "runs_here",  # 1 = the job runs on this pool
    "runs_there",  # 1 = it runs on another pool
    "srpt",  # minus the log of the weight of the pair in Hetero-SRPT, per tau
    "time_left",  # log of its remaining time on its fastest pool, in tau
    "speed_here",  # log of its speed here over that on its fastest pool
    "resumes",  # 1 = it is waiting with a checkpoint to restore
    "restart",  # log of 1 + its restart cost here over its time left; 0 where it runs
    "age",  # log of 1 + the time since its arrival over its time left
    "done",  # share of its work that is done
    "others_speed",  # log of the other jobs' mean speed here, weighted by 1 / time left
    "advantage",  # speed_here minus others_speed
    "lead",  # speed_here minus the log of its speed on its best other pool
    "rank",  # log of its rank by time left, per GPU of the cluster
    "rank_here",  # log of its rank by the time left on this pool, per GPU of the pool
    "crowd",  # log of the open jobs per GPU
    "wanted",  # log of 1 + the jobs that are fastest here, per GPU of the pool
    "arriving_speed",  # log of the mean speed here of the last RECENT arrivals
    "arriving_advantage",  # speed_here minus arriving_speed
    "arriving_load",  # log of their work over the GPU time since the first of them
    "pool_share",  # share of all GPUs that are in this pool
)
(
    RUNS_HERE, RUNS_THERE, SRPT, TIME_LEFT, SPEED_HERE, RESUMES, RESTART, AGE, DONE, OTHERS_SPEED,
    ADVANTAGE, LEAD, RANK, RANK_HERE, CROWD, WANTED, ARRIVING_SPEED, ARRIVING_ADVANTAGE,
    ARRIVING_LOAD, POOL_SHARE,
) = range(len(PAIR_FEATURES))  # fmt: skip
STAY, SOON = 1.05, 1.0  # of Hetero-SRPT: bonus for staying, and seconds added to the time left
_LOG_MOST = 5.0  # bound of a feature that is a log
_FEW = 8  # with fewer arrivals the features of arrivals are 0


class Contention(NamedTuple):
    """Figures of all open jobs together, shared by the features of all pairs."""

    now: float
    tau: float
    weight: float  # sum of 1 / (time left + SOON)
    here: Floats  # [P] the same sum, each term times the job's relative speed on the pool
    fastest: Floats  # [A] seconds on the fastest pool
    rank: Floats  # [A] number of open jobs that need less time
    rank_here: Floats  # [A, P] number of open jobs that need less time on that pool
    fans: Floats  # [P] number of open jobs that are fastest there
    arriving: Floats  # [P] log of the mean speed of the last arrivals
    load: float  # see "arriving_load"
    crowd: float  # open jobs per GPU
    gpus: float  # GPUs that a plan may use


@njit
def _log(x: float) -> float:
    """Return the log of x, clipped to [-_LOG_MOST, _LOG_MOST]; for 0 the lower bound."""
    bounded: float = max(min(np.log(max(x, 1e-9)), _LOG_MOST), -_LOG_MOST)
    return bounded


@njit_allocating
def _ranks(values: Floats, is_open: Mask, ranks: Floats) -> None:
    """Write to ranks [A], for each job, the number of open jobs with a smaller value.

    Shapes: values [A], is_open [A].
    """
    order, before, equal, last = np.argsort(values), 0.0, 0.0, -np.inf
    for a in order:
        if values[a] > last:
            before, equal, last = before + equal, 0.0, values[a]
        ranks[a] = before
        equal += is_open[a]


@njit_allocating
def _arrivals(view: View, gpus: float) -> tuple[Floats, float]:
    """Return logs of the recent arrivals' mean relative speed on each pool [P], and of their load.

    Both are 0 if there are few arrivals; see the features "arriving_speed" and "arriving_load".
    """
    jobs, est, pools, recent = view.jobs, view.est, view.pools, view.recent
    first, speeds = max(len(recent) - RECENT, 0), np.zeros(len(pools))
    if len(recent) < _FEW:
        return speeds, 0.0
    span, work = view.now - jobs[recent[first]].arrival, 0.0
    if span <= 0.0:
        return speeds, 0.0
    for j in recent[first:]:
        fastest = np.inf
        for p in range(len(pools)):
            fastest = min(fastest, est[j, pools[p].model])
        work += fastest * width(jobs[j])
        for p in range(len(pools)):
            speeds[p] += max(fastest, 1e-9) / max(est[j, pools[p].model], 1e-9)
    for p in range(len(pools)):
        speeds[p] = _log(speeds[p] / (len(recent) - first))
    return speeds, _log(work / (span * gpus))


@njit_allocating
def measure(active: ActiveJobs, is_open: Mask, view: View) -> Contention:
    """Compute the figures that all pairs share; is_open [A] marks the open jobs."""
    count, total = active.seconds.shape
    fastest, rank, rank_here = np.empty(count), np.empty(count), np.empty((count, total))
    here, fans, column = np.zeros(total), np.zeros(total), np.empty(count)
    logs, known, weight = 0.0, 0.0, 0.0
    for a in range(count):
        best, at = np.inf, 0
        for p in range(total):
            if active.seconds[a, p] < best:
                best, at = active.seconds[a, p], p
        fastest[a] = best
        if is_open[a]:
            logs, known = logs + np.log(best), known + 1.0
            weight += 1.0 / (best + SOON)
            fans[at] += 1.0
            for p in range(total):
                here[p] += best / active.seconds[a, p] / (best + SOON)
    _ranks(fastest, is_open, rank)
    for p in range(total):
        for a in range(count):
            column[a] = active.seconds[a, p]
        _ranks(column, is_open, rank_here[:, p])
    gpus = max(active.room.sum(), 1.0)
    arriving, load = _arrivals(view, gpus)
    tau = np.exp(logs / max(known, 1.0))
    return Contention(
        view.now, tau, weight, here, fastest, rank, rank_here, fans, arriving, load, known / gpus,
        gpus,
    )  # fmt: skip


@njit
def _lead(a: int, p: int, seconds: Floats) -> float:
    """Return the log of job a's time on its best other pool over its time on pool p."""
    best = np.inf
    for o in range(seconds.shape[1]):
        if o != p:
            best = min(best, seconds[a, o])
    return _log(best / seconds[a, p])


@njit
def describe(a: int, p: int, job: Row, active: ActiveJobs, crowd: Contention, x: Floats) -> None:
    """Write the features of the open pair of active job a and pool p to x [PAIR_FEATURES]."""
    left = crowd.fastest[a]
    speed, stays = left / active.seconds[a, p], active.pool[a] == p
    cost = job.checkpoint if active.begun[a] and not stays else 0.0
    bonus = STAY if stays else left / (left + cost)
    own = 1.0 / (left + SOON)
    x[RUNS_HERE] = 1.0 if stays else 0.0
    x[RUNS_THERE] = 1.0 if active.pool[a] >= 0 and not stays else 0.0
    x[SRPT] = -np.log(max(own * speed * bonus * crowd.tau, 1e-20))
    x[TIME_LEFT] = _log(left / crowd.tau)
    x[SPEED_HERE] = _log(speed)
    x[RESUMES] = 1.0 if active.pool[a] < 0 and active.begun[a] else 0.0
    x[RESTART] = _log(1.0 + cost / left)
    x[AGE] = _log(1.0 + (crowd.now - job.arrival) / left)
    x[DONE] = 1.0 - active.left[a]
    others = crowd.weight - own
    x[OTHERS_SPEED] = _log((crowd.here[p] - own * speed) / others) if others > 1e-12 else 0.0
    x[ADVANTAGE] = x[SPEED_HERE] - x[OTHERS_SPEED]
    x[LEAD] = _lead(a, p, active.seconds)
    x[RANK] = _log((1.0 + crowd.rank[a]) / crowd.gpus)
    x[RANK_HERE] = _log((1.0 + crowd.rank_here[a, p]) / active.room[p])
    x[CROWD] = _log(crowd.crowd)
    x[WANTED] = _log((1.0 + crowd.fans[p]) / active.room[p])
    x[ARRIVING_SPEED] = crowd.arriving[p]
    x[ARRIVING_ADVANTAGE] = x[SPEED_HERE] - crowd.arriving[p]
    x[ARRIVING_LOAD] = crowd.load
    x[POOL_SHARE] = active.room[p] / crowd.gpus
