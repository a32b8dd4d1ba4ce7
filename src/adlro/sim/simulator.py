"""Simulation of a workload on a cluster under a policy, until the last job ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import numpy as np

from adlro.errors import PolicyError
from adlro.model import violations
from adlro.model.state import OUTCOME, SPAN, Floats, Records
from adlro.model.view import RECENT_ARRIVALS, Rows, View
from adlro.sim import kernel
from adlro.sim.signature import compile_decide, compiled_run, compiled_steps
from adlro.sim.world import (
    STATE_FIELDS,
    EmptyCluster,
    World,
    decision_buffer,
    fresh_memory,
    is_empty,
    open_world,
)
from adlro.workloads.workload import Workload

_IN_USE = ["now", "head", "waiting", "arrived", "arrived_before", "running", "rows"]


class Player(Protocol):
    """The attributes of a policy that the simulator uses."""

    @property
    def name(self) -> str:
        """Name of the policy, for error messages."""

    @property
    def decide(self) -> Callable[..., int]:
        """The decision function: the kernel calls a numba dispatcher, Python any other function."""

    @property
    def params(self) -> Floats:
        """Parameters passed to each call of `decide`."""

    @property
    def memory(self) -> int:
        """Number of values that `decide` can store between calls."""


class RunResult(NamedTuple):
    """Outcomes of the jobs, and totals, GPU records and spans at the end of a run."""

    outcome: Records  # [J] OUTCOME
    totals: Records  # the TOTALS record at the end
    gpus: Records  # [G] at the end, with the busy seconds of each
    spans: Records  # SPAN rows, one for each GPU of each run; empty unless asked for


def is_compiled(decide: Callable[..., int]) -> bool:
    """True when `decide` is a numba dispatcher, so that the kernel can call it."""
    return hasattr(decide, "py_func") and hasattr(decide, "compile")


def _rows(records: Records) -> Records:
    """Return the records as numpy.recarray: `queue[0].job` works in Python as in compiled code."""
    return records.view(np.recarray)


class ViewCopies:
    """Copies a world's view for a policy in plain Python, without jobs that have not arrived.

    Rows of jobs are copied when the jobs arrive, everything else anew for each view. A policy
    cannot change the world through its copies or the arrays behind them.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._jobs, self._est = np.zeros_like(world.jobs), np.zeros_like(world.est)
        self._seen = 0  # arrivals copied so far
        if world.totals["arrived_before"][0] > 0:  # earlier jobs are not in the list
            self._copy(slice(0, world.totals["rows"][0]))

    def _copy(self, rows: slice | Rows) -> None:
        self._jobs[rows], self._est[rows] = self._world.jobs[rows], self._world.est[rows]

    def view(self) -> View:
        """Return a read-only copy of the current view."""
        world = self._world
        now, head, waiting, arrived, before, running, rows = world.totals[_IN_USE][0].item()
        if arrived > self._seen:
            self._copy(world.arrivals[self._seen : arrived])
            self._seen = arrived
        window = slice(head, head + waiting)
        seen = View(
            now,
            _rows(self._jobs[:rows]),
            self._est[:rows],
            _rows(world.queue[window].copy()),
            world.eligible[window].copy(),
            _rows(world.running[:running].copy()),
            _rows(world.pools.copy()),
            _rows(world.nodes.copy()),
            _rows(world.gpus.copy()),
            before + arrived,
            world.arrivals[max(arrived - RECENT_ARRIVALS, 0) : arrived].copy(),
        )
        for array in (*seen[1:9], seen.recent):
            array.flags.writeable = False
        return seen


def _with_room(spans: Records, used: int, more: int) -> Records:
    """Return the log of spans; a larger copy if `more` rows do not fit after the `used` ones."""
    if used + more <= len(spans):
        return spans
    larger = np.zeros(2 * (used + more), SPAN)
    larger[:used] = spans[:used]
    return larger


