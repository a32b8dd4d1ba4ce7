"""Worlds rebuilt from views: with true estimates, rollouts end as the run does."""

import numpy as np
import pytest
from numba import njit

from adlro.model.context import Rulebook
from adlro.model.state import WHOLE
from adlro.model.view import RECENT_ARRIVALS
from adlro.sim.rebuild import RebuiltWorld
from adlro.sim.rebuild_kernel import fill_from_estimates
from adlro.sim.signature import compiled_steps
from adlro.sim.simulator import ViewCopies
from adlro.sim.steps import clone
from adlro.sim.world import decision_buffer
from tests.looped import every
from tests.plain.cases import random_case
from tests.worlds import (
    InPython,
    Scheduled,
    build,
    called,
    from_case,
    job,
    made_ready,
    nodes,
    play,
    unlocked,
)

OF_JOBS = ("jobs", "est", "allowed", "seconds", "holders")


def exact(seed):
    """A random case with nothing that a policy cannot know; each job is a type of its own.

    Slices make no checkpoints by themselves: when a neighbour comes or goes at the very moment of
    the last one, it is made, and the job ends later than it was expected to.
    """
    case = random_case(seed)
    jobs, count = case.jobs.copy(), len(case.jobs)
    jobs["type"] = np.arange(count)
    jobs["interval"][jobs["share"] < WHOLE] = np.inf
    case = case._replace(
        jobs=jobs, est=case.seconds, events=case.events[:0], colocation=np.ones((count, count)),
        affinity=[0] * count, pools_of_type=[{0}] * count, tick=None,
    )  # fmt: skip
    return from_case(case)


def rebuilt_for(context, view):
    return RebuiltWorld(view, context.types, context.placement, context.rules)


@njit
def copy_filled(world, to):
    """Preparation of each rollout, compiled because kernels cannot be called from Python."""
    fill_from_estimates(world)
    clone(world, to)


def play_on(rebuilt, policy, memory):
    """Finish times, by row, of the unfinished jobs in a rollout on the copy."""
    copy_filled(rebuilt.world, rebuilt.copy)
    world, steps, ask = rebuilt.copy, compiled_steps(), called(policy.decide)
    eyes, out, own = ViewCopies(world), decision_buffer(world), memory.copy()
    world.outcome["finish"] = np.nan
    while True:
        done = 1
        while done > 0:
            done = steps.apply(ask(eyes.view(), policy.params, own, out), out, world)
        assert done == 0
        if not steps.advance(world):
            break
    assert world.totals["fault"][0] == 0
    return world.outcome["finish"].copy()


class Foresight(InPython):
    """Runs a policy and, at its calls, a rollout on a copy that knows the future arrivals."""

    def __init__(self, world, base):
        super().__init__(base, world)
        self.world, self.base = world, made_ready(base, world)
        self.rebuilt, self.rests = None, []

    def decide(self, view, params, memory, out):
        if self.rebuilt is None:
            self.rebuilt = rebuilt_for(self.world.setting, view)
        if len(view.queue) > 0:
            self.rests.append(self.rest(view, memory))
        return super().decide(view, params, memory, out)

    def rest(self, view, memory):
        """Finish times of the unfinished jobs."""
        truth, rebuilt, arrived = self.world.workload, self.rebuilt, view.arrived
        rebuilt.update(view, np.inf, len(truth.jobs) - arrived)
        for name in OF_JOBS:
            getattr(rebuilt.world, name)[arrived : len(truth.jobs)] = getattr(truth, name)[arrived:]
        return play_on(rebuilt, self.base, memory)[: len(truth.jobs)]


@pytest.mark.parametrize("base", ["min-min", "easy-backfill"])
@every("seed", range(60), quick=15)
def test_a_copy_that_knows_the_arrivals_ends_as_the_run_does(seed, base):
    # Slices, gangs, checkpoints, limits, quotas, ageing and placement by fragmentation included.
    world = exact(seed)
    policy = Foresight(world, base)
    truth = play(world, policy, seed).outcome["finish"]
    for rest in policy.rests:
        known = ~np.isnan(rest)
        assert known.any()
        np.testing.assert_allclose(rest[known], truth[known], rtol=1e-9)


def views_of(world, policy=None):
    """Views at each call under a policy; None = first come, first served on pool 0."""
    seen = []

    def note(view):
        seen.append(unlocked(view))

    play(world, InPython(policy, world, note) if policy else Scheduled({}, note))
    return seen


