"""What a comparison says, as written to JSON, and how it is made from the figures of its runs."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
import scipy
from pydantic import BaseModel, ConfigDict

from adlro import __version__
from adlro.evaluate.inference import holm, paired
from adlro.evaluate.metrics import Metrics
from adlro.evaluate.regression import EXPLAINED, EXPLAINING, Regressions, regressions
from adlro.evaluate.stats import (
    FEW_RESAMPLES,
    RESAMPLES,
    Estimate,
    draws,
    estimate,
    gap_closed,
    percent_differences,
    seeds_to_settle,
)
from adlro.model.state import Floats
from adlro.policies.registry import Policy
from adlro.workloads import replay
from adlro.workloads.setting import Setting

PER_SEED = (
    "mean_jct_s", "p99_jct_s", "throughput_jobs_per_h", "gpu_utilisation", "offered_load",
    "mean_queue",
)  # fmt: skip
BASELINE = "min-min"  # from which the gap to hindsight is counted


class Difference(Estimate):
    """A difference in mean JCT, with what a reviewer asks for; None where it makes no sense."""

    p_wilcoxon: float | None  # signed ranks of the differences, two-sided
    p_holm: float | None  # corrected over all rivals of the best policy of the table
    dz: float | None  # Cohen's, of paired differences
    rank_biserial: float | None  # of matched pairs
    seeds_to_settle: int | None  # see stats.seeds_to_settle


class Row(BaseModel):
    """One policy's line of the table."""

    model_config = ConfigDict(frozen=True)

    name: str
    is_preemptive: bool  # it says so, or it was seen to preempt
    metrics: dict[str, Estimate]
    per_seed: dict[str, list[float]]  # of PER_SEED, in the order of seeds
    versus: dict[str, dict[str, Difference | Estimate]]  # rival -> METRIC_pct: ours is larger by
    gap_closed: Estimate | None = None  # percent of the gap from min-min to hindsight
    decision_us: float  # CPU time of a call of decide, the simulator's own work included
    decisions: int  # calls of decide, over all seeds
    real_decisions: int  # those with at least one feasible pair

    @property
    def jct(self) -> float:
        """Mean JCT in seconds over all seeds."""
        return self.metrics["mean_jct_s"].mean

    def jct_versus(self, rival: str) -> Difference:
        """How much larger our mean JCT is than a rival's, in percent."""
        found = self.versus[rival]["mean_jct_pct"]
        if not isinstance(found, Difference):
            raise TypeError(f"{rival}: mean_jct_pct without its tests")
        return found


def _versions() -> dict[str, str]:
    return {
        "adlro": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scipy": scipy.__version__,
    }


class Comparison(BaseModel):
    """What `adlro compare --json` writes."""

    model_config = ConfigDict(frozen=True)

    version: str = __version__
    command: str = ""  # as typed
    versions: dict[str, str]
    scenario: str
    seeds: int
    first_seed: int
    load: float
    estimates: str
    measure: str
    jobs: int
    policies: list[Row]
    hindsight: Estimate | None = None  # mean JCT in seconds of the plan that knew all jobs
    regression: Regressions
    notes: list[str] = []  # what a reader of the figures must know

    def tables(self) -> list[list[Row]]:
        """Rows of those that never preempt, then of those that do, each best first; none empty."""
        ranked = sorted(self.policies, key=lambda row: row.jct)
        halves = ([row for row in ranked if row.is_preemptive is kind] for kind in (False, True))
        return [rows for rows in halves if rows]


class Run(NamedTuple):
    """What is kept of one run."""

    metrics: Metrics
    cpu_s: float
    decisions: int
    real_decisions: int
    preemptions: int


class SeedRuns(NamedTuple):
    """What is kept of all runs on one seed."""

    runs: list[Run]  # [P] in the order of the policies
    hindsight: float | None  # mean JCT in seconds


class _Field(NamedTuple):
    """P policies on S seeds: who they are, and their figures by metric, [P, S] each."""

    names: list[str]
    is_preemptive: list[bool]
    figures: dict[str, Floats]


def _field(policies: Sequence[Policy], done: Sequence[SeedRuns]) -> _Field:
    values = np.array([[run.metrics for run in seed.runs] for seed in done])
    figures = {name: values[:, :, i].T.copy() for i, name in enumerate(Metrics._fields)}
    seen = [any(seed.runs[p].preemptions for seed in done) for p in range(len(policies))]
    says = [policy.is_preemptive for policy in policies]
    return _Field(
        [policy.name for policy in policies],
        [a or b for a, b in zip(says, seen, strict=True)],
        figures,
    )


def _undeclared(policies: Sequence[Policy], field: _Field) -> list[str]:
    """A note for each policy that preempts without saying so."""
    return [
        f"{policy.name} stops running jobs without saying so (PREEMPTIVE = True); it is listed "
        "with the preemptive policies."
        for policy, does in zip(policies, field.is_preemptive, strict=True)
        if does and not policy.is_preemptive
    ]


def _percent(field: _Field) -> list[dict[str, dict[str, Estimate]]]:
    """For each policy: rival -> METRIC_pct of all metrics that are not 0 on the rival's side."""
    names = field.names
    versus: list[dict[str, dict[str, Estimate]]] = [
        {rival: {} for rival in names if rival != name} for name in names
    ]
    seeds = field.figures[EXPLAINED].shape[1]
    many, few = draws(seeds, RESAMPLES), draws(seeds, FEW_RESAMPLES)
    for metric, figures in field.figures.items():
        key = metric.removesuffix("_s") + "_pct"
        found = percent_differences(figures, many if metric == EXPLAINED else few)
        for (p, k), difference in found.items():
            versus[p][names[k]][key] = difference
    return versus


