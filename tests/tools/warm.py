"""Compile all kernels that tests share, by doing everything once on a few jobs: `make warm`.

`warm.py policies` needs the package alone, so that it can run while the developers' packages are
being installed; `warm.py training` needs those.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

JOBS = """id,submit_time,run_s,gpus,user,name
{}
""".format("\n".join(f"j{i},{100 * i},{60 + i % 7},1,u{i % 3},train" for i in range(60)))
FULL = {"window": 3, "observation": "full", "wait": True}
EARLY = ("min-min", "adlro", "drain-argmin", "pair-sjf")  # what trainings play, so they find it


def adlro(*words: str) -> None:
    """Run a command in this process, in a temporary folder and without output."""
    from adlro.cli.main import cli

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("jobs.csv").write_text(JOBS)
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123  a device
            cli.main(words, prog_name="adlro", standalone_mode=False)


def compare(policy: str, *words: str) -> None:
    """Run a policy on a few jobs."""
    adlro("compare", "paper16", "--policies", policy, "--seeds", "1", "--jobs", "20", *words)


def step() -> None:
    """Step the Gymnasium environment with both kinds of observations."""
    import gymnasium

    import adlro.envs  # noqa: F401  importing registers adlro/Cluster-v0

    for options in ({}, FULL):
        env = gymnasium.make("adlro/Cluster-v0", jobs=5, **options).unwrapped
        _, info = env.reset(seed=0)
        env.step(int(info["action_mask"].argmax()))


def policies() -> Iterator[tuple[str, Callable[[], None]]]:
    """Steps that need the package alone."""
    from adlro.policies import registry

    yield "the simulator", partial(compare, "fcfs")
    for name in EARLY:
        yield name, partial(compare, name)
    yield "looking ahead", partial(compare, "fcfs+lookahead")
    yield "references", partial(compare, "min-min", "--hindsight")
    yield "memory", partial(compare, "fcfs", "--estimates", "memory")
    yield "histories", partial(adlro, "trace", "predict", "jobs.csv")
    for name in registry.names():
        if name not in ("fcfs", *EARLY):
            yield name, partial(compare, name)


def training() -> Iterator[tuple[str, Callable[[], None]]]:
    """Steps that need gymnasium or torch."""
    single = ("paper16-single", "--algorithm", "paper-dqn", "--episodes", "1")
    yield "environments", step
    yield "training", partial(adlro, "train", "paper16", "--episodes", "2")
    yield "training of paper-dqn", partial(adlro, "train", *single)


def main(part: str) -> None:
    """Run the steps of a part and print those that took long, because they compiled something."""
    for name, task in {"policies": policies, "training": training}[part]():
        begin = time.process_time()
        task()
        if (seconds := time.process_time() - begin) > 3:
            print(f"{name}: {seconds:.0f} s of CPU", flush=True)  # noqa: T201  the tool's output


if __name__ == "__main__":
    main(*sys.argv[1:])
