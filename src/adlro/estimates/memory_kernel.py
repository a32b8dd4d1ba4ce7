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
from adlro.estimates.blend_kernel import (
    FORGETFUL,
    FORGETS,
    MEMORY,
    Blend,
    Job,
    blended,
    forget_opinion,
    learn_blend,
)
from adlro.estimates.calibration_kernel import (
    BY_MEDIAN,
    BY_REQUEST,
    Calibration,
    describe,
    forecast,
    kind_of,
    observe,
    recollect,
    remember,
)
from adlro.estimates.job_fields import alike_key, class_of
from adlro.estimates.job_table import JobTable
from adlro.estimates.running_median_kernel import count_in, median_of
from adlro.estimates.utilisation_kernel import fill_utilisation, learn_utilisation
from adlro.features.hypervectors.encode_kernel import encode, ones
from adlro.features.hypervectors.learn_kernel import Completion, learn
from adlro.features.hypervectors.memory import Memory, Query, Scratch, Weighing
from adlro.features.hypervectors.recall_kernel import answer, recall, select, shift
from adlro.features.hypervectors.schema import Space, Words
from adlro.features.hypervectors.speeds_kernel import learn_speeds
from adlro.model.state import Floats, Records, Row

FACTS = np.dtype(
    [
        ("asked", "f8"),  # jobs learned that had a request
        ("beyond", "f8"),  # jobs among `asked` that ran longer than requested
    ],
    align=True,
)
# The request is a bound after this many jobs, if at most this share ran longer.
_ENOUGH, _RARE = 20.0, 0.01
_WORD_BITS = 64
_NOTHING = 1e-4  # certainty below which similarity is by chance
_SLACK = 0.02  # log seconds: Slurm terminates jobs up to a minute late


class MemoryState(NamedTuple):
    """Everything that the estimator has learned, its weighing of patterns, and scratch arrays."""

    space: Space
    memory: Memory
    work: Scratch
    weighing: Weighing
    facts: Records  # [1] FACTS
    histogram: Floats  # [BINS] of all run times on the reference GPU, for the median
    blend: Blend  # second stage
    calibration: Calibration  # errors of earlier estimates
    uses: Records  # [USES] USE, GPU utilisation of ended jobs
    filling: Words  # [F] scratch: fillers of the job at hand
    others: Records  # [K] ANSWER, scratch: of another weighing
    alike: Floats  # [1] log speed 0: of the reference GPU, if there are no GPU models
    spare: Floats  # [K, Q] scratch: quantiles
    spare_confidence: Floats  # [K] scratch
    bits: Words  # [W] scratch: pattern of the job at hand
    known: Words  # [W] scratch: which of its bits are known


@njit
def is_bounded(state: MemoryState) -> bool:
    """Return whether nearly all jobs learned so far ended within their requested time."""
    facts = state.facts[0]
    return bool(facts.asked >= _ENOUGH and facts.beyond <= _RARE * facts.asked)


@njit
def _bound(state: MemoryState, asked: float) -> float:
    """Return the largest estimate in log seconds: the request if jobs are found to keep to it."""
    return asked if not math.isnan(asked) and is_bounded(state) else np.inf


@njit
def _fallback(state: MemoryState, asked: float, speed: float) -> float:
    """Return log seconds where the memory knows nothing similar.

    That is the requested time, or the median of all run times if there is no request; both hold for
    the reference GPU and are divided by the model's assumed speed.

    Args:
        state: of the estimator.
        asked: log of the requested seconds; nan = no request.
        speed: assumed log speed of the GPU model, 0 = as fast as the reference GPU.
    """
    return float((median_of(state.histogram) if math.isnan(asked) else asked) - speed)


