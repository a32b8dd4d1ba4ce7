"""A world whose job table is smaller than its number of jobs, so that rows are reused.

As on a live cluster, a row is free again when its job is done and 128 younger jobs have arrived.
Rows are assigned in random order, so that a row number reveals nothing about age.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np
from numba import types

from adlro.compiled import njit
from adlro.model.state import OUTCOME
from adlro.model.view import RECENT_ARRIVALS
from adlro.sim.kernel import advance, apply
from adlro.sim.rollout_kernel import copy_job
from adlro.sim.signature import ANSWER, DECIDE, FLOATS, WORLD, compile_decide, compiled_steps
from adlro.sim.simulator import ViewCopies, is_compiled
from adlro.sim.world import decision_buffer, fresh_memory, open_world, view_of
from adlro.workloads.workload import Workload

BY_ROW = ("jobs", "est", "allowed", "seconds", "holders")
DONE, NO_ROW, FAULT = range(3)


class Ledger(NamedTuple):
    """Assignment of jobs to rows."""

    job: np.ndarray  # [rows] the job in each row, -1 = none yet
    free: np.ndarray  # [rows] a ring of rows, the longest free first
    counts: np.ndarray  # [3] first of the ring, rows in it, jobs written
    done: np.ndarray  # [J] OUTCOME of the jobs whose rows were reused


def reused(empty, workload, rows, seed):
    """Return a world with this many rows and its ledger; no job is in the table yet."""
    table = {name: np.zeros_like(getattr(workload, name)[:rows]) for name in BY_ROW}
    small = Workload(**{**workload._asdict(), **table})
    small.jobs["share"] = workload.jobs["share"].min()
    small.jobs["arrival"] = workload.jobs["arrival"][0]
    world = open_world(empty, small)
    world = world._replace(arrivals=np.full(len(workload.jobs), -1))
    world.totals["rows"] = rows
    order = np.random.default_rng(seed).permutation(rows)
    ledger = Ledger(
        np.full(rows, -1), order, np.array([0, rows, 0]), np.zeros(len(workload.jobs), OUTCOME)
    )
    return world, ledger


@njit
def _free_rows(world, ledger):
    """Free the rows of jobs that are done and old enough, when few free rows are left."""
    counts, arrived = ledger.counts, world.totals[0].arrived
    if counts[1] > 2:
        return
    for row in range(len(ledger.job)):
        j = ledger.job[row]
        if 0 <= j < arrived - RECENT_ARRIVALS and world.outcome[row].finish > 0.0:
            ledger.done[j] = world.outcome[row]
            ledger.job[row] = -1
            ledger.free[(counts[0] + counts[1]) % len(ledger.free)] = row
            counts[1] += 1


@njit
def write_next(world, source, ledger):
    """Write the next arrivals and one more job into free rows; False = no row is free."""
    counts, total = ledger.counts, len(world.arrivals)
    _free_rows(world, ledger)
    while counts[2] < total:
        j, first = counts[2], world.totals[0].arrived
        if j > first and source.jobs[j - 1].arrival > source.jobs[first].arrival:
            break
        if counts[1] == 0:
            return False
        row = ledger.free[counts[0]]
        counts[0], counts[1], counts[2] = (counts[0] + 1) % len(ledger.free), counts[1] - 1, j + 1
        copy_job(j, source, row, world)
        result = world.outcome[row]
        result.start = result.finish = result.lost = 0.0
        result.pool = result.nodes = result.restarts = result.killed = 0
        ledger.job[row], world.arrivals[j] = j, row
    return True


@njit
def _play(decide, params, memory, out, world, source, ledger):
    """Run to the end in compiled code; returns DONE, NO_ROW or FAULT."""
    while True:
        if not write_next(world, source, ledger):
            return NO_ROW
        if not advance(world):
            return FAULT if world.totals[0].fault != 0 else DONE
        done = 1
        while done > 0:
            answered = decide(view_of(world), params, memory, out)
            done = apply(answered, out, world) if answered > 0 else 0
        if done < 0:
            return FAULT


@functools.cache
def _compiled_play():
    """`_play`, compiled once for all policies."""
    outcome = types.Array(numba.from_dtype(OUTCOME), 1, "C")
    ledger = types.NamedTuple([types.int64[::1]] * 3 + [outcome], Ledger)
    _play.compile((types.FunctionType(DECIDE), FLOATS, FLOATS, ANSWER, WORLD, WORLD, ledger))
    _play.disable_compile()
    return _play


def _play_in_python(policy, memory, out, world, source, ledger):
    """The same step by step, for any policy; compiled ones are called from Python."""
    decide, steps, eyes = policy.decide, compiled_steps(), ViewCopies(world)
    if is_compiled(decide):
        decide = compile_decide(decide).overloads[DECIDE.args].entry_point
    rows = out.view(np.recarray)
    while True:
        if not write_next(world, source, ledger):
            return NO_ROW
        if not steps.advance(world):
            return FAULT if world.totals["fault"][0] != 0 else DONE
        done = 1
        while done > 0:
            done = steps.apply(int(decide(eyes.view(), policy.params, memory, rows)), out, world)
        if done < 0:
            return FAULT


def play_reused(empty, workload, policy, rows, *, compiled=False):
    """OUTCOME [J] of a run whose jobs share this many rows, in compiled code or step by step."""
    source = open_world(empty, workload)
    world, ledger = reused(empty, workload, rows, seed=1)
    memory, out = fresh_memory(policy.memory, 0), decision_buffer(world)
    if compiled:
        decide = compile_decide(policy.decide)
        ended = _compiled_play()(decide, policy.params, memory, out, world, source, ledger)
    else:
        ended = _play_in_python(policy, memory, out, world, source, ledger)
    assert ended != NO_ROW, f"{policy.name}: {rows} rows are too few"
    assert ended == DONE, f"{policy.name}: fault {world.totals[0]}"
    left = ledger.job >= 0
    ledger.done[ledger.job[left]] = world.outcome[left]
    return ledger.done
