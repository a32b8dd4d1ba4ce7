"""Active (waiting or running) jobs as arrays, for policies that plan over all of them at once.

Dimensions: A active jobs (oldest first), R runs, P pools, J rows of the job table.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.compiled import njit, njit_allocating
from adlro.model.context import Context
from adlro.model.feasibility import large_enough
from adlro.model.state import WHOLE, Floats, Mask, Records, Row
from adlro.model.timeline import left_by_estimate, span_factor, timeline
from adlro.model.view import View

HEAD = 12  # numbers at the start of a policy's memory, before the rows of the jobs
STEP, GOAL, _ID = range(3)  # columns of a row after those of the pools; _ID: JOB.id + 1
SHARED = 3  # number of these columns
_TOLERANCE_S = 1e-9  # the world accepts to preempt a run that is too young by less than this
_MIN_SECONDS = 1e-9  # lower bound of estimates, which are divided by

Indices = NDArray[np.int64]


class Notes(NamedTuple):
    """Memory of a planning policy between calls, as named views of one array."""

    head: Floats  # [HEAD] numbers of the whole run; the first is the seed
    eligible: Floats  # [J, P] 1 = eligible when it last waited; if never seen waiting: runs there
    step: Floats  # [J] rank among the planned starts of this moment, 0 = not planned
    goal: Floats  # [J] target pool of a planned start
    columns: Floats  # [J, ...] columns of the individual policy


class ActiveJobs(NamedTuple):
    """The active jobs at one time, oldest first; fields without a shape are [A]."""

    rows: Indices  # in the job table
    run: Indices  # index in `running`, -1 = it waits
    pool: Indices  # where it runs, -1 = it waits
    left: Floats  # share of its work still to do, by the estimate
    begun: Mask  # its next run begins with restoring a checkpoint
    restarts: Indices
    pinned: Mask  # it runs and must not be preempted: no checkpoints, too young, or just restored
    width: Floats  # GPUs that it holds; a slice as its share
    served: Floats  # GPU-seconds received
    seconds: Floats  # [A, P] estimated time left on each pool; infinite where it may not run
    room: Floats  # [P] GPUs up that are not held by pinned jobs

    def fastest(self) -> Floats:
        """Seconds [A] that each job still needs on its best pool; infinite if it has none."""
        best: Floats = self.seconds.min(axis=1)
        return best

    def relative(self) -> Floats:
        """Speed [A, P] of each job on each pool; 1 on its fastest pool, 0 where it may not run."""
        best = self.fastest()
        finite = np.where(np.isfinite(best), best, 0.0)
        speeds: Floats = finite[:, None] / self.seconds
        return speeds

    def open(self) -> Mask:
        """True [A, P] for each pair (job, pool) that a plan may use.

        The job is not pinned and may run on the pool, which has enough GPUs for it.
        """
        fitting = self.width[:, None] <= self.room + 1e-9
        mask: Mask = np.isfinite(self.seconds) & fitting & ~self.pinned[:, None]
        return mask

    def tie_break(self) -> Floats:
        """Bonus [A, P] to add to a gain of about 1, so that equal jobs take turns.

        Up to 0.001 from the most to the least served job, and 0.0001 for staying on a pool: a job
        replaces an equal one that has received more service, but not one that has received as much.
        """
        count, pools = self.seconds.shape
        rank = np.empty(count)
        rank[np.argsort(self.served, kind="stable")] = np.arange(count)
        stays = self.pool[:, None] == np.arange(pools)
        bonus: Floats = 1e-3 * (1.0 - rank[:, None] / count) + 1e-4 * stays
        return bonus


def memory_size(context: Context, columns: int = 0) -> int:
    """Number of values in the memory of a policy with `columns` numbers of its own per job."""
    return int(HEAD + context.rows * (len(context.pools) + SHARED + columns))


@njit_allocating
def keep_all(active: ActiveJobs) -> ActiveJobs:
    """Return the active jobs with every run pinned."""
    pinned, room = active.pinned.copy(), active.room.copy()
    for a in range(len(pinned)):
        if active.run[a] >= 0 and not pinned[a]:
            pinned[a] = True
            room[active.pool[a]] -= active.width[a]
    return ActiveJobs(
        active.rows, active.run, active.pool, active.left, active.begun, active.restarts, pinned,
        active.width, active.served, active.seconds, room,
    )  # fmt: skip


def plain_view(view: View) -> View:
    """Return the view with plain arrays instead of recarrays, whose field access is slow."""
    now, *arrays, arrived, recent = view
    return View._make([now, *map(np.asarray, arrays), arrived, recent])


def notes_of(memory: Floats, view: View, columns: int = 0) -> Notes:
    """Return named views of a policy's memory, after `note_jobs` has updated it.

    columns: numbers per job of the individual policy.
    """
    pools = len(view.pools)
    rows = memory[HEAD:].reshape(-1, pools + SHARED + columns)
    note_jobs(view, rows)
    step, goal = rows[:, pools + STEP], rows[:, pools + GOAL]
    return Notes(memory[:HEAD], rows[:, :pools], step, goal, rows[:, pools + SHARED :])


def fingerprint(view: View) -> tuple[float, float, float]:
    """Three numbers that change when a job arrives or ends, or a node fails or is repaired."""
    active = len(view.queue) + len(view.running)
    return float(view.arrived), float(active), float(zlib.crc32(view.nodes["up"].tobytes()))


@njit
def left_now(now: float, run: Row, job: Row, pool: Row, est: Floats) -> float:
    """Share of a job's work that would be left if its run were preempted now.

    est [M]: estimates of the job by GPU model.
    """
    worked, _, _, _ = timeline(now - run.start, run, job)
    seconds = max(est[pool.model] * span_factor(run, job, pool), _MIN_SECONDS)
    return left_by_estimate(worked, now, run, seconds) if worked > 0 else run.left


@njit
def _is_pinned(now: float, run: Row, job: Row) -> bool:
    """True when a run must not be preempted: no checkpoints, too young, or just restored.

    A run continues until it has worked as long as it took to restore: with short rounds it would
    otherwise never do more than restore.
    """
    age = now - run.start
    if job.checkpoint < 0 or age < job.least_run - _TOLERANCE_S:
        return True
    return run.saved > 0 and age < 2 * job.checkpoint


@njit_allocating
def gather(view: View, eligible: Floats) -> tuple[Any, ...]:
    """Compute the fields of `ActiveJobs` for a view, in order; eligible [J, P] as in `Notes`."""
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
            if eligible[j, p] > 0 and large_enough(job, pools[p]):
                seconds[a, p] = max(est[j, pools[p].model] * left[a], _MIN_SECONDS)
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
def _takes_over(row: Floats, job: Row, pools: int) -> bool:
    """Assign a row of the memory to a job; reset it and return True if another job had it."""
    stored = float(job.id + 1)
    if row[pools + _ID] == stored:
        return False
    for k in range(len(row)):
        row[k] = 0.0
    row[pools + _ID] = stored
    return True


@njit_allocating
def note_jobs(view: View, rows: Floats) -> None:
    """Store in the memory rows [J, ...] of the active jobs on which pools each may run.

    A job that has been seen waiting may run where it was eligible then; any other only where it
    runs.
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
def preemptible_at(view: View) -> float:
    """Time at which the next run becomes old enough to be preempted; infinite = none.

    Always after now: start + least_run may be rounded down to a time at which the run is too young.
    """
    now, jobs, running, first = view.now, view.jobs, view.running, np.inf
    for r in range(len(running)):
        job, start = jobs[running[r].job], running[r].start
        if job.checkpoint >= 0 and now - start < job.least_run - _TOLERANCE_S:
            first = min(first, start + job.least_run)
    return max(first, np.nextafter(now, np.inf))


def too_young(now: float, running: Records, jobs: Records) -> Mask:
    """True [R] for each run that may not be preempted yet; jobs [R]: the jobs of these runs."""
    young: Mask = now - running["start"] < jobs["least_run"] - _TOLERANCE_S
    return young


def next_preemptible(view: View) -> float:
    """Result of `preemptible_at` as a Python float."""
    return float(preemptible_at(view))


def collect(view: View, notes: Notes) -> ActiveJobs:
    """Compute the arrays of the jobs that are active now."""
    return ActiveJobs(*gather(view, notes.eligible))
