"""ADLRO: what a network makes of the choices, and what no network can do."""

import numpy as np
import pytest

from adlro.nets.q_network import Network, flat
from adlro.policies import registry
from adlro.sim import simulator
from tests.plain.cases import crowded, random_case
from tests.plain.learned import as_params, random_net
from tests.worlds import build, from_case, job, nodes

DRAIN = np.array([0, 0, 0, 1.0, 0.0, 0, 1, 0])  # a member without units: the drain cost alone
EPISODES = 50  # in one test


def by(name, cost, drain=0.0):
    """Params by which a choice costs its feature times so much; the feature is never negative."""
    one = np.ones((1, 1))
    nothing = np.zeros(1)
    return flat(
        Network((name,), np.array([drain, 0.0]), one, nothing, one, nothing, np.array([cost]))
    )


def played(world, params, seed=0):
    policy = registry.load("adlro", world.setting)._replace(params=np.array(params, np.float64))
    return simulator.run(world.empty, world.workload, policy, seed)


def start_and_pool(groups, jobs, params):
    outcome = played(build(groups, jobs), params).outcome
    return outcome["start"].tolist(), outcome["pool"].tolist()


def test_by_the_drain_cost_alone_it_waits_where_that_drains_the_queue_sooner():
    # As worked out for drain-argmin: at 1, job 2 ends at 9 on the free T4 and at 2 + 7.5 on the
    # V100; then job 3 (both T4s, 8 s) ends at 17 or at 10: 8 + 16 s or 8.5 + 9 s.
    groups = [nodes("T4", 2), nodes("V100")]
    jobs = [job(0, 2, 99), job(0, 99, 2), job(1, 8, 7.5), job(1, 8, 99, gpus=2)]
    assert start_and_pool(groups, jobs, DRAIN) == ([0, 0, 2, 2], [0, 1, 1, 0])


def test_a_network_that_dislikes_waiting_never_waits():
    # The same, but to wait costs 100 tau: job 2 starts on the T4 at once.
    groups = [nodes("T4", 2), nodes("V100")]
    jobs = [job(0, 2, 99), job(0, 99, 2), job(1, 8, 7.5), job(1, 8, 99, gpus=2)]
    assert start_and_pool(groups, jobs, by("wait", 100.0, drain=1.0)) == (
        [0, 0, 1, 9],
        [0, 1, 0, 0],
    )


def test_a_network_that_likes_to_wait_waits_only_while_something_runs():
    # Job 1 could start at 1 and waits for job 0, which ends at 4; job 2 comes to an idle cluster.
    jobs = [job(0, 4), job(1, 4), job(20, 4)]
    assert start_and_pool([nodes("V100", 2)], jobs, by("wait", -1.0))[0] == [0, 4, 20]


@pytest.mark.parametrize(("seconds", "starts"), [(5, 101), (4.9, 1)])
def test_no_network_keeps_a_job_waiting_for_over_twenty_times_its_run_time(seconds, starts):
    # At 1 job 0 has 100 s to go, and job 1 could start: 20 * 5 s is long enough, 98 s is not.
    jobs = [job(0, 101), job(1, seconds)]
    found = start_and_pool([nodes("V100", 2)], jobs, by("wait", -1.0))[0]
    assert found == [0, starts]


def test_on_an_idle_cluster_any_network_does_what_min_min_would():
    # The V100 takes 4 s, the T4 9 s; this network likes a long run time.
    likes_long = by("seconds", -1.0)
    assert start_and_pool([nodes("T4"), nodes("V100")], [job(0, 9, 4)], likes_long) == ([0], [1])
    jobs = [job(0, 99, 9), job(1, 9, 4)]  # but where something runs it has its way
    assert start_and_pool([nodes("T4"), nodes("V100", 2)], jobs, likes_long)[1] == [1, 0]


def test_a_network_may_prefer_priority():
    # At 3 the GPU goes to job 3, longer but more important; job 0 holds the other all the time.
    jobs = [job(0, 50), job(0, 3), job(1, 1, priority=0.1), job(1, 2, priority=0.9)]
    assert start_and_pool([nodes("V100", 2)], jobs, by("priority", -1.0))[0] == [0, 0, 5, 3]


def test_equal_predictions_leave_the_choice_to_min_min():
    # Nothing counts; the shorter job 2 goes first.
    jobs = [job(0, 3), job(1, 2), job(1, 1)]
    assert start_and_pool([nodes("V100")], jobs, [0, 0, 0, 0.0, 0.0])[0] == [0, 4, 3]


@pytest.mark.parametrize("block", range(4))
def test_a_network_that_follows_min_min_gives_min_mins_schedule(block):
    same = 0
    for seed in range(block * 25, block * 25 + 25):
        world = from_case(random_case(seed))
        own = registry.load("min-min", world.setting)
        expected = simulator.run(world.empty, world.workload, own, seed)
        if len(world.workload.events) == 0:  # an empty cluster in part: Min-Min waits for repair
            found = played(world, by("planned", -1.0), seed)
            assert found.outcome.tobytes() == expected.outcome.tobytes(), seed
            same += 1
    assert same > 5


@pytest.mark.parametrize(
    "block", [*range(4), *(pytest.param(b, marks=pytest.mark.slow) for b in range(4, 12))]
)
def test_no_network_ever_asks_for_what_cannot_be(block):
    # Slices, gangs, quotas, failures, long queues; weights from small to such that sums overflow.
    for seed in range(block * EPISODES, (block + 1) * EPISODES):
        case = random_case(seed)
        world = from_case(crowded(case) if seed % 5 == 0 else case)
        with np.errstate(over="ignore"):
            net = random_net(seed, (8, 8), scale=10.0 ** (seed % 7 * 50 - 1))
        result = played(world, as_params(net), seed)  # a PolicyError would be the fault
        assert result.totals["finished"] == len(world.workload.jobs)
        assert result.totals["preemptions"] == 0


def test_params_and_memory_are_what_a_network_needs():
    world = build([nodes("V100", 2)], [job(0, 1)])
    ready = registry.load("adlro", world.setting)
    assert not ready.is_preemptive
    assert simulator.is_compiled(ready.decide)
    assert played(world, ready.params).outcome["start"].tolist() == [0]
