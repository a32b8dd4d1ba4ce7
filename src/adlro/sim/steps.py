"""The steps of the kernel as separate compiled functions, for callers in plain Python."""

from __future__ import annotations

from adlro.compiled import njit
from adlro.model.feasibility import any_feasible
from adlro.model.state import Records
from adlro.sim import kernel
from adlro.sim.world import World, view_of


@njit
def advance(world: World) -> bool:
    """Move the clock to the next event: see kernel.advance."""
    return kernel.advance(world)


@njit
def apply(answered: int, out: Records, world: World) -> int:
    """Apply the decisions of one answer: see kernel.apply."""
    return kernel.apply(answered, out, world)


@njit
def is_real(world: World) -> bool:
    """True when at least one waiting job can start on one of its eligible pools now."""
    w = world.totals[0]
    return w.waiting > 0 and w.busy_gpus < w.up_gpus and any_feasible(view_of(world))


@njit
def clone(world: World, to: World) -> None:
    """Copy the state of a world into another: see kernel.clone."""
    kernel.clone(world, to)
