"""Reconstruction of a simulator world from a view; rollouts try decisions on copies of it.

The world is built from a view and the rules of the cluster; hidden quantities (true ends, GPU
speeds, co-location slowdowns) are estimated in rebuild_kernel.py.
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

_MIN_ACTIVE, _MIN_ROWS = 64, 256  # initial capacities


class RebuiltWorld:
    """A simulator world that follows the views of one run, and a second world for its copies.

    The two worlds share one job table: a row for each row of the view, followed by free rows for
    possible arrivals. Jobs of the view are copied once, when they arrive; the capacity of the other
    arrays grows with the number of active jobs.
    """

    def __init__(self, view: View, types: int, placement: Records, rules: Rulebook) -> None:
        """Allocate the world and the one for its copies.

        Args:
            view: any view of the run.
            types: number of job types.
            placement: DEMAND [K] by which jobs are placed; [0] = best fit.
            rules: rules of the world that the views show.
        """
        self._types, self._placement, self._rules = types, placement, rules
        self._allocate(view, _MIN_ACTIVE, _MIN_ROWS)

    def _allocate(self, view: View, active: int, rows: int) -> None:
        """Allocate two worlds for `active` active jobs and `rows` rows of the job table."""
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
                np.zeros((rows, 2), np.int64), quotas, caps, ageing, np.zeros(0),
                np.zeros(rows, OUTCOME), np.zeros(0, SPAN),
            )  # fmt: skip

        self.world = empty()
        shared = World._fields[World._fields.index("jobs") :]
        self.copy = empty()._replace(**{name: getattr(self.world, name) for name in shared})
        self._arrived = 0  # number of arrivals copied to the job table

    def _new_rows(self, view: View) -> Rows:
        """Rows of the view's jobs that are not in the job table yet."""
        new = view.arrived - self._arrived
        if new <= len(view.recent) and self._arrived > 0:
            return view.recent[len(view.recent) - new :]
        listed = (view.queue["job"], view.running["job"], view.recent)
        return np.unique(np.concatenate(listed)).astype(np.int64)

    def _copy_new_jobs(self, view: View) -> None:
        """Copy the jobs that have arrived since the last view to the job table."""
        rows, world = self._new_rows(view), self.world
        jobs = np.asarray(view.jobs)[rows]
        world.jobs[rows], world.est[rows] = jobs, view.est[rows]
        world.allowed[rows] = self._rules.allowed(jobs)
        world.holders[rows] = self._rules.holders(jobs)
        self._arrived = view.arrived

    def _list_arrivals(self, view: View, more: int) -> None:
        """Set the list of arrivals: recent arrivals, then free rows for `more` possible ones."""
        rows = np.arange(len(view.jobs), len(view.jobs) + more)
        arrivals = np.concatenate([view.recent, rows])
        self.world = self.world._replace(arrivals=arrivals)
        self.copy = self.copy._replace(arrivals=arrivals)

    def update(self, view: View, wake: float, more: int = 0) -> None:
        """Set the visible state of the world to that of a view.

        Args:
            view: the present view.
            wake: time of the wake that the policy requested; infinite = none.
            more: number of possible arrivals: world.arrivals ends with free rows for them.
        """
        waiting, running, rows = len(view.queue), len(view.running), len(view.jobs) + more
        active = waiting + running + more
        if active > len(self.world.queue) or rows > len(self.world.jobs):
            sizes = max(2 * active, len(self.world.queue)), max(2 * rows, len(self.world.jobs))
            self._allocate(view, *sizes)
        if view.arrived > self._arrived:
            self._copy_new_jobs(view)
        self._list_arrivals(view, more)
        world, arrived = self.world, len(view.recent)
        totals = world.totals[0]
        totals["now"], totals["wake"], totals["waiting"], totals["running"] = (
            view.now,
            wake,
            waiting,
            running,
        )
        totals["arrived"], totals["arrived_before"] = arrived, view.arrived - arrived
        totals["rows"], totals["finished"] = len(view.jobs), arrived - waiting - running
        world.queue[:waiting], world.eligible[:waiting] = view.queue, view.eligible
        world.running[:running] = view.running
        world.pools[:], world.nodes[:], world.gpus[:] = view.pools, view.nodes, view.gpus
