"""Fragmentation gradient descent: the oldest job that fits goes where fragmentation grows least.

The fragmentation of a node is the expected idle GPU capacity that a typical job cannot use; typical
demands are the most frequent ones, which together make up 95 % of the scenario's jobs (Weng et al.
2023, USENIX ATC). Among all eligible pools the job takes the node (a slice: the GPU) whose
fragmentation grows least, regardless of the scenario's placement rule. A difference below 1e-9 is a
tie, and ties go to the lower index: on Alibaba's trace another tie rule costs five points
(experiments/openb_placement). A gang that no single node can hold begins on the node with the
largest capacity (ties: the lower index) in the pools with room for it, and the placement rule
places the rest. Jobs that fit nowhere are skipped.
"""

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.model.feasibility import first_feasible, roomiest_node, start_on
from adlro.model.fragmentation import TIE, growth, least_fragmenting_gpu, least_fragmenting_node
from adlro.model.state import DEMAND, WHOLE


def refuses(context):
    """Refuse a cluster whose typical demands are unknown; return the reason, or None."""
    if len(context.demands) == 0:
        return "it needs typical demands, which this cluster does not know"
    return None


def params(context):
    """Typical demands of jobs: DEMAND records, their bytes viewed as numbers."""
    return context.demands.view(np.float64)


@njit_apart
def _least_fragmenting(job, may, pools, demands, nodes, gpus):
    """Return the node and the GPU where a job makes fragmentation grow least.

    The GPU is -1 unless the job is a slice; both are -1 if no single node can hold the job. may [P]
    marks the pools that the job may use.
    """
    best, best_n, best_g = np.inf, wide(-1), wide(-1)
    for p in range(len(pools)):
        if not may[p]:
            continue
        if job.share < WHOLE:
            g = wide(least_fragmenting_gpu(job, wide(-1), pools[p], demands, nodes, gpus))
            if g < 0:
                continue
            n, first = wide(gpus[g].node), g
        else:
            wanted = wide(job.gpus)
            g = wide(-1)
            n = wide(least_fragmenting_node(job, wanted, pools[p], demands, nodes, gpus))
            if n < 0:
                continue
            first = wide(nodes[n].first_gpu)
        grown = growth(job, n, first, wide(job.gpus), demands, nodes, gpus)
        if grown < best - TIE:
            best, best_n, best_g = grown, n, g
    return best_n, best_g


@njit
def decide(view, params, memory, out):
    """Start the oldest job that fits anywhere, on the node where fragmentation grows least."""
    queue, nodes, gpus = view.queue, view.nodes, view.gpus
    for q in range(len(queue)):
        if first_feasible(q, view) >= 0:
            j, may, demands = queue[q].job, view.eligible[q], params.view(DEMAND)
            n, g = _least_fragmenting(view.jobs[j], may, view.pools, demands, nodes, gpus)
            if n < 0:
                n = roomiest_node(q, view)
            return start_on(out, j, n, g, nodes, gpus)
    return 0
