"""Time that can be trusted on a busy machine: CPU seconds, the best of several, taken in turns."""

from __future__ import annotations

import contextlib
import gc
import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

Work = Callable[[], object]
Side = Callable[[], Work]  # makes ready, outside the time taken, and hands back what is timed


class Spent(NamedTuple):
    """What a program cost."""

    cpu_s: float
    wall_s: float


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Without the garbage collector, which fines whoever happens to run when it is due."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def best(
    sides: Sequence[Side], repeats: int, now: Callable[[], float] = time.thread_time
) -> list[float]:
    """The least seconds of each side; the sides take turns, so that all see the same machine."""
    least = [float("inf")] * len(sides)
    for _ in range(repeats):
        for i, side in enumerate(sides):
            work = side()
            with _no_collector():
                before = now()
                work()
                least[i] = min(least[i], now() - before)
    return least


def program(arguments: Sequence[str], environment: Mapping[str, str]) -> Spent:
    """What a program costs from its start to its end, its own children included.

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
    return Spent(usage.ru_utime + usage.ru_stime - before, wall_s)
