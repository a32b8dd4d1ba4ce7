"""`adlro trace`: summarise, convert, predict, play, calibrate and anonymise job histories."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adlro.cli import trace_calibrate
from adlro.cli.history_options import check_names, constraint_options, reading_options
from adlro.cli.options import FILE, as_json, named_pairs, refuse_same, say, slurm_option, stdout

if TYPE_CHECKING:
    from adlro.model.history import History


@click.group("trace")
def command() -> None:
    """Job histories: look at them, convert them, play them, share them."""


command.add_command(trace_calibrate.command)


def _read(file: Path, lenient: bool, format_: str, columns: tuple[str, ...]) -> History:
    from adlro.workloads.formats.gather import ReadOptions
    from adlro.workloads.formats.registry import read

    pairs = named_pairs(columns, "--column", "run_s=minutes*60")
    return read(file, ReadOptions(lenient, format_, tuple(pairs.items())))


@command.command("formats")
def formats() -> None:
    """Every format that can be read."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.workloads.formats.registry import FORMATS

    table = Table(box=SIMPLE_HEAD)
    for heading in ("format", "about"):
        table.add_column(heading)
    for one in FORMATS:
        table.add_row(one.name, one.about)
    stdout().print(table, markup=False)


@command.command("info")
@reading_options
@click.option("--gpus", type=click.IntRange(1), help="Size of the cluster, to measure load by.")
@click.option("--json", "is_json", is_flag=True, help="Print everything as JSON instead.")
def info(
    file: Path,
    lenient: bool,
    format_: str,
    columns: tuple[str, ...],
    gpus: int | None,
    is_json: bool,
) -> None:
    """What a history holds: jobs, time, GPUs asked for, load, recorded waits, defects."""
    from rich.table import Table

    from adlro.cli import trace_info

    history = _read(file, lenient, format_, columns)
    found = trace_info.info(history, gpus)
    if is_json:
        click.echo(as_json(found.facts))
        return
    table = Table(box=None, show_header=False, padding=(0, 2))
    for label, text in trace_info.lines(found.facts, history):
        table.add_row(label, text)
    stdout().print(table, markup=False, highlight=False)
    for recorded in trace_info.recorded_tables(found.recorded):
        stdout().print(recorded, markup=False, highlight=False)


_SUFFIXES = (".npz", ".csv", ".swf")


def _say_skipped(history: History) -> None:
    """Print how many lines --lenient has skipped, and the first of them."""
    from adlro.workloads.history_file import skipped

    for line in [*skipped(history), *history.header.notes]:
        if line.startswith("skipped"):
            say(line, err=True)


def _write(out: Path, history: History) -> None:
    from adlro.files import write_bytes, write_parts
    from adlro.workloads import export
    from adlro.workloads.formats import npz

    if out.suffix == ".npz":
        write_bytes(out, npz.pack(history))
    else:
        write_parts(out, (export.as_csv if out.suffix == ".csv" else export.as_swf)(history))


def _check_out(file: Path, out: Path) -> None:
    from adlro.files import check_writable

    if out.suffix not in _SUFFIXES:
        raise click.BadParameter(
            f"{str(out)!r} must end in {', '.join(_SUFFIXES)}", param_hint="OUT"
        )
    refuse_same(file, out)
    check_writable(out)


@command.command("convert")
@reading_options
@click.argument("out", type=FILE)
def convert(file: Path, lenient: bool, format_: str, columns: tuple[str, ...], out: Path) -> None:
    """Write a history as OUT.npz (adlro's own, all of it), OUT.csv or OUT.swf."""
    _check_out(file, out)
    history = _read(file, lenient, format_, columns)
    _write(out, history)
    _say_skipped(history)
    say(f"{out}: {history.jobs:,} jobs")


@command.command("anonymise")
@reading_options
@click.argument("out", type=FILE)
@click.option("--salt", help="Secret that makes the codes, to have the same again.  [default: new]")
def anonymise(
    file: Path,
    lenient: bool,
    format_: str,
    columns: tuple[str, ...],
    out: Path,
    salt: str | None,
) -> None:
    """Write a history that can be shared: codes for users, accounts and names, dates moved.

    Job ids, queues, sizes and times of day are as they were.
    """
    import secrets

    from adlro.workloads.export import anonymous

    _check_out(file, out)
    key = secrets.token_bytes(32) if salt is None else salt.encode()
    if not 1 <= len(key) <= 64:
        raise click.BadParameter("1 to 64 bytes are needed", param_hint="--salt")
    history = _read(file, lenient, format_, columns)
    _write(out, anonymous(history, key))
    _say_skipped(history)
    moved = history.header.origin_unix_s is not None
    say(
        f"{out}: {history.jobs:,} jobs, {len(history.tables['user']):,} users, "
        f"{len(history.tables['account']):,} accounts and {len(history.tables['name']):,} names as "
        f"codes; {'dates are moved by whole weeks' if moved else 'there were no dates to move'}"
    )


