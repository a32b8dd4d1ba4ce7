"""`adlro train --algorithm paper-dqn`: the paper's DQN, with its learning curve as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from adlro.cli.options import PRINTED, hand_out, say_if_slow

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from adlro.train.dqn.plan import Wish
    from adlro.train.dqn.session import Result
    from adlro.train.dqn.trainer import Point, Status
    from adlro.train.session import Files

_WIDTH, _HEIGHT = 60, 10  # of the curve, characters
STOPPED = 130  # exit status after Ctrl-C
_AN_HOUR = 3600.0


class Asked(NamedTuple):
    """Options of the paper's DQN; None = as in the recipe."""

    window: int | None
    idle_weight: float | None
    backbone: str | None
    is_double: bool | None
    is_dueling: bool | None
    jobs: int | None
    episodes: int | None


def wish(scenario: str, budget: float | None, seed: int, asked: Asked) -> Wish:
    """What is to be trained.

    Raises:
        ConfigError: there is no such scenario, or two options contradict each other.
    """
    from adlro.config.files import find_scenario, validated
    from adlro.errors import ConfigError
    from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
    from adlro.train.dqn.plan import Wish

    if budget is not None and asked.episodes is not None:
        raise ConfigError("--budget and --episodes: name one of them")
    given = {key: value for key, value in asked._asdict().items() if value is not None}
    recipe = validated(PaperDqnHyperparameters, given, "--algorithm paper-dqn")
    said = {"scenario": find_scenario(scenario), "seed": seed, "budget_s": budget, "recipe": recipe}
    return validated(Wish, said, "adlro train")


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Pace:
    """Episodes an hour, and what is left, by the clock of this session."""

    def __init__(self) -> None:
        self._begin: tuple[float, int] | None = None

    def words(self, status: Status) -> str:
        """Empty while nothing can be said."""
        now = time.monotonic()
        if self._begin is None:
            self._begin = now, status.episodes
        since, done = now - self._begin[0], status.episodes - self._begin[1]
        if done == 0 or since == 0:
            return ""
        left = max(status.total - status.episodes, 0) * since / done
        return f"{done / since * _AN_HOUR:,.0f} episodes/h · {duration(left)} left"


def _line(status: Status, pace: str) -> str:
    parts = [f"{status.episodes:,} of {status.total:,} episodes", f"epsilon {status.epsilon:.2f}"]
    if status.points:
        parts.append(f"loss {status.points[-1].loss:.4f}")
    return " · ".join([*parts, f"{duration(status.cpu_s)} CPU", *([pace] if pace else [])])


def _levels(levels: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.0f}" for name, value in levels.items())


def picture(status: Status, pace: str) -> str:
    """The curve so far with a line below it."""
    from adlro.cli.curve import Place, plot

    rows = []
    if status.points:
        places = [
            Place(min(point.episodes / status.total, 1.0), point.jct_s) for point in status.points
        ]
        rows = plot(places, status.levels, _WIDTH, _HEIGHT)
        rows.append(f"mean JCT of the greedy policy, now {status.points[-1].jct_s:,.0f} s")
    return "\n".join([*rows, _line(status, pace)])


class _Live:
    """Redraws the curve in a terminal."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._pace = _Pace()
        self.live = Live(console=console, transient=True, auto_refresh=False)

    def tell(self, status: Status) -> None:
        """Draw anew."""
        from rich.text import Text

        self.live.update(Text(picture(status, self._pace.words(status))), refresh=True)


class _Lines:
    """Writes a line for each point of the curve."""

    def __init__(self) -> None:
        self._pace, self._told = _Pace(), -1

    def tell(self, status: Status) -> None:
        """Write if there is a new point; those of sessions before are not told again."""
        pace, count = self._pace.words(status), len(status.points)
        if count == 0 or count == self._told:
            return
        self._told = count
        jct, levels = status.points[-1].jct_s, _levels(status.levels)
        click.echo(f"mean JCT {jct:,.0f} s ({levels}) · {_line(status, pace)}", err=True)


def _with_curve(work: Callable[[Callable[[Status], object]], Result]) -> Result:
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return work(_Lines().tell)
    shown = _Live(console)
    with shown.live:
        return work(shown.tell)


def _percent(result: Result) -> str:
    gain = result.gain
    low, high = gain.ci95 or (gain.mean, gain.mean)
    return f"{gain.mean:+.2f} % ({low:+.2f} to {high:+.2f})"


def _table(result: Result, asked: Wish) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=f"{asked.scenario.name} · mean JCT · {asked.recipe.look_seeds} selection seeds",
        caption=f"the last network vs min-min on {asked.recipe.final_seeds} of them: "
        f"{_percent(result)}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for heading in ("episodes", "greedy policy, s", "in training, s", "epsilon", "loss"):
        table.add_column(heading, justify="right")
    for point in _shown(result.points):
        training = "" if point.training_jct_s is None else f"{point.training_jct_s:,.0f}"
        table.add_row(
            f"{point.episodes:,}", f"{point.jct_s:,.0f}", training, f"{point.epsilon:.2f}",
            f"{point.loss:.4f}",
        )  # fmt: skip
    for name, value in result.levels.items():
        table.add_row(name, f"{value:,.0f}")
    return table


def _shown(points: tuple[Point, ...]) -> list[Point]:
    """About ten of them, the last one included."""
    every = max(len(points) // 10, 1)
    return list(reversed(points[::-1][::every]))


def _report(result: Result, asked: Wish, where: Files) -> str:
    import json

    data = {
        "scenario": asked.scenario.name,
        "algorithm": "paper-dqn",
        "seed": asked.seed,
        "file": str(where.weights),
        "gain_pct": result.gain.model_dump(),
        "selection_seeds": asked.recipe.final_seeds,
        "budget": result.card.budget.model_dump(),
        "levels": result.levels,
        "curve": [point.model_dump() for point in result.points],
    }
    return json.dumps(data, indent=2)


class Words(NamedTuple):
    """What the user has written."""

    scenario: str
    again: str  # the command that goes on


def run(asked: Wish, where: Files, resume: bool, json_file: Path | None, words: Words) -> None:
    """Train and tell."""
    from adlro.train.dqn.session import compile_all, train

    with say_if_slow():
        compile_all(asked)
    result = _with_curve(lambda tell: train(asked, where, is_fresh=not resume, tell=tell))
    if not result.is_whole:
        click.echo(
            f"adlro: stopped after {result.card.budget.episodes:,} episodes; {where.weights} holds "
            f"the network as it is ({_percent(result)} vs min-min); to go on: {words.again}",
            err=True,
        )
        raise SystemExit(STOPPED)
    hand_out(_table(result, asked), _report(result, asked, where), json_file)
    if json_file != PRINTED:
        click.echo(
            f"{where.weights} and its card: mean JCT {_percent(result)} vs min-min; try: adlro "
            f"compare {words.scenario} --policies fcfs,min-min,{where.weights}"
        )
