"""Sia for rigid jobs: in 60 s rounds an integer program assigns pools by goodput and restart cost.

The goodput of a job with n_j GPUs on pool g is G = n_j v_jg / v_j, with v_jg its speed there and
v_j its slowest speed. On any pool but the one where the job runs now, G is multiplied by the
restart factor r = (T - R S) / (T + S), with T its age, R the number of its restarts and S the cost
of one (Jayaram Subramanya et al. 2023, SOSP); if r <= 0 the job does not move. Waiting jobs have r
= 1. A slice counts as one GPU in G, and as its share of a GPU in the room of a pool.

The program gives each job at most one pool and minimises the sum of G^-0.5 over the jobs with a
pool plus 1.1 for each job without one; among equals the job with the least service is preferred
(planning/active_jobs.py). It is solved in rounds, after a job or a node has come or gone
(planning/rounds.py); planning/actions.py has the preemptions. If the relaxed program, without the
integer constraints, has an integer solution, that solution is used. The search stops after 1000
branch-and-bound nodes with the best solution found: few programs need more, but on a cluster of
slices one can need 25,000. Reaching the time limit of 30 s is an error, because the solution found
by then depends on the machine.
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
_OTHER = 4  # scipy's status for all other reasons to stop, such as the limit of nodes
_EXACT = 1e-6  # a solution this close to 0 or 1 counts as an integer


def params(context):
    """Seconds between rounds, the exponent of the goodput, and the cost of a job without a pool."""
    return np.array([60.0, -0.5, 1.1])


def memory(context):
    """Length of the memory: for each job what planning/active_jobs.py stores between calls."""
    return memory_size(context)


def _goodput(view, active):
    """Return the goodput [A, P] of each job on each pool, with restart factor; 0 = not allowed."""
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
    """Assign jobs to pools so that the sum of their profits [A, P] is largest and all fit.

    Only profits above 0 count. Returns the pool [A] of each job, -1 = none.

    Raises:
        PolicyError: the solver found no solution, or reached its time limit.
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
    """In a round, preempt and start as the program assigns; between rounds, start jobs that fit."""
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
