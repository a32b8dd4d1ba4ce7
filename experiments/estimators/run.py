"""How long will it run? Estimators on real histories, and the JCT that each of them gives.

Every history is split by submission: the first half warms or trains, the second is measured.
"""

from __future__ import annotations

import hashlib
import itertools
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import Result, Table, parser, plus_minus, run, shared
from comparison_cache import ComparisonCache, fingerprint
from estimators import boosting
from estimators.reliability import coverage_table, reliability_table
from versus import by_name

from adlro.config.files import adjusted, scenario_of
from adlro.errors import ConfigError
from adlro.estimates import by_user, job_table, last_two_alike, memory
from adlro.estimates.errors import Errors, later_part
from adlro.estimates.errors import errors as errors_of
from adlro.estimates.estimator import DEFAULTS
from adlro.estimates.job_table import JobTable
from adlro.evaluate.compare import compare
from adlro.evaluate.prediction_error import (
    BLOCKS,
    PredictionErrors,
    paired_difference,
    prediction_errors,
)
from adlro.evaluate.stats import Estimate
from adlro.model.history import History
from adlro.model.state import Floats, Mask
from adlro.policies import registry
from adlro.sim import simulator
from adlro.workloads import history_file
from adlro.workloads.formats.registry import read
from adlro.workloads.generate import with_estimates
from adlro.workloads.setting import prepare

R = TypeVar("R")
FOLDER = Path(__file__).parent

# Those with a user or a request first: the bars are about the first five.
FILES = {
    "ThetaGPU": "thetagpu/thetagpu_jobs.dev.csv.gz",
    "MIT Supercloud": "mit_supercloud/slurm_9628_jobs.csv.gz",
    "RICC": "swf/RICC-2010-2.swf.gz",
    "Mira": "swf/ALCF-Mira-2018.swf.gz",
    "HPC2N": "swf/HPC2N-2002-2-first3170.swf.gz",
    "Eagle": "nrel_eagle/sample_eagle_data.csv.gz",
    "NASA": "swf/NASA-iPSC-1993-3.1-cln.swf.gz",
    "LCG": "swf/LCG-2005-1.swf.gz",
    "SDSC SP2": "swf/SDSC-SP2-1998-4_cqsim_output.rst.gz",
    "Philly": "philly/philly_jobs.dev.csv.gz",
    "openb": "alibaba_openb_2023/openb_pod_list_default.dev.csv.gz",
    "Helios Venus": "helios/venus_gpu_jobs_until_2020-08.csv.gz",
    "PAI": "alibaba_pai_2020/pai_gpu_tasks_8pct.dev.csv.gz",
    "ITP": "microsoft_itp_2021/cluster08.csv.gz",
}
QUICK = ("HPC2N", "Eagle")
BARRED = ("ThetaGPU", "MIT Supercloud", "RICC", "Mira", "HPC2N")
RIVALS = ("request", "last two", "last two alike")  # the memory must be better on all histories
ESTIMATORS = (*RIVALS, "user mean", "gradient boosting", "memory")
FADINGS, NATS, MOST_JOBS = (0.4, 0.8, 1.2), (0.7, 1.0, 1.4), 70_000
TRAININGS = 40  # of gradient boosting, each before another fortieth of the measured jobs
WITHIN = 0.10  # of gradient boosting's error

PLAYED = ("ThetaGPU", "MIT Supercloud", "Philly", "openb", "Helios Venus", "PAI", "ITP")
QUICK_PLAYED = ("ThetaGPU",)
POLICIES = ("min-min", "adlro")
JOBS, WINDOWS, LOAD = 2_000, 4, 0.9
CLUSTER = {  # 192 GPUs of three models
    "nodes": [
        {"name": name, "gpu": gpu, "count": 8, "gpus": 8, "cores": 96, "memory_gb": 768}
        for name, gpu in (("ampere", "A100 40GB"), ("volta", "V100 32GB"), ("turing", "T4"))
    ]
}


