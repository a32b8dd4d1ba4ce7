"""`adlro trace predict`: the table, one job, what is saved, what is refused."""

import json
import math
import re

import pytest
from click.testing import CliRunner

from adlro.cli import trace
from adlro.errors import AdlroError
from adlro.estimates.job_fields import JobFields
from adlro.estimates.run_times import RunTimes
from tests.histories import write

ROWS = "id,submit_time,run_s,user\n" + "".join(
    f"j{i},{2000 * i},{1000 if i % 2 else 100},{'bob' if i % 2 else 'ann'}\n" for i in range(20)
)


def run(*args):
    return CliRunner().invoke(trace.command, ["predict", *(str(arg) for arg in args)])


def printed(*args):
    result = run(*args)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_the_table_has_every_estimator(tmp_path):
    text = printed(write(tmp_path, ROWS))
    assert "the later 10 of 20 jobs" in text
    names = [
        " ".join(re.split(r" {2,}", line.strip())[:1])
        for line in text.splitlines()
        if line.count("%") == 3
    ]
    assert names == ["memory", "request", "last two", "last two alike", "user mean"]


def test_the_error_of_memory_is_compared_with_each_other_estimator(tmp_path):
    rows = "id,submit_time,run_s,user,requested_s\n" + "".join(
        f"j{i},{2000 * i},{1000 if i % 2 else 100},{'bob' if i % 2 else 'ann'},3600\n"
        for i in range(60)
    )
    text = printed(write(tmp_path, rows))
    (found,) = re.findall(r"\n +request +\d\.\d{3} +(-\d+\.\d) \((-\d+) to (-\d+)\)", text)
    mean, low, high = map(float, found)
    assert low < mean < high < 0  # requests are 4 or 36 times too long
    assert mean == pytest.approx((low + high) / 2, abs=1.1)
    assert re.search(r"\n +memory +\d\.\d{3} +\d+\.\d % ", text)  # not compared with itself
    assert "below 0 memory is better" in " ".join(text.split())
    one = json.loads(printed(write(tmp_path, rows), "--json"))["estimators"]["request"]
    assert 100 * one["memory_minus"]["mean"] / one["mae_log"] == pytest.approx(mean, abs=0.051)


def test_the_figures_are_json_and_say_why_one_job_is_foreseen_so(tmp_path):
    figures = json.loads(printed(write(tmp_path, ROWS), "--json", "--job", "j18", "--warm-up", "0"))
    assert figures["measured_jobs"] == 19  # of the first nobody knows anything
    assert figures["estimators"]["memory"]["mae_log"] < 0.5
    job = figures["job"]
    assert job["job"] == "j18"
    assert job["estimate_s"] == pytest.approx(100)
    assert job["run_s"] == 100
    assert job["requested_s"] is None
    assert job["sources"][0]["job"] == "j16"
    low, high = job["interval_80_s"]
    assert 0 < low <= 101
    assert 99 <= high < 1e5
    assert 0 <= figures["estimators"]["last two"]["in_80"] <= 1
    rows = figures["reliability"]["memory"]
    assert sum(row["jobs"] for row in rows) == 19
    assert all(row["low"] <= row["confidence"] <= row["high"] for row in rows)
    assert figures["notes"] == []


def test_the_reliability_table_says_how_often_each_confidence_was_right(tmp_path):
    text = printed(write(tmp_path, ROWS))
    rows = [line.split() for line in text.splitlines() if re.match(r" *0\.\d to ", line)]
    assert sum(int(row[3]) for row in rows) == 10


def test_gpu_models_are_told_apart_and_it_says_so(tmp_path):
    rows = "id,submit_time,run_s,user,gpu_model\n" + "".join(
        f"j{i},{2000 * i},{400 if i % 2 else 100},ann,{'T4' if i % 2 else 'V100'}\n"
        for i in range(40)
    )
    path = write(tmp_path, rows + "j40,80000,100,ann,\n")
    text = printed(path, "--job", "j39", "--save", str(tmp_path / "m.npz"))
    assert (
        "each job is predicted for the GPU model that it ran on: V100, T4; 1 jobs name none, and "
        "are predicted for V100\n"
    ) in text
    assert "job j39: estimate 400 s" in text
    saved = RunTimes.unpack((tmp_path / "m.npz").read_bytes(), "m.npz")
    assert saved.models == ("V100", "T4")
    assert saved.predict(JobFields(user="ann")).seconds == pytest.approx([100, 400], rel=0.02)


def test_where_no_job_had_ended_the_reason_is_that(tmp_path):
    rows = "".join(f"j{i},{i},1000,ann\n" for i in range(9))
    result = run(write(tmp_path, "id,submit_time,run_s,user\n" + rows))
    assert isinstance(result.exception, AdlroError)
    assert "no job had ended when those of the later part were submitted" in str(result.exception)


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([(f"j{i}", 100 * i, 10 + i, "") for i in range(9)], "no job names its user"),
        ([(f"j{i}", 100 * i, 10 + i, "ann") for i in range(9)], "all jobs are of one user"),
        ([(f"j{i}", 100 * i, 50, "ab"[i % 2]) for i in range(9)], "all run times are 50 s"),
    ],
)
def test_what_a_history_lacks_is_said_in_a_line(tmp_path, rows, note):
    lines = ["id,submit_time,run_s,user", *(",".join(map(str, row)) for row in rows)]
    text = printed(write(tmp_path, "\n".join(lines) + "\n"))
    assert sum(line.startswith(note) for line in text.splitlines()) == 1


