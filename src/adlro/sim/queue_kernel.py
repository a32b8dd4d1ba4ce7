"""The queue, compiled: a window of an array, sorted by job id.

Its rows of the mask and `undone`, the true share of each job's work that is still to do, go along.
"""

from __future__ import annotations

from adlro.compiled import njit, njit_apart
from adlro.model.state import Floats, Mask, Records, Row


@njit
def move(
    source: int,
    target: int,
    queue: Records,
    eligible: Mask,
    undone: Floats,
    to_queue: Records,
    to_eligible: Mask,
    to_undone: Floats,
) -> None:
    """Copy one place of a queue."""
    to_queue[target] = queue[source]
    to_undone[target] = undone[source]
    for p in range(eligible.shape[1]):
        to_eligible[target, p] = eligible[source, p]


@njit
def _shift(source: int, target: int, queue: Records, eligible: Mask, undone: Floats) -> None:
    move(source, target, queue, eligible, undone, queue, eligible, undone)


@njit
def _fill(
    place: int, j: int, now: float, queue: Records, eligible: Mask, undone: Floats, allowed: Mask
) -> None:
    """Write a job that has not run yet into a place of the queue."""
    waiting = queue[place]
    waiting.job, waiting.restarts, waiting.saved = j, 0, 0
    waiting.since, waiting.left, waiting.served = now, 1.0, 0.0
    undone[place] = 1.0
    for p in range(allowed.shape[1]):
        eligible[place, p] = allowed[j, p]


@njit
def enqueue(j: int, w: Row, queue: Records, eligible: Mask, undone: Floats, allowed: Mask) -> None:
    """Put an arriving job, the youngest of all, at the tail of the queue."""
    if w.head + w.waiting == len(queue):  # the window has slid to the end: back to the front
        for i in range(w.waiting):
            _shift(w.head + i, i, queue, eligible, undone)
        w.head = 0
    _fill(w.head + w.waiting, j, w.now, queue, eligible, undone, allowed)
    w.waiting += 1


@njit
def _place_of(j: int, w: Row, queue: Records) -> int:
    """The first place of the queue with job j or a younger one, by bisection."""
    low, high = w.head, w.head + w.waiting
    while low < high:
        middle = (low + high) >> 1
        if queue[middle].job < j:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def find(j: int, w: Row, queue: Records) -> int:
    """Place of a job in the queue, or -1."""
    place = _place_of(j, w, queue)
    if place < w.head + w.waiting and queue[place].job == j:
        return place
    return -1


@njit_apart
def requeue(j: int, w: Row, queue: Records, eligible: Mask, undone: Floats, allowed: Mask) -> int:
    """Make room for a job that waits again, at its old place by id, and return that place."""
    place, end = _place_of(j, w, queue), w.head + w.waiting
    if w.head > 0 and (end == len(queue) or 2 * (place - w.head) < w.waiting):
        place -= 1
        w.head -= 1
        for i in range(w.head, place):
            _shift(i + 1, i, queue, eligible, undone)
    else:
        for i in range(end, place, -1):
            _shift(i - 1, i, queue, eligible, undone)
    w.waiting += 1
    _fill(place, j, w.now, queue, eligible, undone, allowed)
    return place


@njit
def dequeue(q: int, w: Row, queue: Records, eligible: Mask, undone: Floats) -> None:
    """Close the gap at place q from the nearer end of the queue."""
    if 2 * (q - w.head) < w.waiting:
        for i in range(q, w.head, -1):
            _shift(i - 1, i, queue, eligible, undone)
        w.head += 1
    else:
        for i in range(q, w.head + w.waiting - 1):
            _shift(i + 1, i, queue, eligible, undone)
    w.waiting -= 1
