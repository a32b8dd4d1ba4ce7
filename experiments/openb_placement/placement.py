"""How much of a cluster each way of placing pods hands out, over seeds, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from openb_placement import openb, packing
from pydantic import BaseModel, ConfigDict

from adlro.evaluate.stats import Estimate, estimate
from adlro.model.state import Floats

DEMAND = 1.3  # GPUs asked for, of those that there are
_PODS, _TIES = range(2)  # random streams: who comes does not depend on how it is placed


class Rule(NamedTuple):
    """A way of placing pods, ties included."""

    policy: str  # fgd-all looks ahead to every pod of the trace, also the rare ones
    ties: str
    score: int
    random_ties: bool
    published: float | None = None  # percent, in Weng et al.
    covered: float = openb.COVERED  # share of the pods that fgd looks ahead to


RULES = (
    Rule("fgd", "score in 100 steps, by name", packing.FGD_STEPS, False, 95.39),
    Rule("fgd", "score in 100 steps, random", packing.FGD_STEPS, True),
    Rule("fgd", "exact score, by name", packing.FGD, False),
    Rule("fgd", "exact score, random", packing.FGD, True),
    Rule("fgd-all", "exact score, by name", packing.FGD, False, covered=1.0),
    Rule("fgd-all", "exact score, random", packing.FGD, True, covered=1.0),
    Rule("best-fit", "by name", packing.BEST_FIT, False, 93.08),
    Rule("best-fit", "random", packing.BEST_FIT, True),
    Rule("random", "random", packing.ANY, True, 87.47),
)


class Row(BaseModel):
    """One line of the table."""

    model_config = ConfigDict(frozen=True)

    policy: str
    ties: str
    allocation_pct: Estimate  # GPUs handed out at the end, in percent of all
    published: float | None


def allocation(trace: openb.Trace, rule: Rule, seed: int) -> float:
    """Percent of all GPUs that a rule hands out to the pods of one seed."""
    coming = openb.draw(trace, DEMAND, np.random.default_rng((seed, _PODS)))
    pods = packing.Pods(
        trace.specs, coming, openb.typical(trace, rule.covered), trace.nodes, trace.gpus
    )
    rng = np.random.default_rng((seed, _TIES))
    return 100 * packing.pack(pods, rule.score, random_ties=rule.random_ties, rng=rng).share


def compare(
    trace: openb.Trace, seeds: range, rules: Sequence[Rule] = RULES, threads: int = 2
) -> list[Row]:
    """Every rule on the pods of every seed; the result does not depend on `threads`."""
    with ThreadPoolExecutor(threads) as pool:
        tasks = [[pool.submit(allocation, trace, rule, seed) for seed in seeds] for rule in rules]
        figures: list[Floats] = [np.array([task.result() for task in row]) for row in tasks]
    return [
        Row(
            policy=rule.policy,
            ties=rule.ties,
            allocation_pct=estimate(row),
            published=rule.published,
        )
        for rule, row in zip(rules, figures, strict=True)
    ]
