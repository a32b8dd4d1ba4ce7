"""Drawn jobs follow the distributions of their scenario."""

import numpy as np
import pytest

from adlro.config.files import find_scenario
from adlro.model import job as job_types
from adlro.model.state import WHOLE
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.unit.workloads.test_generate import MANY, TYPES, drawn, of_type, shares

GANGS = {1: 0.72, 2: 0.15, 4: 0.09, 8: 0.04}
MEMORY = {8: 0.4, 16: 0.35, 32: 0.25}
CORES = {2: 0.4, 4: 0.4, 8: 0.2}
SMALL = {4: 0.5, 12: 0.4, 22: 0.06, 30: 0.04}


def constant_scenario(seconds):
    """The paper's scenario with jobs that are all of one size."""
    base = find_scenario("paper16")
    size = job_types.Constant(law="constant", seconds=seconds)
    types = tuple(t.model_copy(update={"size": size}) for t in base.types)
    return base.model_copy(update={"types": types, "jobs": MANY})


def test_the_papers_mix_of_job_types():
    kinds = shares(drawn(jobs=MANY).jobs["type"])
    assert kinds == pytest.approx({0: 0.35, 1: 0.40, 2: 0.25}, abs=0.01)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    ("column", "unit", "law"),
    [
        ("gpus", 1, dict.fromkeys(TYPES, GANGS)),
        ("cores", 1, {"simulation": CORES, "ml": CORES, "data": {4: 0.5, 8: 0.5}}),
        ("memory", 1024, dict.fromkeys(TYPES, MEMORY)),
        (
            "gpu_memory",
            1024,
            {"simulation": SMALL, "ml": {8: 0.5, 15: 0.3, 22: 0.12, 30: 0.08}, "data": SMALL},
        ),
    ],
)
def test_the_papers_demands(name, column, unit, law):
    workload = drawn(jobs=MANY)
    values = workload.jobs[column][of_type(workload, name)]
    expected = {value * unit: p for value, p in law[name].items()}
    assert shares(values) == pytest.approx(expected, abs=0.015)  # 3 sd of 10,000 draws at 1/2


