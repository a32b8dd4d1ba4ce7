import numpy as np
import pytest

from adlro.evaluate.stats import (
    RESAMPLES,
    Estimate,
    bootstrap,
    estimate,
    gap_closed,
    percent_difference,
    percent_differences,
    pooled_mean,
    seeds_to_settle,
)


def test_the_interval_of_a_mean_is_students():
    # mean 2, sd 1, n 3: t(0.975, 2) = 4.3027, half = 4.3027 / sqrt(3) = 2.4841
    figure = estimate(np.array([1.0, 2.0, 3.0]))
    assert figure.mean == 2.0
    assert figure.sd == pytest.approx(1.0)
    assert figure.ci95 == pytest.approx((2 - 2.48414, 2 + 2.48414), abs=1e-4)


def test_one_seed_has_no_interval():
    assert estimate(np.array([5.0])).ci95 is None
    assert percent_difference(np.array([5.0]), np.array([4.0])).mean == pytest.approx(25.0)


def test_a_constant_ratio_has_an_interval_of_no_width():
    theirs = np.array([100.0, 400.0, 250.0])
    figure = percent_difference(0.9 * theirs, theirs)
    assert figure.mean == pytest.approx(-10.0)
    assert figure.ci95 == pytest.approx((-10.0, -10.0))


def test_pairing_narrows_the_interval_of_seeds_that_vary_together():
    rng = np.random.default_rng(1)
    seeds = rng.lognormal(6, 1, 50)
    paired = percent_difference(seeds * rng.normal(0.95, 0.01, 50), seeds)
    apart = percent_difference(rng.permutation(seeds) * 0.95, seeds)
    assert paired.ci95[1] - paired.ci95[0] < (apart.ci95[1] - apart.ci95[0]) / 10


@pytest.mark.parametrize(
    ("times", "nearly"), [(250, 0.04), pytest.param(1000, 0.03, marks=pytest.mark.slow)]
)
def test_the_interval_covers_the_true_difference_in_95_percent(times, nearly):
    rng = np.random.default_rng(7)
    inside = 0
    for _ in range(times):
        theirs = rng.gamma(20, 5, 30)
        ours = 0.9 * theirs * rng.normal(1, 0.05, 30)
        low, high = percent_difference(ours, theirs).ci95
        inside += low <= -10 <= high
    assert abs(inside / times - 0.95) < nearly


def test_the_bootstrap_covers_skewed_differences_where_students_t_falls_short():
    rng = np.random.default_rng(3)
    inside = {"bootstrap": 0, "t": 0}
    for _ in range(300):
        theirs = rng.gamma(20, 5, 10)
        ours = theirs * (1 + 0.2 * rng.lognormal(0, 1, 10))
        true = 20 * np.exp(1 / 2)
        for name, again in (("bootstrap", bootstrap(10, 1000)), ("t", None)):
            low, high = percent_differences(np.stack((ours, theirs)), again)[0, 1].ci95
            inside[name] += low <= true <= high
    assert inside["bootstrap"] > 265
    assert inside["t"] < inside["bootstrap"] - 10


def test_the_same_figures_give_the_same_interval():
    rng = np.random.default_rng(5)
    ours, theirs = rng.gamma(20, 5, (2, 12))
    assert percent_difference(ours, theirs) == percent_difference(ours, theirs)


def test_resampling_preserves_pairs():
    # ours is 1.5 theirs on every seed, whatever the seeds are like: so it is in every resample
    theirs = np.random.default_rng(2).lognormal(6, 1, 30)
    figure = percent_difference(1.5 * theirs, theirs)
    assert figure.ci95 == pytest.approx((50, 50))


@pytest.mark.parametrize(("seeds", "is_students"), [(4, True), (5, False), (500, False)])
def test_few_seeds_fall_back_to_students_t(seeds, is_students):
    figures = np.random.default_rng(4).gamma(2, 5, (2, seeds))
    students = percent_differences(figures, None)[0, 1]
    assert (percent_difference(*figures) == students) is is_students


def test_many_seeds_use_students_t():
    assert bootstrap(500, 10) is not None
    assert bootstrap(501, 10) is None


def test_policies_that_differ_on_a_single_seed_use_students_t():
    # a third of the resamples leave out the one seed that differs: no spread, no pivot
    theirs = np.linspace(90.0, 110.0, 20)
    ours = theirs.copy()
    ours[3] += 10
    pair = np.stack((ours, theirs))
    assert percent_difference(ours, theirs) == percent_differences(pair, None)[0, 1]


def test_every_pair_has_the_same_result_as_alone():
    figures = np.random.default_rng(8).gamma(20, 5, (3, 9))
    all_of_them = percent_differences(figures, bootstrap(9, RESAMPLES))
    assert len(all_of_them) == 6
    for (p, k), found in all_of_them.items():
        alone = percent_difference(figures[p], figures[k])
        assert found.mean == pytest.approx(alone.mean)
        assert found.ci95 == pytest.approx(alone.ci95)


def test_there_is_no_percentage_of_zero():
    figures = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    assert set(percent_differences(figures, None)) == {(1, 0)}


