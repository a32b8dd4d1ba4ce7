"""Who would wait longer: mean waits of groups under two schedulers."""

import pytest

from adlro.evaluate.group_waits import Compared, GroupChange, measured_rows, wait_changes
from adlro.evaluate.stats import Estimate
from adlro.evaluate.variants import Variant, Windows, restricted, rows_of
from tests.assessed import HEAD, row, run_of, variants

WINDOWS = Windows(jobs=2, total=2, lead_in=1, stride=0, seeds=range(1))
JOBS = (("a", "main", 1), ("a", "main", 1), ("b", "main", 4), ("a", "long", 1), ("a", "main", 1))


def setting_of(folder, jobs=JOBS, **more):
    lines = [
        row(i, 100 * i, 60, account=account, queue=queue, gpus=gpus)
        for i, (account, queue, gpus) in enumerate(jobs)
    ]
    one = variants(folder, HEAD + "".join(lines), **more)
    whole = one.setting(Variant())
    return one.history, restricted(whole, rows_of(whole), WINDOWS)


def test_changes_of_waits_by_hand(tmp_path):
    history, setting = setting_of(tmp_path)
    assert [rows.tolist() for rows in measured_rows(setting, WINDOWS)] == [[1, 2], [3, 4]]
    # Job 0 leads in. Windows: jobs 1 (a) and 2 (b); jobs 3 (a, long) and 4 (a).
    first = Compared(setting, [run_of([900, 10, 20, 30, 40])], [run_of([0, 40, 10, 30, 70])])
    second = Compared(setting, [run_of([900, 10, 20, 30, 40])], [run_of([0, 20, 0, 30, 20])])
    found = {one.label: one for one in wait_changes(history, [first, second], WINDOWS)}
    assert set(found) == {
        "account a", "account b", "partition main", "partition long", "single-GPU jobs",
        "gangs of 3 to 4 GPUs",
    }  # fmt: skip
    a = found["account a"]
    assert (a.jobs, a.assumptions, a.longer_in) == (3, 2, 1)
    assert a.before_s == pytest.approx(80 / 3)  # 10, 30, 40
    assert a.after_s == pytest.approx((140 + 70) / 2 / 3)  # 40, 30, 70 and 20, 30, 20
    assert a.change_s.mean == pytest.approx(25 / 3)
    # By window, mean over the assumptions: +20 of one job, +5 of two. Without one of them the mean
    # is 2.5 or 20, so the jackknife's error is sqrt(1/2 (2.5 - 8.33)² + 1/2 (20 - 8.33)²).
    assert a.change_s.ci95[1] - a.change_s.mean == pytest.approx(12.7062 * 9.2233, rel=1e-3)
    b = found["account b"]
    assert (b.before_s, b.after_s, b.change_s.mean, b.longer_in) == (20, 5, -15, 0)
    assert b.change_s.ci95 is None  # of one window
    assert found["partition long"].change_s.mean == 0
    assert not found["partition long"].is_longer
    assert found["account a"].is_longer


def test_most_additional_waiting_comes_first(tmp_path):
    history, setting = setting_of(tmp_path)
    one = Compared(setting, [run_of([0, 0, 0, 0, 0])], [run_of([0, 10, 25, 10, 10])])
    found = wait_changes(history, [one], WINDOWS)
    told = [(c.name, c.jobs) for c in found if c.grouping == "account"]
    assert told == [("a", 3), ("b", 1)]  # 30 s in all against 25 s of a longer wait


def test_waits_of_0_before_and_after_are_no_change(tmp_path):
    history, setting = setting_of(tmp_path)
    none = run_of([0, 0, 0, 0, 0])
    found = wait_changes(history, [Compared(setting, [none], [none])], WINDOWS)
    assert {(one.before_s, one.after_s, one.change_s.mean, one.is_longer) for one in found} == {
        (0, 0, 0, False)
    }


def test_jobs_without_an_account_are_a_group_of_their_own(tmp_path):
    history, setting = setting_of(tmp_path, (("", "main", 1), *JOBS[1:4], ("", "main", 1)))
    none = run_of([0, 0, 0, 0, 0])
    found = wait_changes(history, [Compared(setting, [none], [none])], WINDOWS)
    assert {one.label: one.jobs for one in found if one.grouping == "account"} == {
        "account a": 2, "account b": 1, "account unknown": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("grouping", "name", "label"),
    [
        ("gang", "below 1", "jobs on a part of a GPU"),
        ("gang", "1", "single-GPU jobs"),
        ("gang", "2", "gangs of 2 GPUs"),
        ("gang", "5 to 8", "gangs of 5 to 8 GPUs"),
        ("gang", "above 64", "gangs of more than 64 GPUs"),
        ("gang", "unknown", "jobs of unknown size"),
        ("account", "above all", "account above all"),
        ("partition", "1", "partition 1"),
    ],
)
def test_a_group_has_a_name_that_fits_a_sentence(grouping, name, label):
    none = Estimate(mean=0, sd=None, ci95=None)
    one = GroupChange(
        grouping=grouping, name=name, jobs=1, before_s=0, after_s=0, change_s=none, longer_in=0,
        assumptions=1,
    )  # fmt: skip
    assert one.label == label
