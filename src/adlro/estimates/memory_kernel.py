"""The estimator `memory`, compiled: jobs that end are learned, jobs that come are predicted.

Dimensions: J jobs, E events, F fillers, M GPU models that the memory knows, C classes of jobs.
Log seconds throughout. Without models (M = 0) they are those on the reference GPU.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.estimates.outcomes import count_in, median_of
from adlro.features.hypervectors.encode_kernel import encode, ones
from adlro.features.hypervectors.learn_kernel import Completion, learn
from adlro.features.hypervectors.memory import Memory, Query, Scratch, Weighing
from adlro.features.hypervectors.recall_kernel import recall
from adlro.features.hypervectors.schema import Space, Words
from adlro.features.hypervectors.speeds_kernel import learn_speeds
from adlro.model.state import Counts, Floats, Records

FACTS = np.dtype(
    [
        ("asked", "f8"),  # jobs learned that said what they requested
        ("beyond", "f8"),  # of these, those that ran for longer
    ],
    align=True,
)
_ENOUGH, _RARE = 20.0, 0.01  # jobs, and the share beyond the request: then it is a bound
_WORD_BITS = 64
_NOTHING = 1e-4  # confidence: below it the likest job is like this one by chance
_SLACK = 0.02  # log seconds: Slurm ends a job up to a minute late


class Estimator(NamedTuple):
    """All that is learned, and what it is learned with."""

    space: Space
    memory: Memory
    work: Scratch
    weighing: Weighing
    facts: Records  # [1] FACTS
    histogram: Floats  # [BINS] of all run times on the reference GPU, for the median
    bits: Words  # [W] scratch, as `known`
    known: Words


class Jobs(NamedTuple):
    """What is known of J jobs, and when."""

    source: Counts  # [J] an id of each, >= 0
    fillings: Words  # [J, F]
    asked: Floats  # [J] log of the requested seconds; nan = not said
    log_s: Floats  # [J] log of the seconds it ran: not looked at before it ends
    model: Counts  # [J] that it ran on; -1 = not known
    kind: Counts  # [J] class, for speeds
    prior: Floats  # [C, M] log speed of each class on each model, as far as known beforehand
    order: Counts  # [E] by time: j = job j ends, -1 - j = it is submitted
    time: Floats  # [E] seconds


@njit
def is_bounded(estimator: Estimator) -> bool:
    """Whether jobs are seen to keep to what they request."""
    facts = estimator.facts[0]
    return bool(facts.asked >= _ENOUGH and facts.beyond <= _RARE * facts.asked)


@njit
def _settled(
    estimator: Estimator, found: float, confidence: float, asked: float, speed: float
) -> float:
    """An answer of the memory, or without one the request or the median; bounded by the request.

    The log speed known beforehand is that of the model: request and median are those on the
    reference GPU. The bound is not: a job is ended at its request on any GPU.
    """
    if math.isnan(found) or confidence < _NOTHING:
        found = (asked if not math.isnan(asked) else median_of(estimator.histogram)) - speed
    if not math.isnan(asked) and is_bounded(estimator):
        return min(found, asked)
    return found


@njit
def _confidence(estimator: Estimator, evidence: float) -> float:
    """0 to 1; 1/2 is what one job counts that is like this one in all that is known of it.

    The memory's own measure takes off for roles that are missing; here they do not count. The GPU
    model is not missing where the memory knows models: it is what is asked for.
    """
    known = np.uint64(0)
    for w in range(len(estimator.known)):
        known += ones(estimator.known[w])
    missing = _WORD_BITS * len(estimator.known) - int(wide(known))
    if len(estimator.memory.model_bits) > 0:
        missing -= estimator.space.roles[estimator.space.model].bits
    per_bit = estimator.space.nats_per_bit * estimator.weighing.nats
    seen = evidence * math.exp(0.5 * per_bit * missing)
    return seen / (seen + estimator.weighing.half_evidence)


@njit_apart
def take_in(estimator: Estimator, jobs: Jobs, j: int, when: float) -> None:
    """Learn what became of a job."""
    encode(jobs.fillings[j], estimator.space, estimator.bits, estimator.known)
    model, log_s, asked = jobs.model[j], jobs.log_s[j], jobs.asked[j]
    speed = 0.0
    if model >= 0:
        kind = jobs.kind[j]
        speed = jobs.prior[kind, model]
        query = Query(estimator.bits, estimator.known, asked, kind, jobs.prior[kind])
        learn_speeds(
            estimator.space, estimator.memory, query, estimator.weighing, estimator.work,
            log_s, model,
        )  # fmt: skip
    learn(estimator.memory, estimator.bits, Completion(log_s, asked, when, jobs.source[j], model))
    count_in(estimator.histogram, log_s + speed)
    if not math.isnan(asked):
        facts = estimator.facts[0]
        facts.asked += 1.0
        if log_s > asked + _SLACK:
            facts.beyond += 1.0


@njit_apart
def predict(estimator: Estimator, jobs: Jobs, j: int, out: Floats) -> float:
    """Write a job's log seconds on each model, out [max(M, 1)]; nan = nothing is known at all.

    Returns:
        The confidence for the model that it is greatest for.
    """
    encode(jobs.fillings[j], estimator.space, estimator.bits, estimator.known)
    kind, best = jobs.kind[j], 0.0
    query = Query(estimator.bits, estimator.known, jobs.asked[j], kind, jobs.prior[kind])
    recall(estimator.space, estimator.memory, query, estimator.weighing, estimator.work)
    for m in range(len(out)):
        answer = estimator.work.answers[m]
        confidence = _confidence(estimator, answer.evidence)
        speed = jobs.prior[kind, m] if len(estimator.memory.model_bits) > 0 else 0.0
        out[m] = _settled(estimator, answer.log_seconds, confidence, jobs.asked[j], speed)
        best = max(best, confidence)
    return best


@njit_apart
def follow(
    estimator: Estimator, jobs: Jobs, first: int, last: int, out: Floats, confidence: Floats
) -> None:
    """Go through events first to last - 1; write out [J, max(M, 1)] and confidence [J]."""
    for e in range(first, last):
        event = jobs.order[e]
        if event >= 0:
            take_in(estimator, jobs, event, jobs.time[e])
        else:
            j = -1 - event
            confidence[j] = predict(estimator, jobs, j, out[j])
