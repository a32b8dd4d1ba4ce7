"""The choices of a state for a learned policy that only starts jobs, and the features of each.

The choices are to wait (always the first) and the feasible pairs of a job and a pool with the
smallest estimates, Min-Min's own always among them. Times are in units of `tau`, compressed by
`symlog` (plan_kernel.py). A policy's card lists the features it was trained on by name
(policies/loading/card.py), so features may be added here, but the meaning of a name never changes.

`describe_choices` computes the PLAIN features. The others are slower and few networks read them:
`describe_more` computes them, kind by kind (telemetry_kernel.py, similarity_kernel.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.features.plan_kernel import (
    FAR,
    LEAST,
    PoolLoad,
    QueuePlan,
    busy_time,
    choose_pairs,
    compress,
    measure_load,
    read_plan,
    symlog,
)
from adlro.features.similarity_kernel import LIKENESS, compare_jobs
from adlro.features.similarity_kernel import SCRATCH as _OF_LIKENESS
from adlro.features.telemetry_kernel import TELEMETRY_FEATURES, read_pools
from adlro.model.state import WHOLE, Floats, Records
from adlro.model.view import RECENT, View
from adlro.planning import drain as draining
from adlro.planning.drain import (
    MAX_PAIRS,
    MAX_PLANNED,
    Drain,
    cost_of,
    next_finish,
    place_in,
    prepare_drain,
    span_penalty,
    split_pairs,
)

PLAIN = (
    "wait",  # 1 = the choice to wait; most features below are 0 for it
    "planned",  # 1 = what Min-Min would do
    "drain",  # drain cost above that of Min-Min's choice, tau
    "drain_log",  # the same, compressed
    "drain_regret",  # drain cost above that of the cheapest choice, compressed
    # GPU time used until the queue is drained, above that of Min-Min's choice, compressed. Waiting
    # uses free GPUs until the next end: in each pool as many as all planned jobs request.
    "drain_busy",
    "drain_wait",  # drain cost of waiting above that of Min-Min's choice, compressed
    "drain_mean",  # drain cost of Min-Min's choice for each planned job, compressed
    "seconds",  # run time here, compressed
    "slowdown",  # log of run time here over that on the fastest pool
    "is_fastest",  # 1 = no pool is faster
    "elsewhere",  # how much later it would end on the best other pool, compressed
    "plan_end",  # its end in the plan, from now, compressed
    "plan_gain",  # how much sooner it ends than in the plan, compressed
    "plan_start",  # its start in the plan, from now, compressed
    "plan_rank",  # its position in the plan, 0 to 1
    "plan_here",  # 1 = the plan has it on this pool
    "over_shortest",  # run time above that of the shortest planned job, compressed
    "gpus_log",  # log2 of its GPUs
    "gpus_of_pool",  # its GPUs over the pool's
    "gpus_of_free",  # its GPUs over all free ones
    "left_free",  # share of the pool that stays free
    "area",  # GPU time, compressed
    "spans",  # extra run time for spanning nodes, as a share
    "waited",  # since its arrival, compressed
    "priority",  # of the job, 0 to 1
    "blocked",  # planned jobs that fit on the pool now and no longer after this start, compressed
    "blocked_seconds",  # their run times there, compressed
    "rivals",  # share of the planned jobs that may use the pool
    "rival_speed",  # their mean speed here over that on their fastest pool
    "pool_pressure",  # work on and for the pool per GPU, compressed
    "pool_next",  # next expected end on the pool, compressed
    "pressure",  # as pool_pressure, whole cluster
    "next",  # next expected end anywhere, compressed
    "waiting",  # log of the number of waiting jobs
    "free",  # share of GPUs that are free
    "choices",  # log of the number of choices
    "asked",  # log of the GPUs requested by planned jobs over those that are up
    "widest",  # log2 of the widest planned job
    "overdue",  # share of running jobs that have outlived their estimate
    "recent_load",  # log of the work of the last RECENT arrivals over the GPU time since the first
    "recent_gap",  # mean time between them, compressed
    "recent_scale",  # log of the geometric mean of their run times over tau
    "recent_spread",  # standard deviation of the log of their run times; 0 = all estimates alike
    "progress",  # mean time that runs have run over their estimate, each at most 2
    "overdue_by",  # mean log of that over the runs that have outlived their estimate
    "gpus_up",  # log2 of the GPUs that are up
    "gpus_free",  # log2 of 1 + the free ones
    "may_use",  # share of the GPUs that are in pools where the job may run
    "plan_now",  # log of 1 + the jobs that the plan starts now
    "pool_queue",  # work per GPU of all waiting jobs that are fastest on the pool, compressed
    "queue",  # the same, whole cluster
)
(
    WAIT, PLANNED, DRAIN, DRAIN_LOG, DRAIN_REGRET, DRAIN_BUSY, DRAIN_WAIT, DRAIN_MEAN, SECONDS,
    SLOWDOWN, IS_FASTEST, ELSEWHERE, PLAN_END, PLAN_GAIN, PLAN_START, PLAN_RANK, PLAN_HERE,
    OVER_SHORTEST, GPUS_LOG, GPUS_OF_POOL, GPUS_OF_FREE, LEFT_FREE, AREA, SPANS, WAITED, PRIORITY,
    BLOCKED, BLOCKED_SECONDS, RIVALS, RIVAL_SPEED, POOL_PRESSURE, POOL_NEXT, PRESSURE, NEXT,
    WAITING, FREE, CHOICES, ASKED, WIDEST, OVERDUE, RECENT_LOAD, RECENT_GAP, RECENT_SCALE,
    RECENT_SPREAD, PROGRESS, OVERDUE_BY, GPUS_UP, GPUS_FREE, MAY_USE, PLAN_NOW,
    POOL_QUEUE, QUEUE,
) = range(len(PLAIN))  # fmt: skip
KINDS = {"telemetry": TELEMETRY_FEATURES, "sketches": LIKENESS}  # computed on request
FEATURES = (*PLAIN, *TELEMETRY_FEATURES, *LIKENESS)
_FIRST_TELEMETRY = len(PLAIN)  # column
_FIRST_SIMILARITY = _FIRST_TELEMETRY + len(TELEMETRY_FEATURES)
_OF_A_POOL = len(TELEMETRY_FEATURES)  # numbers of scratch per pool for `describe_more`
_TELEMETRY, _SKETCHES = 1, 2  # bits of the requested kinds, see `kinds_of`

MOST_CHOICES = MAX_PAIRS  # waiting, and one pair fewer than this
_FEW = 8  # with fewer arrivals the features of recent arrivals are 0


class Choices(NamedTuple):
    """The C choices of a state, the first being to wait, with their costs and F features."""

    count: int  # type: ignore[assignment]  # C, 0 = nothing can start; hides tuple.count
    planned: int  # index of Min-Min's choice; 0 also if it would wait
    tau: float  # seconds
    places: Floats  # [MOST_CHOICES] positions in the queue
    pools: Floats  # [MOST_CHOICES]
    seconds: Floats  # [MOST_CHOICES] run times, with the span penalty
    costs: Floats  # [MOST_CHOICES] drain costs, seconds
    features: Floats  # [MOST_CHOICES, F]


class _State(NamedTuple):
    """Plan, load and time scale of a state, from which the features of all choices are computed."""

    tau: float
    drain: Drain
    plan: QueuePlan
    load: PoolLoad


class _Shared(NamedTuple):
    """Figures of the state that the features of every start use."""

    free: int  # GPUs
    up: int  # GPUs
    shortest: float  # run time of the shortest planned job


class _Start(NamedTuple):
    """A candidate start: the planned job, the pool and its run time there."""

    k: int  # index of the planned job
    pool: int
    seconds: float  # run time there, with the span penalty


def kinds_of(features: Iterable[str]) -> int:
    """Return which of KINDS a network with these features needs, as one bit for each kind."""
    wanted = set(features)
    return sum(1 << k for k, names in enumerate(KINDS.values()) if wanted.intersection(names))


EVERYTHING = kinds_of(FEATURES)


def scratch_size(gpus: int, pools: int) -> int:
    """Return the length of the scratch buffer for `describe_choices` and `describe_more`."""
    own = MOST_CHOICES * (5 + len(FEATURES)) + MAX_PLANNED * (5 + pools) + 3 * pools
    return own + draining.scratch_size(gpus, pools) + _OF_LIKENESS + _OF_A_POOL * pools


@njit
def _describe_rivals(k: int, p: int, view: View, state: _State, x: Floats) -> None:
    """Write to x how starting planned job k on pool p affects the other planned jobs.

    The features are BLOCKED, BLOCKED_SECONDS, RIVALS and RIVAL_SPEED.
    """
    jobs, queue, pools = view.jobs, view.queue, view.pools
    tau, drain, plan = state.tau, state.drain, state.plan
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
    x[BLOCKED], x[BLOCKED_SECONDS] = symlog(blocked), compress(seconds, tau)
    x[RIVALS] = rivals / len(drain.places)
    x[RIVAL_SPEED] = speed / max(rivals, 1.0)


@njit
def _describe_start(start: _Start, shared: _Shared, view: View, state: _State, x: Floats) -> None:
    """Write the features of one candidate start to x [F]."""
    k, p, seconds = start.k, start.pool, start.seconds
    tau, drain, plan, load = state.tau, state.drain, state.plan, state.load
    now, pools = drain.now, view.pools
    pool, job = pools[p], view.jobs[view.queue[int(drain.places[k])].job]
    plain, fastest = drain.seconds[k * len(pools) + p], plan.fastest[k]
    elsewhere = np.inf
    may_use = 0
    for o in range(len(pools)):
        at = k * len(pools) + o
        if drain.seconds[at] < np.inf:
            may_use += pools[o].gpus
        if o != p and drain.seconds[at] < np.inf:
            need = int(drain.needs[at])
            ready = drain.times[pools[o].first_gpu + need - 1] if need > 0 else now
            if len(drain.floors) > 0:
                ready = max(ready, drain.floors[at])
            elsewhere = min(elsewhere, ready + drain.seconds[at])
    x[SECONDS] = compress(seconds, tau)
    x[SLOWDOWN] = np.log(max(seconds, LEAST) / max(fastest, LEAST))
    x[IS_FASTEST] = 1.0 if plain <= fastest else 0.0
    x[ELSEWHERE] = compress(elsewhere - now - seconds, tau)
    x[PLAN_END] = compress(plan.ends[k] - now, tau)
    x[PLAN_GAIN] = compress(plan.ends[k] - now - seconds, tau)
    x[PLAN_START] = compress(plan.starts[k] - now, tau)
    x[PLAN_RANK] = plan.ranks[k] / len(drain.places)
    x[PLAN_HERE] = 1.0 if plan.pools[k] == p else 0.0
    x[OVER_SHORTEST] = compress(seconds - shared.shortest, tau)
    x[GPUS_LOG] = np.log2(job.gpus)
    x[GPUS_OF_POOL] = job.gpus / pool.gpus
    x[GPUS_OF_FREE] = job.gpus / max(shared.free, 1)
    x[LEFT_FREE] = (pool.free - job.gpus) / pool.gpus
    x[AREA] = compress(seconds * job.gpus, tau)
    x[SPANS] = seconds / plain - 1.0 if plain > 0.0 else 0.0
    x[WAITED] = compress(now - job.arrival, tau)
    x[PRIORITY] = job.priority
    x[POOL_PRESSURE] = compress(load.work[p] / pool.gpus, tau)
    x[POOL_NEXT] = compress(load.next[p] - now, tau)
    x[POOL_QUEUE] = compress(load.queue[p] / pool.gpus, tau)
    x[MAY_USE] = may_use / max(shared.up, 1)
    _describe_rivals(k, p, view, state, x)


@njit
def _describe_runs(now: float, running: Records, x: Floats) -> None:
    """Write the features of how far runs are, compared with their estimates, to x [F]."""
    overdue, done, product, logs = 0, 0.0, 1.0, 0.0
    for r in range(len(running)):
        run = running[r]
        share = (now - run.start) / max(run.expected - run.start, LEAST)
        done += min(share, 2.0)
        if run.expected <= now:
            overdue += 1
            product *= min(max(share, 1.0), FAR)
            if product > 1e100:  # one log for many factors
                logs, product = logs + np.log(product), 1.0
    x[OVERDUE] = overdue / max(len(running), 1)
    x[PROGRESS] = done / max(len(running), 1)
    x[OVERDUE_BY] = (logs + np.log(product)) / max(overdue, 1)


@njit
def _describe_state(count: int, soonest: float, view: View, state: _State, x: Floats) -> _Shared:
    """Write the features that all choices share to x [F]; return what those of starts use.

    count: number of choices; soonest: time of the next expected end of a run.
    """
    now, jobs, queue, running = view.now, view.jobs, view.queue, view.running
    pools, tau, drain, plan = view.pools, state.tau, state.drain, state.plan
    load = state.load
    free, up, work, waiting = 0, 0, 0.0, 0.0
    for p in range(len(pools)):
        free += pools[p].free
        up += pools[p].gpus
        work += load.work[p]
        waiting += load.queue[p]
    asked, widest, shortest = 0, 1, np.inf
    for k in range(len(drain.places)):
        gpus = jobs[queue[int(drain.places[k])].job].gpus
        asked += gpus
        widest = max(widest, gpus)
        shortest = min(shortest, plan.fastest[k])
    x[PRESSURE] = compress(work / max(up, 1), tau)
    x[QUEUE] = compress(waiting / max(up, 1), tau)
    x[NEXT] = compress(soonest - now, tau)
    x[WAITING] = np.log(1.0 + len(queue))
    x[FREE] = free / max(up, 1)
    x[CHOICES] = np.log(float(count))
    x[ASKED] = np.log(1.0 + asked / max(up, 1))
    x[WIDEST] = np.log2(widest)
    x[GPUS_UP], x[GPUS_FREE] = np.log2(max(up, 1)), np.log2(1.0 + free)
    _describe_runs(now, running, x)
    return _Shared(free, up, shortest)


@njit
def _describe_arrivals(view: View, tau: float, x: Floats) -> None:
    """Write the features of the last RECENT arrivals to x [F]; unchanged if there are too few."""
    jobs, est, pools, recent = view.jobs, view.est, view.pools, view.recent
    first, up = max(len(recent) - RECENT, 0), 0
    for p in range(len(pools)):
        up += pools[p].gpus
    if len(recent) < _FEW or up == 0:
        return
    span = view.now - jobs[recent[first]].arrival
    if span <= 0.0:
        return
    work, logs, squares = 0.0, 0.0, 0.0
    for k in range(first, len(recent)):
        j, fastest = recent[k], np.inf
        for p in range(len(pools)):
            fastest = min(fastest, est[j, pools[p].model])
        work += fastest * jobs[j].gpus * (jobs[j].share / WHOLE)
        scale = np.log(max(fastest, LEAST) / tau)
        logs += scale
        squares += scale * scale
    count = len(recent) - first
    spread = max(squares / count - (logs / count) ** 2, 0.0)
    x[RECENT_LOAD] = min(max(np.log(max(work, LEAST) / (span * up)), -5.0), 5.0)
    x[RECENT_GAP] = compress(span / count, tau)
    x[RECENT_SCALE] = min(max(logs / count, -5.0), 5.0)
    x[RECENT_SPREAD] = min(np.sqrt(spread), 5.0)


@njit
def _compare_drains(choices: Choices, busy: Floats, known: int) -> None:
    """Write the features that compare each choice's drain cost with those of the other choices.

    busy [C]: GPU time used until the queue is drained; known: number of planned jobs.
    """
    count, planned, tau = choices.count, choices.planned, choices.tau
    costs, features = choices.costs, choices.features
    least = costs[0]
    for i in range(1, count):
        least = min(least, costs[i])
    wait = compress(costs[0] - costs[planned], tau)
    mean = compress(costs[planned] / known, tau)
    for i in range(count):
        x, more = features[i], costs[i] - costs[planned]
        x[DRAIN] = max(min(more / tau, FAR), -FAR)
        x[DRAIN_LOG] = compress(more, tau)
        x[DRAIN_REGRET] = compress(costs[i] - least, tau)
        x[DRAIN_BUSY] = compress(busy[i] - busy[planned], tau)
        x[DRAIN_WAIT], x[DRAIN_MEAN] = wait, mean


@njit_apart
def describe_choices(view: View, scratch: Floats) -> Choices:
    """Return the choices of a state with their PLAIN features, as views of the scratch buffer."""
    now, jobs, queue, pools, nodes = view.now, view.jobs, view.queue, view.pools, view.nodes
    most, wide_, total, n = MOST_CHOICES, len(FEATURES), len(pools), MAX_PLANNED
    features = scratch[: most * wide_].reshape((most, wide_))
    rest = scratch[most * wide_ :]
    places, at, seconds = rest[:most], rest[most : 2 * most], rest[2 * most : 3 * most]
    costs, busy, rest = rest[3 * most : 4 * most], rest[4 * most : 5 * most], rest[5 * most :]
    load = PoolLoad(rest[:total], rest[total : 2 * total], rest[2 * total : 3 * total])
    rest = rest[3 * total :]
    plan = QueuePlan(
        rest[:n], rest[n : 2 * n], rest[2 * n : 3 * n], rest[3 * n : 4 * n], rest[4 * n : 5 * n],
        rest[5 * n : (5 + total) * n],
    )  # fmt: skip
    pairs, rest = split_pairs(rest[(5 + total) * n :])
    known, first = choose_pairs(view, pairs, rest)
    count, planned = known + 1, first + 1
    if known == 0:
        return Choices(0, 0, 0.0, places, at, seconds, costs, features)
    drain = prepare_drain(view, pairs, known, rest)
    tau = measure_load(view, drain, load, plan)
    state = _State(tau, drain, plan, load)
    soonest = next_finish(now, view.running)
    places[0], at[0], seconds[0] = -1.0, -1.0, 0.0
    for f in range(len(PLAIN)):
        features[0, f] = 0.0
    features[0, WAIT] = 1.0
    shared = _describe_state(count, soonest, view, state, features[0])
    _describe_arrivals(view, tau, features[0])
    for i in range(-1, count):  # a single loop, because `cost_of` is inlined and large
        k, p, time = wide(-1), wide(-1), now  # i < 0: the plan without a choice
        if i == 0:
            time = min(soonest, now + FAR * tau)
        elif i > 0:
            q, p = int(pairs.places[i - 1]), int(pairs.pools[i - 1])
            k = place_in(drain, q)
            time = pairs.seconds[i - 1] * span_penalty(jobs[queue[q].job], pools[p], nodes)
            places[i], at[i], seconds[i] = q, p, time
        cost = cost_of(k, p, time, np.inf, drain, pools)
        if i < 0:
            starting = read_plan(drain, pools, plan)
            features[0, PLAN_NOW] = np.log(1.0 + starting)
            continue
        costs[i], busy[i] = cost, busy_time(drain, pools)
        if i > 0:
            x = features[i]
            for f in range(len(PLAIN)):
                x[f] = features[0, f]
            x[WAIT] = 0.0
            _describe_start(_Start(k, p, time), shared, view, state, x)
    features[planned, PLANNED] = 1.0
    choices = Choices(count, planned, tau, places, at, seconds, costs, features)
    _compare_drains(choices, busy, len(drain.places))
    return choices


@njit_apart
def describe_more(
    kinds: int, ranges: Floats, choices: Choices, view: View, scratch: Floats
) -> None:
    """Write the telemetry and similarity features of all choices, if requested.

    Args:
        kinds: the requested kinds, see `kinds_of`.
        ranges: [M * RANGES] bounds of telemetry readings; not read for other kinds.
        choices: of this state, as returned by `describe_choices`; their features are written.
        view: the same as for `describe_choices`.
        scratch: the same as for `describe_choices`; its end is used here.
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
