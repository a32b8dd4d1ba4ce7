"""Relative speeds of GPU models, learned from similar jobs that ran on different models.

Two similar jobs on models a and b give a ratio of their run times. The caller's prior is
subtracted, the rest is averaged for each pair of models, and the speeds are the least-squares fit
to all pairs: models that never ran similar jobs are compared through a third one.
"""

from __future__ import annotations

import math

from adlro.compiled import njit, njit_apart
from adlro.features.hypervectors.memory import Memory, Query, Scratch, Weighing
from adlro.features.hypervectors.recall_kernel import gather, known_bits, noise
from adlro.features.hypervectors.schema import Space

_SWEEPS = 4  # of the fit over the models of a class, after each job
_ALIKE = 1.5  # nats: jobs that differ by more are not compared
_MOST = 200.0  # largest weight of the earlier observations of a pair
_PRIOR = 3.0  # weight of the prior in jobs, if the weighing does not say how far classes differ
_LEAST, _MOST_PRIOR = 0.5, 40.0  # limits of that weight otherwise
_ASSUMED = 0.5  # spread of true log speeds around the assumed ones


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
def _prior_weight(memory: Memory, weighing: Weighing, row: int) -> float:
    """Return the weight in jobs with which the speeds of a class are held to those of all classes.

    It is the variance of an observation over the variance of what is observed: between classes
    for a class, and between true and assumed speeds for all classes.
    """
    if not weighing.apart > 0.0:
        return _PRIOR
    found = noise(memory, row) ** 2
    if row < len(memory.speeds) - 1:
        found /= weighing.apart**2
    else:
        found = (found + 2.0 * weighing.apart**2) / _ASSUMED**2
    return min(max(found, _LEAST), _MOST_PRIOR)


@njit
def _settle(memory: Memory, weighing: Weighing, row: int) -> None:
    """Improve the fit of the speeds of a class to all its pairs.

    The speeds of a class are regularised towards those of all classes, and those towards the prior.
    """
    weights, ratios, speeds = memory.pair_weights[row], memory.pair_ratios[row], memory.speeds
    last, prior = len(speeds) - 1, _prior_weight(memory, weighing, row)
    for _ in range(_SWEEPS):
        for m in range(speeds.shape[1]):
            total, result = prior, 0.0
            if row < last:
                result = prior * speeds[last, m]
            for other in range(speeds.shape[1]):
                total += weights[m, other]
                result += weights[m, other] * (speeds[row, other] - ratios[m, other])
            speeds[row, m] = result / total


@njit
def _add_noise(memory: Memory, row: int, weight: float, off: float) -> None:
    """Add the |log difference| of a job from alike jobs on its own model to a class's mean."""
    found = memory.noises[row]
    found[1] = min(found[1], _MOST) + weight
    found[0] += weight / found[1] * (off - found[0])


@njit
def _sum_alike(
    space: Space, memory: Memory, query: Query, weighing: Weighing, work: Scratch
) -> int:
    """Sum up the alike outcomes on each model: weights in work.factors, means in work.shifts.

    Returns:
        The number of these outcomes.
    """
    count, alike = gather(space, memory, query, weighing, work), 0
    per_bit = space.nats_per_bit * weighing.nats
    work.factors[:] = 0.0
    work.shifts[:] = 0.0
    work.peak[0] = 0.0
    for i in range(count):
        source = work.sources[i]
        if per_bit * work.gaps[source.slot] > _ALIKE:
            continue
        b = source.model + 1
        work.factors[b] += source.weight
        work.shifts[b] += (source.log_seconds - work.shifts[b]) * source.weight / work.factors[b]
        work.peak[0] = max(work.peak[0], source.weight)
        alike += 1
    return alike


@njit_apart
def learn_speeds(
    space: Space, memory: Memory, query: Query, weighing: Weighing, work: Scratch,
    log_seconds: float, model: int,
) -> int:  # fmt: skip
    """Learn from a job that ran on one model and the similar jobs that ran on others.

    A job is one observation for each other model, however many jobs it is compared with: it is
    compared with their mean, and n jobs give a weight of n / (1 + n).

    Args:
        space: of the patterns.
        memory: its speeds are updated. Call this before `learn`.
        query: the job, as for a recall.
        weighing: as for a recall.
        work: as for a recall.
        log_seconds: natural log of its run time.
        model: index of the model that it ran on, >= 0.

    Returns:
        The number of models that it was compared with.
    """
    if _sum_alike(space, memory, query, weighing, work) == 0:
        return 0
    last, pairs = len(memory.speeds) - 1, 0
    has_class = 0 <= query.kind < last
    known = 0.5 * space.nats_per_bit * known_bits(query)
    trust = math.exp(min(known - weighing.known, 0.0))
    for b in range(1, len(work.factors)):
        if work.factors[b] <= 0.0:
            continue
        other, outcomes = b - 1, work.factors[b] / work.peak[0]
        weight = trust * outcomes / (1.0 + outcomes)
        gap = log_seconds - work.shifts[b]
        if other == model:
            off = abs(gap) / math.sqrt(1.0 + 1.0 / outcomes)
            _add_noise(memory, last, weight, off)
            if has_class:
                _add_noise(memory, query.kind, weight, off)
            continue
        gap -= query.prior[other] - query.prior[model]
        _add_pair(memory, last, model, other, weight, gap)
        if has_class:
            _add_pair(memory, query.kind, model, other, weight, gap)
            memory.noises[query.kind, 2] += 1.0
        pairs += 1
    if pairs > 0:
        _settle(memory, weighing, last)
        if has_class:
            _settle(memory, weighing, query.kind)
    return pairs
