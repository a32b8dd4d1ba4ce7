"""The generator: a scenario and a seed make a workload, the same bytes each time.

Every purpose (arrivals, demands, speed noise, estimates, happenings) has its own random stream, so
that a change of one leaves the others alone, and a higher load meets the same jobs, only sooner.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.estimates.memory_kernel import Estimator
from adlro.model import gpu
from adlro.model.cluster import MB_PER_GB, Layout, lay_out
from adlro.model.context import Rulebook
from adlro.model.job import Choice, Constant, Exponential, Lognormal, LogUniform, Size
from adlro.model.state import JOB, WHOLE, Floats, Mask, Records
from adlro.workloads import arrivals, capacity, events, remembered, replay, traits
from adlro.workloads import quotas as rules
from adlro.workloads.remembered import Ran
from adlro.workloads.workload import Workload

_ARRIVALS, _DEMANDS, _NOISE, _ESTIMATES, _HAPPENINGS, _RAN_ON, _PAST = range(7)
_REQUEST_STEP = 300.0  # users ask for whole multiples of five minutes
_MODEL_SPREAD = 0.3  # of an estimate's error that differs from model to model


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
        if scenario.estimates.source == "memory":
            est = remembered.of_history(scenario, scenario.history, layout, played)
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
        ready = _ready(base.model_dump_json(), replay.edition(scenario.history))
        ready = ready._replace(scenario=scenario)
    events.refuse_too_many(scenario, ready.layout, scenario.load * ready.capacity_per_s)
    return ready


def _from_law(size: Size, u: Floats) -> Floats:
    """Seconds at speed 1 from uniform numbers, by the inverse of the law's distribution."""
    if isinstance(size, Constant):
        return np.full(len(u), size.seconds)
    if isinstance(size, Exponential):
        return -size.mean_s * np.log1p(-u)
    if isinstance(size, LogUniform):
        return np.exp(np.interp(u, np.cumsum((0.0, *size.p)), np.log(size.borders_s)))
    if isinstance(size, Lognormal):
        drawn = size.median_s * np.exp(size.sigma * ndtri(u))
        return np.minimum(drawn, size.cap * size.median_s)
    return np.minimum(size.minimum_s * (1 - u) ** (-1 / size.alpha), size.cap * size.minimum_s)


def _pick(table: tuple[Floats, Floats], types: NDArray[np.int64], u: Floats) -> Floats:
    values, odds = table
    if values.shape[1] == 1:
        constant: Floats = values[types, 0]
        return constant
    column = (u[:, None] >= odds[types]).sum(axis=1)
    picked: Floats = values[types, column]
    return picked


def _rng(seed: int | None, purpose: int) -> np.random.Generator:
    """The stream of one purpose; None = that of the past, which no seed shares."""
    if seed is None:
        return np.random.default_rng(np.random.SeedSequence(purpose, spawn_key=(_PAST,)))
    return np.random.default_rng((seed, purpose))


def _ran(setting: Setting, coming: replay.Replay, seconds: Floats, seed: int | None) -> Ran:
    """What `memory` learns: each job ran at once, up to its limit, on a GPU model drawn for it."""
    jobs, layout = coming.jobs, setting.layout
    allowed = capacity.may_run(jobs, coming.allowed, layout)
    u = _rng(seed, _RAN_ON).random(len(jobs))
    shares = setting.type_shares[jobs["type"]]
    model = remembered.ran_on(shares, allowed, layout.pools["model"], u)
    return Ran(jobs, model, np.minimum(seconds[np.arange(len(jobs)), model], jobs["limit"]))


@functools.lru_cache(maxsize=8)
def _past(text: str) -> Estimator:
    """The memory of a scenario without a history when the first job of any seed comes."""
    setting = prepare(Scenario.model_validate_json(text))
    longer = setting.scenario.model_copy(update={"jobs": remembered.PAST_JOBS})
    coming = _drawn(setting._replace(scenario=longer), None)
    seconds = _seconds(setting, coming, None)
    return remembered.past(_ran(setting, coming, seconds, None), setting.speeds)


def _foreseen(setting: Setting, coming: replay.Replay, seconds: Floats, seed: int) -> Floats:
    """What the estimator `memory` says."""
    if setting.played is not None:
        return coming.est
    before = _past(setting.scenario.model_dump_json())
    return remembered.of_jobs(before, _ran(setting, coming, seconds, seed), setting.speeds)


def _seconds(setting: Setting, coming: replay.Replay, seed: int | None) -> Floats:
    """The true run times [J, M]."""
    jobs, noise = coming.jobs, setting.scenario.noise
    drawn = _rng(seed, _NOISE).standard_normal((len(jobs), len(setting.layout.models)))
    seconds: Floats = coming.sizes[:, None] / (setting.speeds[jobs["type"]] * np.exp(noise * drawn))
    return seconds


def _estimates(setting: Setting, coming: replay.Replay, seconds: Floats, seed: int) -> Floats:
    jobs, wanted = coming.jobs, setting.scenario.estimates
    est = seconds
    if wanted.source == "request":
        est = jobs["requested"][:, None] / setting.speeds[jobs["type"]]
    elif wanted.source == "memory":
        est = _foreseen(setting, coming, seconds, seed)
    elif wanted.source == "noisy":
        rng = _rng(seed, _ESTIMATES)
        common = rng.standard_normal(len(jobs))[:, None]
        apart = rng.standard_normal(seconds.shape)
        est = seconds * np.exp(wanted.sigma * (common + _MODEL_SPREAD * apart))
    capped: Floats = np.minimum(est, jobs["limit"][:, None])
    return capped


