"""The generator: the same bytes from the same seed, and the laws that the scenario states."""

import zlib
from functools import cache

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario, shipped
from adlro.config.scenario import Scenario
from adlro.model import job as job_types
from adlro.model.state import FAILURE, REPAIR, SPEED, WHOLE
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare

MANY = 40_000
TYPES = ["simulation", "ml", "data"]
GANGS = {1: 0.72, 2: 0.15, 4: 0.09, 8: 0.04}
MEMORY = {8: 0.4, 16: 0.35, 32: 0.25}
CORES = {2: 0.4, 4: 0.4, 8: 0.2}
SMALL = {4: 0.5, 12: 0.4, 22: 0.06, 30: 0.04}


@cache
def drawn(name="paper16", seed=0, **changes):
    """The workload of a shipped scenario with some keys changed; do not write to it."""
    scenario = adjusted(find_scenario(name), **changes)
    return generate(prepare(scenario), seed)


def of_type(workload, name):
    return workload.jobs["type"] == TYPES.index(name)


def constant_scenario(seconds):
    """The paper's scenario with jobs that are all of one size."""
    base = find_scenario("paper16")
    size = job_types.Constant(law="constant", seconds=seconds)
    types = tuple(t.model_copy(update={"size": size}) for t in base.types)
    return base.model_copy(update={"types": types, "jobs": MANY})


def shares(values):
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), (counts / len(values)).tolist(), strict=True))


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_same_seed_draws_the_same_bytes(name):
    setting = prepare(adjusted(find_scenario(name), jobs=300))
    first, second = generate(setting, 5), generate(setting, 5)
    assert [array.tobytes() for array in first] == [array.tobytes() for array in second]


@pytest.mark.parametrize("column", ["arrival", "type", "gpus", "priority", "requested", "user"])
def test_another_seed_draws_other_jobs(column):
    assert drawn(seed=0).jobs[column].tolist() != drawn(seed=1).jobs[column].tolist()


def test_another_seed_draws_other_noise_and_other_estimates():
    one, other = (drawn(seed=seed, estimates="noisy:0.5") for seed in (0, 1))
    assert (one.seconds != other.seconds).all()
    assert (one.est / one.seconds != other.est / other.seconds).all()


def test_a_seed_draws_what_it_always_drew():
    # A golden sample of seed 0: every published number hangs on these streams.
    workload = drawn(seed=0)
    jobs = workload.jobs
    assert jobs["type"][:8].tolist() == [2, 1, 2, 2, 0, 0, 2, 0]
    assert jobs["gpus"][:8].tolist() == [1, 1, 1, 1, 1, 1, 2, 1]
    assert jobs["requested"][:2].tolist() == [900, 300]
    assert jobs["gpu_memory"][:2].tolist() == [4096, 15360]
    assert jobs["user"][:2].tolist() == [3, 0]
    assert jobs["priority"][:2] == pytest.approx([0.02710385, 0.57244883], rel=1e-6)
    assert jobs["arrival"][:2] == pytest.approx([55.6835685, 139.1842907], rel=1e-6)
    assert workload.seconds[0] == pytest.approx([161.0276160, 216.1381052, 182.7108830], rel=1e-8)


@pytest.mark.parametrize(
    ("name", "sum_of_old"),
    [
        ("paper16", 995881015),
        ("paper16-surge", 2232525670),
        ("hetero64", 3179253041),
        ("datacenter", 3161280130),
    ],
)
def test_demands_are_those_of_the_first_release(name, sum_of_old):
    # Whole numbers only, which are the same on every machine; seconds hang on its mathematics.
    columns = ["type", "gpus", "share", "cores", "memory", "gpu_memory", "user", "account"]
    jobs = drawn(name).jobs
    assert zlib.crc32(np.stack([jobs[column] for column in columns]).tobytes()) == sum_of_old


@pytest.mark.parametrize("name", ["paper16", "hetero64", "datacenter"])
def test_a_higher_load_meets_the_same_jobs_only_sooner(name):
    slow, fast = (drawn(name, load=load, jobs=400) for load in (0.4, 0.9))
    columns = [column for column in slow.jobs.dtype.names if column != "arrival"]
    assert slow.jobs[columns].tolist() == fast.jobs[columns].tolist()
    assert slow.seconds.tobytes() == fast.seconds.tobytes()
    assert slow.allowed.tobytes() == fast.allowed.tobytes()
    assert fast.jobs["arrival"][-1] < slow.jobs["arrival"][-1]


@pytest.mark.parametrize(("load", "factor"), [(0.4, 2), (0.8, 1), (1.6, 0.5), (0.5, 1.6)])
def test_poisson_arrivals_scale_exactly_with_the_load(load, factor):
    arrival = drawn(load=0.8).jobs["arrival"]
    assert drawn(load=load).jobs["arrival"] == pytest.approx(arrival * factor, rel=1e-14)