@njit
def _settle(
    state: MemoryState, k: int, gain: float, asked: float, speed: float, quantiles: Floats
) -> float:
    """Write the final estimate on model k, made from the memory's answer, to calibration.latest.

    If jobs are found to end within their requests (is_bounded), the estimate and its quantiles are
    at most the requested time on any GPU.

    Args:
        state: of the estimator.
        k: index of the answer.
        gain: log seconds that the second stage adds to the answer.
        asked: log of the requested seconds; nan = no request.
        speed: assumed log speed of the GPU model, 0 = as fast as the reference GPU.
        quantiles: [Q] receives log seconds.

    Returns:
        The probability that the estimate is within a factor of 2 of the run time.
    """
    cal, found = state.calibration, state.work.answers[k]
    low, high, outcomes = found.low, found.high, found.outcomes
    if _is_known(state, found):
        centre, kind = found.log_seconds + gain, kind_of(outcomes, 0.5 * (low + high))
    else:
        low, high, outcomes = 0.0, 0.0, 0.0
        centre = _fallback(state, asked, speed)
        kind = BY_MEDIAN if math.isnan(asked) else BY_REQUEST
    most, latest = _bound(state, asked), cal.latest[k]
    forecast(cal, min(centre, most), low, high, outcomes, kind, latest)
    confidence = describe(cal, latest, quantiles)
    for q in range(len(quantiles)):
        quantiles[q] = min(quantiles[q], most + _SLACK)
    return confidence


