"""Drain argmin: by how soon all waiting jobs would be done."""

import numpy as np
import pytest

from tests.looped import every
from tests.plain.cases import random_case
from tests.plain.registry import make
from tests.plain.simulator import PlainWorld
from tests.plain.simulator import run as run_plain
from tests.worlds import build, fails, from_case, is_repaired, job, nodes, play

TWO = [nodes("V100", 2)]
TABLES = ("est", "seconds", "allowed")  # of a case, one row a job


def as_case(world):
    """A hand-made world for the plain simulator."""
    own, empty = world.workload, world.empty
    return random_case(0)._replace(
        jobs=own.jobs, est=own.est, seconds=own.seconds, allowed=own.allowed > 0,
        pools=empty.pools, nodes=empty.nodes, gpus=empty.gpus,
        events=own.events, colocation=own.colocation, demands=random_case(0).demands[:0],
        quotas=(), ageing=None, tick=None, whole=False,
    )  # fmt: skip


def outcome(groups, jobs):
    return play(build(groups, jobs), "drain-argmin").outcome


def test_it_starts_a_job_that_min_min_would_let_wait_for_a_gang():
    # Job 0 holds one of two GPUs until 4. At 1, Min-Min plans job 1 (both, 1 s) first, 4-5, and job
    # 2 (4.5 s) behind it until 9.5: 4 + 8.5 = 12.5 s. Job 2 now ends at 5.5 and job 1 at 6.5:
    # 4.5 + 5.5 = 10 s.
    jobs = [job(0, 4), job(1, 1, gpus=2), job(1, 4.5)]
    assert outcome(TWO, jobs)["start"].tolist() == [0, 5.5, 1]
    assert play(build(TWO, jobs), "min-min").outcome["start"].tolist() == [0, 4, 5]


def test_it_waits_where_min_min_would_start():
    # Jobs 0 and 1 hold a T4 and the V100 until 2. At 1, job 2 would end at 9 on the free T4 and at
    # 2 + 7.5 = 9.5 on the V100: Min-Min starts it, and job 3 (both T4s, 8 s) runs 9-17: 8 + 16 s.
    # From 2 on job 2 ends at 9.5 on the V100 and job 3 at 10 on the T4s: 8.5 + 9 = 17.5 s.
    groups = [nodes("T4", 2), nodes("V100")]
    jobs = [job(0, 2, 99), job(0, 99, 2), job(1, 8, 7.5), job(1, 8, 99, gpus=2)]
    found = outcome(groups, jobs)
    assert found["start"].tolist() == [0, 0, 2, 2]
    assert found["pool"].tolist() == [0, 1, 1, 0]
    assert play(build(groups, jobs), "min-min").outcome["start"].tolist() == [0, 0, 1, 9]


def test_it_gives_a_pool_to_the_job_that_has_no_other():
    # Job 0 holds the V100 until 2. At 1, Min-Min gives the T4 to job 1 (ends at 9, on the V100 at
    # 9.5) and job 2 (T4 only) would end at 17.5: 8 + 16.5 s. The other way round 8.5 + 8.5 s.
    groups = [nodes("V100"), nodes("T4")]
    jobs = [job(0, 2, 99), job(1, 7.5, 8), job(1, 99, 8.5, allowed=[1])]
    found = outcome(groups, jobs)
    assert found["start"].tolist() == [0, 2, 1]
    assert found["pool"].tolist() == [0, 0, 1]


@pytest.mark.parametrize(("communication", "pool"), [(0.0, 0), (1.0, 1)])
def test_a_gang_that_would_span_costs_more(communication, pool):
    # 4 s over two nodes of pool 0, or 5 s on the one node of pool 1; spanning adds a quarter and
    # more to a job that communicates.
    groups = [nodes("V100", 1, 2), nodes("T4", 2)]
    world = build(groups, [job(0, 4, 5, gpus=2, communication=communication)])
    assert 4 * (1 + communication * world.empty.pools["span_cost"][0]) > 5 * communication
    assert play(world, "drain-argmin").outcome["pool"].tolist() == [pool]


def test_of_equal_costs_min_mins_choice_is_taken():
    # Either order of two equal jobs drains in the same time.
    found = outcome([nodes("V100"), nodes("T4")], [job(0, 3, 3), job(0, 3, 3), job(0, 3, 3)])
    assert found["pool"].tolist() == [0, 1, 0]
    assert found["start"].tolist() == [0, 0, 3]


def test_with_nothing_running_it_never_waits():
    # Alone with a slow pool that is free and nothing to wait for.
    assert outcome([nodes("T4")], [job(0, 5), job(7, 5)])["start"].tolist() == [0, 7]