def test_noise_leaves_the_jobs_alone_and_estimates_leave_the_truth_alone():
    plain, quiet, unsure = drawn(), drawn(noise=0.0), drawn(estimates="noisy:0.5")
    columns = [column for column in plain.jobs.dtype.names if column != "arrival"]
    assert plain.jobs[columns].tolist() == quiet.jobs[columns].tolist()  # the rate differs
    assert plain.jobs.tobytes() == unsure.jobs.tobytes()
    assert plain.seconds.tobytes() == unsure.seconds.tobytes()


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


def test_an_oracle_knows_the_truth():
    workload = drawn()
    np.testing.assert_array_equal(workload.est, workload.seconds)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0])
def test_noisy_estimates_err_by_the_asked_spread_and_a_little_more_by_model(sigma):
    workload = drawn(jobs=MANY, estimates=f"noisy:{sigma}")
    error = np.log(workload.est / workload.seconds)
    assert error.mean(axis=0) == pytest.approx([0, 0, 0], abs=0.03 * sigma)
    # Common to all models: sigma; each model's own: 0.3 sigma.
    assert error.std(axis=0) == pytest.approx([sigma * 1.09**0.5] * 3, rel=0.02)
    apart = (error[:, 0] - error[:, 1]).std()
    assert apart == pytest.approx(0.3 * sigma * 2**0.5, rel=0.02)


def test_estimates_err_independently_of_the_speed_noise():
    unsure, quiet = drawn(jobs=MANY, estimates="noisy:0.5"), drawn(jobs=MANY, noise=0.0)
    error = np.log(unsure.est / unsure.seconds).mean(axis=1)
    noise = np.log(unsure.seconds / quiet.seconds)
    same_job = [np.corrcoef(error, noise[:, m])[0, 1] for m in range(3)]
    same_draw = np.corrcoef(error, noise.ravel()[:MANY])[0, 1]  # as if of one random stream
    assert [*same_job, same_draw] == pytest.approx([0] * 4, abs=0.02)


@pytest.mark.parametrize("estimates", ["oracle", "noisy:0.5", "request"])
def test_no_estimate_is_longer_than_the_limit_at_which_a_job_is_killed(estimates):
    free, cut = drawn(estimates=estimates), drawn(estimates=estimates, limit="kill")
    expected = np.minimum(free.est, free.jobs["requested"][:, None])
    np.testing.assert_array_equal(cut.est, expected)
    np.testing.assert_array_equal(cut.seconds, free.seconds)


def test_estimates_by_request_follow_what_the_user_asked_for_and_the_speed():
    workload = drawn(estimates="request")
    ml = of_type(workload, "ml")
    requested = workload.jobs["requested"][ml]
    expected = np.stack([requested, requested / 0.803, requested / 0.486], axis=1)
    assert workload.est[ml] == pytest.approx(expected, rel=1e-12)


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


def test_what_nobody_asked_for_is_off():
    workload = drawn()
    jobs = workload.jobs
    assert set(jobs["interval"].tolist()) == {np.inf}
    assert set(jobs["least_run"].tolist()) == {0}
    assert (len(workload.events), len(workload.demands), workload.readings.shape) == (0, 0, (0, 0))


def rough(**changes):
    """The paper's scenario with slices, saves, failures and so on, or only what is given."""
    base = find_scenario("paper16-single").model_dump()
    everything = {
        "failures": {"mtbf_h": 5, "repair_h": 1},
        "changes": [{"kind": "wear", "count": 3, "to_h": 2, "speed": 0.5}],
        "least_run_s": 60,
        "placement": "fgd",
        "telemetry": True,
        "colocation": [{"types": ["ml", "data"], "slowdown": [1.3, 1.1]}],
    }
    types = list(base["types"])
    types[1] = {**types[1], "checkpoint_every_s": 700, **changes.pop("ml", {})}
    scenario = Scenario.model_validate(
        {**base, **everything, **changes, "types": types, "jobs": 2000}
    )
    return prepare(scenario)


def test_whatever_goes_wrong_the_jobs_are_the_same():
    calm = drawn("paper16-single", jobs=2000)
    for_one = generate(rough(), 0)
    columns = [name for name in calm.jobs.dtype.names if name not in ("interval", "least_run")]
    rest = [name for name in columns if name != "arrival"]  # failures lower the capacity
    assert calm.jobs[rest].tolist() == for_one.jobs[rest].tolist()
    assert calm.seconds.tobytes() == for_one.seconds.tobytes()
    assert calm.allowed.tobytes() == for_one.allowed.tobytes()
    reliable = generate(rough(failures=None), 0)
    assert calm.jobs[columns].tolist() == reliable.jobs[columns].tolist()


def test_slices_leave_all_other_draws_alone():
    calm = drawn("paper16-single", jobs=2000, load=0.8)
    sliced = generate(rough(ml={"gpu_share": {"values": [0.3, 1], "p": [0.5, 0.5]}}), 0)
    others = ("arrival", "interval", "least_run", "share")
    columns = [name for name in calm.jobs.dtype.names if name not in others]
    assert calm.jobs[columns].tolist() == sliced.jobs[columns].tolist()
    assert shares(sliced.jobs["share"][of_type(sliced, "ml")]) == pytest.approx(
        {300: 0.5, 1000: 0.5}, abs=0.06
    )
    assert set(sliced.jobs["share"][~of_type(sliced, "ml")].tolist()) == {WHOLE}


