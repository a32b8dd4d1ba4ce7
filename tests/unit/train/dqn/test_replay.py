"""The replay memory: a ring of moments in which what follows a step is found one moment on."""

import numpy as np
import pytest

from adlro.features.observation_kernel import Sizes
from adlro.train.dqn.replay import Replay

SIZES = Sizes(1, 1, 1, 1, 2)  # O = 1 + 1 + 2 = 4, A = 2
COPIES = 2


def states(moment):
    """Of copy b at a moment: 10 * moment + b in every place; action `moment % 2` is allowed."""
    x = np.repeat(10.0 * moment + np.arange(COPIES), 4).reshape(COPIES, 4).astype(np.float32)
    masks = np.zeros((COPIES, 2), np.bool_)
    masks[:, moment % 2] = True
    return x, masks


def filled(moments, steps=6, batch=200):
    replay = Replay(SIZES, COPIES, steps, batch)
    for m in range(moments):
        replay.see(*states(m))
        replay.add(np.array([0, 1]), np.array([-m, -m - 0.5]), np.array([m % 3 == 2, False]))
    replay.see(*states(moments))
    return replay


@pytest.mark.parametrize(("moments", "kept"), [(1, [0]), (3, [0, 1, 2]), (8, [5, 6, 7])])
def test_the_last_steps_of_each_copy_are_drawn_with_what_followed_them(moments, kept):
    replay = filled(moments)  # 6 steps of 2 copies: three moments
    assert len(replay) == 2 * len(kept)
    batch = replay.sample(np.random.default_rng(0))
    x, following = batch.x[:, 0].numpy(), batch.next_x[:, 0].numpy()
    assert sorted({*x}) == sorted(10.0 * m + b for m in kept for b in range(COPIES))
    moment, copy = np.divmod(x, 10)
    assert (following == x + 10).all()
    assert (batch.actions[:, 0].numpy() == copy).all()
    assert (batch.rewards[:, 0].numpy() == -moment - copy / 2).all()
    ended = (moment % 3 == 2) & (copy == 0)
    assert (batch.lasting[:, 0].numpy() == ~ended).all()
    allowed = ((moment + 1) % 2).astype(int)
    assert (~batch.next_forbidden.numpy()[np.arange(200), allowed]).all()
    assert batch.next_forbidden.numpy()[np.arange(200), 1 - allowed].all()


def test_steps_are_drawn_evenly():
    replay, rng = filled(8), np.random.default_rng(1)
    drawn = np.concatenate([replay.sample(rng).x[:, 0].numpy().copy() for _ in range(50)])
    _, counts = np.unique(drawn, return_counts=True)
    assert len(counts) == 6
    assert counts.max() / counts.min() < 1.15  # 10,000 draws of 6: 1667 each, give or take 37


def test_a_memory_that_was_put_down_gives_the_same_steps():
    replay, copy = filled(8), Replay(SIZES, COPIES, 6, 200)
    copy.restore({name: array.copy() for name, array in replay.arrays().items()})
    drawn = [memory.sample(np.random.default_rng(2)) for memory in (replay, copy)]
    for ours, theirs in zip(*drawn, strict=True):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()
