"""Workloads: the same bytes from the same seed; estimates, events and permitted pools."""

import zlib
from functools import cache

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario, shipped
from adlro.config.scenario import Scenario
from adlro.model.state import FAILURE, REPAIR, SPEED, WHOLE
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare

MANY = 40_000
TYPES = ["simulation", "ml", "data"]


@cache
def drawn(name="paper16", seed=0, **changes):
    """The workload of a shipped scenario with some keys changed; do not write to it."""
    scenario = adjusted(find_scenario(name), **changes)
    return generate(prepare(scenario), seed)


def of_type(workload, name):
    return workload.jobs["type"] == TYPES.index(name)


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