@njit
def _certainty(state: MemoryState, evidence: float) -> float:
    """Return how much is known of a job, 0 to 1, by the evidence found by the memory.

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


@njit
def _is_known(state: MemoryState, found: Row) -> bool:
    """Return whether an answer of the memory rests on more than chance."""
    return bool(not math.isnan(found.log_seconds) and _certainty(state, found.evidence) >= _NOTHING)


@njit
def _encode(state: MemoryState, jobs: JobTable, j: int) -> None:
    """Write the pattern of job j to state.bits, with the utilisation of similar ended jobs."""
    for f in range(len(state.filling)):
        state.filling[f] = jobs.fillings[j, f]
    fill_utilisation(state.uses, state.space, state.filling)
    encode(state.filling, state.space, state.bits, state.known)


@njit
def _query(state: MemoryState, jobs: JobTable, j: int) -> Query:
    """Return the query of job j, whose pattern is in state.bits."""
    kind = jobs.kind[j]
    group = class_of(state.filling, kind, len(state.memory.speeds) - 1)
    return Query(state.bits, state.known, jobs.asked[j], wide(group), jobs.prior[kind])


@njit
def _job(state: MemoryState, jobs: JobTable, j: int) -> Job:
    """Return what the second stage needs of job j."""
    has_models = len(state.memory.model_bits) > 0
    speeds = jobs.prior[jobs.kind[j]] if has_models else state.alike
    return Job(alike_key(jobs.fillings[j]), jobs.source[j], jobs.asked[j], speeds)


@njit_apart
def take_in(state: MemoryState, jobs: JobTable, j: int, when: float) -> None:
    """Learn job j of the table, which ended at time `when` (seconds)."""
    learn_utilisation(state.uses, jobs.fillings[j], jobs.utilisation[j])
    _encode(state, jobs, j)
    model, log_s, asked = jobs.model[j], jobs.log_s[j], jobs.asked[j]
    speed = 0.0
    if model >= 0:
        speed, query = jobs.prior[jobs.kind[j], model], _query(state, jobs, j)
        learn_speeds(state.space, state.memory, query, state.weighing, state.work, log_s, model)
    if model >= 0 or len(state.memory.model_bits) == 0:
        learn_blend(state.blend, _job(state, jobs, j), max(model, 0), log_s)
    learn(state.memory, state.bits, Completion(log_s, asked, when, jobs.source[j], model))
    count_in(state.histogram, log_s + speed)
    if not math.isnan(asked):
        facts = state.facts[0]
        facts.asked += 1.0
        if log_s > asked + _SLACK:
            facts.beyond += 1.0


@njit
def _said(state: MemoryState, job: Job, k: int, found: Row) -> float:
    """Return an answer of the memory for model k in log seconds, bounded by the request."""
    if _is_known(state, found):
        log_s = found.log_seconds
    else:
        log_s = _fallback(state, job.asked, job.speeds[k])
    return float(min(log_s, _bound(state, job.asked)))


@njit
def _recall(state: MemoryState, query: Query, models: int) -> None:
    """Recall the answers for a job, and in state.others those of a memory that forgets faster."""
    space, memory, work, usual = state.space, state.memory, state.work, state.weighing
    recall(space, memory, query, usual, work)
    forgetful = Weighing(
        usual.fresh, usual.fading * FORGETS, usual.nats, usual.slope, usual.mean,
        usual.half_evidence, usual.apart, usual.known,
    )  # fmt: skip
    count = select(space, memory, query, forgetful, work)
    for k in range(models):
        asked = k if len(memory.model_bits) > 0 else -1
        answer(space, memory, query, forgetful, asked, count, work, state.others[k])


@njit
def _gain(state: MemoryState, job: Job, k: int, keeps: bool) -> float:
    """Return the log seconds that the second stage adds to the memory's answer for model k.

    Where the memory knows nothing similar, its fallback is not blended.
    """
    blend, found = state.blend, state.work.answers[k]
    if not _is_known(state, found):
        if keeps:
            forget_opinion(blend, job.source, k)
        return 0.0
    blend.experts[MEMORY] = _said(state, job, k, found)
    blend.experts[FORGETFUL] = _said(state, job, k, state.others[k])
    return float(blended(blend, job, k, keeps) - _said(state, job, k, found))


@njit_apart
def predict(
    state: MemoryState, jobs: JobTable, j: int, keeps: bool, quantiles: Floats, confidence: Floats
) -> None:
    """Estimate job j on each of K = max(M, 1) GPU models; calibration.latest holds the estimates.

    An estimate is nan if there is no similar job, no request and no job learned so far.

    Args:
        state: of the estimator.
        jobs: the table.
        j: row of the job.
        keeps: whether the job is submitted, so that the second stage is judged by its end.
        quantiles: [K, Q] receives the quantiles of its log seconds.
        confidence: [K] receives the probability that it is within a factor of 2 of the run time.
    """
    _encode(state, jobs, j)
    job = _job(state, jobs, j)
    _recall(state, _query(state, jobs, j), len(confidence))
    for k in range(len(confidence)):
        gain = _gain(state, job, k, keeps)
        confidence[k] = _settle(state, k, gain, job.asked, job.speeds[k], quantiles[k])


@njit
def _calibrate(state: MemoryState, jobs: JobTable, j: int) -> None:
    """Learn how far the estimate of an ended job was off.

    That is the estimate at its submission, if that was followed, and else the one made now. The run
    time of a job that ran on an unknown GPU model counts as that on the reference GPU, and is
    compared with the estimate for the first model.
    """
    cal, model, log_s = state.calibration, jobs.model[j], jobs.log_s[j]
    if not recollect(cal, jobs.source[j]):
        predict(state, jobs, j, False, state.spare, state.spare_confidence)
    if model < 0 and len(state.memory.model_bits) > 0:
        _encode(state, jobs, j)
        log_s += shift(state.memory, _query(state, jobs, j), -1, 0)
        for k in range(len(cal.latest)):
            forget_opinion(state.blend, jobs.source[j], k)
    observe(cal, cal.latest[max(model, 0)], log_s)


@njit_apart
def follow(
    state: MemoryState, jobs: JobTable, first: int, last: int, keeps: bool, out: Floats,
    quantiles: Floats, confidence: Floats,
) -> None:  # fmt: skip
    """Process events first to last - 1: learn each job that ends, predict each one submitted.

    Args:
        state: of the estimator, updated in place.
        jobs: the table.
        first: index of the first event.
        last: index after the last event.
        keeps: whether estimates are kept until the jobs end, to learn from their errors.
        out: [J, K] receives the estimated log seconds of each job submitted.
        quantiles: [J, K, Q] receives the quantiles of its log seconds.
        confidence: [J, K] receives the confidence of its estimate, 0 to 1.
    """
    cal = state.calibration
    for e in range(first, last):
        event = jobs.order[e]
        if event >= 0:
            _calibrate(state, jobs, event)
            take_in(state, jobs, event, jobs.time[e])
        else:
            j = -1 - event
            predict(state, jobs, j, keeps, quantiles[j], confidence[j])
            for k in range(len(cal.latest)):
                out[j, k] = cal.latest[k].centre
            if keeps:
                remember(cal, jobs.source[j])
