"""The result of a comparison, as written to JSON, and how it is computed from its runs."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
import scipy
from pydantic import BaseModel, ConfigDict

from adlro import __version__
from adlro.config.scenario import Scenario
from adlro.evaluate import recorded as record
from adlro.evaluate.calibration import Calibration
from adlro.evaluate.metrics import Metrics
from adlro.evaluate.regression import REGRESSORS, RESPONSE, Regressions, regressions
from adlro.evaluate.rows import RECORDED, Differences, JctDifference, PolicyRow, RecordedRow, tested
from adlro.evaluate.significance import holm, paired_test
from adlro.evaluate.stats import (
    FEW_RESAMPLES,
    RESAMPLES,
    Estimate,
    bootstrap,
    estimate,
    gap_closed,
    percent_differences,
)
from adlro.model.state import Floats
from adlro.policies.registry import Policy
from adlro.workloads import replay
from adlro.workloads.setting import Setting
from adlro.workloads.summary import OVERLOAD

__all__ = [
    "Comparison",
    "JctDifference",
    "PolicyRow",
    "RunFigures",
    "SeedRuns",
    "history_notes",
    "summarise",
]

PER_SEED = (
    "mean_jct_s", "p99_jct_s", "throughput_jobs_per_h", "gpu_utilisation", "offered_load",
    "mean_queue",
)  # fmt: skip
BASELINE = "min-min"  # the gap to hindsight starts here


def versions() -> dict[str, str]:
    return {
        "adlro": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scipy": scipy.__version__,
    }


class Comparison(BaseModel):
    """The result of a comparison, as `adlro compare --json` writes it."""

    model_config = ConfigDict(frozen=True)

    version: str = __version__
    command: str = ""  # the command line
    versions: dict[str, str]
    scenario: str
    seeds: int
    first_seed: int
    load: float
    estimates: str
    measure: str
    jobs: int
    policies: list[PolicyRow]
    recorded: RecordedRow | None = None  # what happened to the jobs of a history: not simulated
    calibration: Calibration | None = None  # of the policy `slurm` against what happened
    windows: int | None = None  # of a history, which do not overlap; None = there is no history
    hindsight: Estimate | None = None  # mean JCT in seconds of the reference that knows the future
    regression: Regressions
    notes: list[str] = []  # caveats for readers of the figures

    def tables(self) -> list[list[PolicyRow]]:
        """Return the rows of policies that never preempt and, as a second list, of those that do.

        Each list begins with the best policy; empty lists are left out.
        """
        ranked = sorted(self.policies, key=lambda row: row.jct)
        halves = ([row for row in ranked if row.is_preemptive is kind] for kind in (False, True))
        return [rows for rows in halves if rows]


class RunFigures(NamedTuple):
    """The figures of one run that enter a comparison."""

    metrics: Metrics
    cpu_s: float
    decisions: int
    real_decisions: int
    preemptions: int


class SeedRuns(NamedTuple):
    """The figures of all policies, and of the hindsight reference if any, on one seed."""

    runs: list[RunFigures]  # [P] in the order of the policies
    hindsight: float | None  # mean JCT of the reference in seconds


class _Results(NamedTuple):
    """All metrics of P policies on S seeds."""

    names: list[str]
    is_preemptive: list[bool]  # declared, or observed to preempt
    figures: dict[str, Floats]  # metric -> [P, S]


def _results(policies: Sequence[Policy], done: Sequence[SeedRuns]) -> _Results:
    values = np.array([[run.metrics for run in seed.runs] for seed in done])
    figures = {name: values[:, :, i].T.copy() for i, name in enumerate(Metrics._fields)}
    observed = [any(seed.runs[p].preemptions for seed in done) for p in range(len(policies))]
    declared = [policy.is_preemptive for policy in policies]
    return _Results(
        [policy.name for policy in policies],
        [a or b for a, b in zip(declared, observed, strict=True)],
        figures,
    )


def _preemption_notes(policies: Sequence[Policy], results: _Results) -> list[str]:
    """Return a note for each policy that preempts without declaring it."""
    return [
        f"{policy.name} stops running jobs without saying so (PREEMPTIVE = True); it is listed "
        "with the preemptive policies."
        for policy, does in zip(policies, results.is_preemptive, strict=True)
        if does and not policy.is_preemptive
    ]


def _percent_by_rival(results: _Results) -> list[dict[str, dict[str, Estimate]]]:
    """Return for each policy: rival -> METRIC_pct -> paired difference in percent.

    Metrics whose mean is 0 for the rival are left out.
    """
    names = results.names
    versus: list[dict[str, dict[str, Estimate]]] = [
        {rival: {} for rival in names if rival != name} for name in names
    ]
    seeds = results.figures[RESPONSE].shape[1]
    many, few = bootstrap(seeds, RESAMPLES), bootstrap(seeds, FEW_RESAMPLES)
    for metric, figures in results.figures.items():
        key = metric.removesuffix("_s") + "_pct"
        found = percent_differences(figures, many if metric == RESPONSE else few)
        for (p, k), difference in found.items():
            versus[p][names[k]][key] = difference
    return versus


def _holm_by_pair(
    results: _Results, p_values: dict[tuple[int, int], float | None]
) -> dict[tuple[int, int], float | None]:
    """Return the Holm-corrected p values of each table's best policy against its rivals.

    There is a table of policies that never preempt, and one of those that do. A value is stored
    under both (best, rival) and (rival, best).
    """
    jct = results.figures[RESPONSE].mean(axis=1)
    corrected: dict[tuple[int, int], float | None] = {}
    for kind in (False, True):
        members = [p for p, is_so in enumerate(results.is_preemptive) if is_so is kind]
        if not members:
            continue
        best = min(members, key=lambda p: jct[p])
        rivals = [p for p in members if p != best]
        found = holm([p_values[best, rival] for rival in rivals])
        for rival, p in zip(rivals, found, strict=True):
            corrected[best, rival] = corrected[rival, best] = p
    return corrected


def _versus(results: _Results) -> list[dict[str, Differences]]:
    """Return each policy's paired differences to every rival; those of mean JCT have tests."""
    jct, names = results.figures[RESPONSE], results.names
    pairs = [(p, k) for p in range(len(names)) for k in range(len(names)) if p != k]
    tests = {(p, k): paired_test(jct[p], jct[k]) for p, k in pairs}
    corrected = _holm_by_pair(results, {pair: test.p_wilcoxon for pair, test in tests.items()})
    versus: list[dict[str, Differences]] = [
        {rival: dict(found) for rival, found in row.items()} for row in _percent_by_rival(results)
    ]
    for p, k in pairs:
        found = versus[p][names[k]]
        holm_p, seeds = corrected.get((p, k)), jct.shape[1]
        found["mean_jct_pct"] = tested(found["mean_jct_pct"], tests[p, k], holm_p, seeds)
    return versus


