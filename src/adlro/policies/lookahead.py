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
memory is copied too: one that keeps count of its own starts finds some that it did not make.
"""

from __future__ import annotations

import functools
import math
import re
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core.typing.templates import Signature

from adlro.compiled import Dispatcher, dispatcher
from adlro.encode.candidates_kernel import MOST_CHOICES, scratch_size
from adlro.errors import PolicyError
from adlro.model.state import (
    ENDS,
    EVENT,
    JOB,
    OUTCOME,
    READING,
    RUNNING,
    SPAN,
    WAITING,
    WAKE,
    WORLD,
    Floats,
    Mask,
    Records,
)
from adlro.policies import lookahead_kernel
from adlro.policies.lookahead_kernel import FAULT, FEW
from adlro.sim import faults
from adlro.sim.signature import (
    ANSWER,
    BOOKS,
    DECIDE,
    FLOATS,
    STATE,
    TABLE,
    WORKLOAD,
    compile_decide,
)
from adlro.sim.simulator import Player, is_compiled
from adlro.sim.state import State
from adlro.workloads.capacity import may_run
from adlro.workloads.synthetic import Setting
from adlro.workloads.workload import Workload

SUFFIX = "+lookahead"
_MOST = {"FUTURES": 1_000, "ARRIVALS": 10_000}
_USUAL = (1, 0, 0.0)  # the drain: no other setting gained more, and all cost more
_GATE = 2.0  # standard errors, where several futures are compared and no T is given
_SEED, _CALLS, _WAKE, _OWN = range(4)  # the wrapper's memory; from _OWN on it is the base policy's
MEMORY = "the run's seed, how many calls there were and when the base policy asked to be woken"


class Wish(NamedTuple):
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


def split(name: str) -> tuple[str, Wish | None]:
    """The name of the base policy and how it shall look ahead; None = not at all.

    Raises:
        PolicyError: what stands behind `+lookahead` is wrong.
    """
    found = re.fullmatch(r"(.+?)\+lookahead(:.*)?", name)
    if found is None:
        return name, None
    base, suffix = found[1], SUFFIX + (found[2] or "")
    parts = suffix.split(":")[1:]
    if split(base)[1] is not None:
        raise PolicyError(f"policy {name!r}: say {SUFFIX} once")
    if not parts:
        return base, Wish(*_USUAL, suffix)
    if len(parts) > 3:
        raise PolicyError(f"policy {name!r}: say {SUFFIX}:FUTURES:ARRIVALS:T, three numbers")
    futures = _whole(parts[0], "FUTURES", 1, name)
    arrivals = _whole(parts[1], "ARRIVALS", 0, name) if len(parts) > 1 else 0
    gate = _number(parts[2], name) if len(parts) > 2 else _GATE
    if futures > 1 and arrivals == 0:
        raise PolicyError(
            f"policy {name!r}: without arrivals all futures are the same; say 1:0 or {futures}:10"
        )
    if futures == 1 and len(parts) > 2:
        raise PolicyError(f"policy {name!r}: T needs at least 2 futures to compare")
    return base, Wish(futures, arrivals, gate, suffix)


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
    tuple_of: Callable[..., types.BaseTuple] = types.Tuple
    state = tuple_of(STATE)
    look_ahead = dispatcher(lookahead_kernel.look_ahead)
    look_ahead.compile(
        (
            types.float64, TABLE, types.FunctionType(DECIDE), FLOATS, FLOATS, FLOATS, FLOATS,
            FLOATS, TABLE, ANSWER, ANSWER, state, state, tuple_of(WORKLOAD), *BOOKS,
        )
    )  # fmt: skip
    look_ahead.disable_compile()
    (only,) = look_ahead.overloads.values()
    entry: Callable[..., int] = only.entry_point
    return entry


class _Pointer(types.WrapperAddressProtocol):
    """A compiled decide as the kernel takes it, with its address looked up once and not each call.

    The dispatcher is kept, for the code lives as long as it does.
    """

    def __init__(self, decide: Dispatcher) -> None:
        self._decide, signature = decide, DECIDE.args
        compiled = decide.overloads[signature]
        name = compiled.fndesc.llvm_cfunc_wrapper_name
        self._address: int = compiled.library.get_pointer_to_function(name)

    def __wrapper_address__(self) -> int:
        """What numba asks for."""
        return self._address

    def signature(self) -> Signature:
        """What numba asks for, too."""
        return DECIDE


class View(NamedTuple):
    """The arguments of decide up to `gpus`."""

    now: float
    jobs: Records
    est: Floats
    queue: Records
    eligible: Mask
    running: Records
    pools: Records
    nodes: Records
    gpus: Records


class Desk:
    """Where one run's copies are made: the rebuilt state, a copy of it, and the jobs known so far.

    Jobs are written down once, as they arrive; the rest is as large as what waits and runs needs.
    """

    def __init__(self, setting: Setting, wish: Wish, view: View, own: tuple[Any, ...]) -> None:
        memory, out = own
        self.memory = memory  # whose run this is
        self.trial = np.array(out)  # nothing is named in it, as in any answer before it is given
        self._setting, self._ahead = setting, wish.arrivals
        pools, gpus, base = len(view.pools), len(view.gpus), len(memory) - _OWN
        self.copied_memory = np.zeros(base)
        self.scratch = np.zeros(scratch_size(gpus, pools))
        self.others = np.zeros(MOST_CHOICES)
        self.gains = {m: np.zeros((MOST_CHOICES, m)) for m in (1, wish.futures)}
        self.spans = np.zeros(0, SPAN)
        self._make_states(view, 64)
        self._make_jobs(view, 256)

    def _make_states(self, view: View, rows: int) -> None:
        """Room for so many jobs that wait or run."""
        gpus, types_ = len(view.gpus), len(self._setting.lists)
        self.rows = rows

        def empty() -> State:
            return State(
                np.zeros(1, WORLD), np.zeros(rows, WAITING),
                np.zeros((rows, len(view.pools)), np.bool_), np.zeros(rows),
                np.zeros(rows, RUNNING), np.zeros(rows, ENDS),
                np.stack([np.ones(gpus), np.zeros(gpus)], axis=1),
                np.ones((types_, view.est.shape[1])), np.array(view.pools), np.array(view.nodes),
                np.array(view.gpus), np.zeros(0),
            )  # fmt: skip

        self.state, self._copy = empty(), empty()
        self.tuples = tuple(self.state[:11]), tuple(self._copy[:11])

    def _make_jobs(self, view: View, rows: int) -> None:
        """Room for so many jobs, those that may come included; who was known is written anew."""
        setting = self._setting
        est = np.zeros((rows, view.est.shape[1]))
        types_, rules = len(setting.lists), setting.quotas
        self.work = Workload(
            np.zeros(rows, JOB), est, np.zeros((rows, len(view.pools)), np.bool_), est,
            np.zeros(0, EVENT), np.ones((types_, types_)), setting.demands,
            np.zeros((0, 0), READING), np.zeros((rows, 2), np.int64), rules.quotas, rules.caps,
            np.full(int(setting.scenario.ageing_h > 0), setting.scenario.ageing_h * 3600.0),
        )  # fmt: skip
        self.outcome, self.known = np.zeros(rows, OUTCOME), 0

    def _note_jobs(self, view: View) -> None:
        """Write down who has arrived since the last call."""
        if len(view.jobs) + self._ahead > len(self.work.jobs):
            self._make_jobs(view, 2 * (len(view.jobs) + self._ahead))
        new, setting = slice(self.known, len(view.jobs)), self._setting
        jobs = np.asarray(view.jobs[new])
        self.work.jobs[new], self.work.est[new] = jobs, view.est[new]
        self.work.allowed[new] = may_run(jobs, setting.lists[jobs["type"]], setting.layout)
        self.work.holders[new] = setting.quotas.holders(jobs)
        self.known = len(view.jobs)

    def rebuild(self, view: View, wake: float) -> None:
        """Write down how things stand."""
        waiting, running, arrived = len(view.queue), len(view.running), len(view.jobs)
        if waiting + running + self._ahead > self.rows:
            self._make_states(view, 2 * (waiting + running + self._ahead))
        if arrived > self.known:
            self._note_jobs(view)
        state = self.state
        w = state.world[0]
        w["now"], w["wake"], w["waiting"], w["running"] = view.now, wake, waiting, running
        w["arrived"], w["finished"] = arrived, arrived - waiting - running
        state.queue[:waiting], state.eligible[:waiting] = view.queue, view.eligible
        state.running[:running] = view.running
        state.pools[:], state.nodes[:], state.gpus[:] = view.pools, view.nodes, view.gpus


class Lookahead:
    """The decide of a policy that looks ahead."""

    def __init__(self, base: Player, wish: Wish, setting: Setting) -> None:
        self._name, self._wish, self._setting = base.name, wish, setting
        self._ask = _Pointer(compile_decide(base.decide))
        self._look_ahead = _compiled()
        self._memory = _OWN + max(base.memory, 1)
        self._desks = threading.local()  # a thread plays one run at a time

    def _desk(self, view: View, memory: Floats, out: Records) -> Desk:
        """That of the run which this memory belongs to."""
        desk: Desk | None = getattr(self._desks, "last", None)
        if desk is None or desk.memory is not memory:
            desk = self._desks.last = Desk(self._setting, self._wish, view, (memory, out))
        return desk

    def _draws(self, arrived: int, memory: Floats) -> tuple[Floats, int]:
        """Luck for each arrival of each future, by the run's seed and the call; how many futures.

        Which futures are tried does not depend on how many calls came before in other threads.
        """
        futures, arrivals = self._wish[:2]
        if arrivals == 0 or arrived < FEW:
            return np.zeros((0, 2)), 1
        rng = np.random.default_rng((int(memory[_SEED]), int(memory[_CALLS])))
        return rng.random((futures * arrivals, 2)), futures

    @property
    def memory(self) -> int:
        """How many numbers it keeps from call to call, the base policy's among them."""
        return self._memory

    def decide(self, *args: Any) -> int:  # noqa: ANN401  the one signature
        """The base policy's answer, or a better one."""
        view, (params, memory, out) = View(*args[:9]), args[9:]
        if memory[_CALLS] == 0:  # the base policy, too, finds the seed in its memory
            memory[_OWN], memory[_WAKE] = memory[_SEED], math.inf
        memory[_CALLS] += 1
        if memory[_WAKE] <= view.now:
            memory[_WAKE] = math.inf
        desk = self._desk(view, memory, out)
        desk.rebuild(view, memory[_WAKE])
        draws, futures = self._draws(len(view.jobs), memory)
        mine = np.asarray(out)
        answered: int = self._look_ahead(
            self._wish.gate, draws, self._ask, params, memory[_OWN:], desk.copied_memory,
            desk.scratch, desk.others, desk.gains[futures], mine, desk.trial,
            *desk.tuples, tuple(desk.work), desk.outcome, desk.spans,
        )  # fmt: skip
        if answered == FAULT:
            said = faults.message(desk.tuples[1][0][0])
            raise PolicyError(f"looking ahead, {self._name} {said}")
        for decision in mine[: max(answered, 0)]:
            if decision["kind"] == WAKE:
                memory[_WAKE] = min(memory[_WAKE], decision["at"])
        return answered
