"""Stock Slurm: multifactor order, blocked partitions, backfill by time limits, nodes in order.

It knows what a Slurm controller knows: time limits, never estimates, and nothing of speeds. Its
settings are the table [slurm] of the scenario, or those of a cluster (`--slurm-config`); source:
slurm.schedmd.com (priority_multifactor, sched_config, slurm.conf), and Slurm's job_scheduler.c and
backfill.c.

*Order*: the highest PriorityTier of the job's partitions first, then the largest integer part of
  weight_age * min(1, age / max_age_s) + weight_fairshare * 2^(-usage / share)
  + weight_job_size * n / N (favor_small: 1 - n / N) + weight_partition * its highest factor
  + weight_qos * JOB.priority + weight_tres * its share of the GPUs, cores and memory of its pools,
then the older job. n are its GPUs, N all GPUs. Usage and share are those of policy multifactor:
running jobs only, equal shares, instead of Slurm's decayed usage in a tree of accounts.

*Main scheduler*, after every event: jobs in this order, at most default_queue_depth (all of them
every sched_interval_s). A job starts if it fits. Otherwise no later job may start in its
partitions, nor on any node of them. A job that may run nowhere now (by a quota) blocks nobody.

*Backfill*, at multiples of bf_interval_s after an event (planning/backfill.py): up to
bf_max_job_test jobs in this order, at most bf_max_job_user of a user. Each reserves whole nodes
from the earliest time when they have room, by the time limits of running and earlier jobs, rounded
down to bf_resolution_s and at most bf_window_min from now. A job that can start now on nodes that
are not reserved before its time limit is over starts.

*Nodes*: the first pool, and in it the first node that holds all GPUs of the job, else the first
node with room; the world chooses the other nodes of such a gang, which may delay a reservation.

Ignored: bf_continue, bf_yield_*, bf_max_time, max_rpc_cnt (a cycle takes no simulated time);
bf_max_job_start, _part, _assoc, bf_min_age_reserve, bf_min_prio_reserve, bf_job_part_count_reserve
and partition_job_depth (off by default); preemption, licences, advance reservations and limits of
associations (a history does not tell them).
"""

import numpy as np

from adlro.compiled import njit, njit_allocating, wide
from adlro.model.feasibility import any_feasible, capacity, fits, start, width
from adlro.model.state import PARTITION_BITS, WAKE
from adlro.planning.backfill import Limits, backfill_start
from adlro.planning.fair_share import usage_by_user

(
    _AGE,
    _FAIR,
    _SIZE,
    _PARTITION,
    _QOS,
    _GPU,
    _CPU,
    _MEM,
    _MAX_AGE,
    _FAVOR_SMALL,
    _IS_SORTED,
    _BACKFILL,
    _DEPTH,
    _INTERVAL,
    _BF_INTERVAL,
    _RESOLUTION,
    _WINDOW,
    _MAX_TEST,
    _MAX_USER,
    _TABLES,
) = range(20)  # params; from _TABLES on the factors and the tiers of the partitions, by their bits
_PASS, _CYCLE = 1, 2  # memory: when all jobs are looked at, and when backfill runs; 0 = not planned
_CHANGES = 3  # memory: arrivals and ends up to the last call
_TIER = 2.0**32  # larger than any priority


