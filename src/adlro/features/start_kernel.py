"""What a learned policy looks at: the choices of a state, and numbers that describe each.

The choices are to wait (always the first) and the feasible pairs of a job and a pool with the
smallest estimates, Min-Min's own always among them. Times are measured in `tau`, the geometric mean
of the estimates at hand, and squeezed by `symlog`, so that clusters of seconds and of days look
alike. A feature is known by its name: a policy's card lists those it was trained on
(policies/loading/weights.py), so new ones may be added here, but what a name means never changes.

`describe_choices` fills in the PLAIN features. Those that few networks ask for take longer:
`describe_more` fills them in, kind by kind (meters_kernel.py,
likeness_kernel.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.features.similarity_kernel import LIKENESS, compare_jobs
from adlro.features.similarity_kernel import SCRATCH as _OF_LIKENESS
from adlro.features.telemetry_kernel import TELEMETRY_FEATURES, read_pools
from adlro.model.feasibility import expected_end
from adlro.model.state import WHOLE, Floats, Records
from adlro.model.view import RECENT, View
from adlro.planning import drain as draining
from adlro.planning.drain import (
    MOST_PAIRS,
    MOST_PLANNED,
    Drain,
    Pairs,
    cost_of,
    next_finish,
    open_drain,
    place_in,
    shortest_pairs,
    span_penalty,
    split_pairs,
)
from adlro.planning.min_min import min_min_start

PLAIN = (
    "wait",  # 1 = the choice to wait; most features below are 0 for it
    "planned",  # 1 = what Min-Min would do
    "drain",  # drain cost above that of Min-Min's choice, tau
    "drain_log",  # the same, squeezed
    "drain_regret",  # above the cheapest choice, squeezed
    # GPU time taken until the queue is drained, above Min-Min's choice, squeezed. To wait takes
    # what is free until the next end: of each pool as many GPUs as all planned jobs ask for.
    "drain_busy",
    "drain_wait",  # drain cost of waiting above that of Min-Min's choice, squeezed
    "drain_mean",  # drain cost of Min-Min's choice for each planned job, squeezed
    "seconds",  # run time here, squeezed
    "slowdown",  # log of run time here over that on the fastest pool
    "is_fastest",  # 1 = no pool is faster
    "elsewhere",  # how much later it would end elsewhere, as things run, squeezed
    "plan_end",  # its end in the plan, from now, squeezed
    "plan_gain",  # how much sooner it ends than in the plan, squeezed
    "plan_start",  # its start in the plan, from now, squeezed
    "plan_rank",  # its place in the plan, 0 to 1
    "plan_here",  # 1 = the plan has it on this pool
    "over_shortest",  # run time above that of the shortest planned job, squeezed
    "gpus_log",  # log2 of its GPUs
    "gpus_of_pool",  # its GPUs over the pool's
    "gpus_of_free",  # its GPUs over all free ones
    "left_free",  # what stays free of the pool, as a share
    "area",  # GPU time, squeezed
    "spans",  # extra run time for spanning nodes, as a share
    "waited",  # since its arrival, squeezed
    "priority",  # of the job, 0 to 1
    "blocked",  # planned jobs that fit on the pool now and would not any more, squeezed
    "blocked_seconds",  # their run times there, squeezed
    "rivals",  # planned jobs that may use the pool, as a share
    "rival_speed",  # their mean speed here over that on their fastest pool
    "pool_pressure",  # work on and for the pool for each of its GPUs, squeezed
    "pool_next",  # next expected end on the pool, squeezed
    "pressure",  # as pool_pressure, whole cluster
    "next",  # next expected end anywhere, squeezed
    "waiting",  # log of jobs that wait
    "free",  # share of GPUs that are free
    "choices",  # log of how many choices there are
    "asked",  # log of GPUs asked for by planned jobs over those that are up
    "widest",  # log2 of the widest planned job
    "overdue",  # share of running jobs that have outlived their estimate
    "recent_load",  # log of the work of the last RECENT arrivals over what all GPUs could do since
    "recent_gap",  # mean time between them, squeezed
    "recent_scale",  # log of the geometric mean of their run times over tau
)
(
    WAIT, PLANNED, DRAIN, DRAIN_LOG, DRAIN_REGRET, DRAIN_BUSY, DRAIN_WAIT, DRAIN_MEAN, SECONDS,
    SLOWDOWN, IS_FASTEST, ELSEWHERE, PLAN_END, PLAN_GAIN, PLAN_START, PLAN_RANK, PLAN_HERE,
    OVER_SHORTEST, GPUS_LOG, GPUS_OF_POOL, GPUS_OF_FREE, LEFT_FREE, AREA, SPANS, WAITED, PRIORITY,
    BLOCKED, BLOCKED_SECONDS, RIVALS, RIVAL_SPEED, POOL_PRESSURE, POOL_NEXT, PRESSURE, NEXT,
    WAITING, FREE, CHOICES, ASKED, WIDEST, OVERDUE, RECENT_LOAD, RECENT_GAP, RECENT_SCALE,
) = range(len(PLAIN))  # fmt: skip
KINDS = {"telemetry": TELEMETRY_FEATURES, "sketches": LIKENESS}  # filled in only if asked for
FEATURES = (*PLAIN, *TELEMETRY_FEATURES, *LIKENESS)
_FIRST_TELEMETRY, _FIRST_SIMILARITY = (
    len(PLAIN),
    len(PLAIN) + len(TELEMETRY_FEATURES),
)  # columns of the first of each
_OF_A_POOL = len(TELEMETRY_FEATURES)  # numbers that `describe_more` needs, the last of the scratch
_TELEMETRY, _SKETCHES = 1, 2  # bits of the kinds that are asked for, see `kinds_of`

MOST_CHOICES = MOST_PAIRS  # to wait, and as many pairs as that leaves
_FAR = 1e3  # tau: what lies beyond, or never comes
_FEW = 8  # arrivals that tell nothing yet: the features are 0
_LEAST = 1e-9  # seconds: an estimate of 0 counts as this where it divides


class Choices(NamedTuple):
    """The choices of a state; the first is to wait. C choices, F features."""

    count: int  # type: ignore[assignment]  # C, 0 = nothing can start now; hides tuple.count
    planned: int  # which one Min-Min would take; 0 also if it would wait
    tau: float  # seconds
    places: Floats  # [MOST_CHOICES] queue places
    pools: Floats  # [MOST_CHOICES]
    seconds: Floats  # [MOST_CHOICES] run times, with the span penalty
    costs: Floats  # [MOST_CHOICES] drain costs, seconds
    features: Floats  # [MOST_CHOICES, F]


class _Plan(NamedTuple):
    """The Min-Min plan by planned job: K jobs."""

    ranks: Floats  # [K] place in the plan; K = not planned
    starts: Floats  # [K] infinite = not planned
    ends: Floats  # [K]
    pools: Floats  # [K]
    fastest: Floats  # [K] smallest run time
    speeds: Floats  # [K * P] relative to the fastest pool; 0 where the job cannot run


class _Pressure(NamedTuple):
    """What stands on and before each pool: P pools."""

    work: Floats  # [P] GPU-seconds running there, or planned and fastest there
    next: Floats  # [P] next expected end


class _Seen(NamedTuple):
    """What the features of all choices are made from."""

    tau: float
    drain: Drain
    plan: _Plan
    pressure: _Pressure


class _Shared(NamedTuple):
    """What the features of every start refer to."""

    free: int  # GPUs
    shortest: float  # run time of the shortest planned job


class _Start(NamedTuple):
    """A start of a planned job."""

    k: int  # place among the planned jobs
    pool: int
    seconds: float  # run time there, with the span penalty


def kinds_of(features: Iterable[str]) -> int:
    """Which kinds must be filled in for a network that looks at these: a bit for each of KINDS."""
    wanted = set(features)
    return sum(1 << k for k, names in enumerate(KINDS.values()) if wanted.intersection(names))


EVERYTHING = kinds_of(FEATURES)


def scratch_size(gpus: int, pools: int) -> int:
    """How many numbers `describe_choices` and `describe_more` need."""
    own = MOST_CHOICES * (5 + len(FEATURES)) + MOST_PLANNED * (5 + pools) + 2 * pools
    return own + draining.scratch_size(gpus, pools) + _OF_LIKENESS + _OF_A_POOL * pools


@njit
def symlog(x: float) -> float:
    """Log of 1 + |x|, with the sign of x."""
    squeezed: float = np.log(1.0 + x) if x >= 0.0 else -np.log(1.0 - x)
    return squeezed


@njit
def _squeeze(seconds: float, tau: float) -> float:
    """Seconds in tau, squeezed; what never comes counts as far away."""
    return symlog(max(min(seconds / tau, _FAR), -_FAR))


@njit
def _fastest(k: int, drain: Drain, pools: Records) -> tuple[float, int]:
    """Smallest run time of a planned job, and where."""
    best, best_p = np.inf, 0
    for p in range(len(pools)):
        if drain.seconds[k * len(pools) + p] < best:
            best, best_p = drain.seconds[k * len(pools) + p], p
    return best, best_p


@njit
def _measure(view: View, drain: Drain, pressure: _Pressure, plan: _Plan) -> float:
    """Fill in the pressure on each pool and how fast each planned job is where; returns tau."""
    now, jobs, queue, running = view.now, view.jobs, view.queue, view.running
    pools, logs = view.pools, 0.0
    for p in range(len(pools)):
        pressure.work[p], pressure.next[p] = 0.0, np.inf
    for k in range(len(drain.places)):
        seconds, p = _fastest(k, drain, pools)
        pressure.work[p] += seconds * jobs[queue[int(drain.places[k])].job].gpus
        logs += np.log(max(seconds, _LEAST))
        plan.fastest[k] = seconds
        for at in range(k * len(pools), (k + 1) * len(pools)):
            here = drain.seconds[at]
            plan.speeds[at] = seconds / max(here, _LEAST) if here < np.inf else 0.0
    for r in range(len(running)):
        run, end = running[r], expected_end(running[r], now)
        pressure.work[run.pool] += (end - now) * jobs[run.job].gpus
        pressure.next[run.pool] = min(pressure.next[run.pool], end)
        logs += np.log(max(run.expected - run.start, _LEAST))
    tau: float = np.exp(logs / (len(drain.places) + len(running)))
    return tau


@njit
def _read_plan(drain: Drain, pools: Records, plan: _Plan) -> None:
    """Write down the plan that was made last, by planned job."""
    count = len(drain.places)
    for k in range(count):
        plan.ranks[k], plan.starts[k], plan.ends[k], plan.pools[k] = count, np.inf, np.inf, -1.0
    for i in range(count):
        at = int(drain.picks[i])
        k = at // len(pools)
        plan.ranks[k], plan.starts[k], plan.pools[k] = i, drain.pick_starts[i], at % len(pools)
        plan.ends[k] = drain.pick_starts[i] + drain.seconds[at]


@njit
def _busy(drain: Drain, pools: Records) -> float:
    """Sum of the times at which GPUs are free again after the plan made last, from now."""
    total = 0.0
    for p in range(len(pools)):
        for i in range(pools[p].first_gpu, pools[p].first_gpu + int(drain.counts[p])):
            total += drain.own_times[i] - drain.now
    return total


@njit
def _describe_rivals(k: int, p: int, view: View, seen: _Seen, x: Floats) -> None:
    """Fill in what planned job k on pool p does to the other planned jobs."""
    jobs, queue, pools = view.jobs, view.queue, view.pools
    tau, drain, plan = seen.tau, seen.drain, seen.plan
    mine = jobs[queue[int(drain.places[k])].job].gpus
    free = pools[p].free
    blocked, seconds, rivals, speed = 0.0, 0.0, 0.0, 0.0
    for i in range(len(drain.places)):
        here = drain.seconds[i * len(pools) + p]
        if i != k and here < np.inf:
            rivals += 1.0
            speed += plan.speeds[i * len(pools) + p]
            gpus = jobs[queue[int(drain.places[i])].job].gpus
            if gpus <= free and gpus > free - mine:
                blocked += 1.0
                seconds += here
    x[BLOCKED], x[BLOCKED_SECONDS] = symlog(blocked), _squeeze(seconds, tau)
    x[RIVALS] = rivals / len(drain.places)
    x[RIVAL_SPEED] = speed / max(rivals, 1.0)


@njit
def _describe_start(start: _Start, shared: _Shared, view: View, seen: _Seen, x: Floats) -> None:
    """Fill in the features of starting a planned job."""
    k, p, seconds = start.k, start.pool, start.seconds
    tau, drain, plan, pressure = seen.tau, seen.drain, seen.plan, seen.pressure
    now, pools = drain.now, view.pools
    pool, job = pools[p], view.jobs[view.queue[int(drain.places[k])].job]
    plain, fastest = drain.seconds[k * len(pools) + p], plan.fastest[k]
    elsewhere = np.inf
    for o in range(len(pools)):
        at = k * len(pools) + o
        if o != p and drain.seconds[at] < np.inf:
            need = int(drain.needs[at])
            ready = drain.times[pools[o].first_gpu + need - 1] if need > 0 else now
            elsewhere = min(elsewhere, ready + drain.seconds[at])
    x[SECONDS] = _squeeze(seconds, tau)
    x[SLOWDOWN] = np.log(max(seconds, _LEAST) / max(fastest, _LEAST))
    x[IS_FASTEST] = 1.0 if plain <= fastest else 0.0
    x[ELSEWHERE] = _squeeze(elsewhere - now - seconds, tau)
    x[PLAN_END] = _squeeze(plan.ends[k] - now, tau)
    x[PLAN_GAIN] = _squeeze(plan.ends[k] - now - seconds, tau)
    x[PLAN_START] = _squeeze(plan.starts[k] - now, tau)
    x[PLAN_RANK] = plan.ranks[k] / len(drain.places)
    x[PLAN_HERE] = 1.0 if plan.pools[k] == p else 0.0
    x[OVER_SHORTEST] = _squeeze(seconds - shared.shortest, tau)
    x[GPUS_LOG] = np.log2(job.gpus)
    x[GPUS_OF_POOL] = job.gpus / pool.gpus
    x[GPUS_OF_FREE] = job.gpus / max(shared.free, 1)
    x[LEFT_FREE] = (pool.free - job.gpus) / pool.gpus
    x[AREA] = _squeeze(seconds * job.gpus, tau)
    x[SPANS] = seconds / plain - 1.0 if plain > 0.0 else 0.0
    x[WAITED] = _squeeze(now - job.arrival, tau)
    x[PRIORITY] = job.priority
    x[POOL_PRESSURE] = _squeeze(pressure.work[p] / pool.gpus, tau)
    x[POOL_NEXT] = _squeeze(pressure.next[p] - now, tau)
    _describe_rivals(k, p, view, seen, x)


@njit
def _describe_state(count: int, soonest: float, view: View, seen: _Seen, x: Floats) -> _Shared:
    """Fill in the features that all `count` choices share; soonest: the next expected end."""
    now, jobs, queue, running = view.now, view.jobs, view.queue, view.running
    pools, tau, drain, plan = view.pools, seen.tau, seen.drain, seen.plan
    pressure = seen.pressure
    free, up, work, overdue = 0, 0, 0.0, 0
    for p in range(len(pools)):
        free += pools[p].free
        up += pools[p].gpus
        work += pressure.work[p]
    asked, widest, shortest = 0, 1, np.inf
    for k in range(len(drain.places)):
        gpus = jobs[queue[int(drain.places[k])].job].gpus
        asked += gpus
        widest = max(widest, gpus)
        shortest = min(shortest, plan.fastest[k])
    for r in range(len(running)):
        overdue += running[r].expected <= now
    x[PRESSURE] = _squeeze(work / max(up, 1), tau)
    x[NEXT] = _squeeze(soonest - now, tau)
    x[WAITING] = np.log(1.0 + len(queue))
    x[FREE] = free / max(up, 1)
    x[CHOICES] = np.log(float(count))
    x[ASKED] = np.log(1.0 + asked / max(up, 1))
    x[WIDEST] = np.log2(widest)
    x[OVERDUE] = overdue / max(len(running), 1)
    return _Shared(free, shortest)


@njit
def _describe_arrivals(view: View, tau: float, x: Floats) -> None:
    """Fill in what the last arrivals, waiting or not, say about those to come."""
    jobs, est, pools, recent = view.jobs, view.est, view.pools, view.recent
    first, up = max(len(recent) - RECENT, 0), 0
    for p in range(len(pools)):
        up += pools[p].gpus
    if len(recent) < _FEW or up == 0:
        return
    span = view.now - jobs[recent[first]].arrival
    if span <= 0.0:
        return
    work, product, logs = 0.0, 1.0, 0.0
    for k in range(first, len(recent)):
        j, fastest = recent[k], np.inf
        for p in range(len(pools)):
            fastest = min(fastest, est[j, pools[p].model])
        work += fastest * jobs[j].gpus * (jobs[j].share / WHOLE)
        product *= max(fastest, _LEAST) / tau
        if product > 1e100 or product < 1e-100 or k == len(recent) - 1:  # one log for many numbers
            logs, product = logs + np.log(product), 1.0
    count = len(recent) - first
    x[RECENT_LOAD] = min(max(np.log(max(work, _LEAST) / (span * up)), -5.0), 5.0)
    x[RECENT_GAP] = _squeeze(span / count, tau)
    x[RECENT_SCALE] = min(max(logs / count, -5.0), 5.0)


@njit
def _compare_drains(choices: Choices, busy: Floats, known: int) -> None:
    """Fill in what the drain costs of all choices say about each; known: planned jobs."""
    count, planned, tau = choices.count, choices.planned, choices.tau
    costs, features = choices.costs, choices.features
    least = costs[0]
    for i in range(1, count):
        least = min(least, costs[i])
    for i in range(count):
        x, more = features[i], costs[i] - costs[planned]
        x[DRAIN] = max(min(more / tau, _FAR), -_FAR)
        x[DRAIN_LOG] = _squeeze(more, tau)
        x[DRAIN_REGRET] = _squeeze(costs[i] - least, tau)
        x[DRAIN_BUSY] = _squeeze(busy[i] - busy[planned], tau)
        x[DRAIN_WAIT] = _squeeze(costs[0] - costs[planned], tau)
        x[DRAIN_MEAN] = _squeeze(costs[planned] / known, tau)


@njit
def _choose_pairs(view: View, pairs: Pairs, scratch: Floats) -> tuple[int, int]:
    """Fill in the pairs to choose from; returns how many, and the place of Min-Min's (-1 = none).

    Of a full list Min-Min's pair replaces the longest, if it is not there.
    """
    count = shortest_pairs(MOST_CHOICES - 1, view, pairs)
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


@njit_apart
def describe_choices(view: View, scratch: Floats) -> Choices:
    """The choices that a state offers, with their PLAIN features; all in the scratch."""
    now, jobs, queue, pools, nodes = view.now, view.jobs, view.queue, view.pools, view.nodes
    most, wide_, total, n = MOST_CHOICES, len(FEATURES), len(pools), MOST_PLANNED
    features = scratch[: most * wide_].reshape((most, wide_))
    rest = scratch[most * wide_ :]
    places, at, seconds = rest[:most], rest[most : 2 * most], rest[2 * most : 3 * most]
    costs, busy, rest = rest[3 * most : 4 * most], rest[4 * most : 5 * most], rest[5 * most :]
    pressure, rest = _Pressure(rest[:total], rest[total : 2 * total]), rest[2 * total :]
    plan = _Plan(
        rest[:n], rest[n : 2 * n], rest[2 * n : 3 * n], rest[3 * n : 4 * n], rest[4 * n : 5 * n],
        rest[5 * n : (5 + total) * n],
    )  # fmt: skip
    pairs, rest = split_pairs(rest[(5 + total) * n :])
    known, first = _choose_pairs(view, pairs, rest)
    count, planned = known + 1, first + 1
    if known == 0:
        return Choices(0, 0, 0.0, places, at, seconds, costs, features)
    drain = open_drain(view, pairs, known, rest)
    tau = _measure(view, drain, pressure, plan)
    seen = _Seen(tau, drain, plan, pressure)
    soonest = next_finish(now, view.running)
    places[0], at[0], seconds[0] = -1.0, -1.0, 0.0
    for f in range(len(PLAIN)):
        features[0, f] = 0.0
    features[0, WAIT] = 1.0
    shared = _describe_state(count, soonest, view, seen, features[0])
    _describe_arrivals(view, tau, features[0])
    for i in range(-1, count):  # one loop: `cost_of` is inlined, and large
        k, p, time = wide(-1), wide(-1), now  # i < 0: the plan as it stands
        if i == 0:
            time = min(soonest, now + _FAR * tau)
        elif i > 0:
            q, p = int(pairs.places[i - 1]), int(pairs.pools[i - 1])
            k = place_in(drain, q)
            time = pairs.seconds[i - 1] * span_penalty(jobs[queue[q].job], pools[p], nodes)
            places[i], at[i], seconds[i] = q, p, time
        cost = cost_of(k, p, time, np.inf, drain, pools)
        if i < 0:
            _read_plan(drain, pools, plan)
            continue
        costs[i], busy[i] = cost, _busy(drain, pools)
        if i > 0:
            x = features[i]
            for f in range(len(PLAIN)):
                x[f] = features[0, f]
            x[WAIT] = 0.0
            _describe_start(_Start(k, p, time), shared, view, seen, x)
    features[planned, PLANNED] = 1.0
    choices = Choices(count, planned, tau, places, at, seconds, costs, features)
    _compare_drains(choices, busy, len(drain.places))
    return choices


@njit_apart
def describe_more(
    kinds: int, ranges: Floats, choices: Choices, view: View, scratch: Floats
) -> None:
    """Fill in the features of the kinds that are asked for (see `kinds_of`); to wait has 0.

    Args:
        kinds: a bit for each.
        ranges: [M * RANGES] of telemetry; not read for others.
        choices: of this state, as `describe_choices` gave them.
        view: that of the look.
        scratch: also that of the look; what `describe_more` needs itself stands at its end.
    """
    pools = view.pools
    own = scratch[len(scratch) - _OF_A_POOL * len(pools) :]
    if kinds & _TELEMETRY:
        read_pools(ranges, pools, view.gpus, own)
        for f in range(len(TELEMETRY_FEATURES)):
            choices.features[0, _FIRST_TELEMETRY + f] = 0.0
            for i in range(1, choices.count):
                at = int(choices.pools[i]) * len(TELEMETRY_FEATURES)
                choices.features[i, _FIRST_TELEMETRY + f] = own[at + f]
    if kinds & _SKETCHES:
        own = scratch[len(scratch) - _OF_A_POOL * len(pools) - _OF_LIKENESS :][:_OF_LIKENESS]
        compare_jobs(
            choices.count, choices.tau, choices.places, choices.pools, view, own,
            choices.features[:, _FIRST_SIMILARITY:],
        )  # fmt: skip
