"""What the Gavel policies have in common: time shares from a linear program, kept by rounds.

Shares X [A, P] are solved for (shares.py) in the first round after a job or a node has come or
gone. In a round each pair (job, pool) with X > 0 has the priority

    (owed + X * round) / (received + round)

with owed the sum of X times the time since, and received the time that the job ran there: X over
the share of the time that it would have had there with the round to come, so that nobody divides by
0 and a small share need not come first (POLICIES 1.6). Both go on over a new solution, as Gavel's
own deficits do, or small shares would never be served where jobs come and go often; but a job is
owed at most ten rounds, and owes at most one. Pairs are taken by falling priority (of equals: the
larger X, who runs there already, the older) while the GPUs last. Not a policy.
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
from adlro.planning.active_jobs import Active, Notes, memory_size, notes_of
from adlro.planning.rounds import RoundPlan

ROUND_S = 360.0
_MOST_OWED = 10.0  # rounds
_MORE = 3  # columns of a row after shares, owed and received: for the policy's own use

Solver = Callable[[View, Active, Floats], Floats]  # the last: the policy's own columns, [J, 3]


class Ledger(NamedTuple):
    """What pairs of a job and a pool have coming to them, as views of the memory."""

    shares: Floats  # [J, P] the X of the last solution
    owed: Floats  # [J, P] seconds
    received: Floats  # [J, P] seconds


def params(context: Context) -> Floats:
    """Seconds from round to round."""
    return np.array([ROUND_S])


def memory(context: Context) -> int:
    """Beside what rounds need, for each job: X, owed and received by pool, and three numbers."""
    return memory_size(context, 3 * len(context.pools) + _MORE)


@njit_allocating
def update_ledger(last, length, rows, view, ledger):
    """Add the time since the last round to owed and received, and limit both.

    Args:
        last: when that round was.
        length: seconds from round to round.
        rows: [A] of the active jobs.
        view: what the policy sees.
        ledger: what is brought up to date.
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
            owed[j, p] = min(owed[j, p], received[j, p] + _MOST_OWED * length)


def _account(view: View, notes: Notes, active: Active, length: float) -> None:
    """Bring owed and received up to date with the time since the last round."""
    if not notes.head[rounds.BEGUN]:
        return
    pools = len(view.pools)
    ledger = Ledger(*(notes.own[:, k * pools : (k + 1) * pools] for k in range(3)))
    update_ledger(notes.head[rounds.LAST], length, active.rows, view, ledger)


def _by_priority(view: View, notes: Notes, active: Active, length: float) -> RoundPlan:
    """Targets from the shares: the pairs with the highest priority that fit."""
    pools = len(view.pools)
    shares, owed, received = (notes.own[active.rows, k * pools : (k + 1) * pools] for k in range(3))
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
    """The decide of all Gavel policies, given what solves for the shares."""
    pools, length = len(view.pools), float(params[0])
    notes = notes_of(memory, view, 3 * pools + _MORE)

    def plan(view: View, notes: Notes, active: Active, changed: bool) -> RoundPlan:
        _account(view, notes, active, length)
        if changed:
            shares = solve(view, active, notes.own[:, 3 * pools :])
            notes.own[active.rows, :pools] = shares
        return _by_priority(view, notes, active, length)

    return rounds.answer(view, notes, length, plan, out)
