"""Placement: allocation of GPUs to a job, and their release.

The simulator and a live cluster use the same functions.
"""

from __future__ import annotations

from adlro.compiled import njit, njit_apart, wide
from adlro.model.feasibility import hosts, takes, whole_capacity
from adlro.model.fragmentation import least_fragmenting_gpu, least_fragmenting_node
from adlro.model.free_index import BLOCK, free_between, in_blocks, left_between, may_have, update
from adlro.model.state import WHOLE, Records, Row


@njit
def _next_node(job: Row, pool: Row, nodes: Records, wanted: int) -> int:
    """Node of the pool that a gang should fill next; -1 if no node can hold any of its GPUs.

    Of the nodes that can hold `wanted` GPUs of the job, the one with the fewest free GPUs; if there
    is none, the node that can hold the most.
    """
    tight, largest, largest_room = -1, -1, 0
    n, end = pool.first_node, pool.first_node + pool.nodes
    while n < end:
        stop = min(n + BLOCK, end)
        if in_blocks(pool):  # skip blocks that hold no better node than the one found
            low = wanted if tight >= 0 else largest_room + 1
            high = nodes[tight].free - 1 if tight >= 0 else pool.node_gpus
            if not may_have(n, free_between(low, high), pool, nodes):
                n = stop
                continue
        for k in range(n, stop):
            room = whole_capacity(job, nodes[k])
            if room >= wanted and (tight < 0 or nodes[k].free < nodes[tight].free):
                tight = k
            if room > largest_room:
                largest, largest_room = k, room
        n = stop
    return tight if tight >= 0 else largest


@njit
def is_in_order(demands: Records) -> bool:
    """True when gangs are placed on nodes in order, by the demands of a world."""
    ordered: bool = len(demands) == 1 and demands[0].gpus == 0
    return ordered


@njit_apart
def _first_node(job: Row, pool: Row, nodes: Records, wanted: int) -> int:
    """First node of the pool that can hold `wanted` GPUs of the job, else the first with room."""
    first = -1
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        room = whole_capacity(job, nodes[n])
        if room >= wanted:
            return n
        if room > 0 and first < 0:
            first = n
    return first


@njit_apart
def _node_by_demands(
    job: Row, wanted: int, pool: Row, demands: Records, nodes: Records, gpus: Records
) -> int:
    """Node that a gang should fill next, in order or by FGD; -1 if by FGD no node holds it all."""
    if is_in_order(demands):
        first: int = wide(_first_node(job, pool, nodes, wanted))
        return first
    least: int = wide(least_fragmenting_node(job, wanted, pool, demands, nodes, gpus))
    return least


@njit_apart
def tightest_gpu(job: Row, node: int, pool: Row, nodes: Records, gpus: Records) -> int:
    """GPU with the smallest free share that can hold a slice; -1 if none can.

    Searches the given node, or the whole pool if `node` is -1.
    """
    best, least = -1, WHOLE + 1
    n = pool.first_node if node < 0 else node
    end = pool.first_node + pool.nodes if node < 0 else node + 1
    while n < end and least > job.share:
        stop = min(n + BLOCK - (n - pool.first_node) % BLOCK, end)
        bits = left_between(job.share, min(least, WHOLE) - 1)
        if least > WHOLE:
            bits |= free_between(wide(1), wide(pool.node_gpus))
        if may_have(n - (n - pool.first_node) % BLOCK, bits, pool, nodes):
            for k in range(n, stop):
                if hosts(job, nodes[k]) and (not in_blocks(pool) or nodes[k].rooms & bits != 0):
                    for g in range(nodes[k].first_gpu, nodes[k].first_gpu + nodes[k].gpus):
                        if gpus[g].free < least and takes(job, gpus[g]):
                            best, least = g, gpus[g].free
        n = stop
    return best


@njit
def _take(gpu: int, last: int, j: int, gpus: Records) -> int:
    """Allocate one GPU to job j and append it to the list of the gang's GPUs; returns the GPU.

    last: the GPU that was appended before; -1 = this is the first.
    """
    gpus[gpu].free = 0
    gpus[gpu].job = j
    gpus[gpu].next = -1
    if last >= 0:
        gpus[last].next = gpu
    return gpu


@njit_apart
def _place_slice(
    decision: Row, job: Row, demands: Records, pools: Records, nodes: Records, gpus: Records
) -> int:
    g, pool = decision.gpu, pools[decision.pool]
    if g < 0 and len(demands) > 0 and not is_in_order(demands):
        g = least_fragmenting_gpu(job, decision.node, pool, demands, nodes, gpus)
    elif g < 0:
        g = tightest_gpu(job, decision.node, pool, nodes, gpus)
    gpu = gpus[g]
    node = nodes[gpu.node]
    if gpu.free == WHOLE:
        node.free -= 1
        pool.free -= 1
        pool.sliced += 1
    gpu.free -= job.share
    gpu.free_memory -= job.gpu_memory
    gpu.next = -1
    node.free_cores -= job.cores
    node.free_memory -= job.memory
    update(gpu.node, pools, nodes, gpus)
    placed: int = wide(g)
    return placed