def test_the_gap_closed_is_a_ratio_of_mean_differences():
    # min-min 100 and 200, look-ahead 80 and 160: gaps 20 and 40; the policy closes 5 and 10 of them
    min_min, look_ahead = np.array([100.0, 200.0]), np.array([80.0, 160.0])
    figure = gap_closed(np.array([95.0, 190.0]), min_min, look_ahead)
    assert figure.mean == pytest.approx(25)
    assert figure.ci95 == pytest.approx((25, 25))
    assert gap_closed(min_min, min_min, look_ahead).mean == 0
    assert gap_closed(look_ahead, min_min, look_ahead).mean == pytest.approx(100)
    assert gap_closed(2 * min_min, min_min, look_ahead).mean == pytest.approx(-500)
    assert gap_closed(look_ahead[:1], min_min[:1], look_ahead[:1]).ci95 is None


def test_the_interval_of_the_gap_closed_covers_the_truth():
    rng, inside = np.random.default_rng(6), 0
    for _ in range(200):
        start = rng.gamma(20, 50, 12)
        gap = start * rng.normal(0.1, 0.02, 12)
        low, high = gap_closed(start - gap * rng.normal(0.4, 0.2, 12), start, start - gap).ci95
        inside += low <= 40 <= high
    assert 180 <= inside <= 199


def test_a_missing_gap_is_an_error():
    same = np.array([100.0, 120.0])
    with pytest.raises(ValueError, match="no gap to close"):
        gap_closed(same, same, same)


def test_seeds_to_settle_follow_the_root_of_n():
    # half width 6, mean 2, n 20: 20 * 9
    open_ = Estimate(mean=2, sd=1, ci95=(-4, 8))
    assert seeds_to_settle(open_, 20) == 180
    assert seeds_to_settle(Estimate(mean=-2, sd=1, ci95=(-8, 4)), 20) == 180


@pytest.mark.parametrize(
    "settled",
    [
        Estimate(mean=2, sd=1, ci95=(1, 3)),
        Estimate(mean=0, sd=1, ci95=(-1, 1)),
        Estimate(mean=0, sd=0, ci95=(0, 0)),
    ],
)
def test_a_settled_or_zero_difference_needs_no_seeds(settled):
    assert seeds_to_settle(settled, 20) is None


def test_below_five_seeds_the_spread_tells_how_many_it_takes():
    # The half width of 5 seeds with sd 3 is 2.7764 * 3 / sqrt(5) = 3.725: 5 * (3.725 / 2)^2 = 17.3.
    assert seeds_to_settle(Estimate(mean=2, sd=3, ci95=(-25, 29)), 2) == 18
    assert seeds_to_settle(Estimate(mean=2, sd=0.1, ci95=(-4, 8)), 2) == 5  # never fewer
    assert seeds_to_settle(Estimate(mean=2, sd=1, ci95=(-4, 8)), 5) == 45
    assert seeds_to_settle(Estimate(mean=2, sd=None, ci95=None), 1) is None


def test_a_mean_over_jobs_of_windows_by_hand():
    # Means of 2 jobs at 10, 1 job at 40; without one window the mean is 40 or 10.
    found = pooled_mean(np.array([20.0, 0.0, 40.0]), np.array([2.0, 0.0, 1.0]))
    assert found.mean == 20
    error = np.sqrt(1 / 2 * ((40 - 20) ** 2 + (10 - 20) ** 2))  # the jackknife's, of two windows
    assert found.ci95[1] == pytest.approx(20 + 12.7062 * error, rel=1e-5)
    assert found.sd == pytest.approx(error * np.sqrt(2))
    assert pooled_mean(np.array([0.0, 30.0]), np.array([0.0, 2.0])).ci95 is None


def test_with_equal_counts_it_is_the_mean_of_the_windows_means():
    totals = np.array([3.0, 8.0, 1.0, 6.0])
    found, simple = pooled_mean(totals, np.full(4, 2.0)), estimate(totals / 2)
    assert found.mean == pytest.approx(simple.mean)
    assert found.sd == pytest.approx(simple.sd)
    assert found.ci95 == pytest.approx(simple.ci95)


@pytest.mark.parametrize(("is_uneven", "least"), [(False, 0.92), (True, 0.895)])
def test_its_interval_covers_the_true_mean_with_few_windows(is_uneven, least):
    rng = np.random.default_rng(5)
    for windows in (5, 8, 12):
        inside = 0
        for _ in range(1_000):
            counts = rng.geometric(0.1, windows) if is_uneven else rng.poisson(8, windows) + 1
            noise = rng.normal(0, 30, windows) * np.sqrt(counts)
            low, high = pooled_mean(counts * rng.normal(100, 50, windows) + noise, counts).ci95
            inside += low <= 100 <= high
        assert least <= inside / 1_000 <= 0.97


def test_no_interval_of_positive_figures_promises_more_than_all():
    ours, theirs = np.array([1.0, 9.0, 1.0, 1.0, 1.0]), np.array([10.0, 9.0, 40.0, 12.0, 11.0])
    low, high = percent_difference(ours, theirs).ci95
    assert -100 <= low < high
    shifted = percent_difference(ours - 5, theirs).ci95  # negative figures may turn round
    assert shifted[0] < -100
