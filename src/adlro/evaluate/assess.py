"""What an operator would gain: today's scheduler, its rivals and ADLRO on the operator's own jobs.

The whole history is replayed. Its first quarter leads in and chooses the estimator of run times;
the rest is measured in windows, under three assumptions on speeds and two on estimates. Today's
scheduler is what happened (`recorded`) and stock Slurm's twin (`slurm`), with which all others are
compared: both are simulations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from adlro.config.scenario import EstimateSource
from adlro.errors import ConfigError, PolicyError
from adlro.evaluate import findings, recorded
from adlro.evaluate.batch import Case, Runs, by_window, name_of, runs_of
from adlro.evaluate.calibration import Calibration, Twin
from adlro.evaluate.findings import Finding
from adlro.evaluate.group_waits import Compared, GroupChange, measured_rows, wait_changes
from adlro.evaluate.out_of_range import OutOfRange
from adlro.evaluate.prediction_error import prediction_errors
from adlro.evaluate.stats import Estimate, estimate, percent_difference
from adlro.evaluate.variants import (
    SPEED_WORDS,
    SPEEDS,
    Variant,
    Variants,
    Windows,
    check_fit,
    refuse_short,
    restricted,
    rows_of,
    windows_of,
)
from adlro.model.state import Counts, Floats
from adlro.workloads.recorded import times
from adlro.workloads.setting import Setting

TODAY, OURS, RECORDED = "slurm", "adlro", "recorded"
POLICIES = (TODAY, "multifactor", "easy-backfill", "min-min", "drain-argmin", OURS)
REQUEST: EstimateSource = "request"
REFERENCE: EstimateSource = "oracle"  # knows run times in advance, as no scheduler does
_BLIND = (TODAY, "multifactor")  # read no estimates
_MOST_KNOWN = 0.99  # share of a window's jobs whose recorded start must be known
_METRICS = ("mean_jct_s", "mean_wait_s", "p99_jct_s", "gpu_utilisation")


class PolicyFigures(BaseModel):
    """A policy under one assumption: means over windows."""

    model_config = ConfigDict(frozen=True)

    name: str
    mean_jct_s: Estimate
    mean_wait_s: Estimate
    p99_jct_s: Estimate
    gpu_utilisation: Estimate
    versus_today_pct: Estimate | None  # mean JCT against the twin; None = it is the twin


class Cell(BaseModel):
    """All policies under one assumption on speeds and one on estimates of run times."""

    model_config = ConfigDict(frozen=True)

    speeds: str
    estimates: str
    is_reference: bool  # run times are known in advance: not to be had
    policies: list[PolicyFigures]

    def row(self, name: str) -> PolicyFigures | None:
        """Return the figures of a policy; None = it was not played here."""
        return next((row for row in self.policies if row.name == name), None)


class Pooled(BaseModel):
    """A policy over all assumptions but the reference, each with the same weight."""

    model_config = ConfigDict(frozen=True)

    name: str
    mean_jct_s: float
    mean_wait_s: float
    p99_jct_s: float
    versus_today_pct: Estimate | None  # mean JCT; None = it is the twin
    versus_ours_pct: Estimate | None  # mean JCT; None = it is ours
    versus_recorded_pct: Estimate | None  # mean JCT; None = starts are not recorded


class EstimatorChoice(BaseModel):
    """The estimator of run times with the smallest error on the first part of the history."""

    model_config = ConfigDict(frozen=True)

    name: str
    errors: dict[str, float]  # estimator -> mean |log error| on the first part


class Assessment(BaseModel):
    """What an operator would gain, as `adlro assess --json` writes it."""

    model_config = ConfigDict(frozen=True)

    history: str
    cluster: str
    gpus: int
    jobs: int  # with GPUs, that can be played
    days: float
    load: float  # recorded, of what the cluster can carry
    windows: int
    window_jobs: int
    lead_in_jobs: int  # not measured, at the begin of each run; the first ones chose the estimator
    runs: int  # of each policy under each assumption, spread over the history
    estimator: EstimatorChoice
    cells: list[Cell]
    pooled: list[Pooled]  # shortest mean JCT first
    recorded: dict[str, Estimate] | None  # metric -> what happened; None = not recorded
    calibration: Calibration | None
    changes: list[GroupChange]  # waits under ours against the twin, most additional waiting first
    findings: list[Finding]
    assumptions: list[str]
    notes: list[str]
    out_of_range: OutOfRange | None = None  # of the features of ours; None = not measured

    @property
    def losers(self) -> list[GroupChange]:
        """Groups of jobs that would wait longer, on average over the assumptions."""
        return [one for one in self.changes if one.is_longer]

    def pooled_row(self, name: str) -> Pooled:
        """Return the pooled figures of a policy."""
        return next(row for row in self.pooled if row.name == name)


class Study(NamedTuple):
    """All runs that an assessment needs, in order."""

    variants: Variants
    windows: Windows
    whole: Setting  # the whole history, all GPUs alike
    estimator: EstimatorChoice
    assumptions: list[tuple[str, str]]  # [C] speeds and estimates of each case but the last
    cases: list[Case]  # [C], and last, if there are weights, the twin without them
    has_flat: bool  # the last case is the twin without weights
    notes: list[str]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return runs_of(self.cases)


class Played(NamedTuple):
    """A study, its runs and what was found."""

    study: Study
    results: Sequence[Runs]  # of each case of the study
    found: Assessment


def choose_estimator(variants: Variants, rows: Counts) -> EstimatorChoice:
    """Return the estimator with the smallest error on these rows of the history.

    Of equal ones it is the users' requests, which need no estimator.
    """
    counted = np.zeros(variants.history.rows, np.bool_)
    counted[rows] = ~variants.history.is_lost[rows]
    found = prediction_errors(variants.history).errors(counted)
    errors = {name.replace(" ", "-"): one.mae_log for name, one in found.items()}
    known = {name: error for name, error in errors.items() if np.isfinite(error)}
    best = min(known, key=lambda name: (known[name], name != REQUEST))
    return EstimatorChoice(name=best, errors=known)


def _refuse_namesakes(policies: Sequence[str]) -> None:
    names = [name_of(policy) for policy in policies]
    for policy, name in zip(policies, names, strict=True):
        if names.count(name) > 1 and policy != name:
            raise PolicyError(f"policy {policy}: another one is called {name!r}; rename the file")


def make_study(variants: Variants, policies: Sequence[str] = POLICIES) -> Study:
    """Prepare everything that is played.

    Raises:
        ConfigError: the history cannot be played on the cluster.
        PolicyError: two policies have the same name.
        TraceError: the history is too short.
    """
    _refuse_namesakes(policies)
    whole = variants.setting(Variant())
    check_fit(variants, whole)
    rows = rows_of(whole)
    windows = windows_of(len(rows))
    if windows is None:
        raise refuse_short(variants, len(rows))
    estimator = choose_estimator(variants, rows[: windows.lead_in])
    sources = list(dict.fromkeys((REQUEST, estimator.name, REFERENCE)))
    notes = []
    if estimator.name == REQUEST:
        notes.append("no estimator predicts run times better than the users' requests here")
    assumptions, cases = [], []
    for speeds in SPEEDS:
        for source in sources:
            try:
                setting = variants.setting(Variant(speeds, source))
            except ConfigError as exc:
                notes.append(f"speeds {speeds} are left out: {exc}")
                break
            played = [p for p in policies if source == REQUEST or p not in _BLIND]
            setting = restricted(setting, rows, windows)
            assumptions.append((speeds, str(source)))
            cases.append(Case(setting, tuple(played), windows.seeds))
    slurm = whole.scenario.slurm
    flat = findings.without_weights(slurm)
    has_flat = flat != slurm
    if has_flat:
        setting = cases[0].setting
        scenario = setting.scenario.model_copy(update={"slurm": flat})
        cases.append(Case(setting._replace(scenario=scenario), (TODAY,), windows.seeds))
    return Study(variants, windows, whole, estimator, assumptions, cases, has_flat, notes)


def _cells(study: Study, results: Sequence[Runs]) -> Iterator[tuple[str, str, Runs]]:
    """Yield speeds, estimates and runs of each cell; runs that read no estimates are shared."""
    blind: Runs = {}
    for (speeds, source), runs in zip(study.assumptions, results, strict=False):
        if source == REQUEST:
            blind = {name: runs[name] for name in _BLIND if name in runs}
        yield speeds, source, blind | runs


def _figures(name: str, runs: Runs, windows: Windows) -> PolicyFigures:
    values = {metric: by_window(runs[name], windows, metric) for metric in _METRICS}
    today = by_window(runs[TODAY], windows, "mean_jct_s")
    versus = None if name == TODAY else percent_difference(values["mean_jct_s"], today)
    means = {metric: estimate(value) for metric, value in values.items()}
    return PolicyFigures(name=name, versus_today_pct=versus, **means)


class _Pool(NamedTuple):
    """Runs under several assumptions, of which each has the same weight."""

    cells: Sequence[Runs]
    windows: Windows
    recorded: Floats | None  # [W] mean JCT of each window; None = not recorded

    def mean(self, name: str, metric: str) -> Floats:
        """Return a metric of each window [W], as the mean over the assumptions."""
        values = [by_window(runs[name], self.windows, metric) for runs in self.cells]
        found: Floats = np.mean(values, axis=0)
        return found

    def row(self, name: str) -> Pooled:
        """Return the pooled figures of a policy."""
        jct, wait, p99 = (self.mean(name, metric) for metric in _METRICS[:3])

        def versus(rival: str) -> Estimate | None:
            theirs = self.mean(rival, _METRICS[0])
            return None if rival == name else percent_difference(jct, theirs)

        return Pooled(
            name=name,
            mean_jct_s=float(jct.mean()),
            mean_wait_s=float(wait.mean()),
            p99_jct_s=float(p99.mean()),
            versus_today_pct=versus(TODAY),
            versus_ours_pct=versus(OURS),
            versus_recorded_pct=None
            if self.recorded is None
            else percent_difference(jct, self.recorded),
        )


def _happened(study: Study) -> dict[str, Floats] | None:
    """Return recorded metrics of each window [W]; None = too few starts are recorded."""
    first = study.cases[0].setting
    if recorded.absence(first):
        return None
    history = study.variants.history
    windows = [rows[~history.is_lost[rows]] for rows in measured_rows(first, study.windows)]
    found = [times(history, rows) for rows in windows]
    if not all(one.is_known.any() and one.is_known.mean() >= _MOST_KNOWN for one in found):
        return None
    jct = [one.jct_s[one.is_known] for one in found]
    if not any(one.any() for one in jct):  # no time passed: nothing can be compared with it
        return None
    return {
        "mean_jct_s": np.array([one.mean() for one in jct]),
        "mean_wait_s": np.array([one.wait_s[one.is_known].mean() for one in found]),
        "p99_jct_s": np.array([np.percentile(one, 99) for one in jct]),
    }


def _assumed(study: Study) -> list[str]:
    """Return what is assumed; sentences that hold under some speeds only say so."""
    by_speeds = {
        speeds: case.setting.filled
        for case, (speeds, _) in zip(study.cases, study.assumptions, strict=False)
    }
    every = [set(filled) for filled in by_speeds.values()]
    common = set.intersection(*every)
    shared = [text for text in next(iter(by_speeds.values())) if text in common]
    return shared + [
        f"{text} (under {SPEED_WORDS[speeds]})"
        for speeds, filled in by_speeds.items()
        for text in filled
        if text not in common
    ]


def assessment(
    study: Study, results: Sequence[Runs], out_of_range: OutOfRange | None = None
) -> Assessment:
    """Return the assessment of a study.

    Args:
        study: the study.
        results: its runs, in the order of its cases.
        out_of_range: of the features of ours; None = not measured.
    """
    cells = list(_cells(study, results))
    counted = [runs for _, source, runs in cells if source != REFERENCE]
    settings = [
        case.setting
        for case, (_, source) in zip(study.cases, study.assumptions, strict=False)
        if source != REFERENCE
    ]
    history, windows = study.variants.history, study.windows
    first, whole = study.cases[0].setting, study.whole
    twin = Twin(first)
    for seed, run in zip(windows.seeds, results[0][TODAY], strict=True):
        twin.add(seed, run.wait_s, run.jct_s)
    pairs = [
        Compared(setting, runs[TODAY], runs[OURS])
        for setting, runs in zip(settings, counted, strict=True)
    ]
    found = findings.idle_gpus(history, whole) + findings.overloaded_partitions(history, whole)
    if study.has_flat:
        flat = Compared(first, results[0][TODAY], results[-1][TODAY])
        found += findings.starved_accounts(wait_changes(history, [flat], windows))
    names = [name_of(policy) for policy in study.cases[0].policies]
    submit, happened = history.submit_s[rows_of(whole)], _happened(study)
    pool = _Pool(counted, windows, None if happened is None else happened["mean_jct_s"])
    return Assessment(
        history=str(study.variants.file),
        cluster=whole.scenario.cluster.name,
        gpus=len(whole.layout.gpus),
        jobs=len(rows_of(whole)),
        days=float(np.ptp(submit)) / 86_400,
        load=whole.scenario.load,
        windows=windows.total,
        window_jobs=windows.jobs,
        lead_in_jobs=windows.lead_in,
        runs=len(windows.seeds),
        estimator=study.estimator,
        cells=[
            Cell(
                speeds=speeds,
                estimates=source,
                is_reference=source == REFERENCE,
                policies=[_figures(name, runs, windows) for name in names if name in runs],
            )
            for speeds, source, runs in cells
        ],
        pooled=sorted(map(pool.row, names), key=lambda row: row.mean_jct_s),
        recorded=None
        if happened is None
        else {key: estimate(values) for key, values in happened.items()},
        calibration=twin.calibration(windows.seeds),
        changes=wait_changes(history, pairs, windows),
        findings=found,
        assumptions=_assumed(study) + ([] if out_of_range is None else [out_of_range.of(OURS)]),
        notes=study.notes,
        out_of_range=out_of_range,
    )
