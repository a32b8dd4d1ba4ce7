"""The context from which a policy is initialised: the cluster, and facts about its workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from adlro.model.gpu import GpuModel
from adlro.model.state import Counts, Floats, Mask, Records


class Rulebook(NamedTuple):
    """The eligibility rules of a world, from which a copy of that world can be rebuilt.

    `allowed` and `holders` map JOB records [J] to the pools where each job may run at all, [J, P],
    and to the quotas of its account and its user, [J, 2]; both as in model/rules.py.
    """

    allowed: Callable[[Records], Mask]
    holders: Callable[[Records], Counts]
    quotas: Records  # [H] QUOTA
    caps: Counts  # [H, M]
    ageing: Floats  # [1] or [0]


class Context(Protocol):
    """Everything a policy may read before the first decision.

    A scenario or a live cluster provides it. A policy that needs a value that is not known here
    refuses to load, with a reason.
    """

    @property
    def name(self) -> str:
        """Name of the scenario or cluster, for error messages."""

    @property
    def rows(self) -> int:
        """Number of rows of the job table; a policy indexes its per-job memory by row."""

    @property
    def models(self) -> tuple[GpuModel, ...]:
        """GPU models [M], in the order of the columns of `est`."""

    @property
    def pools(self) -> Records:
        """Pools [P] of the empty cluster."""

    @property
    def nodes(self) -> Records:
        """Nodes [N] of the empty cluster."""

    @property
    def gpus(self) -> Records:
        """GPUs [G] of the empty cluster."""

    @property
    def types(self) -> int:
        """Number of job types; 0 = not known."""

    @property
    def affinity(self) -> tuple[int, ...]:
        """GPU model of each job type, for static affinity; () = not known."""

    @property
    def type_shares(self) -> Floats:
        """Shares of each type on the pools by the capacity LP, [T, P]; [0, P] = not known."""

    @property
    def lp_prices(self) -> Floats:
        """Prices of a GPU of each pool by the capacity LP, [P]; [0] = not known."""

    @property
    def demands(self) -> Records:
        """DEMAND [K]: the typical demands of the jobs; [0] = not known."""

    @property
    def placement(self) -> Records:
        """DEMAND [K] by which the world places jobs (fragmentation); [0] = best fit."""

    @property
    def rules(self) -> Rulebook:
        """Eligibility rules that apply to every policy."""


class ContextCopy(NamedTuple):
    """A copy of the fields of a `Context`, without the rest of the object that provided them."""

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


def copy_context(context: Context) -> ContextCopy:
    """Copy of the fields that a policy may read, from any object that provides a context."""
    return ContextCopy(*(getattr(context, field) for field in ContextCopy._fields))
