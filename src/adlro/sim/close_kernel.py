"""The end of a run, compiled: its GPUs are given back; a job that is not done waits again."""

from __future__ import annotations

import math

from adlro.compiled import njit, njit_apart, wide
from adlro.model.place import leave, release
from adlro.model.room import served
from adlro.model.state import FAILURE, PREEMPTION, WHOLE, Floats, Mask, Records, Row
from adlro.sim.ends_kernel import remove
from adlro.sim.queue_kernel import requeue
from adlro.sim.run_kernel import (
    change_pace,
    left_by_estimate,
    settle,
    span_factor,
    timeline,
)


@njit
def find_run(j: int, w: Row, running: Records) -> int:
    """Place of a job among the running ones, or -1."""
    for slot in range(w.running):
        if running[slot].job == j:
            return slot
    return -1


@njit
def stranded(gpu: Row) -> int:
    """Thousandths left on a GPU that holds slices."""
    return gpu.free if gpu.free < WHOLE else 0


@njit_apart
def read(
    g: int,
    running: Records,
    wear: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    readings: Records,
) -> None:
    """Write what the sensors of a GPU show now; nothing (NaN) while its node is down."""
    gpu = gpus[g]
    node = nodes[gpu.node]
    model = pools[node.pool].model
    if not node.up:
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
def read_chain(
    g: int,
    running: Records,
    wear: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    readings: Records,
) -> None:
    """Write what the sensors of a GPU and of all that follow it in its gang show now."""
    while g >= 0:
        read(g, running, wear, pools, nodes, gpus, jobs, readings)
        g = gpus[g].next


@njit_apart
def pace_slices(
    g: int,
    but: int,
    w: Row,
    running: Records,
    ends: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    gpus: Records,
    jobs: Records,
    colocation: Floats,
    outcome: Records,
) -> None:
    """Let the slices on a GPU, all but one, go on at the slowness that now holds."""
    slot = wide(gpus[g].slice)
    while slot >= 0:
        if slot != but:
            change_pace(slot, w, running, ends, wear, cells, pools, gpus, jobs, colocation, outcome)
        slot = running[slot].after


@njit_apart
def _log(run: Row, job: Row, why: int, w: Row, gpus: Records, spans: Records) -> None:
    """Write a run that ends into the log of spans; what has no room is only counted."""
    g = run.gpu
    while g >= 0:
        if w.spans < len(spans):
            row = spans[w.spans]
            row.start, row.end = run.start, w.now
            row.job, row.gpu, row.share, row.why = run.job, g, job.share, why
        w.spans += 1
        g = gpus[g].next


@njit
def close(
    slot: int,
    why: int,
    w: Row,
    running: Records,
    ends: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    colocation: Floats,
    readings: Records,
    outcome: Records,
    spans: Records,
) -> None:
    """End a run: books, GPUs, heap, neighbours."""
    run = running[slot]
    j, g, first = run.job, run.gpu, wide(run.gpu)
    job = jobs[j]
    sliced = job.share < WHOLE
    length = w.now - run.start
    if sliced:
        length *= job.share / WHOLE
        w.stranded -= stranded(gpus[first])
    while g >= 0:
        gpus[g].busy += length
        g = gpus[g].next
    if len(spans) > 0:
        _log(run, job, why, w, gpus, spans)
    release(run, jobs, pools, nodes, gpus)
    if not sliced:
        w.busy_gpus -= job.gpus
    else:
        w.busy_slices -= job.share
        leave(slot, running, gpus)
        w.stranded += stranded(gpus[first])
    remove(slot, w, running, ends, gpus, jobs)
    if sliced:
        pace_slices(
            first, wide(-1), w, running, ends, wear, cells, pools, gpus, jobs, colocation, outcome
        )
    if len(readings) > 0:
        read_chain(first, running, wear, pools, nodes, gpus, jobs, readings)


@njit_apart
def cut_short(
    slot: int,
    failed: int,
    w: Row,
    queue: Records,
    eligible: Mask,
    undone: Floats,
    running: Records,
    ends: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    est: Floats,
    allowed: Mask,
    seconds: Floats,
    colocation: Floats,
    readings: Records,
    outcome: Records,
    spans: Records,
) -> None:
    """End a run before its job is done (lost to a failure, or preempted): the job waits again."""
    settle(slot, w.now, running, ends, jobs)
    run, end = running[slot], ends[slot]
    j, restarts, had = run.job, run.restarts + 1, served(w.now, run, jobs[run.job])
    job, pool = jobs[j], pools[run.pool]
    work, seen = seconds[j, pool.model], est[j, pool.model] * span_factor(run, job, pool)
    worked, saves, _, _ = timeline(w.now - run.start, run, job)
    todo, left, saved = end.todo, run.left, 1
    if job.checkpoint < 0:
        todo, left, saved = work, 1.0, 0
    elif failed:
        todo, worked = end.kept, saves * job.interval if saves > 0 else 0.0
        saved = 1 if saves > 0 else run.saved
    if saved and worked > 0:
        left = left_by_estimate(worked, w.now, run, seen)
    outcome[j].lost += todo - end.todo
    close(
        slot, FAILURE if failed else PREEMPTION, w, running, ends, wear, cells, pools, nodes, gpus,
        jobs, colocation, readings, outcome, spans,
    )  # fmt: skip
    q = requeue(j, w, queue, eligible, undone, allowed)
    queue[q].restarts, queue[q].left, queue[q].saved = restarts, left, saved
    queue[q].served = had
    undone[q] = todo / work if work > 0 else 1.0
