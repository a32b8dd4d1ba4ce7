"""The jobs that wait or run, as arrays, for policies that plan over all of them at once.

Dimensions: A active jobs (oldest first), R runs, P pools, J jobs of the whole run. Not a policy.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.compiled import njit_allocating
from adlro.model.state import WHOLE, Floats, Mask, Records
from adlro.sim.run_kernel import left_by_estimate, span_factor, timeline

HEAD = 12  # numbers of a policy's memory that stand before the rows of the jobs
_SHARED = 2  # columns of a row after those of the pools: STEP and GOAL
_NEARLY = 1e-9  # seconds: the world stops a run that is too young by less than this
_LEAST = 1e-9  # seconds: no estimate counts as less, to divide by

Indices = NDArray[np.int64]


class View(NamedTuple):
    """What a policy sees: the arguments of decide up to `gpus`, as plain arrays."""

    now: float
    jobs: Records
    est: Floats
    queue: Records
    eligible: Mask
    running: Records
    pools: Records
    nodes: Records
    gpus: Records


class Notes(NamedTuple):
    """What a policy keeps from call to call, as views of its memory."""

    head: Floats  # [HEAD] numbers of the whole run; the first is the seed
    eligible: Floats  # [J, P] where a job may run, as seen when it last waited
    step: Floats  # [J] when its turn to start comes in the plan of this moment, 0 = not in it
    goal: Floats  # [J] the pool that the plan has for it
    own: Floats  # [J, ...] the policy's own columns


class Active(NamedTuple):
    """The active jobs of a moment, oldest first."""

    ids: Indices
    run: Indices  # place in `running`, -1 = it waits
    pool: Indices  # where it runs, -1 = it waits
    left: Floats  # share of its work still to do, by the estimate
    begun: Mask  # its next run begins with restoring a checkpoint
    restarts: Indices
    pinned: Mask  # it runs, and cannot be stopped: no checkpoints, too young, or just restored
    width: Floats  # GPUs that it takes; a slice as its share
    served: Floats  # GPU-seconds that it has had
    seconds: Floats  # [A, P] that it still needs there; infinite where it may not run
    room: Floats  # [P] GPUs up that are not held by the pinned

    def fastest(self) -> Floats:
        """Seconds that each job still needs on the best of its pools; infinite if it has none."""
        best: Floats = self.seconds.min(axis=1)
        return best

    def relative(self) -> Floats:
        """Speeds [A, P] as shares of the job's best; 0 where it may not run."""
        best = self.fastest()
        finite = np.where(np.isfinite(best), best, 0.0)
        speeds: Floats = finite[:, None] / self.seconds
        return speeds

    def open(self) -> Mask:
        """Pairs [A, P] that a plan may use: the job can move and the pool could hold it."""
        fitting = self.width[:, None] <= self.room + 1e-9
        mask: Mask = np.isfinite(self.seconds) & fitting & ~self.pinned[:, None]
        return mask

    def tie_break(self) -> Floats:
        """What to add to a gain [A, P] of about 1 so that equals take turns.

        A thousandth from the most to the least served, and a tenth of that for staying: a job that
        has had less takes the place of its equal, but not one that has had just as much.
        """
        count, pools = self.seconds.shape
        rank = np.empty(count)
        rank[np.lexsort((self.ids, self.served))] = np.arange(count)
        stays = self.pool[:, None] == np.arange(pools)
        bonus: Floats = 1e-3 * (1.0 - rank[:, None] / count) + 1e-4 * stays
        return bonus


def memory_size(setting: Any, columns: int = 0) -> int:  # noqa: ANN401  a Setting, or as much of it
    """How many numbers a policy with so many columns of its own for each job keeps."""
    return int(HEAD + setting.scenario.jobs * (len(setting.pools) + _SHARED + columns))


def plain_view(*arguments: Any) -> View:  # noqa: ANN401
    """The arguments of decide up to `gpus` as plain arrays: reading a recarray is slow."""
    now, *arrays = arguments
    return View(now, *(np.asarray(array) for array in arrays))


