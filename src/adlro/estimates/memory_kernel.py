"""The estimator `memory`, compiled: it learns jobs when they end and predicts them at submission.

Dimensions: J jobs, E events, F fillers, M GPU models that the memory tells apart, C job classes, W
words of 64 bits. All run times are in log seconds. Without GPU models (M = 0), they count as run
times on the reference GPU.
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
        ("beyond", "f8"),  # jobs among `asked` that ran longer than requested
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
    """Everything that the estimator has learned, its weighing of patterns, and scratch arrays."""

    space: Space
    memory: Memory
    work: Scratch
    weighing: Weighing
    facts: Records  # [1] FACTS
    histogram: Floats  # [BINS] of all run times on the reference GPU, for the median
    bits: Words  # [W] scratch: pattern of the job at hand
    known: Words  # [W] scratch: which of its bits are known


@njit
def is_bounded(state: MemoryState) -> bool:
    """Return whether nearly all jobs learned so far ended within their requested time."""
    facts = state.facts[0]
    return bool(facts.asked >= _ENOUGH and facts.beyond <= _RARE * facts.asked)


@njit
def _settled(
    state: MemoryState, found: float, confidence: float, asked: float, speed: float
) -> float:
    """Return the final estimate in log seconds from the memory's answer `found`.

    If the memory has no answer or too little confidence, the requested time is used instead, or the
    median of all run times if there is no request; both hold for the reference GPU and are divided
    by the model's assumed speed. If jobs are found to end within their requests (is_bounded), the
    estimate is at most the requested time on any GPU.

    Args:
        state: of the estimator.
        found: the memory's answer in log seconds; nan = none.
        confidence: in `found`, 0 to 1.
        asked: log of the requested seconds; nan = no request.
        speed: assumed log speed of the GPU model, 0 = as fast as the reference GPU.
    """
    if math.isnan(found) or confidence < _NOTHING:
        found = (asked if not math.isnan(asked) else median_of(state.histogram)) - speed
    if not math.isnan(asked) and is_bounded(state):
        return min(found, asked)
    return found


@njit
def _confidence(state: MemoryState, evidence: float) -> float:
    """Return the confidence, 0 to 1, that follows from the evidence found by the memory.

    The memory lowers the evidence for each field (role) that the job leaves unknown; this is undone
    here, so that with half_evidence = 1 one ended job that agrees in all known fields gives 1/2. If
    the memory tells GPU models apart, the model does not count as unknown, because there is one
    prediction for each model.
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
    """Learn job j of the table, which ended at time `when` (seconds)."""
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
    """Write the estimated log seconds of job j on each GPU model into out [max(M, 1)].

    An estimate is nan if there is no similar job, no request and no job learned so far.

    Returns:
        The largest of the confidences for the models, 0 to 1.
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
    """Process events first to last - 1: learn each job that ends, predict each one submitted.

    Args:
        state: of the estimator, updated in place.
        jobs: the table.
        first: index of the first event.
        last: index after the last event.
        out: [J, max(M, 1)] receives the estimated log seconds of each job submitted.
        confidence: [J] receives the confidence of its estimate, 0 to 1.
    """
    for e in range(first, last):
        event = jobs.order[e]
        if event >= 0:
            take_in(state, jobs, event, jobs.time[e])
        else:
            j = -1 - event
            confidence[j] = predict(state, jobs, j, out[j])
