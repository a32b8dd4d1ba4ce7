"""Recall: the run time of a job on each GPU model, predicted from the most similar patterns.

One scan without the role of the GPU model serves all models: the distance of two patterns is a sum
over roles, so the model's part is added afterwards from a table of the distances between models.
"""

from __future__ import annotations

import math

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.features.hypervectors.encode_kernel import ones
from adlro.features.hypervectors.learn_kernel import halvings
from adlro.features.hypervectors.memory import BINS, BLOCK, Memory, Query, Scratch, Weighing
from adlro.features.hypervectors.schema import Space, Words
from adlro.model.state import Counts, Floats, Row

_PER_NAT = 32.0  # bins of costs
_LOG_2 = math.log(2.0)
_ONE_BITS = 0x3FF0000000000000  # the bits of the float 1.0
_ALIKE = 1.5  # nats beyond the nearest slot up to which a slot counts as alike
_THIN = 0.25  # outcomes on the queried model: with so few, those on others keep half of their say
_NOISE, _NOISE_JOBS = 0.4, 3.0  # mean |log difference| assumed for alike jobs, and its weight
_PER_MEAN = 1.25  # standard deviation / mean |deviation| of a normal distribution
_LEAST_NOISE = 0.01
_LOW, _HIGH = 0.1, 0.9  # quantiles of the sources in an answer
_OCTAVE = 2.0**-52  # 1 / the difference of a float's bits between two powers of two


@njit
def _distances(query: Query, patterns: Words, first: int, out: Counts) -> None:
    """Write the distances of the query to the slots first, first + 1, ... to `out`."""
    bits, known, many = query.bits, query.known, len(out)
    for i in range(many):
        out[i] = 0
    w = 0
    while w + 4 <= len(bits):
        q0, q1, q2, q3 = bits[w], bits[w + 1], bits[w + 2], bits[w + 3]
        k0, k1, k2, k3 = known[w], known[w + 1], known[w + 2], known[w + 3]
        p0, p1 = patterns[w, first : first + many], patterns[w + 1, first : first + many]
        p2, p3 = patterns[w + 2, first : first + many], patterns[w + 3, first : first + many]
        for i in range(many):
            low = ones((p0[i] ^ q0) & k0) + ones((p1[i] ^ q1) & k1)
            high = ones((p2[i] ^ q2) & k2) + ones((p3[i] ^ q3) & k3)
            out[i] += wide(low + high)
        w += 4
    while w < len(bits):
        q0, k0, p0 = bits[w], known[w], patterns[w, first : first + many]
        for i in range(many):
            out[i] += wide(ones((p0[i] ^ q0) & k0))
        w += 1


@njit_apart
def scan(memory: Memory, query: Query, work: Scratch) -> int:
    """Write the distance in bits of the query to every slot to work.gaps; return their number."""
    size = int(memory.head[0].size)
    for first in range(0, size, BLOCK):
        out = work.block[: min(BLOCK, size - first)]
        _distances(query, memory.patterns, first, out)
        gaps = work.gaps[first : first + len(out)]
        for i in range(len(out)):
            gaps[i] = out[i]
    return size


@njit
def _rate(
    memory: Memory, nats_per_bit: float, weighing: Weighing, size: int, work: Scratch
) -> None:
    """Write the cost of every slot as a bin, and count the slots of each bin.

    The cost is the loss by distance and by age, in nats. The log of the age is interpolated
    linearly between powers of two: the cost only selects the nearest slots.
    """
    per_bit, per_octave = nats_per_bit * _PER_NAT, weighing.fading * _LOG_2 * _PER_NAT
    now, each = float(memory.head[0].learned), 1.0 / weighing.fresh
    for first in range(0, size, BLOCK):
        many = min(BLOCK, size - first)
        ages, age_bits = work.ages[:many], work.age_bits[:many]
        turns, gaps = memory.turns[first : first + many], work.gaps[first : first + many]
        bins = work.bins[first : first + many]
        for i in range(many):
            ages[i] = 1.0 + (now - turns[i]) * each
        for i in range(many):
            octaves = float(age_bits[i] - _ONE_BITS) * _OCTAVE
            bins[i] = np.int32(min(per_bit * gaps[i] + per_octave * octaves, BINS - 1.0))
        models = memory.models[first : first + many]
        for i in range(many):
            work.counts[models[i] + 1, bins[i]] += 1


