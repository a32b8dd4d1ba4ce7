"""ADLRO that may preempt: keep, move, preempt, by a network of pairs and by adlro's in turn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate.compare import run_one
from adlro.features.pair_kernel import PAIR_FEATURES
from adlro.model.state import FINISH, PREEMPTION
from adlro.nets.q_network import Network, flat
from adlro.policies import adlro_preemptive, registry
from adlro.policies.loading import learned
from adlro.train.weights import like_drain_argmin
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.unit.policies.test_tiresias import runs_of
from tests.worlds import build, fails, is_repaired, job, nodes, play, random_world

ONE = [nodes()]
TWO = [nodes("V100"), nodes("T4")]
DRAIN = flat(like_drain_argmin((1, 1)))


def linear(**weights):
    """A network of pairs whose cost is Hetero-SRPT's plus so much of some features."""
    first = np.array([[weights.get(name, 0.0)] for name in PAIR_FEATURES])
    one, nothing = np.ones((1, 1)), np.zeros(1)
    residual = np.array([1.0, 0.0])
    return Network(PAIR_FEATURES, residual, first, np.full(1, 20.0), one, nothing, np.ones(1))


def _mean_jct(name, setting, seeds=range(100_000, 100_004)):
    """Mean completion time over all jobs of the seeds."""
    policy, times = registry.load(name, setting), []
    for seed in seeds:
        jobs = generate(setting, seed)
        times.append(run_one(setting, jobs, policy, seed).outcome["finish"] - jobs.jobs["arrival"])
    return np.mean(times)


def played(world, pairs=None, in_turn=DRAIN):
    """The world under the policy with these networks; by default those of no training."""
    params = adlro_preemptive.params(world.setting, flat(pairs or linear(), PAIR_FEATURES))
    shipped = flat(learned.shipped().network)
    params = np.concatenate([params[: len(params) - len(shipped)], in_turn])
    return play(world, registry.load("adlro-preemptive", world.setting)._replace(params=params))


# Every job takes one whole GPU and can checkpoint: a matching.


def test_a_short_job_takes_the_place_of_a_long_one():
    # At 100 job 0 has 900 s left: 1.05 / 901 = 0.0012 where it runs. Job 1: 1 / 51 = 0.0196.
    # Job 0 goes on at 150, with 10 s of restoring: 150 + 10 + 900.
    result = played(build(ONE, [job(0, 1000, checkpoint=10), job(100, 50, checkpoint=10)]))
    assert runs_of(result, 1) == [(100, 150, FINISH)]
    assert runs_of(result, 0) == [(0, 100, PREEMPTION), (150, 1060, FINISH)]


@pytest.mark.parametrize(("seconds", "start"), [(880, 1000), (840, 100)])
def test_a_run_is_kept_where_the_gain_is_below_the_bonus_for_staying(seconds, start):
    # 1.05 / 901 = 1 / 858.1: a new job must have less than 857.1 s.
    world = build(ONE, [job(0, 1000, checkpoint=0), job(100, seconds, checkpoint=0)])
    assert played(world).outcome["start"][1] == start


@pytest.mark.parametrize(("bonus", "stops"), [(2.8, True), (3.0, False)])
def test_what_a_run_is_worth_where_it_runs_is_the_networks_to_say(bonus, stops):
    # At 100: 1.05 e^bonus / 901 for job 0 against 1 / 51 for job 1: e^bonus = 16.8, bonus = 2.82.
    # The T4 is worth next to nothing to either.
    jobs = [job(0, 1000, 1e9, checkpoint=10), job(100, 50, 1e9, checkpoint=10)]
    outcome = played(build(TWO, jobs), linear(runs_here=-bonus)).outcome
    assert (outcome["restarts"][0] > 0) == stops


@pytest.mark.parametrize("groups", [[nodes()], [nodes(gpus=3), nodes(gpus=2, count=2)]])
def test_where_all_gpus_are_alike_it_is_hetero_srpt_whatever_the_network_says(groups):
    rng, worst = np.random.default_rng(5), linear(runs_here=-9.0, rank=3.0, age=-2.0)
    total = sum(group["gpus"] * group["count"] for group in groups)
    for cost in (0, 20):
        arrivals = np.cumsum(rng.exponential(100 / total, 60))
        jobs = [job(at, rng.lognormal(4.0, 1.2), checkpoint=cost) for at in arrivals]
        world = build(groups, jobs)
        ours, theirs = played(world, worst).outcome, play(world, "hetero-srpt").outcome
        np.testing.assert_allclose(ours["finish"], theirs["finish"], rtol=1e-9)
        assert ours["restarts"].sum() > 0


