"""`adlro compare`: policies side by side on the same jobs."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adlro.cli.options import (
    FILE,
    changed_scenario,
    check_json_file,
    hand_out,
    say_if_slow,
    scenario_options,
)

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.config import Scenario
    from adlro.evaluate.compare import Comparison, Row
    from adlro.evaluate.stats import Estimate


def _seeds(text: str) -> range:
    """N = seeds 0 to N - 1; A:B = seeds A to B - 1."""
    found = re.fullmatch(r"(?:(\d+):)?(\d+)", text)
    seeds = range(int(found[1] or 0), int(found[2])) if found else range(0)
    if not seeds:
        raise click.BadParameter(
            f"{text!r} is not a number of seeds above 0, nor a range such as 100:200",
            param_hint="--seeds",
        )
    return seeds


def _cell(figure: Estimate, digits: int = 0, scale: float = 1.0) -> str:
    """Mean ± half of the interval."""
    text = f"{figure.mean * scale:,.{digits}f}"
    if figure.ci95 is None:
        return text
    half = (figure.ci95[1] - figure.ci95[0]) / 2 * scale
    return f"{text} ± {half:,.{digits}f}"


def _versus_cell(row: Row, best: str) -> str:
    if row.name == best:
        return "best"
    figure = row.versus[best]["mean_jct_pct"]
    digits = 1 if abs(figure.mean) < 100 else 0
    text = f"{figure.mean:+,.{digits}f}"
    if figure.ci95 is None:
        return text + " %"
    return f"{text} ± {(figure.ci95[1] - figure.ci95[0]) / 2:,.{digits}f} %"


_ROUGH = {  # shown only where the scenario is rough: metric -> heading, digits, scale
    "restarts": ("restarts", 2, 1),
    "lost_gpu_s": ("lost\nGPU-h", 1, 1 / 3600),
    "fragmentation": ("left\nover %", 1, 100),
}


def _is_rough(scenario: Scenario) -> bool:
    """Whether anything happens to the cluster, or jobs take slices of GPUs."""
    from adlro.workloads.happenings import is_quiet

    return not is_quiet(scenario) or any(min(t.gpu_share.drawn()) < 1 for t in scenario.types)


def _columns(best: str, *, is_rough: bool) -> dict[str, Callable[[Row], str]]:
    """Heading -> how to make the cell of a policy's line.

    In a rough scenario there are restarts and slices to tell of, and other columns do without
    their interval, so that the table stays as narrow as it was.
    """

    def figure(key: str, digits: int, scale: float = 1.0) -> Callable[[Row], str]:
        return lambda row: _cell(row.metrics[key], digits, scale)

    def mean(key: str, digits: int, scale: float = 1.0) -> Callable[[Row], str]:
        return lambda row: f"{row.metrics[key].mean * scale:,.{digits}f}"

    columns: dict[str, Callable[[Row], str]] = {
        "mean JCT s": figure("mean_jct_s", 0),
        f"vs {best}": partial(_versus_cell, best=best),
    }
    if not is_rough:
        return columns | {
            "p99 JCT s": figure("p99_jct_s", 0),
            "jobs/h": figure("throughput_jobs_per_h", 1),
            "GPU use %": figure("gpu_utilisation", 1, 100),
            "HyperScore": figure("hyperscore", 2),
        }
    columns |= {
        "p99\nJCT s": mean("p99_jct_s", 0),
        "jobs/h": mean("throughput_jobs_per_h", 1),
        "GPU\nuse %": mean("gpu_utilisation", 1, 100),
    }
    return columns | {
        heading: mean(key, digits, scale) for key, (heading, digits, scale) in _ROUGH.items()
    }


def _table(result: Comparison, *, is_rough: bool) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    best = min(result.policies, key=lambda row: row.metrics["mean_jct_s"].mean).name
    seeds = f"{result.seeds:,} seed{'s' if result.seeds > 1 else ''}"
    table = Table(
        title=f"{result.scenario} · load {result.load:g} · {result.jobs:,} jobs × {seeds} · "
        f"estimates {result.estimates} · measured: {result.measure}",
        caption="± 95 % interval over seeds; differences are paired seed by seed. "
        "JCT = finish - arrival. All jobs run to the end.",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    columns = _columns(best, is_rough=is_rough)
    table.add_column("policy", overflow="fold")
    for heading in columns:
        table.add_column(heading, justify="right", overflow="fold")
    for row in sorted(result.policies, key=lambda row: row.metrics["mean_jct_s"].mean):
        cells = [cell(row) for cell in columns.values()]
        table.add_row(row.name, *cells, style="bold" if row.name == best else None)
    return table


def _compare(scenario: Scenario, policies: str, seeds: range, threads: int) -> Comparison:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from adlro.evaluate.compare import compare
    from adlro.policies import registry
    from adlro.sim.simulator import warm_up
    from adlro.workloads.synthetic import prepare

    setting = prepare(scenario)
    names = (
        registry.names()
        if policies == "all"
        else [n.strip() for n in policies.split(",") if n.strip()]
    )
    chosen = [registry.load(name, setting.public()) for name in dict.fromkeys(names)]
    if not chosen:
        raise click.BadParameter("name at least one policy", param_hint="--policies")
    with say_if_slow():
        warm_up(chosen)
    columns = (TextColumn("comparing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        task = progress.add_task("", total=len(chosen) * len(seeds))

        def watch(*_: object) -> None:
            progress.advance(task)

        return compare(setting, chosen, seeds, threads=threads, watch=watch)


@click.command("compare")
@scenario_options
@click.option(
    "--policies",
    default="all",
    show_default=True,
    help="Names with commas between (see 'adlro policy list'); ./mine.py is a policy of your own.",
)
@click.option(
    "--seeds", default="20", show_default=True, help="N, or a range A:B (B not included)."
)
@click.option(
    "--threads",
    default=lambda: os.cpu_count() or 1,
    show_default="one a core",
    type=click.IntRange(1, 256),
)
@click.option("--json", "json_file", type=FILE, help="Also write all figures here; - = print them.")
def command(
    scenario: str,
    load: float | None,
    estimates: str | None,
    jobs: int | None,
    ageing: float | None,
    policies: str,
    seeds: str,
    threads: int,
    json_file: Path | None,
) -> None:
    """Run policies on the same jobs and print the table, best first.

    SCENARIO is a name (see 'adlro scenario list') or a TOML file of your own.
    """
    numbers = _seeds(seeds)
    check_json_file(json_file)
    wanted = changed_scenario(scenario, load, estimates, jobs, ageing)
    with contextlib.redirect_stdout(sys.stderr):  # a policy that prints must not spoil the JSON
        result = _compare(wanted, policies, numbers, threads)
    table = _table(result, is_rough=_is_rough(wanted))
    hand_out(table, result.model_dump_json(indent=2), json_file)