def params(context):
    """The table [slurm] as numbers, then factor and tier of each partition, by its bit."""
    slurm, tres = context.slurm, context.slurm.weight_tres
    weights = [slurm.weight_age, slurm.weight_fairshare, slurm.weight_job_size]
    weights += [slurm.weight_partition, slurm.weight_qos, tres.gpu, tres.cpu, tres.mem]
    if slurm.priority_type == "basic":
        weights = [0.0] * len(weights)
    factors, tiers = [0.0] * PARTITION_BITS, [0.0] * PARTITION_BITS
    for number, name in enumerate(context.partitions):
        bit = min(number, PARTITION_BITS - 1)
        factors[bit] = max(factors[bit], slurm.partition_factors.get(name, 1.0))
        tiers[bit] = max(tiers[bit], slurm.partition_tiers.get(name, 1))
    is_sorted = not any(weights) and len(set(tiers[: len(context.partitions)])) == 1
    numbers = [*weights, slurm.max_age_s, slurm.favor_small, is_sorted]
    numbers += [slurm.scheduler == "backfill", slurm.default_queue_depth, slurm.sched_interval_s]
    numbers += [slurm.bf_interval_s, slurm.bf_resolution_s, slurm.bf_window_min * 60]
    numbers += [slurm.bf_max_job_test, slurm.bf_max_job_user]
    return np.array([*numbers, *factors, *tiers], np.float64)


def memory(context):
    """Length: the run's seed (unused), next look at all jobs, next backfill cycle, changes."""
    return 4


@njit
def _of_partitions(job, table):
    """Return the largest entry of a table by bits over the partitions of a job, or 0."""
    highest = 0.0
    for bit in range(PARTITION_BITS):
        if (wide(job.partitions) >> bit) & 1:
            highest = max(highest, table[bit])
    return highest


@njit
def _tres(q, params, view):
    """Return the weighted shares that waiting job q asks for of the GPUs, cores and memory.

    They are those of all pools where it may run, up or down.
    """
    gpus = cores = memory = 0.0
    for p in range(len(view.pools)):
        if view.eligible[q, p]:
            pool, node = view.pools[p], view.nodes[view.pools[p].first_node]
            gpus += pool.size
            cores += float(pool.nodes) * node.cores
            memory += float(pool.nodes) * node.memory
    job, total = view.jobs[view.queue[q].job], 0.0
    if gpus > 0.0:
        total += params[_GPU] * (width(job) / gpus)
        total += params[_CPU] * (job.gpus * job.cores / cores)
        total += params[_MEM] * (float(job.gpus) * job.memory / memory)
    return total


@njit
def _fill_keys(lowest, users, held, params, view, keys):
    """Write the negative rank of each waiting job to keys [Q]: the smallest is the first.

    lowest, users and held are the three results of `usage_by_user`.
    """
    all_held, split = 0.0, _TABLES + PARTITION_BITS
    factors, tiers = params[_TABLES:split], params[split:]
    for seconds in held:
        all_held += seconds
    for q in range(len(view.queue)):
        job = view.jobs[view.queue[q].job]
        age = min(1.0, (view.now - job.arrival) / params[_MAX_AGE])
        usage = held[job.user - lowest] / all_held if all_held > 0.0 else 0.0
        size = width(job) / len(view.gpus)
        if params[_FAVOR_SMALL] > 0.0:
            size = 1.0 - size
        rank = params[_AGE] * age + params[_FAIR] * 2.0 ** (-usage * users) + params[_SIZE] * size
        rank += params[_PARTITION] * _of_partitions(job, factors)
        rank += params[_QOS] * job.priority + _tres(q, params, view)
        rank = min(np.floor(rank), _TIER - 1.0)
        keys[q] = -(_TIER * _of_partitions(job, tiers) + rank)


@njit_allocating
def _order(view, params):
    """Return the queue positions [Q] in the order of Slurm's priorities."""
    if params[_IS_SORTED] > 0.0:
        return np.arange(len(view.queue))
    lowest, users, held = usage_by_user(view.now, view.jobs, view.queue, view.running)
    keys = np.empty(len(view.queue))
    _fill_keys(lowest, users, held, params, view, keys)
    return np.argsort(keys, kind="mergesort")


@njit
def _first_in_line(order, count, view):
    """Return queue position and pool of the first job that the main scheduler starts, or (-1, -1).

    It looks at the first `count` jobs of `order`.
    """
    blocked = wide(0)  # partitions, as bits
    for k in range(count):
        q, may_run = order[k], False
        job = view.jobs[view.queue[q].job]
        for p in range(len(view.pools)):
            if view.eligible[q, p]:
                may_run = True
                is_open = wide(view.pools[p].partitions) & blocked == 0
                if is_open and fits(job, view.pools[p], view.nodes, view.gpus):
                    return q, wide(p)
        if may_run:
            blocked |= wide(job.partitions)
    return wide(-1), wide(-1)


