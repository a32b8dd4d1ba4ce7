"""What happened to the jobs of each seed, computed from the history instead of simulated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.evaluate.load import width
from adlro.evaluate.metrics import SLOWDOWN_FLOOR_S
from adlro.evaluate.rows import RECORDED, Differences, RecordedRow, tested
from adlro.evaluate.significance import paired_test
from adlro.evaluate.stats import (
    FEW_RESAMPLES,
    RESAMPLES,
    bootstrap,
    estimate,
    percent_differences,
)
from adlro.model.state import Floats, Mask
from adlro.workloads import history_file, recorded
from adlro.workloads.generate import jobs_of, stretch_of
from adlro.workloads.recorded import Times
from adlro.workloads.replay import Replay
from adlro.workloads.setting import Setting
from adlro.workloads.workload import measured

PER_SEED = ("mean_jct_s", "p99_jct_s", "mean_wait_s", "throughput_jobs_per_h", "gpu_utilisation")
_SAME_PACE = 1e-6  # relative: arrivals stretched by less are as recorded
_MOST_UNKNOWN = 0.01  # share of a comparison's jobs that may lack a recorded start


def times_of(setting: Setting, played: Replay) -> Times | None:
    """Return the recorded times of the jobs played; None = the scenario has no history."""
    history = setting.scenario.history
    return (
        None if history is None else recorded.times(history_file.history_of(history), played.rows)
    )


def absence(setting: Setting) -> str:
    """Return why recorded waits cannot be compared with simulated ones; "" = they can."""
    played, scenario = setting.played, setting.scenario
    if played is None or scenario.history is None:
        return "the jobs are not from a history"
    found = recorded.times(history_file.history_of(scenario.history), played.rows)
    if not found.is_known.any():
        return "the history records no starts"
    stretch = stretch_of(setting)
    if abs(stretch - 1) > _SAME_PACE:
        return (
            f"arrivals are {stretch:.4g} times as far apart as recorded (load {scenario.load:.4g}, "
            f"recorded {scenario.load * stretch:.4g}), so recorded waits do not apply"
        )
    return ""


class RecordedSeed(NamedTuple):
    """The recorded figures of one seed."""

    metrics: dict[str, float]  # those of evaluate.metrics that a record has
    jobs: int  # measured
    without_start: int
    early: int


def measure(setting: Setting, seed: int) -> RecordedSeed | None:
    """Compute the metrics of a seed's jobs as recorded; None = no job has a recorded start.

    The definitions are those of `metrics.Metrics`. Jobs without a recorded start are left out.
    """
    played = jobs_of(setting, seed)
    found = times_of(setting, played)
    if found is None or not found.is_known.any():
        return None
    counted = np.zeros(len(played.rows), np.bool_)
    counted[measured(played.lost, setting.scenario.measure)] = True
    known = counted & found.is_known
    if not known.any():
        return None
    return RecordedSeed(
        _job_metrics(found, known, played) | _run_metrics(found, played, len(setting.layout.gpus)),
        int(counted.sum()),
        int((counted & ~found.is_known).sum()),
        int((counted & found.is_early).sum()),
    )


def _job_metrics(found: Times, known: Mask, played: Replay) -> dict[str, float]:
    """Return the metrics over the jobs in the mask `known` [K]."""
    jct, wait = found.jct_s[known], found.wait_s[known]
    priority = played.jobs["priority"][known].astype(np.float64)
    weight = priority / priority.sum() if priority.any() else np.full(len(jct), 1 / len(jct))
    p50, p95, p99 = np.percentile(jct, (50, 95, 99)).tolist()
    run = np.maximum(jct - wait, SLOWDOWN_FLOOR_S)
    return {
        "mean_jct_s": float(jct.mean()),
        "weighted_jct_s": float((jct * weight).sum()),
        "p50_jct_s": p50,
        "p95_jct_s": p95,
        "p99_jct_s": p99,
        "mean_wait_s": float(wait.mean()),
        "longest_wait_s": float(wait.max()),
        "bounded_slowdown": float(np.maximum(1, jct / run).mean()),
    }


def _run_metrics(found: Times, played: Replay, gpus: int) -> dict[str, float]:
    """Return the metrics over all jobs and lost runs of the seed; none if they took no time."""
    known = found.is_known
    span = float(found.end_s[known].max() - found.ready_s[known].min())
    if span <= 0:
        return {}
    busy = (found.end_s - found.start_s)[known] * width(played.jobs)[known]
    return {
        "mean_queue": float(found.wait_s[known].sum()) / span,
        "makespan_s": span,
        "throughput_jobs_per_h": float((known & ~played.lost).sum()) / span * 3600,
        "gpu_utilisation": float(busy.sum()) / (span * gpus),
    }


class Compared(NamedTuple):
    """The recorded row with the policies' differences to it, or a note on why there is none."""

    row: RecordedRow | None
    versus: list[Differences]  # [P] of each policy to the row
    notes: list[str]


