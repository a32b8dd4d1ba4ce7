"""The timeline of a run: its progress, its end, and the work left when it is interrupted.

The timeline depends only on the time since the start of the run: the start delay, restoring, then
working and saving in turns. Work is counted in seconds at slowness 1. Rules: docs/simulator.md.
"""

from __future__ import annotations

import math

from adlro.compiled import njit, njit_apart
from adlro.model.state import Row

TOLERANCE_S = 1e-9  # a boundary this near counts as reached, and this little work as done


@njit
def saves_itself(job: Row) -> bool:
    """True when a job writes checkpoints by itself while it runs."""
    does: bool = job.interval < math.inf and job.checkpoint >= 0
    return does


@njit
def timeline(passed: float, run: Row, job: Row) -> tuple[float, float, float, float]:
    """Compute the progress of a run `passed` seconds after its start.

    Returns:
        Seconds worked so far, number of completed saves, seconds until work continues, and seconds
        of work from then on until the next save.
    """
    since = passed - job.start_delay - (job.checkpoint if run.saved else 0.0)
    if since < -TOLERANCE_S:
        return 0.0, 0.0, -since, job.interval if saves_itself(job) else math.inf
    since = max(since, 0.0)
    if not saves_itself(job):
        return since, 0.0, 0.0, math.inf
    cycle = job.interval + job.checkpoint
    saves = math.floor((since + TOLERANCE_S) / cycle)
    in_cycle = max(since - saves * cycle, 0.0)
    if in_cycle < job.interval - TOLERANCE_S:
        return saves * job.interval + in_cycle, saves, 0.0, job.interval - in_cycle
    return (saves + 1) * job.interval, saves, cycle - in_cycle, job.interval


@njit
def end_after(work: float, now: float, run: Row, job: Row) -> float:
    """Time when a run ends if it has `work` seconds of work left at `now`; includes its saves."""
    if not (run.saved or saves_itself(job) or job.start_delay > 0.0) or work == 0.0:
        return now + work
    _, _, pause, until_save = timeline(now - run.start, run, job)
    end = now + pause + work
    if work > until_save:
        end += job.checkpoint * math.ceil((work - until_save) / job.interval - TOLERANCE_S)
    return end


@njit
def span_factor(run: Row, job: Row, pool: Row) -> float:
    """Factor on the run time of a gang that spans several nodes; 1 on a single node."""
    return 1.0 + job.communication * pool.span_cost if run.nodes > 1 else 1.0


@njit_apart
def left_by_estimate(worked: float, now: float, run: Row, seconds: float) -> float:
    """Estimated share of a job's whole work that is left after its run is interrupted.

    If the estimated time is already used up, 10 % of the age of the run, at least 1 s, is left.

    Args:
        worked: seconds of work of this run that are not lost.
        now: time of the interruption.
        run: the interrupted run.
        seconds: estimated run time of the whole job on this pool.
    """
    rest = run.left * seconds - worked
    if rest <= 0:
        rest = max(0.1 * (now - run.start), 1.0)
    left: float = min(rest / seconds, run.left)
    return left