def _gaps_closed(
    results: _Results, hindsight: Floats | None
) -> tuple[list[Estimate | None], list[str]]:
    """Return the percent of the gap between min-min and hindsight that each policy closes.

    None for all if the gap is unknown or there is none, with a note that says why.
    """
    unknown: list[Estimate | None] = [None] * len(results.names)
    if hindsight is None:
        return unknown, []
    if BASELINE not in results.names:
        return unknown, [f"Without {BASELINE} in the table there is no gap to hindsight to close."]
    jct = results.figures[RESPONSE]
    start = jct[results.names.index(BASELINE)]
    if not start.mean() > hindsight.mean():
        return unknown, [f"Hindsight is no better than {BASELINE} here: there is no gap to close."]
    return [gap_closed(row, start, hindsight) for row in jct], []


def _replay_notes(setting: Setting, seeds: range) -> list[str]:
    """Return notes on what a seed means, if the jobs are replayed from a history."""
    if setting.played is None:
        return []
    scenario = setting.scenario
    available = replay.windows(setting.played, scenario.jobs)
    last = f"seeds 0 to {available - 1:,}" if available > 1 else "seed 0"
    notes = [f"each seed is {scenario.jobs:,} jobs of the history in a row: it has {last}"]
    notes += history_notes(scenario)
    if seeds[-1] >= available:
        notes.append(
            f"seeds from {available:,} on play jobs of the history that others have played "
            "already: intervals are narrower than they should be"
        )
    return notes


def history_notes(scenario: Scenario) -> list[str]:
    """Return what a reader must know of figures on a history: overload, run times known ahead."""
    if scenario.history is None:
        return []
    notes = []
    if scenario.load > 1:
        notes.append(f"load {scenario.load:.3g}: {OVERLOAD}")
    if scenario.estimates.source == "oracle":
        notes.append(
            "estimates oracle: run times known in advance: no real scheduler has them "
            "(--estimates memory: predicted from jobs that had ended)"
        )
    return notes


def summarise(
    setting: Setting,
    policies: Sequence[Policy],
    seeds: range,
    done: Sequence[SeedRuns],
    notes: Sequence[str] = (),
) -> Comparison:
    """Return the comparison of policies over the completed seeds, the first of `seeds`."""
    seeds = seeds[: len(done)]
    results, scenario, played = _results(policies, done), setting.scenario, setting.played
    references = [seed.hindsight for seed in done if seed.hindsight is not None]
    hindsight = np.array(references) if references else None
    gaps, no_gap = _gaps_closed(results, hindsight)
    versus = _versus(results)
    happened = record.compare(setting, seeds, results.names, results.figures)
    if happened.row is not None:
        for own_versus, differences in zip(versus, happened.versus, strict=True):
            own_versus[RECORDED] = differences
    rows = []
    for p, name in enumerate(results.names):
        own = [seed.runs[p] for seed in done]
        decisions = sum(run.decisions for run in own)
        row = PolicyRow(
            name=name,
            is_preemptive=results.is_preemptive[p],
            metrics={key: estimate(rows_[p]) for key, rows_ in results.figures.items()},
            per_seed={key: results.figures[key][p].tolist() for key in PER_SEED},
            versus=versus[p],
            gap_closed=gaps[p],
            decision_us=1e6 * sum(run.cpu_s for run in own) / decisions,
            decisions=decisions,
            real_decisions=sum(run.real_decisions for run in own),
        )
        rows.append(row)
    explained = {key: results.figures[key] for key in (RESPONSE, *REGRESSORS)}
    return Comparison(
        versions=versions(),
        scenario=scenario.name,
        seeds=len(seeds),
        first_seed=seeds[0],
        load=scenario.load,
        estimates=str(scenario.estimates),
        measure=str(scenario.measure),
        jobs=scenario.jobs,
        policies=rows,
        recorded=happened.row,
        windows=None if played is None else replay.windows(played, scenario.jobs),
        hindsight=None if hindsight is None else estimate(hindsight),
        regression=regressions(explained, results.names, seeds),
        notes=[
            *notes,
            *_replay_notes(setting, seeds),
            *happened.notes,
            *setting.filled,
            *_preemption_notes(policies, results),
            *no_gap,
        ],
    )
