"""Which GPUs to buy or to switch off: options ranked by mean JCT on the operator's own jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from adlro.evaluate.batch import Batch, Runs, by_window, name_of
from adlro.evaluate.findings import Finding, idle_gpus, overloaded_partitions
from adlro.evaluate.plan_study import AS_IT_IS, Contender, Study, who_may_use
from adlro.evaluate.purchase import Alternative
from adlro.evaluate.run_store import StoredRun
from adlro.evaluate.significance import kendall_tau
from adlro.evaluate.stats import Estimate, percent_difference
from adlro.evaluate.variants import SPEED_WORDS, Windows
from adlro.evaluate.worth import Measured, Worth, worth
from adlro.model.state import Floats

TODAY = "slurm"  # today's scheduler: options are ranked under it
_DAY_S = 86_400.0
_SHOWN = 0.05  # percent: a smaller change is printed as 0 and has no sign


class _Windowed(NamedTuple):
    """The runs of one policy on one setting."""

    runs: Sequence[StoredRun]
    windows: Windows

    def metric(self, name: str) -> Floats:
        """Return a metric of each window [W]."""
        return by_window(self.runs, self.windows, name)

    @property
    def jct(self) -> Floats:
        """Mean JCT of each window [W]."""
        return self.metric("mean_jct_s")


_By = Mapping[str, _Windowed]  # by speeds


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class SpeedOutcome(_Record):
    """A policy on an option under one assumption on speeds."""

    mean_jct_s: float
    change_pct: Estimate  # of mean JCT, against the cluster as it is
    rank: int  # among the options simulated under this assumption, from 1


class Outcome(_Record):
    """A policy on an option: means over the assumptions on speeds and over windows."""

    mean_jct_s: float
    change_pct: Estimate  # of mean JCT, against the same policy on the cluster as it is
    by_speeds: dict[str, SpeedOutcome]
    p99_jct_s: float
    mean_wait_s: float
    gpu_utilisation: float
    energy_kwh_per_day: float


class Option(_Record):
    """One option; those that strand too many jobs are not simulated."""

    name: str
    gpus: int  # of the whole cluster
    price: float | None
    stranded_jobs: int  # jobs of the history that could run nowhere
    is_simulated: bool
    by_policy: dict[str, Outcome]  # {} if it is not simulated


class Agreement(_Record):
    """Whether other windows of the history would give the same ranking."""

    policy: str
    kendall_tau: float | None  # of the changes on even and on odd windows; None = undefined
    even_windows: list[str]  # names of the options, best first
    odd_windows: list[str]


class Plan(_Record):
    """Options ranked, with all that the ranking depends on."""

    history: str
    jobs: int  # that can run on the cluster as it is
    jobs_compared: int  # that can run on all simulated options
    windows: int
    jobs_per_window: int
    grow: float
    policies: list[str]
    ranked_by: str  # the policy
    speeds: list[str]
    options: list[Option]  # best first; those not simulated last
    worth: list[Worth]
    agreement: Agreement
    disagreements: list[str]  # where the assumptions on speeds differ
    findings: list[Finding]
    assumptions: list[str]
    notes: list[str]  # what is left out

    def ranking(self, policy: str) -> list[Option]:
        """Return the simulated options, best first under a policy; those that strand jobs last."""
        some = [one for one in self.options if one.is_simulated]
        return sorted(some, key=lambda one: _key(one.stranded_jobs, _change_of(one, policy)))


def _change_of(option: Option, policy: str) -> float:
    return option.by_policy[policy].change_pct.mean


def _key(stranded: int, change: float) -> tuple[bool, float]:
    """Return what options are sorted by: jobs that fit nowhere are no gain in completion times."""
    return stranded > 0, round(change, 6)


def _change(own: _By, base: _By) -> Estimate:
    """Return the change of mean JCT in percent, mean over assumptions, paired by window.

    Both are divided by the base's mean under each assumption, so that all count alike.
    """
    scale = {speeds: base[speeds].jct.mean() for speeds in own}
    ours = np.mean([runs.jct / scale[speeds] for speeds, runs in own.items()], axis=0)
    theirs = np.mean([base[speeds].jct / scale[speeds] for speeds in own], axis=0)
    return percent_difference(ours, theirs)


def _mean(own: _By, metric: str) -> float:
    return float(np.mean([runs.metric(metric).mean() for runs in own.values()]))


def _energy_per_day(own: _By) -> float:
    per_s = [
        runs.metric("energy_kwh").sum() / runs.metric("makespan_s").sum() for runs in own.values()
    ]
    return float(np.mean(per_s)) * _DAY_S


def _ranks(values: Sequence[float]) -> list[int]:
    """Return the rank of each value from 1; equal ones share the best."""
    rounded = [round(value, 6) for value in values]
    return [1 + sum(other < value for other in rounded) for value in rounded]


class _Results:
    """The runs of all contenders."""

    def __init__(self, study: Study, runs: Sequence[Mapping[str, Runs]]) -> None:
        self.study, self._runs = study, runs
        self.policies = [name_of(policy) for policy in study.policies]

    def of(self, number: int, policy: str) -> _By:
        """Return the runs of a policy on a contender, by speeds."""
        return {
            speeds: _Windowed(runs[policy], self.study.windows)
            for speeds, runs in self._runs[number].items()
        }

    def changes(self, policy: str, speeds: str) -> dict[int, float]:
        """Return the change in percent of each contender simulated under an assumption."""
        base = self.of(0, policy)[speeds].jct.mean()
        numbers = [i for i, runs in enumerate(self._runs) if speeds in runs]
        return {i: float(100 * (self.of(i, policy)[speeds].jct.mean() / base - 1)) for i in numbers}

    def outcome(self, number: int, policy: str) -> Outcome:
        """Return the figures of a policy on a contender."""
        own, base = self.of(number, policy), self.of(0, policy)
        by_speeds = {}
        for speeds, runs in own.items():
            changes = self.changes(policy, speeds)
            ranks = dict(zip(changes, _ranks(list(changes.values())), strict=True))
            by_speeds[speeds] = SpeedOutcome(
                mean_jct_s=float(runs.jct.mean()),
                change_pct=percent_difference(runs.jct, base[speeds].jct),
                rank=ranks[number],
            )
        return Outcome(
            mean_jct_s=_mean(own, "mean_jct_s"),
            change_pct=_change(own, base),
            by_speeds=by_speeds,
            p99_jct_s=_mean(own, "p99_jct_s"),
            mean_wait_s=_mean(own, "mean_wait_s"),
            gpu_utilisation=_mean(own, "gpu_utilisation"),
            energy_kwh_per_day=_energy_per_day(own),
        )

    def half(self, policy: str, first: int) -> list[float]:
        """Return the relative mean JCT of each contender on every other window from `first` on."""
        base = self.of(0, policy)
        found = []
        for number in range(len(self._runs)):
            own = self.of(number, policy)
            ratios = [
                runs.jct[first::2].mean() / base[s].jct[first::2].mean() for s, runs in own.items()
            ]
            found.append(round(float(np.mean(ratios)), 8))
        return found


def _agreement(results: _Results, policy: str) -> Agreement:
    even, odd = results.half(policy, 0), results.half(policy, 1)
    names = [one.option.name for one in results.study.contenders]

    def order(values: Sequence[float]) -> list[str]:
        return [names[i] for i in sorted(range(len(names)), key=lambda i: values[i])]

    return Agreement(
        policy=policy,
        kendall_tau=kendall_tau(np.array(even), np.array(odd)),
        even_windows=order(even),
        odd_windows=order(odd),
    )


def _disagreements(options: Sequence[Option], policy: str) -> list[str]:
    """Say where the assumptions on speeds disagree on the sign of a change or on a rank."""
    told, ranked = [], []
    for option in options:
        if not option.is_simulated or option.name == AS_IT_IS:
            continue
        found = option.by_policy[policy].by_speeds
        changes = {SPEED_WORDS[s]: one.change_pct.mean for s, one in found.items()}
        better = [word for word, change in changes.items() if change < -_SHOWN]
        worse = [word for word, change in changes.items() if change > _SHOWN]
        if better and worse:
            told.append(
                f"{option.name}: jobs end earlier with {' and '.join(better)}, but later with "
                f"{' and '.join(worse)}"
            )
        ranks = [one.rank for one in found.values()]
        if len(set(ranks)) > 1:
            ranked.append(f"{option.name} {'/'.join(map(str, ranks))}")
    if ranked:
        words = " / ".join(SPEED_WORDS[s] for s in options[0].by_policy[policy].by_speeds)
        told.append(f"The rank depends on the speeds assumed ({words}): {', '.join(ranked)}")
    return told


def _option(contender: Contender, by_policy: dict[str, Outcome], has_prices: bool) -> Option:
    option = contender.option
    price = option.price if option.name != AS_IT_IS else 0.0 if has_prices else None
    return Option(
        name=option.name,
        gpus=option.gpus,
        price=price,
        stranded_jobs=contender.stranded,
        is_simulated=bool(by_policy),
        by_policy=by_policy,
    )


def _assumptions(study: Study) -> list[str]:
    """Return what is assumed of options and of the history, with the numbers of jobs."""
    told: list[str] = []
    for one in (*study.contenders[1:], *study.left_out):
        told += one.notes
    for one in study.contenders[1:]:
        sentence = who_may_use(study, one)
        told += [] if sentence is None else [sentence]
    filled = [line for one in study.base.settings.values() for line in one.filled]
    return [*told, *dict.fromkeys(filled)]


def _worths(study: Study, results: _Results, batch: Batch) -> list[Worth]:
    """Return what each policy is worth in GPUs of the cluster's most numerous model."""
    others = [name for name in results.policies if name != TODAY]
    if TODAY not in results.policies or not others:
        return []
    tried, speeds = study.larger, list(study.base.settings)
    curve = [np.stack([results.of(0, TODAY)[s].jct for s in speeds])]
    measured: dict[str, Measured] = {}
    for k, cluster in enumerate(tried.clusters):
        settings = {s: study.estimated.setting(s, cluster) for s in speeds}
        larger = Contender(Alternative("", cluster, None), settings, 0, ())
        runs = study.play(batch, [larger], (TODAY,))[0]
        curve.append(np.stack([_Windowed(runs[s][TODAY], study.windows).jct for s in speeds]))
        gpus = (0, *tried.gpus[: k + 1])
        for name in others:
            target = np.stack([results.of(0, name)[s].jct for s in speeds])
            measured[name] = Measured(gpus, np.stack(curve, axis=1), target)
        if all(one.is_reached for one in measured.values()):
            break
    return [worth(name, TODAY, tried.model, measured[name]) for name in others]


