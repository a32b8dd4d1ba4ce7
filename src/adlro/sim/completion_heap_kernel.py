"""The true ends of the running jobs, compiled: a heap beside the array of running records.

ends[k].slot is the running record at place k of the heap, ends[i].place the place of record i.
"""

from __future__ import annotations

from adlro.compiled import njit, wide
from adlro.model.placement import relink_slice
from adlro.model.state import WHOLE, Records
from adlro.sim.world import World


@njit
def _earlier(a: int, b: int, world: World) -> bool:
    """True when running record a ends before b; at the same time: the older job."""
    ends, running, jobs = world.ends, world.running, world.jobs
    if ends[a].end != ends[b].end:
        return ends[a].end < ends[b].end
    return jobs[running[a].job].id < jobs[running[b].job].id


@njit
def place_in_heap(slot: int, place: int, ends: Records) -> None:
    """Stand a running record at a place of the heap."""
    ends[place].slot = slot
    ends[slot].place = place


@njit
def sift(k: int, count: int, world: World) -> None:
    """Restore the heap of `count` ends after the record at place k changed."""
    ends = world.ends
    slot = wide(ends[k].slot)
    while k > 0:
        up = (k - 1) >> 1
        if not _earlier(slot, wide(ends[up].slot), world):
            break
        place_in_heap(wide(ends[up].slot), k, ends)
        k = up
    while True:
        down = 2 * k + 1
        if down >= count:
            break
        if down + 1 < count and _earlier(wide(ends[down + 1].slot), wide(ends[down].slot), world):
            down += 1
        if not _earlier(wide(ends[down].slot), slot, world):
            break
        place_in_heap(wide(ends[down].slot), k, ends)
        k = down
    place_in_heap(slot, k, ends)


@njit
def remove(slot: int, world: World) -> None:
    """Take a running record out of the heap and close the gap in the array."""
    w, running, ends = world.totals[0], world.running, world.ends
    last = w.running - 1
    w.running = last
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
