"""Scenarios: cluster, jobs, load and measured window of a simulation, from one TOML file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from adlro.config.events import Change, Drain, Failures, Update
from adlro.config.history import Recorded
from adlro.config.quotas import Quota, refuse_prices, refuse_quotas, refuse_twins
from adlro.errors import suggestion
from adlro.model.cluster import Cluster, GpuName, Name, known_gpu
from adlro.model.gpu import GpuModel
from adlro.model.job import MAX_COUNT, Colocation, JobType, Seconds, Share, Spread
from adlro.model.record import Record
from adlro.model.slurm import Slurm

Skew = Annotated[float, Field(ge=0, le=10)]


class Poisson(Record):
    """Poisson arrivals at a constant rate."""

    process: Literal["poisson"] = "poisson"


class Bursty(Record):
    """Markov-modulated Poisson arrivals with bursts at `peak` times the mean rate."""

    process: Literal["bursty"]
    peak: Annotated[float, Field(gt=1)] = 3.0
    share: Annotated[float, Field(gt=0, lt=1)] = 0.2  # of the time that bursts take up
    length_s: Seconds = 3600.0  # mean length of a burst

    @model_validator(mode="after")
    def _quiet_rate(self) -> Bursty:
        if self.peak * self.share > 1:
            raise ValueError(f"peak {self.peak:g} x share {self.share:g} is more than all arrivals")
        return self


class Diurnal(Record):
    """Poisson arrivals in a daily wave: rate = mean * (1 + amplitude * sin(2 pi t / period))."""

    process: Literal["diurnal"]
    amplitude: Annotated[float, Field(gt=0, le=1)] = 0.6
    period_s: Annotated[float, Field(ge=60, le=1e9)] = 86_400.0


class Surge(Record):
    """Poisson arrivals with one sudden wave of jobs of one type."""

    process: Literal["surge"]
    type: Name
    share: Annotated[float, Field(gt=0, lt=1)] = 0.25  # of all jobs: those in the wave
    at: Annotated[float, Field(ge=0, le=1)] = 0.4  # start of the wave, as a share of the run
    length_s: Seconds = 1800.0


Arrivals = Annotated[Poisson | Bursty | Diurnal | Surge, Field(discriminator="process")]
MOST_LOAD = 100.0
Load = Annotated[float, Field(gt=0, le=MOST_LOAD)]
Price = Annotated[float, Field(gt=0, le=1e9)]
Delay = Annotated[float, Field(ge=0, le=3600)]  # seconds


class Measure(Record):
    """Which jobs, in order of arrival, are measured: those after a warm-up, or a middle part."""

    middle: Share = 1.0
    warm_up: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @model_validator(mode="after")
    def _one_of_both(self) -> Measure:
        if self.warm_up and self.middle < 1:
            raise ValueError("say the middle or a warm-up, not both")
        return self

    def __str__(self) -> str:
        """Return the setting as it is written in a scenario file."""
        if self.warm_up:
            return f"after {self.warm_up * 100:g} %"
        return "all jobs" if self.middle == 1 else f"middle {self.middle * 100:g} %"

    def window(self, jobs: int) -> slice:
        """Return the ids of the measured jobs, out of `jobs` in all."""
        if self.warm_up:
            return slice(min(round(jobs * self.warm_up), jobs - 1), jobs)
        skipped = min(round(jobs * (1 - self.middle) / 2), (jobs - 1) // 2)
        return slice(skipped, jobs - skipped)


def _as_measure(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value in ("all", "all jobs"):
        return {}
    found = re.fullmatch(r"(middle|after)\s+(\d+(?:\.\d+)?)\s*%", value.strip())
    if not found:
        raise ValueError(f"say 'all', 'middle 70 %' or 'after 10 %', not {value!r}")
    return {"middle" if found[1] == "middle" else "warm_up": float(found[2]) / 100}


EstimateSource = Literal[
    "oracle", "noisy", "request", "last-two", "last-two-alike", "user-mean", "memory"
]
_LEARNING = ("last-two", "last-two-alike", "user-mean", "memory")  # their errors are known


class Estimates(Record):
    """The estimator of run times (adlro.estimates.registry), the same for every policy compared."""

    source: EstimateSource = "oracle"
    sigma: Spread = 0.0
    quantile: Annotated[float, Field(ge=0.02, le=0.98)] | None = None  # None = the estimate itself

    @model_validator(mode="after")
    def _learns(self) -> Estimates:
        if self.quantile is not None and self.source not in _LEARNING:
            raise ValueError(f"a quantile can be given for {', '.join(_LEARNING)} only")
        return self

    def __str__(self) -> str:
        """Return the setting as it is written on the command line."""
        if self.quantile is not None:
            return f"{self.source}:{self.quantile:g}"
        return f"noisy:{self.sigma:g}" if self.source == "noisy" else self.source


def _as_estimates(value: object) -> object:
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"noisy:(\d+(?:\.\d+)?)", value.strip())
    if found:
        return {"source": "noisy", "sigma": float(found[1])}
    source, _, quantile = value.partition(":")
    if source in _LEARNING and re.fullmatch(r"0?\.\d+", quantile):
        return {"source": source, "quantile": float(quantile)}
    if value == "noisy" or value not in get_args(EstimateSource):
        raise ValueError(
            "say oracle, noisy:S (S = spread, e.g. noisy:0.5), request, last-two, last-two-alike, "
            "user-mean or memory, the last four also with a quantile of the run time (0.02 to "
            f"0.98, e.g. memory:0.7), not {value!r}"
        )
    return {"source": value}


def _as_failures(value: object) -> object:
    """Return None for false, which switches off the failures of a base (TOML has no null)."""
    return None if value is False else value


class Scenario(Record):
    """All settings of a scenario: the keys of a scenario file."""

    name: Name
    about: str = ""
    cluster: Cluster
    types: Annotated[tuple[JobType, ...], Field(min_length=1)]
    jobs: Annotated[int, Field(ge=1, le=100_000_000)] = 400
    load: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.8  # of the fluid-LP capacity
    arrivals: Arrivals = Poisson()
    noise: Spread = 0.0  # spread of the lognormal speed noise of each (job, model)
    estimates: Annotated[Estimates, BeforeValidator(_as_estimates)] = Estimates()
    measure: Annotated[Measure, BeforeValidator(_as_measure)] = Measure()
    limit: Literal["none", "kill"] = "none"  # kill = a job ends at its requested time
    idle_weight: Annotated[float, Field(gt=0, lt=1)] = 0.5  # lambda of the paper's reward
    affinity: dict[str, GpuName] = Field(default_factory=dict)  # job type -> model, static-affinity
    users: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 10
    user_skew: Skew = 1.0  # user k submits in proportion to 1 / k^skew
    accounts: Annotated[tuple[Name, ...], Field(min_length=1)] = ("default",)
    least_run_s: Annotated[float, Field(ge=0, le=1e9)] = 0.0  # a run cannot be preempted earlier
    start_delay_s: Delay = 0.0  # from the allocation of GPUs until a job begins to work
    tick_s: Delay = 0.0  # time between scheduling cycles; 0 = a decision follows each event at once
    placement: Literal["best-fit", "fgd", "in-order"] = "best-fit"  # in-order: as Slurm does
    telemetry: bool = False  # whether GPUs give readings (utilisation, power and so on)
    failures: Annotated[Failures | None, BeforeValidator(_as_failures)] = None
    changes: tuple[Change, ...] = ()
    colocation: tuple[Colocation, ...] = ()
    quotas: tuple[Quota, ...] = ()
    ageing_h: Annotated[float, Field(ge=0, le=1e6)] = 0.0  # hours of waiting; 0 = no ageing
    prices: dict[GpuName, Price] = Field(default_factory=dict)  # money for an hour of one GPU
    slurm: Slurm = Slurm()  # settings of the policy slurm
    history: Recorded | None = None  # replays recorded jobs; None = jobs are drawn

    @model_validator(mode="after")
    def _gpus_known(self) -> Scenario:
        for key, name in self._gpu_names():
            known_gpu(key, name, self.cluster.gpu)
        return self

    def _gpu_names(self) -> Iterator[tuple[str, str]]:
        """Yield every name of a GPU model outside the cluster, with the key where it stands."""
        for i, job_type in enumerate(self.types):
            yield from ((f"types.{i}.speed.{name}", name) for name in job_type.speed)
            yield from ((f"types.{i}.models.{m}", name) for m, name in enumerate(job_type.models))
        yield from ((f"affinity.{key}", name) for key, name in self.affinity.items())
        for i, change in enumerate(self.changes):
            if isinstance(change, Update):
                yield f"changes.{i}.model", change.model
        for i, quota in enumerate(self.quotas):
            yield from ((f"quotas.{i}.caps.{name}", name) for name in quota.caps)
        yield from ((f"prices.{name}", name) for name in self.prices)
        named = {} if self.history is None else self.history.gpu_names
        yield from ((f"history.gpu_names.{key}", name) for key, name in named.items())

    @model_validator(mode="after")
    def _types_agree(self) -> Scenario:
        types = [job_type.name for job_type in self.types]
        if len(set(types)) < len(types):
            raise ValueError(f"types: two job types have the same name: {types}")
        surge = [self.arrivals.type] if isinstance(self.arrivals, Surge) else []
        for key, names in (("affinity", list(self.affinity)), ("arrivals.type", surge)):
            for name in names:
                _refuse_unknown(key, "job type", name, types)
        for i, change in enumerate(self.changes):
            if isinstance(change, Update):
                _refuse_unknown(f"changes.{i}.type", "job type", change.type, types)
        pairs: set[frozenset[str]] = set()
        for i, entry in enumerate(self.colocation):
            for name in entry.types:
                _refuse_unknown(f"colocation.{i}.types", "job type", name, types)
            if frozenset(entry.types) in pairs:
                raise ValueError(f"colocation.{i}: {' and '.join(entry.types)} are there twice")
            pairs.add(frozenset(entry.types))
        return self

    @model_validator(mode="after")
    def _history_agrees(self) -> Scenario:
        if self.history is None:
            if self.load > MOST_LOAD:  # the recorded load of a history may be any
                limit = f"input should be less than or equal to {MOST_LOAD:g}"
                raise ValueError(f"load: {limit}, not {self.load:g}")
            return self
        types = [job_type.name for job_type in self.types]
        for i, rule in enumerate(self.history.rules):
            _refuse_unknown(f"history.rules.{i}.type", "job type", rule.type, types)
        if not isinstance(self.arrivals, Poisson):
            raise ValueError("arrivals: the jobs of a history come when they came; remove this")
        if any(quota.caps for quota in self.quotas):
            raise ValueError("quotas: caps cannot be checked against a history; remove them")
        return self

    @model_validator(mode="after")
    def _nodes_agree(self) -> Scenario:
        if self.failures is not None:
            _refuse_failures(self.failures, self.cluster)
        for i, change in enumerate(self.changes):
            _refuse_change(f"changes.{i}", change, self.cluster)
        partitions = partitions_of(self.cluster)
        for key in ("partition_factors", "partition_tiers"):
            for name in getattr(self.slurm, key):
                _refuse_unknown(f"slurm.{key}", "partition", name, partitions)
        return self

    @model_validator(mode="after")
    def _rules_agree(self) -> Scenario:
        models = _models(self.cluster)
        for name in self.accounts:
            if self.accounts.count(name) > 1:
                raise ValueError(f"accounts: {name!r} is there twice; remove one")
        for i, quota in enumerate(self.quotas):
            if quota.account is not None:
                _refuse_unknown(f"quotas.{i}.account", "account", quota.account, self.accounts)
            refuse_twins(f"quotas.{i}: caps", quota.caps, models)
            for name in quota.caps:
                _refuse_absent(f"quotas.{i}.caps", name, self.cluster)
        refuse_quotas(self.quotas, self.users)
        refuse_prices(self.prices, models)
        return self


def partitions_of(cluster: Cluster) -> list[str]:
    """Return the names of a cluster's partitions, in file order."""
    return list(dict.fromkeys(name for group in cluster.nodes for name in group.partitions))


