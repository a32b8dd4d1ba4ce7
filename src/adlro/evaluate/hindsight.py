"""A reference that knows what is to come: how much of what min-min leaves could be had at all.

Not a policy, for it looks at the truth. At each decision it tries what could be done next, plays
min-min on a copy of the world with the very jobs, run times and failures that will come, and takes
the cheapest. One step of improvement, so no bound: a policy may do better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.encode.drain import MOST_PAIRS, Pairs, shortest_pairs
from adlro.errors import PolicyError
from adlro.model.state import OUTCOME, SPAN, START, Records
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim import faults, kernel
from adlro.sim.signature import compile_decide, compile_steps, compiled_run
from adlro.sim.simulator import Result, all_of, is_real
from adlro.sim.state import Empty, State, answers, clone, fresh
from adlro.workloads.synthetic import Setting
from adlro.workloads.workload import Workload

HORIZON = 80  # jobs to come that a look ahead plays, with all that are there
_CLEARLY = 1e-6  # seconds that another choice must save over min-min's


class _Choice(NamedTuple):
    """A start, or waiting for the next event (job < 0)."""

    job: int
    pool: int


_WAIT = _Choice(-1, -1)


class _Ahead(NamedTuple):
    """What looking ahead needs, made once a run."""

    rollout: Policy
    workload: Workload
    horizon: int
    pairs: int  # feasible pairs that are tried
    copy: State
    out: Records
    outcome: Records


def _seen(state: State, workload: Workload) -> tuple[Records, ...]:
    """The arguments of decide from `jobs` to `gpus`, as compiled code takes them."""
    w = state.world[0]
    waiting = slice(int(w["head"]), int(w["head"] + w["waiting"]))
    arrived = int(w["arrived"])
    return (
        workload.jobs[:arrived], workload.est[:arrived], state.queue[waiting],
        state.eligible[waiting], state.running[: int(w["running"])], state.pools, state.nodes,
        state.gpus,
    )  # fmt: skip


def _first_choice(state: State, ahead: _Ahead) -> _Choice:
    """What min-min would do."""
    policy, out = ahead.rollout, ahead.out
    seen = _seen(state, ahead.workload)
    now = float(state.world[0]["now"])
    if policy.decide(now, *seen, policy.params, state.memory, out) == 0:
        return _WAIT
    return _Choice(int(out[0]["job"]), int(out[0]["pool"]))


def _choices(state: State, ahead: _Ahead) -> list[_Choice]:
    """Min-min's choice first, then waiting, then the feasible pairs with the smallest estimates."""
    pairs = Pairs(*np.empty((3, MOST_PAIRS)))
    jobs, est, queue, eligible, _, pools, nodes, gpus = _seen(state, ahead.workload)
    most = MOST_PAIRS - 1
    count = shortest_pairs(most, jobs, est, queue, eligible, pools, nodes, gpus, pairs)
    if count == 0:
        return [_WAIT]
    found = [
        _Choice(int(queue["job"][int(q)]), int(p))
        for q, p in zip(pairs.places[:count], pairs.pools[:count], strict=True)
    ]
    first = _first_choice(state, ahead)
    if ahead.pairs == 0:
        return [first]
    return list(dict.fromkeys([first, _WAIT, *found[: ahead.pairs]]))


def _write(choice: _Choice, out: Records) -> None:
    out[0] = (START, choice.job, choice.pool, -1, -1, 0.0)


def _cost(choice: _Choice, state: State, ahead: _Ahead) -> float:
    """Seconds that all jobs up to the horizon spend in the system if a choice is made now."""
    copy, out, outcome = ahead.copy, ahead.out, ahead.outcome
    kernel.clone(*state, *copy)
    most = int(state.world[0]["arrived"]) + ahead.horizon
    work = ahead.workload
    part = work._replace(
        jobs=work.jobs[:most],
        est=work.est[:most],
        allowed=work.allowed[:most],
        seconds=work.seconds[:most],
    )
    everything = all_of(copy, part, outcome, np.zeros(0, SPAN))
    if choice != _WAIT:
        _write(choice, out)
        kernel.apply(1, out, *everything)
        copy.world["wake"] = copy.world["now"]  # so that min-min goes on in this moment
    policy = ahead.rollout
    compiled_run()(policy.decide, policy.params, copy.memory, out, *everything)
    failed = copy.world["fault"][0] != faults.NONE
    return np.inf if failed else float(copy.world["job_seconds"][0])


def _best(state: State, ahead: _Ahead) -> _Choice:
    choices = _choices(state, ahead)
    best, least = choices[0], np.inf
    for choice in choices if len(choices) > 1 else []:
        cost = _cost(choice, state, ahead)
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
) -> Result:
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
    empty = Empty(layout.pools, layout.nodes, layout.gpus)
    rollout = registry.load("min-min", setting)
    rollout = rollout._replace(decide=compile_decide(rollout.decide))
    compile_steps()
    state = fresh(empty, workload, rollout.memory, seed)
    outcome, spans = np.zeros(len(workload.jobs), OUTCOME), np.zeros(0, SPAN)
    out, world = answers(state), state.world[0]
    ahead = _Ahead(
        rollout, workload, horizon, pairs, clone(state), answers(state), np.zeros_like(outcome)
    )
    everything = all_of(state, workload, outcome, spans)
    while kernel.advance(*everything):
        choice = _Choice(0, 0)
        while choice != _WAIT:
            world["decisions"] += 1
            world["real_decisions"] += is_real(state, workload)
            choice = _best(state, ahead)
            if choice != _WAIT:
                _write(choice, out)
                kernel.apply(1, out, *everything)
    if world["fault"] != faults.NONE:
        raise PolicyError(f"hindsight {faults.message(world)}")
    return Result(outcome, world, state.gpus, spans)


def mean_jct(setting: Setting, workload: Workload, seed: int) -> float:
    """Mean JCT in seconds of the jobs that count, decided in hindsight; what `compare` asks for."""
    counted = setting.scenario.measure.window(len(workload.jobs))
    finish = hindsight(setting, workload, seed).outcome["finish"]
    return float((finish - workload.jobs["arrival"])[counted].mean())
