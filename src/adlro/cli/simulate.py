"""`adlro simulate`: one run, looked at closely."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adlro.cli.options import (
    FILE,
    PRINTED,
    changed_scenario,
    check_json_file,
    hand_out,
    say_if_slow,
    scenario_options,
)

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.evaluate.metrics import Metrics
    from adlro.sim.simulator import Result
    from adlro.workloads.synthetic import Setting

_SHOWN = {  # metric -> what people call it, digits, scale
    "mean_jct_s": ("mean JCT, s", 0, 1),
    "weighted_jct_s": ("priority-weighted JCT, s", 0, 1),
    "p50_jct_s": ("median JCT, s", 0, 1),
    "p95_jct_s": ("p95 JCT, s", 0, 1),
    "p99_jct_s": ("p99 JCT, s", 0, 1),
    "mean_wait_s": ("mean wait, s", 0, 1),
    "longest_wait_s": ("longest wait, s", 0, 1),
    "killed_jobs": ("killed by their limit", 0, 1),
    "bounded_slowdown": ("bounded slowdown", 2, 1),
    "makespan_s": ("makespan, h", 2, 1 / 3600),
    "throughput_jobs_per_h": ("throughput, jobs/h", 1, 1),
    "gpu_utilisation": ("GPU utilisation, %", 1, 100),
    "idle_gpu_s": ("idle GPU time, GPU-h", 1, 1 / 3600),
    "gpu_imbalance": ("imbalance over GPUs (CV)", 3, 1),
    "model_imbalance": ("imbalance over models (CV)", 3, 1),
    "energy_kwh": ("energy, kWh", 1, 1),
    "jain_users": ("fairness over users (Jain)", 3, 1),
    "finish_time_fairness": ("finish-time fairness, p95", 2, 1),
    "reward": ("paper's R per job", 0, 1),
    "hyperscore": ("HyperScore", 2, 1),
}


def _table(metrics: Metrics) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for key, figure in metrics._asdict().items():
        label, digits, scale = _SHOWN[key]
        table.add_row(label, f"{figure * scale:,.{digits}f}")
    return table


def _pool_table(setting: Setting, result: Result) -> Table:
    import numpy as np
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for heading in ("pool", "GPUs", "jobs", "busy %"):
        table.add_column(heading, justify="left" if heading == "pool" else "right")
    pool_of = setting.layout.nodes["pool"][setting.layout.gpus["node"]]
    busy_s = np.bincount(pool_of, result.gpus["busy"])
    span = float(result.world["idle_seconds"] + result.gpus["busy"].sum()) / len(pool_of)
    for p, name in enumerate(setting.layout.pool_names):
        gpus = int(setting.pools[p]["gpus"])
        jobs = int((result.outcome["pool"] == p).sum())
        table.add_row(name, f"{gpus:,}", f"{jobs:,}", f"{100 * busy_s[p] / gpus / span:.1f}")
    return table


@click.command("simulate")
@scenario_options
@click.option("--policy", default="min-min", show_default=True, help="Name, or a file of your own.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option("--json", "json_file", type=FILE, help="Also write the figures here; - = print them.")
@click.option("--gantt", type=FILE, help="Draw the schedule into this HTML file.")
def command(
    scenario: str,
    load: float | None,
    estimates: str | None,
    jobs: int | None,
    policy: str,
    seed: int,
    json_file: Path | None,
    gantt: Path | None,
) -> None:
    """Run one policy on one seed and print its figures.

    SCENARIO is a name (see 'adlro scenario list') or a TOML file of your own.
    """
    import json

    from rich.console import Console, Group

    from adlro import __version__
    from adlro.evaluate.compare import in_background, run_one
    from adlro.evaluate.metrics import measure
    from adlro.evaluate.output import check_writable, write_text
    from adlro.policies import registry
    from adlro.sim.simulator import warm_up
    from adlro.workloads.synthetic import generate, prepare

    check_json_file(json_file)
    check_writable(gantt)
    wanted = changed_scenario(scenario, load, estimates, jobs)
    setting = prepare(wanted)
    chosen = registry.load(policy, setting)
    with say_if_slow():
        warm_up([chosen])
    workload = generate(setting, seed)
    keep = gantt is not None
    status = Console(stderr=True).status(f"running {wanted.jobs:,} jobs …")
    with status, contextlib.redirect_stdout(sys.stderr):  # a policy that prints spoils no JSON
        result = in_background(lambda: run_one(setting, workload, chosen, seed, keep_spans=keep))
    metrics = measure(setting, workload, result)
    head = (
        f"{wanted.name} · {chosen.name} · load {wanted.load:g} · {wanted.jobs:,} jobs · seed {seed}"
    )
    facts = {"version": __version__, "scenario": wanted.name, "policy": chosen.name, "seed": seed}
    facts |= {"load": wanted.load, "estimates": str(wanted.estimates), "jobs": wanted.jobs}
    facts |= {"measure": str(wanted.measure), "metrics": metrics._asdict()}
    shown = Group(head, _table(metrics), _pool_table(setting, result))
    hand_out(shown, json.dumps(facts, indent=2), json_file)
    if gantt is not None:
        from adlro.evaluate.report.gantt import draw

        write_text(gantt, draw(setting, workload, result, head))
        click.echo(f"schedule: {gantt} (open it in a browser)", err=json_file == PRINTED)
