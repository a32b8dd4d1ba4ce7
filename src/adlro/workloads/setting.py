"""A scenario prepared for simulation: everything that is the same for every seed."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from adlro.config.scenario import Scenario
from adlro.estimates.registry import ESTIMATORS
from adlro.model import gpu
from adlro.model.cluster import Layout, lay_out
from adlro.model.context import Rulebook
from adlro.model.job import Choice
from adlro.model.slurm import Slurm
from adlro.model.state import Floats, Mask, Records
from adlro.workloads import capacity, events, history_estimates, history_file, replay, traits
from adlro.workloads import quotas as rules


class Setting(NamedTuple):
    """A prepared scenario: the empty cluster and everything else that is the same for every seed.

    Dimensions: T job types, M GPU models, P pools, K kinds of demand or values of a choice. It
    provides the context from which policies are initialised (model/context.py).
    """

    scenario: Scenario
    layout: Layout
    pools: Records  # [P] of the empty cluster
    speeds: Floats  # [T, M] speed of each job type on each GPU model, V100 = 1
    lists: Mask  # [T, P] pools that each type's lists of models and partitions allow
    capacity_per_s: float  # jobs a second at load 1
    type_shares: Floats  # [T, P] how the capacity LP spreads each type over the pools
    lp_prices: Floats  # [P] dual prices of the capacity LP for a GPU of each pool, the highest = 1
    affinity: tuple[int, ...]  # [T] model of each type, for static-affinity
    tables: dict[str, tuple[Floats, Floats]]  # demand -> values and cumulated odds, [T, K] each
    colocation: Floats  # [T, T] slowdown of a type by another on the same GPU; 1 = none
    demands: Records  # [K] DEMAND: the most frequent demands; [0] = the cluster has too many pools
    placement: Records  # [K] DEMAND for placement by fragmentation; [0] = best fit
    readings: Records  # [T + 1, M] READING, or [0, 0]
    prices: Floats  # [M] for an hour of one GPU; without a price list its worth
    quotas: rules.Quotas
    played: replay.Replay | None = None  # jobs of a history: hidden from policies
    mix: traits.Mix | None = None  # share of the played jobs with each demand
    filled: tuple[str, ...] = ()  # assumptions about what the history leaves out

    @property
    def rate(self) -> float:
        """Arrivals a second at the scenario's load."""
        return self.scenario.load * self.capacity_per_s

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.scenario.name

    @property
    def rows(self) -> int:
        """Number of rows of the job table: one for each job."""
        return self.scenario.jobs

    @property
    def models(self) -> tuple[gpu.GpuModel, ...]:
        """GPU models, in the order of the columns of `est`."""
        return self.layout.models

    @property
    def nodes(self) -> Records:
        """Nodes [N] of the empty cluster."""
        return self.layout.nodes

    @property
    def gpus(self) -> Records:
        """GPUs [G] of the empty cluster."""
        return self.layout.gpus

    @property
    def types(self) -> int:
        """Number of job types."""
        return len(self.scenario.types)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Names of all partitions, in the order of their bits."""
        return self.layout.partitions

    @property
    def slurm(self) -> Slurm:
        """Settings of Slurm for the policy slurm."""
        return self.scenario.slurm

    @property
    def rules(self) -> Rulebook:
        """Rules on which jobs may run where: lists of GPU models and partitions, quotas, ageing."""
        hours = self.scenario.ageing_h
        return Rulebook(
            functools.partial(_allowed, self.lists, self.layout),
            self.quotas.holders,
            self.quotas.quotas,
            self.quotas.caps,
            np.full(int(hours > 0), hours * 3600.0),
        )


def _allowed(lists: Mask, layout: Layout, jobs: Records) -> Mask:
    """Return a mask [J, P] of the pools where each job may run.

    lists [T, P]: pools that each type's lists of GPU models and partitions permit.
    """
    return capacity.may_run(jobs, lists[jobs["type"]], layout)


def _table(choices: list[Choice]) -> tuple[Floats, Floats]:
    width = max(len(choice.values) for choice in choices)
    values, odds = np.zeros((len(choices), width)), np.ones((len(choices), width))
    for row, choice in enumerate(choices):
        values[row, : len(choice.values)] = choice.values
        odds[row, : len(choice.p)] = np.cumsum(choice.p)
        odds[row, len(choice.p) - 1 :] = np.inf
    return values, odds


def _affinity(scenario: Scenario, layout: Layout, speeds: Floats) -> tuple[int, ...]:
    """Return the GPU model (its index) of each type for the policy static-affinity.

    It is the model that the scenario gives, else the one on which the type runs fastest. Models
    whose nodes all leave are not used.
    """
    stay = set(layout.pools["model"][layout.lasting > 0].tolist())
    names = [model.name if m in stay else "" for m, model in enumerate(layout.models)]
    speeds = np.where([m in stay for m in range(len(names))], speeds, 0.0)
    chosen = []
    for t, job_type in enumerate(scenario.types):
        wanted = scenario.affinity.get(job_type.name)
        name = gpu.find(wanted, layout.models).name if wanted else ""
        is_there = name != "" and name in names
        chosen.append(names.index(name) if is_there else int(np.argmax(speeds[t])))
    return tuple(chosen)


def _type_shares(scenario: Scenario, layout: Layout, grouped: capacity.Classes) -> Floats:
    """Return the shares [T, P] in which the capacity LP spreads each job type over the pools.

    Here a whole type is one class of the LP, which may use all pools that the type's lists permit.
    Pools whose nodes all leave get no share.
    """
    lists = capacity.permitted(scenario, layout) & (layout.lasting > 0)
    count = len(scenario.types)
    weight: Floats = np.bincount(grouped.type, grouped.weight, count).astype(np.float64)
    work = np.empty((count, len(layout.pools)))
    for p in range(len(layout.pools)):
        work[:, p] = np.bincount(grouped.type, grouped.weight * grouped.gpu_seconds[:, p], count)
    gpus = capacity.gpus_up(scenario, layout)
    each = work / np.where(weight > 0, weight, 1.0)[:, None]  # a history may lack a type
    return capacity.solve(weight, each, lists, gpus).shares


@functools.lru_cache(maxsize=32)
def _ready(text: str, _: tuple[int, ...]) -> Setting:
    scenario = Scenario.model_validate_json(text)
    layout = lay_out(scenario.cluster)
    speeds, lists = capacity.type_speeds(scenario, layout), capacity.permitted(scenario, layout)
    played = mix = None
    if scenario.history is None:
        grouped = capacity.classes(scenario, layout)
    else:
        played = replay.play(scenario, scenario.history, layout, lists)
        if ESTIMATORS[scenario.estimates.source].needs_past:
            est = history_estimates.of_history(scenario, scenario.history, layout, played)
            played = played._replace(est=est)
        grouped, mix = replay.classes(played, layout, speeds), replay.demand_weights(played, layout)
    gpus = capacity.gpus_up(scenario, layout)
    full = capacity.solve(grouped.weight, grouped.gpu_seconds, grouped.allowed, gpus)
    layout.pools["worth"] = rules.worth(scenario, layout, speeds)[layout.pools["model"]]
    rules.refuse_homeless(scenario, layout, lists)
    tables = {
        key: _table([getattr(job_type, key) for job_type in scenario.types])
        for key in ("gpus", "cores", "memory_gb", "gpu_memory_gb", "gpu_share")
    }
    return Setting(
        scenario,
        layout,
        layout.pools,
        speeds,
        lists,
        full.jobs_per_s,
        _type_shares(scenario, layout, grouped),
        full.prices,
        _affinity(scenario, layout, speeds),
        tables,
        traits.colocation(scenario),
        traits.typical_demands(scenario, layout, mix),
        traits.placement(scenario, layout, mix),
        traits.readings(scenario, speeds, layout),
        rules.prices(scenario, layout, speeds),
        rules.quotas(scenario, layout),
        played,
        mix,
        () if played is None else played.filled,
    )


def prepare(scenario: Scenario) -> Setting:
    """Compute everything of a scenario that does not depend on the seed, or return it from a cache.

    Raises:
        ConfigError: a job that can be drawn fits nowhere, a speed is missing, or there would be too
            many failures.
        TraceError: the history cannot be read.
    """
    if scenario.history is None:
        ready = _ready(scenario.model_dump_json(), ())
    else:  # the jobs of a file are prepared once for all loads
        base = scenario.model_copy(update={"load": 1.0})
        ready = _ready(base.model_dump_json(), history_file.edition(scenario.history))
        ready = ready._replace(scenario=scenario)
    events.refuse_too_many(scenario, ready.layout, scenario.load * ready.capacity_per_s)
    return ready
