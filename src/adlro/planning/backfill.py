"""Conservative backfilling by time limits: reservations of whole nodes, as Slurm makes them.

Jobs are planned in a given order. Each gets the earliest start at which enough of its nodes have
room and none of them is reserved for an earlier job before its time limit is over. A running job
ends at its time limit, and one that is past it a second from now. Slurm does not look at every end:
those within 30 s of the first are one step, at the last of them, and each further step is twice as
long (`_will_run_test` of cons_tres). A job that would start now is returned; the nodes of any other
job are reserved, whole, from its start until its limit.

Dimensions as in model/state.py; E releases, K reservations (one for each node of a planned job).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating, wide
from adlro.model.feasibility import capacity, fits, whole_capacity
from adlro.model.state import WHOLE, Floats, Mask, Records, Row
from adlro.model.view import View
from adlro.planning.releases import Indices, Releases, releases_of, time_limit

_FIRST_STEP_S = 30.0


class Limits(NamedTuple):
    """How far a plan goes; the names are Slurm's, times are in seconds."""

    bf_max_job_test: int
    bf_max_job_user: int  # 0 = no limit
    bf_window: float  # no reservation begins later than that from now
    bf_resolution: float  # reservations begin and end at multiples of it


class _Reserved(NamedTuple):
    """Reservations so far, and their indices by begin and by end."""

    node: Indices  # [K]
    begin: Floats  # [K]
    end: Floats  # [K]
    by_begin: Indices  # [K]
    by_end: Indices  # [K]
    known: Indices  # [1] number of them


class _Sweep(NamedTuple):
    """State of the search for one job's start: the cluster at a time, without the job."""

    nodes: Records  # [N] with what is free at that time
    blocks: Indices  # [N] reservations that keep the job from starting there
    rooms: Indices  # [P] GPUs that the job finds on nodes without blocks
    chosen: Indices  # [N] nodes of the planned job


@njit
def _room(job: Row, n: int, sweep: _Sweep) -> int:
    """Number of GPUs that the job finds on node n at the time of the sweep; 0 if it is blocked."""
    if sweep.blocks[n] > 0:
        return 0
    return whole_capacity(job, sweep.nodes[n])


@njit
def _begin_sweep(job: Row, open_pools: Mask, view: View, sweep: _Sweep) -> None:
    """Set the sweep to the present state, without any block. open_pools [P]: where it may run."""
    for p in range(len(view.pools)):
        sweep.rooms[p] = 0
        if open_pools[p]:
            first = view.pools[p].first_node
            for n in range(first, first + view.pools[p].nodes):
                sweep.nodes[n].free = view.nodes[n].free
                sweep.nodes[n].free_cores = view.nodes[n].free_cores
                sweep.nodes[n].free_memory = view.nodes[n].free_memory
                sweep.blocks[n] = 0
                sweep.rooms[p] += _room(job, n, sweep)


@njit
def _change_block(job: Row, n: int, change: int, open_pools: Mask, sweep: _Sweep) -> None:
    """Add a block to node n or remove one."""
    p = sweep.nodes[n].pool
    if open_pools[p]:
        sweep.rooms[p] -= _room(job, n, sweep)
        sweep.blocks[n] += change
        sweep.rooms[p] += _room(job, n, sweep)


@njit
def _release(job: Row, e: int, releases: Releases, open_pools: Mask, sweep: _Sweep) -> None:
    """Return what release e brings to its node."""
    node, n = sweep.nodes[releases.node[e]], releases.node[e]
    if open_pools[node.pool]:
        sweep.rooms[node.pool] -= _room(job, n, sweep)
        node.free += releases.gpus[e]
        node.free_cores += releases.cores[e]
        node.free_memory += releases.memory[e]
        sweep.rooms[node.pool] += _room(job, n, sweep)


