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
from adlro.evaluate import references
from adlro.evaluate.calibration import Calibration
from adlro.evaluate.metrics import Metrics
from adlro.evaluate.pooled import pooled_against_rivals
from adlro.evaluate.references import BASELINE, Reference, SeedReferences
from adlro.evaluate.regression import REGRESSORS, RESPONSE, Regressions, regressions
from adlro.evaluate.rows import RECORDED, Differences, JctDifference, PolicyRow, RecordedRow, tested
from adlro.evaluate.significance import holm, paired_test
from adlro.evaluate.stats import (
    FEW_RESAMPLES,
    RESAMPLES,
    Estimate,
    bootstrap,
    estimate,
    percent_differences,
)
from adlro.model.state import Floats
from adlro.policies.registry import Policy
from adlro.workloads import replay
from adlro.workloads.jitter import Jitter
from adlro.workloads.setting import Setting
from adlro.workloads.summary import OVERLOAD

__all__ = [
    "BASELINE",
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


def versions() -> dict[str, str]:
    return {
        "adlro": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scipy": scipy.__version__,
    }


class JitterFigures(BaseModel):
    """How each seed was repeated with slightly changed estimates."""

    model_config = ConfigDict(frozen=True)

    repeats: int
    sigma: float  # standard deviation of the log of the factor on the estimates


def jitter_figures(jitter: Jitter | None) -> JitterFigures | None:
    """Return the jitter of a comparison as it is written to JSON."""
    return None if jitter is None else JitterFigures(repeats=jitter.repeats, sigma=jitter.sigma)


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
    hindsight: Reference | None = None  # look-ahead with foresight: mean JCT in s; no bound
    lower_bound: Reference | None = None  # on the mean JCT in s of any schedule without preemption
    lower_bound_preemptive: Reference | None = None  # of any schedule at all
    regression: Regressions
    jitter: JitterFigures | None = None  # how seeds were repeated; None = each was run once
    notes: list[str] = []  # caveats for readers of the figures

    def jitter_notes(self) -> list[str]:
        """Return sentences on how seeds were repeated, and how far that moves a single run."""
        if self.jitter is None:
            return []
        moved = [row.jitter_sd_pct for row in self.policies if row.jitter_sd_pct is not None]
        notes = [
            f"Each seed ran {self.jitter.repeats} times with estimates changed by about "
            f"{100 * self.jitter.sigma:g} % at random; figures are averages. That alone moves the "
            f"mean JCT of a single run by {min(moved):.1f} to {max(moved):.1f} % (standard "
            "deviation)."
        ]
        if self.hindsight is not None:
            notes.append("The look-ahead with foresight is a single run with unchanged estimates.")
        return notes

    def range_notes(self) -> list[str]:
        """Return a sentence for each learned policy on features outside its training range."""
        return [
            f"Outside the training range of {row.name}: {row.out_of_range.words}."
            for row in self.policies
            if row.out_of_range is not None
        ]

    def tables(self) -> list[list[PolicyRow]]:
        """Return the rows of policies that never preempt and, as a second list, of those that do.

        Each list begins with the best policy; empty lists are left out.
        """
        ranked = sorted(self.policies, key=lambda row: row.jct)
        halves = ([row for row in ranked if row.is_preemptive is kind] for kind in (False, True))
        return [rows for rows in halves if rows]


class RunFigures(NamedTuple):
    """The figures of one run, or of its repetitions with jitter, that enter a comparison."""

    metrics: Metrics
    cpu_s: float
    decisions: int
    real_decisions: int
    preemptions: int
    jitter_sd: float | None = None  # of mean JCT over repetitions / their mean; None = one run


def mean_figures(runs: Sequence[RunFigures]) -> RunFigures:
    """Return the mean metrics of repetitions of one run, with their CPU time and counts added."""
    if len(runs) == 1:
        return runs[0]
    jct = np.array([run.metrics.mean_jct_s for run in runs])
    return RunFigures(
        Metrics(*np.mean([run.metrics for run in runs], axis=0).tolist()),
        sum(run.cpu_s for run in runs),
        sum(run.decisions for run in runs),
        sum(run.real_decisions for run in runs),
        sum(run.preemptions for run in runs),
        float(jct.std(ddof=1) / jct.mean()),
    )


class SeedRuns(NamedTuple):
    """The figures of all policies, and the references if any, on one seed."""

    runs: list[RunFigures]  # [P] in the order of the policies
    references: SeedReferences | None


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


def _jitter_sd_pct(runs: Sequence[RunFigures]) -> float | None:
    """Return the percent by which jitter alone moves the mean JCT of a seed; None = no jitter."""
    found = [run.jitter_sd for run in runs if run.jitter_sd is not None]
    return 100 * float(np.mean(found)) if found else None


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
    beside = references.summarise(
        results.names,
        results.is_preemptive,
        results.figures[RESPONSE],
        [seed.references for seed in done],
    )
    versus = _versus(results)
    happened = record.compare(setting, seeds, results.names, results.figures)
    if happened.row is not None:
        for own_versus, differences in zip(versus, happened.versus, strict=True):
            own_versus[RECORDED] = differences
    windows = None if played is None else replay.windows(played, scenario.jobs)
    own_windows = np.array(seeds) < (windows or 0)  # later seeds play the same jobs again
    pooled = pooled_against_rivals(results.names, results.figures[RESPONSE][:, own_windows])
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
            **beside.policies[p]._asdict(),
            pooled=pooled[p],
            jitter_sd_pct=_jitter_sd_pct(own),
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
        windows=windows,
        hindsight=beside.look_ahead,
        lower_bound=beside.lower_bound,
        lower_bound_preemptive=beside.lower_bound_preemptive,
        regression=regressions(explained, results.names, seeds),
        notes=[
            *notes,
            *_replay_notes(setting, seeds),
            *happened.notes,
            *setting.filled,
            *_preemption_notes(policies, results),
            *beside.notes,
        ],
    )
