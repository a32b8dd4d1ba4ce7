"""The tools that start a real Slurm: it schedules fake typed GPUs and leaves nothing behind."""

import csv
import io
import os
import time

import pytest

from tests.tools import slurm_workload
from tests.tools.slurm_cluster import SlurmCluster, SlurmError, missing
from tests.tools.slurm_config import Node, Partition

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _installed():
    if reason := missing():
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


def submit(slurm, *options, seconds=0.6):
    return slurm.submit("--output=/dev/null", "--time=1", *options, "--wrap", f"sleep {seconds}")


def records(slurm, *jobs, seconds=60.0):
    """The records of all jobs, when sacct has the ends of these: slurmdbd hears of them later."""
    fields = "JobID,State,Partition,NodeList,ReqTRES,AllocTRES,End"
    deadline = time.monotonic() + seconds
    while True:
        text = slurm.run("sacct", "-P", "-X", "-o", fields)
        rows = csv.DictReader(io.StringIO(text), delimiter="|", quoting=csv.QUOTE_NONE)
        found = {int(row["JobID"]): row for row in rows}
        if all(job in found and found[job]["End"] != "Unknown" for job in jobs):
            return found
        assert time.monotonic() < deadline, f"sacct has no end of {jobs} after {seconds} s: {found}"
        time.sleep(0.5)


def test_jobs_run_on_the_type_and_partition_they_ask_for_and_sacct_says_so(tmp_path):
    with SlurmCluster(tmp_path) as slurm:
        typed = submit(slurm, "--gres=gpu:turing:2")
        lab = submit(slurm, "--gres=gpu:radeon:4", "--partition=lab")
        both = submit(slurm, "--gres=gpu:1", "--partition=gpu,lab")
        with pytest.raises(SlurmError, match="node configuration is not available"):
            submit(slurm, "--gres=gpu:volta:1", "--partition=lab")
        slurm.wait_until_empty()
        done = records(slurm, typed, lab, both)
    assert {done[job]["State"] for job in (typed, lab, both)} == {"COMPLETED"}
    assert done[typed]["NodeList"] == "t1"
    assert "gres/gpu:turing=2" in done[typed]["ReqTRES"]
    assert (done[lab]["NodeList"], done[lab]["Partition"]) == ("r1", "lab")
    assert "gres/gpu:" not in done[both]["ReqTRES"]
    assert "gres/gpu:" in done[both]["AllocTRES"]
    assert done[both]["Partition"] in ("gpu", "lab")
    assert slurm.processes() == []


def test_two_clusters_of_other_shapes_run_side_by_side(tmp_path):
    nodes = [Node("x1", "tesla", gpus=2), Node("x2", "tesla", gpus=1)]
    parts = [Partition("all", ("x1", "x2"), "Default=YES MaxTime=5")]
    multifactor = {"PriorityType": "priority/multifactor"}
    with (
        SlurmCluster(tmp_path / "a") as one,
        SlurmCluster(tmp_path / "b", nodes, parts, multifactor) as two,
    ):
        assert "priority/multifactor" in two.run("scontrol", "show", "config")
        job = submit(two, "--gpus=tesla:3")
        assert one.jobs() == []
        two.wait_until_empty()
        assert records(two, job)[job]["NodeList"] == "x[1-2]"
        assert records(one) == {}


def test_nothing_is_left_of_a_cluster_whose_daemons_were_killed(tmp_path):
    def fail():
        with SlurmCluster(tmp_path) as slurm:
            clusters.append(slurm)
            submit(slurm, "--gres=gpu:1", seconds=600)
            while not slurm.run("squeue", "-h", "-t", "R"):
                time.sleep(0.2)
            slurm.kill("slurmctld")
            slurm.kill("slurmd-v1")
            raise KeyError("a test that fails")

    clusters = []
    with pytest.raises(KeyError):
        fail()
    assert clusters[0].processes() == []


def test_a_daemon_that_does_not_start_is_named_with_its_log(tmp_path):
    wrong = SlurmCluster(tmp_path, parameters={"SelectType": "select/nonsense"})
    with pytest.raises(SlurmError, match="slurmctld: ended with status 1") as caught, wrong:
        pass
    assert "select/nonsense" in str(caught.value)
    assert wrong.processes() == []


def test_a_small_workload_is_recorded(tmp_path):
    slurm_workload.run(tmp_path, seed=19, count=6, seconds=1.0)
    with (tmp_path / "sacct.txt").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE))
    jobs = {row["JobID"]: row for row in rows if "." not in row["JobID"]}
    with (tmp_path / "jobs.csv").open(newline="") as file:
        asked = {row["job"]: row for row in csv.DictReader(file)}
    with (tmp_path / "times.csv").open(newline="") as file:
        times = {row["job"]: row for row in csv.DictReader(file)}
    assert len(jobs) == 6
    assert jobs.keys() == asked.keys() == times.keys()
    for name, row in jobs.items():
        took = float(times[name]["ended"]) - float(times[name]["begun"])
        assert took == pytest.approx(float(asked[name]["seconds"]), abs=1.0)
        assert abs(int(row["ElapsedRaw"]) - took) < 3
        assert row["SubmitLine"].startswith("sbatch --parsable")
    assert "SchedulerParameters" in (tmp_path / "config.txt").read_text()
    assert (tmp_path / "nodes.txt").read_text().count("NodeName=") == 4


def test_the_same_seed_asks_for_the_same_jobs():
    one = slurm_workload.requests(5)
    assert one == slurm_workload.requests(5)
    assert one != slurm_workload.requests(6)
    assert len(one) >= 150
    assert all(10 <= each.seconds <= 60 for each in one)
