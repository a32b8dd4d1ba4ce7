"""What a training of the paper's DQN was asked for, and what it will do."""

from __future__ import annotations

from typing import Literal

from adlro import __version__
from adlro.config.scenario import Scenario
from adlro.model.record import Record
from adlro.train.dqn.recipe import Recipe

_EARLIEST = 20  # the first batch is learned after at most this part of all steps


class Wish(Record):
    """What a training was asked for."""

    scenario: Scenario
    seed: int
    budget_s: float | None
    recipe: Recipe


class Plan(Record):
    """What a training will do; fixed when it begins."""

    version: str = __version__
    algorithm: Literal["paper-dqn"] = "paper-dqn"
    format: Literal[1] = 1
    wish: Wish
    recipe: Recipe  # as it is carried out


def scaled(recipe: Recipe, episodes: int) -> Recipe:
    """The recipe for so many episodes: those of short trainings begin to learn sooner."""
    most = max(episodes * recipe.jobs // _EARLIEST, 1)
    return recipe.model_copy(update={"episodes": episodes, "warm_up": min(recipe.warm_up, most)})


def difference(ours: Plan, theirs: Plan) -> str | None:
    """The first thing in which the plan of a folder is not what is wanted now."""
    if ours.version != theirs.version:
        return f"adlro {theirs.version}, this is {ours.version}"
    if ours.wish.scenario != theirs.wish.scenario:
        return f"another scenario ({theirs.wish.scenario.name})"
    for key in ("seed", "budget_s"):
        if getattr(ours.wish, key) != getattr(theirs.wish, key):
            return f"{key.removesuffix('_s')} {getattr(theirs.wish, key)}"
    for key, value in ours.wish.recipe:
        other = getattr(theirs.wish.recipe, key)
        if value != other:
            return f"{key.removeprefix('is_').replace('_', '-')} {other}"
    return None
