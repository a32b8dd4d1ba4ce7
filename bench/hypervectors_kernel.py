"""One query of the hypervector benchmark, compiled; see clone_kernel.py on bounds checks."""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit_apart
from adlro.features.hypervectors.encode_kernel import encode, number_key
from adlro.features.hypervectors.memory import Memory, Query, Scratch, Weighing
from adlro.features.hypervectors.recall_kernel import recall
from adlro.features.hypervectors.schema import Space, Words
from adlro.model.state import Counts

WORDS = 6  # word roles; the level roles follow


@njit_apart
def encode_job(job: Counts, space: Space, filling: Words, bits: Words, known: Words) -> None:
    """Encode a job given by the numbers of its fillers."""
    for r in range(len(job)):
        if r < WORDS:
            filling[r] = number_key(space.roles[r], job[r])
        else:
            filling[r] = np.uint64(1 + job[r])
    encode(filling, space, bits, known)


@njit_apart
def ask(
    job: Counts, space: Space, memory: Memory, query: Query, weighing: Weighing, work: Scratch,
    filling: Words,
) -> int:  # fmt: skip
    """Encode a job, recall it, and return the source with the largest share."""
    encode_job(job, space, filling, query.bits, query.known)
    count = recall(space, memory, query, weighing, work)
    best = 0
    for i in range(1, count):
        if work.sources[i].share > work.sources[best].share:
            best = i
    return int(work.sources[best].source)
