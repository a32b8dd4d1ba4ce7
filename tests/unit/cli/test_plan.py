"""`adlro plan`: what is printed and written, and what is refused in one line."""

import json

import pytest

from adlro.evaluate import run_store
from tests import planning_toys as toys
from tests.commands import called


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """A function that runs the command on the toy history."""
    monkeypatch.setattr(run_store, "default_folder", lambda: tmp_path / "runs")
    file, cluster = toys.write(tmp_path)

    def run(*words, history=file):
        return called("plan", str(history), "--cluster", str(cluster), "--threads", "1", *words)

    return run


def test_options_are_ranked_with_prices_and_written(planned, tmp_path):
    out = tmp_path / "plan.json"
    words = ("--add", "4xH200", "--add", "V100", "--add", "9xH200", "--remove", "2xv100")
    prices = ("--price", "H200=30000", "--price", "V100=8000", "--budget", "130,000")
    done = planned(*words, *prices, "--policies", "slurm,fcfs", "--json", str(out))
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    for part in (
        "Under slurm",
        "Under fcfs",
        "120,000",
        "Best under slurm: add",
        "fcfs is worth",
        "Kendall's tau = 1.00",
        "add 9xH200 is left out: it is above the budget of 130,000",
        "takes 2 of the 4 GPUs of volta",
        f"all figures: {out}".replace("  ", " "),
    ):
        assert part in text
    plan = json.loads(out.read_text())
    prices = {one["name"]: one["price"] for one in plan["options"]}
    assert prices == {
        "add 4xH200": 120_000,
        "add 16xV100": 128_000,
        "as it is": 0,
        "remove 2xv100": 0,
    }
    assert plan["options"][-1]["name"] == "remove 2xv100"
    assert set(plan["options"][0]["by_policy"]) == {"slurm", "fcfs"}
    assert {"findings", "agreement", "worth", "assumptions"} <= set(plan)


def test_without_prices_there_is_no_price_column(planned):
    done = planned("--add", "4xV100", "--policies", "fcfs", "--json", "-")
    plan = json.loads(done.stdout)
    assert {one["price"] for one in plan["options"]} == {None}
    assert "price" not in planned("--add", "4xV100", "--policies", "fcfs").stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "name at least one option"),
        (("--add", "4xH2000"), "did you mean"),
        (("--add", "0xH100"), "0 GPUs"),
        (("--add", "4x"), "write NUMBERxMODEL"),
        (("--add", "H100"), "say how many H100"),
        (("--remove", "5xV100"), "only 4 GPUs"),
        (("--remove", "v100"), "every GPU of the cluster"),
        (("--remove", "a100"), "no node has GPUs called 'a100'"),
        (("--add", "1xT4", "--budget", "9", "--price", "T4=10"), "it buys none of the options"),
        (("--add", "T4", "--budget", "9", "--price", "T4=10"), "it buys none of the options"),
        (("--add", "1xT4", "--budget", "9"), "--budget needs the price"),
        (("--add", "1xT4", "--price", "T44=1"), "unknown GPU model 'T44'"),
        (("--add", "1xT4", "--price", "T4=-1"), "above 0"),
        (("--add", "1xT4", "--price", "T4"), "is not NAME=VALUE"),
        (("--add", "1xT4", "--partition", "mian"), "did you mean 'main'"),
        (("--add", "1xT4", "--grow", "0"), "--grow"),
        (("--add", "1xT4", "--grow", "nan"), "nan is no factor"),
        (("--add", "1xT4", "--policies", "slrum"), "slurm"),
        (("--add", "1xT4", "--json", "/nowhere/plan.json"), "/nowhere"),
        (("--add", "1xT4", "--gpu", "volta=V100"), "the history has no 'volta'"),
    ],
)
def test_mistakes_are_one_line(planned, words, why):
    done = planned(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert why in done.stderr


def test_a_history_of_one_day_is_refused_in_one_line(planned, tmp_path):
    short = tmp_path / "short.csv"
    short.write_text(toys.rows(jobs=200))
    done = planned("--add", "1xT4", history=short)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "too few" in done.stderr
