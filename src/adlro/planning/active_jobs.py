"""The jobs that wait or run, as arrays, for policies that plan over all of them at once.

Dimensions: A active jobs (oldest first), R runs, P pools, J rows of the table of jobs.
Not a policy.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.compiled import njit, njit_allocating
from adlro.model.context import Context
from adlro.model.state import WHOLE, Floats, Mask, Records
from adlro.model.timeline import left_by_estimate, span_factor, timeline
from adlro.model.view import View

HEAD = 12  # numbers of a policy's memory that stand before the rows of the jobs
STEP, GOAL, _KNOWN = range(3)  # columns of a row after those of the pools; _KNOWN: JOB.id + 1
SHARED = 3  # how many these are
_NEARLY = 1e-9  # seconds: the world stops a run that is too young by less than this
_LEAST = 1e-9  # seconds: no estimate counts as less, to divide by

Indices = NDArray[np.int64]


class Notes(NamedTuple):
    """What a policy keeps from call to call, as views of its memory."""

    head: Floats  # [HEAD] numbers of the whole run; the first is the seed
    eligible: Floats  # [J, P] where a job may run, as seen when it last waited, or where it runs
    step: Floats  # [J] when its turn to start comes in the plan of this moment, 0 = not in it
    goal: Floats  # [J] the pool that the plan has for it
    own: Floats  # [J, ...] the policy's own columns


class Active(NamedTuple):
    """The active jobs of a moment, oldest first."""

    rows: Indices  # in the table of jobs
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
        rank[np.argsort(self.served, kind="stable")] = np.arange(count)
        stays = self.pool[:, None] == np.arange(pools)
        bonus: Floats = 1e-3 * (1.0 - rank[:, None] / count) + 1e-4 * stays
        return bonus


def memory_size(context: Context, columns: int = 0) -> int:
    """How many numbers a policy with so many columns of its own for each job keeps."""
    return int(HEAD + context.rows * (len(context.pools) + SHARED + columns))


def plain_view(view: View) -> View:
    """The same view with plain arrays: reading a recarray is slow."""
    now, *arrays, arrived, recent = view
    return View._make([now, *map(np.asarray, arrays), arrived, recent])


def notes_of(memory: Floats, view: View, columns: int = 0) -> Notes:
    """A policy's memory by name; also notes which jobs are active, and where they may run."""
    pools = len(view.pools)
    rows = memory[HEAD:].reshape(-1, pools + SHARED + columns)
    note_jobs(view, rows)
    step, goal, own = rows[:, pools + STEP], rows[:, pools + GOAL], rows[:, pools + SHARED :]
    return Notes(memory[:HEAD], rows[:, :pools], step, goal, own)


def fingerprint(view: View) -> tuple[float, float, float]:
    """Changes when a job comes or goes, or a node."""
    active = len(view.queue) + len(view.running)
    return float(view.arrived), float(active), float(zlib.crc32(view.nodes["up"].tobytes()))


@njit
def left_now(now, run, job, pool, est):
    """Share of its work that a run would have left if it were stopped now; est [M] is its job's."""
    worked, _, _, _ = timeline(now - run.start, run, job)
    seconds = max(est[pool.model] * span_factor(run, job, pool), _LEAST)
    return left_by_estimate(worked, now, run, seconds) if worked > 0 else run.left


@njit
def _is_pinned(now, run, job):
    """True when a run must not be stopped: no checkpoints, too young, or just restored.

    Who has not worked as long as it restored goes on, or short rounds would only ever restore.
    """
    age = now - run.start
    if job.checkpoint < 0 or age < job.least_run - _NEARLY:
        return True
    return run.saved > 0 and age < 2 * job.checkpoint


