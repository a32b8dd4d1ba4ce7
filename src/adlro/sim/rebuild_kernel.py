"""A world rebuilt from a view, compiled: what a policy does not see is filled in by estimates."""

from __future__ import annotations

from adlro.compiled import njit
from adlro.model.feasibility import expected_end
from adlro.model.state import WHOLE
from adlro.model.timeline import span_factor, timeline
from adlro.sim.completion_heap_kernel import place_in_heap, sift
from adlro.sim.terminate_kernel import stranded
from adlro.sim.world import World


@njit
def fill_in(world: World) -> None:
    """Fill in what a policy does not see, as far as it can know: all ends as by the estimate.

    A job that is overdue is expected anew, and so ends then in every copy.
    """
    w, running, ends, gpus = world.totals[0], world.running, world.ends, world.gpus
    w.busy_gpus = w.busy_slices = w.stranded = w.up_gpus = 0
    for p in range(len(world.pools)):
        w.up_gpus += world.pools[p].gpus
    for g in range(len(gpus)):
        if gpus[g].slice >= 0:
            w.stranded += stranded(gpus[g])
    for r in range(w.running):
        run, end = running[r], ends[r]
        job = world.jobs[run.job]
        if job.share == WHOLE:
            w.busy_gpus += job.gpus
        else:
            w.busy_slices += job.share
        run.expected = min(expected_end(run, w.now), run.start + job.limit)
        end.end, end.since = run.expected, w.now
        end.slowness = span_factor(run, job, world.pools[run.pool])
        until, _, _, _ = timeline(run.expected - run.start, run, job)
        before, _, _, _ = timeline(w.now - run.start, run, job)
        end.todo = end.kept = (until - before) / end.slowness
        place_in_heap(r, r, ends)
        sift(r, r + 1, world)
    for q in range(w.waiting):
        world.undone[q] = world.queue[q].left
