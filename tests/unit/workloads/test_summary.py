"""What is said of a history."""

import math

import pytest

from adlro.workloads import summary
from tests.histories import SAMPLES, history

ROWS = "id,submit,start,run_s,gpus\na,0,0,100,2\nb,0,50,100,4\nc,100,150,50,1\n"


def test_gpus_in_use_and_load_follow_from_starts_and_run_times(tmp_path):
    # a holds 2 GPUs over 0-100, b 4 over 50-150, c 1 over 150-200: 6 at most. From the first start
    # (0) to the last (150): 2 x 100 + 4 x 100 = 600 GPU-seconds, a mean of 4; 650 in all.
    busy = summary.in_use(history(tmp_path, ROWS))
    assert (busy.unit, busy.mean, busy.peak, busy.by) == ("GPUs", 4.0, 6.0, "start")
    assert busy.hours == pytest.approx(650 / 3600)


def test_without_starts_jobs_are_taken_to_start_at_once(tmp_path):
    # a and b over 0-100, c over 100-150: 6 at most; 0 to 100: 200 + 400 GPU-seconds.
    busy = summary.in_use(history(tmp_path, ROWS.replace(",start,", ",other,")))
    assert (busy.mean, busy.peak, busy.by) == (6.0, 6.0, "submission")


def test_the_size_is_given_or_stated_or_the_most_in_use(tmp_path):
    plain, swf = history(tmp_path, ROWS), history(tmp_path, SAMPLES["swf"], "x.swf")
    busy = summary.in_use(plain)
    assert summary.size_of(plain, busy, 12) == (12, "given")
    assert summary.size_of(plain, busy, None) == (6.0, "the most in use at once")
    processors = summary.in_use(swf)
    assert processors.unit == "processors"
    assert summary.size_of(swf, processors, None) == (128, "stated by the source")


def test_missing_fields_are_counted(tmp_path):
    found = summary.missing(history(tmp_path, SAMPLES["csv"]))
    assert found["gpus"] == 1
    assert found["start_s"] == 3
    assert "submit_s" not in found


def test_dates_are_shown_where_it_is_known_what_0_is(tmp_path):
    philly, helios = history(tmp_path, SAMPLES["philly"]), history(tmp_path, SAMPLES["helios"])
    assert summary.date(philly, 30.0) == "2017-10-09 00:01:00 (local time, zone unknown)"
    assert summary.date(helios, 30.0) == "30 s"
    assert summary.date(helios, math.nan) == "unknown"


def test_nothing_is_said_of_use_where_run_times_are_missing(tmp_path):
    assert summary.in_use(history(tmp_path, SAMPLES["gavel"])) is None