def test_a_surge_adds_a_quarter_of_machine_learning_jobs_to_the_mix():
    # 0.25 + 0.75 x 0.40 = 0.55 are ML, 0.75 x 0.35 simulation, 0.75 x 0.25 data.
    workload = drawn("paper16-surge", jobs=MANY)
    kinds = shares(workload.jobs["type"])
    assert kinds == pytest.approx({0: 0.2625, 1: 0.55, 2: 0.1875}, abs=0.01)
    ml = workload.jobs[of_type(workload, "ml")]
    assert set(np.unique(ml["gpu_memory"] // 1024).tolist()) == {8, 15, 22, 30}


def test_demands_are_drawn_independently_of_each_other():
    jobs = drawn(jobs=MANY).jobs[of_type(drawn(jobs=MANY), "ml")]
    columns = ["gpus", "cores", "memory", "gpu_memory", "priority", "user", "requested", "arrival"]
    correlation = np.corrcoef([jobs[column].astype(float) for column in columns])
    assert np.abs(correlation - np.eye(len(columns))).max() < 0.04


@pytest.mark.parametrize(
    ("name", "median", "sigma"), [("simulation", 300, 1.0), ("ml", 400, 1.2), ("data", 120, 0.9)]
)
def test_the_papers_sizes(name, median, sigma):
    workload = drawn(jobs=MANY, noise=0.0)
    size = workload.seconds[of_type(workload, name), 0]  # on the V100, whose speed is 1
    low, middle, high = np.quantile(size, [0.1587, 0.5, 0.8413])
    assert middle == pytest.approx(median, rel=0.04)
    assert np.log([high / middle, middle / low]) == pytest.approx([sigma, sigma], rel=0.05)
    assert size.max() == pytest.approx(20 * median, rel=1e-12)  # the cap is reached


@pytest.mark.parametrize(
    ("name", "turing", "radeon"),
    [("simulation", 0.525, 0.839), ("ml", 0.803, 0.486), ("data", 0.70, 0.975)],
)
def test_the_papers_speeds_are_the_medians_of_what_is_drawn(name, turing, radeon):
    workload = drawn(jobs=MANY)
    seconds = workload.seconds[of_type(workload, name)]
    ratios = np.median(seconds[:, :1] / seconds, axis=0)
    assert ratios == pytest.approx([1, turing, radeon], rel=0.02)


def test_without_noise_a_job_takes_its_size_divided_by_the_speed():
    workload = drawn(jobs=MANY, noise=0.0)
    seconds = workload.seconds[of_type(workload, "ml")]
    assert seconds[:, 1] * 0.803 == pytest.approx(seconds[:, 0], rel=1e-12)
    assert seconds[:, 2] * 0.486 == pytest.approx(seconds[:, 0], rel=1e-12)


def test_speed_noise_is_lognormal_and_its_own_for_each_job_and_model():
    noise = np.log(drawn(jobs=MANY).seconds / drawn(jobs=MANY, noise=0.0).seconds)
    assert noise.mean(axis=0) == pytest.approx([0, 0, 0], abs=0.005)
    assert noise.std(axis=0) == pytest.approx([0.25, 0.25, 0.25], rel=0.02)
    assert np.corrcoef(noise.T) == pytest.approx(np.eye(3), abs=0.02)
    within = (np.abs(noise) < 0.25).mean()
    assert within == pytest.approx(0.6827, abs=0.005)  # a normal law, not just its width


def test_a_user_asks_for_one_to_five_times_the_need_in_whole_five_minutes():
    workload = drawn(jobs=MANY, noise=0.0)
    size, requested = workload.seconds[:, 0], workload.jobs["requested"]
    assert (requested % 300 == 0).all()
    assert (requested >= size).all()
    assert (requested < 5 * size + 300).all()


def test_what_a_user_asks_for_is_uniform_between_one_and_five_times_the_need():
    workload = generate(prepare(constant_scenario(3e6)), 0)
    times = workload.jobs["requested"] / 3e6
    assert np.quantile(times, [0, 0.25, 0.5, 0.75, 1]) == pytest.approx([1, 2, 3, 4, 5], abs=0.05)


@pytest.mark.parametrize(
    ("seconds", "requested"),
    [
        (1.0, {300}),
        (59.9, {300}),  # five times that is 299.5
        (300.0, {600, 900, 1200, 1500}),  # more than once and less than five times
    ],
)
def test_a_request_is_rounded_up(seconds, requested):
    workload = generate(prepare(constant_scenario(seconds)), 0)
    assert set(workload.jobs["requested"].tolist()) == requested


@pytest.mark.parametrize(("limit", "same"), [("kill", True), ("none", False)])
def test_a_limit_is_the_request_only_where_jobs_are_killed(limit, same):
    jobs = drawn(limit=limit).jobs
    expected = jobs["requested"] if same else np.full(len(jobs), np.inf)
    np.testing.assert_array_equal(jobs["limit"], expected)


def test_priorities_are_uniform_between_the_bounds_of_the_type():
    anywhere = drawn(jobs=MANY).jobs["priority"]
    quartiles = [0, 0.25, 0.5, 0.75, 1]
    assert np.quantile(anywhere, quartiles) == pytest.approx(quartiles, abs=0.02)
    hetero = drawn("hetero64", jobs=MANY).jobs
    inference = hetero["priority"][hetero["type"] == 2]
    bounds = [0.5, 0.625, 0.75, 0.875, 1]
    assert np.quantile(inference, quartiles) == pytest.approx(bounds, abs=0.02)


@pytest.mark.parametrize(
    ("skew", "first", "last"),
    [(1.0, 1 / 2.929, 0.1 / 2.929), (0.0, 0.1, 0.1), (2.0, 1 / 1.5498, 0.01 / 1.5498)],
)
def test_user_k_submits_in_proportion_to_one_over_k_to_the_skew(skew, first, last):
    # The sums of 1/k, 1 and 1/k^2 over ten users are 2.929, 10 and 1.5498.
    users = shares(drawn(jobs=MANY, user_skew=skew).jobs["user"])
    assert sorted(users) == list(range(10))
    assert (users[0], users[9]) == pytest.approx((first, last), abs=0.01)


def test_accounts_are_drawn_evenly():
    accounts = shares(drawn("datacenter", jobs=MANY).jobs["account"])
    assert accounts == pytest.approx(dict.fromkeys(range(4), 0.25), abs=0.01)


def test_what_a_type_says_once_holds_for_all_its_jobs():
    workload = drawn()
    jobs = workload.jobs
    assert set(jobs["share"].tolist()) == {WHOLE}
    assert set(jobs["communication"].tolist()) == {0.15}
    assert set(jobs["checkpoint"][of_type(workload, "ml")].tolist()) == {30}
    assert set(jobs["checkpoint"][of_type(workload, "data")].tolist()) == {-1}


@pytest.mark.parametrize(
    ("size", "odds"),
    [
        # P(size > s) = (60 / s)^1.5, all cut at 100 * 60
        (
            job_types.Pareto(law="pareto", minimum_s=60, alpha=1.5, cap=100),
            {60: 1, 120: 2**-1.5, 600: 10**-1.5, 5999: 100**-1.5, 6000: 0},
        ),
        # P(size > s) = exp(-s / 100)
        (
            job_types.Exponential(law="exponential", mean_s=100),
            {0: 1, 69.3147: 0.5, 100: np.exp(-1), 300: np.exp(-3)},
        ),
        # four fifths between 10 and 1,000 (half of them above 100), one fifth up to 10,000
        (
            job_types.LogUniform(law="log-uniform", borders_s=(10, 1000, 10_000), p=(0.8, 0.2)),
            {10: 1, 100: 0.6, 1000: 0.2, 10**3.5: 0.1, 10_000: 0},
        ),
        (job_types.Constant(law="constant", seconds=7), {6.99: 1, 7: 0}),
        (job_types.Lognormal(median_s=50, sigma=0), {49.99: 1, 50.01: 0}),
    ],
)
def test_sizes_follow_the_law_of_their_type(size, odds):
    base = find_scenario("paper16")
    types = tuple(t.model_copy(update={"size": size}) for t in base.types)
    scenario = base.model_copy(update={"types": types, "jobs": MANY, "noise": 0.0})
    drawn_sizes = generate(prepare(scenario), 0).seconds[:, 0]
    longer = {seconds: (drawn_sizes > seconds).mean() for seconds in odds}
    assert longer == pytest.approx(odds, abs=0.008)
