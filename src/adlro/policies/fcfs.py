"""First come, first served: the oldest job starts on the first pool that fits, or all wait."""

from adlro.compiled import njit
from adlro.model.room import fits, start


@njit
def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """Strict head of line; pools in file order."""
    if len(queue) == 0:
        return 0
    j = queue[0].job
    for p in range(len(pools)):
        if eligible[0, p] and fits(jobs[j], pools[p], nodes, gpus):
            return start(out, j, p)
    return 0
