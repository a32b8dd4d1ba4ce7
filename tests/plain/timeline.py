"""The timeline of one run, phase by phase: a delay, restoring, working and saving in turns."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from math import inf

NEAR = 1e-9
RESTORING, WORKING, SAVING = "restoring", "working", "saving"


@dataclass(slots=True)
class Timeline:
    """Progress of a run until time `at`; work is counted in seconds at slowness 1."""

    at: float  # time reached; at first the start of the run
    todo: float  # work still to do
    interval: float  # working seconds between saves
    cost: float  # seconds to restore and to save
    phase: str  # RESTORING or WORKING at first
    delay: float = 0.0  # seconds before the first phase
    slowness: float = 1.0
    kept: float = inf  # work still to do after the last complete save
    worked: float = 0.0  # working seconds so far
    worked_kept: float = 0.0  # working seconds until the last complete save
    saves: int = 0
    saved_at: float = -inf
    begun: float = inf  # when working began for the first time

    def __post_init__(self) -> None:
        self.kept = self.todo
        self.begun = self.at + self.delay + (self.cost if self.phase == RESTORING else 0.0)
        if self.delay > 0:
            self.phase = RESTORING  # no work is done until `begun`, for whatever reason

    def boundary(self) -> float:
        """End of the present phase, unless the run ends before."""
        if self.phase == RESTORING:
            return self.begun
        if self.interval == inf:
            return inf
        done = self.begun + self.saves * (self.interval + self.cost) + self.interval
        return done if self.phase == WORKING else done + self.cost

    def is_last(self) -> bool:
        """Whether the run ends in this phase."""
        if self.todo == 0:
            return True
        rest = self.todo * self.slowness - (self.boundary() - self.at)
        return self.phase == WORKING and rest < NEAR * self.interval

    def walk(self, until: float) -> None:
        """Advance to this time."""
        while not self.is_last() and self.boundary() <= until + NEAR:
            self._spend(self.boundary())
            self._turn()
        self._spend(max(until, self.at))

    def end(self) -> float:
        """End of the run if its slowness does not change."""
        run = copy(self)
        while not run.is_last():
            run._spend(run.boundary())
            run._turn()
        return run.at + run.todo * run.slowness

    def _spend(self, until: float) -> None:
        """Advance to `until` within the present phase."""
        if self.phase == WORKING and self.todo > 0:
            self.worked += until - self.at
            self.todo -= (until - self.at) / self.slowness
            if self.todo < NEAR:
                self.todo = 0.0
        self.at = until

    def _turn(self) -> None:
        """Enter the next phase."""
        if self.phase != WORKING:
            if self.phase == SAVING:
                self.kept, self.worked_kept, self.saved_at = self.todo, self.worked, self.at
                self.saves += 1
            self.phase = WORKING
        elif self.todo > 0:
            self.phase = SAVING