def in_other_rows(view, row):
    """The same view with job r in row[r]; unused rows hold arbitrary values."""
    size = int(row.max()) + 3
    jobs, est = np.zeros(size, view.jobs.dtype), np.full((size, view.est.shape[1]), np.nan)
    jobs["id"], jobs["gpus"], jobs["arrival"] = -7, 99, np.nan
    count = len(view.jobs)
    jobs[row[:count]], est[row[:count]] = view.jobs, view.est
    parts = {name: getattr(view, name).copy() for name in ("queue", "running", "gpus")}
    for part in parts.values():
        held = part["job"] >= 0
        part["job"][held] = row[part["job"][held]]
    return view._replace(jobs=jobs, est=est, recent=row[view.recent], **parts)


@every("seed", range(0, 60, 4))
def test_the_rows_of_jobs_make_no_difference(seed):
    world = exact(seed)
    policy, count = made_ready("min-min", world), len(world.workload.jobs)
    row = np.random.default_rng(seed).permutation(3 * count)[:count]
    memory = np.zeros(max(policy.memory, 1))
    waited = [view for view in views_of(world, "min-min") if len(view.queue) > 0]
    for view in waited[::5]:
        ends = []
        for seen in (view, in_other_rows(view, row)):
            rebuilt = rebuilt_for(world.setting, seen)
            rebuilt.update(seen, np.inf)
            ends.append(play_on(rebuilt, policy, memory))
        here = len(view.jobs)
        np.testing.assert_array_equal(ends[1][row[:here]], ends[0][:here])


def three_by_hand():
    """A GPU; job 0 runs, jobs 1 and 2 wait, and job 3 arrives after they are done."""
    return build([nodes()], [job(0, 10), job(1, 4), job(2, 3), job(99, 5)])


def test_the_rebuilt_world_equals_the_view():
    world = three_by_hand()
    view = next(view for view in views_of(world) if view.now == 2)
    rebuilt = rebuilt_for(world.setting, view)
    rebuilt.update(view, 7.5, more=2)
    found, w = rebuilt.world, rebuilt.world.totals[0]
    assert (w["now"], w["wake"], w["waiting"], w["running"]) == (2, 7.5, 2, 1)
    assert (w["arrived"], w["arrived_before"], w["rows"], w["finished"]) == (3, 0, 3, 0)
    assert found.arrivals.tolist() == [0, 1, 2, 3, 4]
    assert found.queue["job"][:2].tolist() == [1, 2]
    assert found.running["job"][:1].tolist() == [0]
    assert found.jobs[:3].tolist() == view.jobs.tolist()
    assert found.seconds is found.est  # run times are the estimates
    assert found.est[:3].tolist() == view.est.tolist()


def test_jobs_are_copied_once_when_they_arrive():
    world, asked = three_by_hand(), []
    rules = world.setting.rules

    def allowed(jobs):
        asked.append(jobs["id"].tolist())
        return rules.allowed(jobs)

    told = Rulebook(allowed, *rules[1:])
    views = views_of(world)
    rebuilt = RebuiltWorld(views[0], 1, world.setting.placement, told)
    for view in views:
        rebuilt.update(view, np.inf)
    assert asked == [[0], [1], [2], [3]]
    assert rebuilt.world.jobs["id"][:4].tolist() == [0, 1, 2, 3]


def test_a_row_that_is_reused_holds_the_younger_job():
    world = three_by_hand()
    views = views_of(world)
    before = next(view for view in views if view.now == 2)
    after = in_other_rows(next(view for view in views if view.now == 99), np.array([5, 4, 3, 0]))
    after = after._replace(recent=after.recent[-1:])  # the others were forgotten long ago
    rebuilt = rebuilt_for(world.setting, before)
    rebuilt.update(before, np.inf)
    rebuilt.update(after, np.inf)
    w = rebuilt.world.totals[0]
    assert rebuilt.world.jobs[0] == world.workload.jobs[3]
    assert rebuilt.world.est[0].tolist() == [5]
    assert (w["arrived"], w["arrived_before"], w["waiting"], w["finished"]) == (1, 3, 1, 0)


def test_a_world_rebuilt_late_knows_jobs_older_than_the_recent_arrivals():
    # Job 0 runs for all of the time, job 1 waits behind it, and then 200 more come.
    jobs = [job(0, 1e6), *(job(1 + j, 5) for j in range(201))]
    world = build([nodes()], jobs)
    view = next(view for view in views_of(world) if view.arrived == 202)
    assert len(view.recent) == RECENT_ARRIVALS < len(view.queue)
    rebuilt = rebuilt_for(world.setting, view)
    rebuilt.update(view, np.inf)
    assert rebuilt.world.jobs["id"][:202].tolist() == list(range(202))
    ends = play_on(rebuilt, made_ready("fcfs", world), np.zeros(1))
    assert ends[:202].tolist() == [1e6, *(1e6 + 5 * j for j in range(1, 202))]
