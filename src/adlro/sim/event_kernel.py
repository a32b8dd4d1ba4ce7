"""What happens to the cluster, compiled: nodes fail and are repaired, speeds change."""

from __future__ import annotations

from adlro.compiled import njit_apart, wide
from adlro.model.free_index import update
from adlro.model.state import FAILURE, REPAIR, WHOLE, Row
from adlro.sim.progress_kernel import change_pace
from adlro.sim.terminate_kernel import find_run, interrupt, pace_slices, read
from adlro.sim.world import World


@njit_apart
def _set_up(n: int, up: int, world: World) -> None:
    """Take an empty node out of service, or back into it."""
    node = world.nodes[n]
    pool = world.pools[node.pool]
    change = node.gpus if up else -node.gpus
    node.up = up
    node.free += change
    pool.gpus += change
    pool.free += change
    world.totals[0].up_gpus += change
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        world.gpus[g].free = WHOLE if up else 0
    update(n, world.pools, world.nodes, world.gpus)


@njit_apart
def _switch_node(event: Row, world: World) -> None:
    """Let a node fail, with what runs on it, or come back."""
    gpus, n, up = world.gpus, event.node, 1 if event.kind == REPAIR else 0
    lost = wide(1 if event.value == 0 else 0)  # planned: its jobs are saved
    node = world.nodes[n]
    if node.up == up:
        return
    first, end = node.first_gpu, node.first_gpu + node.gpus
    for g in range(first, end):  # nothing runs on a node that is down
        while gpus[g].job >= 0 or gpus[g].slice >= 0:
            slot = gpus[g].slice if gpus[g].slice >= 0 else find_run(gpus[g].job, world)
            interrupt(slot, lost, world)
    _set_up(n, up, world)
    if len(world.readings) > 0:
        for g in range(first, end):
            read(g, world)


@njit_apart
def apply_event(event: Row, world: World) -> None:
    """Let one event of the list happen now."""
    if event.kind in (REPAIR, FAILURE):
        _switch_node(event, world)
        return
    w, gpus, g = world.totals[0], world.gpus, wide(event.gpu)
    w.worn = 1
    if g >= 0:
        world.wear[g, 0], world.wear[g, 1] = event.value, event.heat
        if gpus[g].job >= 0:
            change_pace(find_run(gpus[g].job, world), world)
        pace_slices(g, wide(-1), world)
        if len(world.readings) > 0:
            read(g, world)
        return
    world.cells[event.type, event.model] = event.value
    for slot in range(w.running):
        run = world.running[slot]
        on_model = world.pools[run.pool].model == event.model
        if on_model and world.jobs[run.job].type == event.type:
            change_pace(slot, world)
