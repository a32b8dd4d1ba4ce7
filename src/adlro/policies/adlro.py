"""ADLRO: a Q-network, trained on the simulator, weighs every start against waiting.

Choices and features: encode/candidates_kernel.py; network: encode/network.py; training: train/.
"""

import os

import numpy as np

from adlro.compiled import njit
from adlro.encode import network
from adlro.encode.candidates_kernel import look
from adlro.encode.network import MOST_UNITS, choose
from adlro.model.room import start


def params(setting):
    """Provisional: flat weights from the file that PROTO names, or the drain cost alone."""
    f = os.environ.get("PROTO")
    return np.load(f) if f else np.array([0, 0, 0, 1.0, 0.0])


def memory(setting):
    """Scratch; nothing is kept from call to call."""
    return network.scratch_size(len(setting.layout.gpus), len(setting.pools))


@njit
def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """The choice with the smallest predicted cost; waiting only if something runs."""
    units, scratch = memory[: 2 * MOST_UNITS], memory[2 * MOST_UNITS :]
    choices = look(now, jobs, est, queue, eligible, running, pools, nodes, gpus, scratch)
    if choices.count == 0:
        return 0
    i = choose(choices, len(running) > 0, params, units)
    if i == 0:
        return 0
    return start(out, queue[int(choices.places[i])].job, int(choices.pools[i]))
