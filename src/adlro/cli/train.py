"""`adlro train`: trains a policy for a scenario in simulated episodes."""

from __future__ import annotations

import importlib
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from adlro.cli import completion
from adlro.cli.options import FILE, PRINTED, check_json_file, hand_out, say_if_slow

if TYPE_CHECKING:
    from types import ModuleType

    from adlro.config.scenario import Scenario
    from adlro.train.plan import TrainingRequest
    from adlro.train.run import Algorithm, PolicyFiles

ADLRO, PREEMPTIVE, PAPER = "adlro", "adlro-preemptive", "paper-dqn"
FINE_TUNING, SHIPPED, NOTHING = "fine-tuning", "shipped", "nothing"
_PAPER_OPTIONS = ("window", "idle_weight", "backbone", "is_double", "is_dueling", "jobs")
_ONLY = {  # options that not all algorithms have -> the algorithms that do
    "objective": (ADLRO,),
    "inputs": (ADLRO,),
    "start": (ADLRO,),
    "threads": (ADLRO, PREEMPTIVE),
    **dict.fromkeys(_PAPER_OPTIONS, (PAPER,)),
}
_NOT_AGAIN = ("scenario", "algorithm", "threads", "resume", "json_file")
_STOPPED = 130  # exit status after Ctrl-C


class Options(NamedTuple):
    """The arguments and options as given; None = the algorithm's default."""

    scenario: str | None
    algorithm: str
    start: str | None
    out: Path | None
    budget: float | None
    episodes: int | None
    objective: str
    inputs: str | None
    window: int | None
    idle_weight: float | None
    backbone: str | None
    is_double: bool | None
    is_dueling: bool | None
    jobs: int | None
    seed: int
    threads: int
    resume: bool
    json_file: Path | None