def evaluate(study: Study, batch: Batch) -> Plan:
    """Play everything and rank the options.

    Raises:
        PolicyError: a policy fails.
    """
    results = _Results(study, study.play(batch, study.contenders, study.policies))
    main = TODAY if TODAY in results.policies else results.policies[0]
    has_prices = any(one.option.price is not None for one in study.contenders[1:])
    options = [
        _option(one, {name: results.outcome(i, name) for name in results.policies}, has_prices)
        for i, one in enumerate(study.contenders)
    ]
    options.sort(key=lambda one: _key(one.stranded_jobs, _change_of(one, main)))
    rest = [_option(one, {}, has_prices) for one in study.left_out]
    history, base = study.variants.history, next(iter(study.base.settings.values()))
    return Plan(
        history=str(study.variants.file),
        jobs=study.jobs,
        jobs_compared=study.estimated.jobs(study.rows),
        windows=study.windows.total,
        jobs_per_window=study.windows.jobs,
        grow=study.grow,
        policies=results.policies,
        ranked_by=main,
        speeds=list(study.base.settings),
        options=[*options, *rest],
        worth=_worths(study, results, batch),
        agreement=_agreement(results, main),
        disagreements=_disagreements(options, main),
        findings=[*idle_gpus(history, base), *overloaded_partitions(history, base)],
        assumptions=_assumptions(study),
        notes=list(study.notes),
    )