@njit
def _choose(job: Row, pool: Row, sweep: _Sweep) -> int:
    """Write the nodes of a gang to sweep.chosen; returns their number, 0 if it cannot be held.

    The first node in order that can hold the whole gang, else nodes in order until it is held,
    unless the gang needs one node.
    """
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        if _room(job, n, sweep) >= job.gpus:
            sweep.chosen[0] = n
            return 1
    if job.one_node:
        return 0
    count, wanted = 0, wide(job.gpus)
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        room = _room(job, n, sweep)
        if room > 0 and wanted > 0:
            sweep.chosen[count] = n
            count += 1
            wanted -= room
    return count


@njit
def _slice_node(job: Row, open_pools: Mask, view: View, sweep: _Sweep) -> int:
    """First node without a block where a slice fits now; -1 if there is none."""
    for p in range(len(view.pools)):
        if open_pools[p]:
            first = view.pools[p].first_node
            for n in range(first, first + view.pools[p].nodes):
                if sweep.blocks[n] == 0 and capacity(job, view.nodes[n], view.gpus) > 0:
                    return n
    return -1


@njit
def _fit(job: Row, open_pools: Mask, at_once: bool, view: View, sweep: _Sweep) -> int:
    """Choose nodes for the job in the lowest-numbered pool that holds it; returns their number.

    at_once: the sweep is at the present, where a slice may also share a GPU with others.
    """
    if at_once and job.share < WHOLE:
        sweep.chosen[0] = _slice_node(job, open_pools, view, sweep)
        return 1 if sweep.chosen[0] >= 0 else 0
    for p in range(len(view.pools)):
        if open_pools[p] and sweep.rooms[p] >= job.gpus:
            count = _choose(job, view.pools[p], sweep)
            if count > 0:
                return count
    return 0


@njit
def _next_step(
    e: int, window: float, releases: Releases, open_pools: Mask, sweep: _Sweep
) -> tuple[float, int]:
    """Find the releases from e on that a step takes together: those within `window` of the first.

    Only releases on nodes of open pools count.

    Returns:
        The time of the last of them, infinity if there is none; and the index after it.
    """
    first, at, last = np.inf, np.inf, wide(len(releases.at))
    for k in range(e, len(releases.at)):
        if open_pools[sweep.nodes[releases.node[k]].pool]:
            if releases.at[k] > first + window:
                break
            if first == np.inf:
                first = releases.at[k]
            at, last = releases.at[k], wide(k + 1)
    return at, last


@njit
def _earliest(
    q: int, until: float, view: View, releases: Releases, reserved: _Reserved, sweep: _Sweep
) -> tuple[float, int]:
    """Find the earliest start of the job at queue position q, and choose its nodes there.

    Returns:
        The start, and the number of chosen nodes; (infinity, 0) if it would be after `until`.
    """
    job, open_pools = view.jobs[view.queue[q].job], view.eligible[q]
    limit, at, count = time_limit(job), view.now, reserved.known[0]
    e, window = wide(0), _FIRST_STEP_S
    b = f = 0  # next begin and end of a reservation
    _begin_sweep(job, open_pools, view, sweep)
    step_at, last = _next_step(e, window, releases, open_pools, sweep)
    while at <= until:
        while step_at <= at:
            while e < last:
                _release(job, e, releases, open_pools, sweep)
                e += 1
            window *= 2.0
            step_at, last = _next_step(e, window, releases, open_pools, sweep)
        while b < count and reserved.begin[reserved.by_begin[b]] - limit < at:
            _change_block(job, reserved.node[reserved.by_begin[b]], wide(1), open_pools, sweep)
            b += 1
        while f < count and reserved.end[reserved.by_end[f]] <= at:
            _change_block(job, reserved.node[reserved.by_end[f]], wide(-1), open_pools, sweep)
            f += 1
        chosen = _fit(job, open_pools, at == view.now, view, sweep)
        if chosen > 0:
            return at, chosen
        at = step_at
        if f < count:
            at = min(at, reserved.end[reserved.by_end[f]])
        if at == np.inf:
            break
    return np.inf, 0


@njit
def _insert(index: Indices, k: int, keys: Floats) -> None:
    """Insert k into the first k entries of `index`, which are sorted by keys."""
    i = k
    while i > 0 and keys[index[i - 1]] > keys[k]:
        index[i] = index[i - 1]
        i -= 1
    index[i] = k


