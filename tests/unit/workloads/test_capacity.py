"""The capacity LP: solved by hand, checked against drawn jobs, and true to its word in a run."""

import itertools
import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.stats import norm

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.model.cluster import Cluster, NodeGroup, lay_out
from adlro.model.job import Constant, Exponential, JobType, Lognormal, LogUniform, Pareto
from adlro.policies import registry
from adlro.sim import simulator
from adlro.sim.world import EmptyCluster
from adlro.workloads import capacity
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.scenario_files import refusal
from tests.worlds import nodes


def scenario(groups, *types, **more):
    named = [NodeGroup(name=f"group{i}", **group) for i, group in enumerate(groups)]
    return Scenario(name="small", cluster=Cluster(nodes=named), types=types, **more)


def job_type(name="t", seconds=100, share=1.0, **more):
    """A type of constant size, as fast on a T4 as on a V100 unless told otherwise."""
    more = {
        "speed": {"V100": 1, "T4": 1},
        "size": Constant(law="constant", seconds=seconds),
        **more,
    }
    return JobType(name=name, share=share, **more)


def jobs_per_s(*arguments, **more):
    return prepare(scenario(*arguments, **more)).capacity_per_s


def test_one_class_on_one_pool_is_served_by_all_its_gpus():
    # 4 GPUs, 10 GPU-seconds a job: 0.4 jobs a second.
    one = np.ones(1)
    answer = capacity.solve(one, np.array([[10.0]]), np.array([[True]]), np.array([4.0]))
    assert answer.jobs_per_s == pytest.approx(0.4)
    assert answer.shares == pytest.approx(np.array([[1.0]]))


def test_two_classes_go_where_they_are_comparatively_fast():
    # Class 0 takes 1 s on pool 0 and 4 s on pool 1, class 1 takes 2 s on both: class 0 belongs to
    # pool 0. With a share y of class 1 there too, the pools are busy 1/2 + y and 1 - y seconds a
    # job: y = 1/4, 3/4 s each, so 4/3 jobs a second.
    answer = capacity.solve(
        np.array([0.5, 0.5]),
        np.array([[1.0, 4.0], [2.0, 2.0]]),
        np.ones((2, 2), np.bool_),
        np.array([1.0, 1.0]),
    )
    assert answer.jobs_per_s == pytest.approx(4 / 3)
    assert answer.shares == pytest.approx(np.array([[1, 0], [0.25, 0.75]]))


def test_a_gpu_is_worth_what_it_does_for_the_load():
    # One class, 10 s on pool 0 and 20 s on pool 1: a GPU of pool 0 does as much as two of pool 1,
    # however many there are. Nobody may use pool 2: it is worth nothing.
    seconds, may = np.array([[10.0, 20.0, 5.0]]), np.array([[True, True, False]])
    answer = capacity.solve(np.array([1.0]), seconds, may, np.array([4.0, 2.0, 8.0]))
    assert answer.prices == pytest.approx([1, 0.5, 0])


def test_a_class_stays_off_the_pools_that_it_may_not_use():
    # All of class 0 on pool 1: 0.5 x 4 = 2 s a job, and class 1 on pool 0: 1 s. So 1/2 a second.
    answer = capacity.solve(
        np.array([0.5, 0.5]),
        np.array([[1.0, 4.0], [2.0, 2.0]]),
        np.array([[False, True], [True, True]]),
        np.array([1.0, 1.0]),
    )
    assert answer.jobs_per_s == pytest.approx(1 / 2)
    assert answer.shares[0] == pytest.approx([0, 1])


def test_a_scenario_of_two_types_and_two_pools_is_the_same_lp():
    # As above with 4 GPUs in each pool and a hundred times the seconds: 4 / 75 jobs a second.
    groups = [nodes("V100", 4), nodes("T4", 4)]
    slow = job_type("slow", 100, 0.5, speed={"V100": 1, "T4": 0.25})
    even = job_type("even", 200, 0.5)
    assert jobs_per_s(groups, slow, even) == pytest.approx(4 / 75)
    assert prepare(scenario(groups, slow, even)).type_shares == pytest.approx(
        np.array([[1, 0], [0.25, 0.75]])
    )


