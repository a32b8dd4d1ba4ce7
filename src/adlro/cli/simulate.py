"""`adlro simulate`: runs one policy on one seed and prints all metrics."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from adlro.cli import completion
from adlro.cli.options import (
    FILE,
    PRINTED,
    as_json,
    changed_scenario,
    check_json_file,
    hand_out,
    say,
    say_if_slow,
    scenario_options,
)

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.config.scenario import Scenario
    from adlro.evaluate.calibration import Calibration
    from adlro.evaluate.metrics import Metrics
    from adlro.sim.simulator import RunResult
    from adlro.workloads.setting import Setting
    from adlro.workloads.workload import Workload

_SHOWN = {  # metric -> what people call it, digits, scale
    "mean_jct_s": ("mean JCT, s", 0, 1),
    "weighted_jct_s": ("priority-weighted JCT, s", 0, 1),
    "p50_jct_s": ("median JCT, s", 0, 1),
    "p95_jct_s": ("p95 JCT, s", 0, 1),
    "p99_jct_s": ("p99 JCT, s", 0, 1),
    "mean_wait_s": ("mean wait, s", 0, 1),
    "longest_wait_s": ("longest wait, s", 0, 1),
    "mean_queue": ("jobs waiting, mean over time", 2, 1),
    "restarts": ("restarts of a job", 3, 1),
    "killed_jobs": ("killed by their limit", 0, 1),
    "bounded_slowdown": ("bounded slowdown", 2, 1),
    "makespan_s": ("makespan, h", 2, 1 / 3600),
    "throughput_jobs_per_h": ("throughput, jobs/h", 1, 1),
    "offered_load": ("offered load", 3, 1),
    "gpu_utilisation": ("GPU utilisation, %", 1, 100),
    "idle_gpu_s": ("idle GPU time, GPU-h", 1, 1 / 3600),
    "lost_gpu_s": ("work thrown away, GPU-h", 1, 1 / 3600),
    "fragmentation": ("left over beside slices, %", 1, 100),
    "gpu_imbalance": ("imbalance over GPUs (CV)", 3, 1),
    "model_imbalance": ("imbalance over models (CV)", 3, 1),
    "energy_kwh": ("energy, kWh", 1, 1),
    "energy_per_job_kwh": ("energy of a job, kWh", 3, 1),
    "energy_delay": ("energy x mean JCT, kWh h", 1, 1),
    "cost": ("cost (price, or V100-h)", 1, 1),
    "cost_per_job": ("cost of a job", 3, 1),
    "jain_users": ("fairness over users (Jain)", 3, 1),
    "jain_accounts": ("fairness over accounts (Jain)", 3, 1),
    "finish_time_fairness": ("finish-time fairness, p95", 2, 1),
    "reward": ("paper's R per job", 0, 1),
    "hyperscore": ("HyperScore", 2, 1),
}


class _Files(NamedTuple):
    """Paths of the output files, besides the printed table."""

    json: Path | None
    gantt: Path | None
    telemetry: Path | None
    every_s: float  # between two samples of telemetry


class _Run(NamedTuple):
    policy: str
    seed: int
    setting: Setting
    workload: Workload
    result: RunResult
    calibration: Calibration | None

    def __str__(self) -> str:
        """Return the title of the table: scenario, policy, load, jobs and seed."""
        wanted = self.setting.scenario
        return (
            f"{wanted.name} · {self.policy} · load {wanted.load:g} · {wanted.jobs:,} jobs · "
            f"seed {self.seed}"
        )


class _Record(NamedTuple):
    """What was recorded of the jobs that were simulated."""

    metrics: dict[str, float]  # empty = unknown
    calibration: Calibration | None  # of the policy `slurm`
    notes: list[str]


def _record(run: _Run) -> _Record:
    from adlro.evaluate import recorded
    from adlro.evaluate.comparison import history_notes

    notes = [*history_notes(run.setting.scenario), *run.setting.filled]
    if run.setting.played is None:
        return _Record({}, None, notes)
    why = recorded.absence(run.setting)
    found = None if why else recorded.measure(run.setting, run.seed)
    if found is None:
        why = why or "no measured job has a recorded start"
        return _Record({}, None, [*notes, f"What happened is not shown: {why}."])
    if found.without_start:
        count = f"{found.without_start:,} of {found.jobs:,} measured jobs have no recorded start"
        notes.append(f"recorded: {count} and are not counted there")
    return _Record(found.metrics, run.calibration, notes)


def _table(metrics: Metrics, recorded: Mapping[str, float]) -> Table:
    from rich.box import SIMPLE, SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD if recorded else SIMPLE, show_header=bool(recorded))
    table.add_column()
    for heading in ("simulated", "recorded") if recorded else ("simulated",):
        table.add_column(heading, justify="right")
    for key, figure in metrics._asdict().items():
        label, digits, scale = _SHOWN[key]
        true = [f"{recorded[key] * scale:,.{digits}f}"] if key in recorded else []
        table.add_row(label, f"{figure * scale:,.{digits}f}", *true)
    return table


def _pool_table(setting: Setting, workload: Workload, result: RunResult) -> Table:
    """Return a table of jobs and utilisation by pool.

    It shows down time and slices only if there were any.
    """
    import numpy as np
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.evaluate.downtime import up_seconds, window
    from adlro.model.state import WHOLE

    layout, within = setting.layout, window(workload, result)
    node_pool, gpu_pool = layout.nodes["pool"], layout.nodes["pool"][layout.gpus["node"]]
    away = within.length - up_seconds(workload.events, layout.nodes, within)
    gpus, busy_s = np.bincount(gpu_pool), np.bincount(gpu_pool, result.gpus["busy"])
    all_s, down_s = gpus * within.length, np.bincount(node_pool, away * layout.nodes["gpus"])
    pool_of, slices = result.outcome["pool"], workload.jobs["share"] < WHOLE
    columns = {"pool": list(layout.pool_names), "GPUs": [f"{n:,}" for n in gpus]}
    columns["jobs"] = [f"{n:,}" for n in np.bincount(pool_of, minlength=len(gpus))]
    if slices.any():
        counted = np.bincount(pool_of[slices], minlength=len(gpus))
        columns["of them slices"] = [f"{n:,}" if n else "" for n in counted]
    is_up = down_s < all_s
    busy = 100 * np.divide(busy_s, all_s - down_s, out=np.zeros(len(gpus)), where=is_up)
    heading = "busy % of time up" if down_s.any() else "busy %"
    columns[heading] = [f"{share:.1f}" for share in busy]
    if down_s.any():
        columns["down %"] = [f"{share:.1f}" for share in 100 * down_s / all_s]
    table = Table(box=SIMPLE_HEAD)
    for heading in columns:
        table.add_column(heading, justify="left" if heading == "pool" else "right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def _finite(_: click.Context, option: click.Parameter, value: float) -> float:
    """Refuse NaN, which click's ranges accept."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds")
    return value


