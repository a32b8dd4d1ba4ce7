"""Copies of a world within compiled code, as a policy that looks ahead makes them."""

from __future__ import annotations

from adlro.compiled import njit
from adlro.sim.kernel import clone
from adlro.sim.world import World


@njit
def bounce(times: int, world: World, other: World) -> None:
    """Copy a world into another and that one into the first, `times` each: neither is idle."""
    for _ in range(times):
        clone(world, other)
        clone(other, world)
