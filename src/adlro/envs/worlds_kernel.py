"""The compiled function that steps many copies of a scenario, each to its next decision.

A copy has its own arrays for its episode, so that the batch that the episode was taken from can be
replaced at any time. Dimensions: B copies, S episodes in the batch, J jobs of an episode, others as
in model/state.py; O and A as in features/observation_kernel.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit
from adlro.envs.episode_batch import EpisodeBatch
from adlro.features.full_observation_kernel import observe_more
from adlro.features.observation_kernel import Vector, act, allow, observe
from adlro.model.state import Counts, Floats, Mask, Records, Row
from adlro.sim.kernel import advance, apply, clone
from adlro.sim.rollout_kernel import copy_job
from adlro.sim.world import World, view_of

# Number and sums of an episode that has ended.
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


class StepOptions(NamedTuple):
    """Options that define the observation, the actions and the reward."""

    window: int  # waiting jobs that are observed and can be started
    types: int  # number of job types
    columns: int  # most GPUs of any node
    is_full: int  # 1 = full observations
    may_wait: int  # 1 = the last action waits
    tau: float  # seconds of a typical job, for full observations
    idle_weight: float  # lambda of the reward


class Copies(NamedTuple):
    """State of B copies, and a batch of the S episodes that they begin next."""

    worlds: World  # state and episode [B, ...] each; arrays that all copies share as in one world
    empty: World  # a world before the first arrival
    batch: EpisodeBatch  # [S, ...] the next episodes
    cursor: Counts  # [2] the next row of the batch, and the number of the episode in row 0
    begins: Mask  # [B] copies that must begin an episode
    episodes: Counts  # [B] number of the episode of each copy
    paid: Floats  # [B] cost of the current episode that rewards have covered so far
    out: Records  # [1] buffer for a decision


class StepOutputs(NamedTuple):
    """Arrays with the results of a step, for the learner; explained in `worlds.Worlds`."""

    observations: Vector  # [B, O]
    masks: Mask  # [B, A]
    rewards: Floats  # [B]
    dones: Mask  # [B]
    finals: Vector  # [B, O] last observation of the episode, where dones
    endings: Records  # [B] ENDING, where dones


@njit
def _world(i: int, worlds: World, k: int, episodes: EpisodeBatch) -> World:
    """Return copy i as a world with row k of `episodes` as its workload."""
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
        worlds.tick,
        worlds.outcome,
        worlds.spans,
    )


@njit
def _episodes(worlds: World) -> EpisodeBatch:
    """Return the episodes that the copies are playing, a row per copy."""
    return EpisodeBatch(
        worlds.jobs, worlds.est, worlds.allowed, worlds.seconds, worlds.events, worlds.holders
    )


@njit
def _begin(source: World, empty: World, world: World) -> None:
    """Reset the copy `world` to the first arrival of the episode that `source` holds.

    `empty`: the state of a world before the first arrival.
    """
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
def _observe(options: StepOptions, world: World, x: Vector) -> None:
    """Write the observation of a world into x [O]."""
    window, types, columns = options.window, options.types, options.columns
    view = view_of(world)
    observe(view, window, types, columns, x)
    if options.is_full > 0:
        more = x[len(view.nodes) * columns + 1 + window * (1 + types) :]
        observe_more(view, window, options.tau, more)


@njit
def _record_ending(episode: int, world: World, ending: Row) -> None:
    """Write number and sums of the episode that has ended in `world` into `ending`."""
    w = world.totals[0]
    ending.episode, ending.jobs = episode, len(world.jobs)
    ending.job_seconds, ending.idle_seconds = w.job_seconds, w.idle_seconds
    ending.span = w.now - world.jobs[0].arrival


@njit
def first_forbidden(actions: Counts, begins: Mask, masks: Mask) -> int:
    """Return the first copy whose action is forbidden, or -1.

    Copies that are about to begin an episode (`begins`) ignore their action.
    """
    for i in range(len(actions)):
        a = actions[i]
        if not begins[i] and (a < 0 or a >= masks.shape[1] or not masks[i, a]):
            return i
    return -1


@njit
def step(
    first: int, actions: Counts, options: StepOptions, copies: Copies, outputs: StepOutputs
) -> int:
    """Take the actions [B], one per copy and all allowed; advance each copy to its next decision.

    A copy whose episode ends (dones) begins the next episode of the batch at once. `first` is the
    copy to continue with: 0, or the result of the last call. `apply` and `advance` are called at
    only one place each, because each call takes seconds to compile.

    Returns:
        B if all copies have advanced; the index of the copy for which the batch has no episode left
        (refill the batch and call again with this index as `first`); or -1 - i after a fault of
        copy i.
    """
    worlds, batch, cursor, out = copies.worlds, copies.batch, copies.cursor, copies.out
    begins, episodes, paid = copies.begins, copies.episodes, copies.paid
    masks, rewards, dones = outputs.masks, outputs.rewards, outputs.dones
    starts, own = options.window * worlds.gpus.shape[1], _episodes(worlds)
    for i in range(first, len(actions)):
        world = _world(i, worlds, i, own)
        w, answered, asked, began = world.totals[0], 0, False, False
        if not begins[i]:
            rewards[i], dones[i] = 0.0, False
            if actions[i] < starts:
                answered = act(actions[i], view_of(world), out)
        while not asked:
            if begins[i]:
                if cursor[0] == len(batch.jobs):
                    return i
                _begin(_world(i, worlds, cursor[0], batch), copies.empty, world)
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
                rewards[i] = paid[i] - _cost(w, options.idle_weight)
                dones[i], begins[i] = True, True
                _record_ending(episodes[i], world, outputs.endings[i])
                _observe(options, world, outputs.finals[i])
                continue
            asked = allow(view_of(world), options.window, masks[i][:starts]) > 0
        if not began:  # the first decision's reward covers the time before it
            cost = _cost(w, options.idle_weight)
            rewards[i] = paid[i] - cost
            paid[i] = cost
        if options.may_wait > 0:
            masks[i, starts] = w.running > 0
        _observe(options, world, outputs.observations[i])
    return len(actions)
