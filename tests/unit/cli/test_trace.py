"""`adlro trace`: what is printed, and what is written."""

import json
import os
import threading

import numpy as np
import pytest
from click.testing import CliRunner

from adlro.cli import cluster, compare, trace
from adlro.config.files import load_scenario
from adlro.errors import AdlroError
from adlro.workloads.formats.registry import read
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.histories import SAMPLES, write


def run(command, *args):
    return CliRunner().invoke(command, [str(arg) for arg in args])


def printed(*args, command=trace.command):
    result = run(command, *args)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


@pytest.mark.parametrize("name", SAMPLES)
def test_info_of_every_format_is_printed_and_is_valid_json(tmp_path, name):
    path = write(tmp_path, SAMPLES[name])
    text, figures = printed("info", path), json.loads(printed("info", path, "--json"))
    assert figures["format"] == name
    assert f"({name})" in text
    assert f"jobs  {' ' * 9}{figures['jobs']}" in text or str(figures["jobs"]) in text


def test_info_says_load_missing_fields_and_defects(tmp_path):
    path = write(tmp_path, SAMPLES["thetagpu"])
    text = " ".join(printed("info", path, "--gpus", "10").split())
    # Starts at 5 s and 120 s; 1 GPU for 115 s of that and 8 for none: a mean of 1.
    assert "mean 1.0, peak 9" in text
    assert "load 0.100 of 10 GPUs (given)" in text
    assert "1 user, 1 account" in text
    assert "ran longer than requested: 1" in text
    assert "missing end_s, eligible_s, cores, memory_mb" in text


def test_info_of_jobs_that_came_at_once_says_that_their_load_is_unknown(tmp_path):
    text = "submit_time,run_s,gpus\n5,172800,2\n5,60,1\n"
    lines = printed("info", write(tmp_path, text)).splitlines()
    shown = [" ".join(line.split()) for line in lines]
    assert "GPUs in use mean unknown, peak 3, as if each job had started at once" in shown
    assert "load unknown" in shown
    # half-way from 60 to 172,800, and 95 % of the way
    assert "run time, s median 86,430, mean 86,430, 95 % 164,163, most 172,800" in shown


@pytest.mark.parametrize("suffix", ["npz", "csv", "swf"])
def test_convert_writes_what_can_be_read_again(tmp_path, suffix):
    path, out = write(tmp_path, SAMPLES["itp"]), tmp_path / f"out.{suffix}"
    assert printed("convert", path, out) == f"{out}: 2 jobs\n"
    assert read(out).run_s.tolist() == [300.0, 20.0]


def test_nothing_is_written_where_the_source_is_wrong(tmp_path):
    path = write(tmp_path, SAMPLES["itp"].replace("300", "x"))
    for args in (("convert", path, tmp_path / "o.csv"), ("anonymise", path, tmp_path / "o.npz")):
        assert isinstance(run(trace.command, *args).exception, AdlroError)
    assert sorted(tmp_path.iterdir()) == [path]


def test_what_was_skipped_is_counted_and_listed_with_every_output(tmp_path):
    path = write(tmp_path, "submit_time,run_s,gpus\n5,60,1\n5,x,1\n5,60,2\n")
    said = f"skipped {path}:3: run_s must be a number, not 'x'"
    for args in (("convert", path, tmp_path / "o.csv"), ("anonymise", path, tmp_path / "o.npz")):
        text = printed(*args, "--lenient")
        assert "skipped: text in numbers: 1 lines of the file" in text
        assert said in text
    args = ("scenario", path, "--cluster", "paper16", "--out", tmp_path / "mine.toml", "--lenient")
    text = printed(*args)
    assert "2 jobs, one seed; load 1.000 (all came at once)" in text
    assert "skipped: text in numbers: 1 lines of the file" in text


def test_an_output_of_another_kind_is_refused(tmp_path):
    path = write(tmp_path, SAMPLES["itp"])
    result = run(trace.command, "convert", path, tmp_path / "out.parquet")
    assert result.exit_code == 2
    assert "must end in .npz, .csv, .swf" in result.output


def test_anonymise_hides_who_and_keeps_the_rest(tmp_path):
    path, out = write(tmp_path, SAMPLES["sacct"]), tmp_path / "out.csv"
    text = printed("anonymise", path, out, "--salt", "s")
    assert "2 users, 1 accounts and 2 names as codes; dates are moved by whole weeks" in text
    written = out.read_text()
    assert not [word for word in ("ann", "bob", "phys", "train") if f",{word}," in written]
    assert read(out).run_s[0] == 600.0


