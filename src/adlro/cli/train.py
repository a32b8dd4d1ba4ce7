"""`adlro train`: a policy for a cluster of one's own, from simulated episodes."""

from __future__ import annotations

import importlib
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from adlro.cli import train_dqn
from adlro.cli.options import FILE, PRINTED, check_json_file, hand_out, say_if_slow

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.config.scenario import Scenario
    from adlro.evaluate.stats import Estimate
    from adlro.train.folder import TrainingRequest
    from adlro.train.hyperparameters import AdlroHyperparameters
    from adlro.train.session import Files, Result
    from adlro.train.trainer import Status

_SOONEST = 0.02  # share of the work after which the time left is told
ADLRO, PAPER = "adlro", "paper-dqn"
_ONLY = {  # options of one algorithm alone
    ADLRO: ("objective", "inputs", "threads"),
    PAPER: ("window", "idle_weight", "backbone", "is_double", "is_dueling", "jobs"),
}
_NOT_AGAIN = ("scenario", "algorithm", "threads", "resume", "json_file")


def _percent(figure: Estimate) -> str:
    if figure.ci95 is None:
        return f"{figure.mean:+.2f} %"
    low, high = figure.ci95
    return f"{figure.mean:+.2f} % ({low:+.2f} to {high:+.2f})"


class _Clock:
    """How long it will take, from how fast it has been in this session."""

    def __init__(self) -> None:
        self._begin: tuple[float, float] | None = None

    def left(self, done: float) -> str:
        """In words; empty while nothing can be said."""
        now = time.monotonic()
        if self._begin is None:
            self._begin = now, done
        since, before = now - self._begin[0], done - self._begin[1]
        if before < _SOONEST:
            return ""
        return f"{train_dqn.duration(since * (1 - done) / before)} left"


def _line(status: Status) -> str:
    text = status.phase
    if status.best is not None:
        gain = _percent(status.best.look.gain)
        text += f" · vs min-min {gain}, {status.best.source}"
    return f"{text} · {train_dqn.duration(status.cpu_s)} CPU"


def _with_progress(work: Callable[[Callable[[Status], object]], Result]) -> Result:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=20), TaskProgressColumn(),
        TextColumn("{task.fields[left]}"),
    )  # fmt: skip
    clock = _Clock()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("making ready", total=1.0, left="")

        def tell(status: Status) -> None:
            left = clock.left(status.done)
            progress.update(task, description=_line(status), completed=status.done, left=left)

        return work(tell)


