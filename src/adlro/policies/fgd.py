"""Fragmentation gradient descent, oldest job first: each goes where it spoils the least.

The fragments of a node are what is left on its GPUs but of no use to a job drawn from those that
make up 95 % of the scenario's (Weng et al., USENIX ATC 2023; POLICIES 1.9), whatever the
scenario's own placement is. Over all eligible pools, the node (for a slice: the GPU) whose
fragments grow least; the exact figure, a difference below 1e-9 is a tie, ties go to the lower
index: on Alibaba's trace another rule for ties costs five points (experiments/openb_placement). A
gang that no node can hold begins on the node with the largest capacity (ties: the lower) of the
pools that fit it, and the world places the rest. Jobs that fit nowhere are passed by, and asked
again next time.
"""

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.model.feasibility import first_feasible, roomiest_node, start_on
from adlro.model.fragmentation import TIE, growth, least_fragmenting_gpu, least_fragmenting_node
from adlro.model.state import DEMAND, WHOLE


def refuses(context):
    """A cluster whose typical demands are not known."""
    if len(context.demands) == 0:
        return "it needs typical demands, which this cluster does not know"
    return None


def params(context):
    """The typical DEMAND records [K], their bytes read as numbers."""
    return context.demands.view(np.float64)


@njit_apart
def _least_spoilt(job, may, pools, demands, nodes, gpus):
    """Node and GPU (for a gang -1) whose fragments grow least, or (-1, -1); may [P]."""
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
    """The oldest job that fits anywhere, where fragments grow least."""
    queue, nodes, gpus = view.queue, view.nodes, view.gpus
    for q in range(len(queue)):
        if first_feasible(q, view) >= 0:
            j, may, demands = queue[q].job, view.eligible[q], params.view(DEMAND)
            n, g = _least_spoilt(view.jobs[j], may, view.pools, demands, nodes, gpus)
            if n < 0:
                n = roomiest_node(q, view)
            return start_on(out, j, n, g, nodes, gpus)
    return 0
