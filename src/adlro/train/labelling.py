"""Labels of a round: how episodes are labelled, and the files that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.features.start_kernel import FEATURES
from adlro.nets.q_network import Network
from adlro.policies.loading.feature_ranges import FeatureRanges, measure_ranges
from adlro.seeds import TrainingPhase
from adlro.telemetry.normalise import Norm
from adlro.train import episode_seeds, expansion
from adlro.train.episodes import MIN_MIN, EpisodeKey, EpisodeSource, Player, policy
from adlro.train.expansion import Labels
from adlro.train.folder import TrainingFolder
from adlro.train.hyperparameters import SELF, LabelRound

_REAL = 1.6  # typical number of decisions with a choice for each job
_DEAR = 600  # GPUs, and jobs waiting in the end, above which other policies take a minute to play


class Labelling(NamedTuple):
    """What the label tasks of one round share: source of episodes, settings, seeds and network."""

    source: EpisodeSource
    round: LabelRound
    run: int
    phase: int
    network: Network  # of the policy "self"
    norm: Norm | None = None  # normalisation of telemetry readings


class LabelTask(NamedTuple):
    """An episode to label: its round, and its number in that round; picklable."""

    work: Labelling
    number: int


def label(task: LabelTask) -> Labels:
    """Play an episode and label some of its states."""
    work, number = task
    settings, key = work.round, EpisodeKey(work.run, work.phase, number)
    rng = key.rng
    episode = work.source.draw(key, settings.shares, rng)
    setting, first = episode.setting, number * settings.futures
    futures = [
        episode.with_jobs_of(
            episode_seeds.training(work.run, TrainingPhase.FUTURES + work.phase, first + k)
        )
        for k in range(settings.futures)
    ]
    rate = min(settings.rate, settings.states_per_episode / (_REAL * episode.scenario.jobs))

    def player(name: str) -> Player:
        return work.network if name == SELF else name

    behaviour = settings.behaviours[number % len(settings.behaviours)]
    waiting = episode.scenario.jobs * max(1.0 - 1.0 / episode.scenario.load, 0.0)
    if waiting + len(setting.layout.gpus) > _DEAR:
        behaviour = MIN_MIN
    return expansion.expand(
        setting,
        episode.workload,
        policy(player(behaviour), setting),
        policy(player(settings.base), setting),
        expansion.ExpansionSettings(settings.horizon, rate, settings.stray, work.norm),
        rng,
        futures,
    )


def write_labels(folder: TrainingFolder, number: int, first: int, parts: list[Labels]) -> None:
    """Store the labels of consecutive episodes of a round in one file.

    `first` is the number of the first of these episodes.
    """
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in Labels._fields
    }
    folder.write_arrays(f"labels-{number}-{first:06}-{first + len(parts):06}.npz", arrays)


def read_labels(folder: TrainingFolder, number: int) -> tuple[int, list[Labels]]:
    """Return how many episodes of a round are labelled, and the labels, one part per file.

    Raises:
        ConfigError: a file cannot be read.
    """
    done, parts = 0, []
    for file in sorted(folder.path.glob(f"labels-{number}-*.npz")):
        first, last = (int(part) for part in file.stem.split("-")[2:])
        if first == done:
            parts.append(Labels(**folder.read_arrays(file.name)))
            done = last
    return done, parts


def ranges_of(features: Sequence[str], parts: Sequence[Labels]) -> FeatureRanges | None:
    """Return the ranges of some features over all options of the labelled states; None = no state.

    A part has no states if a training is stopped at its beginning.
    """
    columns = [FEATURES.index(name) for name in features]
    states = sum(len(part.groups) for part in parts)
    if states == 0:
        return None
    return measure_ranges(features, [part.features[:, columns] for part in parts], states)
