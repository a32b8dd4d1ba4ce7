"""Labels states of one episode: calls the compiled `expand` and returns its results."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from adlro.compiled import Dispatcher, dispatcher
from adlro.errors import PolicyError
from adlro.evaluate.metrics import IDLE_POWER_SHARE
from adlro.features.start_kernel import EVERYTHING, FEATURES, MOST_CHOICES, scratch_size
from adlro.model import violations
from adlro.model.state import Counts, Floats, Records
from adlro.policies.loading import telemetry_ranges
from adlro.policies.registry import Policy
from adlro.sim.signature import (
    ANSWER,
    COUNTS,
    DECIDE,
    FLOATS,
    TABLE,
    WORLD,
    compile_decide,
)
from adlro.sim.simulator import is_compiled
from adlro.sim.world import EmptyCluster, decision_buffer, open_world
from adlro.telemetry.normalise import Norm
from adlro.train import expand_kernel
from adlro.train.expand_kernel import COSTS, Handed, Rows, Scene, Task
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

_OF_JOBS = ("jobs", "est", "allowed", "seconds", "holders")  # tables with a row per job


class ExpansionSettings(NamedTuple):
    """Which states of an episode are expanded, and how long their rollouts last."""

    horizon: int = 60  # a rollout lasts until this many more arrivals are completed
    rate: float = 0.1  # share of the states with a choice that are expanded
    stray: float = 0.02  # share of the decisions that are random starts
    norm: Norm | None = None  # normalisation of readings; None = the catalogue's ranges


class Labels(NamedTuple):
    """Labelled states: the F features and the costs of each of the N choices of S states."""

    features: NDArray[np.float32]  # [N, F]
    costs: Floats  # [N, 5] see expand_kernel.COSTS
    groups: Counts  # [S, 5] rows, that of Min-Min's choice, tau in us, jobs of rollout, rarity


_ONE_AT_A_TIME = threading.Lock()  # or two threads could compile the same


def _compiled() -> Dispatcher:
    with _ONE_AT_A_TIME:
        return _compiled_once()


@functools.cache
def _compiled_once() -> Dispatcher:
    decide, whole, number = types.FunctionType(DECIDE), types.int64, types.float64
    task = [whole, whole, number, number, whole, FLOATS, FLOATS, TABLE]
    expand = dispatcher(expand_kernel.expand)
    expand.compile(
        (
            decide,
            decide,
            types.NamedUniTuple(FLOATS, 4, Handed),
            types.NamedTuple(task, Task),
            types.NamedTuple([WORLD, WORLD, ANSWER, ANSWER, FLOATS], Scene),
            types.NamedTuple([types.float32[:, ::1], TABLE, COUNTS], Rows),
        )
    )
    expand.disable_compile()
    return expand


def watts(setting: Setting) -> Floats:
    """Return the power [P, 2] in watts of a GPU in each of P pools: busy, and idle."""
    tdp = np.array([setting.layout.models[m].power_w for m in setting.pools["model"]], np.float64)
    return np.stack([tdp, IDLE_POWER_SHARE * tdp], axis=1)


def _joined(workloads: Sequence[Workload]) -> dict[str, Records]:
    """Concatenate, over several workloads, each table that has a row per job."""
    return {name: np.concatenate([getattr(one, name) for one in workloads]) for name in _OF_JOBS}


def _scene(setting: Setting, workload: Workload, others: Sequence[Workload]) -> Scene:
    """Return the two worlds before the first arrival, and empty buffers."""
    layout = setting.layout
    empty = EmptyCluster(layout.pools, layout.nodes, layout.gpus)
    world, copy = open_world(empty, workload), open_world(empty, workload)
    return Scene(
        world,
        copy._replace(**_joined([workload, *others])),
        decision_buffer(world),
        decision_buffer(copy),
        np.zeros(scratch_size(len(layout.gpus), len(layout.pools))),
    )


def _handed(behave: Policy, base: Policy) -> Handed:
    """Return the parameters and an empty memory of `behave` and of `base`."""
    return Handed(behave.params, np.zeros(behave.memory), base.params, np.zeros(base.memory))


def expand(  # noqa: PLR0913  two policies on one world
    setting: Setting, workload: Workload, behave: Policy, base: Policy, plan: ExpansionSettings,
    rng: np.random.Generator, others: Sequence[Workload] = (),
) -> Labels:  # fmt: skip
    """Play one episode under `behave` and label some of its states by rollouts under `base`.

    `others` are episodes of the same scenario and length. Each in turn supplies the arrivals after
    a state, and costs are means over them; without any, arrivals are those of the episode itself.

    Both policies must be compiled and only start jobs. They are called only where a job can start,
    and `base` begins each rollout with an empty memory.

    Raises:
        PolicyError: a decision was infeasible, or a policy is not compiled.
    """
    for policy in (behave, base):
        if not is_compiled(policy.decide):
            raise PolicyError(f"policy {policy.name} is not compiled: it cannot make labels")
    jobs = len(workload.jobs)
    task = Task(
        plan.horizon,
        len(others),
        float(plan.rate),
        float(plan.stray),
        EVERYTHING,
        telemetry_ranges.ranges(plan.norm, setting.layout.models),
        rng.random(30 * jobs),
        watts(setting),
    )
    most = max(int(4 * jobs * plan.rate), 16) * MOST_CHOICES
    features = np.empty((most, len(FEATURES)), np.float32)
    rows = Rows(features, np.empty((most, len(COSTS))), np.zeros((most, 6), np.int64))
    scene = _scene(setting, workload, others)
    decides = compile_decide(behave.decide), compile_decide(base.decide)
    used = _compiled()(*decides, _handed(behave, base), task, scene, rows)
    if used < 0:
        raise PolicyError(f"policies {behave.name} and {base.name} {_fault(scene)}")
    groups = rows.groups[:used, :5]
    return Labels(rows.features[:used], rows.costs[:used], groups[groups[:, 0] > 0])


def _fault(scene: Scene) -> str:
    """Return the message of the rollout's fault, or if it had none, of the episode's."""
    of_copy = scene.copy.totals[0]
    return violations.message(of_copy if of_copy["fault"] else scene.world.totals[0])
