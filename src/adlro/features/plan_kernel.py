"""The Min-Min plan of a state and the load of its pools, used for the features of a start.

Times are in units of `tau`, the geometric mean of the estimates of all planned and running jobs,
and compressed by `symlog`: clusters whose jobs take seconds and clusters whose jobs take days give
similar features. Dimensions: K planned jobs, P pools.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_apart
from adlro.model.feasibility import expected_end, large_enough
from adlro.model.state import Floats, Records
from adlro.model.view import View
from adlro.planning.drain import MAX_PAIRS, Drain, Pairs, shortest_pairs
from adlro.planning.min_min import min_min_start

FAR = 1e3  # tau: later times, and never, count as this
LEAST = 1e-9  # seconds: an estimate of 0 counts as this in a division
_ROUNDING = 1e-15  # starts in the plan are differences, and so off by less than this share of ends


class QueuePlan(NamedTuple):
    """The Min-Min plan as arrays by planned job: position, start, end and pool of each."""

    ranks: Floats  # [K] position in the plan; K = not planned
    starts: Floats  # [K] infinite = not planned
    ends: Floats  # [K]
    pools: Floats  # [K]
    fastest: Floats  # [K] smallest run time
    speeds: Floats  # [K * P] relative to the fastest pool; 0 where the job cannot run


class PoolLoad(NamedTuple):
    """The remaining work of each pool, and the next expected end there."""

    work: Floats  # [P] GPU-seconds left of its runs, and of the planned jobs that are fastest there
    next: Floats  # [P] next expected end
    queue: Floats  # [P] GPU-seconds of all waiting jobs that are fastest there, planned or not


@njit
def symlog(x: float) -> float:
    """Return log(1 + |x|) with the sign of x."""
    compressed: float = np.log(1.0 + x) if x >= 0.0 else -np.log(1.0 - x)
    return compressed


@njit
def compress(seconds: float, tau: float) -> float:
    """Return a time divided by tau, limited to [-FAR, FAR] and then compressed by `symlog`."""
    return symlog(max(min(seconds / tau, FAR), -FAR))


@njit
def _fastest(k: int, drain: Drain, pools: Records) -> tuple[float, int]:
    """Return the smallest run time of planned job k over all pools, and that pool."""
    best, best_p = np.inf, 0
    for p in range(len(pools)):
        if drain.seconds[k * len(pools) + p] < best:
            best, best_p = drain.seconds[k * len(pools) + p], p
    return best, best_p


@njit_apart
def _measure_queue(view: View, work: Floats) -> None:
    """Write the GPU-seconds of all waiting jobs to `work` [P], each where it is fastest."""
    jobs, est, queue, pools = view.jobs, view.est, view.queue, view.pools
    for p in range(len(pools)):
        work[p] = 0.0
    for q in range(len(queue)):
        j, best, best_p = queue[q].job, np.inf, 0
        for p in range(len(pools)):
            may_run = view.eligible[q, p] and large_enough(jobs[j], pools[p])
            if may_run and est[j, pools[p].model] < best:
                best, best_p = est[j, pools[p].model], p
        if best < np.inf:
            work[best_p] += best * queue[q].left * jobs[j].gpus


@njit
def measure_load(view: View, drain: Drain, load: PoolLoad, plan: QueuePlan) -> float:
    """Write `load`, and the fields `fastest` and `speeds` of `plan`; return tau in seconds."""
    now, jobs, queue, running = view.now, view.jobs, view.queue, view.running
    pools, logs = view.pools, 0.0
    for p in range(len(pools)):
        load.work[p], load.next[p], load.queue[p] = 0.0, np.inf, 0.0
    for k in range(len(drain.places)):
        seconds, p = _fastest(k, drain, pools)
        load.work[p] += seconds * jobs[queue[int(drain.places[k])].job].gpus
        load.queue[p] = load.work[p]
        logs += np.log(max(seconds, LEAST))
        plan.fastest[k] = seconds
        for at in range(k * len(pools), (k + 1) * len(pools)):
            here = drain.seconds[at]
            plan.speeds[at] = seconds / max(here, LEAST) if here < np.inf else 0.0
    if len(queue) > len(drain.places):
        _measure_queue(view, load.queue)
    for r in range(len(running)):
        run, end = running[r], expected_end(running[r], now)
        load.work[run.pool] += (end - now) * jobs[run.job].gpus
        load.next[run.pool] = min(load.next[run.pool], end)
        logs += np.log(max(run.expected - run.start, LEAST))
    tau: float = np.exp(logs / (len(drain.places) + len(running)))
    return tau


@njit
def read_plan(drain: Drain, pools: Records, plan: QueuePlan) -> int:
    """Write the plan that the drain computed last to the fields of `plan`, by job.

    Returns the number of jobs that it starts now.
    """
    count, starting = len(drain.places), 0
    for k in range(count):
        plan.ranks[k], plan.starts[k], plan.ends[k], plan.pools[k] = count, np.inf, np.inf, -1.0
    for i in range(count):
        at = int(drain.picks[i])
        k = at // len(pools)
        plan.ranks[k], plan.starts[k], plan.pools[k] = i, drain.pick_starts[i], at % len(pools)
        plan.ends[k] = drain.pick_starts[i] + drain.seconds[at]
        starting += drain.pick_starts[i] - drain.now <= _ROUNDING * plan.ends[k]
    return starting


@njit
def busy_time(drain: Drain, pools: Records) -> float:
    """Return the seconds until each GPU is free after the drain's last plan, summed over GPUs."""
    total = 0.0
    for p in range(len(pools)):
        times, count, i = drain.own_times[int(drain.begins[p]) :], int(drain.counts[p]), 0
        while i < count and times[i] == drain.now:  # adding 0 takes longer than skipping it
            i += 1
        for k in range(i, count):
            total += times[k] - drain.now
    return total


@njit
def choose_pairs(view: View, pairs: Pairs, scratch: Floats) -> tuple[int, int]:
    """Write the feasible pairs of a job and a pool with the smallest estimates to `pairs`.

    If Min-Min would start a pair that is not among them, it replaces the longest.

    Returns:
        The number of pairs, and the index of Min-Min's; -1 = Min-Min would wait.
    """
    count = shortest_pairs(MAX_PAIRS - 1, view, pairs)
    if count == 0:
        return 0, -1
    q, p = min_min_start(view, scratch)
    if q < 0:
        return count, -1
    for i in range(count):
        if pairs.places[i] == q and pairs.pools[i] == p:
            return count, i
    pairs.places[count - 1], pairs.pools[count - 1] = q, p
    waiting = view.queue[q]
    pairs.seconds[count - 1] = view.est[waiting.job, view.pools[p].model] * waiting.left
    return count, count - 1
