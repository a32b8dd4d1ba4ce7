"""The timeline of a run: how far it has come, when it ends, what is left when it is cut short.

It depends on the time since the start of the run alone: restoring, then working and saving in
turns. Work is counted in seconds at slowness 1. Rules: docs/simulator.md.
"""

from __future__ import annotations

import math

from adlro.compiled import njit, njit_apart
from adlro.model.state import Row

NEARLY = 1e-9  # seconds: a boundary so near counts as reached, and so little work as done


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
    if since < -NEARLY:
        return 0.0, 0.0, -since, job.interval
    since = max(since, 0.0)
    if not saves_itself(job):
        return since, 0.0, 0.0, math.inf
    cycle = job.interval + job.checkpoint
    saves = math.floor((since + NEARLY) / cycle)
    in_cycle = max(since - saves * cycle, 0.0)
    if in_cycle < job.interval - NEARLY:
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
        end += job.checkpoint * math.ceil((work - until_save) / job.interval - NEARLY)
    return end


@njit
def span_factor(run: Row, job: Row, pool: Row) -> float:
    """How much longer a gang takes because it stands on several nodes."""
    return 1.0 + job.communication * pool.span_cost if run.nodes > 1 else 1.0


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
