"""Computes the metrics of one run, in which every job has ended: no metric is censored."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adlro.config.scenario import Scenario
from adlro.evaluate.downtime import up_seconds, window
from adlro.evaluate.hyperscore import hyperscore, value
from adlro.evaluate.load import offered_load, pool_seconds, width
from adlro.model.cluster import Layout
from adlro.model.state import Floats, Records
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

SLOWDOWN_FLOOR_S = 10.0  # shorter run times count as this in the bounded slowdown
IDLE_POWER_SHARE = 0.15  # share of its TDP that an idle GPU draws
_NEVER_UP = 1e-9  # share of the makespan: a GPU up for less counts as never up


class Metrics(NamedTuple):
    """Metrics of one run, over the jobs that `measure` selects unless marked "whole run".

    Runs that requeued jobs of a history lost are no jobs, but count in times of GPUs, in the queue
    and in the load.
    """

    mean_jct_s: float  # JCT = finish - arrival
    weighted_jct_s: float  # weighted by priority
    p50_jct_s: float
    p95_jct_s: float
    p99_jct_s: float
    mean_wait_s: float  # first start - arrival
    longest_wait_s: float
    mean_queue: float  # whole run: time average of the number of waiting jobs
    restarts: float  # preemptions and losses to failures per job
    killed_jobs: float  # terminated by their time limit before their work was done
    bounded_slowdown: float  # mean of max(1, JCT / max(finish - first start, 10 s))
    makespan_s: float  # whole run: last finish - first arrival
    throughput_jobs_per_h: float  # whole run: jobs / makespan
    offered_load: float  # whole run: arriving work / capacity; depends on the seed only
    gpu_utilisation: float  # whole run: busy share of the time GPUs were up
    idle_gpu_s: float  # whole run; time down is not idle time
    lost_gpu_s: float  # whole run: work done and lost
    fragmentation: float  # whole run: share of time up left over beside slices
    gpu_imbalance: float  # whole run: coefficient of variation of the GPUs' busy shares
    model_imbalance: float  # the same over GPU models
    energy_kwh: float  # whole run: TDP while busy, IDLE_POWER_SHARE of it while idle
    energy_per_job_kwh: float  # whole run
    energy_delay: float  # kWh h: energy_kwh x mean JCT
    cost: float  # whole run: busy GPU-hours at their price or worth (reference GPU-hours)
    cost_per_job: float  # whole run
    jain_users: float  # Jain's index of the users' mean (fastest possible / actual JCT)
    jain_accounts: float  # the same over accounts, weighted by their quota shares if any
    finish_time_fairness: float  # 95th percentile of JCT / time with an equal share of the cluster
    reward: float  # the paper's R per job: -(mean JCT + lambda * idle GPU time / jobs)
    hyperscore: float


def fastest_possible(workload: Workload, layout: Layout) -> Floats:
    """Return the run time [J] in seconds of each job if it ran alone on its fastest pool.

    At the initial speeds of the GPUs, and at most the job's time limit. It is a lower bound on the
    job's JCT, unless an update event makes the job's type faster later on.
    """
    seconds = np.where(workload.allowed, pool_seconds(workload, layout), np.inf)
    fastest: Floats = np.minimum(seconds.min(axis=1), workload.jobs["limit"])
    return fastest


def _variation(share: Floats) -> float:
    """Return the coefficient of variation, standard deviation / mean; 0 if the mean is 0."""
    return float(share.std() / share.mean()) if share.mean() > 0 else 0.0


def jain(x: Floats, weight: Floats | None = None) -> float:
    """Return Jain's fairness index of x [n]: 1 = all equal, 1/n = one entry has everything.

    An entry of weight w counts like w entries of the same value.
    """
    weight = np.ones(len(x)) if weight is None else weight
    total = float((weight * x**2).sum() * weight.sum())
    return float((weight * x).sum() ** 2 / total) if total > 0 else 1.0


class _GpuUse(NamedTuple):
    """Use of the cluster's GPUs in a run; a busy share is busy time / time up."""

    share: float  # busy share of all GPUs together
    by_gpu: Floats  # busy share of each GPU that was ever up
    by_model: Floats  # busy share of each model with a GPU that was ever up
    energy_kwh: float
    cost: float


