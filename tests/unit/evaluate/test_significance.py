"""The signed-rank test by hand and compared with scipy."""

import numpy as np
import pytest
from scipy import stats

from adlro.evaluate.significance import PairedTest, holm, paired_test


def apart(*differences):
    """Return the test of these differences."""
    zeros = np.zeros(len(differences))
    return paired_test(np.array(differences, np.float64), zeros)


def test_signed_ranks_by_hand():
    # sizes 1..6, only rank 2 is negative: W- = 2. Sets of ranks with a sum of at most 2: none, {1},
    # {2}: 3 of 64, so p = 2 * 3 / 64. Biserial: (19 - 2) / 21. Mean 17/6, sd of the six 3.0605
    found = apart(1, -2, 3, 4, 5, 6)
    assert found.p_wilcoxon == pytest.approx(6 / 64)
    assert found.rank_biserial == pytest.approx(17 / 21)
    assert found.dz == pytest.approx(17 / 6 / np.std([1, -2, 3, 4, 5, 6], ddof=1))


def test_the_sign_shows_which_is_larger():
    ours, theirs = np.arange(8.0), np.arange(8.0) + np.arange(1, 9)
    assert paired_test(ours, theirs).rank_biserial == -1
    assert paired_test(theirs, ours).rank_biserial == 1
    assert paired_test(ours, theirs).dz < 0 < paired_test(theirs, ours).dz
    assert paired_test(ours, theirs).p_wilcoxon == paired_test(theirs, ours).p_wilcoxon == 2 / 2**8


@pytest.mark.parametrize("seeds", [6, 13, 30, 50, 51, 200])
@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_p_is_that_of_scipy(seeds, shift):
    rng = np.random.default_rng(seeds)
    for _ in range(10):
        x = rng.normal(shift, 1, seeds)
        method = "exact" if seeds <= 50 else "approx"
        theirs = stats.wilcoxon(x, method=method, correction=True).pvalue
        assert apart(*x).p_wilcoxon == pytest.approx(theirs, rel=1e-9)


def test_p_of_many_ties_is_that_of_scipy():
    x = np.random.default_rng(1).integers(-3, 5, 80).astype(float)
    theirs = stats.wilcoxon(x, method="approx", correction=True, zero_method="wilcox").pvalue
    assert apart(*x).p_wilcoxon == pytest.approx(theirs, rel=1e-9)


def test_ties_share_their_rank_and_p_stays_exact():
    # six of size 1, rank 3.5 each; one negative: sums of at most 3.5 are none or any single one:
    # 7 of 64
    assert apart(1, 1, 1, 1, 1, -1).p_wilcoxon == pytest.approx(2 * 7 / 64)


def test_p_is_never_above_one():
    assert apart(1, -1, 1, -1, 1, -1).p_wilcoxon == 1


def test_equal_policies_have_no_p_and_no_effect():
    same = np.array([5.0, 6.0, 7.0, 8.0, 9.0, 10.0])
    assert paired_test(same, same) == PairedTest(None, None, None)


def test_rounding_errors_are_not_differences():
    ours = np.array([1e4, 2e4, 3e4, 4e4, 5e4, 6e4])
    assert paired_test(ours * (1 + 1e-14), ours) == PairedTest(None, None, None)


def test_rounding_errors_add_no_variance_and_break_no_ties():
    base = np.random.default_rng(3).lognormal(3, 0.5, 7)
    assert paired_test(base + 0.1, base).dz is None
    steps = np.array([0.1, -0.1, 0.1, 0.2, -0.2, 0.3, 0.1])
    found = paired_test(base + steps, base)
    assert found.p_wilcoxon == apart(*steps).p_wilcoxon
    assert found.rank_biserial == apart(*steps).rank_biserial


def test_five_seeds_that_differ_are_too_few_for_a_p():
    found = apart(1, 2, 3, 4, 5)
    assert found.p_wilcoxon is None
    assert found.rank_biserial == 1
    assert apart(1, 2, 3, 4, 5, 0, 0).p_wilcoxon is None
    assert apart(1, 2, 3, 4, 5, 6).p_wilcoxon == pytest.approx(2 / 64)


def test_one_seed_has_no_effect_size():
    assert apart(3).dz is None


def test_the_arguments_are_not_modified():
    ours, theirs = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    paired_test(ours, theirs)
    assert (ours.tolist(), theirs.tolist()) == ([1, 2], [1, 3])


def test_holm_by_hand():
    # sorted .01 .02 .03 .20 times 4 3 2 1 = .04 .06 .06 .20, never falling
    assert holm([0.03, 0.01, 0.20, 0.02]) == pytest.approx([0.06, 0.04, 0.20, 0.06])


def test_holm_is_capped_at_one_and_skips_missing_p_values():
    assert holm([0.6, None, 0.7]) == [1, None, 1]
    assert holm([None, 0.04]) == [None, 0.04]
    assert holm([]) == []
