"""Which trainings are compared: one recipe, and what each variant leaves out of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ablations.td import Td

from adlro.encode.candidates_kernel import FEATURES
from adlro.train.recipe import SELF, Fit, Recipe, Round, Selection, Tuning

PLAN_FEATURES = tuple(name for name in FEATURES if name.startswith(("plan", "drain")))
OTHERS = tuple(name for name in FEATURES if name not in PLAN_FEATURES)
SHORT = 5  # arrivals, instead of 60

BUDGET = Recipe(
    rounds=(
        Round(base="min-min", behaviours=("min-min", "drain-argmin"), states=30_000),
        Round(base="min-min", behaviours=(SELF, SELF, "min-min"), states=15_000),
    ),
    tuning=Tuning(
        generations=30, pairs=12, episodes=8, settling=5, averaging=0.9, look_every=30
    ),
    selection=Selection(seeds=30, final_seeds=10),
)  # fmt: skip
TINY = Recipe(
    hidden=(4, 3),
    rounds=(
        Round(base="min-min", behaviours=("min-min", "drain-argmin"), states=30, horizon=8),
        Round(base="min-min", behaviours=(SELF, SELF, "min-min"), states=20, horizon=8),
    ),
    fit=Fit(epochs=2, batch=16),
    tuning=Tuning(generations=1, pairs=2, episodes=1, settling=5, averaging=0.9),
    selection=Selection(loads=(), seeds=1, final_seeds=1),
)
TINY_TD = Td(turns=2, episodes=2, steps=3, batch=8, hidden=TINY.hidden)


class Variant(NamedTuple):
    """One training."""

    name: str
    recipe: Recipe
    seed: int = 1
    labels_of: str | None = None  # another training's labels are used
    td: Td | None = None  # temporal differences instead of labels and fit


REFERENCE = "reference"
AGAIN = ("reference, 2nd run", "reference, 3rd run")


def _rounds(recipe: Recipe, **changes: Any) -> Recipe:  # noqa: ANN401  as many kinds as fields
    rounds = tuple(one.model_copy(update=changes) for one in recipe.rounds)
    return recipe.model_copy(update={"rounds": rounds})


def _fit(recipe: Recipe, **changes: Any) -> Recipe:  # noqa: ANN401  as many kinds as fields
    return recipe.model_copy(update={"fit": recipe.fit.model_copy(update=changes)})


def _on_itself(recipe: Recipe) -> Recipe:
    """Without relatives of the scenario, in labels and in tuning."""
    tuning = recipe.tuning.model_copy(update={"family_share": 0.0})
    return _rounds(recipe, family_share=0.0).model_copy(update={"tuning": tuning})


def variants(recipe: Recipe = BUDGET, td: Td | None = None) -> list[Variant]:
    """All trainings, in the order in which they can be done."""
    blind, alone = {"features": OTHERS}, {"residual": (0.0, 0.0)}
    at_home = _on_itself(recipe)
    one_load = at_home.model_copy(update={"loads": (0.8, 0.8)})
    return [
        Variant(REFERENCE, recipe),
        Variant(AGAIN[0], recipe, seed=2),
        Variant("no residual", _fit(recipe, **alone), labels_of=REFERENCE),
        Variant("no plan features", _fit(recipe, **blind), labels_of=REFERENCE),
        Variant("neither of the two", _fit(recipe, **blind, **alone), labels_of=REFERENCE),
        Variant("short horizon", _rounds(recipe, horizon=SHORT)),
        Variant("no randomisation", at_home),
        Variant("on-policy data only", _rounds(recipe, behaviours=(SELF,), stray=0.0)),
        Variant(AGAIN[1], recipe, seed=3),
        Variant("no randomisation, one load", one_load),
        Variant("TD targets", recipe, td=td or Td()),
    ]
