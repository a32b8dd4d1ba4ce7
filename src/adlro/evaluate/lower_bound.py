"""A lower bound on the mean JCT of every schedule of a workload, even one that knows the future.

**Relaxed instance.** Only the measured jobs are kept: without the others, a schedule of all jobs is
still a schedule of these, with the same completion times. Job j holds w_j GPUs (a slice: its share)
of one pool p at a time, for at least q_jp seconds in all if it does all its work there, where

    q_jp = min(start delay + true seconds x forced span penalty / highest speed, time limit).

The penalty is forced if the gang exceeds a node. The highest speed is the product of the highest
that any event gives a GPU of the pool, and the job's type on the pool's model, and at least 1 (the
initial speed): a run never goes faster, and slices on one GPU only slow each other. A run that is
killed lasts until the limit. The pool has N_p GPUs, up or down. All other rules are dropped
(nodes, cores, memory, quotas, cycles, failures, the cost of checkpoints): each of them only rules
out schedules or makes jobs later.

**Prices.** Let every GPU of pool p cost a rent of z_p(t) >= 0 at time t. At no time do jobs hold
more than N_p GPUs of the pool, so all jobs together pay at most R = sum_p N_p integral z_p(t) dt.
Hence, for any schedule,

    sum_j JCT_j  >=  sum_j (JCT_j + rent_j) - R  >=  sum_j V_j - R,

where V_j is the least JCT plus rent of job j if it were alone. The right side is the bound. **It
holds for all prices**: `_raise_prices` searches good ones, by ascent along supergradients, and how
well it does decides how tight the bound is, not whether it is one.

**Without preemption** a job holds its GPUs without a break for at least q_jp seconds until it
completes, at C. The last q_jp of them cost no more rent than all, so that JCT_j + rent_j is at
least that of a run of exactly q_jp seconds from S = C - q_jp >= arrival on. V_j is the minimum over
p and S.

**With preemption** job j runs in pieces, at different times and maybe on different pools. A piece
of l seconds on pool p does at most l / q_jp of the work (the start delay d is paid for every piece,
and d + f s >= f (d + s) for a share f <= 1 of the work). The pieces that are not lost do all the
work, or the last one lasts until the time limit, which is >= q_jp. Thus the shares l / q_jp of its
pieces on p sum to 1 or more, over all p. For any worth y >= 0 of the work and completion at C,

    rent_j >= y - integral from arrival to C of max(0, max_p (y / q_jp - w_j z_p(t))) dt,

since adding y (1 - sum of shares) <= 0 to the rent leaves y + integral of (w_j z_p(t) - y / q_jp)
over the times it runs, on one p at a time. V_j is the minimum over C >= arrival + min_p q_jp of the
maximum over y of C - arrival + this. A job that failures interrupt may go on from a checkpoint on
another pool: where nodes fail, this bound is used for policies without preemption as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.evaluate.load import pool_seconds, width
from adlro.evaluate.lower_bound_kernel import (
    Dual,
    Relaxation,
    with_preemption,
    without_preemption,
)
from adlro.model.cluster import Layout
from adlro.model.state import DRAIN, FAILURE, SPEED, Floats
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

_Bound = Callable[[float, Relaxation, Dual], float]

_FINE, _MOST_FINE = 16, 2048  # cells in the mean run time; cells at most
_COARSE, _MOST_COARSE = 4, 512  # the same with preemption, where a cell costs more
_FIRST_STEP, _LAST_STEP = 0.03, 1e-4  # improvement aimed at, relative to the bound
_GROW = 1.5  # factor on that improvement if half of it is made
_SHRINK, _PATIENCE = 0.6, 20  # factor on it after so many steps without
_INERTIA = 0.3  # weight of earlier directions in the next
_MOST_VISITS = 500_000_000  # cells: about 3 CPU-seconds, far more than usual
_ROUNDING = 1e-9  # relative: far above the rounding errors of the sums


class LowerBound(NamedTuple):
    """Lower bounds on the mean JCT of the measured jobs of a workload, in seconds."""

    without_preemption: float  # of schedules in which no policy stops a job
    with_preemption: float  # of all schedules


def _highest_speeds(workload: Workload, layout: Layout) -> Floats:
    """Return the highest speed [J, P] of each job on each pool, relative to the initial one."""
    of_gpu = np.ones(len(layout.gpus))
    of_type = np.ones((len(workload.colocation), workload.seconds.shape[1]))
    for event in workload.events[workload.events["kind"] == SPEED]:
        if event["gpu"] >= 0:
            of_gpu[event["gpu"]] = max(of_gpu[event["gpu"]], event["value"])
        else:
            place = event["type"], event["model"]
            of_type[place] = max(of_type[place], event["value"])
    of_pool = np.ones(len(layout.pools))
    np.maximum.at(of_pool, layout.nodes["pool"][layout.gpus["node"]], of_gpu)
    found: Floats = of_type[workload.jobs["type"]][:, layout.pools["model"]] * of_pool
    return found


def least_seconds(workload: Workload, layout: Layout) -> Floats:
    """Return q [J, P] of the module's docstring; infinite where a job may not run."""
    jobs = workload.jobs
    working = pool_seconds(workload, layout) / _highest_speeds(workload, layout)
    delay = np.where(working > 0, jobs["start_delay"][:, None], 0.0)  # no work ends at once
    least = np.minimum(delay + working, jobs["limit"][:, None])
    found: Floats = np.where(workload.allowed, least, np.inf)
    return found


