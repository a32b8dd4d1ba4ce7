"""`adlro policy`: lists and shows policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from adlro.cli import completion, explain
from adlro.cli.options import as_json, stdout

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.policies.loading.card import Budget, Figure
    from adlro.policies.loading.learned import Learned
    from adlro.policies.registry import Facts

_AHEAD = (
    "Any compiled policy that only starts jobs can look ahead: min-min+lookahead "
    "(see 'adlro policy show min-min+lookahead')."
)


@click.group("policy")
def command() -> None:
    """List, show and explain policies."""


command.add_command(explain.command)


def _kind(facts: Facts) -> str:
    from adlro.policies import lookahead
    from adlro.policies.registry import weights_file

    if lookahead.split(facts.name)[1]:
        return "looks ahead"
    if weights_file(facts.name) is not None:
        return "learned"
    return "compiled" if facts.is_compiled else "Python"


@command.command("list")
def list_() -> None:
    """Every policy that comes with adlro."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.policies import registry

    table = Table(box=SIMPLE_HEAD)
    table.add_column("policy", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("rule")
    for name in registry.names():
        table.add_row(name, _kind(registry.facts(name)), registry.about(name))
    console = stdout()
    console.print(table)
    console.print(_AHEAD)


def _pairs(rows: dict[str, str]) -> Table:
    """Return a table of two columns, labels and texts; rows with an empty text are left out."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for label, text in rows.items():
        if text:
            table.add_row(label, text)
    return table


def _figures(title: str, figures: tuple[Figure, ...]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    table.add_column("scenario")
    table.add_column("load", justify="right")
    table.add_column("versus")
    for heading in ("mean JCT", "95 % interval"):
        table.add_column(heading, justify="right")
    table.add_column("")
    table.add_column("seeds", justify="right")
    for figure in figures:
        low, high = figure.ci95
        seeds = f"{figure.seeds.first}-{figure.seeds.last}" if figure.seeds else ""
        table.add_row(
            figure.scenario,
            f"{figure.load:g}",
            figure.rival,
            f"{figure.mean_jct_pct:+.2f} %",
            f"{low:+.2f} to {high:+.2f}",
            "wins" if high < 0 else "loses" if low > 0 else "not settled",
            seeds,
        )
    return table


def _jobs(figures: tuple[Figure, ...]) -> str:
    """Return what figures were measured on: seeds, or jobs of a history, which has none."""
    return "seeds" if any(figure.seeds for figure in figures) else "jobs"


def _cost(budget: Budget) -> str:
    labelled = f"{budget.labelled_states:,} labelled states, " if budget.labelled_states else ""
    return f"{budget.cpu_s / 60:,.1f} CPU-minutes, {labelled}{budget.episodes:,} episodes"


def _card_rows(policy: Learned, file: Path) -> dict[str, str]:
    import math

    card, seeds = policy.card, policy.card.seeds
    weights = sum(math.prod(shape) for shape in card.shapes.values())
    return {
        "file": str(file),
        "policy": card.name,
        "about": card.about,
        "objective": card.objective,
        "trained on": card.family,
        "training seeds": f"{seeds.first} to {seeds.last}",
        "budget": _cost(card.budget),
        "network": card.words,
        "features": ", ".join(getattr(card, "features", ())),
        "training ranges": "none" if card.ranges is None else card.ranges.words,
        "size": f"{weights:,} weights, {file.stat().st_size:,} bytes",
        "written": f"{card.date} by adlro {card.version}, format {card.format}",
        "sha256 of weights": card.sha256_weights,
        "sha256 of card": card.sha256_card,
    }


def _show_card(file: Path, is_json: bool) -> None:
    from adlro.policies.loading import learned

    policy = learned.load(file)
    if is_json:
        click.echo(policy.card.model_dump_json(indent=2, exclude_unset=True))
        return
    console, card = stdout(), policy.card
    console.print(_pairs(_card_rows(policy, file.with_suffix(".npz"))))
    if card.selection:
        is_chosen = card.policy != "paper-dqn"  # which keeps the last network
        why = "by which it was chosen (flattering)" if is_chosen else "of its looks"
        title = f"on the {_jobs(card.selection)} {why}"
        console.print(_figures(title, card.selection))
    if card.final:
        title = f"on {_jobs(card.final)} that nothing was chosen by"
        console.print(_figures(title, card.final))


def _show_facts(facts: Facts, is_json: bool) -> None:
    if is_json:
        click.echo(as_json(facts._asdict()))
        return
    rows = {
        "policy": facts.name,
        "kind": _kind(facts),
        "preempts": "yes" if facts.is_preemptive else "no",
        "parameters": facts.params or "none",
        "memory": facts.memory or "none",
        "refuses": facts.refuses or "no scenario",
        "rule": facts.text,
    }
    stdout().print(_pairs(rows))


@command.command("show")
@click.argument("policy", shell_complete=completion.policy)
@click.option("--json", "is_json", is_flag=True, help="Print everything as JSON instead.")
def show(policy: str, is_json: bool) -> None:
    """What a policy is: its rule, or how it was trained and how well it did.

    POLICY is a name (see 'adlro policy list') or a file of your own: ./mine.py, or ./mine.npz that
    'adlro train' wrote; +lookahead may be added at the end.
    """
    from adlro.policies import registry

    file = registry.weights_file(policy)
    if file is not None:
        _show_card(file, is_json)
    else:
        _show_facts(registry.facts(policy), is_json)