def _gpu_use(setting: Setting, workload: Workload, result: RunResult) -> _GpuUse:
    layout = setting.layout
    within = window(workload, result)
    up_s = up_seconds(workload.events, layout.nodes, within)[layout.gpus["node"]]
    up, busy = up_s / within.length, result.gpus["busy"] / within.length
    model = layout.pools["model"][layout.nodes["pool"][layout.gpus["node"]]]
    watts = np.array([m.power_w for m in layout.models])[model]
    was_up, up_models = up > _NEVER_UP, np.bincount(model, up)
    with_any = up_models > _NEVER_UP
    return _GpuUse(
        float(busy.mean() / up.mean()),
        busy[was_up] / up[was_up],
        np.bincount(model, busy)[with_any] / up_models[with_any],
        float((watts * (busy + IDLE_POWER_SHARE * (up - busy)) * within.length).sum()) / 3.6e6,
        float((setting.prices[model] * result.gpus["busy"]).sum()) / 3600,
    )


def _mean_by_holder(holder: Records, speed: Floats) -> tuple[Records, Floats]:
    """Return the users (or accounts) that have jobs, and the mean speed of the jobs of each.

    Args:
        holder: [J] user or account of each job.
        speed: [J] fastest possible JCT / actual JCT of each job.
    """
    names, of = np.unique(holder, return_inverse=True)
    return names, np.bincount(of, speed) / np.bincount(of)


def _account_weights(scenario: Scenario) -> Floats:
    """Return the weight of each account: its quota share; 1 for all if no account has a share.

    Accounts without a share divide the rest of the cluster evenly.
    """
    shares = {q.account: q.share for q in scenario.quotas if q.account and q.share}
    if not shares:
        return np.ones(len(scenario.accounts))
    others = len(scenario.accounts) - len(shares)
    rest = max(0.0, 1 - math.fsum(shares.values())) / max(others, 1)
    return np.array([shares.get(account, rest) for account in scenario.accounts])


def _user_fairness(jobs: Records, best: Floats, jct: Floats, gpus: int) -> tuple[float, float]:
    """Return Jain's index over users and the 95th percentile of the jobs' finish-time fairness.

    Finish-time fairness is JCT / time the job would take alone on an equal share of the cluster.
    That share is gpus / users; a job that is wider takes longer in proportion. A slice counts as
    its share of a GPU. best and jct [J]: fastest possible and actual JCT.
    """
    users, progress = _mean_by_holder(jobs["user"], best / jct)
    alone = best * np.maximum(1.0, width(jobs) * len(users) / gpus)
    return jain(progress), float(np.percentile(jct / alone, 95))


def measure(setting: Setting, workload: Workload, result: RunResult) -> Metrics:
    """Compute all metrics of a run."""
    layout, scenario = setting.layout, setting.scenario
    counted = workload.measured(scenario.measure)
    count = int((~workload.lost).sum())
    jobs, outcome = workload.jobs[counted], result.outcome[counted]
    jct, wait = outcome["finish"] - jobs["arrival"], outcome["start"] - jobs["arrival"]
    run = outcome["finish"] - outcome["start"]
    best = fastest_possible(workload, layout)[counted]
    span = window(workload, result).length
    use = _gpu_use(setting, workload, result)
    idle_s = float(result.totals["idle_seconds"])
    up_s = float(result.gpus["busy"].sum()) + idle_s
    served = len(workload.jobs) / span  # lost runs are work too
    jain_users, fairness = _user_fairness(jobs, best, jct, len(layout.gpus))
    accounts, progress = _mean_by_holder(jobs["account"], best / jct)
    v = value(float(best.mean() / jct.mean()), served / setting.capacity_per_s, use.share)
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
        mean_queue=float(result.totals["wait_seconds"]) / span,
        restarts=float(outcome["restarts"].mean()),
        killed_jobs=float(outcome["killed"].sum()),
        bounded_slowdown=float(np.maximum(1, jct / np.maximum(run, SLOWDOWN_FLOOR_S)).mean()),
        makespan_s=span,
        throughput_jobs_per_h=count / span * 3600,
        offered_load=offered_load(setting, workload),
        gpu_utilisation=use.share,
        idle_gpu_s=idle_s,
        lost_gpu_s=float((result.outcome["lost"] * width(workload.jobs)).sum()),
        fragmentation=float(result.totals["stranded_seconds"]) / up_s,
        gpu_imbalance=_variation(use.by_gpu),
        model_imbalance=_variation(use.by_model),
        energy_kwh=use.energy_kwh,
        energy_per_job_kwh=use.energy_kwh / count,
        energy_delay=use.energy_kwh * float(jct.mean()) / 3600,
        cost=use.cost,
        cost_per_job=use.cost / count,
        jain_users=jain_users,
        jain_accounts=jain(progress, _account_weights(scenario)[accounts]),
        finish_time_fairness=fairness,
        reward=-(float(jct.mean()) + scenario.idle_weight * idle_s / count),
        hyperscore=hyperscore(v),
    )
