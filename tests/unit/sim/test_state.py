"""Copies of the simulator's state."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.model.state import READING
from adlro.sim.state import clone
from tests.worlds import ANYWHERE, Restless, made_ready, play, play_moments, random_world, state_of

SEEDS = st.integers(0, 10**6)
NAMES = st.sampled_from([*ANYWHERE, Restless.name])


def photograph(state):
    return [array.tobytes() for array in state]


@given(SEEDS, NAMES, st.integers(1, 60))
@settings(deadline=None, max_examples=60)
def test_a_clone_plays_on_to_the_same_end_and_leaves_the_original_alone(seed, name, moments):
    world = with_telemetry(random_world(seed))
    policy = made_ready(name, world)
    expected = play(world, policy, seed)
    state, outcome, spans = state_of(world, policy, seed)
    play_moments(world, policy, state, outcome, spans, moments)
    twin, twin_outcome, twin_spans = clone(state), outcome.copy(), spans.copy()
    before = photograph(state)
    play_moments(world, policy, twin, twin_outcome, twin_spans)
    assert photograph(state) == before
    assert twin_outcome.tobytes() == expected.outcome.tobytes()
    assert twin_spans[: len(expected.spans)].tolist() == expected.spans.tolist()
    assert twin.world[0]["spans"] == len(expected.spans)
    assert twin.gpus.tobytes() == expected.gpus.tobytes()
    after = photograph(twin)
    play_moments(world, policy, state, outcome, spans)
    assert outcome.tobytes() == expected.outcome.tobytes()
    for key in ("job_seconds", "idle_seconds", "stranded_seconds", "events", "now"):
        assert state.world[key] == twin.world[key] == expected.world[key]
    assert photograph(twin) == after


def with_telemetry(world):
    """The world with readings that differ from type to type and model to model."""
    types, models = len(world.workload.colocation), world.workload.est.shape[1]
    readings = np.zeros((types + 1, models), READING)
    for k, name in enumerate(READING.names):
        readings[name] = np.arange(1 + k, 1 + k + readings.size).reshape(readings.shape)
    return world._replace(workload=world.workload._replace(readings=readings))


def test_a_clone_holds_what_is_in_use_and_its_queue_starts_at_the_front():
    world = random_world(7)
    policy = made_ready("fcfs", world)
    state, outcome, spans = state_of(world, policy)
    play_moments(world, policy, state, outcome, spans, 5)
    twin = clone(state)
    head, waiting = (int(state.world[0][key]) for key in ("head", "waiting"))
    assert twin.world[0]["head"] == 0
    assert twin.queue[:waiting].tolist() == state.queue[head : head + waiting].tolist()
    assert twin.undone[:waiting].tolist() == state.undone[head : head + waiting].tolist()
    kept, copied = state.eligible[head : head + waiting], twin.eligible[:waiting]
    assert copied.tolist() == kept.tolist()