def _again(context: click.Context, scenario: str) -> str:
    """Return the command that resumes this training."""
    algorithm = context.params["algorithm"]
    words = ["adlro", "train", scenario]
    words += ["--algorithm", algorithm] if algorithm != ADLRO else []
    for option in context.command.params:
        name, value = str(option.name), context.params.get(str(option.name))
        if name in _NOT_AGAIN or algorithm not in _ONLY.get(name, (algorithm,)) or value is None:
            continue
        if isinstance(value, bool):
            words.append(option.opts[0] if value else option.secondary_opts[0])
        else:
            words += [option.opts[0], f"{value:.15g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _refuse_others(context: click.Context, algorithm: str) -> None:
    """Check that no option of another algorithm was given.

    Raises:
        ConfigError: such an option was given.
    """
    from adlro.errors import ConfigError

    for option in context.command.params:
        name = str(option.name)
        is_given = context.get_parameter_source(name) != ParameterSource.DEFAULT
        if algorithm not in _ONLY.get(name, (algorithm,)) and is_given:
            raise ConfigError(
                f"{option.opts[0]}: is for --algorithm {' or '.join(_ONLY[name])}; leave it out, "
                "or say that"
            )


def _algorithm(name: str) -> Algorithm[Any, Any]:
    from adlro.errors import MissingExtraError

    try:
        algorithms = importlib.import_module("adlro.train.algorithms").ALGORITHMS
    except (ImportError, OSError) as exc:  # torch is not installed, or broken
        raise MissingExtraError("adlro train", "train") from exc
    found: Algorithm[Any, Any] = algorithms[name]
    return found


def _features(inputs: str | None, scenario: Scenario) -> tuple[str, ...]:
    """Return the names of the network's inputs: the plain ones, and those of the kinds in --inputs.

    Raises:
        ConfigError: there is no such kind, or the scenario has no telemetry.
    """
    from adlro.errors import ConfigError, suggestion
    from adlro.features.start_kernel import KINDS, PLAIN

    names = [] if inputs is None else inputs.split(",")
    for name in names:
        if name not in KINDS:
            raise ConfigError(f"--inputs: unknown kind {name!r}; {suggestion(name, list(KINDS))}")
    if "telemetry" in names and not scenario.telemetry:
        raise ConfigError(
            f"--inputs telemetry: {scenario.name} has none; say telemetry = true in its file"
        )
    return (*PLAIN, *(feature for kind in KINDS if kind in names for feature in KINDS[kind]))


def _start(options: Options, scenario: Scenario) -> str:
    """Return the weights to start from: "nothing", "shipped" or a file.

    Raises:
        ConfigError: they are none of these, or an option is only for a training from nothing.
    """
    from adlro.errors import ConfigError, suggestion
    from adlro.policies.loading.learned import SUFFIXES

    if options.algorithm != ADLRO:
        return NOTHING
    start = options.start or (NOTHING if scenario.history is None else SHIPPED)
    if start not in (SHIPPED, NOTHING) and not start.endswith(SUFFIXES):
        known = suggestion(start, [SHIPPED, NOTHING, "FILE.npz"])
        raise ConfigError(f"--from: unknown {start!r}; {known}")
    given = {
        "--objective": None if options.objective == "jct" else options.objective,
        "--inputs": options.inputs,
    }
    for option, value in given.items():
        if start != NOTHING and value is not None:
            raise ConfigError(
                f"{option} {value}: fine-tuning from {start} keeps inputs and objective; leave it "
                "out, or say --from nothing"
            )
    return start


def _hyperparameters(options: Options, scenario: Scenario, start: str) -> dict[str, object]:
    """Return the hyperparameters that the options set, by name."""
    from adlro.train.objective import find

    if start != NOTHING:
        from adlro.train import fine_tuning

        return fine_tuning.hyperparameters(scenario, start)
    if options.algorithm == ADLRO:
        features = _features(options.inputs, scenario)
        return {"objective": find(options.objective).name, "fit": {"features": features}}
    if options.algorithm == PAPER:
        given = {name: getattr(options, name) for name in _PAPER_OPTIONS}
        return {name: value for name, value in given.items() if value is not None}
    return {}


@click.command("train")
@click.argument("scenario", required=False, shell_complete=completion.scenarios)
@click.option(
    "--algorithm",
    default=ADLRO,
    show_default=True,
    type=click.Choice([ADLRO, PREEMPTIVE, PAPER]),
    help="This project's own way, the same for clusters that may preempt, or the paper's DQN.",
)
@click.option(
    "--from",
    "start",
    metavar="WEIGHTS",
    help="adlro: shipped or FILE.npz tunes these weights on the first part of a history, and keeps "
    "them unless the result is better on the last part; nothing trains anew.  [shipped for a "
    "scenario that plays a history, else nothing]",
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
    help="CPU time to spend, compiling apart.  [default: as long as all phases take]",
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
def command(context: click.Context, /, **given: Any) -> None:  # noqa: ANN401  see Options
    """Train a policy for a scenario; use it as --policies FILE.npz.

    SCENARIO is a name (see 'adlro scenario list') or a TOML file of your own; the default is
    paper16, or gavel16 for adlro-preemptive. One that plays a history tunes the shipped weights on
    its first part, and keeps them unless the result is better on its last part (see --from). Ctrl-C
    keeps the best so far; the same command goes on from there. FILE-training holds all of it,
    metrics for TensorBoard included. See docs/training.md and docs/paper_dqn.md.
    """
    from adlro.config.files import find_scenario, validated
    from adlro.errors import ConfigError

    options = Options(**given)
    algorithm = _algorithm(options.algorithm)
    _refuse_others(context, options.algorithm)
    check_json_file(options.json_file)
    if options.budget is not None and options.episodes is not None:
        raise ConfigError("--budget and --episodes: name one of them")
    name = options.scenario or algorithm.scenario
    scenario = find_scenario(name)
    start = _start(options, scenario)
    algorithm = algorithm if start == NOTHING else _algorithm(FINE_TUNING)
    kind: Any = algorithm.request.model_fields["hyperparameters"].annotation
    changed = _hyperparameters(options, scenario, start)
    asked = {
        "algorithm": algorithm.name,
        "scenario": scenario,
        "seed": options.seed,
        "budget_s": options.budget,
        "episodes": options.episodes,
        "hyperparameters": validated(kind, changed, f"--algorithm {algorithm.name}"),
    }
    request = validated(algorithm.request, asked, "adlro train")
    _train(algorithm, request, options, (name, _again(context, name)))


def _reports(algorithm: str) -> ModuleType:
    """Return the module that prints the results of an algorithm."""
    from adlro.cli import fine_tuning_report, train_report

    return fine_tuning_report if algorithm == FINE_TUNING else train_report


def _files(options: Options) -> PolicyFiles:
    """Return the paths of the policy's files, after a check that --json is not one of them."""
    from adlro.errors import OutputError
    from adlro.train.run import policy_files

    files, json_file = policy_files(options.out or Path(options.algorithm)), options.json_file
    if json_file is not None and Path(json_file).absolute() in files.both:
        raise OutputError(f"--json {json_file}: is a file of the policy itself; choose another")
    return files


def _train(
    algorithm: Algorithm[Any, Any],
    request: TrainingRequest[Any],
    options: Options,
    words: tuple[str, str],
) -> None:
    from adlro.cli.train_progress import progress
    from adlro.train.run import train

    (scenario, again), files, reports = words, _files(options), _reports(algorithm.name)
    with say_if_slow():
        algorithm.warm_up(request)
    threads = options.threads if options.algorithm in _ONLY["threads"] else 1
    with progress() as report:
        result = train(
            algorithm, request, files, threads=threads, is_fresh=not options.resume, report=report
        )
    if not result.is_complete:
        click.echo(f"adlro: {reports.stopped(result, files)}; to go on: {again}", err=True)
        raise SystemExit(_STOPPED)
    figures = reports.figures(result, request, files)
    hand_out(reports.table(result, request), figures, options.json_file)
    if options.json_file != PRINTED:
        advice = reports.advice(request.scenario, scenario, files.weights)
        click.echo(reports.done(result, files, advice))
