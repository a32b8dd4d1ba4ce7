"""Every registered estimator: the same rules for all of them."""

import json
from typing import get_args

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.cli import compare
from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import EstimateSource
from adlro.errors import ConfigError
from adlro.estimates import job_table
from adlro.estimates.estimator import DEFAULTS, Settings, ends_only, submissions_only
from adlro.estimates.job_fields import JobFields, of_one
from adlro.estimates.registry import ESTIMATORS
from adlro.estimates.run_times import RunTimes
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.unit.workloads.test_replay import recorded, scenario

LEARNERS = [name for name, kind in ESTIMATORS.items() if kind.needs_past]
BLIND = [name for name, kind in ESTIMATORS.items() if not kind.needs_truth]
WRITTEN = {"noisy": "noisy:0.5"}  # on the command line
ROWS = "id,submit_time,run_s,gpus,user\n" + "".join(
    f"{i},{1000 + 300 * i},{1000 if i % 2 else 100},1,{'bob' if i % 2 else 'ann'}\n"
    for i in range(24)
)


def random_jobs(rng, count):
    """Fields, submissions, ends and run times of jobs of five users."""
    fields = [
        JobFields(
            user=str(rng.integers(5)),
            requested_s=float(rng.integers(1, 9)) * 3600 if rng.random() < 0.5 else np.nan,
        )
        for _ in range(count)
    ]
    submit = np.sort(rng.integers(0, 50 * count, count)).astype(np.float64)
    run_s = np.exp(rng.normal(6, 2, count))
    return fields, submit, submit + rng.integers(0, 300, count) + run_s, run_s


def table_of(fields, submit, end, run_s):
    fillings = np.array([of_one(job) for job in fields])
    requested = np.array([job.requested_s for job in fields])
    return job_table.table(fillings, requested, job_table.event_order(submit, end, run_s))


def test_the_registry_has_every_name_that_a_scenario_may_hold():
    assert set(ESTIMATORS) == set(get_args(EstimateSource))


@pytest.mark.parametrize("name", BLIND)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_run_times_of_jobs_that_have_not_ended_change_nothing(name, seed):
    rng = np.random.default_rng(seed)
    fields, submit, end, run_s = random_jobs(rng, 120)
    before = ESTIMATORS[name].create(DEFAULTS).follow(table_of(fields, submit, end, run_s))
    now = submit[rng.integers(20, 120)]
    later = end > now
    changed, delayed = np.where(later, run_s * 1000, run_s), np.where(later, end + 1e6, end)
    jobs = table_of(fields, submit, delayed, changed)
    after = ESTIMATORS[name].create(DEFAULTS).follow(jobs)
    known = submit <= now
    np.testing.assert_array_equal(after.seconds[known], before.seconds[known])
    np.testing.assert_array_equal(after.confidence[known], before.confidence[known])
    np.testing.assert_array_equal(after.log_quantiles[known], before.log_quantiles[known])


@pytest.mark.parametrize("name", BLIND)
def test_nor_do_they_where_gpu_models_are_told_apart(name):
    """Two job classes, three GPU models, some runs on an unknown one, utilisations."""
    models = Settings(("A", "B", "C"), (0.0, 0.0, 0.0))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        fields, submit, end, run_s = random_jobs(rng, 300)
        model, kind = rng.integers(-1, 3, 300), rng.integers(0, 2, 300)
        use, prior = rng.random(300), np.log([[1.0, 2.0, 4.0], [1.0, 1.0, 0.5]])
        now = submit[200]
        later = end > now
        one = table_of(fields, submit, end, run_s)
        two = table_of(fields, submit, np.where(later, end + 1e6, end), run_s * (1 + 999 * later))
        one = one._replace(model=model, kind=kind, prior=prior, utilisation=use)
        two = two._replace(
            model=np.where(later, (model + 2) % 4 - 1, model), kind=kind, prior=prior,
            utilisation=np.where(later, 1 - use, use),
        )  # fmt: skip
        before, after = (ESTIMATORS[name].create(models).follow(jobs) for jobs in (one, two))
        known = submit <= now
        for field in ("log_s", "confidence", "log_quantiles"):
            np.testing.assert_array_equal(
                getattr(after, field)[known], getattr(before, field)[known]
            )
        assert (after.log_quantiles[~known] != before.log_quantiles[~known]).any()


@pytest.mark.parametrize("name", LEARNERS)
def test_in_a_scenario_arrivals_before_the_end_of_a_run_do_not_depend_on_it(name, monkeypatch):
    from adlro.estimates import past

    setting = prepare(adjusted(find_scenario("paper16"), estimates=name, jobs=200))
    one, predict_arrivals = generate(setting, 0).est, past.predict_arrivals
    now = generate(setting, 0).jobs["arrival"][100]

    def longer(before, runs, speeds, probability):
        runs_on = runs.jobs["arrival"] + runs.seconds > now
        seconds = np.where(runs_on, 50 * runs.seconds, runs.seconds)
        return predict_arrivals(before, runs._replace(seconds=seconds), speeds, probability)

    monkeypatch.setattr(past, "predict_arrivals", longer)
    two = generate(setting, 0).est
    np.testing.assert_array_equal(two[:101], one[:101])
    assert (two[101:] != one[101:]).any()


