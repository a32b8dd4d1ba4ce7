"""Feasibility: which jobs fit on which GPUs, nodes and pools.

The simulator and a live cluster use the same functions.
"""

from __future__ import annotations

from typing import NamedTuple

from adlro.compiled import njit, njit_apart, wide
from adlro.model.free_index import (
    ANY_FREE,
    BLOCK,
    free_between,
    in_blocks,
    left_between,
    may_have,
)
from adlro.model.state import START, WHOLE, Floats, Mask, Records, Row
from adlro.model.view import View


@njit
def takes(job: Row, gpu: Row) -> bool:
    """True when a GPU has the free share and free memory that a job needs on each of its GPUs."""
    return gpu.free >= job.share and gpu.free_memory >= job.gpu_memory


@njit
def hosts(job: Row, node: Row) -> bool:
    """True when a node is up and has the free cores and host memory for one GPU of the job."""
    return node.up > 0 and node.free_cores >= job.cores and node.free_memory >= job.memory


@njit
def whole_capacity(job: Row, node: Row) -> int:
    """Number of GPUs that a node can give to a gang now, by free GPUs, cores and host memory."""
    count = min(node.free, job.gpus)
    if count * job.cores > node.free_cores:  # divide only where it binds: division is slow
        count = node.free_cores // job.cores
    if count * job.memory > node.free_memory:
        count = node.free_memory // job.memory
    return count


@njit
def capacity(job: Row, node: Row, gpus: Records) -> int:
    """Number of GPUs that a node can give to a job now; for a slice, 1 if it fits and else 0."""
    if job.share == WHOLE:
        return whole_capacity(job, node)
    if hosts(job, node):
        for g in range(node.first_gpu, node.first_gpu + node.gpus):
            if takes(job, gpus[g]):
                return 1
    return 0


@njit
def anchors(job: Row, gpu: Row, node: Row, gpus: Records) -> bool:
    """True when this GPU can be the first one of a job, provided that the job fits its pool."""
    return takes(job, gpu) and capacity(job, node, gpus) >= least_on_node(job)


@njit
def least_on_node(job: Row) -> int:
    """Smallest number of GPUs that a job can use on a node: all of them if it needs one node."""
    least: int = job.gpus if job.one_node else 1
    return least


@njit
def has_free(pool: Row) -> bool:
    """False when no job can start on the pool now: whole-GPU jobs hold all its GPUs that are up."""
    return pool.free + pool.sliced > 0


@njit
def any_free(pools: Records) -> bool:
    """False when no job can start on any pool now, see `has_free`."""
    open_pools = 0
    for p in range(len(pools)):
        open_pools += has_free(pools[p])
    return open_pools > 0


@njit_apart
def _fits_blocks(job: Row, pool: Row, nodes: Records, gpus: Records) -> bool:
    """As `fits`, for any job; skips blocks of nodes without room by the index (free_index.py)."""
    bits, wanted = wide(ANY_FREE), job.gpus
    if job.share < WHOLE:
        bits |= left_between(job.share, WHOLE - 1)
    elif job.one_node:
        bits = free_between(wanted, wide(pool.node_gpus))
    n, end = pool.first_node, pool.first_node + pool.nodes
    while n < end:
        stop = min(n + BLOCK, end)
        if may_have(n, bits, pool, nodes):
            for k in range(n, stop):
                room = capacity(job, nodes[k], gpus)
                if room >= wanted:
                    return True
                if not job.one_node:
                    wanted -= room
        n = stop
    return False


@njit
def fits(job: Row, pool: Row, nodes: Records, gpus: Records) -> bool:
    """True when the pool can hold the whole job now: on one node if the job needs it."""
    wanted = job.gpus
    if pool.free < wanted and pool.sliced == 0:
        return False
    if in_blocks(pool) or job.share < WHOLE or job.one_node:
        return _fits_blocks(job, pool, nodes, gpus)
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        wanted -= whole_capacity(job, nodes[n])
        if wanted <= 0:
            return True
    return False


@njit
def any_feasible(view: View) -> bool:
    """True when at least one waiting job can start on one of its eligible pools now."""
    jobs, queue, eligible = view.jobs, view.queue, view.eligible
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    for q in range(len(queue)):
        job = jobs[queue[q].job]
        for p in range(len(pools)):
            if eligible[q, p] and fits(job, pools[p], nodes, gpus):
                return True
    return False


@njit
def expected_end(run: Row, now: float) -> float:
    """Expected end of a run, by its estimate.

    For an overdue run it is now + 10 % of the age of the run, at least now + 1 s.
    """
    if run.expected > now:
        return run.expected
    return now + max(0.1 * (now - run.start), 1.0)


@njit
def served(now: float, run: Row, job: Row) -> float:
    """GPU-seconds that a running job has received until now, over all its runs."""
    received: float = run.served + (now - run.start) * (job.gpus * job.share / WHOLE)
    return received


@njit
def smallest_feasible(view: View) -> tuple[int, int]:
    """Queue position and pool of the start with the smallest estimated run time; (-1, -1) if none.

    Only starts that are possible now count: the pool is eligible for the job and has room for it.
    """
    jobs, est, queue, eligible = view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    best, best_q, best_p = float("inf"), -1, -1
    for q in range(len(queue)):
        j = queue[q].job
        job = jobs[j]
        for p in range(len(pools)):
            if eligible[q, p]:
                seconds = est[j, pools[p].model] * queue[q].left
                if seconds < best and fits(job, pools[p], nodes, gpus):
                    best, best_q, best_p = seconds, q, p
    return best_q, best_p


