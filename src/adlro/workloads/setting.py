"""A scenario prepared for simulation: all that is the same for every seed."""

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
from adlro.model.state import Floats, Mask, Records
from adlro.workloads import capacity, events, history_estimates, history_file, replay, traits
from adlro.workloads import quotas as rules


class Setting(NamedTuple):
    """A scenario made ready: the empty cluster and all that is the same for every seed."""

    scenario: Scenario
    layout: Layout
    pools: Records  # [P] of the empty cluster
    speeds: Floats  # [T, M]
    lists: Mask  # [T, P] what each type's lists of models and partitions allow
    capacity_per_s: float  # jobs a second at load 1
    type_shares: Floats  # [T, P] how the capacity LP spreads each type over the pools
    lp_prices: Floats  # [P] what the capacity LP would give for a GPU of each pool, the dearest = 1
    affinity: tuple[int, ...]  # [T] model of each type, for static-affinity
    tables: dict[str, tuple[Floats, Floats]]  # demand -> values and cumulated odds, [T, K] each
    colocation: Floats  # [T, T]
    demands: Records  # [K] DEMAND: what most jobs ask for; [0] = too many pools for it
    placement: Records  # [K] DEMAND by which the world places; [0] = by best fit
    readings: Records  # [T + 1, M] READING, or [0, 0]
    prices: Floats  # [M] of an hour of one GPU; without a price list: its worth
    quotas: rules.Quotas
    played: replay.Replay | None = None  # the jobs of a history: the truth, not for policies
    mix: traits.Mix | None = None  # what they ask for
    filled: tuple[str, ...] = ()  # what the history does not say, and what was put there

    @property
    def rate(self) -> float:
        """Arrivals a second at the scenario's load."""
        return self.scenario.load * self.capacity_per_s

    @property
    def name(self) -> str:
        """The scenario's. This and all that follows: see model/context.py."""
        return self.scenario.name

    @property
    def rows(self) -> int:
        """One for each job."""
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
        """How many types of jobs there are."""
        return len(self.scenario.types)

    @property
    def rules(self) -> Rulebook:
        """Quotas, ageing, and the lists of models and partitions of each type."""
        hours = self.scenario.ageing_h
        return Rulebook(
            functools.partial(_allowed, self.lists, self.layout),
            self.quotas.holders,
            self.quotas.quotas,
            self.quotas.caps,
            np.full(int(hours > 0), hours * 3600.0),
        )


def _allowed(lists: Mask, layout: Layout, jobs: Records) -> Mask:
    """Where jobs [J] may run at all, [J, P], by the lists [T, P] of their types."""
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
    """Model index of each type: as the scenario says, else where the type is fastest.

    Models whose nodes all leave are out of the question.
    """
    stay = set(layout.pools["model"][layout.lasting > 0].tolist())
    names = [model.name if m in stay else "" for m, model in enumerate(layout.models)]
    speeds = np.where([m in stay for m in range(len(names))], speeds, 0.0)
    chosen = []
    for t, job_type in enumerate(scenario.types):
        wish = scenario.affinity.get(job_type.name)
        name = gpu.find(wish).name if wish else ""
        is_there = name != "" and name in names
        chosen.append(names.index(name) if is_there else int(np.argmax(speeds[t])))
    return tuple(chosen)


def _type_shares(scenario: Scenario, layout: Layout, grouped: capacity.Classes) -> Floats:
    """The capacity LP over whole types, as if any of their jobs could run on any permitted pool.

    Pools whose nodes all leave get nothing.
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
    """All of a scenario that does not depend on the seed; kept, as the LP costs milliseconds.

    Raises:
        ConfigError: a job that can be drawn fits nowhere, or a speed is missing.
        TraceError: the history cannot be read.
    """
    if scenario.history is None:
        ready = _ready(scenario.model_dump_json(), ())
    else:  # a file's jobs are made ready once for all loads
        base = scenario.model_copy(update={"load": 1.0})
        ready = _ready(base.model_dump_json(), history_file.edition(scenario.history))
        ready = ready._replace(scenario=scenario)
    events.refuse_too_many(scenario, ready.layout, scenario.load * ready.capacity_per_s)
    return ready
