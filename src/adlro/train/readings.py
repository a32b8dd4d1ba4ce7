"""What telemetry looks like on the ground of a training: the state by which readings are scaled."""

from __future__ import annotations

import itertools

import numpy as np

from adlro.evaluate.explanation import watch
from adlro.model.cluster import Layout
from adlro.model.state import Floats, Records
from adlro.model.view import View
from adlro.telemetry.normalise import Norm, empty, observe
from adlro.telemetry.sample import CHANNELS, COLUMN
from adlro.train.episodes import MIN_MIN, Ground, Place, World, named

PHASE = 15  # see seeds.training
_EPISODES, _FAMILY_SHARE = 24, 0.75  # more relatives than in training: their GPUs are many kinds
_EVERY = 8  # calls of decide: in between hardly a meter moves


def _values(gpus: Records, peaks: Floats) -> Floats:
    """[G, C] of a sample; what the simulator does not measure is missing."""
    values = np.full((len(gpus), len(CHANNELS)), np.nan)
    for name in ("utilisation", "temperature", "power"):
        values[:, COLUMN[name]] = gpus[name]
    values[:, COLUMN["bandwidth"]] = gpus["bandwidth"] / peaks
    return values


def _models(layout: Layout) -> list[str]:
    """[G] names."""
    model = layout.pools["model"][layout.nodes["pool"][layout.gpus["node"]]]
    return [layout.models[m].name for m in model]


def _seen(world: World) -> tuple[list[str], Floats]:
    """Models [N] and readings [N, C] of an episode under Min-Min, all GPUs time after time."""
    layout, policy = world.setting.layout, named(MIN_MIN, world.setting)
    names, parts, calls = _models(layout), list[Floats](), itertools.count()
    known = {model.name: model.bandwidth_gb_s for model in layout.models}
    peaks = np.array([known[name] for name in names])

    def see(view: View, _answered: int, _out: Records) -> bool:
        if next(calls) % _EVERY == 0:
            parts.append(_values(view.gpus, peaks))
        return False

    watch(world.setting, world.workload, policy, world.seed, see)
    return names * len(parts), np.concatenate(parts)


def learned(ground: Ground, run: int) -> Norm:
    """What the meters show in some episodes, drawn as those of training."""
    norm = empty()
    for episode in range(_EPISODES):
        place = Place(run, PHASE, episode)
        norm = observe(norm, *_seen(ground.draw(place, _FAMILY_SHARE, place.rng)))
    return norm
