"""Common part of the Gavel policies: time shares from a linear program, enforced by rounds.

X [A, P] is the share of its time that each of A active jobs spends on each of P pools. It is solved
for (allocation.py) in the first round after a job or a node has come or gone. In a round each pair
(job, pool) with X > 0 has the priority

    (owed + X * round) / (received + round)

where owed is the integral of X over time, received the time that the job ran there, and round the
length of a round (after Narayanan et al., Gavel, OSDI 2020, section 5: X over the share of time
received). Counting the next round in numerator and denominator avoids a division by 0, and that
small shares always come first. The integrals continue when X is solved for again, as Gavel's
deficits do; otherwise small shares would never be served if jobs come and go often. A job is owed
at most ten rounds, and is at most one round ahead. Pairs are taken by falling priority while GPUs
are available; ties go to the larger X, then to the pool where the job runs, then to the older job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit_allocating
from adlro.model.context import Context
from adlro.model.state import Floats, Records
from adlro.model.view import View
from adlro.planning import rounds
from adlro.planning.actions import take_in_order
from adlro.planning.active_jobs import ActiveJobs, Indices, Notes, memory_size, notes_of
from adlro.planning.rounds import RoundPlan

ROUND_S = 360.0
_MAX_OWED = 10.0  # rounds
_EXTRA_COLUMNS = 3  # of a row, after shares, owed and received: for the individual policy

# Solves for the shares [A, P]; the last argument: the extra columns [J, 3] of the policy.
Solver = Callable[[View, ActiveJobs, Floats], Floats]


class Ledger(NamedTuple):
    """Shares X of the pairs (job, pool), and time owed and received, as views of the memory."""

    shares: Floats  # [J, P] X of the last solution
    owed: Floats  # [J, P] seconds
    received: Floats  # [J, P] seconds


def params(context: Context) -> Floats:
    """Parameters [1] of a Gavel policy: length of a round in seconds."""
    return np.array([ROUND_S])


def memory(context: Context) -> int:
    """Number of values in the memory of a Gavel policy.

    For each job: X, owed and received on each pool, and the extra columns; and what rounds.py
    needs.
    """
    return memory_size(context, 3 * len(context.pools) + _EXTRA_COLUMNS)


@njit_allocating
def update_ledger(last: float, length: float, rows: Indices, view: View, ledger: Ledger) -> None:
    """Add the time since the last round to owed and received, and limit their difference.

    Args:
        last: time of the last round.
        length: length of a round in seconds.
        rows: [A] rows of the active jobs.
        view: the present view.
        ledger: updated.
    """
    now, jobs, running = view.now, view.jobs, view.running
    shares, owed, received = ledger.shares, ledger.owed, ledger.received
    for r in range(len(running)):
        run = running[r]
        received[run.job, run.pool] += now - max(run.start, last)
    for j in rows:
        since = now - max(last, jobs[j].arrival)
        for p in range(shares.shape[1]):
            owed[j, p] += shares[j, p] * since
            received[j, p] = min(received[j, p], owed[j, p] + length)
            owed[j, p] = min(owed[j, p], received[j, p] + _MAX_OWED * length)


def _account(view: View, notes: Notes, active: ActiveJobs, length: float) -> None:
    """Update owed and received in the memory for the time since the last round."""
    if not notes.head[rounds.BEGUN]:
        return
    pools = len(view.pools)
    ledger = Ledger(*(notes.columns[:, k * pools : (k + 1) * pools] for k in range(3)))
    update_ledger(notes.head[rounds.LAST], length, active.rows, view, ledger)


def _by_priority(view: View, notes: Notes, active: ActiveJobs, length: float) -> RoundPlan:
    """Plan a round: take the pairs with the highest priority while GPUs are available."""
    pools = len(view.pools)
    shares, owed, received = (
        notes.columns[active.rows, k * pools : (k + 1) * pools] for k in range(3)
    )
    shares = np.where(active.open(), shares, 0.0)
    priority = (owed + shares * length) / (received + length)
    a, p = np.nonzero(shares)
    elsewhere = active.pool[a] != p
    order = np.lexsort((a, elsewhere, -shares[a, p], -priority[a, p].round(9)))
    target = np.full(len(active.rows), -1)
    take_in_order(a[order], p[order], active.width, active.room.copy(), target)
    rank = np.where(target >= 0, priority[np.arange(len(target)), target], -np.inf)
    rotates = bool(((shares > 0) & (shares < 1)).any()) and len(active.rows) > 1
    return RoundPlan(target, np.argsort(-rank, kind="stable"), rotates)


def answer(view: View, params: Floats, memory: Floats, out: Records, solve: Solver) -> int:
    """Write the decisions of a Gavel policy; returns their number.

    This is the `decide` of all Gavel policies; `solve` computes the shares X of the individual one.
    """
    pools, length = len(view.pools), float(params[0])
    notes = notes_of(memory, view, 3 * pools + _EXTRA_COLUMNS)

    def plan(view: View, notes: Notes, active: ActiveJobs, changed: bool) -> RoundPlan:
        _account(view, notes, active, length)
        if changed:
            shares = solve(view, active, notes.columns[:, 3 * pools :])
            notes.columns[active.rows, :pools] = shares
        return _by_priority(view, notes, active, length)

    return rounds.answer(view, notes, length, plan, out)
