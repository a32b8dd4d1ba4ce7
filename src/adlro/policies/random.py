"""Random: of all feasible pairs of a job and a pool, one drawn uniformly at random starts.

The draws depend only on the run's seed. This is the lower bound of every comparison.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fits, start

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def memory(context):
    """Length of the memory: the run's seed (written by the simulator), the generator's state."""
    return 2


@njit
def _draw(memory):
    """Advance the generator (splitmix64), whose state is memory[1], and return 64 random bits."""
    state = memory[1:2].view(np.uint64)
    if memory[0] >= 0.0:
        state[0] = np.uint64(memory[0])
        memory[0] = -1.0
    state[0] += _STEP
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@njit
def decide(view, params, memory, out):
    """Count the feasible pairs of a job and a pool, draw one of them and start it."""
    jobs, queue, eligible = view.jobs, view.queue, view.eligible
    pools, nodes, gpus, count = view.pools, view.nodes, view.gpus, 0
    for q in range(len(queue)):
        for p in range(len(pools)):
            if eligible[q, p] and fits(jobs[queue[q].job], pools[p], nodes, gpus):
                count += 1
    if count == 0:
        return 0
    chosen = np.int64(_draw(memory) % np.uint64(count))
    for q in range(len(queue)):
        for p in range(len(pools)):
            if eligible[q, p] and fits(jobs[queue[q].job], pools[p], nodes, gpus):
                if chosen == 0:
                    return start(out, queue[q].job, p)
                chosen -= 1
    return 0
