"""Heap of all runs by their true end, stored beside the array of running records (compiled).

ends[k].slot is the index of the running record at heap position k; ends[i].place is the heap
position of running record i.
"""

from __future__ import annotations

from adlro.compiled import njit, wide
from adlro.model.placement import relink_slice
from adlro.model.state import WHOLE, Records
from adlro.sim.world import World


@njit
def _earlier(a: int, b: int, world: World) -> bool:
    """True when running record a ends before b or, at the same time, has the older job."""
    ends, running, jobs = world.ends, world.running, world.jobs
    if ends[a].end != ends[b].end:
        return ends[a].end < ends[b].end
    return jobs[running[a].job].id < jobs[running[b].job].id


@njit
def place_in_heap(slot: int, place: int, ends: Records) -> None:
    """Store the running record with index `slot` at position `place` of the heap."""
    ends[place].slot = slot
    ends[slot].place = place


@njit
def sift(k: int, count: int, world: World) -> None:
    """Restore the heap order of `count` ends after the record at position k changed."""
    ends = world.ends
    slot = wide(ends[k].slot)
    while k > 0:
        parent = (k - 1) >> 1
        if not _earlier(slot, wide(ends[parent].slot), world):
            break
        place_in_heap(wide(ends[parent].slot), k, ends)
        k = parent
    while True:
        child = 2 * k + 1
        if child >= count:
            break
        if child + 1 < count and _earlier(
            wide(ends[child + 1].slot), wide(ends[child].slot), world
        ):
            child += 1
        if not _earlier(wide(ends[child].slot), slot, world):
            break
        place_in_heap(wide(ends[child].slot), k, ends)
        k = child
    place_in_heap(slot, k, ends)


@njit
def remove(slot: int, world: World) -> None:
    """Remove a running record from the heap and from the array of running records.

    The last record of the array moves to its place.
    """
    totals, running, ends = world.totals[0], world.running, world.ends
    last = totals.running - 1
    totals.running = last
    k, other = wide(ends[slot].place), wide(ends[last].slot)
    if other != slot:
        place_in_heap(other, k, ends)
        sift(k, last, world)
    if slot != last:
        running[slot] = running[last]
        ends[slot].end, ends[slot].since = ends[last].end, ends[last].since
        ends[slot].todo, ends[slot].kept = ends[last].todo, ends[last].kept
        ends[slot].slowness = ends[last].slowness
        place_in_heap(slot, wide(ends[last].place), ends)
        if world.jobs[running[slot].job].share < WHOLE:
            relink_slice(slot, running, world.gpus)
