"""`adlro assess`: what an operator would gain, on the operator's own jobs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adlro.cli import completion
from adlro.cli.history_options import Given, given, study_options, study_progress
from adlro.cli.options import FILE, check_json_file, hand_out, say_if_slow

if TYPE_CHECKING:
    from adlro.evaluate.assess import Assessment


def _policies(text: str) -> tuple[str, ...]:
    """Return the policies to play: the usual ones, and those that the user adds."""
    from adlro.evaluate.assess import POLICIES

    more = [name.strip() for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys((*POLICIES, *more)))


def _assess(wanted: Given, more: str) -> Assessment:
    from adlro.evaluate import assess
    from adlro.evaluate.variants import Variants

    with say_if_slow():
        study = assess.make_study(Variants(wanted.source()), _policies(more))
        store = wanted.store()
        with study_progress("assessing", study.runs, store) as advance:
            return assess.play(study, store, wanted.threads, advance)


@click.command("assess")
@study_options
@click.option(
    "--policies",
    default="",
    metavar="NAME,…",
    shell_complete=completion.policies,
    help="Play these policies too, e.g. ./trained.npz.",
)
@click.option("--json", "json_file", type=FILE, help="Also write all figures here; - = print them.")
def command(policies: str, json_file: Path | None, **options: Any) -> None:  # noqa: ANN401  of click
    """What would ADLRO gain on your cluster? A verdict on your own jobs, in minutes.

    FILE is a history of jobs, such as the output of 'sacct' (docs/traces.md). Policies are played
    on windows of it, under three assumptions on speeds and two on run-time estimates, and compared
    with what happened and with stock Slurm. Stopped work goes on where it ended.

    \b
    adlro cluster import nodes.txt --out cluster.toml      (scontrol show node > nodes.txt)
    adlro assess jobs.txt --cluster cluster.toml --slurm-config config.txt
    """  # noqa: D301  click wants the character itself
    from adlro.cli import assess_table
    from adlro.evaluate.verdict import verdict

    check_json_file(json_file)
    wanted = given(options)
    wanted.refuse_overwriting(json_file)
    found = _assess(wanted, policies)
    told = verdict(found, wanted.repeated(), wanted.calibrated())
    figures = assess_table.as_json(found, told, shlex.join(["adlro", *sys.argv[1:]]))
    hand_out(assess_table.shown(found, told), figures, json_file)
