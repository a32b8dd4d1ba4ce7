"""The figures of one run. All jobs have run to their end: there are no survivors to average."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.evaluate.hyperscore import hyperscore, value
from adlro.model.cluster import Layout
from adlro.model.state import Floats, Records
from adlro.sim.simulator import Result
from adlro.workloads.synthetic import Setting
from adlro.workloads.workload import Workload

SLOWDOWN_FLOOR_S = 10.0  # run times below this count as this in the bounded slowdown
IDLE_POWER_SHARE = 0.15  # of its TDP that a GPU draws with nothing on it


class Metrics(NamedTuple):
    """Of the jobs that count (the scenario's `measure`), or of the whole run where it says so."""

    mean_jct_s: float  # JCT = finish - arrival
    weighted_jct_s: float  # weighted by priority
    p50_jct_s: float
    p95_jct_s: float
    p99_jct_s: float
    mean_wait_s: float  # start - arrival
    longest_wait_s: float
    killed_jobs: float  # ended by their limit before their work was done
    bounded_slowdown: float  # mean of max(1, JCT / max(run time, 10 s))
    makespan_s: float  # whole run: last finish - first arrival
    throughput_jobs_per_h: float  # whole run: jobs / makespan
    gpu_utilisation: float  # whole run: busy share of the GPUs over the makespan
    idle_gpu_s: float  # whole run
    gpu_imbalance: float  # whole run: coefficient of variation of the busy share over GPUs
    model_imbalance: float  # the same over GPU models
    energy_kwh: float  # whole run: TDP while busy, IDLE_POWER_SHARE of it while idle
    jain_users: float  # Jain's index of the users' mean of (fastest possible / actual JCT)
    finish_time_fairness: float  # 95th percentile of JCT / time with an equal share of the cluster
    reward: float  # the paper's R a job: -(mean JCT + lambda * idle GPU time / jobs)
    hyperscore: float


def fastest_possible(workload: Workload, layout: Layout) -> Floats:
    """Seconds [J] of each job alone on its best pool: no policy can finish it sooner."""
    jobs, pools = workload.jobs, layout.pools
    must_span = jobs["gpus"][:, None] > pools["node_gpus"]
    factor = 1 + must_span * jobs["communication"][:, None] * pools["span_cost"]
    seconds = np.where(workload.allowed, workload.seconds[:, pools["model"]] * factor, np.inf)
    fastest: Floats = np.minimum(seconds.min(axis=1), jobs["limit"])
    return fastest


def _variation(share: Floats) -> float:
    return float(share.std() / share.mean()) if share.mean() > 0 else 0.0


def jain(x: Floats) -> float:
    """Jain's fairness index: 1 = all alike, 1/n = one has everything."""
    total = float((x**2).sum())
    return float(x.sum() ** 2 / (len(x) * total)) if total > 0 else 1.0


def _user_fairness(jobs: Records, best: Floats, jct: Floats, gpus: int) -> tuple[float, float]:
    """Jain's index over users, and the 95th percentile of finish-time fairness.

    A user's equal share is gpus / users; a gang larger than that would take turns with itself.
    """
    users, of = np.unique(jobs["user"], return_inverse=True)
    progress = np.bincount(of, best / jct) / np.bincount(of)
    alone = best * np.maximum(1.0, jobs["gpus"] * len(users) / gpus)
    return jain(progress), float(np.percentile(jct / alone, 95))


def measure(setting: Setting, workload: Workload, result: Result) -> Metrics:
    """Compute every figure of a run."""
    layout, scenario = setting.layout, setting.scenario
    counted = scenario.measure.window(len(workload.jobs))
    jobs, outcome = workload.jobs[counted], result.outcome[counted]
    jct, wait = outcome["finish"] - jobs["arrival"], outcome["start"] - jobs["arrival"]
    run = outcome["finish"] - outcome["start"]
    best = fastest_possible(workload, layout)[counted]
    span = float(result.outcome["finish"].max() - workload.jobs["arrival"][0])
    busy = result.gpus["busy"] / span
    model = layout.pools["model"][layout.nodes["pool"][layout.gpus["node"]]]
    by_model = np.bincount(model, busy) / np.bincount(model)
    watts = np.array([m.tdp_w for m in layout.models])[model]
    idle_s = float(result.world["idle_seconds"])
    throughput = len(workload.jobs) / span
    share = float(busy.mean())
    jain_users, fairness = _user_fairness(jobs, best, jct, len(layout.gpus))
    v = value(float(best.mean() / jct.mean()), throughput / setting.capacity_per_s, share)
    drawn = watts * (busy + IDLE_POWER_SHARE * (1 - busy)) * span
    p50, p95, p99 = (float(p) for p in np.percentile(jct, (50, 95, 99)))
    weight = jobs["priority"] / jobs["priority"].sum() if jobs["priority"].any() else 1 / len(jobs)
    return Metrics(
        mean_jct_s=float(jct.mean()),
        weighted_jct_s=float((jct * weight).sum()),
        p50_jct_s=p50,
        p95_jct_s=p95,
        p99_jct_s=p99,
        mean_wait_s=float(wait.mean()),
        longest_wait_s=float(wait.max()),
        killed_jobs=float(outcome["killed"].sum()),
        bounded_slowdown=float(np.maximum(1, jct / np.maximum(run, SLOWDOWN_FLOOR_S)).mean()),
        makespan_s=span,
        throughput_jobs_per_h=throughput * 3600,
        gpu_utilisation=share,
        idle_gpu_s=idle_s,
        gpu_imbalance=_variation(busy),
        model_imbalance=_variation(by_model),
        energy_kwh=float(drawn.sum()) / 3.6e6,
        jain_users=jain_users,
        finish_time_fairness=fairness,
        reward=-(float(jct.mean()) + scenario.idle_weight * idle_s / len(workload.jobs)),
        hyperscore=hyperscore(v),
    )
