"""Assessment of a small history: what is played, what is pooled, and what is shared."""

import numpy as np
import pytest

from adlro.errors import PolicyError, TraceError
from adlro.evaluate import assess
from adlro.evaluate.assess import assessment, choose_estimator, make_study
from adlro.evaluate.batch import Batch, Case, by_window
from adlro.evaluate.run_store import RunStore
from adlro.evaluate.stats import percent_difference
from adlro.evaluate.variants import SPEEDS, Variant, restricted, rows_of, windows_of
from tests.assessed import HEAD, row, text, variants

POLICIES = ("slurm", "fcfs", "adlro")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("assess")


@pytest.fixture(scope="module")
def study(folder):
    return make_study(variants(folder, text(400), slurm={"weight_job_size": 1_000}), POLICIES)


@pytest.fixture(scope="module")
def results(study, folder):
    return Batch(RunStore(folder / "jobs.csv", folder / "runs"), 2).play(study.cases)


@pytest.fixture(scope="module")
def found(study, results):
    return assessment(study, results)


def test_each_policy_plays_each_assumption_and_the_twin_only_once_for_all_estimates(study):
    own = study.estimator.name
    assert study.assumptions == [
        (speeds, source) for speeds in SPEEDS for source in ("request", own, "oracle")
    ]
    rest = ("fcfs", "adlro")
    assert [case.policies for case in study.cases] == [POLICIES, rest, rest] * 3 + [("slurm",)]
    assert study.runs == 3 * (3 + 2 + 2) + 1


def test_the_twin_is_independent_of_estimates(study, folder):
    one, other = study.cases[0], study.cases[2]
    assert other.setting.scenario.estimates.source == "oracle"
    blind = ("slurm", "multifactor")
    cases = [Case(case.setting, blind, case.seeds) for case in (one, other)]
    first, second = Batch(RunStore(folder / "jobs.csv", folder / "runs"), 1).play(cases)
    for name in blind:
        np.testing.assert_array_equal(first[name][0].wait_s, second[name][0].wait_s)
    assert first["slurm"][0].wait_s.any()


def test_all_cases_play_the_same_jobs_at_the_same_times(study):
    played = [case.setting.played for case in study.cases]
    for one in played[1:]:
        np.testing.assert_array_equal(one.rows, played[0].rows)
        np.testing.assert_array_equal(one.jobs["arrival"], played[0].jobs["arrival"])


def test_the_last_case_is_the_twin_without_weights(study):
    assert study.has_flat
    weights = [case.setting.scenario.slurm.weight_job_size for case in study.cases]
    assert weights == [1_000] * 9 + [0]


def test_without_weights_there_is_no_twin_without_them(tmp_path):
    plain = make_study(variants(tmp_path), ("slurm", "adlro"))
    assert not plain.has_flat
    assert len(plain.cases) == len(plain.assumptions) == 9


def changing(jobs=400):
    """Limits are exact in the first quarter only; later every user's jobs are all alike."""
    first = jobs // 4
    return HEAD + "".join(
        row(i, 800 * i, 60 + 7_919 * i % 3_000, limit=60 + 7_919 * i % 3_000, user=f"u{i % 3}")
        if i < first
        else row(i, 800 * i, 600, limit=86_400, user=f"v{i % 3}")
        for i in range(jobs)
    )


def test_the_estimator_is_chosen_on_the_first_part_only(tmp_path):
    one = variants(tmp_path, changing())
    rows = rows_of(one.setting(Variant()))
    study = make_study(one, ("slurm", "adlro"))
    assert study.windows == windows_of(400)
    assert study.estimator == choose_estimator(one, rows[:100])
    assert study.estimator.name == "request"
    assert study.estimator.errors["request"] == pytest.approx(0, abs=1e-6)
    assert choose_estimator(one, rows).name != "request"
    assert {source for _, source in study.assumptions} == {"request", "oracle"}
    assert "no estimator predicts run times better" in study.notes[0]


def test_a_cell_has_the_figures_of_its_runs_paired_by_window(found, study, results):
    cell = found.cells[4]  # measured mix, by the chosen estimator
    assert (cell.speeds, cell.estimates) == ("measured-mix", study.estimator.name)
    ours = by_window(results[4]["adlro"], study.windows, "mean_jct_s")
    today = by_window(results[3]["slurm"], study.windows, "mean_jct_s")  # shared with request
    assert cell.row("adlro").mean_jct_s.mean == pytest.approx(ours.mean())
    assert cell.row("adlro").versus_today_pct == percent_difference(ours, today)
    assert cell.row("adlro").versus_today_pct.mean == pytest.approx(
        100 * (ours.mean() / today.mean() - 1)
    )
    assert cell.row("slurm").mean_jct_s.mean == pytest.approx(today.mean())
    assert cell.row("slurm").versus_today_pct is None
    assert cell.row("min-min") is None


