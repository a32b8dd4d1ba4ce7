"""Invariants of every schedule of the kernel, for all policies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.model.state import EVENT, FAILURE, REPAIR, WHOLE
from adlro.policies import registry
from adlro.sim.world import open_world
from adlro.workloads.workload import Workload
from tests.worlds import (
    ANYWHERE,
    Restless,
    build,
    job,
    nodes,
    play,
    play_moments,
    random_world,
)

SEEDS = st.integers(0, 10**6)
NAMES = st.sampled_from([*ANYWHERE, Restless.name])
EAGER = ("adlro-preemptive", "gavel", "hetero-srpt", "sia", "tiresias")  # they preempt
PATIENT = st.sampled_from([name for name in ANYWHERE if not name.startswith(EAGER)])
EVERY_CASE = settings(deadline=None, max_examples=60)


def quiet_world(seed):
    """A random world without failures, slowdowns and checkpoints."""
    world = random_world(seed)
    jobs = world.workload.jobs.copy()
    jobs["interval"] = np.inf
    alone = np.ones_like(world.workload.colocation)
    workload = world.workload._replace(jobs=jobs, events=np.zeros(0, EVENT), colocation=alone)
    return world._replace(workload=workload)


@given(SEEDS, PATIENT)
@EVERY_CASE
def test_every_job_runs_once_as_one_gang_on_an_allowed_pool_for_its_time(seed, name):
    world = quiet_world(seed)
    jobs, _, allowed, seconds, *_ = world.workload
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
    length = jobs["start_delay"] + seconds[each, pool["model"]] * factor
    np.testing.assert_array_equal(outcome["killed"], length > jobs["limit"])
    expected = outcome["start"] + np.minimum(length, jobs["limit"])
    np.testing.assert_allclose(outcome["finish"], expected, rtol=1e-12)
    assert (outcome["start"] >= jobs["arrival"]).all()


def peaks(spans, where, amount, count):
    """Maximum simultaneous use of each of `count` resources; ends are counted before starts."""
    time = np.concatenate([spans["end"], spans["start"]])
    change = np.concatenate([-amount, amount])
    place = np.concatenate([where, where])
    order = np.argsort(time, kind="stable")
    held = [np.cumsum(change[order][place[order] == k]) for k in range(count)]
    return np.array([max(h.max(initial=0), 0) for h in held])


@given(SEEDS, NAMES)
@EVERY_CASE
def test_no_resource_is_allocated_twice(seed, name):
    world = random_world(seed)
    spans = play(world, name, seed).spans
    gpus, machines = world.empty.gpus, world.empty.nodes
    node = gpus["node"][spans["gpu"]]
    need = world.workload.jobs[spans["job"]]
    np.testing.assert_array_equal(spans["share"], need["share"])
    assert (peaks(spans, spans["gpu"], spans["share"], len(gpus)) <= WHOLE).all()
    memory = peaks(spans, spans["gpu"], need["gpu_memory"], len(gpus))
    assert (memory <= gpus["free_memory"]).all()
    assert (peaks(spans, node, need["cores"], len(machines)) <= machines["cores"]).all()
    assert (peaks(spans, node, need["memory"], len(machines)) <= machines["memory"]).all()


def outages(world, until):
    """Down times of the nodes: rows (node, from, to), up to the end of the run."""
    begin = world.workload.jobs["arrival"][0]
    down, rows = {}, []
    for event in world.workload.events[world.workload.events["time"] <= until]:
        time, node = max(float(event["time"]), begin), int(event["node"])
        if event["kind"] == FAILURE:
            down.setdefault(node, time)
        if event["kind"] == REPAIR and node in down:
            rows.append((node, down.pop(node), time))
    return rows + [(node, time, until) for node, time in down.items()]


@given(SEEDS, NAMES)
@EVERY_CASE
def test_nothing_runs_on_a_node_that_is_down(seed, name):
    world = random_world(seed, drains=False)
    result = play(world, name, seed)
    node = world.empty.gpus["node"][result.spans["gpu"]]
    for n, since, until in outages(world, float(result.totals["now"])):
        on_it = result.spans[node == n]
        assert ((on_it["end"] <= since) | (on_it["start"] >= until)).all()


@given(SEEDS, NAMES)
@EVERY_CASE
def test_the_integrals_equal_the_sums_over_jobs_and_gpus(seed, name):
    world = random_world(seed, drains=False)
    arrival = world.workload.jobs["arrival"]
    result = play(world, name, seed)
    outcome, spans, end = result.outcome, result.spans, float(result.totals["now"])
    times = (outcome["finish"] - arrival).sum()
    served = (spans["end"] - spans["start"]) * spans["share"] / WHOLE
    gone = [(to - since) * world.empty.nodes["gpus"][n] for n, since, to in outages(world, end)]
    whole = len(world.empty.gpus) * (end - arrival[0])
    by_gpu = np.bincount(spans["gpu"], served, len(world.empty.gpus))
    idle = whole - sum(gone) - served.sum()
    assert result.totals["job_seconds"] == pytest.approx(times, rel=1e-9)
    assert result.totals["idle_seconds"] == pytest.approx(idle, rel=1e-9, abs=1e-9 * whole + 1e-9)
    assert result.gpus["busy"] == pytest.approx(by_gpu, rel=1e-9)


@given(SEEDS, NAMES)
@EVERY_CASE
def test_the_cluster_is_empty_again_at_the_end(seed, name):
    world = random_world(seed)
    result = play(world, name, seed)
    end = result.totals
    jobs = len(world.workload.jobs)
    assert (end["finished"], end["arrived"], end["waiting"], end["running"]) == (jobs, jobs, 0, 0)
    assert (end["busy_gpus"], end["busy_slices"], end["stranded"]) == (0, 0, 0)
    assert end["events"] >= 2 * jobs + end["events_done"]  # and timers
    down = [n for n, _, until in outages(world, float(end["now"])) if until == end["now"]]
    up = ~np.isin(result.gpus["node"], down)
    assert result.gpus["free"][up].tolist() == [WHOLE] * up.sum()
    assert result.gpus["free_memory"].tolist() == world.empty.gpus["free_memory"].tolist()
    assert set(result.gpus["job"].tolist()) == set(result.gpus["slice"].tolist()) == {-1}


@given(SEEDS, NAMES)
@EVERY_CASE
def test_each_restart_adds_a_run_and_only_restarts_lose_work(seed, name):
    world = random_world(seed)
    result = play(world, name, seed)
    jobs, outcome = world.workload.jobs, result.outcome
    rows = np.bincount(result.spans["job"], minlength=len(jobs))
    np.testing.assert_array_equal(rows, (outcome["restarts"] + 1) * jobs["gpus"])
    assert (outcome["lost"] >= 0).all()
    assert (outcome["lost"][outcome["restarts"] == 0] == 0).all()


def test_a_queue_that_slides_to_the_end_of_its_array_goes_back_to_the_front():
    # Four jobs every 4 s, each 1 s long, so that never more than four wait. Room for four jobs and
    # their slack is eight places: forty jobs slide past the end several times.
    world = build([nodes("V100")], [job(4 * (k // 4), 1) for k in range(40)])
    policy = registry.load("fcfs", world.setting)
    few = Workload(*(rows[:4] for rows in world.workload[:4]), *world.workload[4:])
    small, every = (open_world(world.empty, workload) for workload in (few, world.workload))
    places = {name: getattr(small, name) for name in ("queue", "eligible", "undone")}
    play_moments(policy, every._replace(**places), np.zeros(1))
    assert len(small.queue) == 8
    assert every.outcome["start"].tolist() == list(range(40))
