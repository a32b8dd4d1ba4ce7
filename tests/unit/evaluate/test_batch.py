"""Many policies on the runs of many settings, each run stored as soon as it ends."""

import numpy as np
import pytest

from adlro.errors import PolicyError
from adlro.evaluate.batch import Batch, Case, by_window, name_of, runs_of
from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.evaluate.run_store import RunStore
from adlro.evaluate.variants import Variant, Windows, restricted, rows_of, windows_of
from adlro.policies import registry
from adlro.workloads.generate import generate
from tests.assessed import run_of, variants


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    whole = variants(tmp_path_factory.mktemp("batch")).setting(Variant())
    return restricted(whole, rows_of(whole), windows_of(360))


def store_of(folder):
    return RunStore(folder / "none", folder / "runs")


def test_metrics_of_windows_by_hand():
    windows = Windows(jobs=2, total=4, lead_in=1, stride=9, seeds=range(2))
    runs = [run_of([99, 1, 3, 5, 9]), run_of([99, 0, 0, 100, 300])]
    assert by_window(runs, windows, "mean_wait_s").tolist() == [2, 7, 0, 200]
    assert by_window(runs, windows, "mean_jct_s").tolist() == [12, 17, 10, 210]
    assert by_window(runs, windows, "p99_jct_s") == pytest.approx([12.98, 18.96, 10, 308])
    use = runs[0].metrics.gpu_utilisation
    assert by_window(runs, windows, "gpu_utilisation").tolist() == [use] * 4


def test_a_run_is_that_of_the_policy_on_the_workload_of_the_seed(setting, tmp_path):
    [found] = Batch(store_of(tmp_path), 2).play([Case(setting, ("fcfs",), range(1))])
    workload = generate(setting, 0)
    result = run_one(setting, workload, registry.load("fcfs", setting), 0)
    [run] = found["fcfs"]
    arrival = workload.jobs["arrival"]
    np.testing.assert_array_equal(run.wait_s, result.outcome["start"] - arrival)
    np.testing.assert_array_equal(run.jct_s, result.outcome["finish"] - arrival)
    assert run.metrics == measure(setting, workload, result)
    in_windows = by_window([run], windows_of(360), "mean_jct_s")
    assert in_windows.mean() == pytest.approx(run.metrics.mean_jct_s)


def test_what_is_stored_is_not_played_again(setting, tmp_path):
    windows, ended = Windows(10, 2, 20, 100, range(2)), []
    short = restricted(setting, rows_of(setting), windows)
    few, more = (Case(short, names, windows.seeds) for names in (("fcfs",), ("sjf", "fcfs")))
    batch = Batch(store_of(tmp_path), 2, ended.append)
    [first] = batch.play([few])
    assert (batch.played, sum(ended)) == (2, 2)
    again = Batch(store_of(tmp_path), 1, ended.append)
    [second] = again.play([more])
    assert (again.played, sum(ended)) == (2, 2 + runs_of([more])) == (2, 6)
    for one, other in zip(first["fcfs"], second["fcfs"], strict=True):
        np.testing.assert_array_equal(one.wait_s, other.wait_s)
    assert not np.array_equal(*(run.wait_s for run in second["fcfs"]))  # of two parts


def test_runs_stay_in_the_order_of_cases_and_seeds(setting, tmp_path):
    windows = Windows(10, 3, 20, 100, range(3))
    short = restricted(setting, rows_of(setting), windows)
    cases = [Case(short, ("fcfs",), range(3)), Case(short, ("fcfs",), range(2, 3))]
    found = Batch(store_of(tmp_path), 3).play(cases)
    np.testing.assert_array_equal(found[0]["fcfs"][2].jct_s, found[1]["fcfs"][0].jct_s)


def test_ctrl_c_keeps_the_runs_that_have_ended(setting, tmp_path):
    def stop(count):
        if count:
            raise KeyboardInterrupt

    case = Case(setting, ("fcfs", "sjf"), range(1))
    with pytest.raises(KeyboardInterrupt):
        Batch(store_of(tmp_path), 1, stop).play([case])
    again = Batch(store_of(tmp_path), 1)
    again.play([case])
    assert again.played == 1


def test_files_of_code_are_refused_as_their_runs_cannot_be_known_again(setting, tmp_path):
    own = tmp_path / "own.py"
    own.write_text("def decide(view, params, memory, out):\n    return 0\n")
    with pytest.raises(PolicyError, match="own: only policies of ADLRO and learned ones"):
        Batch(store_of(tmp_path), 1).play([Case(setting, (str(own),), range(1))])


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        ("slurm", "slurm"),
        ("./a/mine.npz", "mine"),
        ("mine.json", "mine"),
        ("a+lookahead", "a+lookahead"),
        ("./b.npz+lookahead", "b+lookahead"),
    ],
)
def test_a_policy_is_named_after_its_file(policy, name):
    assert name_of(policy) == name
