"""A look-ahead with foresight, which shows how far min-min could be improved: no policy, no bound.

It is not a policy, because it reads the true future. At each decision it tries the options, rolls
min-min out on a copy of the world with the actual future jobs, run times and failures, and takes
the option of least cost. This is one step of policy improvement, not a bound: a policy may beat it.
lower_bound.py has a bound.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import types

from adlro.errors import PolicyError
from adlro.model import violations
from adlro.model.state import START, Floats, Records
from adlro.model.view import RECENT_ARRIVALS, View
from adlro.planning.drain import MAX_PAIRS, Pairs, shortest_pairs
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim import steps
from adlro.sim.signature import (
    DECIDE,
    FLOATS,
    VIEW,
    WORLD,
    compile_decide,
    compiled_run,
    compiled_steps,
    entry_point,
)
from adlro.sim.simulator import RunResult, clone
from adlro.sim.world import EmptyCluster, World, decision_buffer, fresh_memory, open_world
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

HORIZON = 80  # future arrivals in a rollout, besides the jobs already in the system
_MIN_SAVING_S = 1e-6  # an option must save this much over min-min's choice


class _Choice(NamedTuple):
    """A choice in a decision: start a job on a pool, or wait for the next event (job < 0)."""

    job: int
    pool: int


_WAIT = _Choice(-1, -1)


class _CompiledCalls(NamedTuple):
    """Entry points of compiled code that skip numba's dispatchers and their type checks."""

    decide: Callable[[View, Floats, Floats, Records], int]
    shortest_pairs: Callable[[int, View, Pairs], int]
    clone: Callable[[World, World], None]
    run: Callable[[Callable[..., int], Floats, Floats, Records, World], None]


@functools.cache  # looking up a signature hashes every field of its records
def _compiled_calls(decide: Callable[..., int]) -> _CompiledCalls:
    pairs = types.NamedUniTuple(FLOATS, len(Pairs._fields), Pairs)
    # compiled_run allows the one signature alone: otherwise a later run would compile another.
    (run,) = compiled_run().overloads.values()
    return _CompiledCalls(
        entry_point(decide, *DECIDE.args),
        entry_point(shortest_pairs, types.int64, VIEW, pairs),
        entry_point(steps.clone, WORLD, WORLD),
        run.entry_point,
    )


class _Rollout(NamedTuple):
    """Policy, compiled functions and buffers for rollouts, created once per run."""

    policy: Policy  # the rollout policy, min-min
    calls: _CompiledCalls
    horizon: int
    pairs: int  # feasible pairs to try at most
    memory: Floats  # memory of the rollout policy in the real world
    copy: World  # buffer for the world of a rollout
    copied_memory: Floats  # memory of the rollout policy in the copy
    out: Records  # buffer for decisions


def _view(world: World) -> View:
    """Return the view of a world for compiled code, made of the world's own arrays, not copies."""
    w = world.totals[0]
    arrived, rows = int(w["arrived"]), int(w["rows"])
    waiting = slice(w["head"], w["head"] + w["waiting"])
    return View(
        float(w["now"]),
        world.jobs[:rows],
        world.est[:rows],
        world.queue[waiting],
        world.eligible[waiting],
        world.running[: w["running"]],
        world.pools,
        world.nodes,
        world.gpus,
        arrived,
        world.arrivals[max(arrived - RECENT_ARRIVALS, 0) : arrived],
    )


def _min_min_choice(view: View, rollout: _Rollout) -> _Choice:
    """Return the choice that min-min makes in a state."""
    out = rollout.out
    if rollout.calls.decide(view, rollout.policy.params, rollout.memory, out) == 0:
        return _WAIT
    return _Choice(int(out[0]["job"]), int(out[0]["pool"]))


def _choices(view: View, rollout: _Rollout) -> list[_Choice]:
    """Return the choices to try: min-min's, waiting, and the feasible pairs estimated shortest."""
    pairs = Pairs(*np.empty((3, MAX_PAIRS)))
    count = rollout.calls.shortest_pairs(MAX_PAIRS - 1, view, pairs)
    if count == 0:
        return [_WAIT]
    found = [
        _Choice(int(view.queue["job"][int(q)]), int(p))
        for q, p in zip(pairs.places[:count], pairs.pools[:count], strict=True)
    ]
    first = _min_min_choice(view, rollout)
    if rollout.pairs == 0:
        return [first]
    return list(dict.fromkeys([first, _WAIT, *found[: rollout.pairs]]))


