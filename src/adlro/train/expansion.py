"""Labelled states from one episode: the compiled `expand` with what it needs around it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from adlro.compiled import Dispatcher, dispatcher
from adlro.encode.candidates_kernel import EVERYTHING, FEATURES, MOST_CHOICES, scratch_size
from adlro.errors import PolicyError
from adlro.evaluate.metrics import IDLE_POWER_SHARE
from adlro.model.state import OUTCOME, SPAN, Counts, Floats
from adlro.policies import meters
from adlro.policies.registry import Policy
from adlro.sim import faults
from adlro.sim.signature import (
    ANSWER,
    BOOKS,
    COUNTS,
    DECIDE,
    FLOATS,
    STATE,
    TABLE,
    WORKLOAD,
    compile_decide,
)
from adlro.sim.simulator import is_compiled
from adlro.sim.state import Empty, answers, fresh
from adlro.telemetry.normalise import Norm
from adlro.train import expand_kernel
from adlro.train.expand_kernel import COSTS
from adlro.workloads.synthetic import Setting
from adlro.workloads.workload import Workload

_OF_JOBS = ("jobs", "est", "allowed", "seconds", "holders")  # what a workload has for each job


class Plan(NamedTuple):
    """How an episode is expanded."""

    horizon: int = 60  # arrivals that a copy lives to see done
    rate: float = 0.1  # share of the states with a choice that are expanded
    stray: float = 0.02  # share of the decisions that are random starts
    norm: Norm | None = None  # by which readings are scaled; None = by the catalogue alone


class Labels(NamedTuple):
    """Expanded states: N choices of S states, F features."""

    features: NDArray[np.float32]  # [N, F]
    costs: Floats  # [N, 5] see expand_kernel.COSTS
    groups: Counts  # [S, 3] number of choices, which is Min-Min's, tau in microseconds


_ONE_AT_A_TIME = threading.Lock()  # two threads may both find that nothing is compiled yet


def _compiled() -> Dispatcher:
    with _ONE_AT_A_TIME:
        return _compiled_once()


@functools.cache
def _compiled_once() -> Dispatcher:
    policy = (types.FunctionType(DECIDE), FLOATS, FLOATS)
    rows = types.Array(types.float32, 2, "C")
    tuple_of: Callable[..., types.BaseTuple] = types.Tuple
    state, work = tuple_of(STATE), tuple_of(WORKLOAD)
    expand = dispatcher(expand_kernel.expand)
    expand.compile(
        (
            *policy, *policy, types.int64, types.int64, types.float64, types.float64, types.int64,
            FLOATS, FLOATS, TABLE, FLOATS, ANSWER, ANSWER, state, state, work, work, work,
            BOOKS[0], BOOKS[0], BOOKS[1], rows, TABLE, COUNTS,
        )
    )  # fmt: skip
    expand.disable_compile()
    return expand


def watts(setting: Setting) -> Floats:
    """[P, 2] what a GPU of each pool draws while busy and while idle."""
    tdp = np.array([setting.layout.models[m].tdp_w for m in setting.pools["model"]], np.float64)
    return np.stack([tdp, IDLE_POWER_SHARE * tdp], axis=1)


def _joined(workloads: Sequence[Workload]) -> Workload:
    """The jobs of several workloads, one after the other."""
    return workloads[0]._replace(
        **{name: np.concatenate([getattr(one, name) for one in workloads]) for name in _OF_JOBS}
    )


def expand(  # noqa: PLR0913  two policies on one world
    setting: Setting, workload: Workload, behave: Policy, base: Policy, plan: Plan,
    rng: np.random.Generator, others: Sequence[Workload] = (),
) -> Labels:  # fmt: skip
    """Play one episode under `behave` and label some of its states by playing on under `base`.

    `others` are episodes of the same scenario and length: what comes next, until the last job has
    come, is taken from each of them in turn, and costs are means; without any, it is what really
    comes.

    Both must be compiled and do nothing but start jobs: they are asked only where one can start,
    and in each copy `base` begins with an empty memory.

    Raises:
        PolicyError: a policy asked for what cannot be, or is not compiled.
    """
    for policy in (behave, base):
        if not is_compiled(policy.decide):
            raise PolicyError(f"policy {policy.name} is not compiled: it cannot make labels")
    layout = setting.layout
    empty = Empty(layout.pools, layout.nodes, layout.gpus)
    jobs = len(workload.jobs)
    state, copy = fresh(empty, workload, 1, 0), fresh(empty, workload, 1, 0)
    most = max(int(4 * jobs * plan.rate), 16) * MOST_CHOICES
    features = np.empty((most, len(FEATURES)), np.float32)
    costs, groups = np.empty((most, len(COSTS))), np.zeros((most, 3), np.int64)
    used = _compiled()(
        compile_decide(behave.decide), behave.params, np.zeros(behave.memory),
        compile_decide(base.decide), base.params, np.zeros(base.memory),
        plan.horizon, len(others), plan.rate, plan.stray, EVERYTHING,
        meters.ranges(plan.norm, layout.models), rng.random(30 * jobs), watts(setting),
        np.zeros(scratch_size(len(layout.gpus), len(layout.pools))),
        answers(state), answers(copy), tuple(state[:11]), tuple(copy[:11]), tuple(workload),
        tuple(_joined(others) if others else workload), tuple(_joined([workload])),
        np.zeros(jobs, OUTCOME), np.zeros(jobs, OUTCOME), np.zeros(0, SPAN), features, costs,
        groups,
    )  # fmt: skip
    if used < 0:
        fault = copy.world[0] if copy.world["fault"][0] else state.world[0]
        raise PolicyError(f"policies {behave.name} and {base.name} {faults.message(fault)}")
    return Labels(features[:used], costs[:used], groups[:used][groups[:used, 0] > 0])
