"""Options of commands that read a history, or replay it on a cluster."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from adlro.cli.options import FILE, named_pairs, refuse_same, slurm_option, slurm_table

if TYPE_CHECKING:
    from adlro.evaluate.run_store import RunStore
    from adlro.model.history import History
    from adlro.workloads.history_scenario import Source

C = TypeVar("C", bound=Callable[..., Any])


def reading_options(wrapped: C) -> C:
    """Add the argument and the options for reading a history to a command."""
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


def constraint_options(unfit: str) -> Callable[[C], C]:
    """Return a decorator that adds the options on which pools jobs may use.

    unfit: the default of --unfit.
    """

    def add(wrapped: C) -> C:
        for option in (
            click.option(
                "--gpu",
                "gpus",
                multiple=True,
                metavar="NAME=MODEL",
                help="What a GPU is in the catalogue.",
            ),
            click.option(
                "--strict",
                is_flag=True,
                help="Refuse jobs that ask for a partition, GPU type or feature that no node has.",
            ),
            click.option(
                "--gpu-types",
                type=click.Choice(["requested", "allocated", "ignore"]),
                default="requested",
                help="GPU types that jobs are bound to; allocated: where none was requested, that "
                "it ran on.",
            ),
            click.option(
                "--partitions",
                type=click.Choice(["apply", "ignore"]),
                default="apply",
                help="Whether jobs are bound to the partitions that they were submitted to.",
            ),
            click.option(
                "--unfit",
                type=click.Choice(["refuse", "drop"]),
                default=unfit,
                show_default=True,
                help="What becomes of jobs that fit no pool.",
            ),
            click.option(
                "--gpus-from",
                type=click.Choice(["gpus", "cores"]),
                default="gpus",
                help="cores: play each processor as a GPU.",
            ),
        ):
            wrapped = option(wrapped)
        return wrapped

    return add


def check_names(names: Mapping[str, str], history: History) -> None:
    """Refuse names of GPUs that are not in the history.

    Raises:
        click.BadParameter: there is such a name.
    """
    from adlro.errors import suggestion

    known = {*history.tables["gpu_model"]}
    known.update(name for word in history.tables["allowed"] for name in word.split("|"))
    for name in names:
        if name not in known:
            said = suggestion(name, sorted(known)) if known else "it names no GPU at all"
            raise click.BadParameter(f"the history has no {name!r}; {said}", param_hint="--gpu")


class Given(NamedTuple):
    """The history that a command was given, its cluster, and how it reads and plays them."""

    file: Path
    cluster: str
    slurm_config: Path | None
    format_: str = ""
    columns: tuple[str, ...] = ()
    lenient: bool = False
    gpus_from: str = "gpus"
    unfit: str = "drop"
    partitions: str = "apply"
    gpu_types: str = "requested"
    strict: bool = False
    gpus: tuple[str, ...] = ()
    threads: int = 1

    def source(self) -> Source:
        """Return the history on its cluster.

        Raises:
            ConfigError: the cluster or the Slurm configuration cannot be read, or is wrong.
        """
        from adlro.config.files import find_cluster
        from adlro.config.scenario import partitions_of
        from adlro.workloads.history_scenario import Source

        cluster = find_cluster(self.cluster)
        recorded = {
            "format": self.format_,
            "columns": named_pairs(self.columns, "--column", "run_s=minutes*60"),
            "lenient": self.lenient,
            "gpus_from": self.gpus_from,
            "unfit": self.unfit,
            "partitions": self.partitions,
            "gpu_types": self.gpu_types,
            "strict": self.strict,
            "gpu_names": named_pairs(self.gpus, "--gpu", "volta=V100 32GB"),
        }
        slurm = slurm_table(self.slurm_config, partitions_of(cluster))
        return Source(self.file, cluster, recorded, slurm)

    def store(self) -> RunStore:
        """Return the finished runs of the history."""
        from adlro.evaluate.run_store import RunStore

        return RunStore(self.file)

    def refuse_overwriting(self, out: Path | None) -> None:
        """Raise click.BadParameter if the file for the figures is one of those that are read."""
        if out is not None:
            for file in (self.file, Path(self.cluster), self.slurm_config):
                if file is not None:
                    refuse_same(file, out, "--json")

    def repeated(self) -> str:
        """Return the options of `study_options` that were given, as text for another command."""
        words = ["--cluster", self.cluster]
        if self.slurm_config is not None:
            words += ["--slurm-config", str(self.slurm_config)]
        words += ["--format", self.format_] if self.format_ else []
        words += [word for one in self.columns for word in ("--column", one)]
        words += [word for one in self.gpus for word in ("--gpu", one)]
        words += [name for name in ("--lenient", "--strict") if getattr(self, name[2:])]
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            words += ["--" + name.replace("_", "-"), value] if value != default else []
        return " " + shlex.join(words)

    def calibrated(self) -> str | None:
        """Return the options for `adlro trace calibrate`; None = it cannot read the history so."""
        plain = self._replace(unfit=_DEFAULTS["unfit"])
        simple = Given(self.file, self.cluster, self.slurm_config, threads=self.threads)
        if plain != simple:
            return None
        return f"{plain.repeated()} --unfit {self.unfit}"


_DEFAULTS = {
    name: Given._field_defaults[name] for name in ("gpus_from", "unfit", "partitions", "gpu_types")
}


def study_options(command: C) -> C:
    """Add what `assess`, `plan` and `tune` share; `given` collects it."""
    for option in (
        click.option(
            "--threads",
            default=lambda: os.cpu_count() or 1,
            show_default="one a core",
            type=click.IntRange(1, 256),
        ),
        constraint_options(Given._field_defaults["unfit"]),
        slurm_option,
        click.option(
            "--cluster",
            required=True,
            help="Cluster file (TOML), as 'adlro cluster import' writes it.",
        ),
        reading_options,
    ):
        command = option(command)
    return command


def given(options: dict[str, Any]) -> Given:
    """Take the options of `study_options` out of a command's options."""
    return Given(**{name: options.pop(name) for name in Given._fields})


@contextlib.contextmanager
def study_progress(
    label: str, total: int, store: RunStore | None = None
) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on stderr if that is a terminal; on Ctrl-C say how many runs are kept.

    Yields a function that advances the bar by a number of runs; `total` are expected. They are kept
    in the store.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task("", total=total)
    try:
        with bar:
            yield lambda count: bar.advance(task, count)
    except KeyboardInterrupt:
        done = int(bar.tasks[0].completed)
        if store is None or store.is_usable:
            told = "are kept: the same command goes on from there"
        else:
            told = "had ended, and are lost: the cache cannot be written (set ADLRO_CACHE_DIR)"
        click.echo(f"{done:,} of {total:,} runs {told}", err=True)
        raise