def _check_memory(save: Path | None, file: Path) -> None:
    """Refuse to write a memory over a history, or to a name that does not end in .npz."""
    from adlro.files import check_writable

    if save is None:
        return
    if save.suffix != ".npz":
        raise click.BadParameter(f"{str(save)!r} must end in .npz", param_hint="--save")
    check_writable(save)
    if save.exists() and file.exists() and save.samefile(file):
        raise click.BadParameter("is the history itself; name another file", param_hint="--save")


def _share(_ctx: click.Context, _option: click.Parameter, value: float) -> float:
    """Refuse nan, which click.FloatRange accepts."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a share of the jobs")
    return value


@command.command("predict")
@reading_options
@click.option(
    "--warm-up",
    type=click.FloatRange(0, 1, max_open=True),
    callback=_share,
    default=0.5,
    show_default=True,
    help="Share of the jobs that are learned but not counted.",
)
@click.option("--job", metavar="ID", help="Explain the estimate of this job too.")
@click.option("--save", type=FILE, help="Write what was learned (.npz).")
@click.option("--json", "is_json", is_flag=True, help="Print the figures as JSON instead.")
def predict(
    file: Path,
    lenient: bool,
    format_: str,
    columns: tuple[str, ...],
    warm_up: float,
    job: str | None,
    save: Path | None,
    is_json: bool,
) -> None:
    """How well run times can be predicted from jobs that had ended, and why."""
    from adlro.cli import trace_predict
    from adlro.files import write_bytes

    _check_memory(save, file)
    shown = trace_predict.measure(_read(file, lenient, format_, columns), warm_up, job)
    if is_json:
        click.echo(as_json(shown.figures))
    else:
        trace_predict.show(shown.figures)
    if save is not None:
        write_bytes(save, shown.learned.pack())
        say(f"what was learned: {save}", err=is_json)


@command.command("scenario")
@reading_options
@click.option("--cluster", required=True, help="Cluster file (TOML), or a scenario's name or file.")
@click.option("--out", type=FILE, required=True, help="The scenario file to write (TOML).")
@click.option("--from", "from_", metavar="TIME", help="First submission: seconds, a date, or 70%.")
@click.option("--to", metavar="TIME", help="Jobs submitted before that.")
@click.option("--load-scale", type=float, default=1.0, help="Factor on the recorded arrival rate.")
@click.option("--warm-up", type=float, default=0.0, help="Share of the jobs that do not count.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Jobs of a seed; seeds follow each other.  [default: 1,000, or all of fewer than 2,000]",
)
@click.option(
    "--speeds",
    type=click.Choice(["none", "measured-mix", "gavel-types"]),
    default="none",
    show_default=True,
    help="What is assumed of speeds, which histories do not state.",
)
@constraint_options("refuse")
@slurm_option
@click.option("--json", "is_json", is_flag=True, help="Print the figures as JSON instead.")
def scenario(
    file: Path,
    lenient: bool,
    format_: str,
    columns: tuple[str, ...],
    cluster: str,
    out: Path,
    from_: str | None,
    to: str | None,
    load_scale: float,
    warm_up: float,
    jobs: int | None,
    speeds: str,
    gpus_from: str,
    unfit: str,
    partitions: str,
    gpu_types: str,
    strict: bool,
    gpus: tuple[str, ...],
    slurm_config: Path | None,
    is_json: bool,
) -> None:
    """A scenario whose jobs are those of a history, on a cluster of your own.

    \b
    adlro trace scenario jobs.csv --cluster my-cluster.toml --out mine.toml
    adlro compare mine.toml
    """  # noqa: D301  click wants the character itself
    from adlro.cli.trace_scenario import ScenarioRequest, load_text, make, moment
    from adlro.files import check_writable, write_text
    from adlro.workloads.summary import OVERLOAD

    refuse_same(file, out)
    check_writable(out)
    history = _read(file, lenient, format_, columns)
    names = named_pairs(gpus, "--gpu", "volta=V100 32GB")
    check_names(names, history)
    recorded = {
        "format": format_,
        "columns": named_pairs(columns, "--column", "run_s=minutes*60"),
        "lenient": lenient,
        "from_s": moment(from_, history, "--from"),
        "to_s": moment(to, history, "--to"),
        "speeds": speeds,
        "gpus_from": gpus_from,
        "unfit": unfit,
        "partitions": partitions,
        "gpu_types": gpu_types,
        "strict": strict,
        "gpu_names": names,
    }
    request = ScenarioRequest(file, out, cluster, load_scale, warm_up, jobs, slurm_config, recorded)
    made = make(request, history)
    write_text(out, made.text)
    if is_json:
        click.echo(as_json(made.figures))
        return
    figures = made.figures
    count = figures["windows"]
    seeds = f"{count:,} seeds of {figures['jobs']:,} jobs in a row" if count > 1 else "one seed"
    recorded_load = figures["recorded_load"]
    then = f"recorded {load_text(recorded_load)}" if recorded_load else "all came at once"
    load = load_text(figures["load"])
    say(f"{out}: {figures['playable_jobs']:,} jobs, {seeds}; load {load} ({then})")
    if figures["is_overloaded"]:
        say(f"  {OVERLOAD}")
    for line in made.filled:
        say(f"  {line}")