class Predicted(NamedTuple):
    """A history, its later half, and log seconds [J] of each job by estimator."""

    path: Path
    history: History
    later: Mask
    log_s: dict[str, Floats]
    errors: dict[str, Errors]
    us: dict[str, float]  # CPU microseconds for each job
    difference: Estimate  # mean |log error| of memory minus that of gradient boosting
    found: PredictionErrors  # of the estimators that learn on line, with intervals


def _timed(work: Callable[[], R]) -> tuple[R, float]:
    before = time.process_time()
    found = work()
    return found, time.process_time() - before


def _boosted(name: str, one: History, jobs: JobTable, cache: ComparisonCache) -> boosting.Boosted:
    """Predictions of gradient boosting, from the cache if they are of the same jobs and code."""
    path = cache.folder / f"boosting-{name.lower().replace(' ', '-')}.npz"
    later = later_part(one, 0.5)
    mark = boosting.fingerprint(one, jobs, later, TRAININGS)
    found = boosting.cached(path, mark) if cache.is_resumed else None
    if found is None:
        found = boosting.boosted(one, jobs, later, TRAININGS)
        boosting.store(path, mark, found)
    return found


def _predicted(name: str, cache: ComparisonCache) -> Predicted:
    """Every estimator on one history."""
    sys.stderr.write(f"{name}\n")
    path = shared() / "data" / FILES[name]
    history = read(path)
    later = later_part(history, 0.5)
    found = prediction_errors(history)
    jobs = found.jobs
    spent = {}
    for key, kind in (("memory", memory.Memory), ("last two alike", last_two_alike.LastTwoAlike)):
        _, spent[key] = _timed(lambda kind=kind: kind.create(DEFAULTS).follow(jobs))
    _, by_user_s = _timed(lambda: by_user.ByUser(DEFAULTS).statistics(jobs))
    boost = _boosted(name, history, jobs, cache)
    spent["gradient boosting"] = boost.cpu_s
    log_s = {**found.log_s, "gradient boosting": boost.log_s}
    errors = {key: errors_of(log_s[key], jobs.log_s, later) for key in ESTIMATORS}
    us = {key: 1e6 * spent.get(key, by_user_s) / history.jobs for key in ESTIMATORS}
    difference = paired_difference(
        log_s["memory"], log_s["gradient boosting"], jobs.log_s, found.by_submission(later)
    )
    return Predicted(path, history, later, log_s, errors, us, difference, found)


def _fields(history: History) -> str:
    """What there is to learn from."""
    names = ("user", "account", "queue", "qos", "name", "requested_s", "gpus", "cores", "memory_mb")
    short = {"requested_s": "request", "memory_mb": "memory"}
    return ", ".join(short.get(n, n) for n in names if history.missing(n) < history.jobs)


def _verdict(name: str, errors: dict[str, Errors]) -> str:
    """Whether the memory came to what was asked of it."""
    memory = errors["memory"].mae_log
    rivals = RIVALS if name in BARRED else (*RIVALS, "user mean")
    if not all(memory < errors[rival].mae_log for rival in rivals):
        return "**missed**"
    over = memory / errors["gradient boosting"].mae_log - 1
    return "met" if over <= WITHIN else f"met; boosting is better by {over / (1 + over):.0%}"


def _share_table(caption: str, rows: dict[str, Predicted], field: str) -> Table:
    lines = [
        [name, *(f"{getattr(one.errors[key], field) * 100:.0f}" for key in ESTIMATORS)]
        for name, one in rows.items()
    ]
    return Table(caption, ("history", *ESTIMATORS), lines, is_brief=False)


def _cost_table(rows: dict[str, Predicted]) -> Table:
    lines = [
        [name, *(f"{one.us[key]:.1f}" for key in ESTIMATORS[1:])] for name, one in rows.items()
    ]
    caption = (
        "CPU microseconds for each job: its estimate and, where something is learned, its end; of "
        f"gradient boosting {TRAININGS} trainings, and predictions of many jobs at once."
    )
    return Table(caption, ("history", *ESTIMATORS[1:]), lines, is_brief=False)