@pytest.mark.parametrize(("shares", "expected"), [((0.5, 0.5), 4 / 150), ((0.2, 0.6), 4 / 175)])
def test_shares_are_scaled_to_add_up_to_one(shares, expected):
    # One pool of 4: 0.5 x 100 + 0.5 x 200 = 150, or 0.25 x 100 + 0.75 x 200 = 175 s a job.
    types = job_type("a", 100, shares[0]), job_type("b", 200, shares[1])
    assert jobs_per_s([nodes("V100", 4)], *types) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gpus", "communication", "expected"),
    [
        (4, 0.15, 8 / 400),  # two at a time, each on one node
        (8, 0.0, 8 / 800),
        (8, 0.15, 8 / 920),  # it spans both nodes: 100 s x 1.15 on 8 GPUs
    ],
)
def test_a_gang_that_must_span_nodes_takes_longer(gpus, communication, expected):
    kind = job_type(gpus=gpus, communication=communication)
    assert jobs_per_s([nodes("V100", 4, 2)], kind) == pytest.approx(expected)


@pytest.mark.parametrize("noise", [0.0, 0.25, 1.0])
def test_speed_noise_makes_jobs_longer_on_average(noise):
    # The mean of 1 / lognormal(noise) is exp(noise^2 / 2).
    expected = 4 / 100 / math.exp(noise**2 / 2)
    assert jobs_per_s([nodes("V100", 4)], job_type(), noise=noise) == pytest.approx(expected)


@pytest.mark.parametrize(("large", "expected"), [(0.5, 1 / 50), (0.2, 1 / 50), (0.8, 1 / 80)])
def test_jobs_that_need_a_large_gpu_can_be_what_limits(large, expected):
    # A 30 GB job runs on the V100 only. Up to half of them, the T4 takes as much as the V100: 50 s
    # of each 100; with 80 % of them the V100 is busy 80 s a job.
    memory = {"values": (30, 4), "p": (large, 1 - large)}
    kind = job_type(gpu_memory_gb=memory)
    assert jobs_per_s([nodes("V100"), nodes("T4")], kind) == pytest.approx(expected)


def test_the_papers_capacity_is_that_of_the_jobs_it_draws():
    # The same LP written the other way round (as many jobs as possible, no pool over-full), over
    # 40,000 drawn jobs in groups that may run on the same pools.
    setting = prepare(adjusted(find_scenario("paper16"), jobs=40_000))
    workload = generate(setting, 0)
    pools = setting.pools
    factor = np.where(workload.jobs["gpus"][:, None] > 4, 1.15, 1.0)
    work = workload.seconds[:, pools["model"]] * workload.jobs["gpus"][:, None] * factor
    keys, group = np.unique(
        np.column_stack([workload.jobs["type"], workload.jobs["gpus"], workload.allowed]),
        axis=0,
        return_inverse=True,
    )
    size = np.bincount(group.ravel())
    total = np.array([np.bincount(group.ravel(), work[:, p]) for p in range(3)]).T  # [C, P]
    count = len(keys) * 3
    busy, whole = np.zeros((3, count + 1)), np.zeros((len(keys), count + 1))
    for c in range(len(keys)):
        busy[range(3), c * 3 + np.arange(3)] = total[c] / size[c]
        whole[c, c * 3 : c * 3 + 3] = keys[c, 2:]
        whole[c, -1] = -size[c] / size.sum()
    best = linprog([0] * count + [-1], busy, pools["gpus"], whole, np.zeros(len(keys)))
    assert setting.capacity_per_s == pytest.approx(-best.fun, rel=0.03)


def tail_of(size):
    """P(size > s) without the cap, and the cap in seconds."""
    if isinstance(size, Lognormal):
        return lambda s: norm.sf(math.log(s / size.median_s) / size.sigma), size.cap * size.median_s
    return lambda s: min(1, (size.minimum_s / s) ** size.alpha), size.cap * size.minimum_s


