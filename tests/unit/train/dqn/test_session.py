"""A training with its files: what was stopped goes on, and another one's folder is refused."""

import json

import pytest
from adlro.train.dqn.plan import Wish, scaled
from adlro.train.session import files

from adlro.config.files import find_scenario
from adlro.errors import ConfigError
from adlro.policies import registry
from adlro.policies.loading import learned
from adlro.train import episode_seeds
from adlro.train.dqn import session
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
from adlro.train.folder import TrainingFolder
from adlro.workloads.synthetic import prepare
from tests import toys

TINY = PaperDqnHyperparameters(
    episodes=200, copies=16, batch=64, samples=4, warm_up=200, replay=1000, looks=4, look_seeds=3,
    final_seeds=5, backbone="mlp",
)  # fmt: skip


def wish(**changes):
    usual = {"scenario": toys.short_and_long(), "seed": 0, "budget_s": None, "recipe": TINY}
    return Wish(**{**usual, **changes})


def train(folder, name="mine", tell=lambda status: None, *, is_fresh=False, **changes):
    return session.train(wish(**changes), files(folder / name), is_fresh=is_fresh, tell=tell)


def journal(folder, name):
    text = (folder / f"{name}-training" / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


class Interrupted:
    """Ctrl-C after so many episodes, as the trainer sees it."""

    def __init__(self, monkeypatch, episodes):
        self.trainer, self.episodes = None, episodes
        usual = session.Trainer

        def made(plan, folder, tell, is_stopped):
            def stops():
                return self.trainer.course.episodes >= episodes

            self.trainer = usual(plan, folder, tell, stops)
            return self.trainer

        monkeypatch.setattr(session, "Trainer", made)


def test_a_training_that_was_stopped_goes_on_to_the_same_curve_and_weights(tmp_path, monkeypatch):
    whole = train(tmp_path, "whole")
    with monkeypatch.context() as patch:
        Interrupted(patch, 90)
        stopped = train(tmp_path)
    assert not stopped.is_whole
    assert 90 <= stopped.card.budget.episodes < 120
    resumed = train(tmp_path)
    assert resumed.is_whole
    assert resumed.points == whole.points
    assert journal(tmp_path, "mine") == journal(tmp_path, "whole")
    one, other = (tmp_path / f"{name}.npz" for name in ("mine", "whole"))
    assert one.read_bytes() == other.read_bytes()


def test_the_curve_has_its_points_and_ends_with_the_last_network(tmp_path):
    seen = []
    result = train(tmp_path, tell=seen.append)
    episodes = [point.episodes for point in result.points]
    assert episodes[0] == 0
    assert all(a >= k * 50 for k, a in enumerate(episodes))
    assert len(episodes) == 5
    assert episodes[-1] >= 200
    assert [line["step"] for line in journal(tmp_path, "mine")] == episodes
    policy = registry.load(str(tmp_path / "mine.npz"), prepare(toys.short_and_long()))
    assert policy.params.tobytes() == learned.load(tmp_path / "mine.npz").params.tobytes()
    assert (seen[-1].done, seen[-1].points) == (1.0, result.points)
    assert set(seen[-1].levels) == {"fcfs", "min-min"}


def test_the_card_tells_the_curve_and_where_the_jobs_came_from(tmp_path):
    result = train(tmp_path, seed=3)
    card = result.card
    assert card.about.startswith("The paper's double DQN, mlp, window 1, trained for 2")
    assert f"by episodes: 0: {result.points[0].jct_s:.0f}, " in card.about
    assert card.seeds == episode_seeds.block(3)
    (figure,) = card.selection
    assert (figure.mean_jct_pct, figure.seeds.last) == (result.gain.mean, 100_004)


def test_a_budget_is_turned_into_episodes_once(tmp_path):
    result = train(tmp_path, budget_s=2.0)
    plan = json.loads((tmp_path / "mine-training" / "plan.json").read_text())
    assert plan["recipe"]["episodes"] > 20
    assert result.card.budget.episodes >= plan["recipe"]["episodes"]
    assert train(tmp_path, budget_s=2.0).card.budget.episodes == result.card.budget.episodes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, "seed 0"),
        ({"budget_s": 1.0}, "budget None"),
        ({"scenario": toys.short_and_long(21)}, "another scenario (short-and-long)"),
        ({"recipe": TINY.model_copy(update={"is_double": False})}, "double True"),
        ({"recipe": TINY.model_copy(update={"idle_weight": 0.3})}, "idle-weight None"),
    ],
)
def test_the_folder_of_another_training_is_refused(tmp_path, changes, words):
    few = TINY.model_copy(update={"episodes": 1})
    train(tmp_path, recipe=few)
    changed = {"recipe": few, **changes}
    changed["recipe"] = changed["recipe"].model_copy(update={"episodes": 1})
    with pytest.raises(ConfigError) as caught:
        train(tmp_path, **changed)
    assert f"was begun with {words}; ask for the same, say --fresh" in str(caught.value)
    assert train(tmp_path, is_fresh=True, **changed).is_whole


def test_weights_that_are_there_without_their_training_are_not_replaced(tmp_path):
    (tmp_path / "mine.npz").write_text("precious")
    with pytest.raises(ConfigError, match=r"mine\.npz: is there already; say --fresh to replace"):
        train(tmp_path)
    assert (tmp_path / "mine.npz").read_text() == "precious"


def test_short_trainings_begin_to_learn_sooner():
    recipe = PaperDqnHyperparameters()
    assert scaled(recipe, 10**6).warm_up == recipe.warm_up
    assert scaled(recipe, 1000).warm_up == 1000  # 1000 episodes of 20 jobs: 20,000 steps / 20


def test_the_card_counts_the_time_of_the_thread_that_worked(tmp_path):
    card = train(tmp_path).card
    kept = TrainingFolder(files(tmp_path / "mine").folder).checkpoint()[1]["cpu_s"]
    assert card.budget.cpu_s == pytest.approx(kept, abs=0.1)
    assert kept > 0.01


def test_a_cluster_whose_states_would_not_fit_in_memory_is_refused(tmp_path):
    wanted = {"scenario": find_scenario("datacenter"), "recipe": PaperDqnHyperparameters()}
    with pytest.raises(ConfigError, match=r"datacenter: 200,000 states of 10,000 GPUs .* GiB"):
        train(tmp_path, **wanted)