def compare(
    setting: Setting, seeds: range, names: list[str], figures: dict[str, Floats]
) -> Compared:
    """Return the row of what happened to the jobs of these seeds.

    Args:
        setting: the prepared scenario.
        seeds: S seeds.
        names: [P] names of the policies.
        figures: metric -> [P, S] of the policies.
    """
    if setting.played is None:
        return Compared(None, [], [])
    why = absence(setting)
    found = [] if why else [one for seed in seeds if (one := measure(setting, seed)) is not None]
    why = why or _gaps(found, seeds)
    if why:
        return Compared(None, [], [f"There is no row of what happened: {why}."])
    ours = {
        key: np.array([one.metrics[key] for one in found])
        for key in found[0].metrics
        if all(key in one.metrics for one in found)
    }
    own, theirs = _versus(ours, figures, len(names))
    row = RecordedRow(
        name=RECORDED,
        metrics={key: estimate(values) for key, values in ours.items()},
        per_seed={key: ours[key].tolist() for key in PER_SEED if key in ours},
        versus=dict(zip(names, own, strict=True)),
        jobs=sum(one.jobs for one in found),
        without_start=sum(one.without_start for one in found),
        early=sum(one.early for one in found),
    )
    return Compared(row, theirs, _caveats(row))


def _gaps(found: list[RecordedSeed], seeds: range) -> str:
    """Return why these seeds have no recorded row; "" = they have one."""
    jobs, unknown = sum(one.jobs for one in found), sum(one.without_start for one in found)
    if len(found) < len(seeds):
        return f"{len(seeds) - len(found):,} of {len(seeds):,} seeds have no recorded start at all"
    if unknown > _MOST_UNKNOWN * jobs:
        return f"{unknown:,} of {jobs:,} measured jobs have no recorded start"
    if not any(one.metrics["mean_jct_s"] > 0 for one in found):
        return "no recorded job took any time"
    return ""


def _caveats(row: RecordedRow) -> list[str]:
    notes = []
    if row.without_start:
        notes.append(
            f"{RECORDED}: {row.without_start:,} of {row.jobs:,} measured jobs have no recorded "
            "start and are not in this row"
        )
    if row.early:
        notes.append(
            f"{RECORDED}: {row.early:,} jobs started before they could, by the record: their wait "
            "counts as 0"
        )
    return notes


def _versus(
    ours: dict[str, Floats], figures: dict[str, Floats], policies: int
) -> tuple[list[Differences], list[Differences]]:
    """Return the paired differences of the record to each policy, and of each policy to it.

    Tests of mean JCT are not Holm-corrected: the record is no rival of the best policy.
    """
    own: list[Differences] = [{} for _ in range(policies)]
    theirs: list[Differences] = [{} for _ in range(policies)]
    seeds = len(ours["mean_jct_s"])
    many, few = bootstrap(seeds, RESAMPLES), bootstrap(seeds, FEW_RESAMPLES)
    for metric, values in ours.items():
        key, is_jct = metric.removesuffix("_s") + "_pct", metric == "mean_jct_s"
        for p in range(policies):
            both = np.stack((values, figures[metric][p]))
            found = percent_differences(both, many if is_jct else few)
            for rows, (a, b) in ((own, (0, 1)), (theirs, (1, 0))):
                if (a, b) in found:
                    plain = found[a, b]
                    test = paired_test(both[a], both[b])
                    rows[p][key] = tested(plain, test, None, seeds) if is_jct else plain
    return own, theirs
