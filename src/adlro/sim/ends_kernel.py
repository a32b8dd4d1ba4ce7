"""The true ends of the running jobs, compiled: a heap beside the array of running records.

ends[k].slot is the running record at place k of the heap, ends[i].place the place of record i.
"""

from __future__ import annotations

from adlro.compiled import njit, wide
from adlro.model.place import moved
from adlro.model.state import WHOLE, Records, Row


@njit
def _earlier(a: int, b: int, running: Records, ends: Records) -> bool:
    """True when running record a ends before b; at the same time: the older job."""
    if ends[a].end != ends[b].end:
        return ends[a].end < ends[b].end
    return running[a].job < running[b].job


@njit
def put(slot: int, place: int, ends: Records) -> None:
    """Stand a running record at a place of the heap."""
    ends[place].slot = slot
    ends[slot].place = place


@njit
def sift(k: int, count: int, running: Records, ends: Records) -> None:
    """Restore the heap of ends after the record at place k changed."""
    slot = wide(ends[k].slot)
    while k > 0:
        up = (k - 1) >> 1
        if not _earlier(slot, wide(ends[up].slot), running, ends):
            break
        put(wide(ends[up].slot), k, ends)
        k = up
    while True:
        down = 2 * k + 1
        if down >= count:
            break
        if down + 1 < count and _earlier(
            wide(ends[down + 1].slot), wide(ends[down].slot), running, ends
        ):
            down += 1
        if not _earlier(wide(ends[down].slot), slot, running, ends):
            break
        put(wide(ends[down].slot), k, ends)
        k = down
    put(slot, k, ends)


@njit
def remove(
    slot: int, w: Row, running: Records, ends: Records, gpus: Records, jobs: Records
) -> None:
    """Take a running record out of the heap and close the gap in the array."""
    last = w.running - 1
    w.running = last
    k, other = wide(ends[slot].place), wide(ends[last].slot)
    if other != slot:
        put(other, k, ends)
        sift(k, last, running, ends)
    if slot != last:
        running[slot] = running[last]
        ends[slot].end, ends[slot].since = ends[last].end, ends[last].since
        ends[slot].todo, ends[slot].kept = ends[last].todo, ends[last].kept
        ends[slot].slowness = ends[last].slowness
        put(slot, wide(ends[last].place), ends)
        if jobs[running[slot].job].share < WHOLE:
            moved(slot, running, gpus)
