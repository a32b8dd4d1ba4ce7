"""Online learning: a new pattern takes a free slot, or replaces the slot with the least weight.

An equal pattern is merged into its slot. Weights halve with time or with the number of learned
jobs. All weights decay at the same rate, so the order of two slots does not change by decay, and a
heap holds the weakest slot at its top.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating, njit_apart, wide
from adlro.features.hypervectors.encode_kernel import mixed
from adlro.features.hypervectors.memory import Memory
from adlro.features.hypervectors.schema import Words
from adlro.model.state import Row

_NONE = np.uint64(0)


class Completion(NamedTuple):
    """Run time and origin of a completed job.

    The caller ensures that all numbers but `extra` are finite.
    """

    log_seconds: float  # natural log of its run time
    extra: float  # a covariate for recalls, such as the log of the requested time; NaN = none
    when: float  # seconds at which it became known
    source: int  # the caller's id of the job, >= 0
    model: int  # index of the GPU model it ran on in the memory's models; -1 = unknown


@njit
def halvings(memory: Memory, when: float, turn: float) -> float:
    """Return how often weights have halved between the start and a time and turn."""
    head = memory.head[0]
    return when / head.half_s + turn / head.half_jobs


@njit
def log2_sum(one: float, other: float) -> float:
    """Return log2(2^one + 2^other)."""
    high, low = max(one, other), min(one, other)
    if high == -np.inf:
        return high
    return high + math.log2(1.0 + 2.0 ** (low - high))


@njit
def _word(memory: Memory, bits: Words, model: int, w: int) -> np.uint64:
    """Return word w of a pattern, with its model bits replaced by those of `model`, if known."""
    if model < 0:
        return bits[w]
    return (bits[w] & ~memory.model_mask[w]) | memory.model_bits[model, w]


@njit
def _hash(memory: Memory, bits: Words, model: int) -> np.uint64:
    result = mixed(_NONE, model)
    for w in range(len(bits)):
        result = mixed(result ^ _word(memory, bits, model, w), w)
    return result


@njit
def _home(memory: Memory, number: np.uint64) -> int:
    return int(wide(number) & (len(memory.table) - 1))


@njit
def _is_there(memory: Memory, bits: Words, model: int, slot: int) -> bool:
    gap = _NONE
    for w in range(len(bits)):
        gap |= memory.patterns[w, slot] ^ _word(memory, bits, model, w)
    return gap == _NONE and memory.models[slot] == model


@njit
def _look_up(memory: Memory, number: np.uint64, bits: Words, model: int) -> int:
    """Return the slot of a pattern, given its hash `number`; -1 = not stored."""
    at, last = _home(memory, number), len(memory.table) - 1
    while memory.table[at] > 0:
        slot = memory.table[at] - 1
        if memory.slots[slot].hash == number and _is_there(memory, bits, model, slot):
            return slot
        at = (at + 1) & last
    return -1


@njit
def _enter(memory: Memory, slot: int) -> None:
    """Put a slot into the table by its hash."""
    at, last = _home(memory, memory.slots[slot].hash), len(memory.table) - 1
    while memory.table[at] > 0:
        at = (at + 1) & last
    memory.table[at] = slot + 1


@njit
def _leave(memory: Memory, slot: int) -> None:
    """Remove a slot from the table and move up the entries that it had displaced."""
    at, last = _home(memory, memory.slots[slot].hash), len(memory.table) - 1
    while memory.table[at] != slot + 1:
        at = (at + 1) & last
    gap = at
    while True:
        memory.table[gap] = 0
        at = (at + 1) & last
        while memory.table[at] > 0:
            home = _home(memory, memory.slots[memory.table[at] - 1].hash)
            if ((at - home) & last) >= ((at - gap) & last):
                break
            at = (at + 1) & last
        if memory.table[at] == 0:
            return
        memory.table[gap] = memory.table[at]
        gap = at


@njit
def _put(memory: Memory, place: int, slot: int) -> None:
    memory.heap[place], memory.places[slot] = slot, place


@njit
def _sink(memory: Memory, place: int) -> None:
    """Sift a slot that has become stronger down the heap."""
    slot, size = memory.heap[place], memory.head[0].size
    strength = memory.slots[slot].strength
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size:
            left, right = memory.heap[child], memory.heap[child + 1]
            if memory.slots[right].strength < memory.slots[left].strength:
                child += 1
        if memory.slots[memory.heap[child]].strength >= strength:
            break
        _put(memory, place, memory.heap[child])
        place = child
    _put(memory, place, slot)


@njit
def _rise(memory: Memory, place: int) -> None:
    slot = memory.heap[place]
    strength = memory.slots[slot].strength
    while place > 0 and memory.slots[memory.heap[(place - 1) // 2]].strength > strength:
        _put(memory, place, memory.heap[(place - 1) // 2])
        place = (place - 1) // 2
    _put(memory, place, slot)


@njit
def _retire(memory: Memory, slot: int, outcome: Row) -> None:
    """Merge an outcome into the slot's summary of older outcomes."""
    row = memory.slots[slot]
    own = halvings(memory, outcome.when, outcome.turn)
    total = log2_sum(row.old_strength, own)
    share = 2.0 ** (own - total)
    row.old_mean += share * (outcome.log_seconds - row.old_mean)
    row.old_extra += share * (outcome.extra - row.old_extra)
    row.old_turn += share * (outcome.turn - row.old_turn)
    row.old_strength = total


