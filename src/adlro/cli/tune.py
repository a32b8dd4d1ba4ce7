"""`adlro tune`: the best stock Slurm for the operator's own jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adlro.cli.history_options import Given, given, study_options, study_progress
from adlro.cli.options import FILE, check_json_file, hand_out, say_if_slow

if TYPE_CHECKING:
    from adlro.config.slurm_lines import Written
    from adlro.evaluate.tune import Tuning

_TRIALS = 60
_MOST_TRIALS = 100_000


def _written(wanted: Given) -> Written:
    """Return what the site's configuration says beyond the settings that are played."""
    from adlro.config.files import find_cluster
    from adlro.config.scenario import partitions_of
    from adlro.config.slurm import read_slurm
    from adlro.config.slurm_lines import Written

    partitions = partitions_of(find_cluster(wanted.cluster))
    if wanted.slurm_config is None:
        return Written(partitions)
    found = read_slurm(wanted.slurm_config, partitions)
    return Written(partitions, found.parameters, found.highest_factor)


def _tune(wanted: Given, objective: Any, trials: int) -> Tuning:  # noqa: ANN401  one of Objective
    from adlro.evaluate.batch import Batch
    from adlro.evaluate.history_halves import Halves
    from adlro.evaluate.tune import Request, tune
    from adlro.evaluate.variants import Variants

    with say_if_slow():
        halves = Halves(Variants(wanted.source()))
        request, store = Request(objective, trials, _written(wanted)), wanted.store()
        with study_progress("tuning", halves.expected_runs(trials), store) as advance:
            halves.play_with(Batch(store, wanted.threads, advance))
            return tune(halves, request)


@click.command("tune")
@study_options
@click.option(
    "--objective",
    type=click.Choice(["mean-jct", "mean-wait", "p99-jct"]),
    default="mean-jct",
    show_default=True,
    help="What is made as short as possible.",
)
@click.option(
    "--trials",
    type=click.IntRange(1, _MOST_TRIALS),
    default=_TRIALS,
    show_default=True,
    help="Configurations to try.",
)
@click.option("--json", "json_file", type=FILE, help="Also write all figures here; - = print them.")
def command(objective: str, trials: int, json_file: Path | None, **options: Any) -> None:  # noqa: ANN401  of click
    """Which lines of slurm.conf would help? The best stock Slurm, without installing anything.

    FILE is a history of jobs, such as the output of 'sacct' (docs/traces.md). Priority weights,
    backfill and the order of nodes are searched on its first half and measured on the later one.
    Stopped work goes on where it ended.

    \b
    adlro tune jobs.txt --cluster cluster.toml --slurm-config config.txt
    """  # noqa: D301  click wants the character itself
    from adlro.cli.tune_table import shown

    check_json_file(json_file)
    found = _tune(given(options), objective, trials)
    hand_out(shown(found), found.model_dump_json(indent=2, by_alias=True), json_file)
