"""Similarity features: a job compared with the waiting and the running jobs, and the queue's mix.

Jobs are encoded as hypervectors of 256 bits (hypervectors/sketch_kernel.py). The similarity of a
job to a group of jobs is the mean of its similarities to each of them. For the few jobs of a state
it is computed from their hypervectors, which gives the same number as a sketch of the group in less
time.

Dimensions: P pools, K patterns, W words of 64 bits.
"""

from __future__ import annotations

import hashlib

import numpy as np

from adlro.compiled import njit, wide
from adlro.features.hypervectors.encode_kernel import ones
from adlro.features.hypervectors.schema import Space, Words, space_of
from adlro.features.hypervectors.sketch_kernel import JOB_ROLES, JOB_SCHEMA, job_pattern
from adlro.model.state import Floats, Records
from adlro.model.view import View

_QUEUE = 8  # projections of the queue's sketch
LIKENESS = (
    "alike_waiting",  # mean similarity of the job to the other waiting jobs
    "alike_here",  # to the running jobs of the pool
    "alike_running",  # to all running jobs
    # Projections of the queue's sketch: mean similarity of the waiting jobs to each of some fixed
    # random patterns. The same for all choices.
    *(f"queue_{k}" for k in range(_QUEUE)),
)
WAITING, HERE, RUNNING, QUEUE = range(4)

MOST_JOBS = 64  # the oldest waiting jobs, and running jobs, that are compared
_SPACE = space_of(JOB_SCHEMA)
_ROLES, _MASKS, _BINDING = _SPACE.roles, _SPACE.masks, _SPACE.binding
_MODEL, _NATS, _FILLERS = _SPACE.model, _SPACE.nats_per_bit, _SPACE.fillers
_WORDS = JOB_SCHEMA.bits // 64
_DIRECTIONS = np.frombuffer(
    hashlib.shake_128(b"queue sketch").digest(8 * _QUEUE * _WORDS), "<u8"
).astype(np.uint64)  # [_QUEUE * _WORDS]

# Length of the scratch: patterns of waiting jobs, of running jobs, of a choice, and two rows.
SCRATCH = (2 * MOST_JOBS + 1) * _WORDS + len(JOB_ROLES) + _WORDS


@njit
def _likeness(one: Words, other: Words) -> float:
    """Return the similarity of two patterns [W]: 1 = equal, about 0 = unrelated."""
    apart = np.uint64(0)
    for w in range(_WORDS):
        apart += ones(one[w] ^ other[w])
    return 1.0 - float(apart) / (32.0 * _WORDS)


@njit
def _write(j: int, tau: float, view: View, row: Words, rest: Words) -> None:
    """Write the pattern of job j to row [W].

    Its run time in the pattern is the one on its fastest pool, divided by tau. rest: scratch.
    """
    jobs, est, pools = view.jobs, view.est, view.pools
    fastest = np.inf
    for p in range(len(pools)):
        fastest = min(fastest, est[j, pools[p].model])
    space = Space(_ROLES, _MASKS, _BINDING, _MODEL, _NATS, _FILLERS)
    job_pattern(jobs[j], fastest / tau, space, rest[: len(JOB_ROLES)], row, rest[len(JOB_ROLES) :])


@njit
def _alike(own: Words, skipped: int, patterns: Words, count: int) -> float:
    """Return the mean similarity of `own` to the first `count` patterns, except number `skipped`.

    0 if there is no other. Shapes: own [W], patterns [K * W].
    """
    total, others = 0.0, 0
    for k in range(count):
        if k != skipped:
            total += _likeness(own, patterns[k * _WORDS : (k + 1) * _WORDS])
            others += 1
    return total / max(others, 1)


@njit
def _alike_here(own: Words, p: int, running: Records, patterns: Words, count: int) -> float:
    """Return the mean similarity of `own` to the running jobs of pool p; 0 if there are none.

    Only the first `count` running jobs count. Shapes: own [W], patterns [K * W] of running jobs.
    """
    total, others = 0.0, 0
    for k in range(count):
        if running[k].pool == p:
            total += _likeness(own, patterns[k * _WORDS : (k + 1) * _WORDS])
            others += 1
    return total / max(others, 1)


@njit
def compare_jobs(
    count: int, tau: float, places: Floats, at: Floats, view: View, scratch: Floats,
    features: Floats,
) -> None:  # fmt: skip
    """Write the similarity features of `count` choices to features [C, LIKENESS].

    Choice i starts the job at position places[i] of the queue on pool at[i]; choice 0 is to wait.
    scratch [SCRATCH].
    """
    queue, running = view.queue, view.running
    words = scratch.view(np.uint64)
    size, most = MOST_JOBS * _WORDS, MOST_JOBS
    waiting, runs, own = words[:size], words[size : 2 * size], words[2 * size :]
    rest = own[_WORDS:]
    known, running_known = min(len(queue), most), min(len(running), most)
    for k in range(known + running_known):  # a single loop, because `_write` is inlined and large
        waits = k < known
        j = queue[k].job if waits else running[k - known].job
        row = (k if waits else most + k - known) * _WORDS
        _write(j, tau, view, words[row : row + _WORDS], rest)
    for f in range(QUEUE):
        features[0, f] = 0.0
    for k in range(_QUEUE):
        direction = _DIRECTIONS[k * _WORDS : (k + 1) * _WORDS]
        features[0, QUEUE + k] = _alike(direction, wide(-1), waiting, known)
    for i in range(1, count):
        x, q, p = features[i], int(places[i]), int(at[i])
        pattern = waiting[q * _WORDS : (q + 1) * _WORDS] if q < known else own[:_WORDS]
        if q >= known:
            _write(queue[q].job, tau, view, pattern, rest)
        x[WAITING] = _alike(pattern, q, waiting, known)
        x[HERE] = _alike_here(pattern, p, running, runs, running_known)
        x[RUNNING] = _alike(pattern, wide(-1), runs, running_known)
        for f in range(QUEUE, len(LIKENESS)):
            x[f] = features[0, f]
