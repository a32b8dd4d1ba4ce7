"""A million jobs on ten thousand GPUs, each policy in a process of its own: time and memory.

As a program (`python -m bench.million POLICY JOBS`) it prints what it took, as JSON.
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
from bench.ground import ground_of

JOBS = 1_000_000
POLICIES = ("fcfs", "pair-sjf")
_TIME, _MEMORY = Bar("<", 60), Bar("<", 4)


class Spent(Record):
    """What one run took."""

    gpus: int
    generation_s: float  # CPU
    run_s: float  # CPU
    peak_gib: float  # resident, of the whole process, with the jobs drawn in it


def spend(name: str, jobs: int) -> Spent:
    """Draw the jobs and play them, here and now; the peak is that of this process so far."""
    begin = time.process_time()
    on = ground_of(adjusted(find_scenario("datacenter"), jobs=jobs))
    generation_s = time.process_time() - begin
    policy = on.policy(name)  # compiled before its time is taken
    begin = time.process_time()
    simulator.run(on.empty, on.workloads[0], policy)
    run_s = time.process_time() - begin
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gpus = len(on.empty.gpus)
    return Spent(gpus=gpus, generation_s=generation_s, run_s=run_s, peak_gib=peak_kib / 2**20)


def in_own_process(name: str, jobs: int = JOBS) -> list[Figure]:
    """The rows of one policy.

    Raises:
        RuntimeError: the process failed.
    """
    command = [sys.executable, "-m", __name__, name, str(jobs)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command} ended with status {done.returncode}: {done.stderr}")
    spent = Spent.model_validate_json(done.stdout)
    what = f"{name}, {jobs:,} jobs x {spent.gpus:,} GPUs"
    return [
        figure(f"{what}: run", spent.run_s, "CPU-s", _TIME),
        figure(f"{what}: drawing the jobs", spent.generation_s, "CPU-s"),
        figure(f"{what}: peak memory", spent.peak_gib, "GiB", _MEMORY),
    ]


if __name__ == "__main__":
    sys.stdout.write(spend(sys.argv[1], int(sys.argv[2])).model_dump_json())
