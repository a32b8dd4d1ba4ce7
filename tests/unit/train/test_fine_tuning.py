"""Fine-tuning on toy histories, with tiny settings."""

import json

import numpy as np
import pytest

from adlro.errors import ConfigError, PolicyError
from adlro.policies.loading import learned
from adlro.train import fine_tuning, history_parts, run
from adlro.train.executor import Stopped, ThreadExecutor
from adlro.train.fine_tuning import ALGORITHM, FineTuning
from adlro.train.folder import TrainingFolder
from adlro.train.run import Run
from adlro.train.window_evaluation import WindowEvaluator
from tests import own_history


def tuned(folder, scenario, *, threads=1, **changes):
    """Fine-tune in a folder; returns the policy's .npz file and the result of the session."""
    files = run.policy_files(folder / "mine")
    asked = own_history.request(scenario, **changes)
    return files.weights, run.train(ALGORITHM, asked, files, threads=threads)


def found_by(folder):
    """The weights that a search has found, and those of all candidates."""
    arrays, _ = TrainingFolder(folder / "mine-training").checkpoint()
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A folder with a fine-tuned policy, its scenario and the result."""
    folder = tmp_path_factory.mktemp("usual")
    scenario = own_history.write(folder)
    return folder, scenario, tuned(folder, scenario)[1]


def bad_start(folder):
    """A policy's file whose decisions are poor: the shipped one with other weights."""
    shipped = learned.shipped()
    rng = np.random.default_rng(3)
    network = shipped.network
    last = network.last + 3 * np.abs(network.last).max() * rng.standard_normal(len(network.last))
    learned.save(folder / "bad.npz", network._replace(last=last), shipped.card)
    return folder / "bad.npz"


