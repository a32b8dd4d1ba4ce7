"""What one query of the benchmark does, compiled."""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit_apart
from adlro.features.hypervectors.encode_kernel import encode, number_key
from adlro.features.hypervectors.memory import Memory, Query, Scratch, Weighing
from adlro.features.hypervectors.recall_kernel import recall
from adlro.features.hypervectors.schema import Space, Words
from adlro.model.state import Counts

WORDS = 6  # roles that a word fills; levels fill those after them


@njit_apart
def encode_job(job: Counts, space: Space, filling: Words, bits: Words, known: Words) -> None:
    """Write the pattern of a job that is given by its fillers' numbers."""
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
    """Encode, recall, and name the source with the largest share."""
    encode_job(job, space, filling, query.bits, query.known)
    count = recall(space, memory, query, weighing, work)
    likest = 0
    for i in range(1, count):
        if work.sources[i].share > work.sources[likest].share:
            likest = i
    return int(work.sources[likest].source)
