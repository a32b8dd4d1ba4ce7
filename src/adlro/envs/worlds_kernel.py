"""Many copies of a scenario, stepped together, compiled: from one decision of each to the next.

A copy's episode is written into arrays of its own, so that the bank that it was taken from can be
replaced at any time. Dimensions: B copies, S episodes in the bank, J jobs of an episode, others as
in model/state.py; O and A as in features/observation_kernel.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit
from adlro.envs.bank import EpisodeBatch
from adlro.features.full_observation_kernel import observe_more
from adlro.features.observation_kernel import Vector, act, allow, observe
from adlro.model.state import Counts, Floats, Mask, Records, Row
from adlro.sim.kernel import advance, apply, clone
from adlro.sim.rollout_kernel import copy_job
from adlro.sim.world import World, view_of

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


class Terms(NamedTuple):
    """What is seen, done and paid."""

    window: int  # waiting jobs that are seen and may be started
    types: int  # of jobs
    columns: int  # most GPUs of any node
    is_full: int  # 1 = full observations
    may_wait: int  # 1 = the last action is to wait
    tau: float  # seconds of a typical job, for full observations
    idle_weight: float  # lambda of the reward


class Copies(NamedTuple):
    """B copies, and what they begin with."""

    worlds: World  # state and episode [B, ...] each; what is the same for all as in one world
    empty: World  # a world before anything has come
    bank: EpisodeBatch  # [S, ...] episodes to begin
    cursor: Counts  # [2] the row of the bank that is next, and the number of the episode in row 0
    begins: Mask  # [B] copies that wait for an episode
    episodes: Counts  # [B] their numbers
    paid: Floats  # [B] what has been handed out as rewards of the present episode
    out: Records  # [1] room for a decision


class Shown(NamedTuple):
    """What a learner is shown after a step; only written here."""

    observations: Vector  # [B, O]
    masks: Mask  # [B, A]
    rewards: Floats  # [B]
    dones: Mask  # [B]
    finals: Vector  # [B, O] what was seen at the end, where dones
    endings: Records  # [B] ENDING, where dones


@njit
def _world(i: int, worlds: World, k: int, episodes: EpisodeBatch) -> World:
    """Copy i with the episode of row k as what comes to it."""
    return World(
        worlds.totals[i],
        worlds.queue[i],
        worlds.eligible[i],
        worlds.undone[i],
        worlds.running[i],
        worlds.ends[i],
        worlds.wear[i],
        worlds.cells[i],
        worlds.pools[i],
        worlds.nodes[i],
        worlds.gpus[i],
        worlds.arrivals,
        episodes.jobs[k],
        episodes.est[k],
        episodes.allowed[k],
        episodes.seconds[k],
        episodes.events[k],
        worlds.colocation,
        worlds.demands,
        worlds.readings,
        episodes.holders[k],
        worlds.quotas,
        worlds.caps,
        worlds.ageing,
        worlds.outcome,
        worlds.spans,
    )


@njit
def _episodes(worlds: World) -> EpisodeBatch:
    """The episodes that the copies play."""
    return EpisodeBatch(
        worlds.jobs, worlds.est, worlds.allowed, worlds.seconds, worlds.events, worlds.holders
    )


@njit
def _begin(source: World, empty: World, world: World) -> None:
    """Put a copy before the first arrival of the episode of `source`."""
    clone(empty, world)
    for j in range(len(source.jobs)):
        copy_job(j, source, j, world)
    for e in range(len(source.events)):
        world.events[e] = source.events[e]
    world.totals[0].now = world.jobs[0].arrival


@njit
def _cost(w: Row, idle_weight: float) -> float:
    cost: float = w.job_seconds + idle_weight * w.idle_seconds
    return cost


@njit
def _look(terms: Terms, world: World, x: Vector) -> None:
    """Write the observation of a world into x [O]."""
    window, types, columns, view = terms.window, terms.types, terms.columns, view_of(world)
    observe(view, window, types, columns, x)
    if terms.is_full > 0:
        more = x[len(view.nodes) * columns + 1 + window * (1 + types) :]
        observe_more(view, window, terms.tau, more)


@njit
def _note_end(episode: int, world: World, ending: Row) -> None:
    """Write down what came of an episode."""
    w = world.totals[0]
    ending.episode, ending.jobs = episode, len(world.jobs)
    ending.job_seconds, ending.idle_seconds = w.job_seconds, w.idle_seconds
    ending.span = w.now - world.jobs[0].arrival


@njit
def first_forbidden(actions: Counts, begins: Mask, masks: Mask) -> int:
    """The first copy whose action is not allowed, or -1; actions of copies that begin are free."""
    for i in range(len(actions)):
        a = actions[i]
        if not begins[i] and (a < 0 or a >= masks.shape[1] or not masks[i, a]):
            return i
    return -1


@njit
def step(first: int, actions: Counts, terms: Terms, copies: Copies, shown: Shown) -> int:
    """Do actions [B], which must be allowed, and move each copy on to its next decision.

    A copy whose episode ends (dones) takes the next one of the bank at once. `first` is the copy to
    go on with: 0, or what the last call returned.

    Returns:
        B; or the copy at which the bank was used up: call again with it as `first`; or -1 - i after
        a fault of copy i. There is one `apply` and one `advance`: each takes seconds to compile.
    """
    worlds, bank, cursor, out = copies.worlds, copies.bank, copies.cursor, copies.out
    begins, episodes, paid = copies.begins, copies.episodes, copies.paid
    masks, rewards, dones = shown.masks, shown.rewards, shown.dones
    starts, own = terms.window * worlds.gpus.shape[1], _episodes(worlds)
    for i in range(first, len(actions)):
        world = _world(i, worlds, i, own)
        w, answered, asked, began = world.totals[0], 0, False, False
        if not begins[i]:
            rewards[i], dones[i] = 0.0, False
            if actions[i] < starts:
                answered = act(actions[i], view_of(world), out)
        while not asked:
            if begins[i]:
                if cursor[0] == len(bank.jobs):
                    return i
                _begin(_world(i, worlds, cursor[0], bank), copies.empty, world)
                episodes[i], paid[i], begins[i] = cursor[0] + cursor[1], 0.0, False
                cursor[0] += 1
                began = True
            if answered > 0:
                if apply(answered, out, world) < 0:
                    return -1 - i
                answered = 0
            elif not advance(world):
                if w.fault != 0:
                    return -1 - i
                rewards[i] = paid[i] - _cost(w, terms.idle_weight)
                dones[i], begins[i] = True, True
                _note_end(episodes[i], world, shown.endings[i])
                _look(terms, world, shown.finals[i])
                continue
            asked = allow(view_of(world), terms.window, masks[i][:starts]) > 0
        if not began:  # what passes before the first decision is paid with that
            cost = _cost(w, terms.idle_weight)
            rewards[i] = paid[i] - cost
            paid[i] = cost
        if terms.may_wait > 0:
            masks[i, starts] = w.running > 0
        _look(terms, world, shown.observations[i])
    return len(actions)
