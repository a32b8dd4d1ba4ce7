"""Builders of worlds that are small enough to compute by hand."""

from __future__ import annotations

from math import inf

import numpy as np

from adlro.model.state import (
    DEMAND,
    EVENT,
    FAILURE,
    GPU,
    JOB,
    NODE,
    POOL,
    REPAIR,
    SPEED,
    WHOLE,
)
from tests.plain.cases import Case
from tests.plain.policies import Fcfs
from tests.plain.records import Decision
from tests.plain.simulator import PlainWorld


def job(arrival, *seconds, **more):
    """A job with its true seconds by model; `est` if the estimate differs, and other JOB fields."""
    usual = {"gpus": 1, "share": WHOLE, "limit": inf, "checkpoint": -1, "interval": inf}
    return {"arrival": arrival, "seconds": seconds, **usual, **more}


def pool(nodes=1, gpus=1, model=0, cores=99, memory=99, span_cost=1.0):
    return (nodes, gpus, model, cores, memory, span_cost)


def fail(time, node, planned=0):
    return {"time": time, "kind": FAILURE, "node": node, "value": planned}


def repair(time, node):
    return {"time": time, "kind": REPAIR, "node": node}


def gpu_speed(time, gpu, value):
    return {"time": time, "kind": SPEED, "gpu": gpu, "value": value}


def cell_speed(time, cell, value):
    return {
        "time": time,
        "kind": SPEED,
        "gpu": -1,
        "type": cell[0],
        "model": cell[1],
        "value": value,
    }


def fill(dtype, specs):
    """Records [len(specs)] with the fields named in each spec; all others are 0."""
    records = np.zeros(len(specs), dtype)
    for record, spec in zip(records, specs, strict=True):
        for name in set(spec) & set(dtype.names):
            record[name] = spec[name]
    return records


def build(pools, jobs, events=(), colocation=((1.0, 1.0), (1.0, 1.0)), demands=()):
    """A world of a few pools with GPUs of 100 MB; a job may use all pools or its `allowed` ones."""
    machines = [(k, *p) for k, p in enumerate(pools) for _ in range(p[0])]
    node_records, pool_records = np.zeros(len(machines), NODE), np.zeros(len(pools), POOL)
    for record, (k, _, gpus, _, cores, memory, _) in zip(node_records, machines, strict=True):
        record["pool"], record["gpus"], record["free"] = k, gpus, gpus
        record["cores"] = record["free_cores"] = cores
        record["memory"] = record["free_memory"] = memory
    node_records["first_gpu"] = np.cumsum(node_records["gpus"]) - node_records["gpus"]
    for record, (nodes, gpus, model, _, _, span_cost) in zip(pool_records, pools, strict=True):
        record["nodes"], record["gpus"], record["model"] = nodes, nodes * gpus, model
        record["span_cost"] = span_cost
    pool_records["gpu_memory"] = 100
    pool_records["first_node"] = np.cumsum(pool_records["nodes"]) - pool_records["nodes"]
    everywhere = range(len(pools))
    case = Case(
        jobs=fill(JOB, jobs),
        est=np.array([spec.get("est", spec["seconds"]) for spec in jobs], np.float64),
        seconds=np.array([spec["seconds"] for spec in jobs], np.float64),
        allowed=np.array(
            [[g in spec.get("allowed", everywhere) for g in everywhere] for spec in jobs]
        ),
        pools=pool_records,
        nodes=node_records,
        gpus=np.zeros(0, GPU),
        affinity=[],
        pools_of_type=[],
        events=fill(EVENT, events),
        colocation=np.array(colocation),
        demands=fill(DEMAND, demands),
        whole=True,
    )
    return PlainWorld(case)


def start(job, pool=0, node=-1, gpu=-1):
    return Decision("start", job, pool, node, gpu)


def preempt(job):
    return Decision("preempt", job)


def migrate(job, pool=0, node=-1, gpu=-1):
    return Decision("migrate", job, pool, node, gpu)


def wake(at):
    return Decision("wake", at=at)


class Scheduled:
    """First come, first served, with given decisions at given times."""

    def __init__(self, **at):
        self.at = {float(name[1:].replace("_", ".")): list(answers) for name, answers in at.items()}

    def decide(self, world):
        if self.at.get(world.now):
            return [self.at[world.now].pop(0)]
        soon = [wake(time) for time in self.at if time > world.now]
        return Fcfs().decide(world) + soon
