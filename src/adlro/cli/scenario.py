"""`adlro scenario`: what can be simulated."""

from __future__ import annotations

import click

from adlro.cli.options import stdout


@click.group("scenario")
def command() -> None:
    """List and show scenarios."""


@command.command("list")
def list_() -> None:
    """Every scenario that comes with adlro."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.config import find_scenario, shipped

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


@command.command("show")
@click.argument("scenario", default="paper16")
def show(scenario: str) -> None:
    """The file itself, and what follows from it: capacity, arrival rate, speeds."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.config import find_scenario, shipped
    from adlro.workloads.synthetic import prepare

    wanted = find_scenario(scenario)
    setting = prepare(wanted)
    known = shipped()
    if scenario in known:
        click.echo(known[scenario].read_text(encoding="utf-8"))
    table = Table(title="speed, V100 = 1", box=SIMPLE_HEAD, title_justify="left")
    table.add_column("job type")
    for model in setting.layout.models:
        table.add_column(model.name, justify="right")
    for t, job_type in enumerate(wanted.types):
        table.add_row(job_type.name, *(f"{speed:.3f}" for speed in setting.speeds[t]))
    stdout().print(table)
    click.echo(f"capacity {setting.capacity_per_s * 3600:,.1f} jobs/h (fluid LP)")
    click.echo(f"arrivals {setting.rate * 3600:,.1f} jobs/h at load {wanted.load:g}")
