"""The training of adlro-preemptive: where it begins, what it draws, and that it can be resumed."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.errors import ConfigError
from adlro.evaluate.compare import run_one
from adlro.policies import registry
from adlro.policies.loading import learned
from adlro.seeds import TrainingPhase
from adlro.train import episode_seeds, run
from adlro.train.adlro_preemptive import (
    ALGORITHM,
    PreemptiveRequest,
    PreemptiveTraining,
    episode_source,
    initial_network,
    scaled,
)
from adlro.train.episodes import EpisodeKey
from adlro.train.hyperparameters import (
    PreemptiveHyperparameters,
    SelectionSettings,
    Shares,
    TuningSettings,
)
from adlro.train.weights import policy
from adlro.workloads.setting import prepare

TINY = PreemptiveHyperparameters(
    jobs=30,
    hidden=(3, 2),
    tuning=TuningSettings(
        generations=2, pairs=2, episodes=2, sigma=0.3, rate=0.3, evaluate_every=1
    ),
    selection=SelectionSettings(loads=(), seeds=2, final_seeds=2),
)
SHORT = adjusted(find_scenario("gavel16"), jobs=60)


def request(used=TINY, **changes):
    usual = {"algorithm": "adlro-preemptive", "scenario": SHORT, "seed": 7}
    return PreemptiveRequest(**{**usual, "hyperparameters": used, **changes})


def trained(folder, used=TINY, report=run.silent, algorithm=ALGORITHM, **changes):
    files = run.policy_files(folder / "mine")
    return run.train(algorithm, request(used, **changes), files, report=report)


def test_it_begins_as_hetero_srpt():
    setting = prepare(adjusted(SHORT, load=1.5))
    jobs = episode_seeds.jobs(setting, 1_000_000)
    ours = policy(initial_network((3, 2), 0), setting)
    theirs = registry.load("hetero-srpt", setting)
    ours, theirs = (run_one(setting, jobs, policy, 0).outcome for policy in (ours, theirs))
    np.testing.assert_allclose(ours["finish"], theirs["finish"], rtol=1e-12)
    assert ours["restarts"].sum() > 0


def test_two_runs_of_one_seed_make_the_same_files_and_move_the_weights(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, again = (trained(tmp_path / name) for name in ("a", "b"))
    assert first.card.sha256_weights == again.card.sha256_weights
    # generations, episodes, pairs and the first network; two evaluations on two seeds
    assert first.card.budget.episodes == 2 * 2 * 5 + 2 * 2
    assert first.card.seeds == episode_seeds.block(7)
    assert first.card.policy == "adlro-preemptive"
    start = initial_network((3, 2), 7)
    searched = first.training.checkpoint.search.averaged()
    assert not np.array_equal(searched[: start.first.size], start.first.ravel())
    learned.load(tmp_path / "a" / "mine.npz")


def test_a_training_that_was_interrupted_ends_with_the_same_weights(tmp_path):
    class Stopping(PreemptiveTraining):
        """As if Ctrl-C came in the second generation."""

        def report(self, phase, share, step=""):
            if step.startswith("generation 2"):
                self.run.executor.stop()
            super().report(phase, share, step)

    (tmp_path / "whole").mkdir()
    whole = trained(tmp_path / "whole")
    stopped = trained(tmp_path, algorithm=ALGORITHM._replace(start=Stopping))
    assert not stopped.is_complete
    assert stopped.training.checkpoint.search.generation == 1
    told = []
    resumed = trained(tmp_path, report=told.append)
    assert resumed.is_complete
    steps = [status.step for status in told if status.phase == "tuning"]
    assert steps == ["generation 2 of 2"]
    assert resumed.card.sha256_weights == whole.card.sha256_weights


def test_the_folder_of_other_hyperparameters_is_refused(tmp_path):
    trained(tmp_path)
    with pytest.raises(ConfigError, match=r"mine-training: was begun with jobs 30; "):
        trained(tmp_path, TINY.model_copy(update={"jobs": 31}))


def test_the_initial_weights_are_kept_if_nothing_is_better(tmp_path):
    still = TINY.model_copy(update={"tuning": TINY.tuning.model_copy(update={"generations": 0})})
    result = trained(tmp_path, still)
    assert result.training.final.source == "start"
    assert result.training.comparison[0].jct["start"].mean == 0.0


def test_relatives_have_dearer_or_cheaper_checkpoints_and_the_scenario_its_own():
    # Checkpoints of gavel16 cost 60 s; by the hyperparameters a tenth to thirty times that.
    source = episode_source(request(scenario=find_scenario("gavel16")))
    keys = [EpisodeKey(0, TrainingPhase.PREEMPTIVE, episode) for episode in range(30)]
    drawn = [source.draw(key, Shares(relatives=0.4), key.rng) for key in keys]
    costs = np.array([episode.workload.jobs["checkpoint"][0] for episode in drawn])
    assert ((costs >= 6) & (costs <= 1800)).all()
    assert (costs == 60).sum() in range(10, 28)
    assert all(episode.seed >= episode_seeds.FIRST_TRAINING for episode in drawn)
    loads = [e.scenario.load for e, cost in zip(drawn, costs, strict=True) if cost == 60]
    assert 0.7 <= min(loads) < max(loads) <= 1.05


def test_episodes_and_budgets_are_turned_into_generations():
    full = PreemptiveHyperparameters()
    assert scaled(request(full)) == full
    few = scaled(request(full, episodes=1500))  # 6 episodes of 12 pairs and the first: 150 each
    assert (few.tuning.generations, few.tuning.pairs, few.tuning.evaluate_every) == (10, 12, 5)
    many = scaled(request(full, episodes=198_000))  # 6 episodes of 16 pairs and the first: 198
    assert (many.tuning.generations, many.tuning.evaluate_every) == (1000, 20)
    assert scaled(request(full, budget_s=5.0)).tuning.generations < 100