@njit
def start(out: Records, j: int, p: int) -> int:
    """Write the decision to start job j on pool p, on GPUs that the world chooses; returns 1."""
    out[0].kind = START
    out[0].job = j
    out[0].pool = p
    out[0].node = -1
    out[0].gpu = -1
    return 1


@njit
def fastest_feasible(q: int, view: View) -> int:
    """Pool with the smallest estimate for the job at queue position q; -1 if none.

    Only pools where the job can start now count: they are eligible and have room for it.
    """
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    job, seconds, eligible = (
        view.jobs[view.queue[q].job],
        view.est[view.queue[q].job],
        view.eligible[q],
    )
    best, best_p = float("inf"), -1
    for p in range(len(pools)):
        if eligible[p] and seconds[pools[p].model] < best and fits(job, pools[p], nodes, gpus):
            best, best_p = seconds[pools[p].model], p
    return best_p


@njit
def large_enough(job: Row, pool: Row) -> bool:
    """True when a pool has enough GPUs up for a job, free or not, on one node if it needs one."""
    enough: bool = pool.gpus >= job.gpus
    return enough and (not job.one_node or pool.node_gpus >= job.gpus)


@njit
def fastest_up(job: Row, seconds: Floats, allowed: Mask, pools: Records) -> int:
    """Eligible pool with the smallest estimate among those with enough GPUs up; -1 if none.

    The GPUs need not be free. seconds [M]: estimates by GPU model; allowed [P]: eligible pools.
    """
    best, best_p = float("inf"), -1
    for p in range(len(pools)):
        if allowed[p] and large_enough(job, pools[p]) and seconds[pools[p].model] < best:
            best, best_p = seconds[pools[p].model], p
    return best_p


@njit
def width(job: Row) -> float:
    """Number of GPUs that a job holds; a slice counts as its share."""
    return job.gpus * job.share / WHOLE


@njit
def shortest(seconds: Floats, left: float, allowed: Mask, pools: Records) -> float:
    """Estimated seconds that a job still needs on the fastest of its eligible pools.

    At least 1e-9, so that callers can divide by it. seconds [M]: estimates of the whole job by GPU
    model; left: share of its work still to do; allowed [P]: eligible pools.
    """
    best = float("inf")
    for p in range(len(pools)):
        if allowed[p]:
            best = min(best, seconds[pools[p].model] * left)
    return max(best, 1e-9)


class Pick(NamedTuple):
    """The best start found so far in a search for the smallest score: score, job and pool."""

    score: float
    place: int  # position in the queue; -1 = none yet
    pool: int


@njit
def no_pick() -> Pick:
    """Return the pick with which a search begins: no job, and an infinite score."""
    return Pick(float("inf"), wide(-1), wide(-1))


@njit
def better(pick: Pick, score: float, q: int, view: View) -> Pick:
    """Return the pick with the lower score: `pick`, or the start of the job at queue position q.

    The job would start on its fastest pool that has room now; a job that fits nowhere is never
    picked. On ties `pick` stays.
    """
    if score < pick.score:
        p = fastest_feasible(q, view)
        if p >= 0:
            return Pick(score, q, p)
    return pick


@njit
def start_pick(pick: Pick, view: View, out: Records) -> int:
    """Write the start of the picked job; returns the number of decisions written (0 or 1)."""
    if pick.place < 0:
        return 0
    return start(out, view.queue[pick.place].job, pick.pool)


@njit
def first_feasible(q: int, view: View) -> int:
    """Lowest-numbered pool where the job at queue position q can start now; -1 if none."""
    job, eligible = view.jobs[view.queue[q].job], view.eligible[q]
    for p in range(len(view.pools)):
        if eligible[p] and fits(job, view.pools[p], view.nodes, view.gpus):
            return p
    return -1


@njit_apart
def roomiest_node(q: int, view: View) -> int:
    """Node that can give the most GPUs to the job at queue position q now; -1 if none.

    Only nodes of pools where the whole job can start count; ties go to the lower index. A gang that
    no single node can hold starts on this node and continues on others.
    """
    job, eligible, pools, nodes, gpus = (
        view.jobs[view.queue[q].job], view.eligible[q], view.pools, view.nodes, view.gpus
    )  # fmt: skip
    largest, best = wide(0), wide(-1)
    for p in range(len(pools)):
        if eligible[p] and fits(job, pools[p], nodes, gpus):
            for n in range(pools[p].first_node, pools[p].first_node + pools[p].nodes):
                gang = capacity(job, nodes[n], gpus)
                if gang > largest:
                    largest, best = wide(gang), wide(n)
    return best


@njit
def start_on(out: Records, j: int, n: int, g: int, nodes: Records, gpus: Records) -> int:
    """Write the decision to start job j on node n, GPU g (-1: its first free GPU); returns 1."""
    if g < 0:
        g = nodes[n].first_gpu
        while gpus[g].free < WHOLE:
            g += 1
    start(out, j, nodes[n].pool)
    out[0].node = n
    out[0].gpu = g
    return 1
