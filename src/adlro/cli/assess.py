"""`adlro assess`: what an operator would gain, on the operator's own jobs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from adlro.cli import completion
from adlro.cli.history_options import Given, given, study_options, study_progress
from adlro.cli.options import FILE, PRINTED, check_json_file, hand_out, say, say_if_slow
from adlro.cli.reporting import check_places

if TYPE_CHECKING:
    from adlro.evaluate.assess import Played
    from adlro.evaluate.verdict import Verdict


def _policies(text: str) -> tuple[str, ...]:
    """Return the policies to play: the usual ones, and those that the user adds."""
    from adlro.evaluate.assess import POLICIES

    more = [name.strip() for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys((*POLICIES, *more)))


def _assess(wanted: Given, more: str) -> Played:
    from adlro.evaluate import assess
    from adlro.evaluate.assess_range import measure_study
    from adlro.evaluate.batch import Batch
    from adlro.evaluate.compare import in_background
    from adlro.evaluate.variants import Variants

    with say_if_slow():
        study, store = assess.make_study(Variants(wanted.source()), _policies(more)), wanted.store()
        with study_progress("assessing", study.runs, store) as advance:
            results = Batch(store, wanted.threads, advance).play(study.cases)
            outside = in_background(lambda: measure_study(study))
    return assess.Played(study, results, assess.assessment(study, results, outside))


class _Page(NamedTuple):
    """The page that --report asks for."""

    folder: Path
    is_anonymous: bool

    def write(self, played: Played, told: Verdict, called: str) -> Path:
        """Write the page and return its path."""
        from rich.console import Console

        from adlro.evaluate.report import assessment

        with Console(stderr=True).status("drawing the page …"):
            material = assessment.gather(played, told, called, anonymous=self.is_anonymous)
            return assessment.write(self.folder, material)


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
@click.option(
    "--report",
    type=FILE,
    metavar="DIR",
    help="Write a page with tables and charts: DIR/report.html.",
)
@click.option(
    "--anonymous", is_flag=True, help="Codes on the page instead of names, accounts and ids."
)
def command(
    policies: str,
    json_file: Path | None,
    report: Path | None,
    anonymous: bool,
    **options: Any,  # noqa: ANN401  of click
) -> None:
    """What would ADLRO gain on your cluster? A verdict on your own jobs, in minutes.

    FILE is a history of jobs, such as the output of 'sacct' (docs/traces.md). Policies are played
    on windows of it, under three assumptions on speeds and two on run-time estimates, and compared
    with what happened and with stock Slurm. Stopped work goes on where it ended.

    \b
    adlro cluster import nodes.txt --out cluster.toml      (scontrol show node > nodes.txt)
    adlro assess jobs.txt --cluster cluster.toml --slurm-config config.txt
    """  # noqa: D301  click wants the character itself
    from adlro.cli import assess_table
    from adlro.evaluate.report.folder import check_folder
    from adlro.evaluate.verdict import verdict

    check_json_file(json_file)
    check_places(json_file, report, anonymous=anonymous)
    if report is not None:
        check_folder(report)
    wanted = given(options)
    wanted.refuse_overwriting(json_file)
    played = _assess(wanted, policies)
    told = verdict(played.found, wanted.repeated(), wanted.calibrated())
    called = shlex.join(["adlro", *sys.argv[1:]])
    figures = assess_table.as_json(played.found, told, called)
    hand_out(assess_table.shown(played.found, told), figures, json_file)
    if report is not None:
        path = _Page(report, anonymous).write(played, told, called)
        say(f"page: {path}", err=json_file == PRINTED)
