"""Comparison of placement rules."""

import numpy as np
import pytest
from openb_placement import packing, placement
from openb_placement.placement import RULES, PlacementRule

from tests.openb_files import trace

PODS = [*["p,1000,1,1,300,"] * 10, *["p,1000,1,1,1000,"] * 5, *["p,1000,1,0,0,"] * 3]


def test_the_whole_cluster_is_allocated_if_every_pod_takes_a_whole_gpu(tmp_path):
    found = trace(tmp_path, ["a,64000,99,4,T4", "b,64000,99,4,T4"], ["p,1000,1,1,1000,"])
    for row in placement.compare(found, range(2)):
        assert row.allocation_pct.mean == 100.0


def test_the_figures_are_the_mean_over_seeds_of_single_runs(tmp_path):
    found = trace(tmp_path, ["a,9000,99,3,T4", "b,9000,99,2,V100"], PODS)
    rules = (RULES[0], PlacementRule("random", "random", packing.ANY, True))
    rows = placement.compare(found, range(3, 7), rules)
    for rule, row in zip(rules, rows, strict=True):
        single = [placement.allocation(found, rule, seed) for seed in range(3, 7)]
        assert row.allocation_pct.mean == pytest.approx(np.mean(single))
        assert row.allocation_pct.sd == pytest.approx(np.std(single, ddof=1))
        assert (row.policy, row.ties, row.published) == (rule.policy, rule.ties, rule.published)


def test_threads_change_nothing(tmp_path):
    found = trace(tmp_path, ["a,9000,99,3,T4", "b,9000,99,2,V100"], PODS)
    one, four = (placement.compare(found, range(5), threads=threads) for threads in (1, 4))
    assert one == four


def test_no_two_rules_are_the_same():
    assert len({(rule.policy, rule.ties) for rule in RULES}) == len(RULES)
    assert len({(rule.score, rule.random_ties, rule.covered) for rule in RULES}) == len(RULES)