def test_shares_are_drawn_independently_of_all_else():
    share = {"gpu_share": {"values": [0.3, 1], "p": [0.5, 0.5]}}
    workload = generate(rough(ml=share, accounts=["a", "b"]), 0)
    jobs = workload.jobs[of_type(workload, "ml")]
    columns = ["cores", "memory", "gpu_memory", "priority", "user", "account", "requested"]
    rows = [jobs[column].astype(float) for column in ("share", *columns)]
    assert np.abs(np.corrcoef(rows)[0, 1:]).max() < 0.12  # 800 jobs: 3.4 sd


@pytest.mark.parametrize(
    ("share", "thousandths"), [(0.0006, 1), (1 / 3, 333), (0.9996, 1000), (0.1, 100)]
)
def test_a_share_is_rounded_to_thousandths(share, thousandths):
    workload = generate(rough(ml={"gpu_share": share}), 0)
    assert set(workload.jobs["share"][of_type(workload, "ml")].tolist()) == {thousandths}


def test_saves_and_the_least_run_are_those_of_the_scenario():
    workload = generate(rough(), 0)
    jobs = workload.jobs
    assert set(jobs["interval"][of_type(workload, "ml")].tolist()) == {700}
    assert set(jobs["interval"][~of_type(workload, "ml")].tolist()) == {np.inf}
    assert set(jobs["least_run"].tolist()) == {60}


def test_a_workload_carries_what_does_not_depend_on_the_seed():
    setting = rough()
    one, other = generate(setting, 0), generate(setting, 1)
    assert one.colocation is other.colocation is setting.colocation
    assert one.demands is setting.placement
    assert one.readings is setting.readings
    assert one.events.tobytes() != other.events.tobytes()


@pytest.mark.parametrize("jobs", [400, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_a_run_of_the_rough_scenario_meets_several_of_everything(jobs, seed):
    workload = drawn("rough64", seed=seed, jobs=jobs)
    while_jobs_arrive = workload.events["time"] <= workload.jobs["arrival"][-1]
    events = workload.events[while_jobs_arrive]
    random = (events["kind"] == FAILURE) & (events["value"] == 0)
    assert random.sum() >= 2
    assert (events["kind"] == REPAIR).sum() >= 2
    assert (events["kind"] == SPEED).sum() >= 20
    assert (events["heat"] > 0).any()
    assert (events["type"] >= 0).any()
    assert set(workload.jobs["share"].tolist()) == {100, 200, 250, 500, 1000}


@pytest.mark.parametrize(
    ("gpus", "gpu_memory_gb", "pools"),
    [
        (1, 4, [True, True, True]),
        (4, 15, [True, True, True]),
        (1, 22, [True, True, False]),  # 16 GB on a Radeon
        (2, 30, [True, False, False]),  # 24 GB on a Turing
        (8, 8, [True, False, False]),  # four GPUs in each of the small pools
    ],
)
def test_a_job_may_run_where_its_gang_and_its_gpu_memory_fit(gpus, gpu_memory_gb, pools):
    workload = drawn(jobs=MANY)
    jobs = workload.jobs
    alike = (jobs["gpus"] == gpus) & (jobs["gpu_memory"] == gpu_memory_gb * 1024)
    assert alike.any()
    assert (workload.allowed[alike] == pools).all()


def test_a_list_of_models_and_partitions_keeps_a_type_off_the_others():
    base = find_scenario("paper16")
    picky = base.types[1].model_copy(update={"models": ("V100", "RTX 6000")})
    scenario = base.model_copy(update={"types": (base.types[0], picky, base.types[2])})
    workload = generate(prepare(scenario), 0)
    ml = of_type(workload, "ml")
    assert not workload.allowed[ml, 2].any()
    assert workload.allowed[~ml, 2].any()


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_job_may_run_somewhere_and_arrives_after_the_one_before(name):
    workload = drawn(name, jobs=2000)
    assert workload.allowed.any(axis=1).all()
    assert (np.diff(workload.jobs["arrival"]) >= 0).all()
    assert (workload.seconds > 0).all()


@pytest.mark.parametrize(
    ("changes", "models"),
    [
        ({}, (0, 1, 2)),  # the paper's map: Volta, Turing, Radeon
        ({"affinity": {}}, (0, 0, 0)),  # else where the type is fastest
        ({"affinity": {"ml": "Radeon Pro VII"}}, (0, 2, 0)),
    ],
)
def test_each_type_has_the_gpu_model_of_the_map_or_else_its_fastest(changes, models):
    scenario = adjusted(find_scenario("paper16"), **changes)
    assert prepare(scenario).affinity == models


def test_the_rate_is_the_load_times_the_capacity():
    setting = prepare(adjusted(find_scenario("paper16"), load=0.5))
    assert setting.rate == 0.5 * setting.capacity_per_s


def test_the_lp_gives_every_type_some_pool_that_it_may_use():
    setting = prepare(find_scenario("hetero64"))
    assert setting.type_shares.sum(axis=1) == pytest.approx(np.ones(4))
    assert (setting.type_shares[~setting.lists] == 0).all()


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
