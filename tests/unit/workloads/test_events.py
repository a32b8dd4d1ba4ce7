"""What happens to a cluster: who fails when, and how fast what is left still runs."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.model.cluster import lay_out
from adlro.model.state import FAILURE, REPAIR, SPEED
from adlro.workloads import events
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.scenario_files import refusal

HOUR = 3600.0
FIRST = 50.0  # the first arrival, in seconds
ARRIVALS = np.array([FIRST, 100 * HOUR])
UNTIL = 224 * HOUR  # twice the last arrival and a day
KIND = {"name": "t", "share": 1, "kind": "ml", "size": {"law": "constant", "seconds": 9}}


def group(name="n", count=1, gpus=2, **more):
    more = {"gpu": "V100", "cores": 9, "memory_gb": 9, **more}
    return {"name": name, "count": count, "gpus": gpus, **more}


def made(*groups, **more):
    """A scenario of such nodes; a node that nothing happens to is the last."""
    nodes = [*groups, group("calm", gpu="T4")]
    return Scenario.model_validate(
        {"name": "small", "cluster": {"nodes": nodes}, "types": [KIND], **more}
    )


def draw(scenario, seed=0, arrivals=ARRIVALS):
    return events.draw(scenario, lay_out(scenario.cluster), arrivals, (seed, 4))


def of_node(events, node):
    """Kinds and times of what happens to one node."""
    mine = events[events["node"] == node]
    return list(zip(mine["kind"].tolist(), mine["time"].tolist(), strict=True))


def speeds(events, gpu):
    """Hours, speeds and heat of one GPU."""
    mine = events[(events["kind"] == SPEED) & (events["gpu"] == gpu)]
    return [
        (round((time - FIRST) / HOUR, 9), value, heat)
        for time, value, heat in mine[["time", "value", "heat"]].tolist()
    ]


def failures(mtbf_h=10.0, repair_h=2.0, **more):
    return {"mtbf_h": mtbf_h, "repair_h": repair_h, **more}


def wear(**more):
    return {"kind": "wear", "to_h": 10, "speed": 0.5, **more}


def throttling(**more):
    return {"kind": "throttling", "from_h": 2, "to_h": 5, "speed": 0.5, **more}


CHANGES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "kind": st.sampled_from(["wear", "throttling"]),
                "from_h": st.sampled_from([0, 1, 2.5]),
                "to_h": st.sampled_from([3, 5, 40]),
                "speed": st.sampled_from([0.25, 0.5, 0.9]),
                "count": st.integers(1, 2),
                "node": st.sampled_from([None, "n", "calm-0"]),
            }
        ),
        st.fixed_dictionaries(
            {
                "kind": st.just("update"),
                "type": st.just("t"),
                "model": st.sampled_from(["V100", "T4"]),
                "at_h": st.sampled_from([0, 1, 99]),
                "speed": st.sampled_from([0.5, 2]),
            }
        ),
    ),
    max_size=4,
)


@st.composite
def rough(draw):
    """Scenarios in which all kinds of things happen."""
    nodes = []
    for name in ("n", "m"):
        joins = draw(st.sampled_from([0, 0, 3, 30]))
        stay = draw(st.sampled_from([None, None, 2, 50]))
        leaves = None if stay is None else joins + stay
        count = draw(st.integers(2, 3))
        nodes.append(group(name, count=count, joins_h=joins, leaves_h=leaves))
    nodes.append(group("calm", count=2, gpu="T4"))
    mean = st.sampled_from([0.05, 1, 20])
    rates = st.fixed_dictionaries(
        {"mtbf_h": mean, "repair_h": mean, "nodes": st.sampled_from([(), ("n",), ("m", "calm")])}
    )
    failing = draw(st.none() | rates.filter(lambda rate: rate["repair_h"] <= rate["mtbf_h"]))
    return Scenario.model_validate(
        {
            "name": "small",
            "cluster": {"nodes": nodes},
            "types": [KIND],
            "failures": failing,
            "changes": draw(CHANGES),
        }
    )


@given(rough(), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_events_are_sorted_by_time_and_then_by_kind(scenario, seed):
    events = draw(scenario, seed)
    keys = events[["time", "kind"]].tolist()
    assert keys == sorted(keys)
    assert np.isfinite(events["time"]).all()
    assert (events["time"] >= 0).all()


@given(rough(), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_failures_and_repairs_of_a_node_take_turns(scenario, seed):
    events = draw(scenario, seed)
    stays = [g.leaves_h is None for g in lay_out(scenario.cluster).groups]
    for node, stay in enumerate(stays):
        turns = of_node(events, node)
        assert [kind for kind, _ in turns[::2]] == [FAILURE] * len(turns[::2])
        assert [kind for kind, _ in turns[1::2]] == [REPAIR] * len(turns[1::2])
        assert all(one < other for (_, one), (_, other) in itertools.pairwise(turns))
        assert len(turns) % 2 == (0 if stay else 1)  # who stays ends up, who leaves ends down


@given(rough(), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_a_node_is_out_of_service_before_it_joins_and_after_it_leaves(scenario, seed):
    events = draw(scenario, seed)
    for node, owner in enumerate(lay_out(scenario.cluster).groups):
        turns = of_node(events, node)
        if owner.joins_h > 0:
            assert turns[:2] == [(FAILURE, 0), (REPAIR, FIRST + owner.joins_h * HOUR)]
        if owner.leaves_h is not None:
            assert turns[-1][1] <= FIRST + owner.leaves_h * HOUR


@given(rough(), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_the_same_seed_draws_the_same_bytes(scenario, seed):
    assert draw(scenario, seed).tobytes() == draw(scenario, seed).tobytes()


@given(rough(), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_an_event_is_of_one_thing_only(scenario, seed):
    events = draw(scenario, seed)
    moved = events["kind"] == SPEED
    of_gpu, of_cell = moved & (events["gpu"] >= 0), moved & (events["type"] >= 0)
    assert (of_gpu != of_cell)[moved].all()
    assert (events["model"][of_cell] >= 0).all()
    assert (events["node"][~moved] >= 0).all()
    assert (events["value"][moved] > 0).all()
    assert set(events[["gpu", "type", "model"]][~moved].tolist()) <= {(-1, -1, -1)}


def factor(change, hours):
    """What one change does to the speed of its GPU, so many hours after the first arrival."""
    passed = (hours - change["from_h"]) / (change["to_h"] - change["from_h"])
    if change["kind"] == "throttling":
        return change["speed"] if 0 <= passed < 1 else 1.0
    steps = min(max(math.floor(10 * passed), 0), 10)
    return 1 + (change["speed"] - 1) * steps / 10


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "kind": st.sampled_from(["wear", "throttling"]),
                "from_h": st.sampled_from([0, 1, 2.5]),
                "to_h": st.sampled_from([3, 5, 40]),
                "speed": st.sampled_from([0.25, 0.5, 0.9]),
                "node": st.just("n"),
            }
        ),
        max_size=4,
    )
)
@settings(deadline=None, max_examples=60)
def test_the_speed_of_a_gpu_is_the_product_of_what_is_wrong_with_it(changes):
    events = draw(made(group(gpus=1), changes=changes))
    hours = np.linspace(0.003, 50, 173)
    found = [speed_at(events, 0, FIRST + at * HOUR) for at in hours]
    assert found == pytest.approx([math.prod(factor(c, at) for c in changes) for at in hours])


def speed_at(events, gpu, time):
    """The speed that a GPU has at a time."""
    past = events[(events["gpu"] == gpu) & (events["time"] <= time)]
    return past["value"][-1] if len(past) else 1.0


def test_a_scenario_in_which_nothing_happens_has_no_events():
    assert len(draw(made())) == 0


def test_up_and_down_times_are_exponential_with_the_asked_means():
    events = draw(made(group(count=400), failures=failures(nodes=("n",))))
    turns = [[FIRST, *(time for _, time in of_node(events, node))] for node in range(400)]
    steps = [np.diff(times) / HOUR for times in turns]
    up, down = (np.concatenate([step[i::2] for step in steps]) for i in (0, 1))
    # 400 nodes for 224 h in cycles of 12 h: about 7,500 of each, so 1.2 % at one sd.
    assert len(down) == pytest.approx(400 * 224 / 12, rel=0.03)
    assert down.mean() == pytest.approx(2, rel=0.05)
    assert down.std() == pytest.approx(2, rel=0.08)
    assert (down > 2).mean() == pytest.approx(np.exp(-1), abs=0.02)
    assert up.mean() == pytest.approx(10, rel=0.06)  # the last are cut off


def test_failures_go_on_until_twice_the_last_arrival_and_a_day_and_all_are_repaired():
    events = draw(made(group(count=50), failures=failures(1, 40, nodes=("n",))))
    failed, repaired = (events[events["kind"] == kind] for kind in (FAILURE, REPAIR))
    assert UNTIL - 10 * HOUR < failed["time"].max() < UNTIL
    assert repaired["time"].max() > UNTIL
    assert len(failed) == len(repaired)
    assert set(failed["value"].tolist()) == {0}  # none of them planned


def test_only_the_groups_named_fail():
    scenario = made(group("a", 3), group("b", 3), failures=failures(nodes=("b",)))
    assert set(draw(scenario)["node"].tolist()) == {3, 4, 5}


@pytest.mark.parametrize("last", [100, 300, 2000])
def test_a_longer_run_meets_the_same_failures_first(last):
    scenario = made(group(count=5), failures=failures())
    short, long = draw(scenario), draw(scenario, arrivals=np.array([FIRST, last * HOUR]))
    early = [events[events["time"] < 100 * HOUR].tobytes() for events in (short, long)]
    assert early[0] == early[1]


def test_failures_and_changes_leave_each_other_alone():
    nodes = group(count=20)
    both = draw(made(nodes, failures=failures(), changes=[wear(count=5)]))
    failing, wearing = (
        draw(made(nodes, failures=failures())),
        draw(made(nodes, changes=[wear(count=5)])),
    )
    moved = both["kind"] == SPEED
    assert both[~moved].tobytes() == failing.tobytes()
    assert both[moved].tobytes() == wearing.tobytes()


def test_a_change_more_leaves_the_gpus_of_the_others_alone():
    nodes = group(count=20)
    one = draw(made(nodes, changes=[wear(count=5)]))
    two = draw(made(nodes, changes=[wear(count=5), throttling(count=5)]))
    worn = set(one["gpu"].tolist())
    throttled = set(two["gpu"][two["heat"] > 0].tolist())
    assert worn <= set(two["gpu"].tolist())
    assert throttled != worn


def test_another_seed_draws_other_failures_and_other_gpus():
    scenario = made(group(count=20), failures=failures(), changes=[wear()])
    one, other = draw(scenario, 0), draw(scenario, 1)
    assert one["time"].tolist() != other["time"].tolist()
    assert {draw(scenario, seed)["gpu"].max() for seed in range(5)} != {one["gpu"].max()}


def test_wear_takes_ten_equal_steps_and_stays():
    events = draw(made(group(), changes=[wear(node="n", gpu=1, from_h=10, to_h=20)]))
    expected = [(11 + i, pytest.approx(0.95 - 0.05 * i), 0) for i in range(10)]
    assert speeds(events, 1) == expected
    assert len(events) == 10


def test_a_throttled_gpu_is_slow_and_hot_for_a_while():
    events = draw(made(group(), changes=[throttling(node="n", gpu=0, heat_c=7)]))
    assert speeds(events, 0) == [(2, 0.5, 7), (5, 1, 0)]


def test_two_changes_of_one_gpu_multiply_and_their_heat_adds_up():
    both = [
        throttling(node="n", gpu=0),
        throttling(node="n", gpu=0, from_h=4, to_h=6, speed=0.8, heat_c=3),
    ]
    expected = [(2, 0.5, 12), (4, pytest.approx(0.4), 15), (5, 0.8, 3), (6, 1, 0)]
    assert speeds(draw(made(group(), changes=both)), 0) == expected


def test_two_changes_at_one_moment_are_one_event():
    both = [throttling(node="n", gpu=0), throttling(node="n", gpu=0, from_h=5, to_h=6, speed=0.8)]
    assert speeds(draw(made(group(), changes=both)), 0) == [(2, 0.5, 12), (5, 0.8, 12), (6, 1, 0)]


def test_an_update_changes_a_type_on_a_model():
    update = {"kind": "update", "type": "t", "model": "Tesla T4", "at_h": 3, "speed": 1.5}
    [event] = draw(made(group(), changes=[update]))
    fields = ("kind", "value", "type", "model", "gpu", "node")
    assert event["time"] == FIRST + 3 * HOUR
    assert [event[name] for name in fields] == [SPEED, 1.5, 0, 1, -1, -1]


@pytest.mark.parametrize(
    ("change", "gpus"),
    [
        ({"node": "b-1", "gpu": 1}, {7}),
        ({"node": "b-1"}, {6, 7}),
        ({"node": "b"}, {4, 5, 6, 7}),
        ({"node": "b", "gpu": 0}, {4, 6}),
        ({"gpu": 1}, {1, 3, 5, 7, 9}),
        ({"node": "calm"}, {8, 9}),
        ({}, set(range(10))),
    ],
)
def test_a_gpu_that_is_not_named_is_drawn_from_those_that_are_meant(change, gpus):
    scenario = made(group("a", 2), group("b", 2), changes=[throttling(**change)])
    drawn = {int(g) for seed in range(150) for g in draw(scenario, seed)["gpu"]}
    assert drawn == gpus


@pytest.mark.parametrize("count", [1, 3, 8])
def test_as_many_gpus_change_as_asked_for_and_none_twice(count):
    events = draw(made(group(count=4), changes=[throttling(node="n", count=count)]))
    assert len(set(events["gpu"].tolist())) == count
    assert len(events) == 2 * count


def test_a_group_that_joins_late_is_down_from_the_beginning():
    events = draw(made(group(count=2, joins_h=3)))
    assert of_node(events, 1) == [(FAILURE, 0), (REPAIR, FIRST + 3 * HOUR)]
    assert events["value"].tolist() == [1, 1, 0, 0]


def test_a_group_that_leaves_is_planned_to_and_does_not_come_back():
    events = draw(made(group(count=2, leaves_h=3)))
    assert of_node(events, 0) == [(FAILURE, FIRST + 3 * HOUR)]
    assert events["value"].tolist() == [1, 1]


def test_a_node_that_is_down_when_it_leaves_is_not_repaired():
    # Down nearly always: it fails at once and would be repaired long after it has left.
    scenario = made(group(leaves_h=3), failures=failures(0.01, 1000, nodes=("n",)))
    [event] = draw(scenario)
    assert (event["kind"], event["value"]) == (FAILURE, 0)
    assert event["time"] < FIRST + HOUR


def test_more_failures_than_anyone_can_wait_for_are_refused():
    large = adjusted(find_scenario("datacenter"), failures=failures(0.001, 0.001), jobs=100_000)
    message = refusal(prepare, large)
    assert message.startswith("scenario datacenter: failures: mtbf_h = 0.001 makes about ")
    assert message.endswith("failures in this run, more than 5,000,000; raise it")


def test_hours_count_from_the_first_arrival_of_the_workload():
    workload = generate(prepare(find_scenario("rough64")), 3)
    joined = workload.events[(workload.events["kind"] == REPAIR)]
    assert workload.jobs["arrival"][0] + 2 * HOUR in joined["time"].tolist()
