"""Small worlds for tests: a cluster and its jobs in a few words, and policies that do as told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from adlro.model.cluster import Cluster, Layout, NodeGroup, lay_out
from adlro.model.state import JOB, OUTCOME, SPAN, START, WAKE, WHOLE
from adlro.policies import registry
from adlro.sim import kernel, simulator
from adlro.sim.state import Empty, answers, fresh
from adlro.workloads.capacity import may_run
from adlro.workloads.workload import Workload
from tests.plain.cases import Case, random_case


class World(NamedTuple):
    """An empty cluster and the jobs that will come to it."""

    empty: Empty
    workload: Workload
    setting: SimpleNamespace  # what a policy's params and memory ask of a scenario


def nodes(gpu: str = "V100", gpus: int = 1, count: int = 1, **more) -> dict:
    """A group of nodes with cores and memory for all, unless told otherwise."""
    return {"gpu": gpu, "gpus": gpus, "count": count, "cores": 999, "memory_gb": 999, **more}


def lay(*groups: dict) -> Layout:
    """The empty cluster of some groups; each GPU model is a column of a job's seconds."""
    named = [NodeGroup(**{"name": f"group{i}", **group}) for i, group in enumerate(groups)]
    return lay_out(Cluster(nodes=named))


def job(arrival: float, *seconds: float, **more) -> dict:
    """A job with its true seconds by model; `est`, `allowed` (pools) and any JOB field on top."""
    return {"arrival": arrival, "seconds": seconds, **more}


def records(jobs: list[dict]) -> np.ndarray:
    """JOB records [J]: one whole GPU, no demands and no limit, unless told otherwise."""
    result = np.zeros(len(jobs), JOB)
    result["gpus"], result["share"], result["limit"] = 1, WHOLE, np.inf
    for record, spec in zip(result, jobs, strict=True):
        for name in set(spec) - {"seconds", "est", "allowed"}:
            record[name] = spec[name]
    return result


def build(groups: list[dict], jobs: list[dict], affinity=(0,), shares=((1.0,),)) -> World:
    """A world; jobs are given by arrival. affinity [T] models, shares [T, P] of the capacity LP."""
    layout, rows = lay(*groups), records(jobs)
    pools = range(len(layout.pools))
    wished = np.array([[p in spec.get("allowed", pools) for p in pools] for spec in jobs])
    est = np.array([spec.get("est", spec["seconds"]) for spec in jobs], np.float64)
    seconds = np.array([spec["seconds"] for spec in jobs], np.float64)
    return World(
        Empty(layout.pools, layout.nodes, layout.gpus),
        Workload(rows, est, may_run(rows, wished, layout), seconds),
        SimpleNamespace(
            layout=layout, pools=layout.pools, affinity=affinity, type_shares=np.array(shares)
        ),
    )


def from_case(case: Case) -> World:
    """One of the random cases that the plain simulator is compared on."""
    shares = np.zeros((len(case.affinity), len(case.pools)))
    for row, given in zip(shares, case.pools_of_type, strict=True):
        row[list(given)] = 1.0
    return World(
        Empty(case.pools, case.nodes, case.gpus),
        Workload(case.jobs, case.est, case.allowed, case.seconds),
        SimpleNamespace(
            layout=SimpleNamespace(gpus=case.gpus),
            pools=case.pools,
            affinity=case.affinity,
            type_shares=shares,
        ),
    )


def play(world: World, policy, seed: int = 0) -> simulator.Result:
    """Run a policy, given by its name or itself, and keep the spans."""
    ready = registry.load(policy, world.setting) if isinstance(policy, str) else policy
    return simulator.run(world.empty, world.workload, ready, seed, keep_spans=True)


def gpus_of(result: simulator.Result, j: int) -> list[int]:
    """The GPUs that a job held, in rising order."""
    return sorted(result.spans["gpu"][result.spans["job"] == j].tolist())


def start(job: int, pool: int = 0, node: int = -1, gpu: int = -1) -> tuple:
    """A decision that starts a job."""
    return (START, job, pool, node, gpu, 0.0)


def wake(at: float) -> tuple:
    """A decision that sets the timer."""
    return (WAKE, -1, -1, -1, -1, at)


class Scripted:
    """A policy in plain Python that gives the answers it was told, then none."""

    name, params, memory = "scripted", np.zeros(0), 0

    def __init__(self, *answers: list[tuple]) -> None:
        self.answers = iter(answers)
        self.asked_at: list[float] = []

    def decide(self, now, *view):
        self.asked_at.append(now)
        answer = next(self.answers, [])
        view[-1][: len(answer)] = answer
        return len(answer)


def random_world(seed):
    return from_case(random_case(seed))


class InPython:
    """A shipped policy called from Python, so that the kernel is driven from outside."""

    def __init__(self, name, world, look=lambda *view: None):
        compiled = registry.load(name, world.setting)
        self.name, self.params, self.memory = name, compiled.params, compiled.memory
        self.compiled, self.look = compiled.decide, look

    def decide(self, now, *view):
        self.look(now, *view)
        return self.compiled(now, *(unlocked(array) for array in view))


def unlocked(array):
    """A writable plain view, as the kernel hands out: for read-only ones numba compiles anew."""
    plain = array.view(np.ndarray)
    plain.flags.writeable = True
    return plain


def state_of(world, policy, seed=0):
    """A state before the first arrival, with an empty outcome and span log."""
    jobs = world.workload.jobs
    state = fresh(world.empty, len(jobs), max(policy.memory, 1), seed)
    state.world["now"] = jobs["arrival"][0]
    return state, np.zeros(len(jobs), OUTCOME), np.zeros(int(jobs["gpus"].sum()), SPAN)


def play_moments(world, policy, state, outcome, spans, most=10**9):
    """Up to `most` moments of the kernel, as simulator.run plays them."""
    jobs, est, allowed, seconds = world.workload
    out = answers(len(state.gpus))
    while most > 0 and kernel.advance(*state[:8], jobs, allowed, outcome, spans):
        started = 1
        while started > 0:
            now, *view = simulator.view(state, world.workload)
            own = (policy.params, state.memory, out)
            answered = policy.decide(now, *(unlocked(array) for array in view), *own)
            started = kernel.apply(answered, out, *state[:8], jobs, est, seconds, outcome)
        most -= 1
