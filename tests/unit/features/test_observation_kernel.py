"""The paper's state and action."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.errors import ConfigError
from adlro.features.observation_kernel import MOST_WAITING, act, allow, observe, sizes
from adlro.model.state import DECISION, START
from adlro.sim.signature import compiled_steps
from adlro.sim.simulator import ViewCopies, clone
from adlro.sim.world import decision_buffer
from tests.worlds import (
    Scripted,
    build,
    fails,
    job,
    lay,
    nodes,
    random_world,
    start,
    state_of,
    unlocked,
)

TWO_NODES = [nodes("V100", 2), nodes("T4", 1)]


def at_first_moment(world, *starts):
    """The state at the first arrival, after some starts."""
    (state, _), steps = state_of(world, Scripted()), compiled_steps()
    out = decision_buffer(state)
    steps.advance(state)
    out[: len(starts)] = list(starts)
    assert steps.apply(len(starts), out, state) == len(starts)
    return state


def seen(state, window=1):
    """The paper's state and mask, and the view that they are made from."""
    types, view = len(state.colocation), unlocked(ViewCopies(state).view())
    columns = int(state.nodes["gpus"].max())
    x = np.full(len(state.nodes) * columns + 1 + window * (1 + types), np.nan, np.float32)
    may = np.ones(window * len(state.gpus), np.bool_)
    observe(view, window, types, columns, x)
    count = allow(view, window, may)
    return x.tolist(), may, count, view


def test_the_state_is_the_share_of_each_gpu_the_queue_and_the_first_jobs():
    # Job 0, half a GPU, runs on GPU 1 of the first node. The T4's node has but one GPU: its second
    # place counts as taken. Jobs 1 and 2 wait, of types 2 and 0 out of three.
    jobs = [
        job(0, 9, 9, share=500, type=1),
        job(0, 9, 9, type=2, priority=0.25),
        job(0, 9, 9, type=0, priority=0.75),
    ]
    world = build(TWO_NODES, jobs)
    state = at_first_moment(world, start(0, gpu=1))
    queue = math.log(3) / math.log(1001)
    x, *_ = seen(state, window=3)
    slots = [0.25, 0, 0, 1, 0.75, 1, 0, 0, 0, 0, 0, 0]
    assert x == pytest.approx([0, 0.5, 0, 1, queue, *slots], rel=1e-6)


def test_a_gpu_that_is_down_counts_as_handed_out():
    world = build(TWO_NODES, [job(5, 9, 9)], events=[fails(5, 0)])
    x, may, count, _ = seen(at_first_moment(world))
    assert x[:4] == [1, 1, 0, 1]
    assert (may.tolist(), count) == ([False, False, True], 1)


def test_a_queue_of_a_thousand_jobs_or_more_counts_as_1():
    world = build([nodes()], [job(0, 9)] * (MOST_WAITING + 5))
    assert seen(at_first_moment(world))[0][1] == 1


def test_a_start_is_allowed_on_free_gpus_of_pools_that_fit_and_take_the_job():
    # GPU 0 is taken. Job 1 may not use the T4; job 2 needs two GPUs and fits nowhere; job 3 may go
    # anywhere that is free: GPUs 1 and 2.
    jobs = [job(0, 9, 9), job(0, 9, 9, allowed=[0]), job(0, 9, 9, gpus=2), job(0, 9, 9)]
    world = build(TWO_NODES, jobs)
    _, may, count, _ = seen(at_first_moment(world, start(0, gpu=0)), window=3)
    assert may.reshape(3, 3).tolist() == [[False, True, False], [False] * 3, [False, True, True]]
    assert count == 3


def test_an_action_names_the_job_of_its_slot_its_gpu_and_the_pool_of_that():
    world = build(TWO_NODES, [job(0, 9, 9)] * 3)
    state = at_first_moment(world, start(0))
    *_, view = seen(state)
    out = np.zeros(1, DECISION)
    assert act(1 * 3 + 2, view, out) == 1
    assert out[["kind", "job", "pool", "gpu"]][0].item() == (START, 2, 1, 2)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_the_mask_is_exactly_what_the_world_accepts(seed, draw):
    # At every moment each of the actions of three slots is tried on a copy of the world.
    world, rng = random_world(seed), np.random.default_rng(draw)
    (state, _), steps = state_of(world, Scripted()), compiled_steps()
    out, tried = decision_buffer(state), 0
    while steps.advance(state) and tried < 300:
        while True:
            x, may, count, view = seen(state, window=3)
            assert 0 <= min(x) <= max(x) <= 1
            assert count == may.sum()
            for a in range(min(len(view.queue), 3) * len(state.gpus)):
                copy, tried = clone(state), tried + 1
                act(a, view, out)
                assert (steps.apply(1, out, copy) == 1) == may[a]
            if count == 0:
                break
            act(int(rng.choice(np.flatnonzero(may))), view, out)
            steps.apply(1, out, state)


def test_sizes_are_those_of_the_largest_node_and_all_gpus():
    shape = sizes(lay(nodes("V100", 4, count=2), nodes("T4", 8)), types=3, window=2)
    assert shape[:3] == (3, 8, 3)
    assert (shape.observation, shape.actions) == (3 * 8 + 1 + 2 * 4, 2 * 16)


def test_a_window_without_a_job_is_refused():
    with pytest.raises(ConfigError, match=r"^window: at least 1 waiting job must be seen, not 0$"):
        sizes(lay(nodes()), types=1, window=0)
