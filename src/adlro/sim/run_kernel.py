"""Runs, compiled: how far one has come, when it ends, and what is left when it is cut short.

The timeline of a run depends on the time since its start alone: restoring, then working and saving
in turns. Work is counted in seconds at slowness 1. Rules: docs/simulator.md.
"""

from __future__ import annotations

import math

from adlro.compiled import njit, njit_apart, wide
from adlro.model.state import WHOLE, Floats, Records, Row
from adlro.sim.ends_kernel import sift

_NEARLY = 1e-9  # seconds: a boundary so near counts as reached, and so little work as done


@njit
def saves_itself(job: Row) -> bool:
    """True when a job makes checkpoints while it runs."""
    does: bool = job.interval < math.inf and job.checkpoint >= 0
    return does


@njit
def timeline(passed: float, run: Row, job: Row) -> tuple[float, float, float, float]:
    """Where a run stands `passed` seconds after its start.

    Returns:
        Seconds worked so far, saves completed, seconds until work goes on, and seconds of work
        from then on until the next save.
    """
    since = passed - (job.checkpoint if run.saved else 0.0)
    if since < -_NEARLY:
        return 0.0, 0.0, -since, job.interval
    since = max(since, 0.0)
    if not saves_itself(job):
        return since, 0.0, 0.0, math.inf
    cycle = job.interval + job.checkpoint
    saves = math.floor((since + _NEARLY) / cycle)
    in_cycle = max(since - saves * cycle, 0.0)
    if in_cycle < job.interval - _NEARLY:
        return saves * job.interval + in_cycle, saves, 0.0, job.interval - in_cycle
    return (saves + 1) * job.interval, saves, cycle - in_cycle, job.interval


@njit
def end_after(work: float, now: float, run: Row, job: Row) -> float:
    """When a run with so many seconds of work to go ends, its saves included."""
    if not (run.saved or saves_itself(job)) or work == 0.0:
        return now + work
    _, _, pause, until_save = timeline(now - run.start, run, job)
    end = now + pause + work
    if work > until_save:
        end += job.checkpoint * math.ceil((work - until_save) / job.interval - _NEARLY)
    return end


@njit
def span_factor(run: Row, job: Row, pool: Row) -> float:
    """How much longer a gang takes because it stands on several nodes."""
    return 1.0 + job.communication * pool.span_cost if run.nodes > 1 else 1.0


@njit_apart
def slowness(
    slot: int,
    running: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    gpus: Records,
    jobs: Records,
    colocation: Floats,
) -> float:
    """Seconds that one second of a run's work takes now."""
    run = running[slot]
    job, pool = jobs[run.job], pools[run.pool]
    slow: float = span_factor(run, job, pool)
    if job.share < WHOLE:
        neighbours, other = 1.0, gpus[run.gpu].slice
        while other >= 0:
            if other != slot:
                neighbours += colocation[job.type, jobs[running[other].job].type] - 1.0
            other = running[other].after
        slow *= neighbours
    speed, g = wear[run.gpu, 0], run.gpu
    while g >= 0:
        speed = min(speed, wear[g, 0])
        g = gpus[g].next
    slow /= speed * cells[job.type, pool.model]
    return slow


@njit_apart
def settle(slot: int, now: float, running: Records, ends: Records, jobs: Records) -> None:
    """Bring the work of a run up to date."""
    run, end = running[slot], ends[slot]
    job = jobs[run.job]
    before, saves_before, _, _ = timeline(end.since - run.start, run, job)
    worked, saves, _, _ = timeline(now - run.start, run, job)
    if saves > saves_before:
        end.kept = end.todo - (saves * job.interval - before) / end.slowness
    end.todo -= (worked - before) / end.slowness
    if end.todo < _NEARLY:
        end.todo = 0.0
    end.since = now


@njit
def put_end(slot: int, now: float, running: Records, ends: Records, job: Row, result: Row) -> None:
    """Work out when a run ends: after its work, or at its limit."""
    run, end = running[slot], ends[slot]
    end.end = end_after(end.todo * end.slowness, now, run, job)
    latest = run.start + job.limit
    result.killed = end.end > latest
    end.end = min(end.end, latest)


@njit_apart
def change_pace(
    slot: int,
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
    """Let a run go on at the slowness that now holds, and move its end."""
    settle(slot, w.now, running, ends, jobs)
    ends[slot].slowness = slowness(slot, running, wear, cells, pools, gpus, jobs, colocation)
    j = running[slot].job
    put_end(slot, w.now, running, ends, jobs[j], outcome[j])
    sift(wide(ends[slot].place), w.running, running, ends)


@njit_apart
def left_by_estimate(worked: float, now: float, run: Row, seconds: float) -> float:
    """The share of its work that a run cut short has left, as far as anyone can know.

    Args:
        worked: seconds of the run's work that count.
        now: when it is cut short.
        run: the run.
        seconds: the estimate of the whole job on this pool.
    """
    rest = run.left * seconds - worked
    if rest <= 0:
        rest = max(0.1 * (now - run.start), 1.0)
    left: float = min(rest / seconds, run.left)
    return left