def _table(result: Result, wish: TrainingRequest) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    look = result.kept.look
    table = Table(
        title=f"{wish.scenario.name} · mean JCT · {look.seeds} selection seeds",
        caption="(a to b): 95 % intervals, paired seed by seed. The policy was chosen by these "
        "seeds: expect a little less on others.",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for heading in ("load", "vs min-min", "vs drain-argmin", "p99 JCT vs min-min"):
        table.add_column(heading, justify="right")
    for row in result.table:
        figures = (row.jct_vs_min_min, row.jct_vs_drain_argmin, row.p99_vs_min_min)
        table.add_row(f"{row.load:g}", *(_percent(figure) for figure in figures))
    return table


def _report(result: Result, wish: TrainingRequest, where: Files) -> str:
    import json

    look = result.kept.look
    data = {
        "scenario": wish.scenario.name,
        "objective": wish.objective,
        "seed": wish.seed,
        "file": str(where.weights),
        "source": result.kept.source,
        "gain_pct": look.gain.model_dump(),
        "p99_ratio": look.p99_ratio,
        "selection_seeds": look.seeds,
        "budget": result.card.budget.model_dump(),
        "table": [row.model_dump() for row in result.table],
    }
    return json.dumps(data, indent=2)


def _again(context: click.Context) -> str:
    """The command that goes on with this training."""
    words = ["adlro", "train", context.params["scenario"]]
    words += ["--algorithm", PAPER] if context.params["algorithm"] == PAPER else []
    apart = _ONLY[PAPER if context.params["algorithm"] == ADLRO else ADLRO]
    for option in context.command.params:
        name, value = str(option.name), context.params.get(str(option.name))
        if name in _NOT_AGAIN or name in apart or value is None:
            continue
        if isinstance(value, bool):
            words.append(option.opts[0] if value else option.secondary_opts[0])
        else:
            words += [option.opts[0], f"{value:.15g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _refuse_others(context: click.Context, algorithm: str) -> None:
    """Raise if an option of the other algorithm was given.

    Raises:
        ConfigError: it was.
    """
    from adlro.errors import ConfigError

    other = PAPER if algorithm == ADLRO else ADLRO
    for option in context.command.params:
        is_given = context.get_parameter_source(str(option.name)) != ParameterSource.DEFAULT
        if option.name in _ONLY[other] and is_given:
            raise ConfigError(
                f"{option.opts[0]}: is for --algorithm {other}; leave it out, or say that"
            )


def _refuse_without_torch() -> None:
    from adlro.errors import MissingExtraError

    try:
        importlib.import_module("adlro.train.session")
    except (ImportError, OSError) as exc:  # not there, or there and broken
        raise MissingExtraError("adlro train", "train") from exc


def _recipe(inputs: str | None, scenario: Scenario) -> AdlroHyperparameters:
    """The recipe, with a network that looks at these kinds of features, too.

    Raises:
        ConfigError: there is no such kind, or the scenario does not have it.
    """
    from adlro.errors import ConfigError, suggestion
    from adlro.features.start_kernel import KINDS, PLAIN
    from adlro.train.hyperparameters import AdlroHyperparameters

    usual, names = AdlroHyperparameters(), [] if inputs is None else inputs.split(",")
    for name in names:
        if name not in KINDS:
            raise ConfigError(f"--inputs: unknown kind {name!r}; {suggestion(name, list(KINDS))}")
    if "telemetry" in names and not scenario.telemetry:
        raise ConfigError(
            f"--inputs telemetry: {scenario.name} has none; say telemetry = true in its file"
        )
    more = (feature for kind in KINDS if kind in names for feature in KINDS[kind])
    fit = usual.fit.model_copy(update={"features": (*PLAIN, *more)})
    return usual.model_copy(update={"fit": fit})


def _wish(
    scenario: str,
    budget: float | None,
    episodes: int | None,
    objective: str,
    inputs: str | None,
    seed: int,
) -> TrainingRequest:
    from adlro.config.files import find_scenario, validated
    from adlro.errors import ConfigError
    from adlro.train.folder import TrainingRequest
    from adlro.train.objective import find

    if budget is not None and episodes is not None:
        raise ConfigError("--budget and --episodes: name one of them")
    found = find_scenario(scenario)
    said = {
        "scenario": found,
        "objective": find(objective).name,
        "seed": seed,
        "budget_s": budget,
        "episodes": episodes,
        "recipe": _recipe(inputs, found),
    }
    return validated(TrainingRequest, said, "adlro train")


@click.command("train")
@click.argument("scenario", default="paper16")
@click.option(
    "--algorithm",
    default=ADLRO,
    show_default=True,
    type=click.Choice([ADLRO, PAPER]),
    help="What learns: this project's own way, or the paper's DQN to the letter.",
)
@click.option(
    "--out",
    type=FILE,
    help="The policy's files: FILE.npz and its card FILE.json.  [default: ./ALGORITHM]",
)
@click.option(
    "--budget",
    type=click.FloatRange(1, 10**7),
    metavar="SECONDS",
    help="CPU time to spend, compiling apart.  [default: as long as the full recipe takes]",
)
@click.option(
    "--episodes", type=click.IntRange(1, 10**7), help="Episodes to play, instead of a time."
)
@click.option(
    "--objective",
    default="jct",
    show_default=True,
    help="What to make small or large: jct, weighted-jct, reward, throughput or energy.",
)
@click.option(
    "--inputs",
    metavar="KINDS",
    help="What the network looks at beside jobs and pools: telemetry, sketches or both, separated "
    "by a comma.  [nothing]",
)
@click.option(
    "--window", type=click.IntRange(1, 64), help="paper-dqn: waiting jobs to choose from.  [1]"
)
@click.option(
    "--idle-weight",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="paper-dqn: lambda of its reward.  [the scenario's]",
)
@click.option(
    "--backbone", type=click.Choice(["cnn", "mlp"]), help="paper-dqn: kind of network.  [cnn]"
)
@click.option("--double/--single", "is_double", default=None, help="paper-dqn.  [double]")
@click.option("--dueling/--no-dueling", "is_dueling", default=None, help="paper-dqn.  [no]")
@click.option("--jobs", type=click.IntRange(1, 5000), help="paper-dqn: jobs of an episode.  [20]")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 10**6 - 1))
@click.option(
    "--threads",
    default=lambda: os.cpu_count() or 1,
    show_default="one a core",
    type=click.IntRange(1, 256),
)
@click.option(
    "--resume/--fresh",
    default=True,
    show_default=True,
    help="Go on with what is in FILE-training, or forget it.",
)
@click.option("--json", "json_file", type=FILE, help="Also write all figures here; - = print them.")
@click.pass_context
def command(
    context: click.Context,
    scenario: str,
    algorithm: str,
    out: Path | None,
    budget: float | None,
    episodes: int | None,
    objective: str,
    inputs: str | None,
    window: int | None,
    idle_weight: float | None,
    backbone: str | None,
    is_double: bool | None,
    is_dueling: bool | None,
    jobs: int | None,
    seed: int,
    threads: int,
    resume: bool,
    json_file: Path | None,
) -> None:
    """Train a policy for a scenario; use it as --policies FILE.npz.

    SCENARIO is a name (see 'adlro scenario list') or a TOML file of your own. Ctrl-C keeps the best
    so far; the same command goes on from there. FILE-training holds all of it, metrics for
    TensorBoard included. See docs/training.md and docs/paper_dqn.md.
    """
    _refuse_without_torch()
    from adlro.train.session import files

    _refuse_others(context, algorithm)
    check_json_file(json_file)
    if algorithm == PAPER:
        asked = train_dqn.Asked(
            window, idle_weight, backbone, is_double, is_dueling, jobs, episodes
        )
        wanted = train_dqn.wish(scenario, budget, seed, asked)
        where = _checked(files(out or Path(PAPER)), json_file)
        train_dqn.run(wanted, where, resume, json_file, train_dqn.Words(scenario, _again(context)))
        return
    wish = _wish(scenario, budget, episodes, objective, inputs, seed)
    where = _checked(files(out or Path(ADLRO)), json_file)
    _train(wish, where, threads, resume, json_file, context)


