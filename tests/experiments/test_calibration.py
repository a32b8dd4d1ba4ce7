"""The experiment on calibration: all histories with starts, on clusters at the recorded pace."""

from pathlib import Path

import pytest

from adlro.errors import ConfigError
from adlro.evaluate.calibration import Calibration, Means
from experiments import common
from experiments.calibration import histories, run
from tests.histories import write

FOLDER = Path(run.__file__).parent
HEAD = "id,submit_time,start_time,run_s,requested_s,gpus\n"
EVERY_S, RUN_S = 100, 150


def toy(folder, later_s, count=40):
    """A history of 2 GPUs that hold each job at once, recorded as started `later_s` later."""
    rows = "".join(
        f"j{i},{EVERY_S * i},{EVERY_S * i + later_s},{RUN_S},{RUN_S},1\n" for i in range(count)
    )
    write(folder, HEAD + rows, "jobs.csv")
    return histories.PublicHistory("toy", "jobs.csv", histories._alike(1, 2), "")


def test_a_history_that_started_as_simulated_is_reproduced_and_another_is_not(tmp_path):
    played = run.play(toy(tmp_path, 0), tmp_path)
    for policy in run.POLICIES:
        assert played.found[policy].jct_s == Means(recorded=150, simulated=150, difference_pct=0)
        assert run.line("toy", played, policy)[-1] == "within 0 %"
    late = run.play(toy(tmp_path, 150), tmp_path)
    assert run.line("toy", late, "slurm")[4:] == [
        "150", "0", "-100.0 %", "300", "150", "-50.0 %", "all equal", "**100 % off**",
    ]  # fmt: skip
    assert late.found["slurm"].reasons


def test_the_first_half_of_a_window_is_a_warm_up_at_the_recorded_pace(tmp_path):
    setting = run.setting_of(toy(tmp_path, 0), tmp_path)
    assert setting.scenario.load == pytest.approx(RUN_S / EVERY_S / 2)
    assert run.play(toy(tmp_path, 0), tmp_path).found["slurm"].jobs == 20


@pytest.mark.parametrize(
    ("count", "jobs", "seeds"),
    [(40, 40, [0]), (5_999, 5_999, [0]), (6_000, 3_000, [0, 1]), (27_000, 3_000, [0, 2, 4, 6])],
)
def test_short_histories_are_one_window_and_of_long_ones_four_are_played(
    tmp_path, count, jobs, seeds
):
    setting = run.setting_of(toy(tmp_path, 0, count), tmp_path)
    assert setting.scenario.jobs == jobs
    assert list(run.seeds_of(setting)) == seeds


def test_a_history_without_starts_is_refused(tmp_path):
    history = toy(tmp_path, 0)
    write(tmp_path, "id,submit_time,run_s,gpus\na,0,10,1\nb,5,10,1\n", "jobs.csv")
    with pytest.raises(ConfigError, match=r"jobs\.csv: cannot be calibrated: .* no starts"):
        run.play(history, tmp_path)


def test_a_history_with_starts_is_not_listed_among_those_without(tmp_path, monkeypatch):
    toy(tmp_path, 0, 3)
    monkeypatch.setattr(run, "WITHOUT_STARTS", {"toy": "*.csv"})
    with pytest.raises(ConfigError, match=r"1 files with 3 starts"):
        run.without_starts(tmp_path)
    write(tmp_path, "id,submit_time,run_s,gpus\na,0,10,1\n", "jobs.csv")
    assert run.without_starts(tmp_path) == [["toy", "1", "1"]]


def calibration(within, *, is_close):
    same = Means(recorded=1, simulated=1, difference_pct=0)
    return Calibration(
        policy="slurm", jobs=1, wait_s=same, jct_s=same, rank_correlation=None, partitions=[],
        within_pct=within, is_close=is_close, reasons=[],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("within", "is_close", "said"),
    [
        (0.846, True, "within 0.85 %"),
        (14.6, True, "within 15 %"),
        (1062.1, False, "**1,062 % off**"),
        (None, False, "unknown"),
    ],
)
def test_the_verdict_is_that_of_the_calibration(within, is_close, said):
    assert run.verdict(calibration(within, is_close=is_close)) == said


def test_a_figure_is_published_for_every_history_with_starts_and_every_policy():
    wanted = {one.row for one in common.load_expected(FOLDER / "expected.json").figures}
    names = [one.name for one in histories.HISTORIES]
    assert wanted == {f"{name}, {policy}" for name in names for policy in run.POLICIES}


def test_without_its_data_it_ends_with_status_2_and_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ADLRO_SHARED", str(tmp_path / "absent"))
    assert common.main("", FOLDER, run.make, ["--quick"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("error: ")
    assert "absent: no such folder" in said


def data():
    """The folder of shared data; skips the test where a history is absent."""
    try:
        folder = common.shared()
    except ConfigError as exc:
        pytest.skip(str(exc))
    absent = [one.file for one in histories.HISTORIES if not (folder / one.file).is_file()]
    if absent:
        pytest.skip(f"{folder}: has no {', '.join(absent)}")
    return folder


def test_the_quick_run_is_as_expected():
    data()
    figures = run.make(True).figures
    wanted = common.load_expected(FOLDER / "expected.json")
    some = tuple(one for one in wanted.figures if one.row.startswith(run.QUICK))
    assert len(some) == len([x for row in figures.values() for x in row])
    assert common.misses(figures, wanted.model_copy(update={"figures": some})) == []


@pytest.mark.slow
def test_the_figures_are_as_expected():
    data()
    assert common.main("", FOLDER, run.make, ["--check"]) == 0
