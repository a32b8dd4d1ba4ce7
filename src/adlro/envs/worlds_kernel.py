"""Many copies of a scenario, stepped together, compiled: from one decision of each to the next.

A copy's episode is written into arrays of its own, so that the bank that it was taken from can be
replaced at any time. Dimensions: B copies, S episodes in the bank, J jobs of an episode, others as
in model/state.py; O and A as in encode/paper_kernel.py.
"""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit
from adlro.encode.full_kernel import observe_more
from adlro.encode.paper_kernel import Vector, act, allow, observe
from adlro.model.state import Counts, Floats, Mask, Records, Row
from adlro.sim.kernel import advance, apply, clone
from adlro.sim.roll_kernel import copy_job

# An episode that has ended.
ENDING = np.dtype(
    [
        ("episode", "i8"),  # its number
        ("jobs", "i8"),
        ("job_seconds", "f8"),  # sum of the completion times of its jobs
        ("idle_seconds", "f8"),  # GPU-seconds idle, from the first arrival to the last finish
        ("span", "f8"),  # seconds from the first arrival to the last finish
    ],
    align=True,
)


@njit
def _of_copy(i: int, copies: tuple[Records, ...]) -> tuple[Records, ...]:
    """The state of one copy."""
    return (
        copies[0][i], copies[1][i], copies[2][i], copies[3][i], copies[4][i], copies[5][i],
        copies[6][i], copies[7][i], copies[8][i], copies[9][i], copies[10][i],
    )  # fmt: skip


@njit
def _workload(i: int, own: tuple[Records, ...], common: tuple[Records, ...]) -> tuple[Records, ...]:
    """The workload of row i of a bank, with what is the same for all episodes."""
    return (
        own[0][i], own[1][i], own[2][i], own[3][i], own[4][i], common[0], common[1], common[2],
        own[5][i], common[3], common[4], common[5],
    )  # fmt: skip


@njit
def _copy_episode(source: tuple[Records, ...], to: tuple[Records, ...]) -> None:
    """Copy all that is an episode's own of a workload."""
    for j in range(len(source[0])):
        copy_job(j, source, j, to)
    for e in range(len(source[4])):
        to[4][e] = source[4][e]


@njit
def _begin(
    source: tuple[Records, ...], work: tuple[Records, ...], empty: tuple[Records, ...],
    state: tuple[Records, ...], nothing: Floats,
) -> None:  # fmt: skip
    """Put a copy before the first arrival of an episode."""
    clone(*empty, nothing, *state, nothing)
    _copy_episode(source, work)
    state[0][0].now = work[0][0].arrival


@njit
def _cost(w: Row, idle_weight: float) -> float:
    cost: float = w.job_seconds + idle_weight * w.idle_seconds
    return cost


@njit
def _look(
    sizes: Counts, tau: float, state: tuple[Records, ...], work: tuple[Records, ...], x: Vector
) -> None:
    """Write the observation of a state into x [O]; sizes: see `step`."""
    w = state[0][0]
    waiting = state[1][w.head : w.head + w.waiting]
    window, types, columns = sizes[0], sizes[1], sizes[2]
    observe(work[0], waiting, state[9], state[10], window, types, columns, x)
    if sizes[3] > 0:
        more = x[len(state[9]) * columns + 1 + window * (1 + types) :]
        mask = state[2][w.head : w.head + w.waiting]
        observe_more(w.now, work[0], work[1], waiting, mask, state[8], state[10], window, tau, more)


@njit
def first_forbidden(actions: Counts, begins: Mask, masks: Mask) -> int:
    """The first copy whose action is not allowed, or -1; actions of copies that begin are free."""
    for i in range(len(actions)):
        a = actions[i]
        if not begins[i] and (a < 0 or a >= masks.shape[1] or not masks[i, a]):
            return i
    return -1


