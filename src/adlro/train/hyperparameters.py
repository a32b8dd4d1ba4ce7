"""Hyperparameters of all trainings that tune a network: all their numbers and defaults."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import Field, PositiveFloat, PositiveInt

from adlro.features.start_kernel import PLAIN
from adlro.model.record import Record
from adlro.nets.q_network import MOST_MEMBERS, MOST_UNITS

Share = Annotated[float, Field(ge=0, le=1)]
Units = Annotated[int, Field(ge=1, le=MOST_UNITS)]
_ANY = 10**7  # labelled states: more than all episodes of a round have
SELF = "self"  # the network fitted in the round before


class Shares(NamedTuple):
    """Probabilities that an episode is not on the scenario itself, or has wrong estimates."""

    relatives: float  # a random relative of the scenario
    wide: float = 0.0  # a cluster and jobs drawn from scratch
    errors: float = 0.0  # of estimates; in any kind of episode
    are_small: bool = False  # whether wide clusters and their episodes are small ones only


class LabelRound(Record):
    """Settings of one round of labels: which states are labelled, and how rollouts continue."""

    base: Literal["min-min", "self"]  # policy of the rollout after each choice
    behaviours: Annotated[tuple[str, ...], Field(min_length=1)]  # policies of the episodes, in turn
    states: PositiveInt  # least number of labelled states
    episodes: PositiveInt | None = None  # most episodes
    horizon: PositiveInt = 60  # a rollout lasts until this many more arrivals are completed
    futures: PositiveInt = 4  # sequences of arrivals over which a cost is averaged
    rate: Share = 0.12  # share of an episode's states that are labelled
    stray: Share = 0.03  # share of decisions that are random starts
    states_per_episode: PositiveInt = 90  # most labelled states, on average, of a long episode
    family_share: Share = 0.5  # share of episodes on random relatives of the scenario
    wide_share: Share = 0.0  # share of episodes on the wide family, see wide_family.py
    error_share: Share = 0.0  # share of episodes with wrong estimates, see estimate_errors.py

    @property
    def shares(self) -> Shares:
        """Which episodes are drawn."""
        return Shares(self.family_share, self.wide_share, self.error_share)


class FitSettings(Record):
    """Settings of the fit of a network to all labels so far, see fit.py."""

    loss: Literal["decision", "regression"] = "regression"
    temperature: PositiveFloat = 0.1  # of the softmax of the decision loss, in units of scores
    members: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] = 4  # networks, see nets/q_network.py
    caution: Annotated[float, Field(ge=0, le=100)] = 1.0  # factor on their disagreement
    outside: Annotated[float, Field(ge=0, lt=0.5)] = 0.001  # share of inputs clamped at each end
    epochs: PositiveInt = 15
    rate: PositiveFloat = 4e-3  # largest learning rate of the cycle
    batch: PositiveInt = 1024  # states
    weight_decay: Annotated[float, Field(ge=0)] = 1e-4
    held_out: Share = 0.05  # share of the states that only measure the fit
    features: Annotated[tuple[str, ...], Field(min_length=1)] = PLAIN  # inputs of the network
    residual: tuple[float, float] = (0.0, 1.0)  # factors of the plain and the log drain difference


class TuningSettings(Record):
    """Settings of the tuning by evolution strategies, in which networks play whole episodes."""

    generations: Annotated[int, Field(ge=0)] = 250
    pairs: PositiveInt = 32  # of mirrored networks in a generation
    episodes: PositiveInt = 16  # of a generation, the same for all its networks
    sigma: PositiveFloat = 0.1  # of the noise, in units of the rms of a row of weights
    rate: PositiveFloat = 0.025  # of Adam, in the same units
    last_rate: Share = 0.3  # share of the rate that is left in the last generation
    averaging: Share = 0.98  # decay of the average of the weights, per generation
    settling: int = 20  # first generations, in which that decay is at most a half
    family_share: Share = 0.4
    wide_share: Share = 0.0
    error_share: Share = 0.0
    tail_weight: Annotated[float, Field(ge=0)] = 0.05  # of a p99 JCT above the baseline's
    evaluate_every: PositiveInt = 10  # generations between evaluations on the selection seeds

    @property
    def shares(self) -> Shares:
        """Which episodes are drawn."""
        return Shares(self.family_share, self.wide_share, self.error_share, are_small=True)


class SelectionSettings(Record):
    """Settings of the evaluations by which the best network is selected."""

    loads: tuple[PositiveFloat, ...] = (0.6, 0.95)  # beside the scenario's own
    seeds: PositiveInt = 100  # of each evaluation, at each load
    # episodes of the wide family that each evaluation plays, too; their mean counts as much
    wide: Annotated[int, Field(ge=0, le=500)] = 0
    final_seeds: PositiveInt = 500  # of the figures on the card
    patience: PositiveInt = 20  # evaluations without a better network after which tuning ends


class SearchHyperparameters(Record):
    """Hyperparameters that all trainings share which tune a network."""

    loads: tuple[PositiveFloat, PositiveFloat] = (0.55, 1.05)  # range of the scenario's load
    tuning: TuningSettings = TuningSettings()
    selection: SelectionSettings = SelectionSettings()


class TunedHyperparameters(SearchHyperparameters):
    """Hyperparameters that `adlro` and `adlro-preemptive` share."""

    hidden: tuple[Units, Units] = (64, 32)


class AdlroHyperparameters(TunedHyperparameters):
    """Hyperparameters of `adlro`: rounds of labels and fits, then evolution strategies.

    The first round is mostly about clusters of all kinds, the second about the scenario itself and
    its relatives.
    """

    hidden: tuple[Units, Units] = (32, 16)  # of each member
    objective: str = "jct"  # see objective.py
    rounds: Annotated[tuple[LabelRound, ...], Field(min_length=1, max_length=8)] = (
        LabelRound(
            base="min-min", behaviours=("min-min", "drain-argmin"), states=_ANY, episodes=6_000,
            family_share=0.15, wide_share=0.7, error_share=0.4,
        ),
        LabelRound(
            base="min-min", behaviours=("self", "self", "min-min"), states=_ANY, episodes=10_000,
            family_share=0.4, wide_share=0.2, error_share=0.2,
        ),
    )  # fmt: skip
    fit: FitSettings = FitSettings()
    tuning: TuningSettings = TuningSettings(family_share=0.35, wide_share=0.2, error_share=0.2)
    selection: SelectionSettings = SelectionSettings(wide=120)


class PreemptiveHyperparameters(TunedHyperparameters):
    """Hyperparameters of `adlro-preemptive`: evolution strategies from Hetero-SRPT on."""

    hidden: tuple[Units, Units] = (16, 8)
    loads: tuple[PositiveFloat, PositiveFloat] = (0.7, 1.05)
    jobs: PositiveInt = 400  # of an episode, at most
    costs: tuple[PositiveFloat, PositiveFloat] = (0.1, 30.0)  # factors on a relative's checkpoints
    tuning: TuningSettings = TuningSettings(
        generations=300, pairs=16, episodes=6, sigma=0.1, rate=0.04, averaging=0.95,
        family_share=0.3, tail_weight=0.02, evaluate_every=20,
    )  # fmt: skip
    selection: SelectionSettings = SelectionSettings(
        loads=(), seeds=30, final_seeds=200, patience=100
    )


class FineTuningHyperparameters(SearchHyperparameters):
    """Hyperparameters of `fine-tuning`: evolution strategies from trained weights on a history.

    Steps are small, because the weights are good already and a history has few jobs. The hashes
    keep a training from being resumed with other weights or another history.
    """

    start: str  # "shipped", or the path of a policy's file
    start_sha256: str  # of its weights
    history_sha256: str  # of the history's file
    loads: tuple[PositiveFloat, PositiveFloat] = (0.8, 1.25)  # factors on the load
    tuning: TuningSettings = TuningSettings(
        generations=60, pairs=24, episodes=12, sigma=0.05, rate=0.015, averaging=0.9, settling=5,
        family_share=0.2, evaluate_every=5,
    )  # fmt: skip
    # runs of each evaluation: windows, repeated with jitter where they are fewer
    selection: SelectionSettings = SelectionSettings(
        loads=(), seeds=24, final_seeds=120, patience=8
    )


T = TypeVar("T", bound=SearchHyperparameters)


def reduced(full: T) -> T:
    """Return hyperparameters for a small budget: smaller generations, fewer selection seeds."""
    tuning, selection = full.tuning, full.selection
    smaller = {
        "pairs": min(tuning.pairs, 12),
        "episodes": min(tuning.episodes, 8),
        "settling": 5,
        "averaging": 0.9,
    }
    return full.model_copy(
        update={
            "tuning": tuning.model_copy(update=smaller),
            "selection": selection.model_copy(update={"seeds": min(selection.seeds, 30)}),
        }
    )


def focused(full: AdlroHyperparameters) -> AdlroHyperparameters:
    """Return hyperparameters without the wide family, which needs a large budget."""

    def moved(shares: LabelRound | TuningSettings) -> dict[str, float]:
        return {"wide_share": 0.0, "family_share": shares.family_share + shares.wide_share / 2}

    return full.model_copy(
        update={
            "rounds": tuple(each.model_copy(update=moved(each)) for each in full.rounds),
            "tuning": full.tuning.model_copy(update=moved(full.tuning)),
            "selection": full.selection.model_copy(update={"wide": 0}),
        }
    )


def reduced_rounds(full: AdlroHyperparameters) -> AdlroHyperparameters:
    """Apply `focused` and `reduced`, and drop all rounds of labels except the first."""
    few = reduced(focused(full))
    return few.model_copy(update={"rounds": few.rounds[:1]})