def test_on_one_gpu_with_free_restarts_it_is_as_good_as_srpt():
    gavel = find_scenario("gavel16")
    types = [{**each.model_dump(), "checkpoint_s": 0.0} for each in gavel.types]
    nodes = [{**gavel.cluster.nodes[0].model_dump(), "count": 1, "gpus": 1}]
    setting = prepare(
        adjusted(gavel, jobs=300, types=types, cluster={"name": "one", "nodes": nodes})
    )
    assert _mean_jct("adlro-preemptive", setting) < 1.005 * _mean_jct("hetero-srpt", setting)


@pytest.mark.parametrize(("cost", "pool", "finish"), [(1, 0, 10 + 1 + 1000 / 11), (10, 1, 110)])
def test_a_job_moves_to_a_faster_gpu_only_if_that_pays_for_the_restart(cost, pool, finish):
    # At 10 the V100 is free and job 1 has 100 / 110 of its work left: R = 90.9 s there. Staying is
    # worth 1.05 * 100 / 110 = 0.955, moving R / (R + cost): 0.989 for 1 s and 0.901 for 10 s.
    jobs = [job(0, 10, 1000, checkpoint=9), job(0, 100, 110, checkpoint=cost)]
    outcome = played(build(TWO, jobs)).outcome
    assert outcome["pool"].tolist() == [0, pool]
    assert outcome["finish"][1] == pytest.approx(finish)


# A job that cannot checkpoint, or a gang: adlro's network chooses in turn, here by drain cost.


@pytest.mark.parametrize(("seconds", "start"), [(885, 100), (895, 1000)])
def test_a_run_is_stopped_for_a_job_that_is_shorter_by_more_than_the_restart(seconds, start):
    # At 100 job 0 has 900 s left and saves a restart of 10 s if it goes on: it counts as 890 s.
    # Nothing else runs, so the plan begins with the shorter of the two.
    world = build(ONE, [job(0, 1000, checkpoint=10), job(100, seconds)])
    assert played(world).outcome["start"][1] == start


@pytest.mark.parametrize(("seconds", "pool"), [(75, 0), (80, 1)])
def test_in_turn_too_a_job_moves_only_if_that_pays_for_the_restart(seconds, pool):
    # At 10 the V100 is free; job 1 needs 100 s more on the T4, less the 5 s that it saves: 95. On
    # the V100 it has 68.2 or 72.7 s left, times 1.3 for moving, and 5 s: 93.6 or 99.5. Job 2 only
    # sees to it that jobs are chosen in turn.
    jobs = [
        job(0, 10, 1000, 999, allowed=[0]),
        job(0, seconds, 110, 999, checkpoint=5, allowed=[0, 1]),
        job(0, 999, 999, 500, allowed=[2]),
    ]
    outcome = played(build([*TWO, nodes("K80")], jobs)).outcome
    assert outcome["pool"][1] == pool


@pytest.mark.parametrize(("seconds", "start"), [(440, 100), (460, 1000)])
def test_a_gang_does_not_stop_two_runs_if_they_lose_more_than_it_gains(seconds, start):
    # At 100 two runs have 900 s left each. Stopping them saves the gang 900 s and costs them twice
    # its own time. adlro's network, here by drain cost, would stop them up to 900 s.
    jobs = [job(0, 1000, checkpoint=0), job(0, 1000, checkpoint=0), job(100, seconds, gpus=2)]
    assert played(build([nodes(gpus=2)], jobs)).outcome["start"][2] == start


@pytest.mark.parametrize(("cost", "start"), [(89, 100), (91, 1000)])
def test_a_run_with_less_left_than_ten_restarts_goes_on(cost, start):
    # At 100 job 0 has 900 s left.
    world = build(ONE, [job(0, 1000, checkpoint=cost), job(100, 50)])
    assert played(world).outcome["start"][1] == start


def test_a_gang_makes_two_runs_leave_and_they_go_on_afterwards():
    # At 100 the gang (20 s, both GPUs) is the first of the plan. 120 + 5 + 900 for the others.
    jobs = [job(0, 1000, checkpoint=5), job(0, 1000, checkpoint=5), job(100, 20, gpus=2)]
    result = played(build([nodes(gpus=2)], jobs))
    assert runs_of(result, 2)[0] == (100, 120, FINISH)
    assert result.outcome["restarts"].tolist() == [1, 1, 0]
    assert result.outcome["finish"].tolist() == [1025, 1025, 120]