def _run_in_python(
    policy: Player, decide: Callable[..., int], world: World, memory: Floats
) -> World:
    """Simulate a workload to its end as `kernel.run` does, with a `decide` in plain Python.

    Returns:
        The world; its log of spans may be a larger array than the one passed in.
    """
    w, most, out = world.totals[0], len(world.gpus) + len(world.running), decision_buffer(world)
    eyes, rows, entry = ViewCopies(world), _rows(out), compiled_steps()
    while entry.advance(world):
        started, last = 1, w["decisions"] + kernel.MAX_CALLS
        while started > 0:
            if w["decisions"] == last:
                w["fault"], w["fault_value"] = violations.ENDLESS_ANSWERS, kernel.MAX_CALLS
                return world
            view = eyes.view()
            w["decisions"] += 1
            w["real_decisions"] += entry.is_real(world)
            answered = decide(view, policy.params, memory, rows)
            if not isinstance(answered, int | np.integer):
                raise PolicyError(
                    f"decide must return how many decisions it wrote, not {answered!r}"
                )
            if len(world.spans) > 0:
                more = (max(answered, 0) + 1) * most
                world = world._replace(spans=_with_room(world.spans, int(w["spans"]), more))
            started = entry.apply(int(answered), out, world)
        if started < 0:
            break
    return world


def warm_up(policies: Iterable[Player]) -> None:
    """Compile the kernel and these policies in this thread, or load them from the cache."""
    for policy in policies:
        if is_compiled(policy.decide):
            compiled_run()
            compile_decide(policy.decide)
        else:
            compiled_steps()


def _run(
    empty: EmptyCluster, workload: Workload, policy: Player, seed: int, span_rows: int
) -> World:
    """Simulate a workload to its end under a policy; returns the world at that time."""
    world, memory = open_world(empty, workload, span_rows), fresh_memory(policy.memory, seed)
    if not is_compiled(policy.decide):
        return _run_in_python(policy, policy.decide, world, memory)
    decide = compile_decide(policy.decide)
    try:
        compiled_run()(decide, policy.params, memory, decision_buffer(world), world)
    except Exception:  # the world is as the failed call saw it
        view, out = ViewCopies(world).view(), _rows(decision_buffer(world))
        decide.py_func(view, policy.params, memory, out)  # in Python the traceback names the line
        raise
    return world


def run(
    empty: EmptyCluster,
    workload: Workload,
    policy: Player,
    seed: int = 0,
    *,
    keep_spans: bool = False,
) -> RunResult:
    """Simulate a workload to its end under a policy.

    Raises:
        PolicyError: the policy made an infeasible decision, or left jobs waiting for ever.
    """
    span_rows = int(workload.jobs["gpus"].sum()) if keep_spans else 0
    world = _run(empty, workload, policy, seed, span_rows)
    totals = world.totals[0]
    if totals["fault"] != violations.NONE:
        raise PolicyError(f"policy {policy.name} {violations.message(totals)}")
    if keep_spans and totals["spans"] > len(world.spans):  # jobs ran more than once
        world = _run(empty, workload, policy, seed, int(totals["spans"]))
        totals = world.totals[0]
    if not is_empty(world, empty):
        raise PolicyError(f"policy {policy.name} changed the cluster's records by itself")
    kept = world.spans[: totals["spans"]] if keep_spans else world.spans
    return RunResult(world.outcome, totals, world.gpus, kept)


def clone(world: World) -> World:
    """Return a world with a copy of the state, outcome and spans; the workload is shared."""
    own = {name: np.empty_like(getattr(world, name)) for name in STATE_FIELDS}
    outcome, used = (
        np.zeros(len(world.outcome), OUTCOME),
        world.totals["rows"][0] * OUTCOME.itemsize,
    )
    # As bytes, because numpy copies records field by field. The other rows have no outcome yet.
    outcome.view(np.uint8)[:used] = world.outcome.view(np.uint8)[:used]
    copy = world._replace(**own, outcome=outcome, spans=world.spans.copy())
    compiled_steps().clone(world, copy)
    return copy
