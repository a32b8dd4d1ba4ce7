"""Sentences that report what is assumed about the jobs of a history."""

from __future__ import annotations


class Assumptions:
    """Sentences that report assumed values, each with the number of jobs that it concerns."""

    def __init__(self, jobs: int) -> None:
        self.sentences: list[str] = []
        self._jobs = jobs

    def add(self, count: int, what: str) -> None:
        """Add a sentence that `what` was assumed for `count` jobs, unless `count` is 0."""
        if count:
            which = "all jobs" if count == self._jobs else f"{count:,} of {self._jobs:,} jobs"
            self.sentences.append(f"{which}: {what}")
