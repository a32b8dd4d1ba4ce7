"""The queue: a sliding window of an array, sorted by JOB.id (compiled).

The rows of `eligible` and of `undone` (true share of work still to do) move with the queue.
"""

from __future__ import annotations

from adlro.compiled import njit, njit_apart
from adlro.sim.world import World


@njit
def move(source: int, target: int, world: World, to: World) -> None:
    """Copy the queue entry at `source` of a world to `target` of another world, or of the same."""
    to.queue[target] = world.queue[source]
    to.undone[target] = world.undone[source]
    for p in range(world.eligible.shape[1]):
        to.eligible[target, p] = world.eligible[source, p]


@njit
def _fill(place: int, j: int, world: World) -> None:
    """Write a queue entry for a job that has not run yet at position `place` of the queue."""
    waiting = world.queue[place]
    waiting.job, waiting.restarts, waiting.saved = j, 0, 0
    waiting.since, waiting.left, waiting.served = world.totals[0].now, 1.0, 0.0
    world.undone[place] = 1.0
    for p in range(world.allowed.shape[1]):
        world.eligible[place, p] = world.allowed[j, p]


@njit
def enqueue(j: int, world: World) -> None:
    """Append an arriving job, which is the youngest, to the end of the queue."""
    totals = world.totals[0]
    if totals.head + totals.waiting == len(
        world.queue
    ):  # end of the array: move the window to its front
        for i in range(totals.waiting):
            move(totals.head + i, i, world, world)
        totals.head = 0
    _fill(totals.head + totals.waiting, j, world)
    totals.waiting += 1


@njit
def _position_of(j: int, world: World) -> int:
    """First position of the queue with job j or a younger job, found by bisection."""
    totals, queue, jobs = world.totals[0], world.queue, world.jobs
    low, high, job_id = totals.head, totals.head + totals.waiting, jobs[j].id
    while low < high:
        middle = (low + high) >> 1
        if jobs[queue[middle].job].id < job_id:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def find(j: int, world: World) -> int:
    """Position of job j in the queue; -1 if the job does not wait."""
    totals = world.totals[0]
    if j < 0 or j >= len(world.jobs):
        return -1
    if (
        totals.waiting > 0 and world.queue[totals.head].job == j
    ):  # fast path: most often it is the oldest
        return totals.head
    place = _position_of(j, world)
    if place < totals.head + totals.waiting and world.queue[place].job == j:
        return place
    return -1


@njit_apart
def requeue(j: int, world: World) -> int:
    """Insert an interrupted job into the queue, which stays sorted by id; returns its position."""
    totals = world.totals[0]
    place, end = _position_of(j, world), totals.head + totals.waiting
    if totals.head > 0 and (end == len(world.queue) or 2 * (place - totals.head) < totals.waiting):
        place -= 1
        totals.head -= 1
        for i in range(totals.head, place):
            move(i + 1, i, world, world)
    else:
        for i in range(end, place, -1):
            move(i - 1, i, world, world)
    totals.waiting += 1
    _fill(place, j, world)
    return place


@njit
def dequeue(q: int, world: World) -> None:
    """Remove the entry at position q; the shorter side of the queue moves to close the gap."""
    totals = world.totals[0]
    if 2 * (q - totals.head) < totals.waiting:
        for i in range(q, totals.head, -1):
            move(i - 1, i, world, world)
        totals.head += 1
    else:
        for i in range(q, totals.head + totals.waiting - 1):
            move(i + 1, i, world, world)
    totals.waiting -= 1
