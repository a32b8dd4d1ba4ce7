"""Allocation of the GPUs that a running job is reported to hold, after a check of the report.

`place` chooses GPUs for a start and trusts its caller. A live cluster reports where jobs already
run; such a report may be wrong, or describe a placement that `place` would not make (an uneven
gang, for example).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from adlro.errors import PlacementError
from adlro.model.free_index import update
from adlro.model.state import WHOLE, Records
from adlro.model.view import Rows


class Occupied(NamedTuple):
    """Placement of a running job: the fields `pool`, `gpu` and `nodes` of its RUNNING record."""

    pool: int
    gpu: int  # the first of the gang; the others follow GPU.next
    nodes: int  # number of nodes that it spans


def _refusal(job: Records, held: Mapping[int, int], pools: Records, nodes: Records) -> str | None:
    """Reason why a job cannot hold the GPUs `held` (node -> number of GPUs), or None if it can."""
    if job["share"] < WHOLE:
        return "it takes a slice of a GPU, and a slice is placed by `place`"
    if sum(held.values()) != job["gpus"]:
        return f"it asks for {job['gpus']} GPUs and would hold {sum(held.values())}"
    unknown = [n for n in held if not 0 <= n < len(nodes)]
    if unknown:
        return f"there is no node {unknown[0]}; they count from 0 to {len(nodes) - 1}"
    spanned = sorted({int(nodes["pool"][n]) for n in held})
    if len(spanned) > 1:
        return f"it would span pools {spanned[0]} and {spanned[1]}; a gang stands on one"
    if job["gpu_memory"] > pools["gpu_memory"][spanned[0]]:
        return (
            f"it needs {job['gpu_memory']} MB on each GPU and pool {spanned[0]} has "
            f"{pools['gpu_memory'][spanned[0]]}"
        )
    for n, count in held.items():
        reason = _refusal_of_node(job, n, count, nodes[n])
        if reason is not None:
            return reason
    return None


def _refusal_of_node(job: Records, n: int, count: int, node: Records) -> str | None:
    """Reason why a job cannot hold `count` GPUs of node n, or None if it can."""
    if count < 1:
        return f"it would hold {count} GPUs of node {n}; name only nodes that it stands on"
    if not node["up"]:
        return f"node {n} is down"
    for noun, wanted, free in (
        ("GPUs", count, node["free"]),
        ("cores", count * job["cores"], node["free_cores"]),
        ("MB of memory", count * job["memory"], node["free_memory"]),
    ):
        if wanted > free:
            return f"it would hold {wanted} {noun} of node {n}, which has {free} free"
    return None


def occupy(
    j: int, held: Mapping[int, int], jobs: Records, pools: Records, nodes: Records, gpus: Records
) -> Occupied:
    """Allocate free GPUs of given nodes, with their cores and memory, to the job in row j.

    Args:
        j: row of the job.
        held: node -> number of its GPUs that the job holds; all nodes belong to one pool.
        jobs: JOB [J].
        pools: POOL [P], changed.
        nodes: NODE [N], changed.
        gpus: GPU [G], changed.

    Returns:
        The placement of the job.

    Raises:
        PlacementError: the job cannot hold these GPUs; nothing is changed.
    """
    job = jobs[j]
    reason = _refusal(job, held, pools, nodes)
    if reason is not None:
        raise PlacementError(f"job {job['id']}: {reason}")
    chain = np.concatenate([_free_gpus(nodes[n], gpus)[:count] for n, count in held.items()])
    gpus["free"][chain], gpus["job"][chain] = 0, j
    gpus["next"][chain] = np.append(chain[1:], -1)
    for n, count in held.items():
        nodes["free"][n] -= count
        nodes["free_cores"][n] -= count * job["cores"]
        nodes["free_memory"][n] -= count * job["memory"]
    pool = int(nodes["pool"][next(iter(held))])
    pools["free"][pool] -= job["gpus"]
    for n in held:
        update(n, pools, nodes, gpus)
    return Occupied(pool, int(chain[0]), len(held))


def _free_gpus(node: Records, gpus: Records) -> Rows:
    """Indices of the free GPUs of a node, in rising order."""
    first = int(node["first_gpu"])
    of_node = np.arange(first, first + int(node["gpus"]))
    free: Rows = of_node[gpus["free"][of_node] == WHOLE]
    return free
