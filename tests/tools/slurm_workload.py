"""Run a seeded workload on a real Slurm with fake typed GPUs and store what Slurm recorded of it.

    python -m tests.tools.slurm_workload FOLDER --seed 0 [--jobs 160] [--priority multifactor]

FOLDER receives sacct.txt (`sacct -P -D`, job steps included), nodes.txt, nodes-oneline.txt,
partitions.txt and config.txt (`scontrol show ...`), jobs.csv (what was submitted: seconds slept,
options) and times.csv (when each job's script began and ended, to the microsecond). A run takes
about nine minutes, nearly all of them asleep.
"""

import argparse
import csv
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.tools.slurm_cluster import SlurmCluster, missing

JOBS = 160
SECONDS = 285.0  # of submissions: faster than the 16 GPUs can serve, so that queues form
ACCOUNTS = ("astro", "bio", "vision")
FIELDS = (
    "JobID,JobIDRaw,JobName,User,Account,Partition,QOS,State,ExitCode,Submit,Eligible,Start,End,ElapsedRaw,"
    "TimelimitRaw,ReqTRES,AllocTRES,ReqNodes,NNodes,NodeList,ReqCPUS,AllocCPUS,ReqMem,Priority,Reason,"
    "Constraints,SubmitLine"
)
MULTIFACTOR = {
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "10000",
    "PriorityWeightJobSize": "1000",
    "PriorityWeightPartition": "1000",
    "PriorityMaxAge": "00:10:00",
    "PriorityCalcPeriod": "1",
}
SCRIPT = r"""#!/bin/bash
begun=$EPOCHREALTIME
sleep {seconds}
echo "$SLURM_JOB_ID,\"$SLURM_JOB_NODELIST\",$SLURM_JOB_PARTITION,$begun,$EPOCHREALTIME" >> {times}
"""


class Request(NamedTuple):
    """A job to submit: `at` seconds after the first, sleeping for `seconds`."""

    at: float
    seconds: float
    options: tuple[str, ...]


def requests(seed, count=JOBS, seconds=SECONDS):
    """A seeded workload by time of submission: types, gangs of 1, 2 and 4, two partitions."""
    rng = random.Random(seed)
    at = sorted(rng.uniform(0, seconds) for _ in range(count))
    return [_request(rng, at[index], index) for index in range(count)]


def _request(rng, at, index):
    seconds = min(10 + rng.expovariate(1 / 14), 60 - rng.random())
    partition = rng.choices(("gpu", "lab", "gpu,lab"), (60, 28, 12))[0]
    types = {"gpu": ("volta", "turing"), "lab": ("radeon", "turing")}.get(partition, ("turing",))
    kind = rng.choices(types, (2, 1)[: len(types)])[0] if rng.random() < 0.5 else ""
    gang = rng.choices((1, 2, 4), (64, 23, 13))[0]
    options = [f"--job-name={kind or 'any'}{gang}-{index}", f"--partition={partition}"]
    options += [f"--account={rng.choice(ACCOUNTS)}", f"--cpus-per-task={rng.choice((1, 2, 2, 3))}"]
    options += [f"--time={max(1, -(-seconds * rng.uniform(1.2, 3.0) // 60)):.0f}"]
    options += _gpus(rng, gang, kind, partition)
    return Request(round(at, 3), round(seconds, 3), tuple(options))


def _gpus(rng, gang, kind, partition):
    """Options that ask for a gang on one node, wherever it fits, or half on each of two nodes."""
    typed = f"{kind}:" if kind else ""
    one_node = ["--nodes=1", f"--gres=gpu:{typed}{gang}"]
    if gang == 1:
        return one_node
    way = rng.choices(("one node", "anywhere", "two nodes"), (60, 25, 15))[0]
    if way == "anywhere":
        return [f"--gpus={typed}{gang}"]
    if way == "two nodes" and partition != "gpu,lab" and kind in ("", "volta"):
        return ["--nodes=2", f"--gres=gpu:{typed}{gang // 2}"]
    return one_node


def submit_all(slurm, work, times):
    """Submit each request at its time; rows of (id, seconds, when sbatch returned, options)."""
    begun, rows = time.time(), []
    for request in work:
        time.sleep(max(0.0, begun + request.at - time.time()))
        script = slurm.folder / "scripts" / f"{len(rows)}.sh"
        script.parent.mkdir(exist_ok=True)
        script.write_text(SCRIPT.format(seconds=request.seconds, times=times))
        job = slurm.submit("--output=/dev/null", *request.options, script)
        rows.append((job, request.seconds, f"{time.time():.6f}", " ".join(request.options)))
    return rows


def record(slurm, folder):
    """Store what an operator would hand over: what sacct and scontrol say of jobs and cluster."""
    commands = {
        "sacct.txt": ("sacct", "-P", "-D", "-a", "-S", "now-1day", "-E", "now", "-o", FIELDS),
        "nodes.txt": ("scontrol", "show", "node"),
        "nodes-oneline.txt": ("scontrol", "show", "node", "-o"),
        "partitions.txt": ("scontrol", "show", "partition"),
        "config.txt": ("scontrol", "show", "config"),
    }
    for name, command in commands.items():
        (folder / name).write_text(slurm.run(*command))


def run(folder, seed, count=JOBS, seconds=SECONDS, parameters=None):
    """Run the workload of a seed on a cluster of its own and store the records in `folder`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="slurm") as place,
        SlurmCluster(place, parameters=parameters) as slurm,
    ):
        for account in ACCOUNTS:
            slurm.run("sacctmgr", "-i", "add", "account", account)
        slurm.run("sacctmgr", "-i", "add", "user", "root", f"account={','.join(ACCOUNTS)}")
        times = slurm.folder / "times.csv"
        rows = submit_all(slurm, requests(seed, count, seconds), times)
        slurm.wait_until_empty(900.0, every=2.0)
        time.sleep(3)  # slurmctld tells slurmdbd a moment later
        record(slurm, folder)
        (folder / "times.csv").write_text("job,nodes,partition,begun,ended\n" + times.read_text())
    with (folder / "jobs.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("job", "seconds", "submitted", "options"), *rows])


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--priority", choices=("basic", "multifactor"), default="basic")
    given = parser.parse_args()
    if reason := missing():
        sys.exit(reason)
    parameters = MULTIFACTOR if given.priority == "multifactor" else {}
    run(given.folder, given.seed, given.jobs, given.seconds, parameters)


if __name__ == "__main__":
    main()