def relax(setting: Setting, workload: Workload) -> Relaxation:
    """Return the relaxed instance of a workload: the measured jobs that take any time."""
    layout, jobs = setting.layout, workload.jobs
    seconds = least_seconds(workload, layout)
    counted = workload.measured(setting.scenario.measure)
    counted = counted[seconds[counted].min(axis=1) > 0]
    return Relaxation(
        jobs["arrival"][counted] - jobs["arrival"][0],
        np.ascontiguousarray(seconds[counted]),
        width(jobs)[counted],
        layout.pools["size"].astype(np.float64),
    )


def _grid(relaxed: Relaxation, in_mean: int, most: int) -> tuple[float, int]:
    """Return the length of a cell, a power of 2 so that borders are exact, and their number.

    They reach until every job alone would have ended, plus the time of all work on all GPUs.
    """
    shortest = relaxed.seconds.min(axis=1)
    work = float(relaxed.width @ shortest) / float(relaxed.gpus.sum())
    horizon = float((relaxed.arrival + shortest).max()) + work
    cell = 2.0 ** math.ceil(math.log2(max(shortest.mean() / in_mean, horizon / most) / 1.5))
    return cell, math.ceil(horizon / cell)


def _raise_prices(bound: _Bound, cell: float, cells: int, relaxed: Relaxation) -> float:
    """Return the highest bound found by ascent along supergradients, from prices 0 on.

    Each step aims at the best bound so far plus an improvement, which grows if it is made and
    shrinks if it is not. If the work becomes too much, the best bound so far has to do.
    """
    shape = len(relaxed.gpus), cells
    prices, direction = np.zeros(shape), np.zeros(shape)
    buffers = Dual(prices, np.empty((shape[0], cells + 1)), np.empty(shape), np.zeros(1, np.int64))
    best, best_prices = bound(cell, relaxed, buffers), prices
    value, aim, patience = best, _FIRST_STEP * best, _PATIENCE
    while aim > _LAST_STEP * best and buffers.visits[0] < _MOST_VISITS:
        up = np.where((prices <= 0) & (buffers.excess < 0), 0.0, buffers.excess)
        direction = _INERTIA * direction + (1 - _INERTIA) * up
        length = float((direction**2).sum())
        if length == 0:  # no cell has too few GPUs: the bound is the highest there is
            break
        prices = np.maximum(prices + (best + aim - value) / length * direction, 0.0)
        value = bound(cell, relaxed, buffers._replace(prices=prices))
        patience -= 1
        if value > best:
            if value > best + aim / 2:
                aim, patience = _GROW * aim, _PATIENCE
            best, best_prices = value, prices
        if patience == 0:
            aim, patience, prices = _SHRINK * aim, _PATIENCE, best_prices
            direction = np.zeros(shape)
            value = bound(cell, relaxed, buffers._replace(prices=prices))
    return best


def _can_be_interrupted(workload: Workload) -> bool:
    """True if failures may interrupt a job that then goes on from a checkpoint."""
    events = workload.events
    fails = (events["kind"] == FAILURE) & (events["value"] != DRAIN)
    return bool(fails.any() and (workload.jobs["checkpoint"] >= 0).any())


def lower_bound(setting: Setting, workload: Workload) -> LowerBound:
    """Return lower bounds on the mean JCT of the measured jobs under any schedule."""
    relaxed = relax(setting, workload)
    count = len(workload.measured(setting.scenario.measure))
    if len(relaxed.arrival) == 0:
        return LowerBound(0.0, 0.0)
    scale = (1 - _ROUNDING) / count
    free = scale * _raise_prices(with_preemption, *_grid(relaxed, _COARSE, _MOST_COARSE), relaxed)
    if _can_be_interrupted(workload):
        return LowerBound(free, free)
    once = scale * _raise_prices(without_preemption, *_grid(relaxed, _FINE, _MOST_FINE), relaxed)
    return LowerBound(max(once, free), free)
