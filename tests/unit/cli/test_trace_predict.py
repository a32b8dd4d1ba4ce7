"""`adlro trace predict`: the table, one job, what is saved, what is refused."""

import json

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
    rows = [line.split() for line in text.splitlines()]
    names = [" ".join(row[:-5]) for row in rows if row[-1:] == ["%"]]
    assert names == ["memory", "request", "last two", "user mean"]


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
    assert job["matched"].startswith("same user, request")


def test_one_job_is_explained_in_words(tmp_path):
    text = printed(write(tmp_path, ROWS), "--job", "j18")
    assert "job j18: estimate 100 s, confidence 0." in text
    assert "no request; it ran 100 s" in text
    assert "  jobs like it differ from that by a factor of 1." in text
    assert "  likest jobs: same user" in text
    assert text.splitlines()[-1].endswith(tuple(f"j{i}" for i in range(18)))


def test_the_first_job_is_like_nothing_known(tmp_path):
    text = printed(write(tmp_path, ROWS), "--job", "j0")
    assert "job j0: no estimate, confidence 0.00 (no request; it ran 100 s)" in text
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
