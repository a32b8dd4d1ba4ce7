"""One run: a workload on a cluster under a policy, to the last job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from adlro.errors import PolicyError
from adlro.model.room import any_feasible
from adlro.model.state import OUTCOME, SPAN, Floats, Records
from adlro.sim import faults, kernel
from adlro.sim.signature import compile_decide, compiled_run
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
    """The arguments of decide up to `gpus`: what is in use, and only jobs that have arrived."""
    w = state.world[0]
    waiting = slice(int(w["head"]), int(w["head"] + w["waiting"]))
    arrived, running = int(w["arrived"]), int(w["running"])
    return (
        float(w["now"]), workload.jobs[:arrived], workload.est[:arrived], state.queue[waiting],
        state.eligible[waiting], state.running[:running], state.pools, state.nodes, state.gpus,
    )  # fmt: skip


def _play(
    policy: Player, state: State, workload: Workload, outcome: Records, spans: Records
) -> None:
    """The kernel's `run` for a policy in plain Python: same advance, same apply."""
    jobs, est, allowed, seconds = workload
    out = answers(len(state.gpus))
    world, memory = state.world, state.memory
    while kernel.advance(*state[:8], jobs, allowed, outcome, spans):
        started = 1
        while started > 0:
            seen = view(state, workload)
            world["decisions"] += 1
            world["real_decisions"] += any_feasible(jobs, *seen[3:5], *seen[6:8])
            answered = policy.decide(*seen, policy.params, memory, out)
            started = kernel.apply(answered, out, *state[:8], jobs, est, seconds, outcome)
        if started < 0:
            break


def warm_up(policies: Iterable[Player]) -> None:
    """Compile (or load) the kernel and these policies now, in this thread."""
    compiled_run()
    for policy in policies:
        if is_compiled(policy.decide):
            compile_decide(policy.decide)


def run(
    empty: Empty, workload: Workload, policy: Player, seed: int = 0, *, keep_spans: bool = False
) -> Result:
    """Play a workload to its end under a policy.

    Raises:
        PolicyError: the policy asked for what cannot be, or left jobs waiting for ever.
    """
    jobs, est, allowed, seconds = workload
    state = fresh(empty, len(jobs), max(policy.memory, 1), seed)
    state.world["now"] = jobs["arrival"][0]
    outcome = np.zeros(len(jobs), OUTCOME)
    spans = np.zeros(int(jobs["gpus"].sum()) if keep_spans else 0, SPAN)
    if is_compiled(policy.decide):
        decide, out = compile_decide(policy.decide), answers(len(state.gpus))
        compiled_run()(
            decide, policy.params, state.memory, out, *state[:8], jobs, est, allowed, seconds,
            outcome, spans,
        )  # fmt: skip
    else:
        _play(policy, state, workload, outcome, spans)
    world = state.world[0]
    if world["fault"] != faults.NONE:
        raise PolicyError(f"policy {policy.name} {faults.message(world)}")
    return Result(outcome, world, state.gpus, spans[: world["spans"]])
