"""Progress of runs: their slowness, the work done, and the time of their end (compiled).

Work is counted in seconds at slowness 1; model/timeline.py converts it to time.
"""

from __future__ import annotations

from adlro.compiled import njit, njit_apart, wide
from adlro.model.state import WHOLE
from adlro.model.timeline import TOLERANCE_S, end_after, span_factor, timeline
from adlro.sim.completion_heap_kernel import sift
from adlro.sim.world import World


@njit_apart
def slowness(slot: int, world: World) -> float:
    """Slowness of a run: seconds that one second of its work takes now."""
    running, gpus, jobs, wear = world.running, world.gpus, world.jobs, world.wear
    run = running[slot]
    job, pool = jobs[run.job], world.pools[run.pool]
    slow: float = span_factor(run, job, pool)
    if job.share < WHOLE:
        neighbours, other = 1.0, gpus[run.gpu].slice
        while other >= 0:
            if other != slot:
                neighbours += world.colocation[job.type, jobs[running[other].job].type] - 1.0
            other = running[other].after
        slow *= neighbours
    speed, g = wear[run.gpu, 0], run.gpu
    while g >= 0:
        speed = min(speed, wear[g, 0])
        g = gpus[g].next
    slow /= speed * world.cells[job.type, pool.model]
    return slow


@njit_apart
def account_progress(slot: int, world: World) -> None:
    """Update how much work a run has left at the present time.

    Writes ENDS.todo, the work left now, and ENDS.kept, the work left after the last checkpoint.
    """
    now, run, end = world.totals[0].now, world.running[slot], world.ends[slot]
    job = world.jobs[run.job]
    before, saves_before, _, _ = timeline(end.since - run.start, run, job)
    worked, saves, _, _ = timeline(now - run.start, run, job)
    if saves > saves_before:
        end.kept = end.todo - (saves * job.interval - before) / end.slowness
    end.todo -= (worked - before) / end.slowness
    if end.todo < TOLERANCE_S:
        end.todo = 0.0
    end.since = now


@njit
def set_end(slot: int, world: World) -> None:
    """Set the end of a run: when its work is done, or at its limit if that is earlier.

    OUTCOME.killed is set in the second case.
    """
    run, end = world.running[slot], world.ends[slot]
    job = world.jobs[run.job]
    end.end = end_after(end.todo * end.slowness, world.totals[0].now, run, job)
    latest = run.start + job.limit
    world.outcome[run.job].killed = end.end > latest
    end.end = min(end.end, latest)


@njit_apart
def update_slowness(slot: int, world: World) -> None:
    """Recompute the slowness of a run, and move its end in the heap accordingly."""
    account_progress(slot, world)
    world.ends[slot].slowness = slowness(slot, world)
    set_end(slot, world)
    sift(wide(world.ends[slot].place), world.totals[0].running, world)
