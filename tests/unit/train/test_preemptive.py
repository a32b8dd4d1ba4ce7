"""The training of adlro-preemptive: where it begins, what it draws, and that it can be resumed."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.errors import ConfigError
from adlro.evaluate.compare import run_one
from adlro.policies import registry
from adlro.policies.loading import learned
from adlro.train import episode_seeds, preemptive
from adlro.train.episodes import EpisodeKey
from adlro.train.executor import ThreadExecutor
from adlro.train.hyperparameters import TuningSettings
from adlro.workloads.synthetic import prepare

TINY = preemptive.Recipe(
    jobs=30,
    hidden=(3, 2),
    tuning=TuningSettings(generations=2, pairs=2, episodes=2, sigma=0.3, rate=0.3, look_every=1),
    look_seeds=2,
    final_seeds=2,
)


@pytest.fixture
def crew():
    made = ThreadExecutor(1)
    yield made
    made.dismiss()


def trained(folder, crew, recipe=TINY, tell=lambda status: None, until=None):
    card = preemptive.train(folder / "mine.npz", recipe, 7, crew, tell, until)
    return card, learned.load(folder / "mine.npz").network


def test_it_begins_as_hetero_srpt():
    setting = prepare(adjusted(find_scenario("gavel16"), jobs=60, load=1.5))
    jobs = episode_seeds.jobs(setting, 1_000_000)
    ours = preemptive.policy(preemptive.begin(TINY, 0), setting)
    theirs = registry.load("hetero-srpt", setting)
    ours, theirs = (run_one(setting, jobs, policy, 0).outcome for policy in (ours, theirs))
    np.testing.assert_allclose(ours["finish"], theirs["finish"], rtol=1e-12)
    assert ours["restarts"].sum() > 0


def test_two_runs_of_one_seed_make_the_same_files_and_move_the_weights(tmp_path, crew):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (card, network), (again, _) = (trained(tmp_path / name, crew) for name in ("a", "b"))
    assert card.sha256_weights == again.sha256_weights
    assert card.budget.episodes == 2 * 2 * 5  # generations, episodes, pairs and the first network
    assert card.seeds == episode_seeds.block(7)
    start = preemptive.begin(TINY, 7)
    assert not np.array_equal(network.first, start.first)


def test_a_training_that_was_interrupted_ends_with_the_same_weights(tmp_path, crew):
    class UnpluggedError(Exception):
        """As if somebody pulled the plug."""

    def pull(status):
        raise UnpluggedError

    (tmp_path / "whole").mkdir()
    whole, _ = trained(tmp_path / "whole", crew)
    with pytest.raises(UnpluggedError):
        trained(tmp_path, crew, tell=pull)
    told = []
    resumed, _ = trained(tmp_path, crew, tell=told.append)
    assert [status.generation for status in told] == [2]
    assert resumed.sha256_weights == whole.sha256_weights


def test_it_can_be_told_to_stop_earlier_and_go_on_later(tmp_path, crew):
    told = []
    early, _ = trained(tmp_path, crew, until=1)
    late, _ = trained(tmp_path, crew, tell=told.append)
    assert early.budget.episodes == 2 * 5
    assert late.budget.episodes == 2 * 2 * 5
    assert [look.generation for look in told[-1].looks] == [1, 2]


def test_the_checkpoint_of_another_recipe_is_refused(tmp_path, crew):
    trained(tmp_path, crew)
    with pytest.raises(ConfigError, match=r"mine-checkpoint.npz: is of another recipe or seed; "):
        trained(tmp_path, crew, TINY.model_copy(update={"jobs": 31}))


def test_relatives_have_dearer_or_cheaper_checkpoints_and_the_scenario_its_own():
    # Checkpoints of gavel16 cost 60 s; by the recipe a tenth to thirty times that.
    drawn = [preemptive.draw(TINY, EpisodeKey(0, 17, episode)) for episode in range(30)]
    costs = np.array([world.workload.jobs["checkpoint"][0] for world in drawn])
    assert ((costs >= 6) & (costs <= 1800)).all()
    assert (costs == 60).sum() in range(10, 28)
    assert all(world.seed >= episode_seeds.FIRST_TRAINING for world in drawn)
    loads = [w.setting.scenario.load for w, cost in zip(drawn, costs, strict=True) if cost == 60]
    assert 0.7 <= min(loads) < max(loads) <= 1.05


def test_the_command_line_says_in_one_line_what_is_wrong(tmp_path, capsys):
    assert preemptive.main(["--out", str(tmp_path / "no" / "mine.npz")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