@njit_allocating
def gather(view, eligible):
    """The fields of Active, in their order; eligible [J, P] as in Notes."""
    now, jobs, est, queue = view.now, view.jobs, view.est, view.queue
    running, pools = view.running, view.pools
    runs, count = len(running), len(running) + len(queue)
    found, ids = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        found[i] = running[i].job if i < runs else queue[i - runs].job
        ids[i] = jobs[found[i]].id
    order = np.argsort(ids)
    rows, run_of, pool_of = found[order], np.full(count, -1), np.full(count, -1)
    left, served, width = np.empty(count), np.empty(count), np.empty(count)
    begun, pinned = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    restarts, seconds = np.empty(count, np.int64), np.full((count, len(pools)), np.inf)
    room, taken = np.empty(len(pools)), np.zeros(len(pools))
    for a in range(count):
        j, i = rows[a], order[a]
        job = jobs[j]
        width[a] = job.gpus * (job.share / WHOLE)
        if i < runs:
            run = running[i]
            run_of[a], pool_of[a], restarts[a] = i, run.pool, run.restarts
            left[a] = left_now(now, run, job, pools[run.pool], est[j])
            served[a] = run.served + (now - run.start) * width[a]
            begun[a], pinned[a] = job.checkpoint >= 0, _is_pinned(now, run, job)
        else:
            waiting = queue[i - runs]
            left[a], served[a] = waiting.left, waiting.served
            restarts[a], begun[a] = waiting.restarts, waiting.saved > 0
        for p in range(len(pools)):
            if eligible[j, p] > 0 and job.gpus <= pools[p].gpus:
                seconds[a, p] = max(est[j, pools[p].model] * left[a], _LEAST)
    for r in range(runs):
        job = jobs[running[r].job]
        if _is_pinned(now, running[r], job):
            taken[running[r].pool] += job.gpus * (job.share / WHOLE)
    for p in range(len(pools)):
        room[p] = pools[p].gpus - taken[p]
    return (
        rows, run_of, pool_of, left, begun, restarts, pinned, width, served, seconds, room
    )  # fmt: skip


@njit
def _takes_over(row, job, pools):
    """True when a row of the memory is that of another job than this; it then starts from zero."""
    known = float(job.id + 1)
    if row[pools + _KNOWN] == known:
        return False
    for k in range(len(row)):
        row[k] = 0.0
    row[pools + _KNOWN] = known
    return True


@njit_allocating
def note_jobs(view, rows):
    """Keep where the active jobs may run, in their rows [J, ...].

    A job that is seen waiting may run where it is eligible; one that never was, only where it runs.
    """
    jobs, queue, running, pools = view.jobs, view.queue, view.running, len(view.pools)
    for q in range(len(queue)):
        j = queue[q].job
        _takes_over(rows[j], jobs[j], pools)
        for p in range(pools):
            rows[j, p] = view.eligible[q, p]
    for r in range(len(running)):
        j = running[r].job
        if _takes_over(rows[j], jobs[j], pools):
            rows[j, running[r].pool] = 1.0


@njit
def preemptible_at(view):
    """When the next run that could be stopped if it were older becomes so; infinite = none.

    Always after now: start + least_run may be rounded down to a moment at which it is too young.
    """
    now, jobs, running, first = view.now, view.jobs, view.running, np.inf
    for r in range(len(running)):
        job, start = jobs[running[r].job], running[r].start
        if job.checkpoint >= 0 and now - start < job.least_run - _NEARLY:
            first = min(first, start + job.least_run)
    return max(first, np.nextafter(now, np.inf))


def too_young(now: float, running: Records, jobs: Records) -> Mask:
    """Runs [R] that may not be stopped yet; jobs are theirs, in their order."""
    young: Mask = now - running["start"] < jobs["least_run"] - _NEARLY
    return young


def next_preemptible(view: View) -> float:
    """As `preemptible_at`."""
    return float(preemptible_at(view))


def collect(view: View, notes: Notes) -> Active:
    """The active jobs of this moment."""
    return Active(*gather(view, notes.eligible))
