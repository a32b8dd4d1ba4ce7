"""A reference that knows what is to come: how much of what min-min leaves could be had at all.

Not a policy, for it looks at the truth. At each decision it tries what could be done next, plays
min-min on a copy of the world with the very jobs, run times and failures that will come, and takes
the cheapest. One step of improvement, so no bound: a policy may do better.
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
from adlro.planning.drain import MOST_PAIRS, Pairs, shortest_pairs
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim import kernel, steps
from adlro.sim.signature import (
    ANSWER,
    DECIDE,
    FLOATS,
    VIEW,
    WORLD,
    compile_decide,
    compiled_steps,
    entry_point,
)
from adlro.sim.simulator import RunResult, clone
from adlro.sim.world import Empty, World, answers, fresh_memory, open_world
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

HORIZON = 80  # jobs to come that a look ahead plays, with all that are there
_CLEARLY = 1e-6  # seconds that another choice must save over min-min's


class _Choice(NamedTuple):
    """A start, or waiting for the next event (job < 0)."""

    job: int
    pool: int


_WAIT = _Choice(-1, -1)


class _Calls(NamedTuple):
    """Compiled code without its dispatchers, which would look at all types in each call."""

    decide: Callable[[View, Floats, Floats, Records], int]
    shortest_pairs: Callable[[int, View, Pairs], int]
    clone: Callable[[World, World], None]
    run: Callable[[Callable[..., int], Floats, Floats, Records, World], None]


@functools.cache  # to look a signature up, numba hashes every field of its records
def _calls(decide: Callable[..., int]) -> _Calls:
    pairs = types.NamedUniTuple(FLOATS, len(Pairs._fields), Pairs)
    return _Calls(
        entry_point(decide, *DECIDE.args),
        entry_point(shortest_pairs, types.int64, VIEW, pairs),
        entry_point(steps.clone, WORLD, WORLD),
        entry_point(kernel.run, types.FunctionType(DECIDE), FLOATS, FLOATS, ANSWER, WORLD),
    )


class _Ahead(NamedTuple):
    """What looking ahead needs, made once a run."""

    rollout: Policy
    calls: _Calls
    horizon: int
    pairs: int  # feasible pairs that are tried
    memory: Floats  # of the rollout policy in the world itself
    copy: World
    copied_memory: Floats
    out: Records


def _seen(world: World) -> View:
    """What compiled code sees of a world: its own arrays, not copies."""
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


def _first_choice(view: View, ahead: _Ahead) -> _Choice:
    """What min-min would do."""
    out = ahead.out
    if ahead.calls.decide(view, ahead.rollout.params, ahead.memory, out) == 0:
        return _WAIT
    return _Choice(int(out[0]["job"]), int(out[0]["pool"]))


def _choices(view: View, ahead: _Ahead) -> list[_Choice]:
    """Min-min's choice first, then waiting, then the feasible pairs with the smallest estimates."""
    pairs = Pairs(*np.empty((3, MOST_PAIRS)))
    count = ahead.calls.shortest_pairs(MOST_PAIRS - 1, view, pairs)
    if count == 0:
        return [_WAIT]
    found = [
        _Choice(int(view.queue["job"][int(q)]), int(p))
        for q, p in zip(pairs.places[:count], pairs.pools[:count], strict=True)
    ]
    first = _first_choice(view, ahead)
    if ahead.pairs == 0:
        return [first]
    return list(dict.fromkeys([first, _WAIT, *found[: ahead.pairs]]))


def _write(choice: _Choice, out: Records) -> None:
    out[0] = (START, choice.job, choice.pool, -1, -1, 0.0)


def _cost(choice: _Choice, world: World, ahead: _Ahead) -> float:
    """Seconds that all jobs up to the horizon spend in the system if a choice is made now."""
    policy, memory, out = ahead.rollout, ahead.copied_memory, ahead.out
    foreseen = world.arrivals[: int(world.totals["arrived"][0]) + ahead.horizon]
    copy = ahead.copy._replace(arrivals=foreseen)
    ahead.calls.clone(world, copy)
    memory[:] = ahead.memory
    if choice != _WAIT:
        _write(choice, out)
        compiled_steps().apply(1, out, copy)
        copy.totals["wake"] = copy.totals["now"]  # so that min-min goes on in this moment
    ahead.calls.run(policy.decide, policy.params, memory, out, copy)
    failed = copy.totals["fault"][0] != violations.NONE
    return np.inf if failed else float(copy.totals["job_seconds"][0])


def _best(view: View, world: World, ahead: _Ahead) -> _Choice:
    choices = _choices(view, ahead)
    best, least = choices[0], np.inf
    for choice in choices if len(choices) > 1 else []:
        cost = _cost(choice, world, ahead)
        if cost < least - _CLEARLY:
            best, least = choice, cost
    return best


def hindsight(
    setting: Setting,
    workload: Workload,
    seed: int,
    *,
    horizon: int = HORIZON,
    pairs: int = MOST_PAIRS - 1,
) -> RunResult:
    """Play a workload to its end, each decision made with knowledge of what is to come.

    At each decision with a feasible pair: for min-min's choice, for waiting and for the feasible
    pairs with the smallest estimates, play min-min until the next `horizon` jobs have come and all
    that are there then have finished. The one whose jobs spend the least time in the system is
    taken; of equals (to a microsecond) min-min's. Nothing is preempted.

    Args:
        setting: the scenario, ready.
        workload: its jobs, of this seed.
        seed: of the run.
        horizon: how many jobs are foreseen.
        pairs: how many feasible pairs are tried at most, up to 15; 0 = min-min's choice alone.

    Raises:
        PolicyError: jobs are left waiting for ever.
    """
    layout = setting.layout
    rollout = registry.load("min-min", setting)
    rollout = rollout._replace(decide=compile_decide(rollout.decide))
    world = open_world(Empty(layout.pools, layout.nodes, layout.gpus), workload)
    memory, out, totals = fresh_memory(rollout.memory, seed), answers(world), world.totals[0]
    ahead = _Ahead(
        rollout,
        _calls(rollout.decide),
        horizon,
        pairs,
        memory,
        clone(world),
        memory.copy(),
        answers(world),
    )
    entry = compiled_steps()
    while entry.advance(world):
        choice = _Choice(0, 0)
        while choice != _WAIT:
            view = _seen(world)
            totals["decisions"] += 1
            totals["real_decisions"] += entry.is_real(world)
            choice = _best(view, world, ahead)
            if choice != _WAIT:
                _write(choice, out)
                entry.apply(1, out, world)
    if totals["fault"] != violations.NONE:
        raise PolicyError(f"hindsight {violations.message(totals)}")
    return RunResult(world.outcome, totals, world.gpus, world.spans)


def mean_jct(setting: Setting, workload: Workload, seed: int) -> float:
    """Mean JCT in seconds of the jobs that count, decided in hindsight; what `compare` asks for."""
    counted = setting.scenario.measure.window(len(workload.jobs))
    finish = hindsight(setting, workload, seed).outcome["finish"]
    return float((finish - workload.jobs["arrival"])[counted].mean())
