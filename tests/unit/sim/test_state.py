"""Copies of the simulator's state."""

from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.policies import registry
from adlro.sim.state import clone
from tests.worlds import play, play_moments, random_world, state_of

SEEDS = st.integers(0, 10**6)
NAMES = st.sampled_from(registry.names())


def photograph(state):
    return [array.tobytes() for array in state]


@given(SEEDS, NAMES, st.integers(1, 60))
@settings(deadline=None, max_examples=40)
def test_a_clone_plays_on_to_the_same_end_and_leaves_the_original_alone(seed, name, moments):
    world = random_world(seed)
    policy = registry.load(name, world.setting)
    expected = play(world, policy, seed)
    state, outcome, spans = state_of(world, policy, seed)
    play_moments(world, policy, state, outcome, spans, moments)
    twin, twin_outcome, twin_spans = clone(state), outcome.copy(), spans.copy()
    before = photograph(state)
    play_moments(world, policy, twin, twin_outcome, twin_spans)
    assert photograph(state) == before
    assert twin_outcome.tobytes() == expected.outcome.tobytes()
    assert twin_spans.tolist() == expected.spans.tolist()
    assert twin.gpus.tobytes() == expected.gpus.tobytes()
    after = photograph(twin)
    play_moments(world, policy, state, outcome, spans)
    assert outcome.tobytes() == expected.outcome.tobytes()
    assert state.world["job_seconds"] == twin.world["job_seconds"] == expected.world["job_seconds"]
    assert photograph(twin) == after