def test_a_scenario_is_written_that_plays_the_history(tmp_path):
    path = write(tmp_path, SAMPLES["helios"])
    out = tmp_path / "sub" / "mine.toml"
    out.parent.mkdir()
    args = ("scenario", path, "--cluster", "paper16", "--out", out, "--unfit", "drop")
    text = printed(*args, "--warm-up", "0.5", "--load-scale", "2")
    assert "2 jobs, one seed; load 0.615 (recorded 0.307)" in text
    assert (
        "left out: 1 jobs fit no pool that they may use, even empty" in text
    )  # 16 GPUs in one pool
    found = load_scenario(out)
    assert found.history.file == str(out.parent / "../jobs.txt")
    assert str(found.measure) == "after 50 %"
    workload = generate(prepare(found), 0)
    assert workload.jobs["gpus"].tolist() == [2, 1]
    assert workload.jobs["arrival"].tolist() == pytest.approx([0.0, 15.25])  # 30.5 s at twice
    assert workload.seconds[:, 0].tolist() == [120.0, 60.0]


TYPED = (
    "JobIDRaw|Partition|Submit|Start|End|ElapsedRaw|ReqTRES|SubmitLine\n"
    "1|gpu|2026-01-05T10:00:00|2026-01-05T10:00:30|2026-01-05T10:10:30|600|cpu=1,gres/gpu:volta=1|"
    "sbatch -p gpu,lab run.sh\n"
    "2|lab|2026-01-05T10:01:00|2026-01-05T10:01:00|2026-01-05T10:02:00|60|cpu=1,gres/gpu:h100=1|\n"
    "3|lab|2026-01-05T10:02:00|2026-01-05T10:02:00|2026-01-05T10:03:00|60|cpu=1,gres/gpu=1|\n"
)
TWO = """
[[nodes]]
name = "v"
gpu = "V100"
gpu_type = "volta"
gpus = 4
cores = 16
memory_gb = 64
partition = "gpu"
[[nodes]]
name = "t"
gpu = "T4"
gpus = 4
cores = 16
memory_gb = 64
partition = "lab"
"""


def test_a_scenario_keeps_what_jobs_asked_for_and_options_say_otherwise(tmp_path):
    path, out = write(tmp_path, TYPED), tmp_path / "mine.toml"
    args = ("scenario", path, "--cluster", write(tmp_path, TWO, "two.toml"), "--out", out)
    text = printed(*args)
    assert "1 of 3 jobs: left out: they ask for a GPU type that no node has, 'h100'" in text
    assert prepare(load_scenario(out)).played.allowed.tolist() == [[True, False], [False, True]]
    printed(*args, "--partitions", "ignore", "--gpu-types", "ignore")
    assert prepare(load_scenario(out)).played.allowed.all()
    printed(*args, "--gpu", "h100=T4", "--strict")
    assert prepare(load_scenario(out)).played.rows.tolist() == [0, 1, 2]


def test_strict_refuses_jobs_that_no_node_can_serve_in_one_line(tmp_path):
    path, out = write(tmp_path, TYPED), tmp_path / "mine.toml"
    cluster_file = write(tmp_path, TWO, "two.toml")
    result = run(
        trace.command, "scenario", path, "--cluster", cluster_file, "--out", out, "--strict"
    )
    assert isinstance(result.exception, AdlroError)
    assert "1 of 3 jobs: they ask for a GPU type that no node has, 'h100'" in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not out.exists()


@pytest.mark.parametrize(
    ("count", "said"), [(1999, "1,999 jobs, one seed"), (2500, "2 seeds of 1,000 jobs in a row")]
)
def test_a_long_history_makes_several_seeds(tmp_path, count, said):
    rows = "".join(f"{second},60,1\n" for second in range(count))
    path, out = write(tmp_path, f"submit_time,run_s,gpus\n{rows}"), tmp_path / "mine.toml"
    assert said in printed("scenario", path, "--cluster", "paper16", "--out", out)


