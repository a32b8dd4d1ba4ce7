"""An associative memory of bounded size: run times of past jobs, recalled by similar patterns.

It consists of flat arrays for compiled code and holds no objects. Dimensions: S slots (one per
pattern), W words, L outcomes stored for each pattern, M GPU models, C classes of jobs, T entries of
the hash table, K nearest patterns, B = M + 1 buckets (the first for jobs of unknown GPU model),
N sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.errors import ConfigError
from adlro.features.hypervectors.encode_kernel import distance, encode
from adlro.features.hypervectors.schema import MODEL, Space, Words, key
from adlro.model.state import Counts, Floats, Records

NEAREST = 64  # patterns of each GPU model that a recall uses
BLOCK = 512  # slots scanned at a time: their distances fit in the first-level cache
BINS = 1024  # bins of costs, to find the nearest; the last holds all larger costs
_MOST_SLOTS, _MOST_LATEST, _MOST_MODELS, _MOST_CLASSES = 1 << 22, 64, 256, 1 << 16

Places = NDArray[np.int32]

HEAD = np.dtype(
    [
        ("size", "i8"),  # slots in use
        ("learned", "i8"),  # number of jobs learned, which is the turn of the next one
        ("now", "f8"),  # latest time learned, seconds
        ("half_s", "f8"),  # half-life of a weight in seconds; infinite = none
        ("half_jobs", "f8"),  # half-life in learned jobs; infinite = none
    ],
    align=True,
)

OUTCOME = np.dtype(
    [
        ("log_seconds", "f8"),
        ("extra", "f8"),  # a covariate, such as the log of the requested time
        ("when", "f8"),
        ("turn", "i8"),  # number of jobs learned before
        ("source", "i8"),  # the caller's id of the job
    ],
    align=True,
)

SLOT = np.dtype(
    [
        ("hash", "u8"),
        ("jobs", "i8"),  # learned since the pattern got the slot
        # Of all outcomes, and of the older ones that are only summarised: log2 of the sum of
        # their weights plus the halvings since the start, which does not change by decay.
        ("strength", "f8"),
        ("old_strength", "f8"),
        ("old_mean", "f8"),  # log seconds
        ("old_extra", "f8"),
        ("old_turn", "f8"),
    ],
    align=True,
)

ANSWER = np.dtype(
    [
        ("log_seconds", "f8"),  # NaN = no evidence
        ("spread", "f8"),  # weighted mean absolute deviation from it
        ("low", "f8"),  # distance to the 10 % quantile of the sources, log seconds
        ("high", "f8"),  # distance to the 90 % quantile
        ("outcomes", "f8"),  # alike outcomes on the model, in units of the one that weighs most
        ("confidence", "f8"),  # 0 to 1
        ("evidence", "f8"),  # 1 = one job with an equal pattern; decays as weights do
    ],
    align=True,
)

SOURCE = np.dtype(
    [
        ("weight", "f8"),  # before the GPU models are compared
        ("share", "f8"),  # of the latest answer; the shares sum to 1
        ("log_seconds", "f8"),  # predicted for the query on the model that the source ran on
        ("source", "i8"),  # the caller's id; -1 = older jobs of that pattern
        ("slot", "i4"),
        ("model", "i4"),  # that it ran on; -1 = unknown
    ],
    align=True,
)


class Size(NamedTuple):
    """The capacity and the half-lives of a memory."""

    slots: int = 10_000  # patterns
    latest: int = 32  # outcomes of a pattern that are stored individually
    classes: int = 0  # classes of jobs whose speeds are learned separately
    half_s: float = float("inf")  # see HEAD
    half_jobs: float = 10_000.0


USUAL = Size()


class Weighing(NamedTuple):
    """How a recall weighs outcomes: exp(nats of the match) * (1 + age / fresh)^-fading.

    The age is the number of jobs learned since. All are floats: another type compiles again.
    """

    fresh: float = 5.0  # jobs
    fading: float = 0.6
    nats: float = 1.0  # multiplies the roles' weights
    slope: float = 0.0  # change of log seconds per difference of the extra numbers
    mean: float = 0.0  # 1 = the mean instead of the median
    half_evidence: float = 1.0  # that makes a confidence of 1/2
    # Spread of the log speeds of classes around those of all classes. It sets how far outcomes on
    # the queried model displace those on others; 0 = the models' role alone decides.
    apart: float = 0.0
    known: float = 0.0  # nats: pairs of jobs of which less is known teach speeds less


class Memory(NamedTuple):
    """The learned state of the memory: patterns, outcomes, index structures and GPU speeds."""

    head: Records  # [1]
    patterns: Words  # [W, S] word by word, so that a scan runs over neighbouring slots
    turns: Floats  # [S] of the latest outcome
    models: Places  # [S] -1 = unknown
    slots: Records  # [S]
    outcomes: Records  # [S, L] a ring buffer: job n of a slot is at n % L
    table: Places  # [T] 1 + slot of a pattern, 0 = free; open addressing by hash
    heap: Places  # [S] slots, the weakest first
    places: Places  # [S] position of a slot in the heap
    model_bits: Words  # [M, W] bits of a model, at the positions of its role
    model_mask: Words  # [W]
    model_distances: Counts  # [M, M] bits
    pair_weights: Floats  # [C + 1, M, M] weight of the observations on two models
    pair_ratios: Floats  # [C + 1, M, M] log ratio of their seconds, beyond the prior
    speeds: Floats  # [C + 1, M] log speed beyond the prior; the last row: all classes
    # [C + 1, 3] mean |log difference| of alike jobs on one model, the jobs in it, and how often a
    # job was compared with those on another model.
    noises: Floats


class Query(NamedTuple):
    """The input of a recall: the pattern of a job, and what is known of its speeds."""

    bits: Words  # [W] pattern, without a GPU model
    known: Words  # [W] its known roles
    extra: float  # as learned with outcomes; NaN = none
    kind: int  # class of the job, for speeds; -1 = none
    prior: Floats  # [M] the caller's estimate of the job's log speed on each model


class Scratch(NamedTuple):
    """The buffers of a recall: scratch and answers."""

    block: NDArray[np.int64]  # [BLOCK] distances
    ages: Floats  # [BLOCK]
    age_bits: NDArray[np.int64]  # [BLOCK] the same memory
    gaps: Places  # [S] distances in bits
    bins: Places  # [S] costs, rounded
    counts: Places  # [B, BINS] slots by cost
    cuts: Counts  # [B] the bin of the last of the nearest
    left: Counts  # [B] slots still to be taken from that bin
    evidence: Floats  # [B] of the nearest
    alike: Floats  # [B] weight of the outcomes that are about as near as the nearest slot
    peak: Floats  # [1] largest weight among them
    factors: Floats  # [B] factor of the weights for the queried model
    shifts: Floats  # [B] shift of the log seconds for the queried model
    values: Floats  # [N]
    weights: Floats  # [N]
    answers: Records  # [max(M, 1)]
    sources: Records  # [N], N = B * K * (L + 1)
    nearest: int  # K


def _check(space: Space, size: Size, models: Sequence[str]) -> None:
    for name, value, least, most in (
        ("slots", size.slots, 1, _MOST_SLOTS),
        ("outcomes a pattern", size.latest, 1, _MOST_LATEST),
        ("GPU models", len(models), 0, _MOST_MODELS),
        ("classes of jobs", size.classes, 0, _MOST_CLASSES),
    ):
        if not least <= value <= most:
            raise ConfigError(f"a memory has {least} to {most} {name}, not {value}")
    if not (size.half_s > 0 and size.half_jobs > 0):
        raise ConfigError("a memory must forget after more than 0 seconds and more than 0 jobs")
    if len(set(models)) < len(models):
        raise ConfigError("a memory is given the same GPU model twice")
    if models and space.model < 0:
        raise ConfigError(f"GPU models are given, but the pattern has no role {MODEL!r}")


def empty(space: Space, size: Size = USUAL, models: Sequence[str] = ()) -> Memory:
    """Return an empty memory; recalls answer for `models`, which are referred to by index.

    Raises:
        ConfigError: a size is out of range, or models are given in a space without that role.
    """
    _check(space, size, models)
    slots, words, count = size.slots, len(space.binding), len(models)
    head = np.zeros(1, HEAD)
    head["now"] = -np.inf
    head["half_s"], head["half_jobs"] = size.half_s, size.half_jobs
    bits, known = np.zeros((count, words), np.uint64), np.zeros(words, np.uint64)
    for m, name in enumerate(models):
        filling = np.zeros(space.fillers, np.uint64)
        filling[space.roles[space.model]["filler"]] = key(MODEL, name)
        encode(filling, space, bits[m], known)
    mask = space.masks[space.model] if space.model >= 0 else np.zeros(words, np.uint64)
    apart = [[distance(one, other, mask) for other in bits] for one in bits]
    return Memory(
        head=head,
        patterns=np.zeros((words, slots), np.uint64),
        turns=np.zeros(slots),
        models=np.zeros(slots, np.int32),
        slots=np.zeros(slots, SLOT),
        outcomes=np.zeros((slots, size.latest), OUTCOME),
        table=np.zeros(1 << (2 * slots).bit_length(), np.int32),
        heap=np.zeros(slots, np.int32),
        places=np.zeros(slots, np.int32),
        model_bits=bits & mask,
        model_mask=mask.copy(),
        model_distances=np.array(apart, np.int64).reshape(count, count),
        pair_weights=np.zeros((size.classes + 1, count, count)),
        pair_ratios=np.zeros((size.classes + 1, count, count)),
        speeds=np.zeros((size.classes + 1, count)),
        noises=np.zeros((size.classes + 1, 3)),
    )


def copy(memory: Memory) -> Memory:
    """Return a copy of a memory that shares no arrays with it."""
    return Memory._make(array.copy() for array in memory)


def work_for(memory: Memory, nearest: int = NEAREST) -> Scratch:
    """Return reusable buffers for recalls from the `nearest` patterns of each model.

    Raises:
        ConfigError: nearest is less than 1.
    """
    if nearest < 1:
        raise ConfigError(f"a recall is drawn from 1 pattern or more, not {nearest}")
    models, slots = len(memory.model_bits), len(memory.slots)
    many = min((models + 1) * nearest, slots) * (memory.outcomes.shape[1] + 1)
    ages = np.zeros(BLOCK)
    return Scratch(
        block=np.zeros(BLOCK, np.int64),
        ages=ages,
        age_bits=ages.view(np.int64),
        gaps=np.zeros(slots, np.int32),
        bins=np.zeros(slots, np.int32),
        counts=np.zeros((models + 1, BINS), np.int32),
        cuts=np.zeros(models + 1, np.int64),
        left=np.zeros(models + 1, np.int64),
        evidence=np.zeros(models + 1),
        alike=np.zeros(models + 1),
        peak=np.zeros(1),
        factors=np.zeros(models + 1),
        shifts=np.zeros(models + 1),
        values=np.zeros(many),
        weights=np.zeros(many),
        answers=np.zeros(max(models, 1), ANSWER),
        sources=np.zeros(many, SOURCE),
        nearest=nearest,
    )