def test_jobs_beyond_the_forty_shortest_keep_a_slow_pool_busy():
    # 100 jobs at once on 24 V100 (10 s) and 24 T4 (35 s). Of the 76 that must wait, 40 would end
    # on the V100s by 30, before any T4; all of them only by 50. So the T4s are of use.
    groups = [nodes("V100", 8, 3), nodes("T4", 8, 3)]
    found = outcome(groups, [job(0, 10, 35) for _ in range(100)])
    at_once = found["start"] == 0
    assert np.bincount(found["pool"][at_once]).tolist() == [24, 24]
    assert found["finish"].max() == 40


@every("seed", range(30), quick=2)
def test_the_tail_of_a_long_queue_is_planned_as_documented(seed):
    # More GPUs than planned jobs, so that every long queue has a tail; gangs and three pools.
    rng = np.random.default_rng(seed)
    groups = [nodes("V100", 8, 3), nodes("T4", 8, 3), nodes("P100", 4, 4)]
    jobs = [
        job(float(at), *rng.uniform(1, 60, 3).round(2), gpus=int(rng.choice([1, 1, 1, 2, 4])))
        for at in np.sort(rng.uniform(0, 8, 150)).round(3)
    ]
    world = build(groups, jobs)
    case = as_case(world)
    plain = run_plain(PlainWorld(case), make("drain-argmin", case))
    np.testing.assert_allclose(play(world, "drain-argmin").outcome["start"], plain.start, atol=1e-9)


def rough_job(rng, at):
    """A gang, some on one node, or a slice; checkpoints and restricted pools for some."""
    gpus, more = int(rng.choice([1, 1, 1, 2, 3, 4])), {}
    if gpus > 1:
        more = {"one_node": int(rng.random() < 0.5), "communication": float(rng.choice([0, 0.5]))}
    elif rng.random() < 0.3:
        more = {"share": int(rng.choice([250, 500, 700]))}
    if rng.random() < 0.6:
        more |= {"checkpoint": float(rng.uniform(0, 1)), "interval": float(rng.uniform(1, 5))}
    if rng.random() < 0.3:
        more["allowed"] = sorted(rng.choice(3, 2, replace=False).tolist())
    seconds = rng.uniform(1, 60, 3)
    return job(at, *seconds, est=tuple(seconds * rng.lognormal(0, 0.3, 3)), gpus=gpus, **more)


@every("seed", range(20), quick=1)
def test_the_tail_is_as_documented_where_nodes_fail_and_jobs_are_of_all_kinds(seed):
    rng = np.random.default_rng(seed)
    groups = [nodes("V100", 8, 4), nodes("T4", 4, 6), nodes("P100", 2, 8)]
    jobs = [rough_job(rng, float(at)) for at in np.sort(rng.uniform(0, 10, 150))]
    events = []
    for node in rng.choice(18, 10, replace=False).tolist():
        at = float(rng.uniform(3, 12))
        events.append(fails(at, node, planned=bool(rng.random() < 0.3)))
        events.append(is_repaired(at + float(rng.uniform(2, 9)), node))
    world = build(groups, jobs, events=sorted(events, key=lambda event: event["time"]))
    case = as_case(world)
    plain = run_plain(PlainWorld(case), make("drain-argmin", case))
    kernel = play(world, "drain-argmin")
    assert kernel.outcome["restarts"].sum() > 0
    np.testing.assert_allclose(kernel.outcome["start"], plain.start, atol=1e-9)


@pytest.mark.slow
def test_a_tail_has_at_most_216_jobs():
    rng = np.random.default_rng(0)
    groups = [nodes("V100", 8, 16), nodes("T4", 8, 16)]
    world = build(groups, [job(0, *rng.uniform(1, 60, 2)) for _ in range(560)])
    case = as_case(world)
    plain = run_plain(PlainWorld(case), make("drain-argmin", case))
    np.testing.assert_allclose(play(world, "drain-argmin").outcome["start"], plain.start, atol=1e-9)


@every("seed", range(30), quick=3)
def test_in_long_queues_the_shortest_jobs_and_those_of_the_choices_are_planned(seed):
    # More than 40 jobs wait: three copies of all that a random case has, at once.
    case = random_case(seed)
    jobs = np.concatenate([case.jobs] * 3)
    jobs["arrival"], jobs["id"] = jobs["arrival"].min(), np.arange(len(jobs))
    tables = {name: np.concatenate([getattr(case, name)] * 3) for name in TABLES}
    case = case._replace(jobs=jobs, **tables)
    plain = run_plain(PlainWorld(case), make("drain-argmin", case))
    kernel = play(from_case(case), "drain-argmin")
    np.testing.assert_allclose(kernel.outcome["start"], plain.start, rtol=1e-9, atol=1e-9)
