"""Small worlds for tests: concise clusters and jobs, and policies with scripted decisions."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from numba import njit

from adlro.model.cluster import Cluster, Layout, NodeGroup, lay_out
from adlro.model.context import Rulebook
from adlro.model.feasibility import fits
from adlro.model.gpu import models
from adlro.model.slurm import Slurm
from adlro.model.state import (
    DEMAND,
    EVENT,
    FAILURE,
    JOB,
    MIGRATE,
    PREEMPT,
    QUOTA,
    READING,
    REPAIR,
    SPEED,
    START,
    WAKE,
    WHOLE,
)
from adlro.model.view import View
from adlro.policies import registry
from adlro.sim import simulator
from adlro.sim.signature import DECIDE, compiled_steps, entry_point
from adlro.sim.world import EmptyCluster, decision_buffer, fresh_memory, open_world
from adlro.workloads.capacity import fill_partitions, may_run
from adlro.workloads.workload import Workload
from tests.plain.cases import Case, as_workload, random_case, typical_demands, undrained
from tests.plain.slurm import HASTY

ANYWHERE = [name for name in registry.names() if name != "paper-dqn"]  # its weights fit one cluster


class World(NamedTuple):
    """An empty cluster and the jobs that will arrive."""

    empty: EmptyCluster
    workload: Workload
    setting: SimpleNamespace  # a model.context.Context, and the layout if there is one


def nodes(gpu: str = "V100", gpus: int = 1, count: int = 1, **more) -> dict:
    """A group of nodes, by default with ample cores and memory."""
    return {"gpu": gpu, "gpus": gpus, "count": count, "cores": 999, "memory_gb": 999, **more}


def lay(*groups: dict) -> Layout:
    """Lay out the empty cluster of node groups; each GPU model is a column of a job's seconds."""
    named = [NodeGroup(**{"name": f"group{i}", **group}) for i, group in enumerate(groups)]
    return lay_out(Cluster(nodes=named))


def job(arrival: float, *seconds: float, **more) -> dict:
    """A job with its true seconds by model; optionally `est`, `allowed` (pools) and JOB fields."""
    return {"arrival": arrival, "seconds": seconds, **more}


def fill(dtype: np.dtype, specs: list[dict], **usual) -> np.ndarray:
    """Records with the fields that each spec names; the others have defaults or 0."""
    result = np.zeros(len(specs), dtype)
    for record, spec in zip(result, specs, strict=True):
        for name, value in {**usual, **spec}.items():
            record[name] = value
    return result


def records(jobs: list[dict]) -> np.ndarray:
    """JOB records [J]; by default one whole GPU, no demands, no limit, no checkpoints."""
    apart = {"seconds", "est", "allowed"}
    fields = [
        {"id": j, **{name: spec[name] for name in set(spec) - apart}} for j, spec in enumerate(jobs)
    ]
    usual = {"gpus": 1, "share": WHOLE, "limit": np.inf, "checkpoint": -1, "interval": np.inf}
    return fill(JOB, fields, **usual)


def fails(time: float, node: int, *, planned: bool = False) -> dict:
    """An event: a node fails, or is shut down as planned."""
    return {"time": time, "kind": FAILURE, "node": node, "value": planned}


def is_repaired(time: float, node: int) -> dict:
    """An event: a node returns to service."""
    return {"time": time, "kind": REPAIR, "node": node}


def gpu_speed(time: float, gpu: int, value: float, heat: float = 0.0) -> dict:
    """An event: a GPU changes its speed, and its temperature by this many degrees."""
    return {"time": time, "kind": SPEED, "gpu": gpu, "value": value, "heat": heat}


def cell_speed(time: float, cell: tuple[int, int], value: float) -> dict:
    """An event: a job type changes its speed on a model."""
    type_, model = cell
    return {"time": time, "kind": SPEED, "gpu": -1, "type": type_, "model": model, "value": value}


def reading(utilisation: float, bandwidth: float, temperature: float, power: float) -> tuple:
    """Sensor readings of an idle GPU, or what a job type adds to them."""
    return (utilisation, bandwidth, temperature, power)


