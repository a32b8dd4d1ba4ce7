"""One run: a workload on a cluster under a policy, to the last job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from adlro.errors import PolicyError
from adlro.model.room import any_feasible
from adlro.model.state import OUTCOME, SPAN, Floats, Records
from adlro.sim import faults, kernel
from adlro.sim.signature import compile_decide, compile_steps, compiled_run
from adlro.sim.state import Empty, State, answers, fresh, is_empty
from adlro.workloads.workload import Workload

_IN_USE = ["now", "head", "waiting", "arrived", "running"]


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


def lock(state: State, workload: Workload) -> tuple[Records, ...]:
    """All that a policy ever sees of a run, read-only: the world is not the policy's to change.

    Made once a run. The records are plain arrays whose type is already that of a numpy.recarray:
    to change it is what costs most of a view.
    """
    arrays = (
        workload.jobs, workload.est, state.queue, state.eligible, state.running, state.pools,
        state.nodes, state.gpus,
    )  # fmt: skip
    return tuple(_locked(array) for array in arrays)


def view(state: State, locked: tuple[Records, ...]) -> tuple[Any, ...]:
    """The arguments of decide up to `gpus`: what is in use, and only jobs that have arrived.

    As numpy.recarray, so that `queue[0].job` reads the same in plain Python as in compiled code.
    """
    now, head, waiting, arrived, running = state.world[_IN_USE][0].item()
    jobs, est, queue, eligible, runs, pools, nodes, gpus = locked
    return (
        now, _rows(jobs[:arrived]), est[:arrived], _rows(queue[head : head + waiting]),
        eligible[head : head + waiting], _rows(runs[:running]), _rows(pools), _rows(nodes),
        _rows(gpus),
    )  # fmt: skip


def _rows(records: Records) -> Records:
    return records.view(np.recarray)


def _locked(array: Records) -> Records:
    locked = np.asarray(_rows(array)) if array.dtype.names else array.view()
    locked.flags.writeable = False
    return locked


class _Books(NamedTuple):
    """A fresh state and where a run writes what comes of it."""

    state: State
    out: Records
    outcome: Records
    spans: Records


def _open_books(empty: Empty, workload: Workload, policy: Player, seed: int, rows: int) -> _Books:
    """Books for one run, with room for so many rows in the log of spans."""
    state = fresh(empty, workload, max(policy.memory, 1), seed)
    outcome = np.zeros(len(workload.jobs), OUTCOME)
    return _Books(state, answers(state), outcome, np.zeros(rows, SPAN))


def _with_room(spans: Records, used: int, more: int) -> Records:
    """The log of spans, moved to a larger one if it cannot take so many more rows."""
    if used + more <= len(spans):
        return spans
    larger = np.zeros(2 * (used + more), SPAN)
    larger[:used] = spans[:used]
    return larger


def is_real(state: State, workload: Workload) -> bool:
    """True when at least one waiting job could start somewhere now."""
    w = state.world[0]
    if w["waiting"] == 0 or w["busy_gpus"] == w["up_gpus"]:
        return False
    waiting = slice(int(w["head"]), int(w["head"] + w["waiting"]))
    queue, mask = state.queue[waiting], state.eligible[waiting]
    return any_feasible(workload.jobs, queue, mask, state.pools, state.nodes, state.gpus)


def all_of(state: State, workload: Workload, outcome: Records, spans: Records) -> tuple[Any, ...]:
    """What the kernel's functions take."""
    return (*state[:11], *workload, outcome, spans)


def _play(decide: Callable[..., int], params: Floats, workload: Workload, books: _Books) -> Records:
    """The kernel's `run` for a decide in plain Python: same advance, same apply.

    Returns:
        The log of spans, which may have grown out of that of the books.
    """
    state, out, outcome, spans = books
    w, most = state.world[0], len(state.gpus) + len(state.running)
    locked, rows = lock(state, workload), _rows(out)
    everything = all_of(state, workload, outcome, spans)
    while kernel.advance(*everything):
        started, last = 1, w["decisions"] + kernel.MOST_CALLS
        while started > 0:
            if w["decisions"] == last:
                w["fault"], w["fault_value"] = faults.ENDLESS_ANSWERS, kernel.MOST_CALLS
                return spans
            seen = view(state, locked)
            w["decisions"] += 1
            w["real_decisions"] += is_real(state, workload)
            answered = decide(*seen, params, state.memory, rows)
            if not isinstance(answered, int | np.integer):
                raise PolicyError(
                    f"decide must return how many decisions it wrote, not {answered!r}"
                )
            if len(spans) > 0:
                spans = _with_room(spans, int(w["spans"]), (max(answered, 0) + 1) * most)
                everything = all_of(state, workload, outcome, spans)
            started = kernel.apply(answered, out, *everything)
        if started < 0:
            break
    return spans


def warm_up(policies: Iterable[Player]) -> None:
    """Compile (or load) the kernel and these policies now, in this thread."""
    for policy in policies:
        if is_compiled(policy.decide):
            compiled_run()
            compile_decide(policy.decide)
        else:
            compile_steps()


def _run(
    empty: Empty, workload: Workload, policy: Player, seed: int, rows: int
) -> tuple[_Books, Records]:
    """Play once; returns the books and the log of spans, begun with so many rows."""
    books = _open_books(empty, workload, policy, seed, rows)
    if not is_compiled(policy.decide):
        return books, _play(policy.decide, policy.params, workload, books)
    decide, (state, out, outcome, spans) = compile_decide(policy.decide), books
    try:
        compiled_run()(
            decide, policy.params, state.memory, out, *state[:11], *workload, outcome, spans
        )
    except Exception:  # once more in plain Python, where the traceback names the line
        again = _open_books(empty, workload, policy, seed, rows)
        _play(decide.py_func, policy.params, workload, again)
        raise
    return books, spans


def run(
    empty: Empty, workload: Workload, policy: Player, seed: int = 0, *, keep_spans: bool = False
) -> Result:
    """Play a workload to its end under a policy.

    Raises:
        PolicyError: the policy asked for what cannot be, or left jobs waiting for ever.
    """
    rows = int(workload.jobs["gpus"].sum()) if keep_spans else 0
    books, spans = _run(empty, workload, policy, seed, rows)
    if books.state.world["fault"][0] != faults.NONE:
        raise PolicyError(f"policy {policy.name} {faults.message(books.state.world[0])}")
    if keep_spans and books.state.world["spans"][0] > len(spans):  # jobs ran more than once
        books, spans = _run(empty, workload, policy, seed, int(books.state.world["spans"][0]))
    world = books.state.world[0]
    if not is_empty(books.state, empty, workload.events[: world["events_done"]]):
        raise PolicyError(f"policy {policy.name} changed the cluster's records by itself")
    kept = spans[: world["spans"]] if keep_spans else spans
    return Result(books.outcome, world, books.state.gpus, kept)