@njit
def _store(memory: Memory, slot: int, result: Completion) -> None:
    """Store an outcome among the latest L of its slot; the oldest goes to the summary."""
    row, latest = memory.slots[slot], memory.outcomes[slot]
    at = row.jobs % len(latest)
    if row.jobs >= len(latest):
        _retire(memory, slot, latest[at])
    outcome = latest[at]
    outcome.log_seconds, outcome.extra = result.log_seconds, result.extra
    outcome.when, outcome.turn = result.when, memory.head[0].learned
    outcome.source = result.source


@njit
def _new_slot(memory: Memory, bits: Words, model: int, number: np.uint64) -> int:
    """Return a slot for a new pattern, a free or else the weakest one, with the pattern stored."""
    head = memory.head[0]
    if head.size < len(memory.slots):
        slot = head.size
        _put(memory, slot, slot)
        head.size += 1
    else:
        slot = int(memory.heap[0])
        _leave(memory, slot)
    row = memory.slots[slot]
    row.hash, row.jobs = number, 0
    row.strength, row.old_strength = -np.inf, -np.inf
    row.old_mean, row.old_extra, row.old_turn = 0.0, 0.0, 0.0
    memory.models[slot] = model
    for w in range(len(bits)):
        memory.patterns[w, slot] = _word(memory, bits, model, w)
    _enter(memory, slot)
    return slot


@njit_apart
def learn(memory: Memory, bits: Words, result: Completion) -> int:
    """Learn a completed job; the model bits of its pattern [W] are replaced by the result's model.

    Returns:
        The slot of its pattern.
    """
    number = _hash(memory, bits, result.model)
    slot = _look_up(memory, number, bits, result.model)
    is_new = slot < 0
    if is_new:
        slot = _new_slot(memory, bits, result.model, number)
    head, row = memory.head[0], memory.slots[slot]
    _store(memory, slot, result)
    row.strength = log2_sum(row.strength, halvings(memory, result.when, float(head.learned)))
    row.jobs += 1
    memory.turns[slot] = head.learned
    head.learned += 1
    head.now = max(head.now, result.when)
    if is_new:
        _rise(memory, memory.places[slot])
    _sink(memory, memory.places[slot])
    return slot


@njit_allocating
def restore(memory: Memory) -> bool:
    """Rebuild the hash table of a memory; return False if its other arrays are inconsistent."""
    memory.table[:] = 0
    bits = np.zeros(len(memory.patterns), np.uint64)
    for slot in range(memory.head[0].size):
        for w in range(len(bits)):
            bits[w] = memory.patterns[w, slot]
        model = int(memory.models[slot])
        number = _hash(memory, bits, model)
        if memory.slots[slot].hash != number or _look_up(memory, number, bits, model) >= 0:
            return False
        _enter(memory, slot)
    return True
