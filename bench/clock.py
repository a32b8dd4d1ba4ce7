"""Timing that is robust on a busy machine: CPU seconds, best of several interleaved repeats."""

from __future__ import annotations

import contextlib
import gc
import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

Work = Callable[[], object]
Setup = Callable[[], Work]  # prepares, untimed, and returns the work to time


class ProcessCost(NamedTuple):
    """CPU and wall-clock time of a process."""

    cpu_s: float
    wall_s: float


@contextlib.contextmanager
def _garbage_collection_off() -> Iterator[None]:
    """Disable the garbage collector, whose cost would fall on arbitrary repeats."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def best_times(
    setups: Sequence[Setup], repeats: int, now: Callable[[], float] = time.thread_time
) -> list[float]:
    """Return the shortest time in seconds of each setup; setups alternate within each repeat."""
    least = [float("inf")] * len(setups)
    for _ in range(repeats):
        for i, setup in enumerate(setups):
            work = setup()
            with _garbage_collection_off():
                before = now()
                work()
                least[i] = min(least[i], now() - before)
    return least


def program(arguments: Sequence[str], environment: Mapping[str, str]) -> ProcessCost:
    """Run a program and return what it cost from start to end, including its child processes.

    Raises:
        RuntimeError: it failed.
    """
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    before, started = usage.ru_utime + usage.ru_stime, time.perf_counter()
    done = subprocess.run(arguments, env=environment, check=False, capture_output=True, text=True)
    wall_s = time.perf_counter() - started
    if done.returncode != 0:
        raise RuntimeError(f"{arguments} ended with status {done.returncode}: {done.stderr}")
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ProcessCost(usage.ru_utime + usage.ru_stime - before, wall_s)