@njit
def place(
    decision: Row, jobs: Records, demands: Records, pools: Records, nodes: Records, gpus: Records
) -> tuple[int, int]:
    """Allocate GPUs, cores and memory to the job of a start decision.

    What the decision does not name is chosen by FGD (model/fragmentation.py) or in order if there
    are demands, else by best fit. The caller has checked that the job fits the pool, and that a
    named node or GPU belongs to the pool and has enough free.

    Returns:
        The first GPU of the gang (the others follow GPU.next), and the number of nodes it spans.
    """
    j = decision.job
    job, pool = jobs[j], pools[decision.pool]
    if job.share < WHOLE:
        return _place_slice(decision, job, demands, pools, nodes, gpus), 1
    named, n = decision.gpu, decision.node
    if named >= 0:
        n = gpus[named].node
    first, last, spanned, wanted = wide(-1), wide(-1), 0, wide(job.gpus)
    while wanted > 0:
        if n < 0 and len(demands) > 0:
            n = _node_by_demands(job, wanted, pool, demands, nodes, gpus)
        if n < 0:
            n = _next_node(job, pool, nodes, wanted)
        count = min(wanted, whole_capacity(job, nodes[n]))
        wanted -= count
        nodes[n].free -= count
        nodes[n].free_cores -= count * job.cores
        nodes[n].free_memory -= count * job.memory
        if named >= 0:
            first = last = _take(wide(named), wide(-1), j, gpus)
            named = -1
            count -= 1
        g = nodes[n].first_gpu
        while count > 0:
            if gpus[g].free == WHOLE:
                last = _take(wide(g), last, j, gpus)
                first = last if first < 0 else first
                count -= 1
            g += 1
        spanned += 1
        n = -1
    pool.free -= job.gpus
    if in_blocks(pool):
        _update_gang_nodes(first, pools, nodes, gpus)
    return first, spanned


@njit_apart
def _release_slice(g: int, job: Row, pools: Records, nodes: Records, gpus: Records) -> None:
    gpu = gpus[g]
    node = nodes[gpu.node]
    node.free_cores += job.cores
    node.free_memory += job.memory
    gpu.free += job.share
    gpu.free_memory += job.gpu_memory
    if gpu.free == WHOLE:
        pools[node.pool].sliced -= 1
        if node.up:
            node.free += 1
            pools[node.pool].free += 1
        else:
            gpu.free = 0
            pools[node.pool].draining -= 1
    update(gpu.node, pools, nodes, gpus)


@njit_apart
def _update_gang_nodes(g: int, pools: Records, nodes: Records, gpus: Records) -> None:
    """Update the free index of every node of the gang whose first GPU is g, each node once."""
    while g >= 0:
        next_gpu = gpus[g].next
        if next_gpu < 0 or gpus[next_gpu].node != gpus[g].node:
            update(gpus[g].node, pools, nodes, gpus)
        g = next_gpu


@njit_apart
def _withhold_drained(g: int, pool: Row, nodes: Records, gpus: Records) -> None:
    """Take those GPUs of the gang whose first GPU is g that are out of service from the free ones.

    `release` has just counted all of them as free.
    """
    while g >= 0:
        node = nodes[gpus[g].node]
        if not node.up:
            gpus[g].free = 0
            node.free -= 1
            pool.free -= 1
            pool.draining -= 1
        g = gpus[g].next


@njit
def release(run: Row, jobs: Records, pools: Records, nodes: Records, gpus: Records) -> None:
    """Release everything that a run holds.

    Its GPUs stay linked by GPU.next until they are allocated again. Those on a node out of service
    do not become free.
    """
    job, pool = jobs[run.job], pools[run.pool]
    if job.share < WHOLE:
        _release_slice(run.gpu, job, pools, nodes, gpus)
        return
    pool.free += job.gpus
    g = run.gpu
    while g >= 0:
        node = nodes[gpus[g].node]
        node.free += 1
        node.free_cores += job.cores
        node.free_memory += job.memory
        gpus[g].free = WHOLE
        gpus[g].job = -1
        g = gpus[g].next
    if pool.draining > 0:
        _withhold_drained(wide(run.gpu), pool, nodes, gpus)
    if in_blocks(pool):
        _update_gang_nodes(wide(run.gpu), pools, nodes, gpus)


@njit
def link_slice(slot: int, running: Records, gpus: Records) -> None:
    """Insert a starting slice at the head of the list of slices on its GPU."""
    gpu = gpus[running[slot].gpu]
    running[slot].before = -1
    running[slot].after = gpu.slice
    if gpu.slice >= 0:
        running[gpu.slice].before = slot
    gpu.slice = slot


@njit
def unlink_slice(slot: int, running: Records, gpus: Records) -> None:
    """Remove an ending slice from the list of slices on its GPU."""
    run = running[slot]
    if run.before >= 0:
        running[run.before].after = run.after
    else:
        gpus[run.gpu].slice = run.after
    if run.after >= 0:
        running[run.after].before = run.before


@njit
def relink_slice(slot: int, running: Records, gpus: Records) -> None:
    """Repair the list of slices on a GPU after a slice moved to index `slot` of `running`."""
    run = running[slot]
    if run.before >= 0:
        running[run.before].after = slot
    else:
        gpus[run.gpu].slice = slot
    if run.after >= 0:
        running[run.after].before = slot
