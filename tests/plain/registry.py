"""All plain policies by name, collected from the tables of the modules that define them."""

from __future__ import annotations

from tests.plain import drain, learned, packed, planned, policies, priority, slurm
from tests.plain.cases import Case
from tests.plain.simulator import Policy

MAKERS = {
    **policies.MAKERS,
    **planned.MAKERS,
    **priority.MAKERS,
    **drain.MAKERS,
    **learned.MAKERS,
    **packed.MAKERS,
    **slurm.MAKERS,
}


def make(name: str, case: Case, seed: int = 0) -> Policy:
    """A new policy by its name in the table of docs/simulator.md, or the `script`."""
    return MAKERS[name](case, seed)
