"""Run times foreseen on a history: every estimator at its submission, and one job explained."""

import numpy as np
import pytest

from adlro.errors import TraceError
from adlro.estimates.errors import later_part
from adlro.evaluate import prediction_error
from tests.histories import history
from tests.mixed_models import MODELS, job, mixed

# ann's jobs take 100 s and bob's 1,000 s, whatever they request; one every 2,000 s.
ROWS = "id,submit_time,run_s,user,requested_s\n" + "".join(
    f"j{i},{2000 * i},{1000 if i % 2 else 100},{'bob' if i % 2 else 'ann'},{3600 * (1 + i % 3)}\n"
    for i in range(20)
)


def test_each_estimator_says_what_was_known_at_the_submission(tmp_path):
    found = prediction_error.prediction_errors(history(tmp_path, ROWS))
    seconds = {name: np.exp(log_s) for name, log_s in found.log_s.items()}
    assert list(seconds) == ["memory", "request", "last two", "last two alike", "user mean"]
    np.testing.assert_allclose(seconds["request"], [3600 * (1 + i % 3) for i in range(20)])
    for name in ("last two", "last two alike", "user mean"):
        np.testing.assert_allclose(seconds[name][:2], [3600, 7200])  # nothing known: the request
        np.testing.assert_allclose(seconds[name][2:], [100, 1000] * 9)
    assert np.abs(np.log(seconds["memory"][10:] / np.array([100, 1000] * 5))).max() < np.log(2)
    # Nothing has ended: the confidence in the request is the low one of a cold start.
    assert 0 < found.predictions["memory"].confidence[0, 0] < 0.3
    assert found.learned["memory"].state.memory.head[0]["learned"] == 20


def test_errors_are_those_of_the_jobs_that_count(tmp_path):
    jobs = history(tmp_path, ROWS)
    errors = prediction_error.prediction_errors(jobs).errors(later_part(jobs, 0.5))
    assert errors["last two"] == (10, pytest.approx(0, abs=1e-9), 1.0, pytest.approx(0, abs=1))
    assert errors["request"].jobs == 10
    assert errors["request"].under == 0


def test_paired_intervals_are_over_blocks_and_exclude_zero_only_if_one_is_better():
    rng = np.random.default_rng(1)
    truth = rng.normal(6, 2, 400)
    rows = np.arange(400)
    worse = prediction_error.paired_difference(truth + 1.5, truth + 1.0, truth, rows)
    assert worse.mean == pytest.approx(0.5)
    assert worse.is_settled
    one, other = truth + rng.normal(0, 1, 400), truth + rng.normal(0, 1, 400)
    equal = prediction_error.paired_difference(one, other, truth, rows)
    assert not equal.is_settled
    # By hand: 20 blocks of 20 jobs.
    blocks = (np.abs(one - truth) - np.abs(other - truth)).reshape(20, 20).mean(axis=1)
    assert equal.half_width == pytest.approx(2.093 * blocks.std(ddof=1) / 20**0.5, rel=1e-3)
    few = prediction_error.paired_difference(one, other, truth, rows[:19])
    assert few.ci95 is None
    assert few.mean == pytest.approx((np.abs(one - truth) - np.abs(other - truth))[:19].mean())


def test_memory_is_compared_with_every_other_estimator_on_the_counted_jobs(tmp_path):
    jobs = history(tmp_path, ROWS)
    later = later_part(jobs, 0.5)
    found = prediction_error.prediction_errors(jobs)
    versus, errors = found.memory_versus(later), found.errors(later)
    assert list(versus) == ["request", "last two", "last two alike", "user mean"]
    for name, one in versus.items():
        assert one.mean == pytest.approx(errors["memory"].mae_log - errors[name].mae_log)
        assert one.ci95 is None  # 10 jobs


def on_three_models(folder, named):
    """600 jobs of classes whose speeds differ between three GPU models, named or not."""
    found = mixed(1, 600)
    lines = []
    for n, (kind, model, run_s) in enumerate(
        zip(found.kinds, found.models, found.seconds, strict=True)
    ):
        one = job(kind)
        gpu_model = MODELS[model] if named and n != 300 else ""
        words = (one.user, one.account, one.queue, one.name, one.requested_s, int(one.gpus))
        lines.append(",".join(map(str, (f"j{n}", 977 * n, run_s, gpu_model, *words))))
    head = "id,submit_time,run_s,gpu_model,user,account,queue,name,requested_s,gpus\n"
    return history(folder, head + "\n".join(lines) + "\n")


def test_each_job_is_predicted_for_the_gpu_model_that_it_ran_on(tmp_path):
    errors = []
    for named in (True, False):
        jobs = on_three_models(tmp_path, named)
        found = prediction_error.prediction_errors(jobs)
        errors.append(found.errors(later_part(jobs, 0.5))["memory"].mae_log)
    assert errors[0] < 0.25  # the noise alone is 0.16
    assert errors[1] > 0.4
    jobs = on_three_models(tmp_path, True)
    found = prediction_error.prediction_errors(jobs)
    models = prediction_error.gpu_models(jobs)
    assert set(models) == set(found.learned["memory"].settings.models) == set(MODELS)
    assert found.jobs.model[300] == -1
    for one in found.predictions.values():
        assert one.log_s.shape == (600, 1)
    for place in (300, 599):
        why = prediction_error.explain(jobs, place)
        assert why.seconds == pytest.approx(found.predictions["memory"].seconds[place, 0])


def test_progress_is_reported_up_to_the_last_event(tmp_path):
    jobs = history(tmp_path, ROWS)
    reported = []
    prediction_error.prediction_errors(jobs, reported.append)
    assert reported[-1] == prediction_error.events(jobs) == 200  # 40 events, 5 estimators


@pytest.mark.parametrize("job", [1, 7, 19])
def test_an_explanation_is_of_the_estimate_that_was_made(tmp_path, job):
    jobs = history(tmp_path, ROWS)
    found, why = prediction_error.prediction_errors(jobs), prediction_error.explain(jobs, job)
    np.testing.assert_allclose(why.seconds, np.exp(found.log_s["memory"][job]))
    assert why.confidence == found.predictions["memory"].confidence[job, 0]
    interval = [found.predictions["memory"].at(p)[job, 0] for p in (0.1, 0.9)]
    assert why.interval == pytest.approx(interval)
    assert all(one.source < job for one in why.sources)


def test_a_job_without_a_submission_cannot_be_explained(tmp_path):
    jobs = history(tmp_path, ROWS)
    jobs.submit_s[3] = np.nan
    with pytest.raises(TraceError, match="no time of submission"):
        prediction_error.explain(jobs, 3)
