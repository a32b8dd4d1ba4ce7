"""Events of the cluster: nodes out of and into service, speeds, CPU-only jobs (compiled)."""

from __future__ import annotations

from adlro.compiled import njit_apart, wide
from adlro.model.free_index import update
from adlro.model.state import CORES, CRASH, DRAIN, FAILURE, REPAIR, WHOLE, Row
from adlro.sim.progress_kernel import update_slowness
from adlro.sim.terminate_kernel import find_run, interrupt, read, update_slices
from adlro.sim.world import World


@njit_apart
def _set_in_service(n: int, up: int, world: World) -> None:
    """Put a node and its GPUs into service (up = 1) or out of service (up = 0).

    Jobs that run on the node keep their GPUs.
    """
    node = world.nodes[n]
    pool = world.pools[node.pool]
    idle = 0
    for g in range(node.first_gpu, node.first_gpu + node.gpus):
        gpu = world.gpus[g]
        if gpu.job < 0 and gpu.slice < 0:
            gpu.free = WHOLE if up else 0
            idle += 1
    sign = 1 if up else -1
    node.up = up
    node.free += sign * idle
    pool.gpus += sign * node.gpus
    pool.free += sign * idle
    pool.draining -= sign * (node.gpus - idle)
    world.totals[0].up_gpus += sign * idle
    update(n, world.pools, world.nodes, world.gpus)


@njit_apart
def _fail_or_repair(event: Row, world: World) -> None:
    """Fail, drain or repair the node of an event; a failure interrupts the runs on the node."""
    gpus, n, up = world.gpus, event.node, 1 if event.kind == REPAIR else 0
    failed = wide(1 if event.value == CRASH else 0)  # if planned, jobs save a checkpoint
    node = world.nodes[n]
    first, end = node.first_gpu, node.first_gpu + node.gpus
    if event.kind == FAILURE and event.value != DRAIN:
        for g in range(first, end):
            while gpus[g].job >= 0 or gpus[g].slice >= 0:
                slot = gpus[g].slice if gpus[g].slice >= 0 else find_run(gpus[g].job, world)
                interrupt(slot, failed, world)
    if node.up == up:
        return
    _set_in_service(n, up, world)
    if len(world.readings) > 0:
        for g in range(first, end):
            read(g, world)


@njit_apart
def _change_cores(node: Row, cores: int) -> None:
    """Let CPU-only jobs take cores of a node as far as free, or return what they took (< 0)."""
    if cores > 0:
        taken = min(cores, max(node.free_cores, 0))
        node.short_cores += cores - taken
        node.free_cores -= taken
    else:
        missing = min(-cores, node.short_cores)
        node.short_cores -= missing
        node.free_cores += -cores - missing


@njit_apart
def apply_event(event: Row, world: World) -> None:
    """Apply a failure, drain, repair, change of speed or change of free cores to the world now."""
    if event.kind in (REPAIR, FAILURE):
        _fail_or_repair(event, world)
        return
    if event.kind == CORES:
        _change_cores(world.nodes[event.node], wide(event.value))
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
