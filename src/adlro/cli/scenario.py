"""`adlro scenario`: lists and shows scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from adlro.cli import completion
from adlro.cli.options import as_json, stdout

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.workloads.setting import Setting


@click.group("scenario")
def command() -> None:
    """List and show scenarios."""


@command.command("list")
def list_() -> None:
    """Every scenario that comes with adlro."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.config.files import find_scenario, shipped

    table = Table(box=SIMPLE_HEAD)
    for heading in ("scenario", "GPUs", "jobs", "load", "about"):
        table.add_column(
            heading, justify="right" if heading in ("GPUs", "jobs", "load") else "left"
        )
    for name in shipped():
        scenario = find_scenario(name)
        gpus = sum(group.count * group.gpus for group in scenario.cluster.nodes)
        table.add_row(name, f"{gpus:,}", f"{scenario.jobs:,}", f"{scenario.load:g}", scenario.about)
    stdout().print(table)


def _events(setting: Setting) -> dict[str, int]:
    """Count the events of each kind in the workload of seed 0."""
    import numpy as np

    from adlro.model.state import EVENT_KINDS, FAILURE, REPAIR, SPEED
    from adlro.workloads.events import is_quiet
    from adlro.workloads.generate import generate

    # A quiet scenario has no events, so its jobs (perhaps millions) need not be drawn.
    kinds = np.zeros(0) if is_quiet(setting.scenario) else generate(setting, 0).events["kind"]
    return {EVENT_KINDS[kind]: int((kinds == kind).sum()) for kind in (FAILURE, REPAIR, SPEED)}


def _figures(setting: Setting, up: float, events: dict[str, int]) -> str:
    """Return the scenario, and what follows from it, as JSON."""
    wanted = setting.scenario
    models = [model.name for model in setting.layout.models]
    names = [job_type.name for job_type in wanted.types]
    facts = {
        "scenario": wanted.model_dump(),
        "capacity_jobs_per_h": setting.capacity_per_s * 3600,
        "arrivals_jobs_per_h": setting.rate * 3600,
        "speeds": {
            name: dict(zip(models, row, strict=True))
            for name, row in zip(names, setting.speeds.tolist(), strict=True)
        },
        "gpus_up": up,
        "slowdown_beside": {
            name: dict(zip(names, row, strict=True))
            for name, row in zip(names, setting.colocation.tolist(), strict=True)
        },
        "events_of_seed_0": events,
    }
    return as_json(facts)


def _speeds(setting: Setting) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="speed, V100 = 1", box=SIMPLE_HEAD, title_justify="left")
    table.add_column("job type")
    for model in setting.layout.models:
        table.add_column(model.name, justify="right")
    for job_type, speeds in zip(setting.scenario.types, setting.speeds, strict=True):
        table.add_row(job_type.name, *(f"{speed:.3f}" for speed in speeds))
    return table


@command.command("show")
@click.argument("scenario", default="paper16", shell_complete=completion.scenarios)
@click.option("--json", "is_json", is_flag=True, help="Print everything as JSON instead.")
def show(scenario: str, is_json: bool) -> None:
    """The file itself, and what follows from it: capacity, arrival rate, speeds, events."""
    from adlro.config.files import find_scenario, shipped
    from adlro.workloads.capacity import gpus_up
    from adlro.workloads.setting import prepare

    wanted = find_scenario(scenario)
    setting = prepare(wanted)
    events, up = _events(setting), float(gpus_up(wanted, setting.layout).sum())
    if is_json:
        click.echo(_figures(setting, up, events))
        return
    known = shipped()
    if scenario in known:
        click.echo(known[scenario].read_text(encoding="utf-8"))
    stdout().print(_speeds(setting))
    click.echo(f"capacity {setting.capacity_per_s * 3600:,.1f} jobs/h (fluid LP)")
    click.echo(f"arrivals {setting.rate * 3600:,.1f} jobs/h at load {wanted.load:g}")
    if any(events.values()):
        total = len(setting.layout.gpus)
        click.echo(f"GPUs up {up:,.1f} of {total:,} on average (failures only)")
        click.echo(
            f"events in seed 0: {events['failure']:,} failures and departures, "
            f"{events['repair']:,} repairs and arrivals of nodes, {events['speed']:,} speed changes"
        )