@njit
def _cut(work: Scratch, nearest: int) -> None:
    """Write to work.cuts and work.left, for each bucket, the bin at which its nearest slots end."""
    for b in range(len(work.cuts)):
        left, at = nearest, 0
        while at < BINS - 1 and work.counts[b, at] < left:
            left -= work.counts[b, at]
            at += 1
        work.cuts[b], work.left[b] = at, left


@njit
def _add(work: Scratch, n: int, slot: int, model: int, weight: float) -> Row:
    """Set slot, model and weight of source n, and return its record."""
    row = work.sources[n]
    row.weight, row.slot, row.model = weight, slot, model
    return row


@njit
def _followed(log_seconds: float, extra: float, query: Query, weighing: Weighing) -> float:
    """Return an outcome's log seconds, corrected for its extra number if the query has one too."""
    gap = query.extra - extra
    return log_seconds if math.isnan(gap) else log_seconds + weighing.slope * gap


@njit
def _add_alike(work: Scratch, model: int, weight: float) -> None:
    work.alike[model + 1] += weight
    work.peak[0] = max(work.peak[0], weight)


@njit
def _draw(
    memory: Memory, slot: int, nats: float, is_alike: bool, query: Query, weighing: Weighing,
    n: int, work: Scratch,
) -> int:  # fmt: skip
    """Append the outcomes of a slot to the sources; returns the new number of sources."""
    row, now = memory.slots[slot], float(memory.head[0].learned)
    model = int(memory.models[slot])
    then = halvings(memory, memory.head[0].now, now)
    work.evidence[model + 1] += math.exp(nats + _LOG_2 * (row.strength - then))
    for i in range(min(row.jobs, memory.outcomes.shape[1])):
        outcome = memory.outcomes[slot, i]
        age = now - outcome.turn
        weight = math.exp(nats - weighing.fading * math.log(1.0 + age / weighing.fresh))
        source = _add(work, n, slot, model, weight)
        source.source = outcome.source
        source.log_seconds = _followed(outcome.log_seconds, outcome.extra, query, weighing)
        if is_alike:
            _add_alike(work, model, weight)
        n += 1
    if row.old_strength > -np.inf:
        age = now - row.old_turn
        nats += _LOG_2 * (row.old_strength - then)
        weight = math.exp(nats - weighing.fading * math.log(1.0 + age / weighing.fresh))
        source = _add(work, n, slot, model, weight)
        source.source = -1
        source.log_seconds = _followed(row.old_mean, row.old_extra, query, weighing)
        n += 1
    return n


@njit
def known_bits(query: Query) -> int:
    """Return the number of bits of the roles that a query knows."""
    total = np.uint64(0)
    for w in range(len(query.known)):
        total += ones(query.known[w])
    return int(wide(total))


@njit_apart
def select(space: Space, memory: Memory, query: Query, weighing: Weighing, work: Scratch) -> int:
    """Write the outcomes of the nearest patterns of each model to work.sources, after a `scan`.

    A weight of 1 is that of an equal pattern without missing roles, learned just now. Evidence is
    counted without the fading, which only prefers new outcomes to old ones.

    Returns:
        The number of sources.
    """
    size, per_bit = int(memory.head[0].size), space.nats_per_bit * weighing.nats
    work.counts[:] = 0
    work.evidence[:] = 0.0
    work.alike[:] = 0.0
    work.peak[0] = 0.0
    _rate(memory, per_bit, weighing, size, work)
    _cut(work, work.nearest)
    missing = 0.5 * per_bit * (64 * len(query.bits) - known_bits(query))
    n, least = 0, 64 * len(query.bits)
    for slot in range(size):
        least = min(least, wide(work.gaps[slot]))
    for slot in range(size):
        b = memory.models[slot] + 1
        if work.bins[slot] > work.cuts[b]:
            continue
        if work.bins[slot] == work.cuts[b]:
            if work.left[b] == 0:
                continue
            work.left[b] -= 1
        nats = -missing - per_bit * work.gaps[slot]
        is_alike = per_bit * (work.gaps[slot] - least) <= _ALIKE
        n = _draw(memory, slot, nats, is_alike, query, weighing, n, work)
    return n