def _paired_table(rows: dict[str, Predicted], figures: dict[str, dict[str, float]]) -> Table:
    """Memory and gradient boosting, job by job."""
    lines = []
    for name, one in rows.items():
        boost, found = one.errors["gradient boosting"].mae_log, one.difference
        figures[f"{name}, memory minus gradient boosting"] = {"mae_log": found.mean}
        low, high = (100 * end / boost for end in found.ci95 or (np.nan, np.nan))
        leader = "memory" if found.mean < 0 else "gradient boosting"
        lines.append(
            [
                name,
                f"{one.errors['memory'].mae_log:.3f}",
                f"{boost:.3f}",
                f"{100 * found.mean / boost:+.1f} % ({low:+.1f} to {high:+.1f})",
                leader if found.is_settled else f"open, {leader} by a little",
            ]
        )
    head = ("history", "memory", "gradient boosting", "difference (95 % interval)", "better")
    caption = (
        "Memory against gradient boosting on the same jobs: difference of the errors, with a "
        f"Student interval over {BLOCKS} blocks of jobs in a row; below 0 the memory is better."
    )
    return Table(caption, head, lines, is_brief=True)


class Stage(NamedTuple):
    """A history's later half on a cluster."""

    scenario: Any
    windows: range


def _stage(one: Predicted) -> Stage:
    """Windows of jobs in a row as seeds, at one load."""
    history = one.history
    tables = {
        "jobs": 1, "load": LOAD, "measure": "after 10 %", "estimates": "memory",
        "users": history_file.users_of(history),
        "accounts": list(history_file.accounts_of(history)),
        "cluster": CLUSTER,
        "history": {
            "file": str(one.path), "from_s": float(history.submit_s[one.later].min()),
            "speeds": "measured-mix", "unfit": "drop",
        },
    }  # fmt: skip
    tried = prepare(scenario_of(tables, one.path))
    if tried.played is None:
        raise ConfigError(f"{one.path}: is not played")
    jobs = min(JOBS, len(tried.played.jobs))
    windows = range(min(WINDOWS, len(tried.played.jobs) // jobs))
    return Stage(adjusted(tried.scenario, jobs=jobs), windows)


def _played(
    name: str, one: Predicted, quick: bool, cache: ComparisonCache
) -> dict[str, dict[str, Any]]:
    """Mean JCT by estimator and policy."""
    stage = _stage(one)
    windows = stage.windows[:1] if quick else stage.windows
    found = {}
    for key in (*ESTIMATORS, "oracle"):
        if key == "oracle":
            seen, setting = b"", prepare(adjusted(stage.scenario, estimates="oracle"))
        else:
            filled = np.exp(np.where(one.later, one.log_s[key], 0.0))  # those before: not played
            seen, setting = filled.tobytes(), with_estimates(prepare(stage.scenario), filled)
        chosen = [registry.load(policy, setting) for policy in POLICIES]
        simulator.warm_up(chosen)
        said = hashlib.blake2b(seen, digest_size=16).hexdigest()
        mark = fingerprint(setting.scenario, chosen, windows, said)
        made = cache.get(
            f"{name} {key}",
            mark,
            lambda: compare(setting, chosen, windows, threads=1),  # noqa: B023  called at once
        )
        found[key] = {p: by_name(made)[p].metrics["mean_jct_s"] for p in POLICIES}
    return found


def _jct_tables(
    rows: dict[str, Predicted],
    quick: bool,
    figures: dict[str, dict[str, float]],
    cache: ComparisonCache,
) -> list[Table]:
    lines: dict[str, list[list[str]]] = {name: [] for name in POLICIES}
    for name in QUICK_PLAYED if quick else PLAYED:
        sys.stderr.write(f"{name}: played\n")
        one = rows.get(name) or _predicted(name, cache)
        found = _played(name, one, quick, cache)
        for policy in POLICIES:
            best = found["oracle"][policy].mean
            means = [found[key][policy].mean for key in ESTIMATORS]
            cells = [f"{mean:,.0f} ({100 * (mean / best - 1):+.0f} %)" for mean in means]
            jct = found["oracle"][policy]
            lines[policy].append([name, *cells, plus_minus(jct.mean, jct.ci95, 0)])
            figures[f"{name}, {policy}"] = {key: found[key][policy].mean for key in found}
    head = ("history", *ESTIMATORS, "oracle")
    caption = (
        "Mean JCT in seconds under `{}` by estimator, and how much longer than with the true run "
        "times (oracle)."
    )
    return [
        Table(caption.format(policy), head, lines[policy], is_brief=policy == "adlro")
        for policy in POLICIES
    ]


def _own_table(rows: dict[str, Predicted], figures: dict[str, dict[str, float]]) -> Table:
    """What weighing chosen for each history alone would give: on its second quarter."""
    lines = []
    for name, one in rows.items():
        if one.history.jobs > MOST_JOBS:
            continue
        sys.stderr.write(f"{name}: weighing of its own\n")
        jobs = job_table.table_of(one.history)
        quarter = later_part(one.history, 0.25) & ~one.later
        found = {}
        for fading, nats in itertools.product(FADINGS, NATS):
            tried = memory.Memory()
            tried.weigh(memory.WEIGHING._replace(fading=fading, nats=nats))
            log_s = tried.follow(jobs).log_s[:, 0]
            error = errors_of(log_s, jobs.log_s, quarter).mae_log
            found[fading, nats] = (error, errors_of(log_s, jobs.log_s, one.later).mae_log)
        own = min(found, key=lambda key: found[key][0])
        shipped, mine = one.errors["memory"].mae_log, found[own][1]
        gain = f"{100 * (mine / shipped - 1):+.1f} %"
        lines.append([name, f"{shipped:.3f}", f"{mine:.3f}", gain, *(f"{x:g}" for x in own)])
        figures[f"{name}, weighing of its own"] = {"mae_log": mine}
    head = ("history", "memory as shipped", "weighing of its own", "difference", "fading", "nats")
    caption = (
        "The same memory if fading and sharpness (nats) were chosen for each history alone, by its "
        f"second quarter, out of {len(FADINGS) * len(NATS)} (histories up to {MOST_JOBS:,} jobs)."
    )
    return Table(caption, head, lines, is_brief=False)


def make(quick: bool, cache: ComparisonCache) -> Result:
    """All tables."""
    cache.open()
    prediction_errors(read(shared() / "data" / FILES["HPC2N"]))  # compiled before anything is timed
    rows = {name: _predicted(name, cache) for name in (QUICK if quick else FILES)}
    table, figures = [], {}
    for name, one in rows.items():
        best = min(one.errors[key].mae_log for key in ESTIMATORS)
        cells = [
            f"**{mae:.3f}**" if mae == best else f"{mae:.3f}"
            for mae in (one.errors[key].mae_log for key in ESTIMATORS)
        ]
        jobs = f"{one.errors['memory'].jobs:,}"
        table.append([name, _fields(one.history), jobs, *cells, _verdict(name, one.errors)])
        for key in ESTIMATORS:
            figures[f"{name}, {key}"] = {
                "mae_log": one.errors[key].mae_log,
                "within_2": one.errors[key].within_2,
                "under": one.errors[key].under,
            }
    found = {name: one.found for name, one in rows.items()}
    later = {name: one.later for name, one in rows.items()}
    more = [
        _paired_table(rows, figures),
        coverage_table(found, later, figures),
        reliability_table(found, later, figures),
        _share_table("Share of the jobs within a factor of 2, %.", rows, "within_2"),
        _share_table("Share of the jobs whose estimate is too short, %.", rows, "under"),
        _cost_table(rows),
        _own_table(rows, figures),
        *_jct_tables(rows, quick, figures, cache),
    ]
    head = ("history", "fields", "jobs measured", *ESTIMATORS, "bar")
    details = {name: one.us for name, one in rows.items()}
    return Result(head, table, figures, details, BARRED, more)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    options = parser(__doc__ or "", FOLDER).parse_args(arguments)
    cache = ComparisonCache(options.keep, options.resume)
    return run(options, FOLDER, lambda: make(options.quick, cache))


if __name__ == "__main__":
    sys.exit(main())
