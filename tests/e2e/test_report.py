"""`adlro compare --report` as a user meets it."""

import json
import subprocess
import sys

import pytest

from tests.commands import called

SMALL = ("--jobs", "30", "--policies", "fcfs,min-min", "--seeds", "3")


def test_the_page_is_written_and_its_path_is_the_last_line(tmp_path):
    result = called("compare", *SMALL, "--report", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "report: out/report.html"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<b>min-min</b>" in page or "<b>fcfs</b>" in page
    assert "adlro compare --jobs 30 --policies fcfs,min-min --seeds 3 --report out" in page


def test_json_on_standard_output_is_not_spoilt_by_the_report(tmp_path):
    command = [sys.executable, "-m", "adlro", "compare", *SMALL, "--json", "-", "--report", "out"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert json.loads(result.stdout)["seeds"] == 3
    assert "report: out/report.html" in result.stderr


def test_a_place_that_cannot_be_written_to_is_refused_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    result = called("compare", "--seeds", "1000000", "--report", "file", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "adlro: file: is a file; name a folder\n"


@pytest.mark.parametrize("json_file", ["out", "out/report.html"])
def test_two_files_in_one_place_are_refused_before_the_run(tmp_path, json_file):
    if json_file != "out":
        (tmp_path / "out").mkdir()
    result = called(
        "compare", "--seeds", "100000", "--json", json_file, "--report", "out", cwd=tmp_path
    )
    assert result.returncode == 2
    assert f"--json: {json_file} is the place of --report too" in result.stderr


def test_a_page_is_not_printed(tmp_path):
    result = called("compare", "--seeds", "100000", "--report", "-", cwd=tmp_path)
    assert result.returncode == 2
    assert "--report: it cannot be printed; name a folder" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_writing_again_replaces_the_page(tmp_path):
    (tmp_path / "report.html").write_text("old")
    result = called("compare", *SMALL, "--report", ".", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
