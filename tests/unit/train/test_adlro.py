"""Whole trainings of toys."""

import json

import numpy as np
import pytest

from adlro.errors import ConfigError
from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.features.start_kernel import FEATURES
from adlro.nets.q_network import flat
from adlro.policies.loading import learned
from adlro.train import run, wide_family
from adlro.train.adlro import ALGORITHM, AdlroTraining
from adlro.train.episodes import MIN_MIN, policy
from adlro.train.evaluation import Evaluation, Evaluator
from adlro.train.executor import Stopped, ThreadExecutor
from adlro.train.expansion import Labels
from adlro.train.folder import TrainingFolder
from adlro.train.labelling import ranges_of, read_labels
from adlro.train.run import Run
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests import toys

TOY = toys.bound_and_free()


def trained(folder, used, *, scenario=TOY, threads=1, **changes):
    """Train in a folder; returns the policy's .npz file and the result of the session."""
    files = run.policy_files(folder / "mine")
    request = toys.request(scenario, used, **changes)
    return files.weights, run.train(ALGORITHM, request, files, threads=threads)


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
        AdlroTraining(Run(plan, folder, Halt(tasks))).train()
    except Stopped:
        return True
    return False


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("solved"), toys.small())


def mean_jct(network, seeds):
    """Of a network, or of Min-Min, on the toy."""
    setting = prepare(TOY)
    player = policy(MIN_MIN if network is None else network, setting)
    workloads = {seed: generate(setting, seed) for seed in seeds}
    return np.mean(
        [
            measure(setting, jobs, run_one(setting, jobs, player, seed)).mean_jct_s
            for seed, jobs in workloads.items()
        ]
    )


def test_a_toy_is_solved_within_seconds(solved):
    network = learned.load(solved[0]).network
    seeds = range(12)
    setting = prepare(TOY)
    best = np.mean([toys.best_mean_jct(setting, generate(setting, seed)) for seed in seeds])
    min_min, ours = mean_jct(None, seeds), mean_jct(network, seeds)
    assert best <= ours < min_min
    # The best knows what is to come, and on an idle cluster no network is asked: 60 % was reached.
    assert (min_min - ours) / (min_min - best) > 0.5


@pytest.fixture(scope="module")
def one_thread(tmp_path_factory):
    """The .npz file of a short training by one thread."""
    return trained(tmp_path_factory.mktemp("tiny"), toys.tiny())[0]


def average(file):
    """The network of a training's search, as a vector."""
    return TrainingFolder(file.parent / "mine-training").checkpoint()[0]["search/average"]


def test_the_same_seed_trains_the_same_bytes_whatever_the_threads(one_thread, tmp_path):
    file, _ = trained(tmp_path, toys.tiny(), threads=2)
    assert file.read_bytes() == one_thread.read_bytes()
    assert average(file).tobytes() == average(one_thread).tobytes()


def test_another_seed_trains_another_policy(one_thread, tmp_path):
    file, _ = trained(tmp_path, toys.tiny(), seed=1)
    assert not np.array_equal(average(file), average(one_thread))


def test_interrupted_and_resumed_ends_like_uninterrupted(tmp_path):
    plan = toys.plan(TOY, toys.tiny())
    whole, parts = TrainingFolder(tmp_path / "whole"), TrainingFolder(tmp_path / "parts")
    with whole.locked(), parts.locked():
        expected = AdlroTraining(Run(plan, whole, ThreadExecutor(2)))
        expected.train()
        stops = 0
        while stopped_after(21 + stops, parts, plan):
            stops += 1
            assert stops < 100
        again = AdlroTraining(Run(plan, parts, ThreadExecutor(1)))
        again.train()
    assert stops >= 5
    assert flat(again.final.network).tobytes() == flat(expected.final.network).tobytes()
    assert again.comparison == expected.comparison
    ours, theirs = (folder.checkpoint()[0] for folder in (parts, whole))
    assert {name: array.tobytes() for name, array in ours.items()} == {
        name: array.tobytes() for name, array in theirs.items()
    }
    assert again.checkpoint.episodes == expected.checkpoint.episodes
    assert again.checkpoint.states == expected.checkpoint.states >= 40


def test_a_finished_training_that_is_asked_for_again_gives_the_same_policy(solved):
    file, result = solved
    before = file.read_bytes()
    _, again = trained(file.parent, toys.small())
    assert file.read_bytes() == before
    assert again.training.comparison == result.training.comparison


