"""Sia for rigid jobs: the integer program of normalised goodput with restart costs; 60 s rounds.

A job of n_j GPUs has on pool g the goodput G = n_j v_jg / (its slowest v), times r = (T - R S) /
(T + S) on another pool than that where it runs, T being its age, R its restarts, S the cost of one
(Jayaram Subramanya et al., SOSP 2023); where r <= 0 it does not move. Each job is
given at most one pool: the smallest sum of G^-0.5 over those that get one plus 1.1 for each other.
Between equals who has been served least goes first (active.py). Those who wait have r = 1; a slice
counts as one GPU in G and as its share of the room. Solved when a job or a node has come or gone
and a round is due (rounds.py); moves as in moves.py. Where the program without the whole numbers
has whole numbers as its answer, that is the answer. Of a program that is not solved after 1000
nodes of its search the best found is taken: few are, but a cluster of slices can ask for 25,000. To
be stopped by the clock, after 30 s, is an error: what is found by then depends on the machine.
"""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from adlro.errors import PolicyError
from adlro.planning import rounds
from adlro.planning.active_jobs import memory_size, notes_of, plain_view
from adlro.planning.rounds import RoundPlan
from adlro.planning.solver_output import hushed

PREEMPTIVE = True
_ROUND, _POWER, _IDLE = range(3)  # params
MOST_NODES = 1000
TIME_LIMIT_S = 30.0
_OTHER = 4  # scipy's status for what it has no name for: the limit of nodes
_EXACT = 1e-6  # as near as this to 0 or 1 is 0 or 1


def params(context):
    """Seconds from round to round, the power p and the price lambda of a job without GPUs."""
    return np.array([60.0, -0.5, 1.1])


def memory(context):
    """See active.py."""
    return memory_size(context)


def _goodput(view, active):
    """G [A, P] with the restart factor; 0 where the job may not be put."""
    slowest = np.where(np.isfinite(active.seconds), active.seconds, 0.0).max(axis=1)
    jobs = view.jobs[active.rows]
    goodput = jobs["gpus"][:, None] * slowest[:, None] / active.seconds
    age, cost = view.now - jobs["arrival"], np.maximum(jobs["checkpoint"], 0.0)
    runs = active.pool >= 0
    moved = np.where(runs, (age - active.restarts * cost) / np.maximum(age + cost, 1e-9), 1.0)
    stays = active.pool[:, None] == np.arange(len(view.pools))
    goodput = goodput * np.where(stays, 1.0, np.maximum(moved, 0.0)[:, None])
    return np.where(active.open(), goodput, 0.0)


def _solve(profit, limits, *, integral):
    return milp(
        -profit, integrality=np.full(len(profit), int(integral)), bounds=Bounds(0, 1),
        constraints=limits, options={"time_limit": TIME_LIMIT_S, "node_limit": MOST_NODES},
    )  # fmt: skip


def _assign(profit, active, where):
    """Pools [A] with the largest sum of profit > 0 [A, P] that the rooms allow; -1 = none.

    Raises:
        PolicyError: the program has no solution, or took too long.
    """
    target = np.full(len(profit), -1)
    a, p = np.nonzero(profit > 0)
    if len(a) == 0:
        return target
    jobs, count = len(profit), len(a)
    rows = (np.concatenate([a, jobs + p]), np.tile(np.arange(count), 2))
    values = np.concatenate([np.ones(count), active.width[a]])
    matrix = csr_array((values, rows), shape=(jobs + len(active.room), count))
    most = np.concatenate([np.ones(jobs), np.maximum(active.room, 0.0)])
    limits = LinearConstraint(matrix, -np.inf, most)
    found = _solve(profit[a, p], limits, integral=False)
    if found.status == 0 and np.abs(found.x - found.x.round()).max() > _EXACT:
        with hushed():
            found = _solve(profit[a, p], limits, integral=True)
    is_cut = found.status == _OTHER and (found.mip_node_count or 0) >= MOST_NODES
    if found.status != 0 and not (is_cut and found.x is not None):
        said = " ".join(str(found.message).split())
        raise PolicyError(f"policy {where}: its integer program was not solved: {said}")
    chosen = found.x > 0.5
    target[a[chosen]] = p[chosen]
    return target


def decide(view, params, memory, out):
    """In a round, what the program says; between rounds, what fits."""
    view = plain_view(view)

    def plan(view, notes, active, changed):
        goodput, count = _goodput(view, active), len(active.rows)
        price = np.where(goodput > 0, goodput, np.inf) ** params[_POWER]
        profit = params[_IDLE] - price + active.tie_break()
        profit = np.where(goodput > 0, profit, 0.0)
        target = _assign(profit, active, f"sia at {view.now:.0f} s")
        each = np.where(target >= 0, profit[np.arange(count), target] / active.width, 0.0)
        return RoundPlan(target, np.argsort(-each, kind="stable"), False)

    return rounds.answer(view, notes_of(memory, view), float(params[_ROUND]), plan, out)