def _check_files(files: _Files) -> None:
    """Check before the run that all output files can be written, each at its own path."""
    from adlro.files import check_writable

    check_json_file(files.json)
    taken = {} if files.json in (None, PRINTED) else {Path(files.json).resolve(): "--json"}
    for option, path in (("--gantt", files.gantt), ("--telemetry", files.telemetry)):
        if path is None:
            continue
        if path == PRINTED:
            raise click.BadParameter("it cannot be printed; name a file", param_hint=option)
        check_writable(path)
        other = taken.setdefault(path.resolve(), option)
        if other != option:
            raise click.BadParameter(f"{path} is the file of {other} too", param_hint=option)


def _simulate(wanted: Scenario, policy: str, seed: int, files: _Files) -> _Run:
    from rich.console import Console

    from adlro.evaluate.calibration import Twin
    from adlro.evaluate.compare import in_background, run_one
    from adlro.evaluate.telemetry import count_rows
    from adlro.policies import registry
    from adlro.sim.simulator import warm_up
    from adlro.workloads.generate import generate
    from adlro.workloads.setting import prepare

    setting = prepare(wanted)
    chosen = registry.load(policy, setting)
    workload = generate(setting, seed)
    if files.telemetry is not None:  # a run lasts at least as long as jobs arrive
        count_rows(
            setting,
            float(workload.jobs["arrival"][-1] - workload.jobs["arrival"][0]),
            files.every_s,
        )
    with say_if_slow():
        warm_up([chosen])
    keep = files.gantt is not None or files.telemetry is not None
    status = Console(stderr=True).status(f"running {wanted.jobs:,} jobs …")
    with status, contextlib.redirect_stdout(sys.stderr):  # a policy that prints spoils no JSON
        result = in_background(lambda: run_one(setting, workload, chosen, seed, keep_spans=keep))
    twin = Twin(setting)
    twin.watch(chosen, seed, workload, result)
    return _Run(chosen.name, seed, setting, workload, result, twin.calibration([seed]))


