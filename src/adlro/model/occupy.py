"""GPUs that a job already holds, as a world reports them: written down after a check, or refused.

`place` chooses where a start goes and trusts its caller. A live cluster tells what runs where, and
may be wrong or know gangs that no policy of ours would have placed: uneven ones, say.
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
    """Where a job stands: what RUNNING says of it."""

    pool: int
    gpu: int  # the first of the gang; the others follow GPU.next
    nodes: int  # how many it spans


def _refusal(job: Records, held: Mapping[int, int], pools: Records, nodes: Records) -> str | None:
    """Why a whole-GPU job cannot hold so many GPUs of each node; None = it can."""
    if job["share"] < WHOLE:
        return "it takes a slice of a GPU, and a slice is placed by `place`"
    if sum(held.values()) != job["gpus"]:
        return f"it asks for {job['gpus']} GPUs and would hold {sum(held.values())}"
    unknown = [n for n in held if not 0 <= n < len(nodes)]
    if unknown:
        return f"there is no node {unknown[0]}; they count from 0 to {len(nodes) - 1}"
    homes = sorted({int(nodes["pool"][n]) for n in held})
    if len(homes) > 1:
        return f"it would span pools {homes[0]} and {homes[1]}; a gang stands on one"
    if job["gpu_memory"] > pools["gpu_memory"][homes[0]]:
        return (
            f"it needs {job['gpu_memory']} MB on each GPU and pool {homes[0]} has "
            f"{pools['gpu_memory'][homes[0]]}"
        )
    for n, count in held.items():
        reason = _refusal_of_node(job, n, count, nodes[n])
        if reason is not None:
            return reason
    return None


def _refusal_of_node(job: Records, n: int, count: int, node: Records) -> str | None:
    """Why a job cannot hold `count` GPUs of node n; None = it can."""
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
    """Hand the job in row j so many free GPUs of each node, with their cores and memory.

    Args:
        j: the job's row.
        held: node -> GPUs of it; all nodes of one pool.
        jobs: JOB, as all that follow the world's own records, of which the last three are changed.
        pools: POOL.
        nodes: NODE.
        gpus: GPU.

    Returns:
        Where the job stands.

    Raises:
        PlacementError: it cannot stand there; then nothing is changed.
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
    """The GPUs of a node with nothing on them, the lowest first."""
    first = int(node["first_gpu"])
    own = np.arange(first, first + int(node["gpus"]))
    free: Rows = own[gpus["free"][own] == WHOLE]
    return free
