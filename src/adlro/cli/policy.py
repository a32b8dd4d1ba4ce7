"""`adlro policy`: what can decide."""

from __future__ import annotations

import click

from adlro.cli.options import stdout


@click.group("policy")
def command() -> None:
    """List policies."""


@command.command("list")
def list_() -> None:
    """Every policy that comes with adlro."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.policies import registry

    table = Table(box=SIMPLE_HEAD)
    table.add_column("policy", no_wrap=True)
    table.add_column("rule")
    for name in registry.names():
        table.add_row(name, registry.about(name))
    stdout().print(table)
