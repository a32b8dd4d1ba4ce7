"""A training with its files: what was stopped goes on, and another one's folder is refused."""

import json

import pytest

from adlro.config.files import find_scenario
from adlro.errors import ConfigError
from adlro.policies import registry
from adlro.policies.loading import learned
from adlro.train import episode_seeds, run
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
from adlro.train.folder import TrainingFolder
from adlro.train.paper_dqn import ALGORITHM, PaperDqnRequest, PaperDqnTraining, gain, with_episodes
from adlro.train.run import policy_files, silent
from adlro.workloads.setting import prepare
from tests import toys

TINY = PaperDqnHyperparameters(
    episodes=200, copies=16, batch=64, samples=4, warm_up=200, replay=1000, evaluations=4,
    evaluation_seeds=3, final_seeds=5, backbone="mlp",
)  # fmt: skip


def train(folder, name="mine", report=silent, *, is_fresh=False, **changes):
    usual = {"algorithm": "paper-dqn", "scenario": toys.short_and_long(), "hyperparameters": TINY}
    request = PaperDqnRequest(**{**usual, **changes})
    files = policy_files(folder / name)
    return run.train(ALGORITHM, request, files, is_fresh=is_fresh, report=report)


def journal(folder, name):
    text = (folder / f"{name}-training" / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def stopping_after(episodes):
    """A training that is stopped after this many episodes, as by Ctrl-C."""

    class Stopping(PaperDqnTraining):
        def _status(self):
            if self.loop.episodes >= episodes:
                self.run.executor.stop()
            return super()._status()

    return ALGORITHM._replace(start=Stopping)


def test_a_training_that_was_stopped_goes_on_to_the_same_curve_and_weights(tmp_path, monkeypatch):
    whole = train(tmp_path, "whole")
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "ALGORITHM", stopping_after(90))
        stopped = train(tmp_path)
    assert not stopped.is_complete
    assert 90 <= stopped.card.budget.episodes < 120
    resumed = train(tmp_path)
    assert resumed.is_complete
    assert resumed.training.points == whole.training.points
    assert journal(tmp_path, "mine") == journal(tmp_path, "whole")
    one, other = (tmp_path / f"{name}.npz" for name in ("mine", "whole"))
    assert one.read_bytes() == other.read_bytes()


def test_the_curve_has_its_points_and_ends_with_the_last_network(tmp_path):
    seen = []
    result = train(tmp_path, report=seen.append)
    episodes = [point.episodes for point in result.training.points]
    assert episodes[0] == 0
    assert all(a >= k * 50 for k, a in enumerate(episodes))
    assert len(episodes) == 5
    assert episodes[-1] >= 200
    assert [line["step"] for line in journal(tmp_path, "mine")] == episodes
    policy = registry.load(str(tmp_path / "mine.npz"), prepare(toys.short_and_long()))
    assert policy.params.tobytes() == learned.load(tmp_path / "mine.npz").params.tobytes()
    assert (seen[-1].share, len(seen[-1].points)) == (1.0, 5)
    assert set(seen[-1].levels) == {"fcfs", "min-min"}


def test_the_card_tells_the_curve_and_where_the_jobs_came_from(tmp_path):
    result = train(tmp_path, seed=3)
    card = result.card
    assert card.about.startswith("The paper's double DQN, mlp, window 1, trained for 2")
    assert f"by episodes: 0: {result.training.points[0].jct_s:.0f}, " in card.about
    assert card.seeds == episode_seeds.block(3)
    (figure,) = card.selection
    assert (figure.mean_jct_pct, figure.seeds.last) == (gain(result.policy).mean, 100_004)


def test_a_budget_is_turned_into_episodes_once(tmp_path):
    result = train(tmp_path, budget_s=2.0)
    plan = json.loads((tmp_path / "mine-training" / "plan.json").read_text())
    assert plan["hyperparameters"]["episodes"] > 20
    assert result.card.budget.episodes >= plan["hyperparameters"]["episodes"]
    assert train(tmp_path, budget_s=2.0).card.budget.episodes == result.card.budget.episodes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, "seed 0"),
        ({"budget_s": 1.0}, "budget None"),
        ({"scenario": toys.short_and_long(21)}, "another scenario (short-and-long)"),
        ({"hyperparameters": TINY.model_copy(update={"is_double": False})}, "double True"),
        ({"hyperparameters": TINY.model_copy(update={"idle_weight": 0.3})}, "idle-weight None"),
    ],
)
def test_the_folder_of_another_training_is_refused(tmp_path, changes, words):
    few = TINY.model_copy(update={"episodes": 1})
    train(tmp_path, hyperparameters=few)
    changed = {"hyperparameters": few, **changes}
    changed["hyperparameters"] = changed["hyperparameters"].model_copy(update={"episodes": 1})
    with pytest.raises(ConfigError) as caught:
        train(tmp_path, **changed)
    assert f"was begun with {words}; ask for the same, say --fresh" in str(caught.value)
    assert train(tmp_path, is_fresh=True, **changed).is_complete


def test_weights_that_are_there_without_their_training_are_not_replaced(tmp_path):
    (tmp_path / "mine.npz").write_text("precious")
    with pytest.raises(ConfigError, match=r"mine\.npz: is there already; say --fresh to replace"):
        train(tmp_path)
    assert (tmp_path / "mine.npz").read_text() == "precious"


def test_short_trainings_begin_to_learn_sooner():
    full = PaperDqnHyperparameters()
    assert with_episodes(full, 10**6).warm_up == full.warm_up
    assert with_episodes(full, 1000).warm_up == 1000  # 1000 episodes of 20 jobs: 20,000 steps / 20


def test_the_card_counts_the_cpu_time_of_all_sessions(tmp_path):
    first = train(tmp_path).card.budget.cpu_s
    stored = TrainingFolder(tmp_path / "mine-training").checkpoint()[1]["cpu_s"]
    assert 0.01 < stored <= first + 0.05  # the card rounds
    assert train(tmp_path).card.budget.cpu_s > stored


def test_a_cluster_whose_states_would_not_fit_in_memory_is_refused(tmp_path):
    wanted = {"scenario": find_scenario("datacenter"), "hyperparameters": PaperDqnHyperparameters()}
    with pytest.raises(ConfigError, match=r"datacenter: 200,000 states of 10,000 GPUs .* GiB"):
        train(tmp_path, **wanted)
