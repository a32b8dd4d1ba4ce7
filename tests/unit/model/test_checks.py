"""Feasibility checks of decisions on a view."""

import numpy as np
import pytest

from adlro.model import violations
from adlro.model.checks import check_start, check_stop
from adlro.model.state import DECISION
from adlro.sim.simulator import ViewCopies
from tests.unit.model.test_violations import strained_world
from tests.worlds import Scripted, play_moments, start, state_of, unlocked


@pytest.fixture
def view():
    """At time 0 job 0 runs on GPU 0 of node 0, with one core free; jobs 1-3 wait; job 4 arrives."""
    policy = Scripted([start(0, gpu=0)])
    state, memory = state_of(strained_world(), policy)
    play_moments(policy, state, memory, 1)
    return unlocked(ViewCopies(state).view())


@pytest.mark.parametrize(
    ("decision", "fault"),
    [
        (start(0), violations.NOT_WAITING),
        (start(4), violations.NOT_WAITING),
        (start(3, 3), violations.NO_SUCH_POOL),
        (start(3, -1), violations.NO_SUCH_POOL),
        (start(1, 1), violations.NOT_ELIGIBLE),
        (start(1), violations.NO_ROOM),  # the whole pool
        (start(2, node=0), violations.NO_ROOM_THERE),  # two cores
        (start(3, gpu=0), violations.NO_ROOM_THERE),
        (start(3, node=2), violations.NO_ROOM_THERE),  # of pool 1
        (start(3, node=1, gpu=1), violations.NO_ROOM_THERE),  # of node 0
        (start(3, gpu=99), violations.NO_ROOM_THERE),
        (start(3, node=-2), violations.NO_ROOM_THERE),
        (start(2), violations.NONE),
        (start(2, node=1), violations.NONE),
        (start(3, gpu=1), violations.NONE),
        (start(3, 2), violations.NONE),
    ],
)
def test_a_start_is_checked_against_queue_mask_and_room(view, decision, fault):
    before = [np.asarray(part).tobytes() for part in view]
    waiting = view.queue["job"].tolist()
    place = waiting.index(decision[1]) if decision[1] in waiting else -1
    assert check_start(np.array([decision], DECISION)[0], place, view) == fault
    assert [np.asarray(part).tobytes() for part in view] == before


@pytest.mark.parametrize(
    ("age", "fault"),
    [(3, violations.TOO_YOUNG), (5 - 2e-9, violations.TOO_YOUNG), (5, violations.NONE)],
)
def test_a_run_may_be_preempted_after_its_minimum_run_time(view, age, fault):
    view.jobs["least_run"][0] = 5
    assert check_stop(0, view._replace(now=float(age))) == fault


def test_a_job_that_does_not_run_cannot_be_preempted(view):
    assert check_stop(-1, view) == violations.NOT_RUNNING