@njit_apart
def gather(space: Space, memory: Memory, query: Query, weighing: Weighing, work: Scratch) -> int:
    """Write the outcomes of the nearest patterns of each model to work.sources; see `select`."""
    scan(memory, query, work)
    return select(space, memory, query, weighing, work)


@njit
def log_speed(memory: Memory, query: Query, model: int) -> float:
    """Return the log speed of a job on a GPU model, relative to the reference GPU, as learned."""
    row = len(memory.speeds) - 1
    if 0 <= query.kind < row and memory.noises[query.kind, 2] > 0.0:
        row = query.kind
    return float(query.prior[model] + memory.speeds[row, model])


@njit
def shift(memory: Memory, query: Query, ran: int, asked: int) -> float:
    """Return log seconds on model `asked` minus those on model `ran`.

    A run on an unknown model (-1) counts as one on the reference GPU; without GPU models
    (asked = -1), all do.
    """
    if asked < 0 or ran == asked:
        return 0.0
    before = log_speed(memory, query, ran) if ran >= 0 else 0.0
    return before - log_speed(memory, query, asked)


@njit
def _model_nats(memory: Memory, bits: int, per_bit: float, ran: int, asked: int) -> float:
    """Return the nats that the GPU models `ran` and `asked` add to a match; 0 if one is unknown."""
    if asked < 0 or ran < 0:
        return 0.0
    return per_bit * (0.5 * bits - memory.model_distances[asked, ran])


@njit
def noise(memory: Memory, kind: int) -> float:
    """Return the standard deviation of the log seconds of alike jobs of a class on one model."""
    last = len(memory.noises) - 1
    every = memory.noises[last]
    found = (every[0] * every[1] + _NOISE * _NOISE_JOBS) / (every[1] + _NOISE_JOBS)
    if 0 <= kind < last:
        own = memory.noises[kind]
        found = (own[0] * own[1] + found * _NOISE_JOBS) / (own[1] + _NOISE_JOBS)
    return max(_PER_MEAN * found, _LEAST_NOISE)


@njit
def _compare_models(
    memory: Memory, query: Query, weighing: Weighing, asked: int, work: Scratch
) -> None:
    """Multiply work.factors, so that other models count as far as evidence on `asked` is thin.

    The log speed of a class is uncertain by weighing.apart; alike jobs on one model differ by a
    noise s. By the weights of a random-effects mean, n outcomes on another model then count
    1 / (1 + n (apart / s)^2) each, where there are outcomes on the model asked for.
    """
    if asked < 0 or not (weighing.apart > 0.0 and work.peak[0] > 0.0):
        return
    own = work.alike[asked + 1] / work.peak[0]
    spread = noise(memory, query.kind)
    ratio = (weighing.apart / spread) ** 2 * own / (own + _THIN)
    for b in range(len(work.factors)):
        if b != asked + 1:
            work.factors[b] /= 1.0 + ratio * work.alike[b] / work.peak[0]