def _write(choice: _Choice, out: Records) -> None:
    out[0] = (START, choice.job, choice.pool, -1, -1, 0.0)


def _cost(choice: _Choice, world: World, rollout: _Rollout) -> float:
    """Return the total seconds that jobs up to the horizon spend in the system after a choice."""
    policy, memory, out = rollout.policy, rollout.copied_memory, rollout.out
    foreseen = world.arrivals[: int(world.totals["arrived"][0]) + rollout.horizon]
    copy = rollout.copy._replace(arrivals=foreseen)
    rollout.calls.clone(world, copy)
    memory[:] = rollout.memory
    if choice != _WAIT:
        _write(choice, out)
        compiled_steps().apply(1, out, copy)
        copy.totals["wake"] = copy.totals["now"]  # min-min continues at the same moment
    rollout.calls.run(policy.decide, policy.params, memory, out, copy)
    failed = copy.totals["fault"][0] != violations.NONE
    return np.inf if failed else float(copy.totals["job_seconds"][0])


def _best(view: View, world: World, rollout: _Rollout) -> _Choice:
    choices = _choices(view, rollout)
    best, least = choices[0], np.inf
    for choice in choices if len(choices) > 1 else []:
        cost = _cost(choice, world, rollout)
        if cost < least - _MIN_SAVING_S:
            best, least = choice, cost
    return best


def look_ahead(
    setting: Setting,
    workload: Workload,
    seed: int,
    *,
    horizon: int = HORIZON,
    pairs: int = MAX_PAIRS - 1,
) -> RunResult:
    """Run a workload to its end, making each decision with knowledge of the future.

    At each decision with a feasible pair (job, pool), the options are min-min's choice, waiting and
    the feasible pairs with the shortest estimates. After each option, min-min is rolled out until
    the next `horizon` jobs have arrived and every job in the system has finished. The option
    whose jobs spend the least total time in the system is taken; on ties (to a microsecond)
    min-min's choice. Nothing is preempted.

    Args:
        setting: the prepared scenario.
        workload: the jobs of this seed.
        seed: seed of the run.
        horizon: number of future arrivals in a rollout.
        pairs: number of feasible pairs to try, at most 15; 0 = min-min's choice only.

    Raises:
        PolicyError: some jobs can never start.
    """
    layout = setting.layout
    policy = registry.load("min-min", setting)
    policy = policy._replace(decide=compile_decide(policy.decide))
    world = open_world(EmptyCluster(layout.pools, layout.nodes, layout.gpus), workload)
    memory, out, totals = fresh_memory(policy.memory, seed), decision_buffer(world), world.totals[0]
    rollout = _Rollout(
        policy,
        _compiled_calls(policy.decide),
        horizon,
        pairs,
        memory,
        clone(world),
        memory.copy(),
        decision_buffer(world),
    )
    entry = compiled_steps()
    while entry.advance(world):
        choice = _Choice(0, 0)
        while choice != _WAIT:
            view = _view(world)
            totals["decisions"] += 1
            totals["real_decisions"] += entry.is_real(world)
            choice = _best(view, world, rollout)
            if choice != _WAIT:
                _write(choice, out)
                entry.apply(1, out, world)
    if totals["fault"] != violations.NONE:
        raise PolicyError(f"the look-ahead with foresight {violations.message(totals)}")
    return RunResult(world.outcome, totals, world.gpus, world.spans)


def mean_jct(setting: Setting, workload: Workload, seed: int) -> float:
    """Return the mean JCT in seconds of the measured jobs under the look-ahead with foresight."""
    counted = workload.measured(setting.scenario.measure)
    finish = look_ahead(setting, workload, seed).outcome["finish"]
    return float((finish - workload.jobs["arrival"])[counted].mean())
