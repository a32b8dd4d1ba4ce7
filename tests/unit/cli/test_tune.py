"""`adlro tune`: its output, and input that it refuses."""

import json

import pytest

from tests import tuned
from tests.commands import called
from tests.histories import write

OTHER = tuned.CLUSTER.replace("gpus = 4", "gpus = 1")


@pytest.fixture(autouse=True)
def own_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("adlro.evaluate.run_store.default_folder", lambda: tmp_path / "runs")


def run(tmp_path, *options, text=None, config=tuned.LARGE_FIRST, cluster=tuned.CLUSTER):
    jobs = write(tmp_path, text or tuned.csv(jobs=820), "jobs.csv")
    place, conf = write(tmp_path, cluster, "c.toml"), write(tmp_path, config, "slurm.conf")
    args = ("tune", jobs, "--cluster", place, "--slurm-config", conf, *options)
    return called(*map(str, args))


def test_it_prints_a_verdict_and_writes_every_figure(tmp_path):
    out = tmp_path / "out.json"
    result = run(tmp_path, "--trials", 4, "--threads", 1, "--json", out)
    assert result.returncode == 0, result.stderr
    told = json.loads(out.read_text())
    assert told["verdict"] in ("change", "leave it")
    assert all(set(one) == {"key", "from", "to"} for one in told["changes"] + told["rejected"])
    for line in told["lines"]:
        assert line in result.stdout
    for title in ("Verdict", "Who would wait longer", "What is left", "What is assumed"):
        assert title in result.stdout
    assert len(told["trials"]) <= 5
    assert {"gain", "by_speeds", "first_part", "gainers", "losers", "adlro", "findings"} <= set(
        told
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"config": tuned.LARGE_FIRST.replace("100000", "-1")}, "weight_job_size"),
        ({"config": tuned.LARGE_FIRST.replace("100000", "4294967296")}, "weight_job_size"),
        ({"config": tuned.LARGE_FIRST.replace("100000", "much")}, "PriorityWeightJobSize"),
        ({"text": tuned.csv(jobs=300)}, "300 GPU jobs"),
        ({"cluster": OTHER, "text": tuned.csv().replace(",1,bio", ",3,bio")}, "fit no pool"),
        ({"text": "submit_time,run_s,gpus\nx,1,1\n"}, "jobs.csv"),
    ],
)
def test_bad_input_is_one_line(tmp_path, changed, said):
    result = run(tmp_path, **changed)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--json", "missing/folder/out.json"), "missing"),
        (("--trials", 0), "--trials"),
        (("--objective", "best"), "--objective"),
    ],
)
def test_bad_options_are_one_line(tmp_path, options, said):
    result = run(tmp_path, *options)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