@pytest.mark.parametrize(
    "size",
    [
        Lognormal(median_s=300, sigma=1.0, cap=20),
        Lognormal(median_s=400, sigma=1.2, cap=2),
        Lognormal(median_s=50, sigma=0.3, cap=1.05),
        Pareto(law="pareto", minimum_s=60, alpha=1.3, cap=200),
        Pareto(law="pareto", minimum_s=60, alpha=1.0, cap=200),
        Pareto(law="pareto", minimum_s=60, alpha=0.5, cap=10),
    ],
)
def test_the_mean_of_a_capped_size_is_the_integral_of_its_tail(size):
    tail, cap = tail_of(size)
    steps = np.linspace(0, cap, 41)
    mean = math.fsum(quad(tail, low, high)[0] for low, high in itertools.pairwise(steps))
    assert capacity.mean_size(size) == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize(
    ("size", "mean"),
    [
        (Exponential(law="exponential", mean_s=70), 70),
        (Constant(law="constant", seconds=7), 7),
        (Lognormal(median_s=9, sigma=0), 9),
        (LogUniform(law="log-uniform", borders_s=(1, math.e), p=(1,)), math.e - 1),
        # a quarter between 1 and e, three quarters between e and e^3: (e^3 - e) / 2 on average
        (
            LogUniform(law="log-uniform", borders_s=(1, math.e, math.e**3), p=(0.25, 0.75)),
            0.25 * (math.e - 1) + 0.375 * (math.e**3 - math.e),
        ),
    ],
)
def test_the_mean_of_a_size_without_a_cap(size, mean):
    assert capacity.mean_size(size) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("name", ["paper16", "hetero64", "datacenter"])
def test_the_mean_of_what_is_drawn_is_the_mean_size(name):
    setting = prepare(adjusted(find_scenario(name), jobs=200_000, noise=0.0))
    workload = generate(setting, 0)
    size = workload.seconds[:, 0] * setting.speeds[workload.jobs["type"], 0]
    kinds = range(len(setting.scenario.types))
    drawn = [size[workload.jobs["type"] == t].mean() for t in kinds]
    means = [capacity.mean_size(kind.size) for kind in setting.scenario.types]
    assert drawn == pytest.approx(means, rel=0.03)


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        ({"gpus": 9}, "a job of 9 GPUs with 1 cores, 0 GB and 0 GB of GPU memory each"),
        ({"cores": 17}, "a job of 1 GPUs with 17 cores, 0 GB and 0 GB of GPU memory each"),
        ({"memory_gb": 65}, "a job of 1 GPUs with 1 cores, 65 GB and 0 GB of GPU memory each"),
        ({"gpu_memory_gb": 33}, "a job of 1 GPUs with 1 cores, 0 GB and 33 GB of GPU memory each"),
        ({"gpus": 4, "cores": 9}, "a job of 4 GPUs with 9 cores, 0 GB and 0 GB of GPU memory each"),
        ({"models": ("T4",)}, "a job of 1 GPUs with 1 cores"),
        ({"gpus": {"values": (1, 9), "p": (0.99, 0.01)}}, "a job of 9 GPUs with 1 cores"),
    ],
)
def test_a_job_that_no_node_can_hold_is_named_with_its_demand(demand, said):
    small = scenario([nodes("V100", 4, 2, cores=16, memory_gb=64)], job_type("big", **demand))
    with pytest.raises(ConfigError) as caught:
        prepare(small)
    message = str(caught.value)
    assert message.splitlines() == [message]
    assert message.startswith("scenario small: types.big: ")
    assert said in message


def test_a_partition_without_nodes_is_named():
    small = scenario([nodes("V100", 4, partition="west")], job_type("big", partitions=("wst",)))
    assert refusal(prepare, small) == (
        "scenario small: types.big.partitions: no node is in 'wst'; did you mean 'west'?"
    )