def notes_of(memory: Floats, view: View, columns: int = 0) -> Notes:
    """A policy's memory by name; also notes where those who wait may run."""
    pools = len(view.pools)
    rows = memory[HEAD:].reshape(-1, pools + _SHARED + columns)
    rows[view.queue["job"], :pools] = view.eligible
    shared = rows[:, pools : pools + _SHARED]
    own = rows[:, pools + _SHARED :]
    return Notes(memory[:HEAD], rows[:, :pools], shared[:, 0], shared[:, 1], own)


def fingerprint(view: View) -> tuple[float, float, float]:
    """Changes when a job comes or goes, or a node."""
    active = len(view.queue) + len(view.running)
    return float(len(view.jobs)), float(active), float(zlib.crc32(view.nodes["up"].tobytes()))


@njit_allocating
def lefts(now, jobs, est, running, pools):
    """Share of its work [R] that each run would have left if it were stopped now.

    jobs and est are those of the runs, in their order.
    """
    left = np.empty(len(running))
    for r in range(len(running)):
        run, job = running[r], jobs[r]
        pool = pools[run.pool]
        worked, _, _, _ = timeline(now - run.start, run, job)
        seconds = max(est[r, pool.model] * span_factor(run, job, pool), _LEAST)
        left[r] = left_by_estimate(worked, now, run, seconds) if worked > 0 else run.left
    return left


def too_young(now: float, running: Records, jobs: Records) -> Mask:
    """Runs [R] that may not be stopped yet; jobs are theirs, in their order."""
    young: Mask = now - running["start"] < jobs["least_run"] - _NEARLY
    return young


def next_ripe(view: View) -> float:
    """When the next run that could be stopped if it were older becomes so; infinite = none.

    Always after now: start + least_run may be rounded down to a moment at which it is too young.
    """
    jobs = view.jobs[view.running["job"]]
    young = too_young(view.now, view.running, jobs) & (jobs["checkpoint"] >= 0)
    ripe = (view.running["start"] + jobs["least_run"])[young]
    return float(max(ripe.min(initial=np.inf), np.nextafter(view.now, np.inf)))


def look(view: View, notes: Notes) -> Active:
    """The active jobs of this moment."""
    running, queue = np.array(view.running), view.queue
    ids = np.concatenate([running["job"], queue["job"]]).astype(np.int64)
    order = np.argsort(ids)
    ids, runs, waits = ids[order], len(running), len(queue)
    theirs, est = view.jobs[running["job"]], view.est[running["job"]]
    pinned = (theirs["checkpoint"] < 0) | too_young(view.now, running, theirs)
    # Who has not worked as long as it restored goes on, or short rounds would only ever restore.
    pinned |= (running["saved"] > 0) & (view.now - running["start"] < 2 * theirs["checkpoint"])
    left = lefts(view.now, theirs, est, running, np.array(view.pools))
    held, jobs = theirs["gpus"] * (theirs["share"] / WHOLE), view.jobs[ids]
    taken = np.bincount(running["pool"][pinned], held[pinned], len(view.pools))
    had = running["served"] + (view.now - running["start"]) * held
    none, models = np.full(waits, -1), view.pools["model"]
    may = (notes.eligible[ids] > 0) & (jobs["gpus"][:, None] <= view.pools["gpus"])
    left = np.concatenate([left, queue["left"]])[order]
    seconds = np.maximum(view.est[ids][:, models] * left[:, None], _LEAST)
    return Active(
        ids=ids,
        run=np.concatenate([np.arange(runs), none])[order],
        pool=np.concatenate([running["pool"], none])[order],
        left=left,
        begun=np.concatenate([theirs["checkpoint"] >= 0, queue["saved"] > 0])[order],
        restarts=np.concatenate([running["restarts"], queue["restarts"]])[order],
        pinned=np.concatenate([pinned, np.zeros(waits, np.bool_)])[order],
        width=jobs["gpus"] * (jobs["share"] / WHOLE),
        served=np.concatenate([had, queue["served"]])[order],
        seconds=np.where(may, seconds, np.inf),
        room=view.pools["gpus"] - taken,
    )
