"""EASY backfilling: jobs may overtake the oldest job if they do not delay its expected start.

The oldest job has a reservation on the pool where it would end first. A younger job may start now
if it uses another pool, ends before the reserved time, or leaves enough GPUs for the reservation;
it starts on the fastest such pool. If the oldest job needs one node, its reservation is the node
that is expected to have enough GPUs first; a younger job that ends later must fit on one other
node, or leave the gang enough GPUs on that node. Lifka 1995 (JSSPP); Mu'alem and Feitelson 2001
(IEEE TPDS).
"""

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.model.feasibility import (
    any_free,
    capacity,
    fastest_feasible,
    fits,
    has_free,
    start,
)
from adlro.planning.min_min import (
    fill_free_times,
    fill_one_node_times,
    free_until,
    frees_at,
    needs_one_node,
    ready_time,
)


class Reservation(NamedTuple):
    """GPUs that are kept for the oldest job."""

    pool: int  # -1 = no pool can ever hold the job
    at: float  # when it is expected to start
    spare: int  # GPUs of the pool (or node) that are free then beyond those of the job
    node: int  # of a gang that needs one node; -1 = any


def memory(context):
    """Length of the memory: scratch for the times when GPUs become free; nothing is stored."""
    return 2 * len(context.gpus) + len(context.pools)


@njit
def _reservation(view, times, one_node):
    """Return pool and time of the oldest job's reservation; pool -1 = no pool can ever hold it.

    times [G]: when the GPUs become free, sorted within each pool; one_node [G]: from
    `fill_one_node_times`.
    """
    est, eligible, pools = view.est, view.eligible, view.pools
    head, left = view.queue[0].job, view.queue[0].left
    job = view.jobs[head]
    best, pool, at = np.inf, -1, np.inf
    for p in range(len(pools)):
        if eligible[0, p] and pools[p].gpus >= job.gpus:
            ready = ready_time(job, pools[p], view, times, one_node)
            end = ready + est[head, pools[p].model] * left
            if end < best:
                best, pool, at = end, p, ready
    return pool, at


@njit_apart
def _reserved_node(p, at, view):
    """Return the node of pool p with most GPUs free at time `at`, by its runs, and their number.

    Ties go to the lower index.
    """
    nodes, gpus, running, pool = view.nodes, view.gpus, view.running, view.pools[p]
    best, best_n = wide(-1), wide(-1)
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        free = wide(nodes[n].free)
        for r in range(len(running)):
            is_over = frees_at(r, view.now, view.jobs, running) <= at
            if running[r].pool == p and nodes[n].up and is_over:
                g = wide(running[r].gpu)
                while g >= 0:
                    free += gpus[g].node == n
                    g = gpus[g].next
        if free > best:
            best, best_n = free, wide(n)
    return best_n, best


@njit_apart
def _node_beside(job, hold, view):
    """Return the fullest node that holds a job beside the reservation of a node; -1 = none."""
    pool, nodes, gpus, best = view.pools[hold.pool], view.nodes, view.gpus, wide(-1)
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        is_beside = n != hold.node or job.gpus <= hold.spare
        holds = is_beside and capacity(job, nodes[n], gpus) >= job.gpus
        if holds and (best < 0 or nodes[n].free < nodes[best].free):
            best = wide(n)
    return best


@njit
def _is_harmless(job, p, length, hold, view):
    """True when a younger job can start on pool p now without delaying the reservation `hold`."""
    if p == hold.pool and view.now + length > hold.at:
        if hold.node >= 0:
            return _node_beside(job, hold, view) >= 0
        if job.gpus > hold.spare:
            return False
    return fits(job, view.pools[p], view.nodes, view.gpus)


@njit
def _backfill(hold, view, out):
    """Start the first younger job that does not delay the reservation; return 1, or 0 if none."""
    jobs, est, queue, eligible, pools = view.jobs, view.est, view.queue, view.eligible, view.pools
    for q in range(1, len(queue)):
        j = queue[q].job
        best, best_p = np.inf, -1
        for p in range(len(pools)):
            if eligible[q, p] and has_free(pools[p]):
                length = est[j, pools[p].model] * queue[q].left
                if length < best and _is_harmless(jobs[j], p, length, hold, view):
                    best, best_p = length, p
        if best_p >= 0:
            start(out, j, best_p)
            if best_p == hold.pool and hold.node >= 0 and view.now + best > hold.at:
                out[0].node = _node_beside(jobs[j], hold, view)
            return 1
    return 0


@njit
def decide(view, params, memory, out):
    """Start the oldest job if it fits, else the first younger job that does not delay it."""
    queue, gpus = view.queue, len(view.gpus)
    if len(queue) == 0 or not any_free(view.pools):
        return 0
    p = fastest_feasible(wide(0), view)
    if p >= 0:
        return start(out, queue[0].job, p)
    times, one_node, counts = memory[:gpus], memory[gpus : 2 * gpus], memory[2 * gpus :]
    head = view.jobs[queue[0].job]
    fill_free_times(wide(head.gpus), view, counts, times)
    if needs_one_node(head):
        fill_one_node_times(view, one_node)
    pool, at = _reservation(view, times, one_node)
    spare, node = wide(0), wide(-1)
    if pool >= 0:
        spare = free_until(pool, at, view) - wide(head.gpus)
        if needs_one_node(head):
            node, free = _reserved_node(pool, at, view)
            spare = free - wide(head.gpus)
    return _backfill(Reservation(pool, at, spare, node), view, out)
