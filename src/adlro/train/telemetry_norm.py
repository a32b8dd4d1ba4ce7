"""Learns the normalisation of telemetry readings in episodes like those of a training."""

from __future__ import annotations

import itertools

import numpy as np

from adlro.evaluate.explanation import watch
from adlro.model.cluster import Layout
from adlro.model.state import Floats, Records
from adlro.model.view import View
from adlro.seeds import TrainingPhase
from adlro.telemetry.normalise import Norm, empty, observe
from adlro.telemetry.sample import CHANNELS, COLUMN
from adlro.train.episodes import MIN_MIN, Episode, EpisodeKey, EpisodeSource, policy
from adlro.train.hyperparameters import Shares

_EPISODES, _FAMILY_SHARE = 24, 0.75  # more relatives than in training, for more GPU models
_EVERY = 8  # calls of decide; readings hardly change in between


def _values(gpus: Records, peaks: Floats) -> Floats:
    """Return the current readings [G, C] of G GPUs in C channels.

    NaN stands for channels that the simulator does not measure.
    """
    values = np.full((len(gpus), len(CHANNELS)), np.nan)
    for name in ("utilisation", "temperature", "power"):
        values[:, COLUMN[name]] = gpus[name]
    values[:, COLUMN["bandwidth"]] = gpus["bandwidth"] / peaks
    return values


def _models(layout: Layout) -> list[str]:
    """Return the name of the model of each of G GPUs [G]."""
    model = layout.pools["model"][layout.nodes["pool"][layout.gpus["node"]]]
    return [layout.models[m].name for m in model]


def _readings(episode: Episode) -> tuple[list[str], Floats]:
    """Play an episode under Min-Min and return the readings of all GPUs at sampled times.

    There are N readings, one per GPU and time: models [N], and values [N, C] of C channels.
    """
    setting, parts, calls = episode.setting, list[Floats](), itertools.count()
    names = _models(setting.layout)
    known = {model.name: model.peak_gb_s for model in setting.layout.models}
    peaks = np.array([known[name] for name in names])

    def see(view: View, _answered: int, _out: Records) -> bool:
        if next(calls) % _EVERY == 0:
            parts.append(_values(view.gpus, peaks))
        return False

    watch(setting, episode.workload, policy(MIN_MIN, setting), episode.seed, see)
    return names * len(parts), np.concatenate(parts)


def observed(source: EpisodeSource, run: int) -> Norm:
    """Return the normalisation learned from episodes that are drawn like those of the training."""
    norm = empty()
    for episode in range(_EPISODES):
        key = EpisodeKey(run, TrainingPhase.TELEMETRY, episode)
        norm = observe(norm, *_readings(source.draw(key, Shares(_FAMILY_SHARE), key.rng)))
    return norm
