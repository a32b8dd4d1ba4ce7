"""Events of the cluster: failures and repairs of nodes, changes of speed (compiled)."""

from __future__ import annotations

from adlro.compiled import njit_apart, wide
from adlro.model.free_index import update
from adlro.model.state import FAILURE, REPAIR, WHOLE, Row
from adlro.sim.progress_kernel import update_slowness
from adlro.sim.terminate_kernel import find_run, interrupt, read, update_slices
from adlro.sim.world import World


@njit_apart
def _set_in_service(n: int, up: int, world: World) -> None:
    """Put an empty node and its GPUs into service (up = 1) or out of service (up = 0)."""
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
def _fail_or_repair(event: Row, world: World) -> None:
    """Fail or repair the node of an event; a failure interrupts the runs on the node."""
    gpus, n, up = world.gpus, event.node, 1 if event.kind == REPAIR else 0
    failed = wide(1 if event.value == 0 else 0)  # in a planned failure, jobs save a checkpoint
    node = world.nodes[n]
    if node.up == up:
        return
    first, end = node.first_gpu, node.first_gpu + node.gpus
    for g in range(first, end):  # nothing runs on a node that is down
        while gpus[g].job >= 0 or gpus[g].slice >= 0:
            slot = gpus[g].slice if gpus[g].slice >= 0 else find_run(gpus[g].job, world)
            interrupt(slot, failed, world)
    _set_in_service(n, up, world)
    if len(world.readings) > 0:
        for g in range(first, end):
            read(g, world)


@njit_apart
def apply_event(event: Row, world: World) -> None:
    """Apply a failure, a repair or a change of speed to the world now."""
    if event.kind in (REPAIR, FAILURE):
        _fail_or_repair(event, world)
        return
    totals, gpus, g = world.totals[0], world.gpus, wide(event.gpu)
    totals.worn = 1
    if g >= 0:
        world.wear[g, 0], world.wear[g, 1] = event.value, event.heat
        if gpus[g].job >= 0:
            update_slowness(find_run(gpus[g].job, world), world)
        update_slices(g, wide(-1), world)
        if len(world.readings) > 0:
            read(g, world)
        return
    world.cells[event.type, event.model] = event.value
    for slot in range(totals.running):
        run = world.running[slot]
        on_model = world.pools[run.pool].model == event.model
        if on_model and world.jobs[run.job].type == event.type:
            update_slowness(slot, world)
