"""The estimator `memory`, compiled: ends are learned, submissions are predicted.

Dimensions: J jobs, E events, F fillers, M GPU models that the memory knows, C classes of jobs.
Log seconds throughout. Without models (M = 0) they are those on the reference GPU.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.estimates.job_table import JobTable
from adlro.estimates.running_median_kernel import count_in, median_of
from adlro.features.hypervectors.encode_kernel import encode, ones
from adlro.features.hypervectors.learn_kernel import Completion, learn
from adlro.features.hypervectors.memory import Memory, Query, Scratch, Weighing
from adlro.features.hypervectors.recall_kernel import recall
from adlro.features.hypervectors.schema import Space, Words
from adlro.features.hypervectors.speeds_kernel import learn_speeds
from adlro.model.state import Floats, Records

FACTS = np.dtype(
    [
        ("asked", "f8"),  # jobs learned that had a request
        ("beyond", "f8"),  # of these, those that ran longer
    ],
    align=True,
)
_ENOUGH, _RARE = (
    20.0,
    0.01,
)  # the request is a bound after this many jobs, if at most this share ran longer
_WORD_BITS = 64
_NOTHING = 1e-4  # confidence below which similarity is by chance
_SLACK = 0.02  # log seconds: Slurm terminates jobs up to a minute late


class MemoryState(NamedTuple):
    """What has been learned, and scratch."""

    space: Space
    memory: Memory
    work: Scratch
    weighing: Weighing
    facts: Records  # [1] FACTS
    histogram: Floats  # [BINS] of all run times on the reference GPU, for the median
    bits: Words  # [W] scratch, as `known`
    known: Words


@njit
def is_bounded(state: MemoryState) -> bool:
    """Whether nearly all jobs learned so far ended within their request."""
    facts = state.facts[0]
    return bool(facts.asked >= _ENOUGH and facts.beyond <= _RARE * facts.asked)


@njit
def _settled(
    state: MemoryState, found: float, confidence: float, asked: float, speed: float
) -> float:
    """Log seconds: the memory's answer, else the request or the median; bounded by the request.

    `speed` is the assumed log speed of the model: request and median hold for the reference GPU.
    The bound holds for any GPU, as jobs are terminated at their request.
    """
    if math.isnan(found) or confidence < _NOTHING:
        found = (asked if not math.isnan(asked) else median_of(state.histogram)) - speed
    if not math.isnan(asked) and is_bounded(state):
        return min(found, asked)
    return found


@njit
def _confidence(state: MemoryState, evidence: float) -> float:
    """Confidence from 0 to 1; one job that agrees in all known fields gives 1/2.

    The memory's evidence is lowered by missing roles, which is undone here. The GPU model does not
    count as missing where the memory knows models: predictions are made for each of them.
    """
    known = np.uint64(0)
    for w in range(len(state.known)):
        known += ones(state.known[w])
    missing = _WORD_BITS * len(state.known) - int(wide(known))
    if len(state.memory.model_bits) > 0:
        missing -= state.space.roles[state.space.model].bits
    per_bit = state.space.nats_per_bit * state.weighing.nats
    seen = evidence * math.exp(0.5 * per_bit * missing)
    return seen / (seen + state.weighing.half_evidence)


@njit_apart
def take_in(state: MemoryState, jobs: JobTable, j: int, when: float) -> None:
    """Learn a job that has ended."""
    encode(jobs.fillings[j], state.space, state.bits, state.known)
    model, log_s, asked = jobs.model[j], jobs.log_s[j], jobs.asked[j]
    speed = 0.0
    if model >= 0:
        kind = jobs.kind[j]
        speed = jobs.prior[kind, model]
        query = Query(state.bits, state.known, asked, kind, jobs.prior[kind])
        learn_speeds(
            state.space, state.memory, query, state.weighing, state.work,
            log_s, model,
        )  # fmt: skip
    learn(state.memory, state.bits, Completion(log_s, asked, when, jobs.source[j], model))
    count_in(state.histogram, log_s + speed)
    if not math.isnan(asked):
        facts = state.facts[0]
        facts.asked += 1.0
        if log_s > asked + _SLACK:
            facts.beyond += 1.0


@njit_apart
def predict(state: MemoryState, jobs: JobTable, j: int, out: Floats) -> float:
    """Write a job's log seconds on each model, out [max(M, 1)]; nan = nothing is known at all.

    Returns:
        The confidence for the model that it is greatest for.
    """
    encode(jobs.fillings[j], state.space, state.bits, state.known)
    kind, best = jobs.kind[j], 0.0
    query = Query(state.bits, state.known, jobs.asked[j], kind, jobs.prior[kind])
    recall(state.space, state.memory, query, state.weighing, state.work)
    for m in range(len(out)):
        answer = state.work.answers[m]
        confidence = _confidence(state, answer.evidence)
        speed = jobs.prior[kind, m] if len(state.memory.model_bits) > 0 else 0.0
        out[m] = _settled(state, answer.log_seconds, confidence, jobs.asked[j], speed)
        best = max(best, confidence)
    return best


@njit_apart
def follow(
    state: MemoryState, jobs: JobTable, first: int, last: int, out: Floats, confidence: Floats
) -> None:
    """Go through events first to last - 1; write out [J, max(M, 1)] and confidence [J]."""
    for e in range(first, last):
        event = jobs.order[e]
        if event >= 0:
            take_in(state, jobs, event, jobs.time[e])
        else:
            j = -1 - event
            confidence[j] = predict(state, jobs, j, out[j])