@njit
def _reserve(
    chosen: Indices, begin: float, end: float, limits: Limits, now: float, reserved: _Reserved
) -> None:
    """Reserve the chosen nodes from begin to end, both rounded down to the resolution."""
    step = limits.bf_resolution
    first = max(np.floor(begin / step) * step, now)
    last = max(np.floor(end / step) * step, first + step)
    for n in chosen:
        k = reserved.known[0]
        reserved.node[k], reserved.begin[k], reserved.end[k] = n, first, last
        _insert(reserved.by_begin, k, reserved.begin)
        _insert(reserved.by_end, k, reserved.end)
        reserved.known[0] += 1


@njit
def _fits_now(q: int, view: View) -> bool:
    job = view.jobs[view.queue[q].job]
    for p in range(len(view.pools)):
        if view.eligible[q, p] and fits(job, view.pools[p], view.nodes, view.gpus):
            return True
    return False


@njit
def _tested(order: Indices, limits: Limits, view: View, of_user: Indices, tested: Indices) -> int:
    """Write the queue positions that a cycle plans to `tested`, in order; returns their number.

    The list ends with the last job that fits now: reservations of later ones keep none from
    starting. of_user: scratch for the number of jobs of each user, from the lowest id on.
    """
    count, useful, lowest = 0, 0, wide(2**31)
    for q in range(len(view.queue)):
        lowest = min(lowest, wide(view.jobs[view.queue[q].job].user))
    for q in order:
        if count == limits.bf_max_job_test:
            break
        if limits.bf_max_job_user > 0:
            user = view.jobs[view.queue[q].job].user - lowest
            of_user[user] += 1
            if of_user[user] > limits.bf_max_job_user:
                continue
        tested[count] = q
        count += 1
        if _fits_now(q, view):
            useful = count
    return useful


@njit
def _users(view: View) -> int:
    """Number of user ids from the lowest to the highest of all waiting jobs."""
    lowest, highest = wide(2**31), wide(-(2**31))
    for q in range(len(view.queue)):
        user = wide(view.jobs[view.queue[q].job].user)
        lowest, highest = min(lowest, user), max(highest, user)
    return highest - lowest + 1


@njit
def _most_reserved(tested: Indices, view: View) -> int:
    """Upper bound of the number of reservations: one for each GPU, or node, of a planned job."""
    count = 0
    for q in tested:
        count += min(wide(view.jobs[view.queue[q].job].gpus), wide(len(view.nodes)))
    return count


@njit
def _plan(
    tested: Indices,
    limits: Limits,
    view: View,
    releases: Releases,
    reserved: _Reserved,
    sweep: _Sweep,
) -> tuple[int, int]:
    for q in tested:
        job, until = view.jobs[view.queue[q].job], view.now + limits.bf_window
        at, count = _earliest(q, until, view, releases, reserved, sweep)
        if count > 0 and at == view.now:
            return q, sweep.chosen[0]
        if count > 0:
            end = at + time_limit(job)
            _reserve(sweep.chosen[:count], at, end, limits, view.now, reserved)
    return -1, -1


@njit_allocating
def backfill_start(order: Indices, limits: Limits, view: View) -> tuple[int, int]:
    """Find the first job, in the given order, that delays no reservation if it starts now.

    Args:
        order: [Q] queue positions, the most important job first.
        limits: how far the plan goes.
        view: the state.

    Returns:
        Its position in the queue and the first of its nodes; (-1, -1) if there is none.
    """
    of_user = np.zeros(_users(view) if limits.bf_max_job_user > 0 else 1, np.int64)
    listed = np.empty(len(order), np.int64)
    tested = listed[: _tested(order, limits, view, of_user, listed)]
    if len(tested) == 0:
        return -1, -1
    most, nodes = _most_reserved(tested, view), len(view.nodes)
    reserved = _Reserved(
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.zeros(1, np.int64),
    )
    sweep = _Sweep(
        view.nodes.copy(),
        np.zeros(nodes, np.int64),
        np.zeros(len(view.pools), np.int64),
        np.zeros(nodes, np.int64),
    )
    return _plan(tested, limits, view, releases_of(view), reserved, sweep)
