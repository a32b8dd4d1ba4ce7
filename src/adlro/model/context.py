"""What a policy can read before its first decision: the cluster, and facts about its workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from adlro.model.gpu import GpuModel
from adlro.model.slurm import Slurm
from adlro.model.state import Counts, Floats, Mask, Records


class Rulebook(NamedTuple):
    """The eligibility rules of a world, from which a copy of that world can be rebuilt.

    `allowed` returns for JOB records [J] the pools where each job may run at all, [J, P]; `holders`
    returns the quotas of each job's account and user, [J, 2]. Fields as in model/rules.py.
    """

    allowed: Callable[[Records], Mask]
    holders: Callable[[Records], Counts]
    quotas: Records  # [H] QUOTA
    caps: Counts  # [H, M]
    ageing: Floats  # [1] or [0]


class Context(Protocol):
    """Everything that a policy may read before its first decision.

    A scenario or a live cluster provides it. A policy that needs a value that is not known here
    cannot be loaded; the error gives the reason.
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
        """GPU model assigned to each job type for the policy static-affinity; () = not known."""

    @property
    def type_shares(self) -> Floats:
        """Shares [T, P] of each job type on each pool in the capacity LP; [0, P] = not known."""

    @property
    def lp_prices(self) -> Floats:
        """Dual prices [P] of a GPU of each pool in the capacity LP; [0] = not known."""

    @property
    def demands(self) -> Records:
        """Kinds of demand of the jobs with their frequencies, DEMAND [K]; [0] = not known."""

    @property
    def placement(self) -> Records:
        """DEMAND [K] for which the world minimises fragmentation; [0] = it places by best fit."""

    @property
    def rules(self) -> Rulebook:
        """Eligibility rules that apply to every policy."""

    @property
    def partitions(self) -> tuple[str, ...]:
        """Names of all partitions, in the order of their bits (model.state.partition_bit)."""

    @property
    def slurm(self) -> Slurm:
        """Settings of Slurm for the policy slurm."""


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
    partitions: tuple[str, ...]
    slurm: Slurm


def copy_context(context: Context) -> ContextCopy:
    """Copy the fields that a policy may read from any object that provides them."""
    return ContextCopy(*(getattr(context, field) for field in ContextCopy._fields))
