"""Whole trainings of toys."""

import json

import numpy as np
import pytest
from adlro.train.trainer import Trainer

from adlro.errors import ConfigError
from adlro.nets.q_network import flat
from adlro.policies.loading import learned
from adlro.train import session, weights
from adlro.train.episodes import MIN_MIN, Episode, named, play
from adlro.train.evaluation import Evaluation, Evaluator
from adlro.train.executor import Stopped, ThreadExecutor
from adlro.train.folder import TrainingFolder, TrainingPlan
from adlro.train.objective import find
from adlro.workloads.synthetic import generate, prepare
from tests import toys

TOY = toys.bound_and_free()


def trained(folder, recipe, *, scenario=TOY, threads=1, **changes):
    """Train in a folder; returns the policy's .npz file and what the session says."""
    where = session.files(folder / "mine")
    wish = toys.wish(scenario, recipe, **changes)
    result = session.train(wish, where, threads=threads, is_fresh=False, tell=lambda _: None)
    return where.weights, result


class Halt(ThreadExecutor):
    """Stops at the n-th task."""

    def __init__(self, tasks):
        super().__init__(1)
        self._left = tasks

    def check(self):
        self._left -= 1
        if self._left <= 0:
            self.stop()
        super().check()


def stopped_after(tasks, folder, plan):
    """A session that is stopped after so many tasks; whether it was."""
    try:
        Trainer(plan, folder, Halt(tasks), lambda _: None).run()
    except Stopped:
        return True
    return False


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("solved"), toys.small())


def mean_jct(network, seeds):
    """Of a network, or of Min-Min, on the toy."""
    setting = prepare(TOY)
    policy = named(MIN_MIN, setting) if network is None else weights.policy(network, setting)
    worlds = [Episode(setting, generate(setting, seed), seed) for seed in seeds]
    return np.mean([play(world, policy, find("jct")).jct_s for world in worlds])


def test_a_toy_is_solved_within_seconds(solved):
    network = learned.load(solved[0]).network
    seeds = range(12)
    setting = prepare(TOY)
    best = np.mean([toys.best_mean_jct(setting, generate(setting, seed)) for seed in seeds])
    min_min, ours = mean_jct(None, seeds), mean_jct(network, seeds)
    assert best <= ours < min_min
    # The best knows what is to come, and on an idle cluster no network is asked: 60 % was reached.
    assert (min_min - ours) / (min_min - best) > 0.5


def test_the_same_seed_trains_the_same_bytes_whatever_the_threads(solved, tmp_path):
    file, _ = trained(tmp_path, toys.small(), threads=2)
    assert file.read_bytes() == solved[0].read_bytes()


