"""An index of free capacity by bits, so that a search need not scan every node.

The nodes of a pool are divided into blocks. NODE.rooms encodes how many GPUs of a node are free
(bits 0 to 31) and which shares are free on its GPUs that hold slices (bits 32 to 62). NODE.block,
stored in the first nodes of the pool, is the bitwise union of NODE.rooms over a block: that of
block b is in the pool's node b. A pool of one block is scanned directly, without the index.
"""

from __future__ import annotations

from adlro.compiled import njit, njit_apart, wide
from adlro.model.state import WHOLE, Records, Row

BLOCK = 16  # nodes
_MAX_FREE = 31  # numbers of free GPUs up to this have a bit each; larger ones share the last bit
_STEP = 33  # thousandths of free share per bit

ANY_FREE = 2**32 - 2  # bits of a node with at least one free GPU


@njit
def free_between(low: int, high: int) -> int:
    """Bits of NODE.rooms that stand for `low` to `high` free GPUs; 0 if low > high."""
    bits: int = max((wide(2) << min(high, _MAX_FREE)) - (wide(1) << min(low, _MAX_FREE)), wide(0))
    return bits


@njit
def left_between(low: int, high: int) -> int:
    """Bits of NODE.rooms for a GPU that holds slices and has `low` to `high` thousandths free."""
    bits: int = max((wide(2) << (high // _STEP)) - (wide(1) << (low // _STEP)), wide(0)) << 32
    return bits


@njit
def in_blocks(pool: Row) -> bool:
    """True when the pool has more than one block, so that the index is maintained for it."""
    large: bool = pool.nodes > BLOCK
    return large


@njit
def may_have(n: int, wanted: int, pool: Row, nodes: Records) -> bool:
    """False when no node of the block that starts at node n has any of the wanted bits.

    Always True for a pool without an index.
    """
    if not in_blocks(pool):
        return True
    found: bool = nodes[pool.first_node + (n - pool.first_node) // BLOCK].block & wanted != 0
    return found


@njit_apart
def update(n: int, pools: Records, nodes: Records, gpus: Records) -> None:
    """Update the bits of node n and of its block after the free capacity of the node changed."""
    node = nodes[n]
    pool = pools[node.pool]
    if not in_blocks(pool):
        return
    rooms = wide(1) << min(node.free, _MAX_FREE)
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
    """Build the index of every pool."""
    for n in range(len(nodes)):
        update(n, pools, nodes, gpus)
