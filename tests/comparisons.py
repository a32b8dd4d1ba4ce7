"""Comparisons for tests, built from made-up runs."""

from __future__ import annotations

import numpy as np

from adlro.config.files import find_scenario
from adlro.evaluate.comparison import RunFigures, SeedRuns, summarise
from adlro.evaluate.metrics import Metrics
from adlro.evaluate.references import SeedReferences
from adlro.policies.registry import Policy
from adlro.workloads.setting import prepare

STEADY = np.array([100.0, 120, 90, 150, 110, 130, 95, 105])


def policy(name, *, is_preemptive=False):
    return Policy(name, lambda *_: 0, np.zeros(0), 0, None, 1, is_preemptive)


def made_up(seed, jct, preemptions=0):
    """Figures of a run with this mean JCT; other metrics vary with the seed, killed_jobs is 0."""
    values = dict.fromkeys(Metrics._fields, 1.0 + seed)
    values |= {"mean_jct_s": jct, "killed_jobs": 0.0}
    return RunFigures(Metrics(**values), 0.5, 10, 4, preemptions)


def compared(jcts, preemptive=(), look_ahead=None):
    """Compare policies given as name -> mean JCT per seed; the first seed is 5.

    With a look-ahead (mean JCT per seed), the lower bounds are a half and a quarter of it.
    """
    policies = [policy(name, is_preemptive=name in preemptive) for name in jcts]
    count = len(next(iter(jcts.values())))
    references = [None] * count
    if look_ahead is not None:
        references = [SeedReferences(jct, jct / 2, jct / 4) for jct in look_ahead]
    done = [
        SeedRuns([made_up(s, jct[s]) for jct in jcts.values()], references[s]) for s in range(count)
    ]
    return summarise(prepare(find_scenario("paper16")), policies, range(5, 500), done)