def test_a_scenario_of_a_window_by_share_of_the_time(tmp_path):
    path, out = write(tmp_path, SAMPLES["helios"]), tmp_path / "mine.toml"
    args = ("scenario", path, "--cluster", "hetero64", "--out", out, "--to", "50%", "--json")
    figures = json.loads(printed(*args))  # 90 s in all: before 45 s are two
    assert figures["jobs"] == 2
    assert any("no speeds are known" in line for line in figures["filled"])


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--from", "soon", "is no time"),
        ("--load-scale", "0", "above 0"),
        ("--warm-up", "1", "from 0 to below 1"),
        ("--gpu", "G2", "is not NAME=VALUE"),
        ("--gpu", "G2=A10", "the history has no 'G2'; it names no GPU at all"),
        ("--jobs", "0", "0 is not in the range x>=1"),
        ("--jobs", "3", "3 is more than the 1 that can be played"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path, option, value, said):
    path, out = write(tmp_path, SAMPLES["itp"]), tmp_path / "mine.toml"
    args = ("scenario", path, "--cluster", "hetero64", "--out", out, "--unfit", "drop")
    result = run(trace.command, *args, option, value)
    assert result.exit_code == 2
    assert said in result.output
    assert not out.exists()


CSV = "submit_time,run_s,gpus,account\n0,60,1,a\n10,60,1,\n20,60,1,b\n"


@pytest.mark.parametrize("name", ["jobs.csv", "beside/../jobs.csv"])
def test_a_history_is_never_written_over_by_what_is_made_from_it(tmp_path, name):
    path = write(tmp_path, CSV, "jobs.csv")
    (tmp_path / "beside").mkdir()
    out = tmp_path / name
    for args in (
        ("convert", path, out),
        ("anonymise", path, out),
        ("scenario", path, "--cluster", "paper16", "--out", out),
    ):
        result = run(trace.command, *args)
        assert result.exit_code == 2
        assert "is the file that is read" in result.output
    assert path.read_text() == CSV
    nodes = write(tmp_path, "NodeName=a CPUTot=4 Gres=gpu:T4:1 RealMemory=1024\n", "nodes.txt")
    result = run(cluster.command, "import", nodes, "--out", nodes)
    assert "is the file that is read" in result.output


def test_a_history_from_a_pipe_makes_no_scenario(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(CSV,))
    writer.start()
    result = run(
        trace.command, "scenario", pipe, "--cluster", "paper16", "--out", tmp_path / "x.toml"
    )
    writer.join()
    assert result.exit_code == 2
    assert "cannot be read a second time" in result.output


def test_jobs_without_an_account_are_charged_to_the_first_and_that_is_said(tmp_path):
    path = write(tmp_path, CSV, "jobs.csv")
    text = printed("scenario", path, "--cluster", "paper16", "--out", tmp_path / "x.toml")
    assert "1 of 3 jobs: account unknown, charged to 'a'" in text


@pytest.mark.parametrize(
    ("step", "run_s", "said"),
    [(0.01, 1e6, "recorded 6.25e+06"), (5e7, 1, "recorded 1.25e-09")],
)
def test_a_history_is_played_at_its_recorded_load_however_far_out_it_is(
    tmp_path, step, run_s, said
):
    # One job every `step` seconds keeps run_s / step of 16 GPUs busy.
    rows = "submit_time,run_s,gpus\n" + "".join(f"{step * i},{run_s},1\n" for i in range(8))
    path, out = write(tmp_path, rows, "jobs.csv"), tmp_path / "mine.toml"
    text = printed("scenario", path, "--cluster", "paper16", "--out", out)
    setting = prepare(load_scenario(out))
    arrivals = generate(setting, 0).jobs["arrival"]
    np.testing.assert_allclose(arrivals, [step * i for i in range(8)], rtol=1e-9)
    assert said in text


def test_a_load_that_nobody_can_write_names_the_option(tmp_path):
    path, out = write(tmp_path, "submit_time,run_s,gpus\n0,5,1\n9,5,1\n"), tmp_path / "mine.toml"
    made = ("scenario", path, "--cluster", "paper16", "--out", out)
    result = run(trace.command, *made, "--load-scale", "1e-323")
    assert result.exit_code == 2
    assert "--load-scale" in result.output
    assert not out.exists()
    printed(*made)
    for load in ("0", "-1", "101", "inf"):
        result = run(compare.command, out, "--load", load)
        assert result.exit_code == 2
        assert "--load" in result.output
