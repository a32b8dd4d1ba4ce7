"""The statistics of a comparison, on made-up runs."""

import json

import numpy as np
import pytest

from adlro.evaluate.comparison import PER_SEED, Comparison, JctDifference
from adlro.evaluate.metrics import Metrics
from tests.comparisons import STEADY, compared


def rows(result):
    return {row.name: row for row in result.policies}


def test_differences_come_with_their_tests():
    # b is 10 % larger on every seed: all ranks on one side, p = 2 / 2^8, nothing left to settle
    found = rows(compared({"a": STEADY, "b": 1.1 * STEADY}))["b"].jct_versus("a")
    assert found.mean == pytest.approx(10)
    assert found.ci95 == pytest.approx((10, 10))
    assert found.p_wilcoxon == found.p_holm == pytest.approx(2 / 2**8)
    assert found.rank_biserial == 1
    assert found.dz == pytest.approx(STEADY.mean() / STEADY.std(ddof=1))
    assert found.seeds_to_settle is None


def test_only_tests_against_the_best_of_the_table_are_corrected_and_over_its_rivals():
    jcts = {"a": STEADY, "b": 1.1 * STEADY, "c": 1.2 * STEADY, "d": 1.3 * STEADY}
    found = rows(compared(jcts, preemptive=("d",)))
    raw = 2 / 2**8
    assert found["b"].jct_versus("a").p_holm == pytest.approx(2 * raw)  # b and c, not d
    assert found["a"].jct_versus("c").p_holm == pytest.approx(2 * raw)
    assert found["c"].jct_versus("b").p_holm is None
    assert found["c"].jct_versus("b").p_wilcoxon == pytest.approx(raw)
    assert found["d"].jct_versus("a").p_holm is None
    assert found["d"].jct_versus("a").p_wilcoxon == pytest.approx(raw)


def test_an_unsettled_difference_states_how_many_seeds_it_takes():
    rng = np.random.default_rng(1)
    found = rows(compared({"a": STEADY, "b": STEADY * rng.normal(1.01, 0.1, 8)}))
    difference = found["b"].jct_versus("a")
    assert not difference.is_settled
    ratio = difference.half_width / abs(difference.mean)
    assert difference.seeds_to_settle == np.ceil(8 * ratio**2)


def test_equal_policies_have_no_p_and_nothing_to_settle():
    found = rows(compared({"a": STEADY, "b": STEADY}))["b"].jct_versus("a")
    assert (found.mean, found.ci95) == (0, (0, 0))
    assert (found.p_wilcoxon, found.p_holm, found.dz) == (None, None, None)
    assert (found.rank_biserial, found.seeds_to_settle) == (None, None)


def test_one_seed_gives_means_only():
    result = compared({"a": STEADY[:1], "b": 2 * STEADY[:1]})
    found = rows(result)["b"].jct_versus("a")
    assert (found.mean, found.ci95, found.p_holm) == (pytest.approx(100), None, None)
    assert "1 seeds are too few" in result.regression.pooled.problem


def test_all_metrics_are_compared_except_those_that_are_zero():
    versus = rows(compared({"a": STEADY, "b": 2 * STEADY}))["b"].versus["a"]
    assert "killed_jobs_pct" not in versus
    assert len(versus) == len(Metrics._fields) - 1
    assert versus["p99_jct_pct"].mean == 0
    assert not isinstance(versus["p99_jct_pct"], JctDifference)


def test_seeds_keep_their_order():
    result = compared({"a": STEADY})
    assert (result.seeds, result.first_seed) == (8, 5)
    assert set(result.policies[0].per_seed) == set(PER_SEED)
    assert result.policies[0].per_seed["mean_jct_s"] == STEADY.tolist()
    assert result.policies[0].per_seed["mean_queue"] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_decisions_add_up_over_seeds():
    row = compared({"a": STEADY}).policies[0]
    assert (row.decisions, row.real_decisions) == (80, 32)
    assert row.decision_us == pytest.approx(1e6 * 0.5 / 10)


def test_tables_are_best_first_and_those_that_preempt_come_second():
    jcts = {"c": 3 * STEADY, "p": STEADY / 2, "a": STEADY, "q": STEADY / 3}
    tables = compared(jcts, preemptive=("p", "q")).tables()
    assert [[row.name for row in table] for table in tables] == [["a", "c"], ["q", "p"]]
    assert len(compared({"a": STEADY}).tables()) == 1


def test_json_round_trips():
    result = compared({"a": STEADY, "b": 1.1 * STEADY})
    again = Comparison.model_validate_json(result.model_dump_json())
    assert again == result
    assert isinstance(again.policies[1].versus["a"]["mean_jct_pct"], JctDifference)


def test_json_records_versions():
    data = json.loads(compared({"a": STEADY}).model_dump_json())
    assert set(data["versions"]) == {"adlro", "python", "numpy", "numba", "scipy"}
    assert set(data["regression"]) == {"explained", "pooled", "by_policy"}
    assert data["notes"] == []
