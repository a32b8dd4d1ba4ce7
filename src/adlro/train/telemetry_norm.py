"""Normalisation of telemetry, observed in episodes like those of a training."""

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

_EPISODES, _FAMILY_SHARE = 24, 0.75  # more relatives than in training, for more GPU models
_EVERY = 8  # calls of decide; readings hardly change in between


def _values(gpus: Records, peaks: Floats) -> Floats:
    """[G, C] readings of a sample; NaN where the simulator measures nothing."""
    values = np.full((len(gpus), len(CHANNELS)), np.nan)
    for name in ("utilisation", "temperature", "power"):
        values[:, COLUMN[name]] = gpus[name]
    values[:, COLUMN["bandwidth"]] = gpus["bandwidth"] / peaks
    return values


def _models(layout: Layout) -> list[str]:
    """[G] names of GPU models."""
    model = layout.pools["model"][layout.nodes["pool"][layout.gpus["node"]]]
    return [layout.models[m].name for m in model]


def _readings(episode: Episode) -> tuple[list[str], Floats]:
    """Models [N] and readings [N, C] of all GPUs at sampled times of an episode under Min-Min."""
    setting, parts, calls = episode.setting, list[Floats](), itertools.count()
    names = _models(setting.layout)
    known = {model.name: model.bandwidth_gb_s for model in setting.layout.models}
    peaks = np.array([known[name] for name in names])

    def see(view: View, _answered: int, _out: Records) -> bool:
        if next(calls) % _EVERY == 0:
            parts.append(_values(view.gpus, peaks))
        return False

    watch(setting, episode.workload, policy(MIN_MIN, setting), episode.seed, see)
    return names * len(parts), np.concatenate(parts)


def observed(source: EpisodeSource, run: int) -> Norm:
    """The normalisation after some episodes, drawn as those of the training of a run."""
    norm = empty()
    for episode in range(_EPISODES):
        key = EpisodeKey(run, TrainingPhase.TELEMETRY, episode)
        norm = observe(norm, *_readings(source.draw(key, _FAMILY_SHARE, key.rng)))
    return norm
