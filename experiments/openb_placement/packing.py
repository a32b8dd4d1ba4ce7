"""Packing: pods arrive one by one and stay; each is placed at once or rejected.

The setting of Weng et al. (USENIX ATC 2023): no time and no queue, only the share of the GPUs that
can be allocated before the remaining fragments are useless. A pod goes to the feasible node with
the lowest score; the score of a spec on a node is cached until something is placed there.

Shapes: N nodes, in tie-breaking order, and G GPUs; S specs of A arriving pods.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.compiled import njit, njit_allocating, njit_apart, wide
from adlro.model.fragmentation import fragments
from adlro.model.state import WHOLE, Floats, Records, Row

# Scores of a node; the lowest wins.
ANY, BEST_FIT, FGD, FGD_STEPS = range(4)

_TIE = 1e-6  # smaller differences of scores are ties
_STEPS, _SCALE = 100.0, 1000.0  # of the quantised score: steps; thousandths of a GPU


class Pods(NamedTuple):
    """Arriving pods and the cluster they arrive at."""

    specs: Records  # [S] POD
    coming: NDArray[np.int64]  # [A] the spec of each pod, in order of arrival
    demands: Records  # [K] DEMAND: typical demands, for FGD
    nodes: Records  # [N] NODE, empty
    gpus: Records  # [G] GPU, empty


class Packed(NamedTuple):
    """Placement of the pods."""

    node: NDArray[np.int64]  # [A], -1 = rejected
    gpu: NDArray[np.int64]  # [A] the first of its GPUs; -1 = rejected, or needs none
    share: float  # share of all GPUs that is allocated at the end


class _Left(NamedTuple):
    """Free resources of a cluster, and the parameters of the scores."""

    demands: Records  # [K] DEMAND
    weights: Floats  # [2] weights of cores and GPU shares under BEST_FIT
    nodes: Records  # [N + 1] NODE, the last is scratch
    gpus: Records  # [G + most GPUs of a node] GPU


@njit
def _is_feasible(pod: Row, node: Row, gpus: Records) -> bool:
    """Whether a pod is feasible on a node."""
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
    """Allocate a pod's resources on node n, with its GPUs from `first` on."""
    nodes[n].free_cores -= pod.cores
    nodes[n].free_memory -= pod.memory
    wanted, g = pod.gpus, first
    while wanted > 0:
        if gpus[g].free >= pod.share:
            gpus[g].free -= pod.share
            wanted -= 1
        g += 1


@njit_apart
def _fragmentation_after(pod: Row, n: int, first: int, left: _Left) -> float:
    """Fragmentation of node n after a pod takes GPUs from `first` on, computed on a copy.

    The copy is the last node, which is scratch.
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
def _least_fragmentation(pod: Row, n: int, left: _Left) -> tuple[float, int]:
    """Return the least fragmentation that a pod can leave on node n, and its first GPU there.

    Of GPUs with the same free share only the first is tried.
    """
    node, gpus = left.nodes[n], left.gpus
    own = wide(node.first_gpu)
    if pod.gpus == 0:
        return _fragmentation_after(pod, n, own, left), wide(-1)
    best, best_g = np.inf, wide(-1)
    for g in range(own, own + node.gpus):
        skipped = gpus[g].free < pod.share
        for k in range(own, g):
            skipped = skipped or gpus[k].free == gpus[g].free
        if not skipped:
            found = _fragmentation_after(pod, n, wide(g), left)
            if found < best - _TIE:
                best, best_g = found, wide(g)
            if pod.share == WHOLE:
                break
    return best, best_g


@njit
def _best_fit(pod: Row, node: Row, weights: Floats, gpus: Records) -> tuple[float, int]:
    """Return a node's free resources, weighted by weights [2], and its tightest GPU for the pod.

    A pod takes the same from every node, so ranking before or after placement is equivalent.
    """
    best, least, left = wide(-1), WHOLE + 1, 0
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        left += gpus[g].free
        if pod.gpus > 0 and pod.share <= gpus[g].free < least:
            best, least = wide(g), gpus[g].free
    return node.free_cores * weights[0] + left * weights[1], best


@njit_apart
def _score(rule: int, pod: Row, n: int, before: float, left: _Left) -> tuple[float, int]:
    """Return the score of node n for a pod, infinite if infeasible, and the chosen GPU.

    `before` is the current fragmentation of the node.
    """
    node = left.nodes[n]
    if not _is_feasible(pod, node, left.gpus):
        return np.inf, wide(-1)
    if rule == ANY:
        return 0.0, wide(-1)
    if rule == BEST_FIT:
        return _best_fit(pod, node, left.weights, left.gpus)
    after, g = _least_fragmentation(pod, n, left)
    growth = after - before
    if rule == FGD_STEPS:
        growth = -math.floor(_STEPS / (1.0 + math.exp(growth / _SCALE)))
    return growth, g


@njit
def _pick(scores: Floats, luck: float) -> int:
    """Node with the lowest score [N]; among ties the first, or a random one if luck >= 0."""
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
    """A random feasible GPU of the node by luck in [0, 1) (whole GPUs: the first); or -1."""
    feasible = 0
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        feasible += gpus[g].free >= pod.share
    skip = int(luck * feasible) if pod.share < WHOLE else 0
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
    """Place pod after pod; modifies nodes [N + 1] and gpus, the last node is scratch.

    Shapes: luck [A, 2]; where [A, 2] node and first GPU of each pod, both -1 if it is rejected.
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
    """Place all pods in their order of arrival.

    Args:
        pods: the arriving pods and the cluster; not modified.
        rule: ANY, BEST_FIT, FGD or FGD_STEPS (the score rounded down to 100 steps, as published).
        random_ties: break ties at random; otherwise the first node is taken.
        rng: for ties, and for the GPU under ANY.
    """
    largest = int(pods.nodes["gpus"].max())
    nodes, gpus = np.append(pods.nodes, pods.nodes[:1]), np.append(pods.gpus, pods.gpus[:largest])
    nodes["first_gpu"][-1] = len(pods.gpus)
    weights = np.array([largest * WHOLE, pods.nodes["cores"].max()], np.float64)
    luck, where = rng.random((len(pods.coming), 2)), np.full((len(pods.coming), 2), -1)
    place_all(rule, random_ties, pods._replace(nodes=nodes, gpus=gpus), weights, luck, where)
    placed = pods.specs[pods.coming[where[:, 0] >= 0]]
    allocated = int((placed["gpus"] * placed["share"]).sum())
    return Packed(where[:, 0], where[:, 1], allocated / (WHOLE * len(pods.gpus)))
