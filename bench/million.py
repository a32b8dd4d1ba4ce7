"""Time and memory of a million jobs on ten thousand GPUs, each policy in its own process.

Run as a program at the root of the repository, `python -m bench.million POLICY JOBS`, it prints
the cost of one run as JSON.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from adlro.config.files import adjusted, find_scenario
from adlro.model.record import Record
from adlro.sim import simulator
from bench.figure import Bar, Figure, figure
from bench.fixture import fixture_of

JOBS = 1_000_000
POLICIES = ("fcfs", "pair-sjf")
_TIME, _MEMORY = Bar("<", 60), Bar("<", 4)


class RunCost(Record):
    """Cost of one run."""

    gpus: int
    generation_s: float  # CPU time
    run_s: float  # CPU time
    peak_gib: float  # resident memory of the whole process, including generation


def measure_run(name: str, jobs: int) -> RunCost:
    """Generate and run the jobs in this process; the peak is that of the process so far."""
    begin = time.process_time()
    fixture = fixture_of(adjusted(find_scenario("datacenter"), jobs=jobs))
    generation_s = time.process_time() - begin
    policy = fixture.policy(name)  # compiled before the timing starts
    begin = time.process_time()
    simulator.run(fixture.empty, fixture.workloads[0], policy)
    run_s = time.process_time() - begin
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gpus = len(fixture.empty.gpus)
    return RunCost(gpus=gpus, generation_s=generation_s, run_s=run_s, peak_gib=peak_kib / 2**20)


def in_own_process(name: str, jobs: int = JOBS) -> list[Figure]:
    """Measure one policy in a process of its own.

    Raises:
        RuntimeError: the process failed.
    """
    command = [sys.executable, "-m", __name__, name, str(jobs)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command} ended with status {done.returncode}: {done.stderr}")
    cost = RunCost.model_validate_json(done.stdout)
    what = f"{name}, {jobs:,} jobs x {cost.gpus:,} GPUs"
    return [
        figure(f"{what}: run", cost.run_s, "CPU-s", _TIME),
        figure(f"{what}: drawing the jobs", cost.generation_s, "CPU-s"),
        figure(f"{what}: peak memory", cost.peak_gib, "GiB", _MEMORY),
    ]


if __name__ == "__main__":
    sys.stdout.write(measure_run(sys.argv[1], int(sys.argv[2])).model_dump_json())
