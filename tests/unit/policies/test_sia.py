"""Sia for rigid jobs: the integer program, its price of waiting and its factor for restarts."""

from types import SimpleNamespace

import numpy as np
import pytest

from adlro.errors import PolicyError
from adlro.policies import sia
from tests.worlds import build, job, made_ready, nodes, play, random_world

ONE = [nodes()]
TWO = [nodes("V100"), nodes("T4")]


@pytest.mark.parametrize(("price", "start"), [(1.1, [50, 50, 0]), (1.5, [0, 0, 50])])
def test_the_price_of_waiting_decides_between_one_gang_and_two_jobs(price, start):
    # G is 1 for each single job and 2 for the gang: costs 1, 1 and 2^-0.5 = 0.71. Gang alone: 0.71
    # + 2 * price; both singles: 2 + price. The gang is cheaper while price < 1.29.
    jobs = [job(0, 50), job(0, 50), job(0, 50, gpus=2)]
    world = build([nodes(gpus=2)], jobs)
    policy = made_ready("sia", world)._replace(params=np.array([60.0, -0.5, price]))
    assert play(world, policy).outcome["start"].tolist() == start


@pytest.mark.parametrize(("cost", "pool"), [(5, 0), (10, 1)])
def test_a_job_moves_only_if_its_goodput_pays_for_the_restart(cost, pool):
    # Job 0 holds the V100 until 70. Job 1 is then 70 s old: G = 1 on the T4 and 1.1 * 70 / (70 +
    # cost) on the V100: 1.027 with a cost of 5 s, 0.963 with 10 s.
    world = build(TWO, [job(0, 70, 7000), job(0, 1000, 1100, checkpoint=cost)])
    assert play(world, "sia").outcome["pool"].tolist() == [0, pool]


def test_each_restart_makes_the_next_less_likely():
    # As above with a cost of 5 s, but job 1 is lost once before: 1.1 * (170 - 5) / (170 + 5) = 1.04
    # at 170, and with two restarts and a cost of 8 s 1.1 * (170 - 16) / 178 = 0.95.
    outcome = [
        play(build(TWO, [job(0, 170, 9000), job(0, 1000, 1100, checkpoint=cost)],
                   events=[event for t in times for event in fall(t)]), "sia").outcome
        for cost, times in ((5, (20,)), (8, (20, 40)))
    ]  # fmt: skip
    assert [o["pool"][1] for o in outcome] == [0, 1]


def fall(at):
    """The T4's node fails and is up again two seconds later."""
    return [
        {"time": at, "kind": 2, "node": 1, "value": 1},
        {"time": at + 2, "kind": 1, "node": 1},
    ]


def test_a_job_goes_where_it_gains_most_over_its_slowest_gpu():
    # G: job 0 2 and 1, job 1 10 and 1. Costs: 0.71 + 1 against 1 + 0.32.
    outcome = play(build(TWO, [job(0, 10, 20), job(0, 10, 100)]), "sia").outcome
    assert outcome["pool"].tolist() == [1, 0]


def test_it_preempts_at_the_next_round_and_not_before():
    # Job 1 comes at 10 and starts on the T4; the round is due at 60. As it is: 1 + 1, and 1.1 for
    # job 2. Job 1 on the V100 (G = 10 * 50 / 51) and job 2 on the T4: 0.32 + 1, and 1.1 for job 0.
    jobs = [
        job(0, 900, 1000, checkpoint=1, allowed=[0]),
        job(10, 100, 1000, checkpoint=1),
        job(10, 999, 999, allowed=[1]),
    ]
    result = play(build(TWO, jobs), "sia")
    assert result.outcome["restarts"].tolist() == [1, 1, 0]
    assert result.outcome["start"].tolist() == [0, 10, 60]
    assert result.spans["end"].min() == 60


def test_it_sets_no_timer_when_no_round_could_change_anything():
    days = 200 * 24 * 3600
    world = build(TWO, [job(0, days, 2 * days), job(10, days, days, allowed=[1])])
    assert play(world, "sia").totals["decisions"] < 12


def test_a_slice_is_worth_a_gpu_and_takes_its_share():
    jobs = [job(0, 100, share=250), job(0, 100, share=250), job(0, 100, share=500), job(0, 9)]
    assert play(build(ONE, jobs), "sia").outcome["start"].tolist() == [0, 0, 0, 100]


def test_a_program_that_is_not_solved_stops_the_run_in_one_line(monkeypatch):
    failed = SimpleNamespace(status=1, message="Time limit\n reached.", x=np.ones(1))
    monkeypatch.setattr(sia, "milp", lambda *_, **__: failed)
    said = "^policy sia at 7 s: its integer program was not solved: Time limit reached.$"
    with pytest.raises(PolicyError, match=said):
        play(build(ONE, [job(7, 5)]), "sia")


def test_of_a_program_that_takes_too_many_nodes_the_best_found_is_taken(monkeypatch):
    said = []
    milp = sia.milp
    monkeypatch.setattr(sia, "MOST_NODES", 20)
    monkeypatch.setattr(sia, "milp", lambda *a, **k: said.append(milp(*a, **k)) or said[-1])
    world = random_world(2_167)  # its first program takes 25,000 nodes
    finish = play(world, "sia", 2_167).outcome["finish"]
    assert any(found.status == 4 and found.mip_node_count >= 20 for found in said)
    assert (finish >= world.workload.jobs["arrival"]).all()


def test_its_numbers_are_those_of_the_paper():
    assert made_ready("sia", build(ONE, [job(0, 1)])).params.tolist() == [60, -0.5, 1.1]
