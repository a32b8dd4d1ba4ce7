"""A world rebuilt from what a policy sees: the ground on which choices are tried on copies.

Made from a view and from the cluster's rules; what neither says (ends, wear, slowdowns) is filled
in by the estimate: rebuild_kernel.py.
"""

from __future__ import annotations

import numpy as np

from adlro.model.context import Rulebook
from adlro.model.state import (
    ENDS,
    EVENT,
    JOB,
    OUTCOME,
    READING,
    RUNNING,
    SPAN,
    TOTALS,
    WAITING,
    Records,
)
from adlro.model.view import Rows, View
from adlro.sim.world import World

_LEAST_ACTIVE, _LEAST_ROWS = 64, 256


class Rebuilt:
    """A world that follows the views of one run, and a second one to copy it into.

    Both have the same table of jobs: a row for each of the view's, and behind these free rows for
    jobs that may come. The jobs of the view are written down as they arrive; the rest is as large
    as what waits and runs needs.
    """

    def __init__(self, view: View, types: int, placement: Records, rules: Rulebook) -> None:
        """Make room.

        Args:
            view: any of the run's.
            types: how many types of jobs there are.
            placement: DEMAND [K] by which jobs are placed; [0] = best fit.
            rules: those of the world that the views are of.
        """
        self._types, self._placement, self._rules = types, placement, rules
        self._make_worlds(view, _LEAST_ACTIVE, _LEAST_ROWS)

    def _make_worlds(self, view: View, active: int, rows: int) -> None:
        """Room for so many active jobs, and for so many in the table, none of whom is known yet."""
        pools, models = len(view.pools), view.est.shape[1]
        gpus, types = len(view.gpus), max(self._types, 1)
        est, quotas, caps, ageing = np.zeros((rows, models)), *self._rules[2:]

        def empty() -> World:
            return World(
                np.zeros(1, TOTALS), np.zeros(active, WAITING),
                np.zeros((active, pools), np.bool_), np.zeros(active), np.zeros(active, RUNNING),
                np.zeros(active, ENDS), np.stack([np.ones(gpus), np.zeros(gpus)], axis=1),
                np.ones((types, models)), np.array(view.pools), np.array(view.nodes),
                np.array(view.gpus), np.zeros(0, np.int64), np.zeros(rows, JOB), est,
                np.zeros((rows, pools), np.bool_), est, np.zeros(0, EVENT),
                np.ones((types, types)), self._placement, np.zeros((0, 0), READING),
                np.zeros((rows, 2), np.int64), quotas, caps, ageing, np.zeros(rows, OUTCOME),
                np.zeros(0, SPAN),
            )  # fmt: skip

        self.world = empty()
        shared = World._fields[World._fields.index("jobs") :]
        self.copy = empty()._replace(**{name: getattr(self.world, name) for name in shared})
        self._arrived = 0  # jobs that are written down

    def _unknown(self, view: View) -> Rows:
        """Rows of the jobs that are not written down yet."""
        new = view.arrived - self._arrived
        if new <= len(view.recent) and self._arrived > 0:
            return view.recent[len(view.recent) - new :]
        every = (view.queue["job"], view.running["job"], view.recent)
        return np.unique(np.concatenate(every)).astype(np.int64)

    def _note_jobs(self, view: View) -> None:
        """Write down who has arrived since the last view."""
        rows, world = self._unknown(view), self.world
        jobs = np.asarray(view.jobs)[rows]
        world.jobs[rows], world.est[rows] = jobs, view.est[rows]
        world.allowed[rows] = self._rules.allowed(jobs)
        world.holders[rows] = self._rules.holders(jobs)
        self._arrived = view.arrived

    def _expect(self, view: View, more: int) -> None:
        """List who has come last, and rows for so many who may come."""
        rows = np.arange(len(view.jobs), len(view.jobs) + more)
        arrivals = np.concatenate([view.recent, rows])
        self.world = self.world._replace(arrivals=arrivals)
        self.copy = self.copy._replace(arrivals=arrivals)

    def follow(self, view: View, wake: float, more: int = 0) -> None:
        """Write down how things stand.

        Args:
            view: what there is to see now.
            wake: when the policy asked to be woken; infinite = it did not.
            more: jobs that may come: world.arrivals ends with free rows of the table for them.
        """
        waiting, running, rows = len(view.queue), len(view.running), len(view.jobs) + more
        active = waiting + running + more
        if active > len(self.world.queue) or rows > len(self.world.jobs):
            room = max(2 * active, len(self.world.queue)), max(2 * rows, len(self.world.jobs))
            self._make_worlds(view, *room)
        if view.arrived > self._arrived:
            self._note_jobs(view)
        self._expect(view, more)
        world, arrived = self.world, len(view.recent)
        w = world.totals[0]
        w["now"], w["wake"], w["waiting"], w["running"] = view.now, wake, waiting, running
        w["arrived"], w["arrived_before"] = arrived, view.arrived - arrived
        w["rows"], w["finished"] = len(view.jobs), arrived - waiting - running
        world.queue[:waiting], world.eligible[:waiting] = view.queue, view.eligible
        world.running[:running] = view.running
        world.pools[:], world.nodes[:], world.gpus[:] = view.pools, view.nodes, view.gpus
