"""Copies of a state within compiled code, as a policy that looks ahead makes them."""

from __future__ import annotations

from typing import Any

from adlro.compiled import njit
from adlro.sim.kernel import clone


@njit
def bounce(times: int, there: tuple[Any, ...], back: tuple[Any, ...]) -> None:
    """Copy a state into another and that one into the first, `times` each, so that none is idle.

    Args:
        times: how often.
        there: the arguments of sim.kernel.clone: the twelve arrays of a state, then of the copy.
        back: the same, the other way round.
    """
    for _ in range(times):
        clone(*there)
        clone(*back)
