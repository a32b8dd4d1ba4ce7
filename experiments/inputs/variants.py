"""Which trainings are compared: the same labels, and what each network may look at."""

from __future__ import annotations

from typing import NamedTuple

from trainings import BUDGET, REFERENCE, key

from adlro.features.start_kernel import KINDS, PLAIN
from adlro.train.hyperparameters import AdlroHyperparameters

RUNS = 2
_ROUNDS = tuple(one.model_copy(update={"states": one.states // 2}) for one in BUDGET.rounds)
_TUNING = BUDGET.tuning.model_copy(update={"generations": 0})
SMALL = BUDGET.model_copy(update={"rounds": _ROUNDS, "tuning": _TUNING})  # fits alone
LOOKS = {  # name -> what it looks at beside the plain features
    REFERENCE: (),
    "telemetry": KINDS["telemetry"],
    "sketches": KINDS["sketches"],
    "both": (*KINDS["telemetry"], *KINDS["sketches"]),
}


class Variant(NamedTuple):
    """One training; its run is the seed of all that is random in it."""

    name: str
    run: int
    recipe: AdlroHyperparameters
    shares_labels: bool  # those of the reference's training of the same run

    @property
    def key(self) -> str:
        """Its name among all trainings."""
        return key(self.name, self.run)


def variants(recipe: AdlroHyperparameters = SMALL) -> list[Variant]:
    """All trainings, in an order in which they can be done."""
    found = []
    for run in range(1, RUNS + 1):
        for name, more in LOOKS.items():
            fit = recipe.fit.model_copy(update={"features": (*PLAIN, *more)})
            wanted = recipe.model_copy(update={"fit": fit})
            found.append(Variant(name, run, wanted, name != REFERENCE))
    return found