@njit
def _first_node(job, pool, view):
    """Return the first node of a pool that can hold the whole job now, else the first with room."""
    first = wide(-1)
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        room = capacity(job, view.nodes[n], view.gpus)
        if room >= job.gpus:
            return wide(n)
        if room > 0 and first < 0:
            first = wide(n)
    return first


@njit
def _start(q, n, view, out):
    """Write the start of waiting job q with node n as its first; returns 1."""
    start(out, view.queue[q].job, view.nodes[n].pool)
    out[0].node = n
    return 1


@njit
def _next_multiple(now, step):
    """Return the next multiple of `step` after now."""
    at = (np.floor(now / step) + 1.0) * step
    return at if at > now else at + step


@njit
def _changes(view):
    """Return the number of arrivals and ends so far; a start does not change it."""
    return float(2 * view.arrived - len(view.queue) - len(view.running))


@njit
def _plan_calls(has_event, params, view, memory, out):
    """Plan the next look at all jobs and the next backfill cycle; returns the number of decisions.

    Neither is planned before an event changes something, nor if no job fits anywhere.
    """
    is_long = len(view.queue) > params[_DEPTH] and memory[_PASS] == 0.0
    can_fill = params[_BACKFILL] > 0.0 and params[_BF_INTERVAL] > 0.0 and memory[_CYCLE] == 0.0
    if has_event and (is_long or can_fill) and any_feasible(view):
        if is_long:
            memory[_PASS] = _next_multiple(view.now, params[_INTERVAL])
        if can_fill:
            memory[_CYCLE] = _next_multiple(view.now, params[_BF_INTERVAL])
    at = np.inf
    for due in memory[1:3]:
        if due > view.now:
            at = min(at, due)
    if at == np.inf:
        return 0
    out[0].kind, out[0].at = WAKE, at
    return 1


@njit
def _limits(params):
    return Limits(
        wide(params[_MAX_TEST]), wide(params[_MAX_USER]), params[_WINDOW], params[_RESOLUTION]
    )


@njit
def _schedule(order, params, view, memory, out):
    """Write the next start of the main scheduler, else of backfill, else the time of the next call.

    Returns the number of decisions.
    """
    is_pass = 0.0 < memory[_PASS] <= view.now
    is_cycle = 0.0 < memory[_CYCLE] <= view.now
    count = len(order) if is_pass else min(len(order), int(params[_DEPTH]))
    q, p = _first_in_line(order, count, view)
    if q >= 0:
        job = view.jobs[view.queue[q].job]
        return _start(q, _first_node(job, view.pools[p], view), view, out)
    if params[_BACKFILL] > 0.0 and (is_cycle or params[_BF_INTERVAL] == 0.0):
        q, n = backfill_start(order, _limits(params), view)
        if q >= 0:
            return _start(q, n, view, out)
    has_event = not (is_pass or is_cycle) or memory[_CHANGES] != _changes(view)
    memory[_CHANGES] = _changes(view)
    planned = _plan_calls(has_event, params, view, memory, out)
    if is_pass:
        memory[_PASS] = 0.0
    if is_cycle:
        memory[_CYCLE] = 0.0
    return planned


@njit_allocating
def _answer(view, params, memory, out):
    return _schedule(_order(view, params), params, view, memory, out)


@njit
def decide(view, params, memory, out):
    """Start the next job of the main scheduler, else the next one of a backfill cycle."""
    if len(view.queue) == 0:
        memory[_PASS] = memory[_CYCLE] = 0.0  # what was planned, or under way, was for these jobs
        return 0
    return _answer(view, params, memory, out)
