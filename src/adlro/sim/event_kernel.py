"""What happens to the cluster, compiled: nodes fail and are repaired, speeds change."""

from __future__ import annotations

from adlro.compiled import njit_apart, wide
from adlro.model.rooms import note
from adlro.model.state import FAILURE, REPAIR, WHOLE, Floats, Mask, Records, Row
from adlro.sim.close_kernel import cut_short, find_run, pace_slices, read
from adlro.sim.run_kernel import change_pace


@njit_apart
def _switch(n: int, up: int, w: Row, pools: Records, nodes: Records, gpus: Records) -> None:
    """Take an empty node out of service, or back into it."""
    node = nodes[n]
    pool = pools[node.pool]
    change = node.gpus if up else -node.gpus
    node.up = up
    node.free += change
    pool.gpus += change
    pool.free += change
    w.up_gpus += change
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        gpus[g].free = WHOLE if up else 0
    note(n, pools, nodes, gpus)


@njit_apart
def happen(
    event: Row,
    w: Row,
    queue: Records,
    eligible: Mask,
    undone: Floats,
    running: Records,
    ends: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    est: Floats,
    allowed: Mask,
    seconds: Floats,
    colocation: Floats,
    readings: Records,
    outcome: Records,
    spans: Records,
) -> None:
    """Let one event of the list happen now."""
    if event.kind in (REPAIR, FAILURE):
        n, up = event.node, 1 if event.kind == REPAIR else 0
        lost = wide(1 if event.value == 0 else 0)  # planned: its jobs are saved
        first, end = nodes[n].first_gpu, nodes[n].first_gpu + nodes[n].gpus
        if nodes[n].up == up:
            return
        for g in range(first, end):  # nothing runs on a node that is down
            while gpus[g].job >= 0 or gpus[g].slice >= 0:
                slot = gpus[g].slice if gpus[g].slice >= 0 else find_run(gpus[g].job, w, running)
                cut_short(
                    slot, lost, w, queue, eligible, undone, running, ends, wear, cells,
                    pools, nodes, gpus, jobs, est, allowed, seconds, colocation, readings, outcome,
                    spans,
                )  # fmt: skip
        _switch(n, up, w, pools, nodes, gpus)
        if len(readings) > 0:
            for g in range(first, end):
                read(g, running, wear, pools, nodes, gpus, jobs, readings)
        return
    w.worn = 1
    g = wide(event.gpu)
    if g >= 0:
        wear[g, 0], wear[g, 1] = event.value, event.heat
        if gpus[g].job >= 0:
            slot = find_run(gpus[g].job, w, running)
            change_pace(slot, w, running, ends, wear, cells, pools, gpus, jobs, colocation, outcome)
        pace_slices(
            g, wide(-1), w, running, ends, wear, cells, pools, gpus, jobs, colocation, outcome
        )
        if len(readings) > 0:
            read(g, running, wear, pools, nodes, gpus, jobs, readings)
        return
    cells[event.type, event.model] = event.value
    for slot in range(w.running):
        run = running[slot]
        if jobs[run.job].type == event.type and pools[run.pool].model == event.model:
            change_pace(slot, w, running, ends, wear, cells, pools, gpus, jobs, colocation, outcome)
