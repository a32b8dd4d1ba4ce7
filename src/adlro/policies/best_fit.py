"""Best fit: the oldest job that fits goes to the fullest node of the cluster that can hold it.

Of the nodes of all eligible pools that can hold the job, it takes the one with the smallest 0.5 *
free cores / C + 0.5 * free GPUs / N. C is the largest number of cores and N the largest number of
GPUs on one node of the cluster, up or down; GPUs that are partly free count by their share. A slice
takes the GPU of that node with the least free share that can hold it. This is the BestFit baseline
of Weng et al. 2023 (USENIX ATC), where C = 128 and N = 8. Ties go to the lower node index, then the
lower GPU index. A gang that no single node can hold begins on the node with the largest capacity
(ties: the lower index) in the pools with room for it, and the placement rule places the rest. Jobs
that fit nowhere are skipped.
"""

import numpy as np

from adlro.compiled import njit, wide
from adlro.model.feasibility import capacity, first_feasible, roomiest_node, start_on
from adlro.model.placement import tightest_gpu
from adlro.model.state import WHOLE

_CORES, _GPUS = range(2)  # params


def params(context):
    """Largest number of cores, and largest number of GPUs, on one node of the cluster, [2]."""
    nodes = context.nodes
    return np.array([nodes["cores"].max(), nodes["gpus"].max()], dtype=np.float64)


@njit
def _fullest_node(job, may, pools, nodes, gpus, params):
    """Return the fullest node that can hold the job, or -1; may [P]: the pools it may use.

    The job takes the same on every node, so the nodes are compared as they are before it is placed.
    The score is multiplied by 2000 C N, which makes it a whole number, so ties are exact.
    """
    most_cores, most_gpus = params[_CORES], params[_GPUS]
    least, best = np.inf, wide(-1)
    for p in range(len(pools)):
        if may[p]:
            for n in range(pools[p].first_node, pools[p].first_node + pools[p].nodes):
                if capacity(job, nodes[n], gpus) >= job.gpus:
                    left = 0
                    for g in range(nodes[n].first_gpu, nodes[n].first_gpu + nodes[n].gpus):
                        left += gpus[g].free
                    room = nodes[n].free_cores * most_gpus * WHOLE + left * most_cores
                    if room < least:
                        least, best = room, wide(n)
    return best


@njit
def decide(view, params, memory, out):
    """Start the oldest job that fits anywhere, on the fullest node that can hold it."""
    jobs, queue, pools, nodes, gpus = view.jobs, view.queue, view.pools, view.nodes, view.gpus
    for q in range(len(queue)):
        if first_feasible(q, view) >= 0:
            j = queue[q].job
            n = _fullest_node(jobs[j], view.eligible[q], pools, nodes, gpus, params)
            g = wide(-1)
            if n < 0:
                n = roomiest_node(q, view)
            if jobs[j].share < WHOLE:
                g = tightest_gpu(jobs[j], n, pools[nodes[n].pool], nodes, gpus)
            return start_on(out, j, n, g, nodes, gpus)
    return 0