def test_metrics_tell_every_phase(solved):
    text = (solved[0].parent / "mine-training" / "metrics.jsonl").read_text()
    phases = [json.loads(line)["phase"] for line in text.splitlines()]
    assert set(phases) == {"selection", "labels1", "fit1", "tuning"}
    assert phases.count("fit1") == 10
    assert phases.count("tuning") == 6
    assert phases.count("selection") == 1 + 1 + 3  # drain-argmin, the fit, three looks


def test_the_card_tells_where_the_policy_comes_from(solved):
    card = learned.load(solved[0]).card
    assert (card.name, card.objective, card.hidden) == ("mine", "jct", (8, 4))
    assert card.budget.labelled_states >= 600
    assert (card.seeds.first, card.selection[0].seeds.first) == (1_000_000, 100_000)
    assert card.selection[0].load == 0.9
    assert "larger p99 JCT than min-min there are never kept" in card.about


def test_the_card_has_the_ranges_of_the_labelled_states(solved):
    card = learned.load(solved[0]).card
    _, parts = read_labels(TrainingFolder(solved[0].parent / "mine-training"), 0)
    values = np.concatenate([part.features for part in parts])
    assert card.ranges.states == card.budget.labelled_states
    assert card.ranges.options == len(values)
    assert tuple(card.ranges.features) == card.features
    for name, (least, low, high, most) in card.ranges.features.items():
        column = values[:, FEATURES.index(name)]
        assert (np.float32(least), np.float32(most)) == (column.min(), column.max())
        assert ((column >= np.float32(low)) & (column <= np.float32(high))).mean() >= 0.997
    assert card.ranges.features["wait"] == (0, 0, 1, 1)


def test_a_training_stopped_before_its_first_state_has_no_ranges():
    nothing = Labels(np.zeros((0, len(FEATURES)), np.float32), np.zeros((0, 5)), np.zeros((0, 3)))
    assert ranges_of(("wait",), [nothing]) is None
    assert ranges_of(("wait",), []) is None


def test_a_network_with_a_longer_tail_than_min_mins_is_never_kept(tmp_path, monkeypatch):
    seen = []

    def evaluate(self, network, count, baseline=MIN_MIN):
        seen.append(network)
        gain = {"mean": -len(seen), "sd": None, "ci95": None}
        is_safe = len(seen) in (1, 3)  # Min-Min's own choices, and the fit of round 1
        return Evaluation(seeds=count, gain=gain, p99_ratio=1.0 if is_safe else 1.01, loads=())

    monkeypatch.setattr(Evaluator, "evaluate", evaluate)
    folder = TrainingFolder(tmp_path / "t")
    with folder.locked():
        training = AdlroTraining(Run(toys.plan(TOY, toys.tiny()), folder, ThreadExecutor(1)))
        training.train()
    assert len(seen) == 6 + 2  # both candidates once more in the final evaluation
    assert [candidate.source for candidate in training.checkpoint.candidates] == [
        "min-min",
        "round 1",
    ]


def test_tuning_ends_early_if_nothing_better_comes(tmp_path, monkeypatch):
    gain = {"mean": 0.0, "sd": None, "ci95": None}
    same = Evaluation(seeds=5, gain=gain, p99_ratio=1.0, loads=())
    monkeypatch.setattr(Evaluator, "evaluate", lambda self, *_: same)
    used = toys.tiny()
    used = used.model_copy(
        update={
            "tuning": used.tuning.model_copy(update={"generations": 50, "evaluate_every": 1}),
            "selection": used.selection.model_copy(update={"patience": 2}),
        }
    )
    folder = TrainingFolder(tmp_path / "t")
    with folder.locked():
        training = AdlroTraining(Run(toys.plan(TOY, used), folder, ThreadExecutor(1)))
        training.train()
    assert training.checkpoint.search.generation == 2
    assert training.best.source == "min-min"


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
    files = run.policy_files(tmp_path / name)
    assert (files.weights.name, files.folder.name) == ("mine.npz", "mine-training")


def test_networks_are_selected_on_the_wide_family_too(tmp_path, monkeypatch):
    monkeypatch.setattr(wide_family, "draw", lambda *_: toys.mixed())
    few = toys.tiny()
    selection = few.selection.model_copy(update={"wide": 3})
    _, result = trained(tmp_path, few.model_copy(update={"selection": selection}))
    assert result.training.final.evaluation.wide.gain.windows == 3
    lines = (tmp_path / "mine-training" / "metrics.jsonl").read_text().splitlines()
    looks = [one for one in map(json.loads, lines) if one["phase"] == "selection"]
    assert len(looks) == 5  # drain-argmin's weights, two fits, the second and third generation
    assert all({"gain_pct", "wide_pct", "wide_p99"} <= set(one) for one in looks)
