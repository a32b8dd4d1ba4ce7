"""Fragmentation gradient descent: place a job where it spoils the least for the jobs to come.

The fragments of a node are what is left on its GPUs but of no use to a job drawn from the
scenario's demands, on average (Weng et al., USENIX ATC 2023; exact score, ties to the lower index).
"""

from __future__ import annotations

from adlro.compiled import njit_apart, wide
from adlro.model.feasibility import hosts, takes, whole_capacity
from adlro.model.state import WHOLE, Records, Row

TIE = 1e-9  # fragments that grow by so little more have grown as much


@njit_apart
def fragments(n: int, demands: Records, nodes: Records, gpus: Records) -> float:
    """Thousandths left on a node that a demand drawn at random cannot use, on average."""
    node = nodes[n]
    end = node.first_gpu + node.gpus
    left = 0
    for g in range(node.first_gpu, end):
        left += gpus[g].free
    total = 0.0
    for k in range(len(demands)):
        kind = demands[k]
        able, scraps = 0, 0
        for g in range(node.first_gpu, end):
            if gpus[g].free >= kind.share:
                able += 1
            else:
                scraps += gpus[g].free
        can_run = (
            (kind.pools >> node.pool) & 1
            and able >= kind.gpus
            and node.free_cores >= kind.gpus * kind.cores
            and node.free_memory >= kind.gpus * kind.memory
        )
        total += kind.weight * (scraps if can_run else left)
    return total


@njit_apart
def growth(
    job: Row, n: int, first: int, count: int, demands: Records, nodes: Records, gpus: Records
) -> float:
    """How much the fragments of a node grow if `count` of its GPUs, from `first` on, are taken."""
    node = nodes[n]
    before = fragments(n, demands, nodes, gpus)
    node.free_cores -= count * job.cores
    node.free_memory -= count * job.memory
    left, g = count, first
    while left > 0:
        if gpus[g].free >= job.share:
            gpus[g].free -= job.share
            left -= 1
        g += 1
    after = fragments(n, demands, nodes, gpus)
    node.free_cores += count * job.cores
    node.free_memory += count * job.memory
    left = count  # give the same GPUs back, the last one first
    while left > 0:
        g -= 1
        if job.share < WHOLE or (gpus[g].free == 0 and gpus[g].job < 0 and gpus[g].slice < 0):
            gpus[g].free += job.share
            left -= 1
    return after - before


@njit_apart
def least_fragmenting_node(
    job: Row, wanted: int, pool: Row, demands: Records, nodes: Records, gpus: Records
) -> int:
    """Of the nodes that hold all that is wanted of a gang, the one that is spoilt least; or -1."""
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
    """Of the GPUs of node n (-1: of the pool) that take a slice, the one spoilt least; or -1."""
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
