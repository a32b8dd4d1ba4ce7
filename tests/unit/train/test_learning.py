"""What labels and a fit alone make of an objective; the guard and the tuning come after it."""

import numpy as np
import pytest

from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.train import episode_seeds, weights
from adlro.train.episodes import EpisodeSource
from adlro.train.fit import Fitting, targets
from adlro.train.hyperparameters import FitSettings, LabelRound
from adlro.train.labelling import Labelling, LabelTask, label
from adlro.train.objective import OBJECTIVES, find
from adlro.workloads.setting import prepare
from tests import toys

TOY = toys.mixed()
ROUND = LabelRound(
    base="min-min", behaviours=("min-min", "drain-argmin"), states=1, horizon=20, rate=0.5,
    stray=0.2, family_share=0.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def runs():
    """Metrics of 60 runs of the network of each objective, fitted to the same labels."""
    work = Labelling(EpisodeSource(TOY, (0.9, 0.9)), ROUND, 0, 0, weights.zeros((1, 1)))
    labels, setting = [label(LabelTask(work, episode)) for episode in range(150)], prepare(TOY)
    jobs = [episode_seeds.jobs(setting, seed) for seed in range(2_000_000, 2_000_060)]
    found = {}
    for name, objective in OBJECTIVES.items():
        data = targets(labels, objective.weights(TOY))
        fitting = Fitting(data, (16, 8), FitSettings(epochs=15, batch=256, rate=0.01), 0)
        while not fitting.is_done:
            fitting.run_epoch()
        policy = weights.policy(fitting.network(), setting)
        found[name] = [measure(setting, w, run_one(setting, w, policy, 0)) for w in jobs]
    return found


@pytest.mark.parametrize(
    ("name", "least"),
    [("weighted-jct", 0.05), ("throughput", 0.02), ("energy", 0.03)],
)
def test_each_objective_makes_its_own_figure_smaller_than_jct_does(runs, name, least):
    figure = find(name).figure
    own, of_jct = (np.mean([figure(run) for run in runs[key]]) for key in (name, "jct"))
    assert own < (1 - least) * of_jct


def test_the_reward_leaves_fewer_gpus_idle_than_jct_does(runs):
    own, of_jct = (np.mean([run.idle_gpu_s for run in runs[key]]) for key in ("reward", "jct"))
    assert own < 0.95 * of_jct


@pytest.mark.parametrize("name", ["weighted-jct", "throughput", "energy"])
def test_jct_makes_mean_jct_smaller_than_the_others_do(runs, name):
    own, other = (np.mean([run.mean_jct_s for run in runs[key]]) for key in ("jct", name))
    assert own < 0.97 * other
