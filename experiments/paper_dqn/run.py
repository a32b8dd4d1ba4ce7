"""The paper's DQN as it is written, beside what it is compared with, and how it learned.

The weights of each training are kept in this folder, those of the first with the package;
--train makes them anew (hours), or --train NAME one of them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from common import Result, Table, parser, run
from pydantic import BaseModel, ConfigDict
from versus import by_name, compared, percent

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate.comparison import Comparison
from adlro.files import write_text
from adlro.policies.loading import learned

HERE = Path(__file__).parent
SEEDS, QUICK_SEEDS = range(500), range(5)
LOADS = (0.6, 0.8, 0.95)
SCENARIOS = ("paper16-single", "paper16")
RIVALS = ("fcfs", "static-affinity", "random", "min-min", "adlro")
POINTS = 10  # rows of the learning curve


class Training(NamedTuple):
    """One run that is published."""

    name: str  # of its file
    about: str
    scenario: str
    window: int
    jobs: int = 20
    episodes: int = 1_000_000

    @property
    def file(self) -> Path:
        """Its weights."""
        return (
            learned.shipped_file(self.name) if self.name == SHIPPED else HERE / f"{self.name}.npz"
        )

    @property
    def curve(self) -> Path:
        """How it learned."""
        return HERE / f"{self.name}.curve.json"


SHIPPED = "paper-dqn"
TRAININGS = (
    Training(SHIPPED, "W = 1, single GPUs, 20 jobs (shipped)", "paper16-single", 1),
    Training("single-w1", "W = 1, single GPUs", "paper16-single", 1, 100, 200_000),
    Training("single-w8", "W = 8, single GPUs", "paper16-single", 8, 100, 200_000),
    Training("gangs-w1", "W = 1, gangs", "paper16", 1, 100, 200_000),
    Training("gangs-w8", "W = 8, gangs", "paper16", 8, 100, 200_000),
)


class Dot(BaseModel):
    """One look at the greedy policy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    episodes: int
    jct_s: float
    training_jct_s: float | None


class Curve(BaseModel):
    """A learning curve as it is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str
    selection_seeds: int
    levels: dict[str, float]
    points: tuple[Dot, ...]


def _train(wanted: Training, folder: Path) -> None:
    """Train, or go on training, and put weights and curve where they are read."""
    from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
    from adlro.train.paper_dqn import ALGORITHM, PaperDqnRequest
    from adlro.train.run import policy_files, train

    used = PaperDqnHyperparameters(window=wanted.window, jobs=wanted.jobs, episodes=wanted.episodes)
    scenario = find_scenario(wanted.scenario)
    request = PaperDqnRequest(algorithm=ALGORITHM.name, scenario=scenario, hyperparameters=used)
    ALGORITHM.warm_up(request)
    folder.mkdir(parents=True, exist_ok=True)
    files = policy_files(folder / wanted.name)
    sys.stderr.write(f"{wanted.name}: training in {files.folder}\n")
    result = train(ALGORITHM, request, files)
    if not result.is_complete:
        raise SystemExit(130)
    command = f"adlro train {wanted.scenario} --algorithm paper-dqn --window {wanted.window} "
    kept = Curve(
        command=command + f"--jobs {wanted.jobs} --episodes {wanted.episodes}",
        selection_seeds=used.evaluation_seeds,
        levels=result.training.levels,
        points=tuple(
            Dot(episodes=p.episodes, jct_s=p.jct_s, training_jct_s=p.training_jct_s)
            for p in result.training.points
        ),
    )
    for suffix in learned.SUFFIXES:
        shutil.copy(files.weights.with_suffix(suffix), wanted.file.with_suffix(suffix))
    write_text(wanted.curve, kept.model_dump_json(indent=1) + "\n")


def _published() -> list[Training]:
    """Those whose weights are there."""
    return [wanted for wanted in TRAININGS if wanted.file.exists()]


def _named(wanted: Training) -> str:
    return SHIPPED if wanted.name == SHIPPED else str(wanted.file)


def _compare(quick: bool) -> dict[tuple[str, float], Comparison]:
    policies = [*RIVALS, *(_named(wanted) for wanted in _published())]
    seeds = QUICK_SEEDS if quick else SEEDS
    return {
        (name, load): compared(adjusted(find_scenario(name), load=load), policies, seeds)
        for name in SCENARIOS
        for load in LOADS
    }


def _against(found: dict[tuple[str, float], Comparison], rivals: tuple[str, ...]) -> list[Table]:
    """How much longer the mean JCT of each training is than that of each rival."""
    tables = []
    for rival in rivals:
        lines = [
            [wanted.about, *(_difference(one, wanted.name, rival) for one in found.values())]
            for wanted in _published()
        ]
        tables.append(Table(f"Mean JCT versus {rival}:", _head("paper-dqn"), lines, False))
    return tables


def _difference(found: Comparison, name: str, rival: str) -> str:
    versus = by_name(found)[name].jct_versus(rival)
    return percent(versus.mean, versus.ci95)


def _head(first: str) -> list[str]:
    return [first, *(f"{name}, {load:g}" for name in SCENARIOS for load in LOADS)]


def _curves() -> Table:
    """Mean JCT of the greedy policy after so many episodes, and of others on the same seeds."""
    known = {w.about: Curve.model_validate_json(w.curve.read_bytes()) for w in _published()
             if w.curve.exists()}  # fmt: skip
    lines = []
    for k in range(POINTS + 1):
        chosen = [c.points[round(k * (len(c.points) - 1) / POINTS)] for c in known.values()]
        lines.append([f"{10 * k} %", *(f"{dot.jct_s:,.0f}" for dot in chosen)])
    for rival in ("fcfs", "min-min"):
        lines.append([f"*{rival}*", *(f"{c.levels[rival]:,.0f}" for c in known.values())])
    caption = (
        "Mean JCT in seconds of the greedy policy on 20 selection seeds (load 0.8, 400 jobs) after "
        "a share of the episodes:"
    )
    return Table(caption, ["episodes done", *known], lines, False)


def make(quick: bool) -> Result:
    """All tables from the weights that are kept."""
    found = _compare(quick)
    about = {wanted.name: f"paper-dqn, {wanted.about}" for wanted in _published()}
    names = [*RIVALS, *about]
    lines, figures = [], {}
    for name in names:
        jct = [by_name(one)[name].metrics["mean_jct_s"].mean for one in found.values()]
        lines.append([about.get(name, name), *(f"{value:,.0f}" for value in jct)])
        columns = (f"{scenario}, {load:g}" for scenario, load in found)
        figures[name] = dict(zip(columns, jct, strict=True))
    more = [*_against(found, ("fcfs", "static-affinity", "min-min")), _curves()]
    details = {f"{name}, {load:g}": one.model_dump() for (name, load), one in found.items()}
    return Result(_head("mean JCT s, by load"), lines, figures, details, (), more)


if __name__ == "__main__":
    options = parser((__doc__ or "").splitlines()[0])
    options.add_argument(
        "--train", nargs="?", const="all", metavar="NAME",
        choices=["all", *(wanted.name for wanted in TRAININGS)], help="train first: all, or one of "
        + ", ".join(wanted.name for wanted in TRAININGS),
    )  # fmt: skip
    given = options.parse_args()
    for each in TRAININGS:
        if given.train in ("all", each.name):
            _train(each, HERE / "out")
    sys.exit(run(given, HERE, lambda: make(given.quick)))