def test_the_files_hold_the_shipped_weights_unless_the_tuned_ones_are_better(usual):
    folder, _, result = usual
    found, shipped = learned.load(folder / "mine.npz"), learned.shipped()
    assert not result.training.held_out.is_shipped
    for ours, theirs in zip(found.network.weights, shipped.network.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert found.card.about.startswith("Unchanged weights of the shipped policy (sha256")
    assert (
        "Held out: the last 270 jobs, in 5 windows of 50, each played 2 times; on"
        in found.card.about
    )
    assert (found.card.family, found.card.ranges) == (shipped.card.family, shipped.card.ranges)
    (figure,) = found.card.final
    assert figure.mean_jct_pct == result.training.held_out.start_vs_min_min.mean_pct
    assert figure.seeds is None


def test_tuned_weights_that_are_better_on_the_held_out_jobs_are_shipped(tmp_path):
    scenario = own_history.write(tmp_path)
    start = bad_start(tmp_path)
    tuning = own_history.TUNING.model_copy(
        update={"generations": 12, "pairs": 8, "episodes": 4, "sigma": 0.3, "rate": 0.3}
    )
    file, result = tuned(tmp_path, scenario, start=start, tuning=tuning)
    held_out, card = result.training.held_out, learned.load(file).card
    assert held_out.is_shipped, held_out
    assert card.about.startswith("Tuned on mine from the policy adlro (sha256 of weights")
    assert "; then windows of 50 of the first 450 jobs of mine at load" in card.family
    assert card.final[0].mean_jct_pct == held_out.tuned.jct_vs_min_min.mean_pct
    best = result.training.best.network
    assert learned.load(file).network.first.tobytes() == best.first.tobytes()


def test_members_bounds_and_caution_stay_as_they_are(tmp_path):
    shipped = learned.shipped()
    bounds = np.tile([[-1.0], [1.0]], (1, len(shipped.network.features)))
    network = shipped.network._replace(caution=0.5, bounds=bounds)
    learned.save(tmp_path / "start.npz", network, shipped.card)
    scenario = own_history.write(tmp_path)
    _, result = tuned(tmp_path, scenario, start=tmp_path / "start.npz")
    for candidate in result.training.checkpoint.candidates:
        assert candidate.network.caution == 0.5
        assert candidate.network.bounds.tobytes() == network.bounds.tobytes()


def test_the_held_out_jobs_change_nothing_of_what_is_tuned(usual, tmp_path):
    folder, _, _ = usual
    other = own_history.write(tmp_path, own_history.rows_of(other_from=630))
    _, result = tuned(tmp_path, other)
    assert found_by(tmp_path) == found_by(folder)
    assert result.training.held_out != usual[2].training.held_out


def test_the_same_seed_tunes_the_same_bytes_whatever_the_threads(usual, tmp_path):
    folder, scenario, result = usual
    file, again = tuned(tmp_path, scenario, threads=2)
    assert file.read_bytes() == (folder / "mine.npz").read_bytes()
    assert again.training.held_out == result.training.held_out
    assert found_by(tmp_path) == found_by(folder)


def test_another_seed_tunes_other_weights(usual, tmp_path):
    _, scenario, _ = usual
    tuned(tmp_path, scenario, seed=1)
    assert found_by(tmp_path)["search/average"] != found_by(usual[0])["search/average"]


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


def test_interrupted_and_resumed_ends_like_uninterrupted(usual, tmp_path):
    folder, scenario, result = usual
    plan, parts = own_history.plan(own_history.request(scenario)), TrainingFolder(tmp_path / "t")
    stops = 0
    with parts.locked():
        while True:
            training = FineTuning(Run(plan, parts, Halt(30 + stops)))
            try:
                training.train()
                break
            except Stopped:
                stops += 1
                assert stops < 60
    assert stops >= 2
    assert training.held_out == result.training.held_out
    arrays, _ = parts.checkpoint()
    assert {name: array.tobytes() for name, array in arrays.items()} == found_by(folder)


def test_stopped_before_the_comparison_it_keeps_the_best_and_says_so(usual, tmp_path):
    _, scenario, _ = usual
    plan, folder = own_history.plan(own_history.request(scenario)), TrainingFolder(tmp_path / "t")
    executor = Halt(40)
    with folder.locked():
        training = FineTuning(Run(plan, folder, executor))
        with pytest.raises(Stopped):
            training.train()
        executor._left = 10**9
        executor.resume()
        policy = training.policy()
    assert policy.about.startswith("Stopped before the comparison on held-out jobs: ")
    assert policy.final == ()


def test_metrics_tell_the_generations(usual):
    text = (usual[0] / "mine-training" / "metrics.jsonl").read_text()
    phases = [json.loads(line)["phase"] for line in text.splitlines()]
    assert phases == ["tuning", "selection", "tuning"] * 2


def test_windows_are_repeated_with_jitter_until_there_are_so_many_runs(usual):
    _, scenario, _ = usual
    cut = history_parts.cut_of(scenario)
    evaluator = WindowEvaluator(history_parts.held_out_part(scenario, cut), ThreadExecutor(1))
    assert [evaluator.repeats(count) for count in (3, 5, 6, 10, 11)] == [1, 1, 2, 2, 3]
    runs = evaluator.play("min-min", 3)
    assert runs.jct_s.shape == (1, 3)
    ratios = evaluator.ratios("min-min", 10, "fcfs")
    ours, theirs = (evaluator.play(name, 10).jct_s[0] for name in ("min-min", "fcfs"))
    expected = 100 * (np.exp(np.mean(np.log(ours / theirs))) - 1)
    assert ratios.jct.mean_pct == pytest.approx(expected)
    assert ratios.jct.windows == 5


@pytest.mark.parametrize("changes", [{"users": 1}, {"run_s": 60}])
def test_one_user_or_equal_run_times_work_as_they_are(tmp_path, changes):
    scenario = own_history.write(tmp_path, own_history.rows_of(**changes))
    _, result = tuned(tmp_path, scenario)
    assert result.is_complete
    assert len(result.training.notes) == 1


def test_models_that_no_job_ran_on_get_estimates(tmp_path):
    rows = own_history.rows_of().replace("requested_s\n", "requested_s,gpu_model\n", 1)
    lines = rows.splitlines()
    rows = "\n".join([lines[0], *(f"{line},V100" for line in lines[1:])])
    scenario = own_history.write(tmp_path, rows)
    training = history_parts.training_part(scenario, history_parts.cut_of(scenario), tmp_path)
    est = history_parts.prepare(training).played.est
    assert est.shape == (450, 2)
    assert (np.isfinite(est) & (est > 0)).all()


def test_a_type_without_a_speed_on_a_model_is_refused(tmp_path):
    (tmp_path / "jobs.csv").write_text(own_history.rows_of())
    scenario = own_history.write(tmp_path)
    kind = {"name": "ml", "share": 1, "size": {"median_s": 1}, "speed": {"V100": 1.0}}
    other = scenario.model_dump() | {"types": [kind]}
    other["history"]["speeds"] = "own"
    with pytest.raises(ConfigError, match="T4"):
        fine_tuning.hyperparameters(type(scenario).model_validate(other), "shipped")


def test_only_policies_of_adlro_can_be_tuned(usual, tmp_path):
    paper = learned.shipped_file("paper-dqn")
    with pytest.raises(PolicyError, match=r"is a policy of paper-dqn, and only those of adlro"):
        fine_tuning.hyperparameters(usual[1], str(paper))
    with pytest.raises(PolicyError, match=r"none\.npz: there is no such file"):
        fine_tuning.hyperparameters(usual[1], str(tmp_path / "none.npz"))


def test_a_file_of_another_format_is_refused(usual, tmp_path):
    for suffix in learned.SUFFIXES:
        source = learned.shipped_file().with_suffix(suffix)
        (tmp_path / f"old{suffix}").write_bytes(source.read_bytes())
    card = json.loads((tmp_path / "old.json").read_text()) | {"format": 0}
    (tmp_path / "old.json").write_text(json.dumps(card))
    with pytest.raises(PolicyError, match="is not a card of format 1, the one that this adlro"):
        fine_tuning.hyperparameters(usual[1], str(tmp_path / "old.npz"))


def test_a_training_is_not_resumed_with_another_history(usual, tmp_path):
    scenario = own_history.write(tmp_path)
    tuned(tmp_path, scenario)
    own_history.write(tmp_path, own_history.rows_of(seed=5))
    with pytest.raises(ConfigError, match="was begun with history-sha256"):
        tuned(tmp_path, scenario)
