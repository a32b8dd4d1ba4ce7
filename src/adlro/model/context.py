"""What a policy is made ready from: a cluster, and what is known of the jobs that come to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from adlro.model.gpu import GpuModel
from adlro.model.state import Counts, Floats, Mask, Records


class Rulebook(NamedTuple):
    """The rules by which a world makes its mask, for whoever rebuilds that world from a view.

    `allowed` and `holders` are asked for JOB records [J]: where each may run at all, [J, P], and
    the quotas of its account and its user, [J, 2]; as in model/rules.py.
    """

    allowed: Callable[[Records], Mask]
    holders: Callable[[Records], Counts]
    quotas: Records  # [H] QUOTA
    caps: Counts  # [H, M]
    ageing: Floats  # [1] or [0]


class Context(Protocol):
    """All that a policy may read before the first decision; a scenario fills it, or a live cluster.

    A policy that needs what is not known here refuses, in a phrase.
    """

    @property
    def name(self) -> str:
        """The scenario or the cluster, for error messages."""

    @property
    def rows(self) -> int:
        """How many rows the table of jobs has; what a policy keeps by job, it keeps by row."""

    @property
    def models(self) -> tuple[GpuModel, ...]:
        """GPU models, in the order of the columns of `est`."""

    @property
    def pools(self) -> Records:
        """The pools [P] of the empty cluster."""

    @property
    def nodes(self) -> Records:
        """Its nodes [N]."""

    @property
    def gpus(self) -> Records:
        """Its GPUs [G]."""

    @property
    def types(self) -> int:
        """How many types of jobs there are; 0 = none are known."""

    @property
    def affinity(self) -> tuple[int, ...]:
        """The GPU model of each type, for static affinity; () = none are known."""

    @property
    def type_shares(self) -> Floats:
        """How the capacity LP spreads each type over the pools, [T, P]; [0, P] = not known."""

    @property
    def lp_prices(self) -> Floats:
        """What the capacity LP would give for a GPU of each pool, [P]; [0] = not known."""

    @property
    def demands(self) -> Records:
        """DEMAND [K]: what most jobs ask for; [0] = not known."""

    @property
    def placement(self) -> Records:
        """DEMAND [K] by which the world places jobs; [0] = it places by best fit."""

    @property
    def rules(self) -> Rulebook:
        """The rules that hold for every policy."""


class Known(NamedTuple):
    """A context that is nothing but a context: what stands behind the one it was made from is not.

    Fields as in `Context`.
    """

    name: str
    rows: int
    models: tuple[GpuModel, ...]
    pools: Records
    nodes: Records
    gpus: Records
    types: int
    affinity: tuple[int, ...]
    type_shares: Floats
    lp_prices: Floats
    demands: Records
    placement: Records
    rules: Rulebook


def known(context: Context) -> Known:
    """What a policy may be told of whatever serves as its context."""
    return Known(*(getattr(context, field) for field in Known._fields))
