"""Copying a world in compiled code, as the look-ahead does.

`njit` checks array bounds outside the package `adlro`, but only in the function itself and not in
its callees: what is timed here, `clone`, is the code of the simulator.
"""

from __future__ import annotations

from adlro.compiled import njit
from adlro.sim.kernel import clone
from adlro.sim.world import World


@njit
def copy_back_and_forth(times: int, world: World, other: World) -> None:
    """Copy a world to another and back, `times` times: two copies each."""
    for _ in range(times):
        clone(world, other)
        clone(other, world)
