"""The loop of a training: a toy is solved, and it can be put down and taken up at any step."""

import numpy as np
import pytest

from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.model.state import WHOLE
from adlro.policies.registry import Policy
from adlro.train import episode_seeds
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
from adlro.train.dqn.loop import TrainingLoop
from adlro.train.weights import policy
from adlro.workloads.setting import prepare
from tests import toys

TOY = toys.short_and_long()
SMALL = PaperDqnHyperparameters(
    episodes=1200, copies=32, batch=256, samples=8, warm_up=1000, replay=8000, rate=1e-3,
    target_every=50,
)  # fmt: skip
SEEDS = episode_seeds.SELECTION[:40]
RIGHT = {0: (0, 1, 2, 3), 1: (1, 2, 3, 0)}  # GPUs by type: the fast one is left to the short jobs
SHORTSIGHTED = {0: (0, 1, 2, 3), 1: (0, 1, 2, 3)}


def placing(order):
    """First come, first served; the first free GPU of its type's order."""

    def decide(view, params, memory, out):
        queue, nodes, gpus = view.queue, view.nodes, view.gpus
        for g in order[view.jobs[queue[0].job].type] if len(queue) else ():
            if gpus[g].free == WHOLE:
                out[0] = (0, queue[0].job, nodes[gpus[g].node].pool, -1, g, 0.0)
                return 1
        return 0

    return Policy("rule", decide, np.zeros(0), 0, None, 0, False)


def mean_jct_s(player):
    setting = prepare(TOY)
    workloads = {seed: episode_seeds.jobs(setting, seed) for seed in SEEDS}
    return np.mean(
        [
            measure(setting, jobs, run_one(setting, jobs, player, seed)).mean_jct_s
            for seed, jobs in workloads.items()
        ]
    )


def trained(used, seed=0):
    loop = TrainingLoop(TOY, used, seed)
    while loop.episodes < used.episodes:
        loop.step()
    return loop


def weights(loop):
    return b"".join(array.tobytes() for array in loop.learner.network().arrays.values())


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 4))])
def test_a_toy_is_solved_though_what_is_right_pays_only_later(seed):
    best, worse = mean_jct_s(placing(RIGHT)), mean_jct_s(placing(SHORTSIGHTED))
    assert worse > 1.5 * best
    network = trained(SMALL, seed).learner.network()
    assert mean_jct_s(policy(network, prepare(TOY))) < 1.02 * best


QUICK = SMALL.model_copy(update={"episodes": 100, "warm_up": 300, "replay": 900, "batch": 64})


def test_the_same_seed_is_the_same_training_and_another_is_not():
    one, same, other = (weights(trained(QUICK, seed)) for seed in (7, 7, 8))
    assert one == same
    assert one != other


@pytest.mark.parametrize("after", [5, 40])  # before the first batch, and when the ring is full
def test_a_loop_that_was_put_down_goes_on_as_if_nothing_had_been(after):
    whole, first, second = (TrainingLoop(TOY, QUICK, 0) for _ in range(3))
    for _ in range(after):
        first.step()
    arrays, meta = first.pack()
    second.restore({name: array.copy() for name, array in arrays.items()}, meta)
    for _ in range(30):
        second.step()
    for _ in range(after + 30):
        whole.step()
    assert weights(second) == weights(whole)
    assert second.take_jct() == whole.take_jct()
    assert second.learner.take_loss() == whole.learner.take_loss()
    assert (second.steps, second.episodes) == (whole.steps, whole.episodes)


@pytest.mark.parametrize(("samples", "batches"), [(8.0, 40), (1.0, 5), (0.5, 2)])
def test_so_many_samples_are_trained_for_each_step(samples, batches):
    loop = TrainingLoop(TOY, QUICK.model_copy(update={"samples": samples, "warm_up": 1}), 0)
    for _ in range(10):
        loop.step()
    # 10 moments of 32 copies: 320 steps, and batches of 64
    assert (loop.steps, loop.learner.batches) == (320, batches)


def test_rewards_are_counted_in_typical_jobs_on_all_gpus():
    loop = TrainingLoop(TOY, QUICK, 0)
    loop.step()
    # 4 GPUs serve capacity_per_s jobs a second at load 1: 4 / capacity GPU-seconds a job
    setting = loop.worlds.supply.setting
    assert loop.unit_s == pytest.approx(4 * 4 / setting.capacity_per_s)
    kept = loop.replay.rewards.numpy()[:32, 0]
    np.testing.assert_allclose(kept, loop.worlds.rewards / loop.unit_s, rtol=1e-6)
    assert kept.max() < 0


def test_the_weight_of_idle_time_is_the_scenarios_unless_told_otherwise():
    own, told = (
        TrainingLoop(TOY, QUICK.model_copy(update={"idle_weight": w}), 0) for w in (None, 0.9)
    )
    assert (own.worlds.idle_weight, told.worlds.idle_weight) == (TOY.idle_weight, 0.9)