def _holm_by_pair(
    field: _Field, p_values: dict[tuple[int, int], float | None]
) -> dict[tuple[int, int], float | None]:
    """Corrected p of the best policy of each table against each rival there, both ways round."""
    jct = field.figures[EXPLAINED].mean(axis=1)
    corrected: dict[tuple[int, int], float | None] = {}
    for kind in (False, True):
        members = [p for p, is_so in enumerate(field.is_preemptive) if is_so is kind]
        if not members:
            continue
        best = min(members, key=lambda p: jct[p])
        rivals = [p for p in members if p != best]
        found = holm([p_values[best, rival] for rival in rivals])
        for rival, p in zip(rivals, found, strict=True):
            corrected[best, rival] = corrected[rival, best] = p
    return corrected


def _versus(field: _Field) -> list[dict[str, dict[str, Difference | Estimate]]]:
    """For each policy, the differences to all others, those in mean JCT with their tests."""
    jct, names = field.figures[EXPLAINED], field.names
    pairs = [(p, k) for p in range(len(names)) for k in range(len(names)) if p != k]
    tests = {(p, k): paired(jct[p], jct[k]) for p, k in pairs}
    corrected = _holm_by_pair(field, {pair: test.p_wilcoxon for pair, test in tests.items()})
    versus: list[dict[str, dict[str, Difference | Estimate]]] = [
        {rival: dict(found) for rival, found in row.items()} for row in _percent(field)
    ]
    for p, k in pairs:
        found = versus[p][names[k]]
        plain, test = found["mean_jct_pct"], tests[p, k]
        found["mean_jct_pct"] = Difference(
            mean=plain.mean,
            sd=plain.sd,
            ci95=plain.ci95,
            p_wilcoxon=test.p_wilcoxon,
            p_holm=corrected.get((p, k)),
            dz=test.dz,
            rank_biserial=test.rank_biserial,
            seeds_to_settle=seeds_to_settle(plain, jct.shape[1]),
        )
    return versus


def _gaps(field: _Field, hindsight: Floats | None) -> tuple[list[Estimate | None], list[str]]:
    """Share of the gap that each policy closes, and a note if there is none to close."""
    unknown: list[Estimate | None] = [None] * len(field.names)
    if hindsight is None:
        return unknown, []
    if BASELINE not in field.names:
        return unknown, [f"Without {BASELINE} in the table there is no gap to hindsight to close."]
    jct = field.figures[EXPLAINED]
    start = jct[field.names.index(BASELINE)]
    if not start.mean() > hindsight.mean():
        return unknown, [f"Hindsight is no better than {BASELINE} here: there is no gap to close."]
    return [gap_closed(row, start, hindsight) for row in jct], []


def _windows(setting: Setting, seeds: range) -> list[str]:
    """What seeds are where the jobs are those of a history."""
    if setting.played is None:
        return []
    scenario = setting.scenario
    there = replay.windows(setting.played, scenario.jobs)
    last = f"seeds 0 to {there - 1:,}" if there > 1 else "seed 0"
    notes = [f"each seed is {scenario.jobs:,} jobs of the history in a row: it has {last}"]
    if seeds[-1] >= there:
        notes.append(
            f"seeds from {there:,} on play jobs of the history that others have played already: "
            "intervals are narrower than they should be"
        )
    return notes


def summarise(
    setting: Setting,
    policies: Sequence[Policy],
    seeds: range,
    done: Sequence[SeedRuns],
    notes: Sequence[str] = (),
) -> Comparison:
    """The comparison of policies over the first seeds of `seeds`: those that are done, in order."""
    seeds = seeds[: len(done)]
    field, scenario = _field(policies, done), setting.scenario
    plans = [seed.hindsight for seed in done if seed.hindsight is not None]
    hindsight = np.array(plans) if plans else None
    gaps, no_gap = _gaps(field, hindsight)
    versus = _versus(field)
    rows = []
    for p, name in enumerate(field.names):
        own = [seed.runs[p] for seed in done]
        decisions = sum(run.decisions for run in own)
        row = Row(
            name=name,
            is_preemptive=field.is_preemptive[p],
            metrics={key: estimate(rows_[p]) for key, rows_ in field.figures.items()},
            per_seed={key: field.figures[key][p].tolist() for key in PER_SEED},
            versus=versus[p],
            gap_closed=gaps[p],
            decision_us=1e6 * sum(run.cpu_s for run in own) / decisions,
            decisions=decisions,
            real_decisions=sum(run.real_decisions for run in own),
        )
        rows.append(row)
    explained = {key: field.figures[key] for key in (EXPLAINED, *EXPLAINING)}
    return Comparison(
        versions=_versions(),
        scenario=scenario.name,
        seeds=len(seeds),
        first_seed=seeds[0],
        load=scenario.load,
        estimates=str(scenario.estimates),
        measure=str(scenario.measure),
        jobs=scenario.jobs,
        policies=rows,
        hindsight=None if hindsight is None else estimate(hindsight),
        regression=regressions(explained, field.names, seeds),
        notes=[
            *notes,
            *_windows(setting, seeds),
            *setting.filled,
            *_undeclared(policies, field),
            *no_gap,
        ],
    )
