"""The recipe of a training: every number of it stands here and nowhere else."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from adlro.features.start_kernel import PLAIN
from adlro.model.record import Record
from adlro.nets.q_network import MOST_UNITS

Part = Annotated[float, Field(ge=0, le=1)]
Units = Annotated[int, Field(ge=1, le=MOST_UNITS)]
SELF = "self"  # the network as fitted in the round before


class Round(Record):
    """Labels of one round: which states, and what follows a choice."""

    base: Literal["min-min", "self"]  # plays on after each choice
    behaviours: Annotated[tuple[str, ...], Field(min_length=1)]  # play the episodes, in turns
    states: PositiveInt  # to label, at least
    episodes: PositiveInt | None = None  # after which it ends in any case
    horizon: PositiveInt = 60  # arrivals that are seen done after a choice
    futures: PositiveInt = 4  # over which the cost of a choice is averaged
    rate: Part = 0.08  # share of an episode's states that are labelled
    stray: Part = 0.03  # share of decisions that are random starts
    family_share: Part = 0.5  # of episodes on random relatives; the others on the scenario itself


class Fit(Record):
    """Regression of the network on all labels so far."""

    epochs: PositiveInt = 15
    rate: PositiveFloat = 4e-3  # largest learning rate of the cycle
    batch: PositiveInt = 1024  # states
    weight_decay: Annotated[float, Field(ge=0)] = 1e-4
    held_out: Part = 0.05  # share of the states that only measure
    features: Annotated[tuple[str, ...], Field(min_length=1)] = PLAIN  # that it looks at
    residual: tuple[float, float] = (0.0, 1.0)  # shares of the plain and the log drain difference


class Tuning(Record):
    """Evolution strategies on the figures of whole episodes."""

    generations: Annotated[int, Field(ge=0)] = 160
    pairs: PositiveInt = 32  # of mirrored networks in a generation
    episodes: PositiveInt = 16  # that each network of a generation plays, the same for all
    sigma: PositiveFloat = 0.1  # of the noise, in units of the rms of a row of weights
    rate: PositiveFloat = 0.025  # of Adam, in the same units
    last_rate: Part = 0.3  # share of it that is left in the last generation
    averaging: Part = 0.98  # of the averaged weights that a generation leaves as they are
    settling: int = 20  # generations until then, in which it is half
    family_share: Part = 0.4
    tail_weight: Annotated[float, Field(ge=0)] = 0.05  # of p99 above Min-Min's
    look_every: PositiveInt = 10  # generations between looks at the selection seeds


class Selection(Record):
    """What decides which network is kept."""

    loads: tuple[PositiveFloat, ...] = (0.6, 0.95)  # and the scenario's own
    seeds: PositiveInt = 100  # of each look, at each load
    final_seeds: PositiveInt = 500  # of the figures on the card
    patience: PositiveInt = 20  # looks without a better network after which tuning ends


class Recipe(Record):
    """All of it."""

    hidden: tuple[Units, Units] = (64, 32)
    rounds: Annotated[tuple[Round, ...], Field(min_length=1, max_length=8)] = (
        Round(base="min-min", behaviours=("min-min", "drain-argmin"), states=300_000),
        Round(base="min-min", behaviours=("self", "self", "min-min"), states=150_000),
    )
    loads: tuple[PositiveFloat, PositiveFloat] = (0.55, 1.05)  # between which the scenario is drawn
    fit: Fit = Fit()
    tuning: Tuning = Tuning()
    selection: Selection = Selection()


def quick(full: Recipe) -> Recipe:
    """What small budgets scale: one round, small generations, few selection seeds."""
    return full.model_copy(
        update={
            "rounds": full.rounds[:1],
            "tuning": full.tuning.model_copy(
                update={
                    "pairs": min(full.tuning.pairs, 12),
                    "episodes": min(full.tuning.episodes, 8),
                    "settling": 5,
                    "averaging": 0.9,
                }
            ),
            "selection": full.selection.model_copy(update={"seeds": min(full.selection.seeds, 30)}),
        }
    )
