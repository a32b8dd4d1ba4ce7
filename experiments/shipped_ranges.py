"""Measure the training ranges of the shipped policy's features, and write them to its card.

python experiments/shipped_ranges.py [--states N] [--write]

The states are those that the training labels: the same episodes of its rounds (scenario, relatives,
seeds from 1,000,000 on, behaviours, share of random starts), the first N states of them. The
network of the first round was not kept, so the shipped one plays its part in the second round.
Costs are not needed here, so rollouts are as short as they can be. About 90 CPU seconds.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence

from adlro.config.files import find_scenario
from adlro.errors import AdlroError
from adlro.files import write_text
from adlro.policies.loading import learned
from adlro.policies.loading.card import with_ranges
from adlro.policies.loading.feature_ranges import FeatureRanges
from adlro.seeds import TrainingPhase
from adlro.train.adlro import ALGORITHM
from adlro.train.episodes import EpisodeSource
from adlro.train.expansion import Labels
from adlro.train.hyperparameters import AdlroHyperparameters
from adlro.train.labelling import Labelling, LabelTask, label, ranges_of

STATES = 150_000
RUN = 0  # --seed of the training


def labelled(states: int) -> list[Labels]:
    """Return the first training states: of each round the same share of the states it labels."""
    used, network = AdlroHyperparameters(), learned.shipped().network
    source = EpisodeSource(find_scenario(ALGORITHM.scenario), used.loads)
    total, parts = sum(each.states for each in used.rounds), list[Labels]()
    for number, each in enumerate(used.rounds):
        short = each.model_copy(update={"horizon": 1, "futures": 1})
        work = Labelling(source, short, RUN, TrainingPhase.LABELS + number, network)
        wanted, found = states * each.states / total, 0
        for episode in itertools.count():
            parts.append(label(LabelTask(work, episode)))
            found += len(parts[-1].groups)
            if found >= wanted:
                break
    return parts


def measured(states: int = STATES) -> FeatureRanges:
    """Return the ranges of the shipped network's features over at least so many states."""
    return ranges_of(learned.shipped().network.features, labelled(states))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write if asked to; status 2 if the user has something to put right."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--states", type=int, default=STATES)
    options.add_argument("--write", action="store_true", help="write them to the shipped card")
    given = options.parse_args(arguments)
    try:
        ranges = measured(given.states)
        for name, found in ranges.features.items():
            sys.stdout.write(f"{name:16}{''.join(f'{value:12.5g}' for value in found)}\n")
        sys.stdout.write(f"{ranges.options:,} options of {ranges.states:,} states\n")
        if given.write:
            path = learned.shipped_file().with_suffix(".json")
            write_text(path, with_ranges(path.read_bytes(), path, ranges))
    except AdlroError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
