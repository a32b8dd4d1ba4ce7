"""Env steps a CPU second of the paper's DQN, beside stable-baselines3 with the same work a step."""

from __future__ import annotations

import importlib.util
import time
from typing import NamedTuple

from adlro.config.files import find_scenario
from bench.clock import Side, Work, best
from bench.figure import Bar, Figure, figure, ratio

SCENARIO = "paper16-single"
SAMPLES = 16  # trained for each env step, on both sides
_BAR = Bar(">=", 20)
_UNIT = f"env steps per CPU-s at {SAMPLES} samples a step"
_COPIES, _BATCH = 512, 4096
_WARM_UP, _REPLAY = 2000, 50_000
_HIDDEN, _RATE = 64, 1e-4
_AN_HOUR = 3600


class Length(NamedTuple):
    """Env steps of one repeat on each side, so that both take about a second."""

    ours: int = 40_960
    theirs: int = 2000


def has_sb3() -> bool:
    """True when the extras `train` and `sb3` are installed."""
    return all(importlib.util.find_spec(name) for name in ("torch", "stable_baselines3"))


def _ours(backbone: str, steps: int) -> Side:
    from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
    from adlro.train.dqn.loop import TrainingLoop

    scenario = find_scenario(SCENARIO)
    recipe = PaperDqnHyperparameters.model_validate(
        {
            "backbone": backbone, "hidden": _HIDDEN, "rate": _RATE, "jobs": scenario.jobs,
            "copies": _COPIES, "batch": _BATCH, "samples": SAMPLES, "warm_up": _WARM_UP,
            "replay": _REPLAY, "epsilon": (0.05, 0.05), "idle_weight": scenario.idle_weight,
        }
    )  # fmt: skip
    course = TrainingLoop(scenario, recipe, 0)
    while course.learner.batches == 0:
        course.step()

    def play() -> None:
        end = course.steps + steps
        while course.steps < end:
            course.step()

    return lambda: play


def _theirs(steps: int) -> Side:
    from bench.with_sb3 import learner

    scenario = find_scenario(SCENARIO)
    known = {"scenario": SCENARIO, "idle_weight": scenario.idle_weight}
    model = learner(_HIDDEN, _WARM_UP // 10, _REPLAY, _RATE, **known)
    model.play(_WARM_UP // 5)

    def ready() -> Work:
        return lambda: model.play(steps)

    return ready


def beside_sb3(repeats: int, length: Length) -> list[Figure]:
    """How many times faster the paper's DQN trains; the paper's own backbone on a line of its own.

    Both sides: double DQN of one network shape, whole episodes of the scenario, W = 1.
    """
    sides = [_ours("mlp", length.ours), _theirs(length.theirs), _ours("cnn", length.ours // 4)]
    mlp, rival, cnn = best(sides, repeats, time.process_time)
    ours, theirs = length.ours / mlp, length.theirs / rival
    convolved = length.ours // 4 / cnn
    jobs = find_scenario(SCENARIO).jobs
    return [
        ratio("paper-dqn, MLP / stable-baselines3", ours, theirs, f"x, of {_UNIT}", _BAR),
        figure("paper-dqn, CNN", convolved, _UNIT),
        figure(f"paper-dqn, CNN, {jobs} jobs", convolved / jobs * _AN_HOUR, "episodes per CPU-h"),
    ]
