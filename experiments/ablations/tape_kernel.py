"""A policy that writes down what it saw and chose: transitions for temporal differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit
from adlro.features.start_kernel import PLAIN, describe_choices
from adlro.model.feasibility import expected_end, start
from adlro.model.state import Floats
from adlro.nets import q_network
from adlro.nets.q_network import UNITS, Network, choose
from adlro.policies.registry import Policy
from adlro.workloads.setting import Setting

_USED, _ROWS, _STRAY, _PLAYS_NETWORK, _MOST, _ROOM, _SIZE, _HEAD = range(8)
_WIDTH = len(PLAIN) + 1
_STEP = 5  # numbers a decision: time, tau, choices, Min-Min's, the one taken
_DECISIONS, _CHOICES = 8, 6  # room: decisions a job, and choices a decision


class Tape(NamedTuple):
    """S decisions of one episode, their N choices one after the other, F features."""

    steps: Floats  # [S, 5] time s, tau s, number of choices, which is Min-Min's, which was taken
    features: Floats  # [N, F]
    plans: Floats  # [N] seconds that the jobs at hand will take, by the plan after the choice


@njit
def decide(view, params, memory, out):  # noqa: ANN001, ANN201  as of every policy
    """Min-Min's choice or the network's, now and then a random one; written into params.

    States in which nothing runs are not written down, as they are not labelled: there it is not
    allowed to wait. Nor are any once the room is used up.
    """
    now, running = view.now, view.running
    used, rows, most, room = (
        int(params[_USED]), int(params[_ROWS]), int(params[_MOST]), int(params[_ROOM])
    )  # fmt: skip
    at = _HEAD + int(params[_SIZE])
    net, draws = params[_HEAD:at], params[at : at + 2 * most]
    steps = params[at + 2 * most : at + (2 + _STEP) * most]
    seen = params[at + (2 + _STEP) * most :]
    units, scratch = memory[:UNITS], memory[UNITS:]
    choices = describe_choices(view, scratch)
    if choices.count == 0:
        return 0
    may_wait = len(running) > 0
    i = choices.planned
    if params[_PLAYS_NETWORK] > 0.0 and (may_wait or i == 0):
        i = choose(choices, may_wait, net, units)
    if may_wait and used < most and rows + choices.count <= room:
        if draws[2 * used] < params[_STRAY]:
            i = int(draws[2 * used + 1] * choices.count)
        step = steps[used * _STEP : (used + 1) * _STEP]
        step[0], step[1], step[2] = now, choices.tau, choices.count
        step[3], step[4] = choices.planned, i
        rest = 0.0
        for run in running:
            rest += expected_end(run, now) - now
        for c in range(choices.count):
            row = seen[(rows + c) * _WIDTH : (rows + c + 1) * _WIDTH]
            for f in range(len(PLAIN)):
                row[f] = choices.features[c, f]
            row[len(PLAIN)] = rest + choices.costs[c]
        params[_USED], params[_ROWS] = used + 1, rows + choices.count
    if i == 0:
        if may_wait:
            return 0
        i = 1
    return start(out, view.queue[int(choices.places[i])].job, int(choices.pools[i]))


def recorder(
    plays: Network, setting: Setting, *, as_min_min: bool, stray: float, rng: np.random.Generator
) -> Policy:
    """A policy with an empty tape, for one episode."""
    net, most = q_network.flat(plays), _DECISIONS * setting.scenario.jobs
    room = _CHOICES * most
    head = np.zeros(_HEAD)
    head[[_STRAY, _PLAYS_NETWORK, _MOST, _ROOM, _SIZE]] = (
        stray,
        not as_min_min,
        most,
        room,
        len(net),
    )
    space = np.zeros(_STEP * most + _WIDTH * room)
    params = np.concatenate([head, net, rng.random(2 * most), space])
    layout = setting.layout
    memory = q_network.scratch_size(len(layout.gpus), len(layout.pools))
    play: Callable[..., int] = decide
    return Policy("recorder", play, params, memory, None, 0, False)


def tape(policy: Policy) -> Tape:
    """What a recorder has written."""
    params = policy.params
    used, rows, most = (int(params[k]) for k in (_USED, _ROWS, _MOST))
    at = _HEAD + int(params[_SIZE]) + 2 * most
    steps, seen = params[at : at + _STEP * most], params[at + _STEP * most :]
    table = seen[: rows * _WIDTH].reshape(rows, _WIDTH).copy()
    return Tape(steps.reshape(most, _STEP)[:used].copy(), table[:, :-1], table[:, -1])
