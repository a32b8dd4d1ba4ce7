"""Looking ahead at decision time: an option of any compiled policy that only starts jobs.

Written behind a policy's name: `min-min+lookahead`, or `+lookahead:FUTURES:ARRIVALS:T`. Each time
that something could start, the policy's own answer and the other choices (to wait, and the shortest
feasible pairs) are made on copies of the cluster, which the policy plays on until all is done. Its
answer is replaced by the choice with the smallest sum of times in the system.

- `1:0`, the drain: nobody else comes. One copy a choice; no luck in it.
- `16:10:2`: each choice meets the same 16 futures of 10 arrivals, each a recent job drawn again
  after a recent gap. Of many noisy means the best looks better than it is (the winner's curse), so
  the answer stands unless the mean gain is T of its standard errors above 0. T = 0: no such gate.

The copies are made from what a policy sees and what it is told of the scenario, never from the
truth: jobs run as long as estimated, an overdue one ends when it is expected to; nodes that are
down stay down, nothing fails, slices do not slow each other, sensors stand still. Quotas, ageing
and placement are the scenario's own. Until 8 jobs have arrived no future is drawn. A policy's
memory is copied too: one that keeps count of its own starts finds some that it did not make. Of an
answer that is replaced nothing is left, not even the timers that it asked for.
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
from adlro.policies.lookahead_kernel import FAULT, FEW, Handed, Scratch, look_ahead
from adlro.sim.rebuild import RebuiltWorld
from adlro.sim.signature import ANSWER, DECIDE, FLOATS, TABLE, WORLD, compile_decide, entry_point
from adlro.sim.simulator import Player, ViewCopies, is_compiled

SUFFIX = "+lookahead"
_MOST = {"FUTURES": 1_000, "ARRIVALS": 10_000}
_MOST_DRAWN = 100_000  # arrivals in all futures of a decision
_USUAL = (1, 0, 0.0)  # the drain: sampled futures gained no more and cost far more
_GATE = 2.0  # standard errors, where several futures are compared and no T is given
_SEED, _CALLS, _WAKE, _OWN = range(4)  # the wrapper's memory; from _OWN on it is the base policy's
_LUCK = 6  # the third number of the seeds of draws; what makes jobs and nodes has none
MEMORY = "the run's seed, how many calls there were and when the base policy asked to be woken"


class LookaheadOptions(NamedTuple):
    """How to look ahead."""

    futures: int
    arrivals: int  # in each
    gate: float  # standard errors that a mean gain must be above 0
    suffix: str  # as it was written

    def in_words(self) -> str:
        """One sentence."""
        if self.arrivals == 0:
            return "Looks ahead until all jobs at hand are done; nobody else comes."
        gate = f", if its gain is {self.gate:g} standard errors above 0" if self.gate > 0 else ""
        several = f"the mean over {self.futures} futures" if self.futures > 1 else "one future"
        return f"Looks ahead: the best choice by {several} of {self.arrivals} arrivals{gate}."


def _whole(text: str, what: str, least: int, name: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text) or not least <= int(text) <= _MOST[what]:
        raise PolicyError(
            f"policy {name!r}: {what} is a whole number from {least} to {_MOST[what]:,}, "
            f"not {text!r}"
        )
    return int(text)


def _number(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise PolicyError(f"policy {name!r}: T is a number, 0 or more, not {text!r}")
    return value


def split(name: str) -> tuple[str, LookaheadOptions | None]:
    """The name of the base policy and how it shall look ahead; None = not at all.

    Raises:
        PolicyError: what stands behind `+lookahead` is wrong.
    """
    found = re.fullmatch(r"(.+?)\+lookahead(:[^/]*)?", name)
    if found is None:
        return name, None
    base, suffix = found[1], SUFFIX + (found[2] or "")
    parts = suffix.split(":")[1:]
    if split(base)[1] is not None:
        raise PolicyError(f"policy {name!r}: say {SUFFIX} once")
    if not parts:
        return base, LookaheadOptions(*_USUAL, suffix)
    if len(parts) > 3:
        raise PolicyError(f"policy {name!r}: say {SUFFIX}:FUTURES:ARRIVALS:T, three numbers")
    futures = _whole(parts[0], "FUTURES", 1, name)
    arrivals = _whole(parts[1], "ARRIVALS", 0, name) if len(parts) > 1 else 0
    gate = _number(parts[2], name) if len(parts) > 2 else _GATE * (futures > 1)
    if futures * arrivals > _MOST_DRAWN:
        raise PolicyError(
            f"policy {name!r}: FUTURES times ARRIVALS is at most {_MOST_DRAWN:,}, "
            f"not {futures * arrivals:,}"
        )
    if futures > 1 and arrivals == 0:
        raise PolicyError(
            f"policy {name!r}: without arrivals all futures are the same; say 1:0 or {futures}:10"
        )
    if futures == 1 and len(parts) > 2:
        raise PolicyError(f"policy {name!r}: T needs at least 2 futures to compare")
    return base, LookaheadOptions(futures, arrivals, gate, suffix)


def refusal(decide: Callable[..., int], *, is_preemptive: bool) -> str | None:
    """Why a policy cannot look ahead, in a phrase; None = it can."""
    if is_preemptive:
        return "it preempts, and copies are played on by policies that only start jobs"
    if not is_compiled(decide):
        return "it is plain Python, and copies are played on by compiled policies; use @njit"
    return None


_ONE_AT_A_TIME = threading.Lock()  # two threads may both find that nothing is compiled yet


def _compiled() -> Callable[..., int]:
    """The kernel's `look_ahead`, without the dispatcher that would look at the types of each call.

    They are always the same, and to find that out takes longer than some decisions.
    """
    with _ONE_AT_A_TIME:
        return _compiled_once()


@functools.cache
def _compiled_once() -> Callable[..., int]:
    handed = types.NamedUniTuple(FLOATS, len(Handed._fields), Handed)
    scratch = types.NamedTuple([TABLE, FLOATS, FLOATS, TABLE, ANSWER], Scratch)
    decide = types.FunctionType(DECIDE)
    return entry_point(look_ahead, types.float64, decide, handed, scratch, ANSWER, WORLD, WORLD)


class _Found:
    """A compiled decide as the kernel takes it, looked up once: numba's way is slow at each call.

    Numba must take it for a dispatcher. Anything else it calls by a C pointer, through which no
    exception comes: a policy that raises would seem to wait.
    """

    def __init__(self, decide: Dispatcher) -> None:
        self._decide = decide  # the code lives as long as it does
        self._result = decide.overloads[DECIDE.args]

    @property  # type: ignore[misc]  # mypy has it final; isinstance reads it
    def __class__(self) -> type:
        """What isinstance is told."""
        return numba.core.dispatcher.Dispatcher

    def get_compile_result(self, _: object) -> Any:  # noqa: ANN401  numba's own
        """What numba asks a dispatcher for."""
        return self._result


class _Run(NamedTuple):
    """What belongs to one run."""

    memory: Floats
    copied: Floats  # the base policy's memory in a copy
    trial: Records  # and its answers; as in any answer before it is given, nothing is named
    look: Floats
    rebuilt: RebuiltWorld


class Lookahead:
    """The decide of a policy that looks ahead."""

    def __init__(self, base: Player, wish: LookaheadOptions, context: Context) -> None:
        self._name, self._wish, self._context = base.name, wish, context
        decide = compile_decide(base.decide)
        self._ask, self._plain = _Found(decide), decide.py_func
        self._look_ahead = _compiled()
        self._memory = _OWN + max(base.memory, 1)
        self._runs = threading.local()  # a thread plays one run at a time

    def _run(self, view: View, memory: Floats, out: Records) -> _Run:
        """The run that this memory belongs to."""
        run: _Run | None = getattr(self._runs, "last", None)
        if run is None or run.memory is not memory:
            context = self._context
            look = np.zeros(scratch_size(len(view.gpus), len(view.pools)))
            rebuilt = RebuiltWorld(view, context.types, context.placement, context.rules)
            run = _Run(memory, np.array(memory[_OWN:]), np.array(out), look, rebuilt)
            self._runs.last = run
        return run

    def _draws(self, view: View, memory: Floats) -> tuple[Floats, int]:
        """Luck for every arrival, by the run's seed and the call; and how many futures."""
        futures, arrivals = self._wish[:2]
        if arrivals == 0 or len(view.recent) < FEW:
            return np.zeros((0, 2)), 1
        rng = np.random.default_rng((int(memory[_SEED]), int(memory[_CALLS]), _LUCK))
        return rng.random((futures * arrivals, 2)), futures

    @property
    def memory(self) -> int:
        """How many numbers it keeps from call to call, the base policy's among them."""
        return self._memory

    def decide(self, view: View, params: Floats, memory: Floats, out: Records) -> int:
        """The base policy's answer, or a better one."""
        if memory[_CALLS] == 0:  # the base policy, too, finds the seed in its memory
            memory[_OWN], memory[_WAKE] = memory[_SEED], math.inf
        memory[_CALLS] += 1
        if memory[_WAKE] <= view.now:
            memory[_WAKE] = math.inf
        _, copied, trial, look, rebuilt = self._run(view, memory, out)
        draws, futures = self._draws(view, memory)
        rebuilt.update(view, memory[_WAKE], len(draws) // futures)
        mine, before = np.asarray(out), memory[_OWN:].copy()
        scratch = Scratch(
            draws, look, np.zeros(MOST_CHOICES), np.zeros((MOST_CHOICES, futures)), trial
        )
        handed = Handed(params, memory[_OWN:], copied)
        try:
            answered = self._look_ahead(
                self._wish.gate, self._ask, handed, scratch, mine, rebuilt.world, rebuilt.copy
            )
        except Exception:  # once more in plain Python, where the traceback names the line
            self._plain(view, params, before, out)
            seen = ViewCopies(rebuilt.copy).view()
            self._plain(seen, params, copied, trial.view(np.recarray))
            raise
        if answered == FAULT:
            said = violations.message(rebuilt.copy.totals[0])
            raise PolicyError(f"looking ahead, {self._name} {said}")
        for decision in mine[: max(answered, 0)]:
            if decision["kind"] == WAKE:
                memory[_WAKE] = min(memory[_WAKE], decision["at"])
        return answered
