"""Features of pairs, worked out by hand, and what a network makes of them."""

from math import log

import numpy as np
import pytest

from adlro.features.pair_kernel import PAIR_FEATURES
from adlro.model.state import RUNNING, WAITING
from adlro.model.view import View
from adlro.nets.pair_network import weigh
from adlro.nets.q_network import Network, flat
from adlro.planning.active_jobs import ActiveJobs
from tests.worlds import lay, nodes, records

NOW = 100.0
LAYOUT = lay(nodes("V100", 2), nodes("T4", 1))
JOBS = records(
    [
        {"arrival": 10.0, "checkpoint": 20.0},
        {"arrival": 100.0, "checkpoint": 20.0},
        {"arrival": 40.0, "checkpoint": 15.0},
        {"arrival": 50.0},
    ]
)
EST = np.array([[120.0, 240.0], [240.0, 240.0], [60.0, 999.0], [500.0, 500.0]])
# Job 0 runs on the T4 and has half of its work left; job 1 is new; job 2 has been stopped and may
# not use the T4; job 3 is pinned to a GPU beyond those of `room`.
ACTIVE = ActiveJobs(
    rows=np.arange(4),
    run=np.array([0, -1, -1, 1]),
    pool=np.array([1, -1, -1, 0]),
    left=np.array([0.5, 1.0, 0.5, 1.0]),
    begun=np.array([True, False, True, False]),
    restarts=np.zeros(4, np.int64),
    pinned=np.array([False, False, False, True]),
    width=np.ones(4),
    served=np.zeros(4),
    seconds=np.array([[60.0, 120.0], [240.0, 240.0], [30.0, np.inf], [500.0, 500.0]]),
    room=np.array([2.0, 1.0]),
)
TAU = (60 * 240 * 30) ** (1 / 3)


def seen(jobs, est):
    """The moment at which all of these jobs have arrived; who waits and runs is told apart."""
    queue, eligible = np.zeros(0, WAITING), np.zeros((0, 2), np.bool_)
    cluster = (LAYOUT.pools, LAYOUT.nodes, LAYOUT.gpus)
    rows = np.arange(len(jobs))
    return View(NOW, jobs, est, queue, eligible, np.zeros(0, RUNNING), *cluster, len(jobs), rows)


def costs(first, active=ACTIVE, jobs=JOBS, est=EST, residual=(0.0, 0.0)):
    """Cost [A, P] by a network that is linear in the features; infinite where no plan may go."""
    one, nothing = np.ones((1, 1)), np.zeros(1)
    weights = np.array([[first.get(name, 0.0)] for name in PAIR_FEATURES])
    network = Network(
        PAIR_FEATURES, np.array(residual), weights, np.full(1, 20.0), one, nothing, np.ones(1)
    )
    worth = weigh(active, seen(jobs, est), flat(network, PAIR_FEATURES))
    return np.array([[-log(x) - 20 if x > 0 else np.inf for x in row] for row in worth])


MOVES = {  # job 0 on the V100s: it would leave the T4, and restore for 20 s
    "runs_here": 0,
    "runs_there": 1,
    "srpt": -log(1 / 61 * 60 / 80 * TAU),
    "time_left": log(60 / TAU),
    "speed_here": 0,
    "resumes": 0,
    "restart": log(1 + 20 / 60),
    "age": log(1 + 90 / 60),
    "done": 0.5,
    "others_speed": 0,  # both others are as fast there as anywhere
    "advantage": 0,
    "lead": log(2),
    "rank": log(2 / 3),  # job 2 needs less; 3 GPUs
    "rank_here": log(2 / 2),
    "crowd": log(3 / 3),
    "wanted": log(4 / 2),  # all three; of equals the first pool
    "arriving_speed": 0,  # 4 arrivals tell nothing
    "arriving_advantage": 0,
    "arriving_load": 0,
    "pool_share": 2 / 3,
}
STAYS = MOVES | {  # on the T4
    "runs_here": 1,
    "runs_there": 0,
    "srpt": -log(1 / 61 * 1 / 2 * 1.05 * TAU),
    "speed_here": log(1 / 2),
    "restart": 0,
    "others_speed": log((1 / 241) / (1 / 241 + 1 / 31)),
    "advantage": log(1 / 2) - log((1 / 241) / (1 / 241 + 1 / 31)),
    "lead": log(1 / 2),
    "rank_here": log(1 / 1),  # job 1 needs more, job 2 may not
    "wanted": log(1 / 1),
    "arriving_advantage": log(1 / 2),
    "pool_share": 1 / 3,
}


@pytest.mark.parametrize("name", PAIR_FEATURES)
def test_a_feature_of_a_run_is_what_its_name_says(name):
    found = costs({name: 1.0})[0]
    np.testing.assert_allclose(found, [MOVES[name], STAYS[name]], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "new", "stopped"),
    [("resumes", 0, 1), ("restart", 0, log(1 + 15 / 30)), ("age", 0, log(1 + 60 / 30)),
     ("rank", log(3 / 3), log(1 / 3)), ("lead", 0, 5)],
)  # fmt: skip
def test_who_waits_may_be_new_or_have_a_checkpoint_to_restore(name, new, stopped):
    found = costs({name: 1.0})[:, 0]
    np.testing.assert_allclose(found[1:3], [new, stopped], rtol=1e-9, atol=1e-9)


def test_the_pinned_and_pools_that_are_closed_are_no_pairs():
    assert np.isinf(costs({})).tolist() == [
        [False, False],
        [False, False],
        [False, True],
        [True] * 2,
    ]


def test_without_a_network_a_pair_costs_what_it_does_to_hetero_srpt():
    found = costs({}, residual=(1.0, 0.0))
    assert found[0] == pytest.approx([MOVES["srpt"], STAYS["srpt"]])


def test_the_last_arrivals_tell_who_is_fast_where_and_how_much_there_is_to_do():
    # 8 arrivals since 10: four with 100 s here and 200 there, four the other way round. A pool's
    # mean speed is (4 + 4 / 2) / 8; their work is 800 s, three GPUs have had 90 s each.
    jobs = records([{"arrival": 10.0, "checkpoint": 20.0}] * 8)
    est = np.array([[100.0, 200.0], [200.0, 100.0]] * 4)
    speed = log(6 / 8)
    found = {name: costs({name: 1.0}, jobs=jobs, est=est)[0, 1] for name in PAIR_FEATURES[-4:-1]}
    assert found == pytest.approx(
        {
            "arriving_speed": speed,
            "arriving_advantage": log(1 / 2) - speed,
            "arriving_load": log(800 / 270),
        }
    )


def test_jobs_that_need_equally_long_have_one_rank():
    same = ACTIVE._replace(seconds=np.array([[60.0, 120.0]] * 4))
    assert costs({"rank": 1.0}, same)[:3, 0] == pytest.approx([log(1 / 3)] * 3)


def test_a_cost_beyond_all_bounds_still_leaves_a_pair_open():
    found = costs({"pool_share": 1e6})
    assert np.isfinite(found[0]).all()
