"""Room for jobs: what fits where, and which GPUs a gang gets. The same functions in every world."""

from __future__ import annotations

from adlro.compiled import njit
from adlro.model.state import START, WHOLE, Floats, Mask, Records, Row


@njit
def capacity(job: Row, node: Row) -> int:
    """How many GPUs of the gang the node can take now: by its free GPUs, cores, host memory."""
    room = min(node.free, job.gpus)
    if room * job.cores > node.free_cores:  # divide only where it binds: division is slow
        room = node.free_cores // job.cores
    if room * job.memory > node.free_memory:
        room = node.free_memory // job.memory
    return room


@njit
def fits(job: Row, pool: Row, nodes: Records) -> bool:
    """True when the pool's nodes together can take the whole gang now."""
    wanted = job.gpus
    if pool.free < wanted:
        return False
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        wanted -= capacity(job, nodes[n])
        if wanted <= 0:
            return True
    return False


@njit
def any_feasible(
    jobs: Records, queue: Records, eligible: Mask, pools: Records, nodes: Records
) -> bool:
    """True when at least one waiting job could start somewhere now."""
    for q in range(len(queue)):
        for p in range(len(pools)):
            if pools[p].free > 0 and eligible[q, p] and fits(jobs[queue[q].job], pools[p], nodes):
                return True
    return False


@njit
def expected_end(run: Row, now: float) -> float:
    """When a running job ends by its estimate; an overdue one: in a tenth of its age, or 1 s."""
    if run.expected > now:
        return run.expected
    return now + max(0.1 * (now - run.start), 1.0)


@njit
def smallest_feasible(
    jobs: Records,
    est: Floats,
    queue: Records,
    eligible: Mask,
    pools: Records,
    nodes: Records,
) -> tuple[int, int]:
    """Queue place and pool of the feasible pair with the smallest estimate; (-1, -1) if none."""
    best, best_q, best_p = float("inf"), -1, -1
    for q in range(len(queue)):
        j = queue[q].job
        for p in range(len(pools)):
            if pools[p].free > 0 and eligible[q, p]:
                seconds = est[j, pools[p].model] * queue[q].left
                if seconds < best and fits(jobs[j], pools[p], nodes):
                    best, best_q, best_p = seconds, q, p
    return best_q, best_p


@njit
def _next_node(job: Row, pool: Row, nodes: Records, wanted: int) -> int:
    """The node to fill next: the tightest that holds all that is wanted, else the roomiest."""
    tight, roomy, most = -1, -1, 0
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        room = capacity(job, nodes[n])
        if room >= wanted and (tight < 0 or nodes[n].free < nodes[tight].free):
            tight = n
        if room > most:
            roomy, most = n, room
    return tight if tight >= 0 else roomy


@njit
def _take(gpu: int, last: int, j: int, gpus: Records) -> int:
    """Hand one GPU to job j and hang it behind the gang's last GPU (-1: it is the first)."""
    gpus[gpu].free = 0
    gpus[gpu].job = j
    gpus[gpu].next = -1
    if last >= 0:
        gpus[last].next = gpu
    return gpu


@njit
def place(
    decision: Row, jobs: Records, pools: Records, nodes: Records, gpus: Records
) -> tuple[int, int]:
    """Hand the GPUs, cores and memory of a start to its job, best fit.

    The caller has checked that the pool fits and that a node or GPU named belongs to it and has
    room. Returns the gang's first GPU (the others follow GPU.next) and how many nodes it spans.
    """
    j = decision.job
    job, pool = jobs[j], pools[decision.pool]
    named, n = decision.gpu, decision.node
    if named >= 0:
        n = gpus[named].node
    first, last, spanned, wanted = -1, -1, 0, job.gpus
    while wanted > 0:
        if n < 0:
            n = _next_node(job, pool, nodes, wanted)
        count = min(wanted, capacity(job, nodes[n]))
        wanted -= count
        nodes[n].free -= count
        nodes[n].free_cores -= count * job.cores
        nodes[n].free_memory -= count * job.memory
        if named >= 0:
            first = last = _take(named, -1, j, gpus)
            named = -1
            count -= 1
        g = nodes[n].first_gpu
        while count > 0:
            if gpus[g].free == WHOLE:
                last = _take(g, last, j, gpus)
                first = last if first < 0 else first
                count -= 1
            g += 1
        spanned += 1
        n = -1
    pool.free -= job.gpus
    return first, spanned


@njit
def release(run: Row, jobs: Records, pools: Records, nodes: Records, gpus: Records) -> None:
    """Give back all that a running job holds; the chain of its GPUs stays readable until reuse."""
    job = jobs[run.job]
    pools[run.pool].free += job.gpus
    g = run.gpu
    while g >= 0:
        node = nodes[gpus[g].node]
        node.free += 1
        node.free_cores += job.cores
        node.free_memory += job.memory
        gpus[g].free = WHOLE
        gpus[g].job = -1
        g = gpus[g].next


@njit
def start(out: Records, j: int, p: int) -> int:
    """Write one decision, start job j on pool p wherever the world places it; returns 1."""
    out[0].kind = START
    out[0].job = j
    out[0].pool = p
    out[0].node = -1
    out[0].gpu = -1
    return 1


@njit
def fastest_feasible(
    job: Row, seconds: Floats, allowed: Mask, pools: Records, nodes: Records
) -> int:
    """The pool with the smallest estimate that fits now, or -1; seconds [M], allowed [P]."""
    best, best_p = float("inf"), -1
    for p in range(len(pools)):
        if allowed[p] and seconds[pools[p].model] < best and fits(job, pools[p], nodes):
            best, best_p = seconds[pools[p].model], p
    return best_p


@njit
def fastest_eligible(seconds: Floats, allowed: Mask, pools: Records) -> int:
    """The eligible pool with the smallest estimate, free or not; seconds [M], allowed [P]."""
    best, best_p = float("inf"), -1
    for p in range(len(pools)):
        if allowed[p] and seconds[pools[p].model] < best:
            best, best_p = seconds[pools[p].model], p
    return best_p
