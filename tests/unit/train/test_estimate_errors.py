"""Wrong estimates of a training's episodes: each law by its rule; run times stay as they are."""

import numpy as np
import pytest

from adlro.config.files import adjusted
from adlro.train import estimate_errors
from adlro.train.episodes import Episode
from adlro.train.estimate_errors import LAWS, EstimateErrors
from adlro.workloads.setting import prepare
from tests import toys

# Lognormal run times of two types, which are exactly 0.6 times as fast on one of the models.
SCENARIO = adjusted(toys.mixed(), jobs=600, users=4)
SEED = 1_000_000


def errors(law, *, sigma=0.0, trust=1.0, step=2.0):
    return EstimateErrors(law=law, sigma=sigma, trust=trust, step=step)


def applied(used, scenario=SCENARIO, **changes):
    """The jobs before and after, and the logs [J, M] of run times and estimates at speed 1."""
    setting, before = prepare(scenario), Episode(scenario, SEED).workload
    before = before._replace(**changes)
    after = used.applied(setting, before, np.random.default_rng(0))
    speeds = setting.speeds[before.jobs["type"]]
    return before, after, np.log(before.seconds * speeds), np.log(after.est * speeds)


@pytest.mark.parametrize("law", LAWS)
def test_only_estimates_change_and_one_rng_gives_the_same(law):
    used = errors(law, sigma=0.5, trust=0.5)
    before, after, *_ = applied(used)
    assert after.est.shape == before.est.shape
    assert (after.est > 0).all()
    assert not np.array_equal(after.est, before.est)
    for name in set(before._fields) - {"est"}:
        assert getattr(after, name) is getattr(before, name)
    assert np.array_equal(applied(used)[1].est, after.est)


def test_noise_is_of_the_job_and_a_fifth_of_it_of_each_model():
    _, _, true, est = applied(errors("noisy", sigma=0.8))
    off = est - true
    jobs = len(off)
    # Both parts are normal: 0.8, and 0.2 x 0.8 on each model.
    assert off.mean(axis=0) == pytest.approx([0, 0], abs=3 * 0.816 / jobs**0.5)
    assert off.std(axis=0) == pytest.approx([0.816, 0.816], rel=3 / (2 * jobs) ** 0.5)
    between = off[:, 0] - off[:, 1]
    assert between.std() == pytest.approx(0.16 * 2**0.5, rel=3 / (2 * jobs) ** 0.5)


def test_without_any_noise_estimates_are_exact():
    _, _, true, est = applied(errors("noisy"))
    np.testing.assert_allclose(est, true, rtol=1e-12)


@pytest.mark.parametrize("trust", [0.0, 0.3])
def test_regressed_estimates_are_drawn_towards_the_mean_of_the_users_jobs_of_that_type(trust):
    before, _, true, est = applied(errors("regressed", trust=trust))
    keys = list(zip(before.jobs["user"].tolist(), before.jobs["type"].tolist(), strict=True))
    assert len(set(keys)) == 8
    for key in set(keys):
        own = np.array([each == key for each in keys])
        expected = trust * true[own] + (1 - trust) * true[own, 0].mean()
        np.testing.assert_allclose(est[own], expected, rtol=1e-9)


def test_limits_are_customary_ones_above_the_run_time():
    _, _, true, est = applied(errors("limits", sigma=0.5, step=3.0))
    np.testing.assert_allclose(est[:, 0], est[:, 1], rtol=1e-12)
    steps = est / np.log(3)
    np.testing.assert_allclose(steps, steps.round(), atol=1e-9)
    assert 3 < len(np.unique(steps.round())) < 15
    over = np.exp(est - true)
    assert over.min() >= 1  # what users ask for is no less
    assert 5 < over.max() <= 5 * 3


def test_the_constant_estimate_is_the_longest_run_time():
    _, after, true, est = applied(errors("constant", sigma=0.5))
    np.testing.assert_allclose(est, true.max(), rtol=1e-12)
    assert len(np.unique(after.est[:, 0].round(6))) == 1


@pytest.mark.parametrize("law", LAWS)
def test_no_estimate_is_above_the_jobs_limit(law):
    jobs = Episode(SCENARIO, SEED).workload.jobs.copy()
    jobs["limit"][::2] = 50.0
    _, after, _, _ = applied(errors(law, sigma=0.5, trust=0.5), jobs=jobs)
    assert after.est[::2].max() == 50
    assert after.est[1::2].max() > 50


def test_laws_and_their_numbers_are_drawn_as_documented():
    rng = np.random.default_rng(0)
    drawn = [estimate_errors.draw(rng) for _ in range(2000)]
    laws = np.array([one.law for one in drawn])
    for law, share in {"noisy": 0.4, "regressed": 0.3, "limits": 0.2, "constant": 0.1}.items():
        off = 3 * (share * (1 - share) / 2000) ** 0.5
        assert np.mean(laws == law) == pytest.approx(share, abs=off)
    noisy = [one.sigma for one in drawn if one.law == "noisy"]
    assert 0.1 <= min(noisy) < 0.15 < 1.45 < max(noisy) <= 1.5
    assert max(one.sigma for one in drawn if one.law != "noisy") <= 0.6
    trusts = [one.trust for one in drawn]
    assert 0 <= min(trusts) < 0.05 < 0.85 < max(trusts) <= 0.9
    steps = [one.step for one in drawn]
    assert 1.2 <= min(steps) < 1.3 < 3.9 < max(steps) <= 4


def test_one_seed_gives_the_same_errors():
    def some(seed):
        rng = np.random.default_rng(seed)
        return [estimate_errors.draw(rng) for _ in range(10)]

    assert some(1) == some(1) != some(2)


def test_an_episode_with_errors_has_the_same_jobs_and_its_futures_have_the_same_errors():
    used = errors("regressed", trust=0.0)
    exact, wrong = Episode(SCENARIO, SEED), Episode(SCENARIO, SEED, used)
    assert np.array_equal(wrong.workload.seconds, exact.workload.seconds)
    assert np.array_equal(wrong.workload.jobs, exact.workload.jobs)
    assert not np.array_equal(wrong.workload.est, exact.workload.est)
    future = wrong.with_jobs_of(SEED + 1)
    assert np.array_equal(future.seconds, exact.with_jobs_of(SEED + 1).seconds)
    # With no trust in a job's own run time the estimates of a user's jobs of a type are all alike.
    assert len(np.unique(future.est[:, 0].round(6))) == 8
    assert np.array_equal(future.est, wrong.with_jobs_of(SEED + 1).est)