def build(
    groups: list[dict],
    jobs: list[dict],
    affinity=(0,),
    shares=((1.0,),),
    *,
    prices=None,
    events=(),
    colocation=None,
    demands=(),
    readings=None,
    quotas=(),
    ageing=None,
    tick=None,
    slurm=None,
) -> World:
    """Build a world; jobs are in order of arrival.

    Args:
        groups: node groups.
        jobs: see `job`.
        affinity: [T] models.
        shares: [T, P] shares of the capacity LP.
        prices: [P] prices of the capacity LP; None = all equal.
        events: in order of time.
        colocation: [T, T] slowdowns; None = no slowdown.
        demands: for placement by fragmentation, and for `fgd`: dicts of DEMAND's fields.
        readings: [T + 1, M], see `reading`; None = no telemetry.
        quotas: see `quota`.
        ageing: seconds of waiting after which a job is aged; None = never.
        tick: seconds between scheduling cycles; None = decisions follow events at once.
        slurm: keys of the table [slurm]; None = Slurm's defaults.
    """
    layout, rows = lay(*groups), records(jobs)
    pools = range(len(layout.pools))
    types = int(rows["type"].max()) + 1
    wished = np.array([[p in spec.get("allowed", pools) for p in pools] for spec in jobs])
    est = np.array([spec.get("est", spec["seconds"]) for spec in jobs], np.float64)
    seconds = np.array([spec["seconds"] for spec in jobs], np.float64)
    allowed = may_run(rows, wished, layout)
    fill_partitions(rows, allowed, layout)
    workload = Workload(
        rows,
        est,
        allowed,
        seconds,
        fill(EVENT, list(events)),
        np.ones((types, types)) if colocation is None else np.array(colocation, np.float64),
        fill(DEMAND, list(demands), pools=2 ** len(pools) - 1),
        np.zeros((0, 0), READING) if readings is None else np.array(readings, READING),
        *_rules(quotas, rows, layout),
        np.zeros(0) if ageing is None else np.array([ageing], np.float64),
        np.zeros(0) if tick is None else np.array([tick], np.float64),
        np.zeros(len(rows), np.bool_),
    )
    empty = EmptyCluster(layout.pools, layout.nodes, layout.gpus)
    setting = SimpleNamespace(
        **_known(empty, workload, Slurm(**(slurm or {}))),
        layout=layout,
        models=layout.models,
        affinity=tuple(affinity),
        type_shares=np.array(shares),
        lp_prices=np.ones(len(pools)) if prices is None else np.array(prices, np.float64),
        demands=workload.demands,
    )
    return World(empty, workload, setting)


def _known(empty: EmptyCluster, workload: Workload, slurm: Slurm) -> dict:
    """Context fields of a cluster and a workload; its rules identify jobs by id.

    Partitions are named by their numbers.
    """
    rules = Rulebook(
        lambda jobs: workload.allowed[jobs["id"]],
        lambda jobs: workload.holders[jobs["id"]],
        *(workload.quotas, workload.caps, workload.ageing),
    )
    return {
        **{"name": "by hand", "rows": len(workload.jobs), "types": len(workload.colocation)},
        **empty._asdict(),
        **{"placement": workload.demands, "rules": rules, "slurm": slurm},
        "partitions": tuple(map(str, range(int(empty.pools["partitions"].max()).bit_length()))),
    }


def quota(*, account=None, user=None, worth=np.inf, caps=(), borrow=True) -> dict:
    """A quota of an account or a user; caps = (model, GPUs) pairs."""
    return {"account": account, "user": user, "worth": worth, "caps": caps, "borrow": borrow}


def _rules(quotas, jobs: np.ndarray, layout: Layout) -> tuple:
    """Holders [J, 2], quotas [H] and caps [H, M]."""
    holders = np.full((len(jobs), 2), -1)
    caps = np.full((len(quotas), len(layout.models)), -1)
    for h, spec in enumerate(quotas):
        if spec["account"] is not None:
            holders[jobs["account"] == spec["account"], 0] = h
        if spec["user"] is not None:
            holders[jobs["user"] == spec["user"], 1] = h
        for model, most in spec["caps"]:
            caps[h, model] = most
    return holders, np.array([(q["worth"], q["borrow"]) for q in quotas], QUOTA), caps


def from_case(case: Case) -> World:
    """Build one of the random cases of the plain simulator."""
    shares = np.zeros((len(case.affinity), len(case.pools)))
    for row, given in zip(shares, case.pools_of_type, strict=True):
        row[list(given)] = 1.0
    empty, workload = EmptyCluster(case.pools, case.nodes, case.gpus), as_workload(case)
    setting = SimpleNamespace(
        **_known(empty, workload, HASTY),
        models=models()[: case.est.shape[1]],
        affinity=tuple(case.affinity),
        type_shares=shares,
        lp_prices=case.pools["worth"],
        demands=typical_demands(case),
    )
    return World(empty, workload, setting)


def made_ready(policy, world: World):
    """Return a policy given by name ("restless" is defined in this file) or as it is."""
    if policy == Restless.name:
        return Restless()
    return registry.load(policy, world.setting) if isinstance(policy, str) else policy


def play(world: World, policy, seed: int = 0) -> simulator.RunResult:
    """Run a policy, given by name or as it is, with spans."""
    ready = made_ready(policy, world)
    return simulator.run(world.empty, world.workload, ready, seed, keep_spans=True)


def gpus_of(result: simulator.RunResult, j: int) -> list[int]:
    """GPUs that a job held, ascending."""
    return sorted(result.spans["gpu"][result.spans["job"] == j].tolist())


def start(job: int, pool: int = 0, node: int = -1, gpu: int = -1) -> tuple:
    """A decision that starts a job."""
    return (START, job, pool, node, gpu, 0.0)


def preempt(job: int) -> tuple:
    """A decision that preempts a job."""
    return (PREEMPT, job, -1, -1, -1, 0.0)


