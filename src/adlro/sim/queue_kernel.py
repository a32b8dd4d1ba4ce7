"""The queue, compiled: a window of an array, sorted by JOB.id.

Its rows of the mask and `undone`, the true share of each job's work that is still to do, go along.
"""

from __future__ import annotations

from adlro.compiled import njit, njit_apart
from adlro.sim.world import World


@njit
def move(source: int, target: int, world: World, to: World) -> None:
    """Copy one place of a queue to a place of another, or of the same."""
    to.queue[target] = world.queue[source]
    to.undone[target] = world.undone[source]
    for p in range(world.eligible.shape[1]):
        to.eligible[target, p] = world.eligible[source, p]


@njit
def _fill(place: int, j: int, world: World) -> None:
    """Write a job that has not run yet into a place of the queue."""
    waiting = world.queue[place]
    waiting.job, waiting.restarts, waiting.saved = j, 0, 0
    waiting.since, waiting.left, waiting.served = world.totals[0].now, 1.0, 0.0
    world.undone[place] = 1.0
    for p in range(world.allowed.shape[1]):
        world.eligible[place, p] = world.allowed[j, p]


@njit
def enqueue(j: int, world: World) -> None:
    """Put an arriving job, the youngest of all, at the tail of the queue."""
    w = world.totals[0]
    if w.head + w.waiting == len(world.queue):  # the window is at the end: back to the front
        for i in range(w.waiting):
            move(w.head + i, i, world, world)
        w.head = 0
    _fill(w.head + w.waiting, j, world)
    w.waiting += 1


@njit
def _place_of(j: int, world: World) -> int:
    """The first place of the queue with job j or a younger one, by bisection."""
    w, queue, jobs = world.totals[0], world.queue, world.jobs
    low, high, own = w.head, w.head + w.waiting, jobs[j].id
    while low < high:
        middle = (low + high) >> 1
        if jobs[queue[middle].job].id < own:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def find(j: int, world: World) -> int:
    """Place of a job in the queue, or -1."""
    w = world.totals[0]
    if j < 0 or j >= len(world.jobs):
        return -1
    if w.waiting > 0 and world.queue[w.head].job == j:  # the oldest is asked for most
        return w.head
    place = _place_of(j, world)
    if place < w.head + w.waiting and world.queue[place].job == j:
        return place
    return -1


@njit_apart
def requeue(j: int, world: World) -> int:
    """Make room for a job that waits again, at its old place by id, and return that place."""
    w = world.totals[0]
    place, end = _place_of(j, world), w.head + w.waiting
    if w.head > 0 and (end == len(world.queue) or 2 * (place - w.head) < w.waiting):
        place -= 1
        w.head -= 1
        for i in range(w.head, place):
            move(i + 1, i, world, world)
    else:
        for i in range(end, place, -1):
            move(i - 1, i, world, world)
    w.waiting += 1
    _fill(place, j, world)
    return place


@njit
def dequeue(q: int, world: World) -> None:
    """Close the gap at place q from the nearer end of the queue."""
    w = world.totals[0]
    if 2 * (q - w.head) < w.waiting:
        for i in range(q, w.head, -1):
            move(i - 1, i, world, world)
        w.head += 1
    else:
        for i in range(q, w.head + w.waiting - 1):
            move(i + 1, i, world, world)
    w.waiting -= 1