def test_another_seed_trains_another_policy(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    trained(tmp_path / "a", toys.tiny())
    trained(tmp_path / "b", toys.tiny(), seed=1)
    folders = [TrainingFolder(tmp_path / name / "mine-training") for name in "ab"]
    searches = [folder.checkpoint()[0]["search/average"] for folder in folders]
    assert not np.array_equal(*searches)


def test_interrupted_and_resumed_ends_like_uninterrupted(tmp_path):
    recipe = toys.tiny()
    plan = TrainingPlan(wish=toys.wish(TOY, recipe), recipe=recipe)
    whole, parts = TrainingFolder(tmp_path / "whole"), TrainingFolder(tmp_path / "parts")
    with whole.held(), parts.held():
        expected = Trainer(plan, whole, ThreadExecutor(2), lambda _: None).run()
        stops = 0
        while stopped_after(21 + stops, parts, plan):
            stops += 1
            assert stops < 100
        again = Trainer(plan, parts, ThreadExecutor(1), lambda _: None).run()
    assert stops >= 5
    assert flat(again.kept.network).tobytes() == flat(expected.kept.network).tobytes()
    assert again.table == expected.table
    ours, theirs = (folder.checkpoint()[0] for folder in (parts, whole))
    assert {name: array.tobytes() for name, array in ours.items()} == {
        name: array.tobytes() for name, array in theirs.items()
    }
    assert again.standing.episodes == expected.standing.episodes
    assert again.standing.states == expected.standing.states >= 40


def test_a_finished_training_that_is_asked_for_again_gives_the_same_policy(solved):
    file, result = solved
    before = file.read_bytes()
    _, again = trained(file.parent, toys.small())
    assert file.read_bytes() == before
    assert again.table == result.table


def test_metrics_tell_every_phase(solved):
    text = (solved[0].parent / "mine-training" / "metrics.jsonl").read_text()
    phases = [json.loads(line)["phase"] for line in text.splitlines()]
    assert set(phases) == {"selection", "labels1", "fit1", "tuning"}
    assert phases.count("fit1") == 10
    assert phases.count("tuning") == 12
    assert phases.count("selection") == 1 + 1 + 3  # drain-argmin, the fit, three looks


def test_the_card_tells_where_the_policy_comes_from(solved):
    card = learned.load(solved[0]).card
    assert (card.name, card.objective, card.hidden) == ("mine", "jct", (8, 4))
    assert card.budget.labelled_states >= 600
    assert (card.seeds.first, card.selection[0].seeds.first) == (1_000_000, 100_000)
    assert card.selection[0].load == 0.9
    assert "larger p99 JCT than min-min there are never kept" in card.about


def test_a_network_with_a_longer_tail_than_min_mins_is_never_kept(tmp_path, monkeypatch):
    looked = []

    def look(self, network, count):
        looked.append(network)
        gain = {"mean": -len(looked), "sd": None, "ci95": None}
        is_safe = len(looked) in (1, 3)  # Min-Min's own choices, and the fit of round 1
        return Evaluation(seeds=count, gain=gain, p99_ratio=1.0 if is_safe else 1.01, loads=())

    monkeypatch.setattr(Evaluator, "look", look)
    recipe = toys.tiny()
    folder = TrainingFolder(tmp_path / "t")
    with folder.held():
        plan = TrainingPlan(wish=toys.wish(TOY, recipe), recipe=recipe)
        trainer = Trainer(plan, folder, ThreadExecutor(1), lambda _: None)
        trainer.run()
    assert len(looked) == 6
    assert [kept.source for kept in trainer.standing.kept] == ["min-min", "round 1"]


def test_tuning_ends_early_if_nothing_better_comes(tmp_path, monkeypatch):
    gain = {"mean": 0.0, "sd": None, "ci95": None}
    same = Evaluation(seeds=5, gain=gain, p99_ratio=1.0, loads=())
    monkeypatch.setattr(Evaluator, "look", lambda self, network, count: same)
    recipe = toys.tiny()
    recipe = recipe.model_copy(
        update={
            "tuning": recipe.tuning.model_copy(update={"generations": 50, "look_every": 1}),
            "selection": recipe.selection.model_copy(update={"patience": 2}),
        }
    )
    folder = TrainingFolder(tmp_path / "t")
    with folder.held():
        plan = TrainingPlan(wish=toys.wish(TOY, recipe), recipe=recipe)
        trainer = Trainer(plan, folder, ThreadExecutor(1), lambda _: None)
        trainer.run()
    assert trainer.standing.search.generation == 2
    assert trainer.standing.kept[-1].source == "min-min"


def test_a_policy_that_is_there_is_not_replaced_unasked(tmp_path):
    (tmp_path / "mine.npz").write_text("dear to me")
    with pytest.raises(ConfigError, match=r"mine\.npz: is there already; say --fresh"):
        trained(tmp_path, toys.tiny())


def test_a_scenario_without_a_choice_says_so(tmp_path):
    alone = TOY.model_copy(update={"jobs": 1})
    with pytest.raises(ConfigError, match="no state with a choice was labelled"):
        trained(tmp_path, toys.tiny(), scenario=alone)


@pytest.mark.parametrize("name", ["mine", "mine.npz", "mine.json"])
def test_a_policy_may_be_named_by_any_of_its_files(tmp_path, name):
    where = session.files(tmp_path / name)
    assert (where.weights.name, where.folder.name) == ("mine.npz", "mine-training")
