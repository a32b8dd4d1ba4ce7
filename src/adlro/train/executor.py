"""Threads that run tasks; compiled episodes release the interpreter lock, so one process is enough.

Tasks are module-level functions with picklable arguments, so another executor could run them in
processes or on other machines.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")
_AHEAD = 32  # tasks for each thread submitted before their turn; some take 100 times as long


class Stopped(Exception):  # noqa: N818  not an error: the user wants to stop
    """The training was asked to stop."""


class ThreadExecutor:
    """Runs tasks in threads and yields their results in the order of the tasks."""

    def __init__(self, threads: int) -> None:
        self._ahead = _AHEAD * threads
        self._pool = ThreadPoolExecutor(threads)
        self._stop = threading.Event()

    def stop(self) -> None:
        """Make running `map` calls raise Stopped at their next task."""
        self._stop.set()

    def resume(self) -> None:
        """Accept tasks again after `stop`."""
        self._stop.clear()

    def check(self) -> None:
        """Raise Stopped if `stop` was called."""
        if self._stop.is_set():
            raise Stopped

    def map(self, function: Callable[[A], R], tasks: Iterable[A]) -> Generator[R, None, None]:
        """Yield the result of `function` for each task, in the order of the tasks.

        The tasks may be endless, as only a few are submitted ahead.

        Raises:
            Stopped: `stop` was called.
        """

        def checked(task: A) -> R:
            self.check()
            return function(task)

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

    def shutdown(self) -> None:
        """Cancel the tasks that have not begun, and do not wait for those that are running."""
        self._pool.shutdown(wait=False, cancel_futures=True)