@pytest.mark.parametrize("name", BLIND)
def test_events_at_once_and_job_by_job_give_the_same(name):
    fields, submit, end, run_s = random_jobs(np.random.default_rng(3), 60)
    jobs = table_of(fields, submit, end, run_s)
    whole = ESTIMATORS[name].create(DEFAULTS).follow(jobs)
    live = RunTimes(estimator=name)
    for event, time in zip(jobs.order.tolist(), jobs.time.tolist(), strict=True):
        if event >= 0:
            live.learn(fields[event], run_s[event], time, event)
        else:
            job = -1 - event
            found, why = live.predict(fields[job], source=job), live.explain(fields[job])
            np.testing.assert_allclose(found.seconds, whole.seconds[job], rtol=1e-12)
            np.testing.assert_allclose(found.log_quantiles, whole.log_quantiles[job], rtol=1e-12)
            np.testing.assert_allclose(why.seconds, found.seconds[0], rtol=1e-12)
            assert why.confidence == found.confidence[0] == whole.confidence[job, 0]
            np.testing.assert_allclose(why.interval, np.ravel([found.at(0.1), found.at(0.9)]))


@pytest.mark.parametrize("name", BLIND)
def test_a_copy_and_a_saved_estimator_go_on_as_the_original(name):
    rng = np.random.default_rng(4)
    jobs = table_of(*random_jobs(rng, 160))
    first = ESTIMATORS[name].create(Settings(("A", "B"), (0.0, -1.0)))
    jobs = jobs._replace(prior=np.array([[0.0, -1.0]]), model=rng.integers(-1, 2, 160))
    first.follow(jobs)
    data = first.pack()
    others = [first.copy(), ESTIMATORS[name].unpack(data, "file")]
    first.learn(jobs)
    for other in others:
        assert other.settings.models == ("A", "B")
        assert other.pack() == data
        other.learn(jobs)
        for field in ("seconds", "confidence", "log_quantiles"):
            np.testing.assert_array_equal(
                getattr(other.predict(jobs), field), getattr(first.predict(jobs), field)
            )


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - set(BLIND)))
def test_the_truth_is_known_in_simulations_only(name):
    jobs = table_of(*random_jobs(np.random.default_rng(5), 3))
    with pytest.raises(ConfigError, match="known in simulations only"):
        ESTIMATORS[name].create(DEFAULTS).predict(jobs)


@pytest.mark.parametrize("name", BLIND)
def test_learning_is_the_ends_and_predicting_the_submissions(name):
    jobs = table_of(*random_jobs(np.random.default_rng(6), 40))
    one, two = ESTIMATORS[name].create(DEFAULTS), ESTIMATORS[name].create(DEFAULTS)
    one.learn(jobs)
    two.follow(ends_only(jobs))
    np.testing.assert_array_equal(
        one.predict(jobs).seconds, two.follow(submissions_only(jobs)).seconds
    )


def compared(where, name):
    arguments = [str(where), "--estimates", WRITTEN.get(name, name), "--policies", "fcfs"]
    arguments += ["--jobs", "20", "--seeds", "1", "--json", "-"]
    result = CliRunner().invoke(compare.command, arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_compare_takes_it_on_a_scenario_and_on_a_history(name, tmp_path):
    assert compared("paper16", name)["estimates"] == WRITTEN.get(name, name)
    scenario(tmp_path, rows=ROWS, jobs=20)
    assert compared(tmp_path / "mine.toml", name)["policies"]


@pytest.mark.parametrize("name", LEARNERS)
def test_on_a_history_estimates_come_from_jobs_that_had_ended(name, tmp_path):
    found = recorded(scenario(tmp_path, more=f'estimates = "{name}"', rows=ROWS, jobs=24))
    est = generate(found, 0).est
    assert (est[0] == 1200).all()  # nothing has ended: as `request`, the longest run
    np.testing.assert_allclose(est[-2:], [[100, 100], [1000, 1000]], rtol=1e-6)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_quantile_of_run_times_can_be_asked_for_in_a_scenario_and_on_a_history(name, tmp_path):
    found = []
    for written in (f"{name}:0.2", f"{name}:0.9"):
        setting = prepare(adjusted(find_scenario("paper16"), estimates=written, jobs=30))
        found.append(generate(setting, 0).est)
    limit = generate(setting, 0).jobs["limit"][:, None]
    assert ((found[0] < found[1]) | (found[1] >= limit)).all()
    est = []
    for place, written in enumerate((f"{name}:0.2", f"{name}:0.9")):
        folder = tmp_path / str(place)
        folder.mkdir()
        one = recorded(scenario(folder, more=f'estimates = "{written}"', rows=ROWS, jobs=24))
        est.append(generate(one, 0).est)
    assert (est[0][-10:] <= est[1][-10:]).all()
    assert (est[0][-10:] < est[1][-10:]).any()


def test_a_quantile_that_cannot_be_is_refused_in_a_line():
    for written in ("memory:1.5", "memory:0.99", "oracle:0.5"):
        result = CliRunner().invoke(compare.command, ["paper16", "--estimates", written])
        assert result.exit_code != 0
        message = str(result.exception) if result.exit_code == 1 else result.output
        assert "estimates" in message