def migrate(job: int, pool: int = 0, node: int = -1, gpu: int = -1) -> tuple:
    """A decision that migrates a job."""
    return (MIGRATE, job, pool, node, gpu, 0.0)


def wake(at: float) -> tuple:
    """A decision that sets the timer."""
    return (WAKE, -1, -1, -1, -1, at)


class Scripted:
    """A policy in plain Python that returns the given answers, then none."""

    name, params, memory = "scripted", np.zeros(0), 0

    def __init__(self, *answers: list[tuple]) -> None:
        self.answers = iter(answers)
        self.asked_at: list[float] = []

    def decide(self, view, params, memory, out):
        self.asked_at.append(view.now)
        answer = next(self.answers, [])
        out[: len(answer)] = answer
        return len(answer)


class Scheduled(Scripted):
    """First come, first served on pool 0, except at given times with given answers.

    Args:
        at: time -> answers, one for each call at that time; the last call at a time gets no
            decision. The policy sets timers for these times.
        look: called with each view.
    """

    def __init__(self, at: dict[float, list[list[tuple]]], look=lambda view: None) -> None:
        super().__init__()
        self.at = {time: iter([*decision_buffer, []]) for time, decision_buffer in at.items()}
        self.look = look

    def decide(self, view, params, memory, out):
        self.look(view)
        now, jobs, queue, pools = view.now, view.jobs, view.queue, view.pools
        answer = next(self.at[now], []) if now in self.at else []
        if now not in self.at and len(queue) > 0:
            job = jobs[queue[0].job]
            if job.gpus <= pools[0].free:
                answer = [start(queue[0].job)]
        if not answer:
            answer = [wake(time) for time in sorted(self.at) if time > now][:1]
        out[: len(answer)] = answer
        return len(answer)


class Restless:
    """Starts feasible jobs and at random preempts or migrates running ones; compiled, seeded."""

    name, memory, params = "restless", 2, np.zeros(0)

    @staticmethod
    @njit(nogil=True)
    def decide(view, params, memory, out):
        now, jobs, queue, eligible = view.now, view.jobs, view.queue, view.eligible
        running, pools, nodes, gpus = view.running, view.pools, view.nodes, view.gpus
        memory[0] = (memory[0] + 1) * 16807 % 2147483647
        roll = int(memory[0]) % 10
        out[0].node = out[0].gpu = -1
        if roll < 4 and memory[1] < 40 and len(running) > 0:
            run = running[int(memory[0]) // 10 % len(running)]
            if now - run.start >= jobs[run.job].least_run:
                memory[1] += 1
                out[0].kind, out[0].job = (PREEMPT if roll < 2 else MIGRATE), run.job
                out[0].pool = run.pool
                return 1
        for q in range(len(queue)):
            for p in range(len(pools)):
                if eligible[q, p] and fits(jobs[queue[q].job], pools[p], nodes, gpus):
                    out[0].kind, out[0].job, out[0].pool = START, queue[q].job, p
                    return 1
        return 0


def random_world(seed, drains=True):
    """The random case of a seed as a world; without drains, its nodes fail instead."""
    case = random_case(seed)
    return from_case(case if drains else undrained(case))


@cache
def _entry(decide):
    return entry_point(decide, *DECIDE.args)


def called(decide):
    """Return a decide callable from Python; a compiled one is called as by the kernel."""
    return _entry(decide) if simulator.is_compiled(decide) else decide


class InPython:
    """A shipped policy called from Python, so that the kernel is driven from Python."""

    def __init__(self, name, world, look=lambda view: None):
        compiled = made_ready(name, world)
        self.name, self.params, self.memory = name, compiled.params, compiled.memory
        self.ask, self.look = called(compiled.decide), look

    def decide(self, view, params, memory, out):
        self.look(view)
        return self.ask(view, params, memory, out)


def unlocked(seen):
    """Return a writable copy of a view or an array; read-only arrays would be compiled again.

    Record arrays become plain arrays.
    """
    if isinstance(seen, View):
        return View(*(unlocked(part) if isinstance(part, np.ndarray) else part for part in seen))
    return np.array(seen)


def state_of(world, policy, seed=0):
    """The simulator's world before the first arrival, with space for spans; the policy's memory."""
    rows = 64 * int(world.workload.jobs["gpus"].sum())
    return open_world(world.empty, world.workload, rows), fresh_memory(policy.memory, seed)


def play_moments(policy, state, memory, most=10**9):
    """Run up to `most` moments of the kernel, as simulator.run does."""
    out, eyes, steps = decision_buffer(state), simulator.ViewCopies(state), compiled_steps()
    rows, decide = out.view(np.recarray), called(policy.decide)
    going_on = state.totals["finished"][0] < len(state.arrivals)
    while going_on and most > 0 and steps.advance(state):
        started = 1
        while started > 0:
            answered = decide(eyes.view(), policy.params, memory, rows)
            started = steps.apply(int(answered), out, state)
        most -= 1