def test_assumptions_have_the_same_weight_and_the_reference_has_none(found):
    assert [cell.is_reference for cell in found.cells] == [False, False, True] * 3
    for name in POLICIES:
        rows = [cell.row(name) for cell in found.cells if not cell.is_reference]
        mean = np.mean([row.mean_jct_s.mean for row in rows])
        assert found.pooled_row(name).mean_jct_s == pytest.approx(mean)
    jcts = [row.mean_jct_s for row in found.pooled]
    assert jcts == sorted(jcts)
    ours, today = found.pooled_row("adlro"), found.pooled_row("slurm")
    assert ours.versus_today_pct.mean == pytest.approx(
        100 * (ours.mean_jct_s / today.mean_jct_s - 1)
    )
    assert (today.versus_today_pct, ours.versus_ours_pct) == (None, None)


def test_the_record_is_that_of_the_measured_jobs(found, results):
    runs = np.array([600 + 97 * i % 2400 for i in range(400)])[100:]
    assert found.recorded["mean_wait_s"].mean == pytest.approx(30)
    assert found.recorded["mean_jct_s"].mean == pytest.approx(runs.mean() + 30)
    assert found.calibration.jobs == 300
    assert found.calibration.wait_s.recorded == pytest.approx(30)
    [twin] = results[0]["slurm"]
    assert found.calibration.wait_s.simulated == pytest.approx(twin.wait_s[100:].mean())
    assert found.calibration.jct_s.simulated == pytest.approx(twin.jct_s[100:].mean())


def test_waits_are_compared_from_the_twin_to_ours(found, results):
    [vision] = [one for one in found.changes if one.label == "account vision"]
    inside = np.array([i % 3 != 1 for i in range(400)])
    inside[:100] = False
    twins = [results[case]["slurm"][0].wait_s[inside].mean() for case in (0, 3, 6)]
    ours = [results[case]["adlro"][0].wait_s[inside].mean() for case in (0, 1, 3, 4, 6, 7)]
    assert vision.jobs == inside.sum()
    assert vision.before_s == pytest.approx(np.mean(twins))
    assert vision.after_s == pytest.approx(np.mean(ours))
    assert vision.assumptions == 6


def test_facts_of_the_history(found):
    assert (found.jobs, found.gpus, found.windows, found.window_jobs) == (400, 4, 5, 60)
    assert (found.lead_in_jobs, found.runs) == (100, 1)
    assert found.days == pytest.approx(399 * 800 / 86_400)
    assert found.load == pytest.approx(1.0, abs=0.3)


def test_what_holds_under_some_speeds_only_says_so(found):
    told = [one for one in found.assumptions if "all GPU models are alike" in one]
    assert told == [
        "all jobs: no speeds are known: all GPU models are alike (under all GPUs alike)"
    ]
    assert len([one for one in found.assumptions if "priority" in one]) == 1


@pytest.mark.parametrize("missing", [3, None])
def test_a_record_with_gaps_is_not_compared(missing, tmp_path, study, results):
    wait = {"wait": None} if missing is None else {}
    lines = text(400, **wait).splitlines(keepends=True)
    for i in range(1, 401, missing or 1_000):
        head, submit, *_, rest = lines[i].split(",", 4)
        lines[i] = f"{head},{submit},,,{rest}"
    gappy = study._replace(variants=variants(tmp_path, "".join(lines)))
    setting = gappy.variants.setting(Variant())
    part = restricted(setting, rows_of(setting), gappy.windows)
    gappy = gappy._replace(cases=[gappy.cases[0]._replace(setting=part), *gappy.cases[1:]])
    found = assessment(gappy, results)
    assert found.recorded is None
    assert found.pooled_row("adlro").versus_recorded_pct is None
    assert (found.calibration is None) == (missing is None)


def test_a_short_history_is_refused(tmp_path):
    with pytest.raises(TraceError, match="are too few"):
        make_study(variants(tmp_path, text(319)), POLICIES)


@pytest.mark.parametrize("more", [["./adlro.npz"], ["a/x.npz", "b/x.npz"], ["a/slurm.json"]])
def test_two_policies_of_one_name_are_refused(more, tmp_path):
    with pytest.raises(PolicyError, match="another one is called"):
        make_study(variants(tmp_path), (*assess.POLICIES, *more))


def test_a_stored_study_gives_the_same_assessment_again(found, study, folder):
    ended = []
    batch = Batch(RunStore(folder / "jobs.csv", folder / "runs"), 1, ended.append)
    assert assessment(study, batch.play(study.cases)) == found
    assert (batch.played, sum(ended)) == (0, study.runs)