def _checked(where: Files, json_file: Path | None) -> Files:
    """Where the files go, if the figures go elsewhere."""
    from adlro.errors import OutputError

    if json_file is not None and Path(json_file).absolute() in where.both:
        raise OutputError(f"--json {json_file}: is a file of the policy itself; choose another")
    return where


def _advice(trained_on: Scenario, name: str, weights: Path) -> str:
    """What to do with a policy: seeds keep drawn jobs apart, but not those of a history."""
    if trained_on.history is None:
        return f"try: adlro compare {name} --policies min-min,{weights}"
    return (
        "compare it on a later part of the history, not on jobs that it was trained on: train with "
        "`adlro trace scenario … --to 50%`, compare with --from 50%"
    )


def _train(
    wish: TrainingRequest,
    where: Files,
    threads: int,
    resume: bool,
    json_file: Path | None,
    context: click.Context,
) -> None:
    from adlro.train.session import compile_all, train

    scenario = context.params["scenario"]
    with say_if_slow():
        compile_all(wish)
    result = _with_progress(
        lambda tell: train(wish, where, threads=threads, is_fresh=not resume, tell=tell)
    )
    if not result.is_whole:
        gain = _percent(result.kept.look.gain)
        click.echo(
            f"adlro: stopped; {where.weights} holds the best so far ({gain} vs min-min); "
            f"to go on: {_again(context)}",
            err=True,
        )
        raise SystemExit(train_dqn.STOPPED)
    hand_out(_table(result, wish), _report(result, wish, where), json_file)
    if json_file != PRINTED:
        look = result.kept.look
        click.echo(
            f"{where.weights} and its card: {wish.objective} {_percent(look.gain)} vs min-min, "
            f"from {result.kept.source}; {_advice(wish.scenario, scenario, where.weights)}"
        )
