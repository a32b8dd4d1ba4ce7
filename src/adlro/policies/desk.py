"""The world as a policy sees it, rebuilt: the ground on which lookahead.py tries its choices.

Made from the arguments of decide and from what a policy is told of the scenario; what neither says
(ends, wear, slowdowns) is filled in by the estimate in lookahead_kernel.py.
"""

from __future__ import annotations

import numpy as np

from adlro.encode.candidates_kernel import MOST_CHOICES, scratch_size
from adlro.model.state import (
    ENDS,
    EVENT,
    JOB,
    OUTCOME,
    READING,
    RUNNING,
    SPAN,
    WAITING,
    WORLD,
)
from adlro.policies.active import View
from adlro.sim.state import State
from adlro.workloads.capacity import may_run
from adlro.workloads.synthetic import Setting
from adlro.workloads.workload import Workload


class Desk:
    """What one run's copies are made of: the rebuilt state, a copy of it, the jobs known so far.

    Jobs are written down once, as they arrive; the rest is as large as what waits and runs needs.
    """

    def __init__(self, setting: Setting, futures: int, arrivals: int, view: View) -> None:
        self._setting, self._arrivals = setting, arrivals
        self.scratch = np.zeros(scratch_size(len(view.gpus), len(view.pools)))
        self.others = np.zeros(MOST_CHOICES)
        self.gains = {m: np.zeros((MOST_CHOICES, m)) for m in (1, futures)}
        self.spans = np.zeros(0, SPAN)
        self._make_states(view, 64)
        self._make_jobs(view, 256)

    def _make_states(self, view: View, rows: int) -> None:
        """Room for so many jobs that wait or run."""
        gpus, types = len(view.gpus), len(self._setting.lists)
        self._rows = rows

        def empty() -> State:
            return State(
                np.zeros(1, WORLD), np.zeros(rows, WAITING),
                np.zeros((rows, len(view.pools)), np.bool_), np.zeros(rows),
                np.zeros(rows, RUNNING), np.zeros(rows, ENDS),
                np.stack([np.ones(gpus), np.zeros(gpus)], axis=1),
                np.ones((types, view.est.shape[1])), np.array(view.pools), np.array(view.nodes),
                np.array(view.gpus), np.zeros(0),
            )  # fmt: skip

        self.state, self.copy = empty(), empty()

    def _make_jobs(self, view: View, rows: int) -> None:
        """Room for so many jobs, those that may come included; who was known is written anew."""
        setting = self._setting
        est = np.zeros((rows, view.est.shape[1]))
        types, rules = len(setting.lists), setting.quotas
        self.work = Workload(
            np.zeros(rows, JOB), est, np.zeros((rows, len(view.pools)), np.bool_), est,
            np.zeros(0, EVENT), np.ones((types, types)), setting.demands,
            np.zeros((0, 0), READING), np.zeros((rows, 2), np.int64), rules.quotas, rules.caps,
            np.full(int(setting.scenario.ageing_h > 0), setting.scenario.ageing_h * 3600.0),
        )  # fmt: skip
        self.outcome, self._known = np.zeros(rows, OUTCOME), 0

    def _note_jobs(self, view: View) -> None:
        """Write down who has arrived since the last call."""
        if len(view.jobs) + self._arrivals > len(self.work.jobs):
            self._make_jobs(view, 2 * (len(view.jobs) + self._arrivals))
        new, setting = slice(self._known, len(view.jobs)), self._setting
        jobs = np.asarray(view.jobs[new])
        self.work.jobs[new], self.work.est[new] = jobs, view.est[new]
        self.work.allowed[new] = may_run(jobs, setting.lists[jobs["type"]], setting.layout)
        self.work.holders[new] = setting.quotas.holders(jobs)
        self._known = len(view.jobs)

    def rebuild(self, view: View, wake: float) -> None:
        """Write down how things stand."""
        waiting, running, arrived = len(view.queue), len(view.running), len(view.jobs)
        if waiting + running + self._arrivals > self._rows:
            self._make_states(view, 2 * (waiting + running + self._arrivals))
        if arrived > self._known:
            self._note_jobs(view)
        state = self.state
        w = state.world[0]
        w["now"], w["wake"], w["waiting"], w["running"] = view.now, wake, waiting, running
        w["arrived"], w["finished"] = arrived, arrived - waiting - running
        state.queue[:waiting], state.eligible[:waiting] = view.queue, view.eligible
        state.running[:running] = view.running
        state.pools[:], state.nodes[:], state.gpus[:] = view.pools, view.nodes, view.gpus
