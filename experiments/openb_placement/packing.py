"""Packing: pods come one by one and stay; each is placed at once or refused for good.

The setting of Weng et al. (USENIX ATC 2023): no time and no queue, only how much of the GPUs is
handed out before what is left is of no use. Of all nodes that can hold a pod the one with the
smallest score takes it; what a spec scores on a node is kept until something is placed there.

Shapes: N nodes, in the order by which ties go, and G GPUs; S specs of pods, of which A pods come.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.compiled import njit, njit_allocating, njit_apart, wide
from adlro.model.fragmentation import fragments
from adlro.model.state import WHOLE, Floats, Records, Row

# What a node scores; the smallest wins.
ANY, BEST_FIT, FGD, FGD_STEPS = range(4)

_TIE = 1e-6  # scores that differ by less are equal
_STEPS, _SCALE = 100.0, 1000.0  # of the quantised score: steps, and thousandths of a GPU


class Pods(NamedTuple):
    """Who comes to which cluster."""

    specs: Records  # [S] POD
    coming: NDArray[np.int64]  # [A] the spec of each pod, in order
    demands: Records  # [K] DEMAND: what FGD looks ahead to
    nodes: Records  # [N] NODE, empty
    gpus: Records  # [G] GPU, empty


class Packed(NamedTuple):
    """Where the pods went."""

    node: NDArray[np.int64]  # [A], -1 = refused
    gpu: NDArray[np.int64]  # [A] the first of its GPUs, -1 = refused, or needs none
    share: float  # of all GPUs that is handed out at the end


class _Left(NamedTuple):
    """What is left of a cluster, and by what it is judged."""

    demands: Records  # [K] DEMAND
    weights: Floats  # [2] of cores and of shares under BEST_FIT
    nodes: Records  # [N + 1] NODE, the last is scratch
    gpus: Records  # [G + most GPUs of a node] GPU


@njit
def _able(pod: Row, node: Row, gpus: Records) -> bool:
    """True when a node has all that a pod needs."""
    if not (pod.pools >> node.pool) & 1:
        return False
    if node.free_cores < pod.cores or node.free_memory < pod.memory:
        return False
    found = 0
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        found += gpus[g].free >= pod.share
    return found >= pod.gpus


@njit
def _take(pod: Row, n: int, first: int, nodes: Records, gpus: Records) -> None:
    """Hand out what a pod needs of node n: its GPUs from `first` on."""
    nodes[n].free_cores -= pod.cores
    nodes[n].free_memory -= pod.memory
    wanted, g = pod.gpus, first
    while wanted > 0:
        if gpus[g].free >= pod.share:
            gpus[g].free -= pod.share
            wanted -= 1
        g += 1


@njit_apart
def _fragments_with(pod: Row, n: int, first: int, left: _Left) -> float:
    """The fragments of node n once a pod has taken its GPUs from `first` on; tried on a copy.

    The copy is the last of the nodes, which belongs to nobody.
    """
    nodes, gpus = left.nodes, left.gpus
    spare = len(nodes) - 1
    own, copy = nodes[n].first_gpu, nodes[spare].first_gpu
    nodes[spare].pool, nodes[spare].gpus = nodes[n].pool, nodes[n].gpus
    nodes[spare].free_cores = nodes[n].free_cores
    nodes[spare].free_memory = nodes[n].free_memory
    for k in range(nodes[n].gpus):
        gpus[copy + k].free = gpus[own + k].free
    _take(pod, spare, copy + first - own, nodes, gpus)
    return fragments(spare, left.demands, nodes, gpus)


@njit_apart
def _least_fragments(pod: Row, n: int, left: _Left) -> tuple[float, int]:
    """The fragments that a pod leaves on node n at best, and the first of its GPUs there.

    GPUs with equally much left are alike: only the first of them is tried.
    """
    node, gpus = left.nodes[n], left.gpus
    own = wide(node.first_gpu)
    if pod.gpus == 0:
        return _fragments_with(pod, n, own, left), wide(-1)
    best, best_g = np.inf, wide(-1)
    for g in range(own, own + node.gpus):
        alike = gpus[g].free < pod.share
        for k in range(own, g):
            alike = alike or gpus[k].free == gpus[g].free
        if not alike:
            found = _fragments_with(pod, n, wide(g), left)
            if found < best - _TIE:
                best, best_g = found, wide(g)
            if pod.share == WHOLE:
                break
    return best, best_g


@njit
def _least_room(pod: Row, node: Row, weights: Floats, gpus: Records) -> tuple[float, int]:
    """What is free on a node, weighed by weights [2] of cores and shares, and its tightest GPU.

    A pod takes the same from every node: what is left before it ranks them as what is left after.
    """
    best, least, left = wide(-1), WHOLE + 1, 0
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        left += gpus[g].free
        if pod.gpus > 0 and pod.share <= gpus[g].free < least:
            best, least = wide(g), gpus[g].free
    return node.free_cores * weights[0] + left * weights[1], best


@njit_apart
def _score(rule: int, pod: Row, n: int, before: float, left: _Left) -> tuple[float, int]:
    """What node n scores for a pod, infinite if it has no room, and the GPU that goes with it.

    `before` is the fragments that it has now.
    """
    node = left.nodes[n]
    if not _able(pod, node, left.gpus):
        return np.inf, wide(-1)
    if rule == ANY:
        return 0.0, wide(-1)
    if rule == BEST_FIT:
        return _least_room(pod, node, left.weights, left.gpus)
    after, g = _least_fragments(pod, n, left)
    growth = after - before
    if rule == FGD_STEPS:
        growth = -math.floor(_STEPS / (1.0 + math.exp(growth / _SCALE)))
    return growth, g


@njit
def _pick(scores: Floats, luck: float) -> int:
    """The node with the smallest score [N]: of equals the first, or any if luck is not negative."""
    least, ties = np.inf, 0
    for n in range(len(scores)):
        least = min(least, scores[n])
    if least == np.inf:
        return -1
    for n in range(len(scores)):
        ties += scores[n] < least + _TIE
    skip = int(luck * ties) if luck >= 0.0 else 0
    for n in range(len(scores)):
        if scores[n] < least + _TIE:
            if skip == 0:
                return n
            skip -= 1
    return -1


@njit
def _any_gpu(pod: Row, node: Row, luck: float, gpus: Records) -> int:
    """A GPU of the node that can take the pod (whole GPUs: the first), by luck in [0, 1); or -1."""
    able = 0
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        able += gpus[g].free >= pod.share
    skip = int(luck * able) if pod.share < WHOLE else 0
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        if pod.gpus > 0 and gpus[g].free >= pod.share:
            if skip == 0:
                return wide(g)
            skip -= 1
    return wide(-1)


@njit_allocating
def place_all(
    rule: int,
    by_luck: bool,
    pods: Pods,
    weights: Floats,
    luck: Floats,
    where: NDArray[np.int64],
) -> None:
    """Place pod after pod; nodes [N + 1] and gpus are used up, the last node is scratch.

    Shapes: luck [A, 2], where [A, 2] node and first GPU of each pod, both -1 if it is refused.
    """
    specs, coming, demands, nodes, gpus = pods
    left, count = _Left(demands, weights, nodes, gpus), len(nodes) - 1
    scores, chosen = np.empty((len(specs), count)), np.empty((len(specs), count), np.int64)
    scored = np.full((len(specs), count), -1)
    changes = np.zeros(count, np.int64)
    before = np.empty(count)
    for n in range(count):
        before[n] = fragments(n, demands, nodes, gpus)
    for i in range(len(coming)):
        s = coming[i]
        for n in range(count):
            if scored[s, n] != changes[n]:
                scores[s, n], chosen[s, n] = _score(rule, specs[s], n, before[n], left)
                scored[s, n] = changes[n]
        n = _pick(scores[s], luck[i, 0] if by_luck else -1.0)
        if n >= 0:
            g = chosen[s, n] if rule != ANY else _any_gpu(specs[s], nodes[n], luck[i, 1], gpus)
            where[i, 0], where[i, 1] = n, g
            _take(specs[s], n, g, nodes, gpus)
            changes[n] += 1
            before[n] = fragments(n, demands, nodes, gpus)


def pack(pods: Pods, rule: int, *, random_ties: bool, rng: np.random.Generator) -> Packed:
    """Place every pod of a list, in its order.

    Args:
        pods: who comes, and to what; it stays as it is.
        rule: ANY, BEST_FIT, FGD or FGD_STEPS (the score rounded down to 100 steps, as published).
        random_ties: equal nodes are drawn from; otherwise the first of them is taken.
        rng: for ties, and for the GPU under ANY.
    """
    largest = int(pods.nodes["gpus"].max())
    nodes, gpus = np.append(pods.nodes, pods.nodes[:1]), np.append(pods.gpus, pods.gpus[:largest])
    nodes["first_gpu"][-1] = len(pods.gpus)
    weights = np.array([largest * WHOLE, pods.nodes["cores"].max()], np.float64)
    luck, where = rng.random((len(pods.coming), 2)), np.full((len(pods.coming), 2), -1)
    place_all(rule, random_ties, pods._replace(nodes=nodes, gpus=gpus), weights, luck, where)
    placed = pods.specs[pods.coming[where[:, 0] >= 0]]
    handed_out = int((placed["gpus"] * placed["share"]).sum())
    return Packed(where[:, 0], where[:, 1], handed_out / (WHOLE * len(pods.gpus)))
