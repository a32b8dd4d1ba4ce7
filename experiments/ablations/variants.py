"""Which trainings are compared: one recipe, and what each variant leaves out of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ablations.td import Td
from trainings import BUDGET, REFERENCE, TINY, key

from adlro.features.start_kernel import PLAIN
from adlro.train.hyperparameters import SELF, AdlroHyperparameters

PLAN_FEATURES = tuple(name for name in PLAIN if name.startswith(("plan", "drain")))
OTHERS = tuple(name for name in PLAIN if name not in PLAN_FEATURES)
SHORT = 5  # arrivals, instead of 60

USUAL_TD = Td()
TINY_TD = Td(turns=2, episodes=2, steps=3, batch=8, hidden=TINY.hidden)


class Variant(NamedTuple):
    """One training; its run is the seed of all that is random in it."""

    name: str
    run: int
    recipe: AdlroHyperparameters
    shares_labels: bool = False  # those of the reference's training of the same run
    td: Td | None = None  # temporal differences instead of labels and fit

    @property
    def key(self) -> str:
        """Its name among all trainings."""
        return key(self.name, self.run)


RUNS, RUNS_OF_REFERENCE = 2, 3


def _rounds(recipe: AdlroHyperparameters, **changes: Any) -> AdlroHyperparameters:  # noqa: ANN401  as many kinds as fields
    rounds = tuple(one.model_copy(update=changes) for one in recipe.rounds)
    return recipe.model_copy(update={"rounds": rounds})


def _fit(recipe: AdlroHyperparameters, **changes: Any) -> AdlroHyperparameters:  # noqa: ANN401  as many kinds as fields
    return recipe.model_copy(update={"fit": recipe.fit.model_copy(update=changes)})


def _on_itself(recipe: AdlroHyperparameters) -> AdlroHyperparameters:
    """Without relatives of the scenario, in labels and in tuning."""
    tuning = recipe.tuning.model_copy(update={"family_share": 0.0})
    return _rounds(recipe, family_share=0.0).model_copy(update={"tuning": tuning})


def _one_of_each(recipe: AdlroHyperparameters, td: Td, run: int) -> list[Variant]:
    blind, alone = {"features": OTHERS}, {"residual": (0.0, 0.0)}
    own_states = _rounds(recipe, behaviours=(SELF,), stray=0.0)
    return [
        Variant(REFERENCE, run, recipe),
        Variant("no residual", run, _fit(recipe, **alone), shares_labels=True),
        Variant("no plan features", run, _fit(recipe, **blind), shares_labels=True),
        Variant("neither of the two", run, _fit(recipe, **blind, **alone), shares_labels=True),
        Variant("short horizon", run, _rounds(recipe, horizon=SHORT)),
        Variant("no randomisation", run, _on_itself(recipe)),
        Variant("on-policy data only", run, own_states),
        Variant("TD targets", run, recipe, td=td),
    ]


def variants(recipe: AdlroHyperparameters = BUDGET, td: Td = USUAL_TD) -> list[Variant]:
    """All trainings, in an order in which they can be done."""
    found = [one for run in range(1, RUNS + 1) for one in _one_of_each(recipe, td, run)]
    more = range(RUNS + 1, RUNS_OF_REFERENCE + 1)
    return found + [Variant(REFERENCE, run, recipe) for run in more]
