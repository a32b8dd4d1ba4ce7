"""Rollout look-ahead at decision time, an option of any compiled policy that only starts jobs.

`+lookahead` is written behind a policy's name: `min-min+lookahead`. Whenever a job could start, the
policy's own answer and the alternatives (waiting, and the feasible pairs of a job and a pool with
the shortest estimates) are each applied to a copy of the cluster. The policy then schedules the
copy until all its jobs are done, with no further arrivals, and the sum of the jobs' times in the
system is the cost. The cheapest choice replaces the policy's answer if it saves more than a small
margin. This is one step of the rollout algorithm (Bertsekas, Tsitsiklis, Wu 1997).

The copies are built from the view and the scenario's rules, never from the truth: jobs run as long
as estimated, an overdue job ends at its expected end, nodes that are down stay down, nothing fails,
slices do not slow each other and telemetry readings do not change. Quotas, ageing and placement
are the scenario's own. The policy's memory is copied too. A policy that counts its own starts may
find starts that it did not make, because its answer was replaced. A replaced answer is dropped as a
whole, including the timers it asked for.
"""

from __future__ import annotations

import functools
import math
import re
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numba.core.dispatcher
import numpy as np
from numba import types

from adlro.compiled import Dispatcher
from adlro.errors import PolicyError
from adlro.features.start_kernel import MOST_CHOICES, scratch_size
from adlro.model import violations
from adlro.model.context import Context
from adlro.model.state import WAKE, Floats, Records
from adlro.model.view import View
from adlro.policies.lookahead_kernel import FAULT, Handed, Scratch, look_ahead
from adlro.sim.rebuild import RebuiltWorld
from adlro.sim.signature import ANSWER, DECIDE, FLOATS, WORLD, compile_decide, entry_point
from adlro.sim.simulator import Player, ViewCopies, is_compiled

SUFFIX = "+lookahead"
_OLD_SUFFIX = SUFFIX + ":1:0"  # the same in older tables: one future, no arrivals
SUMMARY = "Looks ahead until all present jobs are done, with no further arrivals."
_SEED, _CALLED, _WAKE, _OWN = range(4)  # the wrapper's memory; the base policy's begins at _OWN
MEMORY = "the run's seed, whether it was called before and when the base policy is to be woken"


def split(name: str) -> tuple[str, bool]:
    """Return the name without `+lookahead`, and True if the name ended in it.

    Raises:
        PolicyError: the name has `+lookahead` twice, or with options, which do not exist.
    """
    found = re.fullmatch(r"(.+?)(\+lookahead(?::[^/]*)?)", name)
    if found is None:
        return name, False
    base, suffix = found.groups()
    if split(base)[1] or suffix.count(SUFFIX) > 1:
        raise PolicyError(f"policy {name!r}: say {SUFFIX} once")
    if suffix not in (SUFFIX, _OLD_SUFFIX):
        raise PolicyError(
            f"policy {name!r}: {SUFFIX} has no options, as sampled futures of arrivals were "
            f"removed; say {base + SUFFIX!r}"
        )
    return base, True


def refusal(decide: Callable[..., int], *, is_preemptive: bool) -> str | None:
    """Return the reason, as a phrase, why a policy cannot look ahead; None = it can."""
    if is_preemptive:
        return "it preempts, and copies are played on by policies that only start jobs"
    if not is_compiled(decide):
        return "it is plain Python, and copies are played on by compiled policies; use @njit"
    return None


_COMPILING = threading.Lock()  # two threads may both find that nothing is compiled yet


def _compiled() -> Callable[..., int]:
    """Return the compiled `look_ahead`, to be called without numba's dispatcher.

    The dispatcher would inspect the argument types at each call. They are always the same, and the
    inspection takes longer than some decisions.
    """
    with _COMPILING:
        return _compiled_once()


@functools.cache
def _compiled_once() -> Callable[..., int]:
    handed = types.NamedUniTuple(FLOATS, len(Handed._fields), Handed)
    scratch = types.NamedTuple([FLOATS, FLOATS, FLOATS, ANSWER], Scratch)
    decide = types.FunctionType(DECIDE)
    return entry_point(look_ahead, decide, handed, scratch, ANSWER, WORLD, WORLD)


