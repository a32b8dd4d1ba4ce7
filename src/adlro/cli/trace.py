"""`adlro trace`: histories of jobs looked at, converted, made scenarios, made fit to share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from adlro.cli.options import FILE, named_pairs, refuse_same, say, stdout

if TYPE_CHECKING:
    from adlro.model.history import History

C = TypeVar("C", bound=Callable[..., Any])


@click.group("trace")
def command() -> None:
    """Job histories: look at them, convert them, play them, share them."""


def _reading_options(wrapped: C) -> C:
    """How the file shall be read."""
    for option in (
        click.option("--lenient", is_flag=True, help="Skip lines that are wrong, and count them."),
        click.option("--format", "format_", default="", help="If the content does not tell it."),
        click.option(
            "--column",
            "columns",
            multiple=True,
            metavar="FIELD=COLUMN",
            help="Of a CSV file: where a field is, with a factor if need be (run_s=minutes*60).",
        ),
        click.argument("file", type=FILE),
    ):
        wrapped = option(wrapped)
    return wrapped


def _read(file: Path, lenient: bool, format_: str, columns: tuple[str, ...]) -> History:
    from adlro.workloads.formats.gather import Reading
    from adlro.workloads.formats.registry import read

    pairs = named_pairs(columns, "--column", "run_s=minutes*60")
    return read(file, Reading(lenient, format_, tuple(pairs.items())))


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


def _facts(history: History, gpus: int | None) -> dict[str, Any]:
    """All that `trace info` says, by name."""
    import numpy as np

    from adlro.workloads import summary

    submit = history.submit_s[~np.isnan(history.submit_s)]
    header = history.header
    facts: dict[str, Any] = {
        "file": header.source,
        "format": header.format,
        "jobs": history.jobs,
        "first_submission": summary.date(history, submit.min() if len(submit) else np.nan),
        "last_submission": summary.date(history, submit.max() if len(submit) else np.nan),
        "span_days": float(np.ptp(submit)) / 86_400 if len(submit) else None,
    }
    unit, amount = summary.demand(history)
    for name, values in ((f"{unit}_asked", amount), ("run_s", history.run_s)):
        found = summary.spread(values)
        facts[name] = None if found is None else found._asdict()
    busy = summary.in_use(history)
    if busy is not None:
        size = summary.size_of(history, busy, gpus)
        facts["in_use"] = busy._asdict()
        facts["size"] = size._asdict()
        facts["load"] = busy.mean / size.amount if size.amount else None
    for name in ("user", "account", "queue", "gpu_model", "status"):
        facts[f"distinct_{name}"] = len(history.tables[name]) or None
    facts["missing"] = summary.missing(history)
    facts["defects"] = header.defects
    facts["notes"] = list(header.notes)
    return facts


def _finite(value: object) -> object:
    """JSON has no nan."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: float) -> str:
    """As people write it: whole from 1,000 on."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _spread_text(found: dict[str, float] | None) -> str:
    if found is None:
        return "unknown"
    names = (("median", "median"), ("mean", "mean"), ("p95", "95 %"), ("most", "most"))
    return ", ".join(f"{label} {_number(found[key])}" for key, label in names)


def _lines(facts: dict[str, Any], history: History) -> list[tuple[str, str]]:
    """What people read of the facts: label and text."""
    from math import isnan

    from adlro.workloads import summary

    unit, _ = summary.demand(history)
    span = facts["span_days"]
    lines = [
        ("file", f"{facts['file']} ({facts['format']})"),
        ("jobs", f"{facts['jobs']:,}"),
        ("submitted", f"{facts['first_submission']} to {facts['last_submission']}"),
        ("span", "unknown" if span is None else f"{span:,.1f} days"),
        (f"{unit} asked", _spread_text(facts[f"{unit}_asked"])),
        ("run time, s", _spread_text(facts["run_s"])),
    ]
    if "in_use" in facts:
        busy, size = facts["in_use"], facts["size"]
        beginning = "" if busy["by"] == "start" else ", as if each job had started at once"
        mean = "unknown" if isnan(busy["mean"]) else f"{busy['mean']:,.1f}"
        load = facts["load"]
        of = f"of {size['amount']:,.0f} {unit} ({size['origin']})"
        lines += [
            (f"{unit} in use", f"mean {mean}, peak {busy['peak']:,.0f}{beginning}"),
            ("load", "unknown" if load is None or isnan(load) else f"{load:.3f} {of}"),
        ]
    counted = [
        f"{count:,} {name}{'s' if count > 1 else ''}"
        for name in ("user", "account", "queue")
        if (count := facts[f"distinct_{name}"])
    ]
    lines += [("told apart", ", ".join(counted) or "no users, accounts or queues")]
    gone = [
        name if count == history.jobs else f"{name} ({count:,})"
        for name, count in facts["missing"].items()
    ]
    lines += [("missing", ", ".join(gone) or "nothing")]
    found = [f"{kind}: {count:,}" for kind, count in facts["defects"].items()]
    lines += [("defects", "; ".join(found) or "none found")]
    lines += [("note", note) for note in facts["notes"]]
    return lines


@command.command("info")
@_reading_options
@click.option("--gpus", type=click.IntRange(1), help="Size of the cluster, to measure load by.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON instead.")
def info(
    file: Path,
    lenient: bool,
    format_: str,
    columns: tuple[str, ...],
    gpus: int | None,
    as_json: bool,
) -> None:
    """What a history holds: jobs, time, GPUs asked, load, what is missing, defects."""
    import json

    from rich.table import Table

    history = _read(file, lenient, format_, columns)
    facts = _facts(history, gpus)
    if as_json:
        click.echo(json.dumps(_finite(facts), indent=2, allow_nan=False))
        return
    table = Table(box=None, show_header=False, padding=(0, 2))
    for label, text in _lines(facts, history):
        table.add_row(label, text)
    stdout().print(table, markup=False, highlight=False)


_SUFFIXES = (".npz", ".csv", ".swf")


def _say_skipped(history: History) -> None:
    """Count what --lenient has skipped, and list the first."""
    from adlro.workloads.replay import skipped

    for line in [*skipped(history), *history.header.notes]:
        if line.startswith("skipped"):
            say(line, err=True)


def _write(out: Path, history: History) -> None:
    from adlro.files import write_bytes, write_parts
    from adlro.workloads import export
    from adlro.workloads.formats import npz

    if out.suffix == ".npz":
        write_bytes(out, npz.packed(history))
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
@_reading_options
@click.argument("out", type=FILE)
def convert(file: Path, lenient: bool, format_: str, columns: tuple[str, ...], out: Path) -> None:
    """Write a history as OUT.npz (adlro's own, all of it), OUT.csv or OUT.swf."""
    _check_out(file, out)
    history = _read(file, lenient, format_, columns)
    _write(out, history)
    _say_skipped(history)
    say(f"{out}: {history.jobs:,} jobs")


@command.command("anonymise")
@_reading_options
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
    """Refuse to write a memory over a history, or under a name that does not say what it is."""
    from adlro.files import check_writable

    if save is None:
        return
    if save.suffix != ".npz":
        raise click.BadParameter(f"{str(save)!r} must end in .npz", param_hint="--save")
    check_writable(save)
    if save.exists() and file.exists() and save.samefile(file):
        raise click.BadParameter("is the history itself; name another file", param_hint="--save")


def _share(_ctx: click.Context, _option: click.Parameter, value: float) -> float:
    """A range lets nan through."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a share of the jobs")
    return value


@command.command("predict")
@_reading_options
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
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON instead.")
def predict(
    file: Path,
    lenient: bool,
    format_: str,
    columns: tuple[str, ...],
    warm_up: float,
    job: str | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """How well run times can be foreseen from jobs that had ended, and why."""
    import json

    from adlro.cli import trace_predict
    from adlro.estimates.run_times import RunTimes
    from adlro.files import write_bytes

    _check_memory(save, file)
    shown = trace_predict.look(_read(file, lenient, format_, columns), warm_up, job)
    if as_json:
        click.echo(json.dumps(_finite(shown.figures), indent=2, allow_nan=False))
    else:
        trace_predict.show(shown.figures)
    if save is not None:
        write_bytes(save, RunTimes.of(shown.learned).pack())
        say(f"what was learned: {save}", err=as_json)


def _check_names(names: Mapping[str, str], history: History) -> None:
    """Refuse to be told what a GPU is that the history does not know."""
    from adlro.errors import suggestion

    known = {*history.tables["gpu_model"]}
    known.update(name for word in history.tables["allowed"] for name in word.split("|"))
    for name in names:
        if name not in known:
            said = suggestion(name, sorted(known)) if known else "it names no GPU at all"
            raise click.BadParameter(f"the history has no {name!r}; {said}", param_hint="--gpu")


@command.command("scenario")
@_reading_options
@click.option("--cluster", required=True, help="Cluster file (TOML), or a scenario's name or file.")
@click.option("--out", type=FILE, required=True, help="The scenario file to write (TOML).")
@click.option("--from", "from_", metavar="TIME", help="First submission: seconds, a date, or 70%.")
@click.option("--to", metavar="TIME", help="Jobs submitted before that.")
@click.option("--load-scale", type=float, default=1.0, help="Arrivals so many times as frequent.")
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
@click.option(
    "--gpus-from",
    type=click.Choice(["gpus", "cores"]),
    default="gpus",
    help="cores: play each processor as a GPU.",
)
@click.option(
    "--unfit",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    help="What becomes of jobs that fit no pool.",
)
@click.option(
    "--gpu", "gpus", multiple=True, metavar="NAME=MODEL", help="What a GPU is in the catalogue."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON instead.")
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
    gpus: tuple[str, ...],
    as_json: bool,
) -> None:
    """A scenario whose jobs are those of a history, on a cluster of your own.

    \b
    adlro trace scenario jobs.csv --cluster my-cluster.toml --out mine.toml
    adlro compare mine.toml
    """  # noqa: D301  click wants the character itself
    import json

    from adlro.cli.trace_scenario import Wish, make, moment
    from adlro.files import check_writable, write_text

    refuse_same(file, out)
    check_writable(out)
    history = _read(file, lenient, format_, columns)
    names = named_pairs(gpus, "--gpu", "volta=V100 32GB")
    _check_names(names, history)
    recorded = {
        "format": format_,
        "columns": named_pairs(columns, "--column", "run_s=minutes*60"),
        "lenient": lenient,
        "from_s": moment(from_, history, "--from"),
        "to_s": moment(to, history, "--to"),
        "speeds": speeds,
        "gpus_from": gpus_from,
        "unfit": unfit,
        "gpu_names": names,
    }
    wish = Wish(file, out, cluster, load_scale, warm_up, jobs, recorded)
    made = make(wish, history)
    write_text(out, made.text)
    if as_json:
        click.echo(json.dumps(made.figures, indent=2))
        return
    figures = made.figures
    count = figures["windows"]
    seeds = f"{count:,} seeds of {figures['jobs']:,} jobs in a row" if count > 1 else "one seed"
    then = (
        f"recorded {figures['recorded_load']:.3f}"
        if figures["recorded_load"]
        else "all came at once"
    )
    say(f"{out}: {figures['playable_jobs']:,} jobs, {seeds}; load {figures['load']:.3f} ({then})")
    for line in made.filled:
        say(f"  {line}")
