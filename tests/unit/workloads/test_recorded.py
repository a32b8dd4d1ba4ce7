"""What a history recorded of its jobs: waits, completion times, GPU-hours, by group."""

import numpy as np
import pytest

from adlro.workloads import recorded
from tests.histories import history

# a waits 0 s, b 50 s, c (eligible at 120) 30 s; d never started; e asks for no GPU.
ROWS = """id,submit,eligible,start,end,run_s,gpus,queue,account
a,0,0,0,100,100,2,short,x
b,0,0,50,150,100,4,long,y
c,100,120,150,200,50,1,short,x
d,110,110,,,,1,long,
e,0,0,0,60,60,0,short,x
"""
COLUMNS = {"eligible_s": "eligible"}


def read(folder, text=ROWS):
    from adlro.workloads.formats.gather import ReadOptions
    from adlro.workloads.formats.registry import read as read_file
    from tests.histories import write

    return read_file(write(folder, text), ReadOptions(False, "", tuple(COLUMNS.items())))


def test_waits_count_from_when_a_job_could_start(tmp_path):
    found = recorded.times(read(tmp_path), np.arange(4))
    np.testing.assert_array_equal(found.wait_s, [0, 50, 30, np.nan])
    np.testing.assert_array_equal(found.jct_s, [100, 150, 80, np.nan])
    assert found.is_known.tolist() == [True, True, True, False]
    assert not found.is_early.any()


def test_a_job_that_started_before_it_could_has_waited_for_nothing(tmp_path):
    early = read(tmp_path, ROWS.replace("b,0,0,50", "b,0,90,50"))
    found = recorded.times(early, np.arange(4))
    assert found.is_early.tolist() == [False, True, False, False]
    assert (found.wait_s[1], found.jct_s[1]) == (0, 100)
    assert recorded.summarise(early, 8).early == 1


def test_a_missing_end_is_start_and_run_time(tmp_path):
    found = recorded.times(read(tmp_path, ROWS.replace("50,150,100", "50,,100")), np.arange(2))
    assert found.jct_s.tolist() == [100, 150]


def test_the_summary_counts_jobs_with_gpus_and_says_which_never_started(tmp_path):
    # 2 x 100 + 4 x 100 + 1 x 50 = 650 GPU-s; from the first start (0) to the last (150) 600 GPU-s
    # of 150 x 8.
    found = recorded.summarise(read(tmp_path), 8)
    whole = found.whole
    assert (whole.jobs, whole.without_start, found.without_gpus) == (4, 1, 1)
    assert whole.gpu_hours == pytest.approx(650 / 3600)
    assert whole.use == pytest.approx(600 / (150 * 8))
    assert whole.wait_s.mean == pytest.approx(80 / 3)
    assert (whole.wait_s.p50, whole.jct_s.p50) == (30, 100)
    assert whole.wait_s.p99 == pytest.approx(np.percentile([0, 50, 30], 99))


def test_groups_come_by_gpu_hours_and_gangs_by_size_and_add_up(tmp_path):
    by = recorded.summarise(read(tmp_path), 8).by
    assert [(group.name, group.jobs) for group in by["partition"]] == [("long", 2), ("short", 2)]
    assert by["partition"][0].wait_s.mean == 50
    assert [group.name for group in by["account"]] == ["y", "x", "unknown"]
    assert by["account"][2].wait_s is None
    assert [(group.name, group.jobs) for group in by["gang"]] == [("1", 2), ("2", 1), ("3 to 4", 1)]
    assert "gpu_type" not in by
    for groups in by.values():
        assert sum(group.use for group in groups) == pytest.approx(0.5)
        assert sum(group.gpu_hours for group in groups) == pytest.approx(650 / 3600)


def test_merged_groups_have_the_mean_of_all_their_jobs(tmp_path):
    groups = recorded.summarise(read(tmp_path), 8).by["gang"]
    rest = recorded.merged(groups, "3 others")
    assert (rest.name, rest.jobs, rest.without_start) == ("3 others", 4, 1)
    assert rest.wait_s.mean == pytest.approx(80 / 3)
    assert rest.wait_s.p99 is None


@pytest.mark.parametrize(
    "text",
    [
        "submit,run_s,gpus\n5,10,1\n",
        "submit,start,run_s,gpus\n5,5,0,1\n",
        "submit,start,run_s,gpus\n5,5,10,1\n5,5,20,2\n",
        "submit,start,gpus\n5,5,1\n",
    ],
)
def test_little_is_said_of_histories_that_hold_little(tmp_path, text):
    found = recorded.summarise(history(tmp_path, text), 4)
    assert found.whole.use is None  # all started in the same second, or no start is recorded
    for one in (found.whole.wait_s, found.whole.jct_s):
        assert one is None or np.isfinite(one).all()


def test_processors_count_where_a_history_has_no_gpus(tmp_path):
    text = "submit,start,run_s,cores\n0,0,3600,16\n10,20,3600,4\n"
    found = recorded.summarise(history(tmp_path, text), 32)
    assert found.whole.gpu_hours == 20
    assert [group.name for group in found.by["gang"]] == ["3 to 4", "9 to 16"]