@njit
def step(
    first: int, actions: Counts, sizes: Counts, tau: float, idle_weight: float,
    copies: tuple[Records, ...], own: tuple[Records, ...], common: tuple[Records, ...],
    bank: tuple[Records, ...], cursor: Counts, empty: tuple[Records, ...], nothing: Floats,
    out: Records, outcome: Records, spans: Records, begins: Mask,
    episodes: Counts, paid: Floats, observations: Vector, masks: Mask, rewards: Floats,
    dones: Mask, finals: Vector, endings: Records,
) -> int:  # fmt: skip
    """Do actions [B], which must be allowed, and move each copy on to its next decision.

    A copy whose episode ends (dones) takes the next one of the bank at once.

    Args:
        first: the copy to go on with, see below.
        actions: [B].
        sizes: [5] window, types, columns; 1 = full observations; 1 = the last action is to wait.
        tau: seconds of a typical job, for full observations.
        idle_weight: lambda of the reward.
        copies: the states, [B, ...] each.
        own: jobs, est, allowed, seconds, events and holders of the episode of each copy.
        common: the other parts of a workload.
        bank: as `own`, of S episodes.
        cursor: [2] the row of the bank that is next, and the number of the episode in row 0.
        empty: a state before anything has come.
        nothing: [0] the memory of no policy.
        out: [1] room for a decision.
        outcome: [J] written by all copies, read by nobody.
        spans: [0].
        begins: [B] copies that wait for an episode.
        episodes: [B] their numbers.
        paid: [B] what has been handed out as rewards of the present episode.
        observations: [B, O], as all that follow only written.
        masks: [B, A].
        rewards: [B].
        dones: [B].
        finals: [B, O] what was seen at the end, where dones.
        endings: [B] ENDING, where dones.

    Returns:
        B; or the copy at which the bank was used up: call again with it as `first`; or -1 - i after
        a fault of copy i. There is one `apply` and one `advance`: each takes seconds to compile.
    """
    window, starts = sizes[0], sizes[0] * copies[10].shape[1]
    for i in range(first, len(actions)):
        state, work = _of_copy(i, copies), _workload(i, own, common)
        w, answered, asked, began = state[0][0], 0, False, False
        if not begins[i]:
            rewards[i], dones[i] = 0.0, False
            if actions[i] < starts:
                waiting = state[1][w.head : w.head + w.waiting]
                answered = act(actions[i], waiting, state[9], state[10], out)
        while not asked:
            if begins[i]:
                if cursor[0] == len(bank[0]):
                    return i
                source = _workload(cursor[0], bank, common)
                _begin(source, work, empty, state, nothing)
                episodes[i], paid[i], begins[i] = cursor[0] + cursor[1], 0.0, False
                cursor[0] += 1
                began = True
            if answered > 0:
                if apply(answered, out, *state, *work, outcome, spans) < 0:
                    return -1 - i
                answered = 0
            elif not advance(*state, *work, outcome, spans):
                if w.fault != 0:
                    return -1 - i
                rewards[i], dones[i], begins[i] = paid[i] - _cost(w, idle_weight), True, True
                endings[i].episode, endings[i].jobs = episodes[i], len(work[0])
                endings[i].job_seconds, endings[i].idle_seconds = w.job_seconds, w.idle_seconds
                endings[i].span = w.now - work[0][0].arrival
                _look(sizes, tau, state, work, finals[i])
                continue
            waiting = state[1][w.head : w.head + w.waiting]
            mask = state[2][w.head : w.head + w.waiting]
            may = masks[i][:starts]
            choices = allow(work[0], waiting, mask, state[8], state[9], state[10], window, may)
            asked = choices > 0
        if not began:  # what passes before the first decision is paid with that
            cost = _cost(w, idle_weight)
            rewards[i] = paid[i] - cost
            paid[i] = cost
        if sizes[4] > 0:
            masks[i, starts] = w.running > 0
        _look(sizes, tau, state, work, observations[i])
    return len(actions)
