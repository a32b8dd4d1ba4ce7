"""Estimates of the hidden quantities of a world that is rebuilt from a view (compiled)."""

from __future__ import annotations

from adlro.compiled import njit
from adlro.model.feasibility import expected_end
from adlro.model.state import WHOLE
from adlro.model.timeline import span_factor, timeline
from adlro.sim.completion_heap_kernel import place_in_heap, sift
from adlro.sim.terminate_kernel import free_beside_slices
from adlro.sim.world import World


@njit
def fill_from_estimates(world: World) -> None:
    """Fill in the quantities that a policy does not see, as if all estimates were true.

    An overdue run gets a new expected end, and ends at that time in every rollout.
    """
    totals, running, ends, gpus = world.totals[0], world.running, world.ends, world.gpus
    totals.busy_gpus = totals.busy_slices = totals.stranded = totals.up_gpus = 0
    for p in range(len(world.pools)):
        totals.up_gpus += world.pools[p].gpus + world.pools[p].draining
    for g in range(len(gpus)):
        if gpus[g].slice >= 0:
            totals.stranded += free_beside_slices(gpus[g])
    for r in range(totals.running):
        run, end = running[r], ends[r]
        job = world.jobs[run.job]
        if job.share == WHOLE:
            totals.busy_gpus += job.gpus
        else:
            totals.busy_slices += job.share
        run.expected = min(expected_end(run, totals.now), run.start + job.limit)
        end.end, end.since = run.expected, totals.now
        end.slowness = span_factor(run, job, world.pools[run.pool])
        until, _, _, _ = timeline(run.expected - run.start, run, job)
        before, _, _, _ = timeline(totals.now - run.start, run, job)
        end.todo = end.kept = (until - before) / end.slowness
        place_in_heap(r, r, ends)
        sift(r, r + 1, world)
    for q in range(totals.waiting):
        world.undone[q] = world.queue[q].left
