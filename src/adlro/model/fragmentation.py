"""Fragmentation gradient descent (FGD): place a job where fragmentation grows least.

The fragmentation of a node is the expected free GPU share that a job drawn from the scenario's
demands cannot use (Weng et al., USENIX ATC 2023). The expectation is computed exactly; ties go to
the lower index. In all functions, demands are DEMAND [K].
"""

from __future__ import annotations

from adlro.compiled import njit_apart, wide
from adlro.model.feasibility import hosts, takes, whole_capacity
from adlro.model.state import WHOLE, Records, Row

TIE = 1e-9  # growths that differ by less count as equal


@njit_apart
def fragments(n: int, demands: Records, nodes: Records, gpus: Records) -> float:
    """Fragmentation of a node: expected free thousandths that a random demand cannot use."""
    node = nodes[n]
    end = node.first_gpu + node.gpus
    free = 0
    for g in range(node.first_gpu, end):
        free += gpus[g].free
    total = 0.0
    for k in range(len(demands)):
        demand = demands[k]
        usable_gpus, unusable = 0, 0
        for g in range(node.first_gpu, end):
            if gpus[g].free >= demand.share:
                usable_gpus += 1
            else:
                unusable += gpus[g].free
        can_run = (
            (demand.pools >> node.pool) & 1
            and usable_gpus >= demand.gpus
            and node.free_cores >= demand.gpus * demand.cores
            and node.free_memory >= demand.gpus * demand.memory
        )
        total += demand.weight * (unusable if can_run else free)
    return total


@njit_apart
def growth(
    job: Row, n: int, first: int, count: int, demands: Records, nodes: Records, gpus: Records
) -> float:
    """Growth of a node's fragmentation if a job takes `count` of its GPUs, from index `first` on.

    The records are changed during the computation and restored.
    """
    node = nodes[n]
    before = fragments(n, demands, nodes, gpus)
    node.free_cores -= count * job.cores
    node.free_memory -= count * job.memory
    remaining, g = count, first
    while remaining > 0:
        if gpus[g].free >= job.share:
            gpus[g].free -= job.share
            remaining -= 1
        g += 1
    after = fragments(n, demands, nodes, gpus)
    node.free_cores += count * job.cores
    node.free_memory += count * job.memory
    remaining = count  # release the same GPUs, the last one first
    while remaining > 0:
        g -= 1
        if job.share < WHOLE or (gpus[g].free == 0 and gpus[g].job < 0 and gpus[g].slice < 0):
            gpus[g].free += job.share
            remaining -= 1
    return after - before


@njit_apart
def least_fragmenting_node(
    job: Row, wanted: int, pool: Row, demands: Records, nodes: Records, gpus: Records
) -> int:
    """Node whose fragmentation grows least if it gives `wanted` GPUs to a gang; -1 if none can."""
    best, best_n = float("inf"), -1
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        if whole_capacity(job, nodes[n]) >= wanted:
            grown = growth(job, n, wide(nodes[n].first_gpu), wanted, demands, nodes, gpus)
            if grown < best - TIE:
                best, best_n = grown, n
    return best_n


@njit_apart
def least_fragmenting_gpu(
    job: Row, n: int, pool: Row, demands: Records, nodes: Records, gpus: Records
) -> int:
    """GPU where a slice makes the fragmentation of the node grow least; -1 if none can hold it.

    Searches node n, or the whole pool if n is -1.
    """
    best, best_g = float("inf"), -1
    first = pool.first_node if n < 0 else n
    end = pool.first_node + pool.nodes if n < 0 else n + 1
    for k in range(first, end):
        if hosts(job, nodes[k]):
            for g in range(nodes[k].first_gpu, nodes[k].first_gpu + nodes[k].gpus):
                if takes(job, gpus[g]):
                    grown = growth(job, k, wide(g), wide(1), demands, nodes, gpus)
                    if grown < best - TIE:
                        best, best_g = grown, g
    return best_g