def _refuse_unknown(key: str, noun: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise ValueError(f"{key}: unknown {noun} {name!r}; {suggestion(name, known)}")


def _models(cluster: Cluster) -> tuple[GpuModel, ...]:
    """Return the GPU models of the cluster's nodes, in file order."""
    return tuple(dict.fromkeys(cluster.model_of(group.gpu) for group in cluster.nodes))


def _refuse_absent(key: str, name: str, cluster: Cluster) -> None:
    """Raise ValueError if no node has the GPU model of a name."""
    here = [model.name for model in _models(cluster)]
    _refuse_unknown(key, "model here", cluster.model_of(name).name, here)


def _refuse_failures(failures: Failures, cluster: Cluster) -> None:
    """Raise ValueError for unknown groups of nodes, or if too few nodes would be up on average."""
    names = [group.name for group in cluster.nodes]
    for name in failures.nodes:
        _refuse_unknown("failures.nodes", "group of nodes", name, names)
    total = sum(group.count for group in cluster.nodes)
    failing = sum(group.count for group in cluster.nodes if failures.touches(group.name))
    up = total - failing * (1 - failures.availability)
    if up < min(1, total / 2):  # a cluster of one node may be down at times, but not mostly
        raise ValueError(
            f"failures: mtbf_h = {failures.mtbf_h:g} and repair_h = {failures.repair_h:g} leave "
            f"{up:.2g} of {total:,} nodes up on average; raise mtbf_h or lower repair_h"
        )


def _refuse_change(key: str, change: Change, cluster: Cluster) -> None:
    """Raise ValueError if a change names nodes, GPUs or a model that the cluster does not have."""
    groups = cluster.nodes
    if isinstance(change, Update):
        _refuse_absent(f"{key}.model", change.model, cluster)
        return
    nodes = [(name, group) for group in groups for name in group.node_names]
    meant = [g for name, g in nodes if change.node in (None, name, g.name)]
    if not meant:
        known = [group.name for group in groups] + [name for name, _ in nodes]
        _refuse_unknown(f"{key}.node", "node", str(change.node), list(dict.fromkeys(known)))
    if isinstance(change, Drain):
        return
    most = max(group.gpus for group in meant)
    if change.gpu is not None and change.gpu >= most:
        raise ValueError(f"{key}.gpu: no GPU {change.gpu} on a node of {most}; they count from 0")
    gpus = sum(g.gpus if change.gpu is None else int(change.gpu < g.gpus) for g in meant)
    if change.count > gpus:
        raise ValueError(f"{key}.count: {change.count:,} GPUs are more than the {gpus:,} meant")
