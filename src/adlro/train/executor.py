"""Threads that play episodes; compiled runs need no interpreter lock, so they share one process."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")
_AHEAD = 4  # tasks for each thread that are begun before their turn


class Stopped(Exception):  # noqa: N818  no error: somebody wants to stop
    """The training was asked to stop."""


class Crew:
    """Does tasks in threads and hands out the results in the order of the tasks."""

    def __init__(self, threads: int) -> None:
        self._ahead = _AHEAD * threads
        self._pool = ThreadPoolExecutor(threads)
        self._stop = threading.Event()

    def stop(self) -> None:
        """Let whatever is under way raise Stopped at its next task."""
        self._stop.set()

    def check(self) -> None:
        """Raise Stopped if that was asked for."""
        if self._stop.is_set():
            raise Stopped

    def do(self, work: Callable[[A], R], tasks: Iterable[A]) -> Generator[R, None, None]:
        """Results in order; tasks may be endless, for only some are begun ahead of their turn.

        Raises:
            Stopped: that was asked for.
        """

        def checked(task: A) -> R:
            self.check()
            return work(task)

        rest = iter(tasks)
        begun = deque(
            self._pool.submit(checked, task) for task in itertools.islice(rest, self._ahead)
        )
        try:
            while begun:
                result = begun.popleft().result()
                begun.extend(self._pool.submit(checked, t) for t in itertools.islice(rest, 1))
                yield result
        finally:
            for future in begun:
                future.cancel()

    def dismiss(self) -> None:
        """End; what is under way is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