class _CompiledDecide:
    """Stand-in for the dispatcher of a decide, with its compiled code looked up once.

    A dispatcher would look up the code at each call. Numba must take this object for a dispatcher,
    because it calls any other object by a C pointer, which does not pass on exceptions: a policy
    that raises would seem to wait.
    """

    def __init__(self, decide: Dispatcher) -> None:
        self._decide = decide  # the code lives as long as it does
        self._result = decide.overloads[DECIDE.args]

    @property  # type: ignore[misc]  # mypy has it final; isinstance reads it
    def __class__(self) -> type:
        """Return numba's dispatcher class, which isinstance then sees."""
        return numba.core.dispatcher.Dispatcher

    def get_compile_result(self, _: object) -> Any:  # noqa: ANN401  numba's own
        """Return the compiled code; numba calls this method of its dispatchers."""
        return self._result


class _Run(NamedTuple):
    """The buffers of one simulation run: memory, scratch and the rebuilt world."""

    memory: Floats
    copied: Floats  # the base policy's memory in a copy
    trial: Records  # the base policy's answers in a copy
    choices: Floats  # scratch for the description of the choices
    rebuilt: RebuiltWorld


class Lookahead:
    """A base policy with look-ahead on one cluster; its `decide` is used instead of the base's."""

    def __init__(self, base: Player, context: Context) -> None:
        self._name, self._context = base.name, context
        decide = compile_decide(base.decide)
        self._decide, self._plain = _CompiledDecide(decide), decide.py_func
        self._look_ahead = _compiled()
        self._memory = _OWN + max(base.memory, 1)
        self._runs = threading.local()  # a thread plays one run at a time

    def _run(self, view: View, memory: Floats, out: Records) -> _Run:
        """Return the buffers of the run with this memory; new ones if the run has just begun."""
        run: _Run | None = getattr(self._runs, "last", None)
        if run is None or run.memory is not memory:
            context = self._context
            choices = np.zeros(scratch_size(len(view.gpus), len(view.pools)))
            rebuilt = RebuiltWorld(view, context.types, context.placement, context.rules)
            run = _Run(memory, np.array(memory[_OWN:]), np.array(out), choices, rebuilt)
            self._runs.last = run
        return run

    @property
    def memory(self) -> int:
        """Length of the memory, including that of the base policy."""
        return self._memory

    def decide(self, view: View, params: Floats, memory: Floats, out: Records) -> int:
        """Write the base policy's answer, or a cheaper choice, to `out`; return its length."""
        if memory[_CALLED] == 0:  # the base policy, too, finds the seed in its memory
            memory[_CALLED], memory[_OWN], memory[_WAKE] = 1, memory[_SEED], math.inf
        if memory[_WAKE] <= view.now:
            memory[_WAKE] = math.inf
        _, copied, trial, choices, rebuilt = self._run(view, memory, out)
        rebuilt.update(view, memory[_WAKE])
        mine, before = np.asarray(out), memory[_OWN:].copy()
        scratch = Scratch(choices, np.zeros(MOST_CHOICES), np.zeros(MOST_CHOICES), trial)
        handed = Handed(params, memory[_OWN:], copied)
        try:
            answered = self._look_ahead(
                self._decide, handed, scratch, mine, rebuilt.world, rebuilt.copy
            )
        except Exception:  # again in plain Python, where the traceback names the line
            self._plain(view, params, before, out)
            seen = ViewCopies(rebuilt.copy).view()
            self._plain(seen, params, copied, trial.view(np.recarray))
            raise
        if answered == FAULT:
            message = violations.message(rebuilt.copy.totals[0])
            raise PolicyError(f"looking ahead, {self._name} {message}")
        for decision in mine[: max(answered, 0)]:
            if decision["kind"] == WAKE:
                memory[_WAKE] = min(memory[_WAKE], decision["at"])
        return answered
