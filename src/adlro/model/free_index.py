"""What nodes have free, as bits, so that a search does not scan the cluster.

The nodes of a pool stand in blocks. NODE.rooms of a node says how many of its GPUs are free (bits
0 to 31) and how much is left on those that hold slices (bits 32 to 62); NODE.block, kept with the
pool's first nodes, is the union over a block. A pool of one block is scanned as it is.
"""

from __future__ import annotations

from adlro.compiled import njit, njit_apart, wide
from adlro.model.state import WHOLE, Records, Row

BLOCK = 16  # nodes
_MOST = 31  # free GPUs that have a bit of their own; more share the last
_STEP = 33  # thousandths left that share a bit

ANY_FREE = 2**32 - 2  # a node with at least one free GPU


@njit
def free_between(low: int, high: int) -> int:
    """The bits of nodes with so many free GPUs; none if low > high."""
    bits: int = max((wide(2) << min(high, _MOST)) - (wide(1) << min(low, _MOST)), wide(0))
    return bits


@njit
def left_between(low: int, high: int) -> int:
    """The bits of nodes with a GPU that holds slices and has so many thousandths left."""
    bits: int = max((wide(2) << (high // _STEP)) - (wide(1) << (low // _STEP)), wide(0)) << 32
    return bits


@njit
def in_blocks(pool: Row) -> bool:
    """True when the pool is large enough for its rooms to be kept."""
    large: bool = pool.nodes > BLOCK
    return large


@njit
def may_have(n: int, wanted: int, pool: Row, nodes: Records) -> bool:
    """False when no node of the block that starts at node n has any of the wanted bits."""
    if not in_blocks(pool):
        return True
    found: bool = nodes[pool.first_node + (n - pool.first_node) // BLOCK].block & wanted != 0
    return found


@njit_apart
def update(n: int, pools: Records, nodes: Records, gpus: Records) -> None:
    """Bring the rooms of a node, and of its block, up to date with what it has free."""
    node = nodes[n]
    pool = pools[node.pool]
    if not in_blocks(pool):
        return
    rooms = wide(1) << min(node.free, _MOST)
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        if 0 < gpus[g].free < WHOLE:
            rooms |= wide(1) << (32 + gpus[g].free // _STEP)
    if rooms == node.rooms:
        return
    node.rooms = rooms
    block = (n - pool.first_node) // BLOCK
    first = pool.first_node + block * BLOCK
    union = wide(0)
    for k in range(first, min(first + BLOCK, pool.first_node + pool.nodes)):
        union |= nodes[k].rooms
    nodes[pool.first_node + block].block = union


@njit_apart
def build(pools: Records, nodes: Records, gpus: Records) -> None:
    """Note the rooms of every node."""
    for n in range(len(nodes)):
        update(n, pools, nodes, gpus)
