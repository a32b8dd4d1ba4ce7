"""First come, first served: the oldest job starts on the first pool with room, or all jobs wait.

Jobs that quotas or ageing exclude from every pool are skipped.
"""

from adlro.compiled import njit
from adlro.model.feasibility import fits, start


@njit
def decide(view, params, memory, out):
    """Start the oldest job that any pool may take, or nothing; pools are tried in file order."""
    jobs, queue, eligible = view.jobs, view.queue, view.eligible
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    for q in range(len(queue)):
        j, may_start = queue[q].job, False
        for p in range(len(pools)):
            if eligible[q, p]:
                may_start = True
                if fits(jobs[j], pools[p], nodes, gpus):
                    return start(out, j, p)
        if may_start:
            return 0
    return 0