def test_a_type_may_use_a_pool_if_they_share_a_partition():
    groups = [
        nodes("V100", partitions=["gpu", "long"]),
        nodes("T4", partitions=["gpu"]),
        nodes("A100", partitions=["long", "debug"]),
    ]
    kinds = [
        job_type("a", partitions=("gpu",)),
        job_type("b", partitions=("debug", "gpu")),
        job_type("c", partitions=("long",)),
        job_type("d"),
    ]
    both = scenario(groups, *kinds)
    assert capacity.permitted(both, lay_out(both.cluster)).tolist() == [
        [True, True, False],
        [True, True, True],
        [True, False, True],
        [True, True, True],
    ]


@pytest.mark.parametrize("demand", [{"memory_gb": 1e9}, {"cores": 10**12}, {"gpus": 10**12}])
def test_a_demand_larger_than_can_be_counted_is_refused_in_words(demand):
    with pytest.raises((ConfigError, ValidationError)):
        jobs_per_s([nodes("V100", 4)], job_type(**demand))


def test_a_demand_that_is_never_drawn_need_not_fit():
    kind = job_type(gpus={"values": (1, 9), "p": (1, 0)})
    assert jobs_per_s([nodes("V100", 4)], kind) == pytest.approx(4 / 100)


@pytest.mark.parametrize(
    "demand", [{"gpus": 4}, {"cores": 16}, {"memory_gb": 64}, {"gpu_memory_gb": 32}]
)
def test_a_job_may_take_all_that_there_is(demand):
    # 4 GPUs of 32 GB, 16 cores and 64 GB on one node; to the LP only GPUs are scarce.
    groups = [nodes("V100", 4, cores=16, memory_gb=64)]
    rate = jobs_per_s(groups, job_type(**demand))
    assert rate == pytest.approx(4 / 100 / demand.get("gpus", 1))


def test_a_gang_fits_a_pool_only_node_by_node():
    # 16 cores a node: three GPUs of 5 cores. Six fit the two nodes, seven do not.
    groups = [nodes("V100", 4, 2, cores=16)]
    assert jobs_per_s(groups, job_type(gpus=6, cores=5)) > 0
    with pytest.raises(ConfigError, match="a job of 7 GPUs with 5 cores"):
        jobs_per_s(groups, job_type(gpus=7, cores=5))


def test_a_speed_that_the_type_does_not_give_is_asked_for():
    kind = job_type(speed={"T4": 1})
    with pytest.raises(ConfigError, match=r"^types\.t\.speed says nothing of 'V100 32GB'; add it"):
        jobs_per_s([nodes("V100")], kind)


def test_a_speed_of_the_users_own_goes_before_the_catalogue():
    groups = [nodes("V100"), nodes("RTX 6000")]
    own = scenario(groups, job_type(kind="ml", speed={"Quadro RTX 6000": 2.5}))
    speeds = capacity.type_speeds(own, prepare(own).layout)
    assert speeds == pytest.approx(np.array([[1.0, 2.5]]))


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.25, 16 / 100), (1, 4 / 100), ({"values": (0.25, 0.75), "p": (0.5, 0.5)}, 8 / 100)],
)
def test_a_slice_weighs_its_share_of_a_gpu(share, expected):
    kind = job_type(gpu_share=share)
    assert jobs_per_s([nodes("V100", 4)], kind) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        ((), 6.4 / 100),  # 80 % of 8 GPUs
        (("group0",), 7.2 / 100),
        (("group1",), 7.2 / 100),
    ],
)
def test_nodes_that_fail_count_for_as_long_as_they_are_up(failing, expected):
    failures = {"mtbf_h": 8, "repair_h": 2, "nodes": failing}
    rate = jobs_per_s([nodes("V100", 4), nodes("T4", 4)], job_type(), failures=failures)
    assert rate == pytest.approx(expected)


def test_nodes_that_join_or_leave_count_in_full():
    groups = [nodes("V100", 4), nodes("V100", 4, joins_h=99), nodes("V100", 4, leaves_h=1)]
    assert jobs_per_s(groups, job_type()) == pytest.approx(12 / 100)


