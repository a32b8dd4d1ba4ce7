"""Sketches: bundles of many jobs in one row of counters, for the waiting or the running jobs.

There is one counter per bit: a job adds its weight where its bit is set and subtracts it elsewhere.
Jobs can therefore be removed exactly, and the similarity of a job to a sketch is the weighted mean
of its similarities to the jobs in it: about the share of similar jobs. Dimensions: D bits,
W = D / 64 words.
"""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit
from adlro.features.hypervectors.encode_kernel import encode, level_of, number_key
from adlro.features.hypervectors.schema import Role, Schema, Space, Words
from adlro.model.state import WHOLE, Counts, Row

_ONE = np.uint64(1)
_WORD_BITS = 64

JOB_ROLES = ("type", "seconds", "gpus", "user", "account", "priority")
_TYPE, _SECONDS, _GPUS, _USER, _ACCOUNT, _PRIORITY = range(len(JOB_ROLES))
JOB_SCHEMA = Schema(
    (
        Role("type", "word", 3.0),
        Role("seconds", "level", 3.0, low=1e-3, high=1e3, log=True, levels=61, cells=6),
        Role("gpus", "level", 2.0, low=1 / 16, high=256.0, log=True, levels=25, cells=4),
        Role("user", "word", 1.0),
        Role("account", "word", 1.0),
        Role("priority", "level", 1.0, levels=9, cells=2),
    ),
    bits=256,
)


@njit
def job_pattern(
    job: Row, seconds: float, space: Space, filling: Words, bits: Words, known: Words
) -> None:
    """Write the pattern of a job record in the space of JOB_SCHEMA.

    Args:
        job: a record of model/state.py.
        seconds: its run time, in a unit that makes clusters comparable, such as tau.
        space: of JOB_SCHEMA, or of one with the same roles at another width or other weights.
        filling: [F] scratch.
        bits: [W] the pattern.
        known: [W] the mask of its known roles.
    """
    roles = space.roles
    filling[_TYPE] = number_key(roles[_TYPE], job.type)
    filling[_SECONDS] = level_of(roles[_SECONDS], seconds)
    filling[_GPUS] = level_of(roles[_GPUS], job.gpus * job.share / WHOLE)
    filling[_USER] = number_key(roles[_USER], job.user)
    filling[_ACCOUNT] = number_key(roles[_ACCOUNT], job.account)
    filling[_PRIORITY] = level_of(roles[_PRIORITY], job.priority)
    encode(filling, space, bits, known)


@njit
def add(sketch: Counts, bits: Words, weight: int) -> None:
    """Add a pattern to a sketch [D + 1], whose last counter is the sum of weights."""
    for w in range(len(bits)):
        word, row = bits[w], sketch[w * _WORD_BITS : (w + 1) * _WORD_BITS]
        for b in range(_WORD_BITS):
            row[b] += weight if (word >> np.uint64(b)) & _ONE else -weight
    sketch[len(bits) * _WORD_BITS] += weight


@njit
def remove(sketch: Counts, bits: Words, weight: int) -> None:
    """Remove a pattern from a sketch to which it was added with the same weight."""
    add(sketch, bits, -weight)


@njit
def share_alike(sketch: Counts, bits: Words) -> float:
    """Return the mean similarity of a pattern to those in a sketch, about 0 to 1; 0 if empty."""
    size = len(bits) * _WORD_BITS
    if sketch[size] == 0:
        return 0.0
    total = 0
    for w in range(len(bits)):
        word, row = bits[w], sketch[w * _WORD_BITS : (w + 1) * _WORD_BITS]
        for b in range(_WORD_BITS):
            total += row[b] if (word >> np.uint64(b)) & _ONE else -row[b]
    return total / (size * sketch[size])
