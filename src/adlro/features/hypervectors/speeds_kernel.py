"""Relative speeds of GPU models, learned from similar jobs that ran on different models.

Two similar jobs on models a and b give a ratio of their run times. The caller's prior is
subtracted, the rest is averaged for each pair of models, and the speeds are the least-squares fit
to all pairs: models that never ran similar jobs are compared through a third one.
"""

from __future__ import annotations

import math

from adlro.compiled import njit, njit_apart
from adlro.features.hypervectors.memory import Memory, Query, Scratch, Weighing
from adlro.features.hypervectors.recall_kernel import gather
from adlro.features.hypervectors.schema import Space

_SWEEPS = 4  # of the fit over the models of a class, after each job
_ALIKE = 1.5  # nats: jobs that differ by more are not compared
_MOST = 200.0  # largest weight of the earlier observations of a pair
_PRIOR = 3.0  # weight of the prior, in pairs of equal jobs


@njit
def _add_pair(memory: Memory, row: int, one: int, other: int, weight: float, gap: float) -> None:
    """Add an observed difference `gap` of log seconds between two models to a class's averages."""
    weights, ratios = memory.pair_weights[row], memory.pair_ratios[row]
    weights[one, other] = min(weights[one, other], _MOST) + weight
    weights[other, one] = weights[one, other]
    share = weight / weights[one, other]
    ratios[one, other] += share * (gap - ratios[one, other])
    ratios[other, one] = -ratios[one, other]


@njit
def _settle(memory: Memory, row: int) -> None:
    """Improve the fit of the speeds of a class to all its pairs.

    The speeds of a class are regularised towards those of all classes, and those towards the prior.
    """
    weights, ratios, speeds = memory.pair_weights[row], memory.pair_ratios[row], memory.speeds
    last = len(speeds) - 1
    for _ in range(_SWEEPS):
        for m in range(speeds.shape[1]):
            total, result = _PRIOR, 0.0
            if row < last:
                result = _PRIOR * speeds[last, m]
            for other in range(speeds.shape[1]):
                total += weights[m, other]
                result += weights[m, other] * (speeds[row, other] - ratios[m, other])
            speeds[row, m] = result / total


@njit_apart
def learn_speeds(
    space: Space, memory: Memory, query: Query, weighing: Weighing, work: Scratch,
    log_seconds: float, model: int,
) -> int:  # fmt: skip
    """Learn from a job that ran on one model and the similar jobs that ran on others.

    Args:
        space: of the patterns.
        memory: its speeds are updated. Call this before `learn`.
        query: the job, as for a recall.
        weighing: as for a recall.
        work: as for a recall.
        log_seconds: natural log of its run time.
        model: index of the model that it ran on, >= 0.

    Returns:
        The number of outcomes that it was compared with.
    """
    count, pairs = gather(space, memory, query, weighing, work), 0
    last = len(memory.speeds) - 1
    per_bit = space.nats_per_bit * weighing.nats
    half = math.exp(0.5 * per_bit * space.roles[space.model].bits)
    for i in range(count):
        source = work.sources[i]
        weight = source.weight * half  # the role of the model does not count here
        is_alike = per_bit * work.gaps[source.slot] <= _ALIKE
        if source.model < 0 or source.model == model or not is_alike:
            continue
        known = query.prior[source.model] - query.prior[model]
        gap = log_seconds - source.log_seconds - known
        _add_pair(memory, last, model, source.model, weight, gap)
        if 0 <= query.kind < last:
            _add_pair(memory, query.kind, model, source.model, weight, gap)
        pairs += 1
    if pairs > 0:
        _settle(memory, last)
        if 0 <= query.kind < last:
            _settle(memory, query.kind)
    return pairs
