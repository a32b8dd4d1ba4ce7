import numpy as np
import pytest

from adlro.evaluate.downtime import Window, downtime, up_seconds, window
from adlro.model.state import EVENT, NODE
from tests.looped import every
from tests.worlds import fails, fill, gpu_speed, is_repaired, play, random_world


def _events(*specs):
    return fill(EVENT, list(specs))


def _intervals(*specs):
    down = downtime(_events(*specs), Window(100.0, 200.0))
    return list(zip(down.node.tolist(), down.start.tolist(), down.end.tolist(), strict=True))


def test_a_node_is_down_from_its_failure_to_its_repair():
    assert _intervals(fails(110, 1), is_repaired(130, 1)) == [(1, 110, 130)]


def test_downtime_before_and_after_the_run_is_clipped():
    before, after = fails(0, 0, planned=True), fails(190, 1)
    assert _intervals(before, is_repaired(120, 0), after) == [(0, 100, 120), (1, 190, 200)]


def test_a_failure_of_a_node_that_is_down_does_nothing():
    again = fails(110, 0), fails(120, 0), is_repaired(130, 0), is_repaired(140, 0)
    assert _intervals(*again) == [(0, 110, 130)]


def test_nodes_do_not_mix():
    both = fails(110, 0), fails(120, 1), is_repaired(130, 0), is_repaired(150, 1)
    assert _intervals(*both) == [(0, 110, 130), (1, 120, 150)]


def test_a_repair_alone_and_events_outside_the_run_give_no_downtime():
    outside = fails(10, 0), is_repaired(90, 0), gpu_speed(110, 1, 0.5), is_repaired(120, 1)
    assert _intervals(*outside, fails(200, 1), fails(300, 2)) == []


def test_shutdowns_are_distinguished_from_failures():
    events = _events(fails(110, 0), is_repaired(120, 0), fails(130, 0, planned=True))
    assert downtime(events, Window(100.0, 200.0)).planned.tolist() == [False, True]


def test_without_events_every_node_is_up_the_whole_time():
    within = Window(0.1, 0.3)
    assert (up_seconds(_events(), np.zeros(3, NODE), within) == within.length).all()


@every("seed", range(40))
def test_time_up_is_the_busy_and_the_idle_time_of_the_run(seed):
    world = random_world(seed, drains=False)
    result = play(world, "restless", seed)
    nodes = world.empty.nodes
    up = up_seconds(world.workload.events, nodes, window(world.workload, result))
    counted = result.gpus["busy"].sum() + result.totals["idle_seconds"]
    assert (up * nodes["gpus"]).sum() == pytest.approx(counted, rel=1e-9, abs=1e-6)