def _by_type(values: list[float], types: NDArray[np.int64]) -> Floats:
    return np.array(values)[types]


def _types(scenario: Scenario, u: Floats, forced: NDArray[np.int64]) -> NDArray[np.int64]:
    share = np.cumsum([job_type.share for job_type in scenario.types])
    drawn = np.searchsorted(share / share[-1], u, side="right")
    return np.where(forced >= 0, forced, np.minimum(drawn, len(share) - 1))


def _users(scenario: Scenario, u: Floats) -> NDArray[np.int64]:
    share = np.cumsum(np.arange(1.0, scenario.users + 1) ** -scenario.user_skew)
    drawn = np.searchsorted(share / share[-1], u, side="right")
    return np.minimum(drawn, scenario.users - 1)


def _sizes(scenario: Scenario, types: NDArray[np.int64], u: Floats) -> Floats:
    """Seconds [J] that each job needs at speed 1."""
    sizes = np.empty(len(u))
    for t, job_type in enumerate(scenario.types):
        sizes[types == t] = _from_law(job_type.size, u[types == t])
    return sizes


def _of_types(scenario: Scenario, jobs: Records) -> None:
    """Fill in what all jobs of a type have in common."""
    types, kinds = jobs["type"], scenario.types
    jobs["communication"] = _by_type([t.communication for t in kinds], types)
    cost = [-1.0 if t.checkpoint_s is None else t.checkpoint_s for t in kinds]
    every = [math.inf if t.checkpoint_every_s is None else t.checkpoint_every_s for t in kinds]
    jobs["checkpoint"], jobs["interval"] = _by_type(cost, types), _by_type(every, types)
    jobs["least_run"] = scenario.least_run_s


def _jobs(setting: Setting, types: NDArray[np.int64], sizes: Floats, u: Floats) -> Records:
    """JOB records [J] but for their arrivals; u [11, J] uniform numbers."""
    scenario, tables = setting.scenario, setting.tables
    low = _by_type([t.priority.low for t in scenario.types], types)
    high = _by_type([t.priority.high for t in scenario.types], types)
    jobs = np.zeros(scenario.jobs, JOB)
    jobs["type"] = types
    jobs["gpus"] = _pick(tables["gpus"], types, u[2])
    jobs["cores"] = _pick(tables["cores"], types, u[3])
    jobs["memory"] = np.rint(_pick(tables["memory_gb"], types, u[4]) * MB_PER_GB)
    jobs["gpu_memory"] = np.rint(_pick(tables["gpu_memory_gb"], types, u[5]) * MB_PER_GB)
    jobs["share"] = np.rint(_pick(tables["gpu_share"], types, u[10]) * WHOLE)
    jobs["priority"] = low + (high - low) * u[6]
    jobs["requested"] = np.ceil(sizes * (1 + 4 * u[7]) / _REQUEST_STEP) * _REQUEST_STEP
    jobs["limit"] = jobs["requested"] if scenario.limit == "kill" else math.inf
    jobs["user"] = _users(scenario, u[8])
    jobs["account"] = np.floor(u[9] * len(scenario.accounts))
    _of_types(scenario, jobs)
    return jobs


def _drawn(setting: Setting, seed: int | None) -> replay.Replay:
    """The jobs of a scenario without a history."""
    scenario = setting.scenario
    u = _rng(seed, _DEMANDS).random((11, scenario.jobs))
    times, forced = arrivals.draw(scenario, setting.rate, _rng(seed, _ARRIVALS))
    types = _types(scenario, u[0], forced)
    sizes = _sizes(scenario, types, u[1])
    jobs = _jobs(setting, types, sizes, u)
    jobs["arrival"] = times
    nothing = replay.nothing_foreseen(setting.layout)
    return replay.Replay(jobs, sizes, setting.lists[types], (), np.empty(0, np.int64), nothing)


def with_estimates(setting: Setting, reference_s: Floats) -> Setting:
    """A setting with estimates of another origin in the place of those of `memory`.

    Args:
        setting: of a scenario with a history and estimates = "memory".
        reference_s: [J] seconds on the reference GPU, one for every job of the file.

    Raises:
        ConfigError: the scenario is another one.
    """
    if setting.played is None or setting.scenario.estimates.source != "memory":
        raise ConfigError(
            f"scenario {setting.scenario.name}: estimates can be handed in only for a history "
            "with estimates = 'memory'"
        )
    jobs, rows = setting.played.jobs, setting.played.rows
    est = reference_s[rows][:, None] / setting.speeds[jobs["type"]]
    return setting._replace(played=setting.played._replace(est=est))


def generate(setting: Setting, seed: int) -> Workload:
    """Draw the scenario's jobs, and what happens to its cluster, for one seed.

    With a history the jobs are its own, and a seed stands for the part of it that is played.
    """
    scenario, layout, recorded = setting.scenario, setting.layout, setting.played
    if recorded is None:
        coming = _drawn(setting, seed)
    else:
        stretch = recorded.rate / setting.rate
        coming = replay.part(recorded, scenario.jobs, stretch, seed)
    jobs, seconds = coming.jobs, _seconds(setting, coming, seed)
    jobs["id"] = np.arange(len(jobs))
    rules = setting.rules
    return Workload(
        jobs,
        _estimates(setting, coming, seconds, seed),
        capacity.may_run(jobs, coming.allowed, layout),
        seconds,
        events.draw(scenario, layout, jobs["arrival"], (seed, _HAPPENINGS)),
        setting.colocation,
        setting.placement,
        setting.readings,
        rules.holders(jobs),
        rules.quotas,
        rules.caps,
        rules.ageing,
    )
