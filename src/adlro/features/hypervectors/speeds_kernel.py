"""How much faster one GPU model is than another, learned from alike jobs that ran on both.

A pair of alike jobs on models a and b says how long b takes over a. What the caller's prior says
already is taken off; the rest is averaged by pair, and the models' speeds are what agrees best with
all pairs: so models that never ran alike jobs compare by way of a third.
"""

from __future__ import annotations

import math

from adlro.compiled import njit, njit_apart
from adlro.features.hypervectors.memory import Memory, Query, Scratch, Weighing
from adlro.features.hypervectors.recall_kernel import gather
from adlro.features.hypervectors.schema import Space

_SWEEPS = 4  # over the models of a class, after each job
_ALIKE = 1.5  # nats that a match may lack: jobs that differ in more say nothing of GPUs
_MOST = 200.0  # weight of what a pair has said before: the rest is forgotten
_PRIOR = 3.0  # pairs of equal jobs that weigh as much as what was known before


@njit
def _add_pair(memory: Memory, row: int, one: int, other: int, weight: float, gap: float) -> None:
    """Take in log seconds on one model above those on another."""
    weights, ratios = memory.pair_weights[row], memory.pair_ratios[row]
    weights[one, other] = min(weights[one, other], _MOST) + weight
    weights[other, one] = weights[one, other]
    share = weight / weights[one, other]
    ratios[one, other] += share * (gap - ratios[one, other])
    ratios[other, one] = -ratios[one, other]


@njit
def _settle(memory: Memory, row: int) -> None:
    """Bring the speeds of a class nearer to what all its pairs say.

    A class is held back by the speeds of all classes, and those by the prior.
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
    """Compare a job that ran on a model with the jobs like it that ran on others.

    Args:
        space: of the patterns.
        memory: its speeds are changed. Call this before `learn`.
        query: the job, as for a recall.
        weighing: as for a recall.
        work: as for a recall.
        log_seconds: natural log of its run time.
        model: it ran on, >= 0.

    Returns:
        How many outcomes it was compared with.
    """
    count, pairs = gather(space, memory, query, weighing, work), 0
    last = len(memory.speeds) - 1
    per_bit = space.nats_per_bit * weighing.nats
    half = math.exp(0.5 * per_bit * space.roles[space.model].bits)
    for i in range(count):
        source = work.sources[i]
        weight = source.weight * half  # the model's part is no reason to be unlike
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
