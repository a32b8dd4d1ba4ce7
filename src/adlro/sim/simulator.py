"""One run: a workload on a cluster under a policy, to the last job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from adlro.compiled import dispatcher
from adlro.errors import PolicyError
from adlro.model.room import any_feasible
from adlro.model.state import OUTCOME, SPAN, Floats, Records
from adlro.sim import faults, kernel
from adlro.sim.signature import compile_decide, compile_steps, compiled_run
from adlro.sim.state import Empty, State, answers, fresh
from adlro.workloads.workload import Workload


class Player(Protocol):
    """What the simulator needs to know of a policy."""

    @property
    def name(self) -> str:
        """For error messages."""

    @property
    def decide(self) -> Callable[..., int]:
        """The one call; a numba dispatcher runs inside the kernel, anything else from Python."""

    @property
    def params(self) -> Floats:
        """Handed to each call."""

    @property
    def memory(self) -> int:
        """How many numbers it keeps from call to call."""


class Result(NamedTuple):
    """What came of a run."""

    outcome: Records  # [J] OUTCOME
    world: Records  # the WORLD record at the end
    gpus: Records  # [G] at the end, with the busy seconds of each
    spans: Records  # SPAN rows, one for each GPU of each run; empty unless asked for


def is_compiled(decide: Callable[..., int]) -> bool:
    """True for a numba dispatcher."""
    return hasattr(decide, "py_func") and hasattr(decide, "compile")


def view(state: State, workload: Workload) -> tuple[Any, ...]:
    """The arguments of decide up to `gpus`: what is in use, and only jobs that have arrived.

    As numpy.recarray, so that `queue[0].job` reads the same in plain Python as in compiled code;
    read-only, as the world is not the policy's to change.
    """
    w = state.world[0]
    waiting = slice(int(w["head"]), int(w["head"] + w["waiting"]))
    arrived, running = int(w["arrived"]), int(w["running"])
    records = (
        workload.jobs[:arrived], workload.est[:arrived], state.queue[waiting],
        state.eligible[waiting], state.running[:running], state.pools, state.nodes, state.gpus,
    )  # fmt: skip
    return (float(w["now"]), *(_locked(array) for array in records))


def _rows(records: Records) -> Records:
    return records.view(np.recarray)


def _locked(array: Records) -> Records:
    locked = _rows(array) if array.dtype.names else array.view()
    locked.flags.writeable = False
    return locked


class _Books(NamedTuple):
    """A fresh state and where a run writes what comes of it."""

    state: State
    out: Records
    outcome: Records
    spans: Records


def _open_books(empty: Empty, jobs: Records, memory: int, seed: int, *, keep_spans: bool) -> _Books:
    state = fresh(empty, len(jobs), max(memory, 1), seed)
    state.world["now"] = jobs["arrival"][0]
    spans = np.zeros(int(jobs["gpus"].sum()) if keep_spans else 0, SPAN)
    return _Books(state, answers(len(state.gpus)), np.zeros(len(jobs), OUTCOME), spans)


def is_real(state: State, workload: Workload) -> bool:
    """True when at least one waiting job could start somewhere now."""
    w = state.world[0]
    waiting = slice(int(w["head"]), int(w["head"] + w["waiting"]))
    queue, mask = state.queue[waiting], state.eligible[waiting]
    return any_feasible(workload.jobs, queue, mask, state.pools, state.nodes)


def _play(decide: Callable[..., int], params: Floats, workload: Workload, books: _Books) -> None:
    """The kernel's `run` for a decide in plain Python: same advance, same apply."""
    jobs, est, allowed, seconds = workload
    state, out, outcome, spans = books
    world = state.world
    while kernel.advance(*state[:8], jobs, allowed, outcome, spans):
        started = 1
        while started > 0:
            seen = view(state, workload)
            world["decisions"] += 1
            world["real_decisions"] += is_real(state, workload)
            answered = decide(*seen, params, state.memory, _rows(out))
            if not isinstance(answered, int | np.integer):
                raise PolicyError(
                    f"decide must return how many decisions it wrote, not {answered!r}"
                )
            started = kernel.apply(answered, out, *state[:8], jobs, est, seconds, outcome)
        if started < 0:
            break


def warm_up(policies: Iterable[Player]) -> None:
    """Compile (or load) the kernel and these policies now, in this thread."""
    for policy in policies:
        if is_compiled(policy.decide):
            compiled_run()
            compile_decide(policy.decide)
        else:
            compile_steps()


def run(
    empty: Empty, workload: Workload, policy: Player, seed: int = 0, *, keep_spans: bool = False
) -> Result:
    """Play a workload to its end under a policy.

    Raises:
        PolicyError: the policy asked for what cannot be, or left jobs waiting for ever.
    """

    def open_books() -> _Books:
        return _open_books(empty, workload.jobs, policy.memory, seed, keep_spans=keep_spans)

    books = open_books()
    decide, params = policy.decide, policy.params
    if is_compiled(decide):
        state, out, outcome, spans = books
        try:
            compiled_run()(
                compile_decide(decide), params, state.memory, out, *state[:8], *workload, outcome,
                spans,
            )  # fmt: skip
        except Exception:  # once more in plain Python, where the traceback names the line
            _play(dispatcher(decide).py_func, params, workload, open_books())
            raise
    else:
        _play(decide, params, workload, books)
    world = books.state.world[0]
    if world["fault"] != faults.NONE:
        raise PolicyError(f"policy {policy.name} {faults.message(world)}")
    for now, before in zip(books.state[5:7], empty[:2], strict=True):
        if now.tobytes() != before.tobytes():  # all is done: all must be free again
            raise PolicyError(f"policy {policy.name} changed the cluster's records by itself")
    return Result(books.outcome, world, books.state.gpus, books.spans[: world["spans"]])