def _figures(run: _Run, metrics: Metrics, record: _Record) -> str:
    """Return the metrics of the run as JSON."""
    from adlro import __version__

    wanted = run.setting.scenario
    facts: dict[str, object] = {
        "version": __version__,
        "scenario": wanted.name,
        "policy": run.policy,
    }
    facts |= {"seed": run.seed, "load": wanted.load, "estimates": str(wanted.estimates)}
    facts |= {"jobs": wanted.jobs, "measure": str(wanted.measure), "metrics": metrics._asdict()}
    if run.setting.played is not None:
        found = record.calibration
        facts |= {"recorded": record.metrics or None, "notes": record.notes}
        facts |= {"calibration": None if found is None else found.model_dump()}
    return as_json(facts)


def _write_gantt(path: Path, run: _Run, *, quiet: bool) -> None:
    from adlro.evaluate.report.gantt import draw
    from adlro.evaluate.report.naming import naming_of
    from adlro.files import write_text

    naming = naming_of(run.setting, run.workload.jobs, run.seed)
    write_text(path, draw(run.setting, run.workload, run.result, str(run), naming))
    say(f"schedule: {path} (open it in a browser)", err=quiet)


def _write_telemetry(path: Path, run: _Run, every_s: float, *, quiet: bool) -> None:
    from adlro.evaluate.telemetry import series
    from adlro.files import write_parts

    rows, parts = series(run.setting, run.workload, run.result, every_s)
    write_parts(path, parts)
    say(f"telemetry: {path} ({rows:,} rows)", err=quiet)


@click.command("simulate")
@scenario_options
@click.option(
    "--policy",
    default="adlro",
    shell_complete=completion.policy,
    show_default=True,
    help="Name (see 'adlro policy list'), or a file of your own: ./mine.py, ./trained.npz.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option("--json", "json_file", type=FILE, help="Also write the figures here; - = print them.")
@click.option("--gantt", type=FILE, help="Draw the schedule into this HTML file.")
@click.option(
    "--telemetry", type=FILE, help="Write what the GPUs' sensors show into this CSV file."
)
@click.option(
    "--telemetry-every",
    default=60.0,
    show_default=True,
    type=click.FloatRange(1e-3, 1e9),
    callback=_finite,
    help="Seconds between two samples.",
)
def command(
    scenario: str,
    load: float | None,
    estimates: str | None,
    jobs: int | None,
    ageing: float | None,
    slurm_config: Path | None,
    policy: str,
    seed: int,
    json_file: Path | None,
    gantt: Path | None,
    telemetry: Path | None,
    telemetry_every: float,
) -> None:
    """Run one policy on one seed and print its figures.

    SCENARIO is a name (see 'adlro scenario list') or a TOML file of your own.
    """
    from rich.console import Group

    from adlro.cli import calibration_table
    from adlro.config.files import adjusted
    from adlro.evaluate.metrics import measure

    files = _Files(json_file, gantt, telemetry, telemetry_every)
    _check_files(files)
    wanted = changed_scenario(scenario, load, estimates, jobs, ageing, slurm_config)
    if telemetry is not None:
        wanted = adjusted(wanted, telemetry=True)
    run = _simulate(wanted, policy, seed, files)
    metrics, quiet = measure(run.setting, run.workload, run.result), json_file == PRINTED
    record = _record(run)
    told = [] if record.calibration is None else calibration_table.shown(record.calibration)
    shown = Group(
        str(run),
        _table(metrics, record.metrics),
        _pool_table(run.setting, run.workload, run.result),
        *told,
        *(f"Note: {note}" for note in record.notes),
    )
    hand_out(shown, _figures(run, metrics, record), json_file)
    if gantt is not None:
        _write_gantt(gantt, run, quiet=quiet)
    if telemetry is not None:
        _write_telemetry(telemetry, run, telemetry_every, quiet=quiet)