@pytest.mark.parametrize(
    ("demand", "what"),
    [
        ({"gpu_memory_gb": 33}, "1 cores, 0 GB and 33 GB of GPU memory"),
        ({"cores": 17}, "17 cores, 0 GB and 0 GB of GPU memory"),
        ({"memory_gb": 65}, "1 cores, 65 GB and 0 GB of GPU memory"),
    ],
)
def test_a_slice_that_fits_no_gpu_is_named_with_its_demand(demand, what):
    kind = job_type("thin", gpu_share=0.125, **demand)
    small = scenario([nodes("V100", 4, cores=16, memory_gb=64)], kind)
    assert refusal(prepare, small) == (
        f"scenario small: types.thin: a slice of 0.125 GPU with {what} each fits no pool of the "
        "cluster, even empty; lower the demand or add such nodes"
    )


@pytest.mark.parametrize(
    ("groups", "demand"),
    [
        ([nodes("T4", 4), nodes("V100", 4, leaves_h=5)], {"gpu_memory_gb": 30}),
        ([nodes("V100", 4), nodes("V100", 4, leaves_h=5)], {"gpus": 8}),
        ([nodes("T4", 4), nodes("V100", 4, leaves_h=5)], {"models": ("V100",)}),
        ([nodes("V100", 4, cores=8), nodes("V100", 4, leaves_h=5)], {"gpu_share": 0.5, "cores": 9}),
    ],
)
def test_a_job_that_fits_only_nodes_that_leave_is_refused_with_the_reason(groups, demand):
    message = refusal(prepare, scenario(groups, job_type("big", **demand)))
    assert message.startswith("scenario small: types.big: a ")
    assert "fits only while nodes are there that leave (leaves_h); lower the demand" in message


def test_a_job_that_fits_only_nodes_that_join_late_may_wait_for_them():
    groups = [nodes("T4", 4), nodes("V100", 4, joins_h=5)]
    assert jobs_per_s(groups, job_type(gpu_memory_gb=30)) == pytest.approx(4 / 100)


def test_a_gang_may_not_count_on_nodes_that_leave_unless_the_whole_pool_does():
    # V100: one node stays and one leaves; T4: both leave; A100: two stay.
    groups = [
        nodes("V100", 4),
        nodes("V100", 4, leaves_h=5),
        nodes("T4", 4, 2, leaves_h=5),
        nodes("A100", 4, 2),
    ]
    kind = job_type(gpus={"values": (4, 8), "p": (0.5, 0.5)}, kind="ml", speed={})
    setting = prepare(scenario(groups, kind, jobs=50))
    workload = generate(setting, 0)
    large = workload.jobs["gpus"] == 8
    assert (workload.allowed[large] == [False, True, True]).all()
    assert workload.allowed[~large].all()


def test_nothing_is_bound_for_good_to_a_pool_whose_nodes_all_leave():
    # The V100 is the faster one, but it goes.
    groups = [nodes("T4", 4), nodes("V100", 4, leaves_h=5)]
    kind = job_type(speed={"T4": 1, "V100": 9})
    setting = prepare(scenario(groups, kind, affinity={"t": "V100"}))
    assert setting.affinity == (0,)
    assert setting.type_shares.tolist() == [[1, 0]]


def mean_jct(load, jobs):
    """Seconds from arrival to end under min-min, over four seeds; gangs of one GPU waste none."""
    setting = prepare(adjusted(find_scenario("paper16-single"), load=load, jobs=jobs))
    empty = EmptyCluster(setting.layout.pools, setting.layout.nodes, setting.layout.gpus)
    policy = registry.load("min-min", setting)
    means = []
    for seed in range(4):
        workload = generate(setting, seed)
        outcome = simulator.run(empty, workload, policy, seed).outcome
        means.append((outcome["finish"] - workload.jobs["arrival"]).mean())
    return np.mean(means)


@pytest.mark.parametrize("load", [0.8, 0.95])
def test_below_capacity_the_mean_completion_time_settles(load):
    short, middle, long = (mean_jct(load, jobs) for jobs in (500, 2000, 8000))
    assert middle < 1.15 * short
    assert long < 1.15 * middle


def test_above_capacity_the_mean_completion_time_grows_with_the_number_of_jobs():
    short, middle, long = (mean_jct(1.2, jobs) for jobs in (500, 2000, 8000))
    assert middle > 1.3 * short
    assert long > 1.8 * middle
