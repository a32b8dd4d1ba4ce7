"""Evolution strategies with mirrored noise, ranks, Adam and an average of the points visited.

Only the order of the fitness values matters (Salimans et al. 2017, section 2.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.model.state import Floats
from adlro.train.hyperparameters import TuningSettings

Fitness = Callable[[Floats], Floats]  # [K, D] points -> [K], lower is better

_DECAYS = (0.9, 0.99)  # of Adam's two moments
_GRADIENT = 0.1  # Adam is invariant to it, but for its guard against a division by 0
_GUARD = 1e-8


class Search(NamedTuple):
    """State of a search over D weights; offsets and moments are in units of `scale`."""

    start: Floats  # [D]
    scale: Floats  # [D]
    at: Floats  # [D] present offset from the start
    mean: Floats  # [D] Adam's first moment
    square: Floats  # [D] Adam's second moment
    average: Floats  # [D] of the offsets
    generation: int

    def averaged(self) -> Floats:
        """Return the result of the search: the weights [D] at the averaged offset."""
        return self.start + self.scale * self.average


def begin(start: Floats, scale: Floats) -> Search:
    """Return the state of a search before its first generation."""
    zeros = np.zeros_like(start)
    return Search(start, scale, zeros, zeros, zeros, zeros, 0)


def step(
    search: Search, fitness: Fitness, tuning: TuningSettings, rng: np.random.Generator
) -> Search:
    """Run one generation: try mirrored random points, and move towards the better ones."""
    noise = rng.standard_normal((tuning.pairs, len(search.start)))
    mirrored = np.repeat(noise, 2, axis=0)
    mirrored[1::2] *= -1
    points = search.start + search.scale * (search.at + tuning.sigma * mirrored)
    values = fitness(points)
    ranks = values.argsort(kind="stable").argsort() / (len(values) - 1) - 0.5
    gradient = _GRADIENT * ((ranks[0::2] - ranks[1::2])[:, None] * noise).mean(axis=0)
    gradient /= tuning.sigma
    slow, slower = _DECAYS
    done = search.generation + 1
    mean = slow * search.mean + (1 - slow) * gradient
    square = slower * search.square + (1 - slower) * gradient**2
    fall = (1 - tuning.last_rate) * search.generation / max(tuning.generations, 1)
    move = (mean / (1 - slow**done)) / (np.sqrt(square / (1 - slower**done)) + _GUARD)
    at = search.at - tuning.rate * (1 - fall) * move
    kept = tuning.averaging if search.generation > tuning.settling else min(0.5, tuning.averaging)
    average = kept * search.average + (1 - kept) * at
    return search._replace(at=at, mean=mean, square=square, average=average, generation=done)
