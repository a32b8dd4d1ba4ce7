"""Share of a cluster's GPUs that each placement rule allocates, over seeds, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from openb_placement import openb, packing
from pydantic import BaseModel, ConfigDict

from adlro.evaluate.stats import Estimate, estimate
from adlro.model.state import Floats

DEMAND = 1.3  # requested GPUs relative to all GPUs
_PODS, _TIES = range(2)  # random streams: the pods do not depend on the placement rule


class PlacementRule(NamedTuple):
    """A placement rule with its tie-breaking."""

    policy: str  # fgd-all takes all pods of the trace as typical, even rare ones
    ties: str
    score: int
    random_ties: bool
    published: float | None = None  # percent, in Weng et al.
    covered: float = openb.COVERED  # share of the pods that the typical demands of fgd cover


RULES = (
    PlacementRule("fgd", "score in 100 steps, by name", packing.FGD_STEPS, False, 95.39),
    PlacementRule("fgd", "score in 100 steps, random", packing.FGD_STEPS, True),
    PlacementRule("fgd", "exact score, by name", packing.FGD, False),
    PlacementRule("fgd", "exact score, random", packing.FGD, True),
    PlacementRule("fgd-all", "exact score, by name", packing.FGD, False, covered=1.0),
    PlacementRule("fgd-all", "exact score, random", packing.FGD, True, covered=1.0),
    PlacementRule("best-fit", "by name", packing.BEST_FIT, False, 93.08),
    PlacementRule("best-fit", "random", packing.BEST_FIT, True),
    PlacementRule("random", "random", packing.ANY, True, 87.47),
)


class AllocationRow(BaseModel):
    """One line of the table."""

    model_config = ConfigDict(frozen=True)

    policy: str
    ties: str
    allocation_pct: Estimate  # allocated GPUs at the end, in percent of all
    published: float | None


def allocation(trace: openb.Trace, rule: PlacementRule, seed: int) -> float:
    """Percent of all GPUs that a rule allocates to the pods of one seed."""
    coming = openb.draw(trace, DEMAND, np.random.default_rng((seed, _PODS)))
    pods = packing.Pods(
        trace.specs, coming, openb.typical(trace, rule.covered), trace.nodes, trace.gpus
    )
    rng = np.random.default_rng((seed, _TIES))
    return 100 * packing.pack(pods, rule.score, random_ties=rule.random_ties, rng=rng).share


def compare(
    trace: openb.Trace, seeds: range, rules: Sequence[PlacementRule] = RULES, threads: int = 2
) -> list[AllocationRow]:
    """Apply every rule to the pods of every seed; the result does not depend on `threads`."""
    with ThreadPoolExecutor(threads) as pool:
        tasks = [[pool.submit(allocation, trace, rule, seed) for seed in seeds] for rule in rules]
        figures: list[Floats] = [np.array([task.result() for task in row]) for row in tasks]
    return [
        AllocationRow(
            policy=rule.policy,
            ties=rule.ties,
            allocation_pct=estimate(row),
            published=rule.published,
        )
        for rule, row in zip(rules, figures, strict=True)
    ]
