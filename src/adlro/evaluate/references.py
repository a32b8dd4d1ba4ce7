"""What policies are compared with besides each other: a look-ahead with foresight, and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.evaluate import foresight
from adlro.evaluate.lower_bound import lower_bound
from adlro.evaluate.stats import Estimate, estimate, gap_closed, ratio
from adlro.model.state import Floats
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

BASELINE = "min-min"  # the gap to the look-ahead with foresight starts here


class SeedReferences(NamedTuple):
    """Mean JCTs of one seed that are no policy's, in seconds."""

    look_ahead: float  # of the look-ahead with foresight, which is no bound
    lower_bound: float  # no policy without preemption can be below
    lower_bound_preemptive: float  # no schedule at all can be below


class Reference(Estimate):
    """Mean over seeds of such a JCT, with the value of every seed."""

    per_seed: list[float]  # in the order of the seeds


class Against(NamedTuple):
    """A policy against the references; None = unknown."""

    gap_closed: Estimate | None = None
    seeds_below_look_ahead: int | None = None
    times_lower_bound: Estimate | None = None


class Summary(NamedTuple):
    """The references over all seeds, each policy against them, and notes for the reader."""

    look_ahead: Reference | None
    lower_bound: Reference | None
    lower_bound_preemptive: Reference | None
    policies: list[Against]
    notes: list[str]


def play(setting: Setting, workload: Workload, seed: int) -> SeedReferences:
    """Return the references of one seed."""
    bound = lower_bound(setting, workload)
    return SeedReferences(
        foresight.mean_jct(setting, workload, seed), bound.without_preemption, bound.with_preemption
    )


def _reference(values: Floats) -> Reference:
    return Reference(**estimate(values).model_dump(), per_seed=values.tolist())


def _gaps_closed(
    names: Sequence[str], jct: Floats, look_ahead: Floats
) -> tuple[list[Estimate | None], list[str]]:
    """Return the percent of the gap between min-min and the look-ahead that each policy closes.

    None for all if the gap is unknown or there is none, with a note that says why.
    """
    unknown: list[Estimate | None] = [None] * len(names)
    if BASELINE not in names:
        return unknown, [
            f"Without {BASELINE} in the table there is no gap to the look-ahead with foresight."
        ]
    start = jct[names.index(BASELINE)]
    if not start.mean() > look_ahead.mean():
        return unknown, [
            f"The look-ahead with foresight is no better than {BASELINE} here: there is no gap to "
            "close."
        ]
    return [gap_closed(row, start, look_ahead) for row in jct], []


def summarise(
    names: Sequence[str],
    is_preemptive: Sequence[bool],
    jct: Floats,
    found: Sequence[SeedReferences | None],
) -> Summary:
    """Compare P policies with the references of S seeds.

    Args:
        names: [P] of the policies.
        is_preemptive: [P] which of the two lower bounds holds for each.
        jct: [P, S] mean JCTs in seconds.
        found: [S] the references; None = they were not asked for.
    """
    known = [seed for seed in found if seed is not None]
    if not known:
        return Summary(None, None, None, [Against()] * len(names), [])
    look_ahead, bound, bound_preemptive = np.array(known).T.copy()
    gaps, notes = _gaps_closed(names, jct, look_ahead)
    policies = [
        Against(gap, int((row < look_ahead).sum()), ratio(row, bound_preemptive if may else bound))
        for gap, row, may in zip(gaps, jct, is_preemptive, strict=True)
    ]
    return Summary(
        _reference(look_ahead), _reference(bound), _reference(bound_preemptive), policies, notes
    )
