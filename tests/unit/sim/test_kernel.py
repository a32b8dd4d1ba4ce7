"""Laws that hold in every schedule of the kernel, whatever the policy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.policies import registry
from adlro.sim.state import fresh
from tests.worlds import build, job, nodes, play, play_moments, random_world, state_of

SEEDS = st.integers(0, 10**6)
NAMES = st.sampled_from(registry.names())
EVERY_CASE = settings(deadline=None, max_examples=60)


@given(SEEDS, NAMES)
@EVERY_CASE
def test_every_job_runs_once_as_one_gang_where_it_may_for_its_time(seed, name):
    world = random_world(seed)
    jobs, _, allowed, seconds = world.workload
    result = play(world, name, seed)
    outcome, spans = result.outcome, result.spans[np.argsort(result.spans["job"], kind="stable")]
    of = spans["job"]
    np.testing.assert_array_equal(np.bincount(of, minlength=len(jobs)), jobs["gpus"])
    assert len(np.unique(spans[["job", "gpu"]])) == len(spans)
    np.testing.assert_array_equal(spans["start"], outcome["start"][of])
    np.testing.assert_array_equal(spans["end"], outcome["finish"][of])
    node = world.empty.gpus["node"][spans["gpu"]]
    np.testing.assert_array_equal(world.empty.nodes["pool"][node], outcome["pool"][of])
    each = np.arange(len(jobs))
    assert allowed[each, outcome["pool"]].all()
    stood_on = [len(set(node[of == j].tolist())) for j in each]
    np.testing.assert_array_equal(outcome["nodes"], stood_on)
    pool = world.empty.pools[outcome["pool"]]
    factor = np.where(outcome["nodes"] > 1, 1 + jobs["communication"] * pool["span_cost"], 1)
    length = seconds[each, pool["model"]] * factor
    np.testing.assert_array_equal(outcome["killed"], length > jobs["limit"])
    expected = outcome["start"] + np.minimum(length, jobs["limit"])
    np.testing.assert_allclose(outcome["finish"], expected, rtol=1e-12)
    assert (outcome["start"] >= jobs["arrival"]).all()


def peaks(spans, where, amount, count):
    """The most that is ever held at once of each of `count` things; ends go before starts."""
    time = np.concatenate([spans["end"], spans["start"]])
    change = np.concatenate([-amount, amount])
    place = np.concatenate([where, where])
    order = np.argsort(time, kind="stable")
    held = [np.cumsum(change[order][place[order] == k]) for k in range(count)]
    return np.array([max(h.max(initial=0), 0) for h in held])


@given(SEEDS, NAMES)
@EVERY_CASE
def test_nothing_is_ever_handed_out_twice(seed, name):
    world = random_world(seed)
    spans = play(world, name, seed).spans
    gpus, machines = world.empty.gpus, world.empty.nodes
    ones, node = np.ones(len(spans), int), gpus["node"][spans["gpu"]]
    need = world.workload.jobs[spans["job"]]
    assert (peaks(spans, spans["gpu"], ones, len(gpus)) <= 1).all()
    assert (peaks(spans, node, need["cores"], len(machines)) <= machines["cores"]).all()
    assert (peaks(spans, node, need["memory"], len(machines)) <= machines["memory"]).all()


@given(SEEDS, NAMES)
@EVERY_CASE
def test_the_integrals_equal_the_sums_over_jobs_and_gpus(seed, name):
    world = random_world(seed)
    arrival = world.workload.jobs["arrival"]
    result = play(world, name, seed)
    outcome = result.outcome
    times = (outcome["finish"] - arrival).sum()
    held = ((outcome["finish"] - outcome["start"]) * world.workload.jobs["gpus"]).sum()
    whole = len(world.empty.gpus) * (outcome["finish"].max() - arrival[0])
    by_gpu = np.bincount(
        result.spans["gpu"], result.spans["end"] - result.spans["start"], len(world.empty.gpus)
    )
    assert result.world["job_seconds"] == pytest.approx(times, rel=1e-9)
    assert result.world["idle_seconds"] == pytest.approx(whole - held, rel=1e-9, abs=1e-9 * whole)
    assert result.gpus["busy"] == pytest.approx(by_gpu, rel=1e-9)


@given(SEEDS, NAMES)
@EVERY_CASE
def test_the_cluster_is_empty_again_at_the_end(seed, name):
    world = random_world(seed)
    result = play(world, name, seed)
    end = result.world
    jobs = len(world.workload.jobs)
    assert (end["finished"], end["arrived"], end["waiting"], end["running"]) == (jobs, jobs, 0, 0)
    assert end["busy_gpus"] == 0
    assert end["events"] == 2 * jobs
    assert result.gpus["free"].tolist() == world.empty.gpus["free"].tolist()
    assert set(result.gpus["job"].tolist()) == {-1}


def test_a_queue_that_slides_to_the_end_of_its_array_goes_back_to_the_front():
    # Four jobs every 4 s, each 1 s long, so that never more than four wait. Room for four jobs and
    # their slack is eight places: forty jobs slide past the end several times.
    world = build([nodes("V100")], [job(4 * (k // 4), 1) for k in range(40)])
    policy = registry.load("fcfs", world.setting)
    _, outcome, spans = state_of(world, policy)
    small = fresh(world.empty, 4, 1, 0)
    play_moments(world, policy, small, outcome, spans)
    assert len(small.queue) == 8
    assert outcome["start"].tolist() == list(range(40))
