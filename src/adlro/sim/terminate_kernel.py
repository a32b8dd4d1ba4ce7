"""Termination of runs: release of the GPUs, and requeueing of interrupted jobs (compiled)."""

from __future__ import annotations

import math

from adlro.compiled import njit, njit_apart, wide
from adlro.model.feasibility import served
from adlro.model.placement import release, unlink_slice
from adlro.model.state import FAILURE, PREEMPTION, WHOLE, Row
from adlro.model.timeline import left_by_estimate, span_factor, timeline
from adlro.sim.completion_heap_kernel import remove
from adlro.sim.progress_kernel import account_progress, update_slowness
from adlro.sim.queue_kernel import requeue
from adlro.sim.world import World


@njit
def find_run(j: int, world: World) -> int:
    """Index in `running` of the run of job j; -1 if the job does not run."""
    running = world.running
    for slot in range(world.totals[0].running):
        if running[slot].job == j:
            return slot
    return -1


@njit
def free_beside_slices(gpu: Row) -> int:
    """Free thousandths of a GPU that holds slices; 0 if it holds none."""
    return gpu.free if gpu.free < WHOLE else 0


@njit_apart
def read(g: int, world: World) -> None:
    """Write the present telemetry readings of a GPU to its record.

    NaN for a GPU without a job on a node out of service.
    """
    running, jobs, wear, readings = world.running, world.jobs, world.wear, world.readings
    gpu = world.gpus[g]
    node = world.nodes[gpu.node]
    model = world.pools[node.pool].model
    if not node.up and gpu.job < 0 and gpu.slice < 0:
        gpu.utilisation = gpu.bandwidth = gpu.temperature = gpu.power = math.nan
        return
    idle = readings[len(readings) - 1, model]
    gpu.utilisation, gpu.bandwidth = idle.utilisation, idle.bandwidth
    gpu.temperature, gpu.power = idle.temperature + wear[g, 1], idle.power
    j, slot = gpu.job, gpu.slice
    while j >= 0 or slot >= 0:
        job = jobs[j if j >= 0 else running[slot].job]
        added, share = readings[job.type, model], job.share / WHOLE
        gpu.utilisation += share * added.utilisation
        gpu.bandwidth += share * added.bandwidth * wear[g, 0]
        gpu.temperature += share * added.temperature * wear[g, 0]
        gpu.power += share * added.power * wear[g, 0]
        j, slot = -1, running[slot].after if slot >= 0 else -1


@njit_apart
def read_chain(g: int, world: World) -> None:
    """Write the present telemetry readings of GPU g and of all GPUs after it in its gang."""
    while g >= 0:
        read(g, world)
        g = world.gpus[g].next


@njit_apart
def update_slices(g: int, excluded: int, world: World) -> None:
    """Recompute the slowness of all slices on a GPU, except the run at index `excluded`."""
    slot = wide(world.gpus[g].slice)
    while slot >= 0:
        if slot != excluded:
            update_slowness(slot, world)
        slot = world.running[slot].after


@njit_apart
def _log_spans(slot: int, why: int, world: World) -> None:
    """Append a row per GPU of an ending run to the log of spans; if it is full, only count them."""
    totals, run, spans = world.totals[0], world.running[slot], world.spans
    g = run.gpu
    while g >= 0:
        if totals.spans < len(spans):
            row = spans[totals.spans]
            row.start, row.end, row.job, row.gpu = run.start, totals.now, run.job, g
            row.share, row.why = world.jobs[run.job].share, why
        totals.spans += 1
        g = world.gpus[g].next


@njit
def terminate(slot: int, why: int, world: World) -> None:
    """End a run: release its GPUs, remove it from the heap, and update the totals.

    The slowness of the slices that remain on its GPU is recomputed. why: FINISH, FAILURE or
    PREEMPTION.
    """
    totals, gpus, run = world.totals[0], world.gpus, world.running[slot]
    g, first, job = run.gpu, wide(run.gpu), world.jobs[run.job]
    sliced, share, gang = job.share < WHOLE, job.share, job.gpus
    length = totals.now - run.start
    if sliced:
        length *= share / WHOLE
        totals.stranded -= free_beside_slices(gpus[first])
    while g >= 0:
        gpus[g].busy += length
        g = gpus[g].next
    if len(world.spans) > 0:
        _log_spans(slot, why, world)
    pool = world.pools[run.pool]
    draining = pool.draining
    release(run, world.jobs, world.pools, world.nodes, gpus)
    totals.up_gpus -= draining - pool.draining
    if not sliced:
        totals.busy_gpus -= gang
    else:
        totals.busy_slices -= share
        unlink_slice(slot, world.running, gpus)
        totals.stranded += free_beside_slices(gpus[first])
    remove(slot, world)
    if sliced:
        update_slices(first, wide(-1), world)
    if len(world.readings) > 0:
        read_chain(first, world)


@njit_apart
def interrupt(slot: int, failed: int, world: World) -> None:
    """End a run before its job is complete, and put the job back into the queue.

    failed: 1 = a failure, which loses the work since the last checkpoint; 0 = a preemption or
    planned failure, before which the job writes a checkpoint. A job without checkpoints loses all
    its work.
    """
    account_progress(slot, world)
    now, run, end = world.totals[0].now, world.running[slot], world.ends[slot]
    j, restarts, received = run.job, run.restarts + 1, served(now, run, world.jobs[run.job])
    job, pool = world.jobs[j], world.pools[run.pool]
    work = world.seconds[j, pool.model]
    estimated = world.est[j, pool.model] * span_factor(run, job, pool)
    worked, saves, _, _ = timeline(now - run.start, run, job)
    todo, left, saved = end.todo, run.left, 1
    if job.checkpoint < 0:
        todo, left, saved = work, 1.0, 0
    elif failed:
        todo, worked = end.kept, saves * job.interval if saves > 0 else 0.0
        saved = 1 if saves > 0 else run.saved
    if saved and worked > 0:
        left = left_by_estimate(worked, now, run, estimated)
    world.outcome[j].lost += todo - end.todo
    terminate(slot, FAILURE if failed else PREEMPTION, world)
    q = requeue(j, world)
    waiting = world.queue[q]
    waiting.restarts, waiting.left, waiting.saved, waiting.served = restarts, left, saved, received
    world.undone[q] = todo / work if work > 0 else 1.0
