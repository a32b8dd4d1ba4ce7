"""`adlro trace calibrate`: compares a simulation with what was recorded of the same jobs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from adlro.cli import completion
from adlro.cli.options import (
    FILE,
    as_json,
    changed_scenario,
    say_if_slow,
    slurm_option,
    stdout,
)

if TYPE_CHECKING:
    from adlro.config.scenario import Scenario
    from adlro.evaluate.calibration import Calibration

_MOST_SEEDS = 20  # windows that are played
_LONGEST = 20_000  # jobs of a window by default: long ones depend less on how the cluster begins


class Request(NamedTuple):
    """Arguments and options of `adlro trace calibrate`."""

    file: Path  # of a history, or of a scenario (.toml)
    cluster: str | None
    unfit: str
    jobs: int | None
    policy: str
    slurm_config: Path | None


def scenario_of_request(request: Request) -> Scenario:
    """Return the scenario to play: that of a file, or that of a history on the given cluster.

    Raises:
        click.BadParameter: a history has no cluster, or a scenario has two.
        ConfigError: the scenario has no history, or cannot be played.
    """
    from adlro.cli.trace_scenario import ScenarioRequest, make
    from adlro.config.files import adjusted, scenario_of
    from adlro.errors import ConfigError
    from adlro.workloads.formats.gather import ReadOptions
    from adlro.workloads.formats.registry import read

    if request.file.suffix == ".toml":
        if request.cluster is not None:
            raise click.BadParameter("the scenario has a cluster", param_hint="--cluster")
        name, jobs, slurm = str(request.file), request.jobs, request.slurm_config
        found = changed_scenario(name, None, None, jobs, None, slurm)
        if found.history is None:
            raise ConfigError(f"{request.file}: has no history to compare with")
        return found
    if request.cluster is None:
        raise click.BadParameter(
            "a history needs one: the file that 'adlro cluster import' writes",
            param_hint="--cluster",
        )
    out = request.file.with_suffix(".toml")  # only its name and folder count
    history = read(request.file, ReadOptions(False, "", ()))
    wanted = ScenarioRequest(
        request.file,
        out,
        request.cluster,
        load_scale=1.0,
        warm_up=0.0,
        jobs=request.jobs,
        slurm_config=request.slurm_config,
        recorded={"unfit": request.unfit},
    )
    made = make(wanted, history)
    jobs = request.jobs or min(made.figures["playable_jobs"], _LONGEST)
    return adjusted(scenario_of(tomllib.loads(made.text), out), jobs=jobs)


def calibrate(request: Request) -> tuple[Calibration, tuple[str, ...]]:
    """Play the windows of the history under the policy, and compare them with the record.

    Returns:
        The calibration, and what is assumed about the jobs.

    Raises:
        ConfigError: the record cannot be compared with a simulation.
        PolicyError: there is no such policy, or it failed.
    """
    from adlro.errors import ConfigError
    from adlro.evaluate.calibration import Twin
    from adlro.evaluate.compare import compare
    from adlro.evaluate.recorded import absence
    from adlro.policies import registry
    from adlro.sim.simulator import warm_up
    from adlro.workloads.replay import windows
    from adlro.workloads.setting import prepare

    scenario = scenario_of_request(request)
    setting = prepare(scenario)
    why = absence(setting)
    if why:
        raise ConfigError(f"{request.file}: cannot be calibrated: {why}")
    assert setting.played is not None
    policy = registry.load(request.policy, setting)
    with say_if_slow():
        warm_up([policy])
    twin = Twin(setting, policy.name)
    seeds = range(min(_MOST_SEEDS, windows(setting.played, scenario.jobs)))
    compare(setting, [policy], seeds, watch=twin.watch)
    found = twin.calibration(seeds)
    if found is None:
        raise ConfigError(f"{request.file}: cannot be calibrated: no measured job has a start")
    return found, setting.filled


def show(found: Calibration, notes: tuple[str, ...], *, is_json: bool) -> None:
    """Print a calibration, and what is assumed about the jobs."""
    from rich.console import Group

    from adlro.cli import calibration_table

    if is_json:
        click.echo(as_json({**found.model_dump(), "notes": list(notes)}))
        return
    stdout().print(Group(*calibration_table.shown(found)))
    for note in notes:
        stdout().print(f"Note: {note}")


@click.command("calibrate")
@click.argument("file", type=FILE, metavar="HISTORY_OR_SCENARIO")
@click.option("--cluster", help="Of a history: cluster file (TOML), or a scenario's name or file.")
@click.option("--policy", default="slurm", show_default=True, shell_complete=completion.policy)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Jobs of a window.  [default: the scenario's; of a history all, 20,000 at most]",
)
@click.option(
    "--unfit",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    help="What becomes of a history's jobs that fit no pool.",
)
@slurm_option
@click.option("--json", "is_json", is_flag=True, help="Print the figures as JSON instead.")
def command(
    file: Path,
    cluster: str | None,
    policy: str,
    jobs: int | None,
    unfit: str,
    slurm_config: Path | None,
    is_json: bool,
) -> None:
    """How closely a simulation reproduces what was recorded of the same jobs.

    \b
    adlro trace calibrate mine.toml
    adlro trace calibrate jobs.txt --cluster cluster.toml
    """  # noqa: D301  click wants the character itself
    request = Request(file, cluster, unfit, jobs, policy, slurm_config)
    show(*calibrate(request), is_json=is_json)
