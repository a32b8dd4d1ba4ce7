"""The queue, compiled: a window of an array, sorted by job id, with its rows of the mask."""

from __future__ import annotations

from adlro.compiled import njit
from adlro.model.state import Mask, Records, Row


@njit
def move(
    source: int, target: int, queue: Records, eligible: Mask, to_queue: Records, to_eligible: Mask
) -> None:
    """Copy one place of a queue, with its row of the mask."""
    to_queue[target] = queue[source]
    for p in range(eligible.shape[1]):
        to_eligible[target, p] = eligible[source, p]


@njit
def enqueue(j: int, w: Row, queue: Records, eligible: Mask, allowed: Mask) -> None:
    """Put an arriving job, the youngest of all, at the tail of the queue."""
    if w.head + w.waiting == len(queue):  # the window has slid to the end: back to the front
        for i in range(w.waiting):
            move(w.head + i, i, queue, eligible, queue, eligible)
        w.head = 0
    tail = w.head + w.waiting
    queue[tail].job = j
    queue[tail].restarts = 0
    queue[tail].since = w.now
    queue[tail].left = 1.0
    for p in range(allowed.shape[1]):
        eligible[tail, p] = allowed[j, p]
    w.waiting += 1


@njit
def find(j: int, w: Row, queue: Records) -> int:
    """Place of a job in the queue by bisection, or -1."""
    low, high = w.head, w.head + w.waiting
    while low < high:
        middle = (low + high) >> 1
        if queue[middle].job < j:
            low = middle + 1
        else:
            high = middle
    if low < w.head + w.waiting and queue[low].job == j:
        return low
    return -1


@njit
def dequeue(q: int, w: Row, queue: Records, eligible: Mask) -> None:
    """Close the gap at place q from the nearer end of the queue."""
    if 2 * (q - w.head) < w.waiting:
        for i in range(q, w.head, -1):
            move(i - 1, i, queue, eligible, queue, eligible)
        w.head += 1
    else:
        for i in range(q, w.head + w.waiting - 1):
            move(i + 1, i, queue, eligible, queue, eligible)
    w.waiting -= 1
