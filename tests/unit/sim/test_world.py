"""Copies of the simulator's world."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.model.state import READING
from adlro.sim.simulator import clone
from adlro.sim.world import STATE_FIELDS
from tests.worlds import ANYWHERE, Restless, made_ready, play, play_moments, random_world, state_of

SEEDS = st.integers(0, 10**6)
NAMES = st.sampled_from([*ANYWHERE, Restless.name])


def photograph(state, memory):
    kept = (getattr(state, name) for name in (*STATE_FIELDS, "outcome", "spans"))
    return [array.tobytes() for array in (*kept, memory)]


@given(SEEDS, NAMES, st.integers(1, 60))
@settings(deadline=None, max_examples=60)
def test_a_clone_runs_to_the_same_end_and_leaves_the_original_unchanged(seed, name, moments):
    world = with_telemetry(random_world(seed))
    policy = made_ready(name, world)
    expected = play(world, policy, seed)
    state, memory = state_of(world, policy, seed)
    play_moments(policy, state, memory, moments)
    twin, twin_memory = clone(state), memory.copy()
    before = photograph(state, memory)
    play_moments(policy, twin, twin_memory)
    assert photograph(state, memory) == before
    assert twin.outcome.tobytes() == expected.outcome.tobytes()
    assert twin.spans[: len(expected.spans)].tolist() == expected.spans.tolist()
    assert twin.totals[0]["spans"] == len(expected.spans)
    assert twin.gpus.tobytes() == expected.gpus.tobytes()
    after = photograph(twin, twin_memory)
    play_moments(policy, state, memory)
    assert state.outcome.tobytes() == expected.outcome.tobytes()
    for key in ("job_seconds", "idle_seconds", "stranded_seconds", "events", "now"):
        assert state.totals[key] == twin.totals[key] == expected.totals[key]
    assert photograph(twin, twin_memory) == after


def with_telemetry(world):
    """The world with different telemetry readings for each type and model."""
    types, models = len(world.workload.colocation), world.workload.est.shape[1]
    readings = np.zeros((types + 1, models), READING)
    for k, name in enumerate(READING.names):
        readings[name] = np.arange(1 + k, 1 + k + readings.size).reshape(readings.shape)
    return world._replace(workload=world.workload._replace(readings=readings))


def test_a_clone_holds_the_part_in_use_and_its_queue_starts_at_the_front():
    world = random_world(7)
    policy = made_ready("fcfs", world)
    state, memory = state_of(world, policy)
    play_moments(policy, state, memory, 5)
    twin = clone(state)
    head, waiting = (int(state.totals[0][key]) for key in ("head", "waiting"))
    assert twin.totals[0]["head"] == 0
    assert twin.queue[:waiting].tolist() == state.queue[head : head + waiting].tolist()
    assert twin.undone[:waiting].tolist() == state.undone[head : head + waiting].tolist()
    kept, copied = state.eligible[head : head + waiting], twin.eligible[:waiting]
    assert copied.tolist() == kept.tolist()