def test_the_interval_of_a_history_of_equal_run_times_closes_around_them(tmp_path):
    rows = "".join(f"j{i},{100 * i},50,ann\n" for i in range(60))
    path = write(tmp_path, "id,submit_time,run_s,user\n" + rows)
    job = json.loads(printed(path, "--json", "--job", "j59"))["job"]
    assert job["estimate_s"] == pytest.approx(50)
    low, high = job["interval_80_s"]
    assert 40 < low <= 50 <= high < 60
    assert job["confidence"] > 0.8
    assert job["matched"].startswith("same user, request")


def test_one_job_is_explained_in_words(tmp_path):
    text = printed(write(tmp_path, ROWS), "--job", "j18")
    assert "job j18: estimate 100 s, confidence 0." in text
    assert "no request; it ran 100 s" in text
    assert re.search(r"\n  with a probability of 80 % it runs \d+ to \d+ s\n", text)
    assert "confidence: it runs between 50 and 200 s (half to twice the estimate) with" in text
    assert "  jobs like it differ from that by a factor of 1." in text
    assert "  likest jobs: same user" in text
    assert text.splitlines()[-1].endswith(tuple(f"j{i}" for i in range(18)))


def test_the_first_job_is_like_nothing_known(tmp_path):
    text = printed(write(tmp_path, ROWS), "--job", "j0")
    assert "job j0: no estimate, confidence 0.00 (no request; it ran 100 s)" in text
    assert "80 %" not in text.partition("job j0")[2]
    assert "nothing had ended yet" in text
    assert "differ from that" not in text


def test_a_job_of_a_source_without_ids_goes_by_its_place(tmp_path):
    rows = "\n".join(line.partition(",")[2] for line in ROWS.splitlines()) + "\n"
    figures = json.loads(printed(write(tmp_path, rows), "--json", "--job", "19"))
    assert figures["job"]["job"] == "19"
    assert figures["job"]["sources"][0]["job"] == "17"
    for wrong in ("0", "21", "j3", "1" * 5000):
        result = run(write(tmp_path, rows), "--job", wrong)
        assert isinstance(result.exception, AdlroError)
        assert "say which job of 1 to 20" in str(result.exception)


def test_what_was_learned_is_saved_and_can_be_asked(tmp_path):
    out = tmp_path / "memory.npz"
    assert str(out) in printed(write(tmp_path, ROWS), "--save", out)
    found = RunTimes.unpack(out.read_bytes(), str(out))
    assert found.predict(JobFields(user="bob")).seconds == pytest.approx([1000])


@pytest.mark.parametrize(
    ("head", "row", "expected"),
    [  # a job every 2,000 s; the last 10 of 20 are measured
        ("id,submit_time,run_s,requested_s", "j{i},{t},{r},3600", "all jobs are one user's"),
        ("id,submit_time,run_s,user", "j{i},{t},{r},ann", "one user"),
        ("id,submit_time,run_s,user", "j{i},{t},100,u{i}", "a user for each job: the median"),
        ("id,submit_time,run_s", "j{i},{t},100", "all run times equal, no user, no request"),
    ],
)
def test_histories_without_users_or_variety_give_a_row_for_every_estimator(
    tmp_path, head, row, expected
):
    rows = [row.format(i=i, t=2000 * i, r=100 if i < 12 else 400) for i in range(20)]
    found = json.loads(printed(write(tmp_path, "\n".join([head, *rows]) + "\n"), "--json"))
    errors = {name: one["mae_log"] for name, one in found["estimators"].items()}
    # Of 10 jobs the last 8 take 400 s: the first of them is estimated at 100 s, the second at 250.
    off = (math.log(4) + math.log(400 / 250)) / 10 if "{r}" in row else 0.0
    assert errors["last two"] == pytest.approx(off, abs=0.05), expected
    assert errors["last two alike"] == errors["last two"]
    assert len(errors) == 5
    assert all(math.isfinite(error) for error in errors.values())


def test_what_cannot_be_is_refused_before_any_work(tmp_path):
    path = write(tmp_path, ROWS)
    result = run(path, "--job", "j99")
    assert isinstance(result.exception, AdlroError)
    assert "has no job 'j99'" in str(result.exception)
    assert isinstance(run(path, "--save", tmp_path / "no" / "m.npz").exception, AdlroError)
    for share in ("1", "nan", "-0.1"):
        assert run(path, "--warm-up", share).exit_code == 2
    lacking = write(tmp_path, "id,submit_time,user\na,0,x\nb,1,x\n", "b.txt")
    assert "no job of the later part" in str(run(lacking).exception)


def test_a_memory_is_never_written_over_a_history(tmp_path):
    path = write(tmp_path, ROWS)
    assert "must end in .npz" in run(path, "--save", path).output
    assert path.read_text() == ROWS
    own = tmp_path / "own.npz"
    converted = CliRunner().invoke(trace.command, ["convert", str(path), str(own)])
    assert converted.exit_code == 0
    before = own.read_bytes()
    result = run(own, "--save", tmp_path / "." / "own.npz")
    assert (result.exit_code, own.read_bytes()) == (2, before)
    assert "is the history itself" in result.output