@njit
def weighted_select(
    values: Floats, weights: Floats, low: int, high: int, need: float
) -> tuple[float, int, int]:
    """Return the least value with a weight of at least `need` up to it, among low to high - 1.

    Both arrays are reordered in place.

    Returns:
        The value, the index before which all values are smaller, and that from which all are
        larger.
    """
    pivot, less, more = values[low], low, high
    while low < high:
        a, b, c = values[low], values[(low + high) // 2], values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        less, i, more = low, low, high
        below, same = 0.0, 0.0
        while i < more:
            value, weight = values[i], weights[i]
            if value < pivot:
                below += weight
                values[i], weights[i] = values[less], weights[less]
                values[less], weights[less] = value, weight
                less += 1
                i += 1
            elif value > pivot:
                more -= 1
                values[i], weights[i] = values[more], weights[more]
                values[more], weights[more] = value, weight
            else:
                same += weight
                i += 1
        if below >= need:
            high = less
        elif below + same >= need:
            break
        else:
            need -= below + same
            low = more
    return pivot, less, more


@njit
def _tails(count: int, total: float, work: Scratch, out: Row) -> float:
    """Write the distances of the sources' low and high quantiles to `out`; return the median."""
    values, weights = work.values, work.weights
    centre, less, more = weighted_select(values, weights, 0, count, 0.5 * total)
    below, above = 0.0, 0.0
    for i in range(less):
        below += weights[i]
    for i in range(more, count):
        above += weights[i]
    out.low, out.high = 0.0, 0.0
    if below >= _LOW * total:
        found, _, _ = weighted_select(values, weights, 0, less, _LOW * total)
        out.low = centre - found
    if above > (1.0 - _HIGH) * total:
        need = above - (1.0 - _HIGH) * total
        found, _, _ = weighted_select(values, weights, more, count, need)
        out.high = found - centre
    return centre


@njit
def _centre(count: int, total: float, weighing: Weighing, work: Scratch, out: Row) -> float:
    median = _tails(count, total, work, out)
    if weighing.mean == 0.0:
        return median
    result = 0.0
    for i in range(count):
        result += work.values[i] * work.weights[i] / total
    return result


@njit_apart
def answer(
    space: Space, memory: Memory, query: Query, weighing: Weighing, asked: int, count: int,
    work: Scratch, out: Row,
) -> None:  # fmt: skip
    """Write the run time predicted from the sources for model `asked` (-1 = any) to `out`.

    The sources' shares become those of this answer. The run times of sources on another model are
    multiplied by the ratio of the speeds, learned or prior; _compare_models says how they weigh.
    """
    bits = int(space.roles[space.model].bits) if space.model >= 0 else 0
    per_bit = space.nats_per_bit * weighing.nats
    out.evidence = 0.0
    for b in range(len(work.factors)):
        work.factors[b] = math.exp(_model_nats(memory, bits, per_bit, b - 1, asked))
        work.shifts[b] = shift(memory, query, b - 1, asked)
        out.evidence += work.evidence[b] * work.factors[b]
    _compare_models(memory, query, weighing, asked, work)
    own = 0.0
    for b in range(len(work.alike)):
        own += work.alike[b] if asked < 0 or b == asked + 1 else 0.0
    out.outcomes = own / work.peak[0] if work.peak[0] > 0.0 else 0.0
    out.confidence = out.evidence / (out.evidence + weighing.half_evidence)
    total = 0.0
    for i in range(count):
        source = work.sources[i]
        work.weights[i] = source.weight * work.factors[source.model + 1]
        work.values[i] = source.log_seconds + work.shifts[source.model + 1]
        source.share = work.weights[i]
        total += work.weights[i]
    if not total > 0.0:
        out.log_seconds, out.spread, out.low, out.high = np.nan, np.nan, 0.0, 0.0
        return
    centre = _centre(count, total, weighing, work, out)
    spread = 0.0
    for i in range(count):
        spread += abs(work.values[i] - centre) * work.weights[i]
        work.sources[i].share /= total
    out.log_seconds, out.spread = centre, spread / total


@njit_apart
def recall(space: Space, memory: Memory, query: Query, weighing: Weighing, work: Scratch) -> int:
    """Write an answer for every model of the memory to work.answers, or one if it has no models.

    Returns:
        The number of sources; their shares are those of the last answer.
    """
    count = gather(space, memory, query, weighing, work)
    if len(memory.model_bits) == 0:
        answer(space, memory, query, weighing, -1, count, work, work.answers[0])
    for m in range(len(memory.model_bits)):
        answer(space, memory, query, weighing, m, count, work, work.answers[m])
    return count