def test_beyond_the_plan_only_those_start_that_can_be_stopped_again():
    # As worked out for drain-argmin: at 1 the plan keeps the free T4 for job 3 and lets job 2 wait
    # for the V100. If job 2 can checkpoint it fills the T4 meanwhile; if not, it waits.
    groups = [nodes("T4", 2), nodes("V100")]
    first = [job(0, 2, 99), job(0, 99, 2)]
    last = job(1, 8, 99, gpus=2)
    waits = played(build(groups, [*first, job(1, 8, 7.5), last])).outcome
    fills = played(build(groups, [*first, job(1, 8, 7.5, checkpoint=0), last])).outcome
    assert (waits["start"][2], fills["start"][2]) == (2, 1)


@pytest.mark.parametrize("load", [0.8, 0.95])
def test_single_gpus_some_without_checkpoints_are_no_worse_for_preemption(load):
    setting = prepare(adjusted(find_scenario("paper16-single"), load=load))
    assert _mean_jct("adlro-preemptive", setting) < _mean_jct("adlro", setting)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_where_nobody_can_checkpoint_it_is_adlro(seed):
    world = random_world(seed)
    jobs = world.workload.jobs.copy()
    jobs["checkpoint"] = -1.0
    world = world._replace(workload=world.workload._replace(jobs=jobs))
    ours, theirs = (play(world, name, seed) for name in ("adlro-preemptive", "adlro"))
    assert ours.outcome.tobytes() == theirs.outcome.tobytes()


# What no network can do.


@pytest.mark.parametrize("other", [0, -1])  # a matching, if job 0 can checkpoint; in turn
@pytest.mark.parametrize(("kept", "start"), [({"checkpoint": -1}, 1000), ({"least_run": 300}, 300)])
def test_what_would_lose_its_work_or_is_too_young_is_left_alone(kept, start, other):
    jobs = [job(0, 1000, **{"checkpoint": 0, **kept}), job(50, 10, checkpoint=other)]
    result = played(build(ONE, jobs))
    assert result.outcome["start"][1] == start
    assert result.totals["decisions"] < 10


def test_who_has_just_restored_works_as_long_as_that_took_before_it_is_stopped_again():
    # Job 0 is stopped at 100 and goes on at 150, with 40 s of restoring. Job 2 comes at 200, when
    # it has worked for 10 s, and waits. Job 3 comes at 230, when it has for 40 s: now it is stopped
    # for both, the shorter first.
    jobs = [
        job(0, 1000, checkpoint=40),
        job(100, 50, checkpoint=40),
        job(200, 20, checkpoint=40),
        job(230, 10, checkpoint=40),
    ]
    outcome = played(build(ONE, jobs)).outcome
    assert outcome["start"].tolist() == [0, 100, 240, 230]


@pytest.mark.parametrize("extra", [{}, {"gpus": 2}])
def test_equal_jobs_do_not_push_each_other_out(extra):
    # Restarts cost nothing, and four jobs of one kind want two places: each runs once, to its end.
    jobs = [job(i, 100, checkpoint=0, **extra) for i in range(4)]
    outcome = played(build([nodes(gpus=2 * extra.get("gpus", 1))], jobs)).outcome
    assert outcome["restarts"].tolist() == [0, 0, 0, 0]


def test_a_network_gone_mad_can_stop_each_run_once_a_moment_at_most():
    # Its own place is worth e^-20 as much as any other: everybody moves whenever anything happens.
    jobs = [job(i, 100, 101, checkpoint=0) for i in range(6)]
    result = played(build(TWO, jobs), linear(runs_here=20.0))
    moments = 2 * len(jobs)
    assert result.totals["preemptions"] > 0
    assert result.totals["preemptions"] <= 2 * moments
    assert (result.outcome["finish"] > 0).all()


def test_a_job_lost_to_a_failure_starts_again_where_there_is_room():
    world = build(TWO, [job(0, 100, 150, checkpoint=0)], events=[fails(50, 0), is_repaired(900, 0)])
    outcome = played(world).outcome
    assert outcome["pool"].tolist() == [1]
    assert outcome["finish"].tolist() == [200]


def test_it_wakes_for_a_run_that_gets_old_enough_by_any_clock():
    # Counted from 1970, start + least_run is rounded to 2e-7 s, here down: job 0 is then too young.
    at = 1.7e9
    jobs = [job(at + 0.123, 1000, least_run=10.3, checkpoint=1), job(at + 1.77, 5, checkpoint=1)]
    start = played(build(ONE, jobs)).outcome["start"]
    assert start[1] == pytest.approx(at + 0.123 + 10.3, abs=1e-6)
