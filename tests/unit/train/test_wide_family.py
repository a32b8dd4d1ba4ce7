"""Scenarios drawn from scratch: within the ranges of docs/training.md, and feasible."""

import numpy as np
import pytest

from adlro.errors import ConfigError
from adlro.evaluate.metrics import fastest_possible
from adlro.train import wide_family
from adlro.train.wide_family import SMALL, WHOLE, draw
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare

COUNT = 60


def drawn(seeds, most=WHOLE):
    return [draw(np.random.default_rng(seed), most) for seed in seeds]


@pytest.fixture(scope="module", params=[WHOLE, SMALL], ids=["whole", "small"])
def family(request):
    """The largest that is drawn, and scenarios."""
    return request.param, drawn(range(COUNT), request.param)


@pytest.fixture(scope="module")
def scenarios(family):
    return family[1]


def types(scenarios):
    return [job_type for scenario in scenarios for job_type in scenario.types]


def gpus(nodes):
    return sum(group.count * group.gpus for group in nodes)


def about(share, among):
    """A share of random draws, within three standard deviations."""
    return pytest.approx(share, abs=3 * (share * (1 - share) / among) ** 0.5)


def test_one_seed_gives_the_same_scenarios_and_another_does_not():
    first = drawn(range(5))
    assert drawn(range(5)) == first
    assert all(a != b for a, b in zip(first, drawn(range(5, 10)), strict=True))


def test_clusters_have_8_to_2048_gpus_or_up_to_96_in_one_to_eight_pools(family):
    most, scenarios = family
    assert most == ((2048, 3000) if most is WHOLE else (96, 600))
    sizes = np.array([gpus(scenario.cluster.nodes) for scenario in scenarios])
    assert sizes.min() >= 8
    assert most.gpus / 3 < sizes.max() <= most.gpus
    assert np.median(sizes) < most.gpus / 3  # most are small
    pools = {len(scenario.cluster.nodes) for scenario in scenarios}
    assert min(pools) == 1
    assert 6 <= max(pools) <= 8
    groups = [group for scenario in scenarios for group in scenario.cluster.nodes]
    assert {group.gpus for group in groups} == {1, 2, 4, 8}
    assert len({group.gpu for group in groups}) == 16


def test_sizes_are_off_by_no_more_than_rounding_to_whole_nodes():
    # A pool is off by at most half a node of 8 GPUs, and a tiny one has one node.
    rng = np.random.default_rng(0)
    clusters = [wide_family._cluster(rng, SMALL.gpus)["nodes"] for _ in range(1000)]
    for nodes in clusters:
        total = sum(one["count"] * one["gpus"] for one in nodes)
        slack = sum(one["gpus"] if one["count"] == 1 else one["gpus"] / 2 for one in nodes)
        assert 8 - slack <= total <= SMALL.gpus + slack
        assert min(one["count"] for one in nodes) >= 1
        assert len({one["gpu"] for one in nodes}) == len(nodes)


def test_episodes_have_300_to_3000_jobs_or_up_to_600_and_three_for_each_gpu_if_they_may(family):
    most, scenarios = family
    jobs = np.array([scenario.jobs for scenario in scenarios])
    assert jobs.min() >= 300
    assert most.jobs / 2 < jobs.max() <= most.jobs
    for scenario in scenarios:
        assert scenario.jobs >= min(3 * gpus(scenario.cluster.nodes), most.jobs)
    assert {len(scenario.types) for scenario in scenarios} == {1, 2, 3, 4}


def test_gangs_are_powers_of_two_that_fit_where_the_type_may_run(scenarios):
    widest = 0
    for scenario in scenarios:
        for job_type in scenario.types:
            allowed = [
                group
                for group in scenario.cluster.nodes
                if not job_type.models or group.gpu in job_type.models
            ]
            room = [group.gpus * (1 if job_type.one_node else group.count) for group in allowed]
            sizes = np.array(job_type.gpus.values)
            assert np.log2(sizes).tolist() == list(range(len(sizes)))
            assert sizes.max() <= min(max(room), 128)
            assert min(job_type.gpus.p) >= 0
            assert sum(job_type.gpus.p) == pytest.approx(1, abs=1e-9)
            widest = max(widest, sizes.max())
    assert widest >= 32


def test_a_quarter_of_the_types_need_one_node_and_some_may_use_some_models_only(scenarios):
    among = types(scenarios)
    assert np.mean([one.one_node for one in among]) == about(0.25, len(among))
    # Of clusters with several pools (.78) a fifth; less, as some of these may use all after all.
    bound = np.mean([bool(one.models) for one in among])
    assert 0.05 < bound < 0.2 * 0.78
    for scenario in scenarios:
        names = {group.gpu for group in scenario.cluster.nodes}
        assert all(set(one.models) < names for one in scenario.types)


def test_on_three_of_ten_clusters_all_models_are_equally_fast(scenarios):
    several = [scenario for scenario in scenarios if len(scenario.cluster.nodes) > 1]
    alike = [all(len({*one.speed.values()}) == 1 for one in each.types) for each in several]
    assert np.mean(alike) == about(0.3, len(several))


def test_run_times_have_three_laws(scenarios):
    sizes = [one.size for one in types(scenarios)]
    laws = np.array([size.law for size in sizes])
    shares = {"lognormal": 0.6, "pareto": 0.25, "log-uniform": 0.15}
    assert {law: np.mean(laws == law) for law in shares} == {
        law: about(share, len(laws)) for law, share in shares.items()
    }
    sigmas = [size.sigma for size in sizes if size.law == "lognormal"]
    alphas = [size.alpha for size in sizes if size.law == "pareto"]
    assert 0.8 <= min(sigmas) < 1.2 < 2.6 < max(sigmas) <= 3
    assert 0.5 <= min(alphas) < 0.8 < 1.3 < max(alphas) <= 1.6
    assert min(size.cap for size in sizes if size.law != "log-uniform") > 10


def test_half_of_the_jobs_are_shorter_than_the_drawn_median():
    rng, below = np.random.default_rng(0), []
    for _ in range(60):
        size = wide_family._size(rng, 100.0)
        if size.get("law") == "pareto":
            below.append(1 - (size["minimum_s"] / 100) ** size["alpha"])
        elif size.get("law") == "log-uniform":
            below.append(size["p"][0] if size["borders_s"][1] == 100 else 0)
        else:
            below.append(0.5 if size["median_s"] == 100 else 0)
    np.testing.assert_allclose(below, 0.5, atol=1e-3)


def test_two_thirds_of_the_loads_are_0_6_to_1_3_and_all_0_3_to_4():
    rng = np.random.default_rng(0)
    loads = np.array([wide_family._load(rng) for _ in range(3000)])
    assert 0.3 <= loads.min() < 0.31 < 3.9 < loads.max() <= 4
    assert np.mean((loads >= 0.6) & (loads <= 1.3)) == about(0.65, 3000)
    assert np.mean(loads < 0.6) == about(0.15, 3000)


def test_arrivals_are_poisson_in_bursts_or_in_waves(scenarios):
    arrivals = [scenario.arrivals for scenario in scenarios]
    kinds = np.array([one.process for one in arrivals])
    shares = {"bursty": 0.35, "diurnal": 0.2, "poisson": 0.45}
    assert {kind: np.mean(kinds == kind) for kind in shares} == {
        kind: about(share, len(kinds)) for kind, share in shares.items()
    }
    bursts = [one for one in arrivals if one.process == "bursty"]
    assert all(1.5 <= one.peak <= 6 and one.share * one.peak < 1 for one in bursts)
    assert all(0.3 <= one.amplitude <= 1 for one in arrivals if one.process == "diurnal")


def test_every_job_fits_somewhere():
    for seed, scenario in enumerate(drawn(range(8), SMALL)):
        setting = prepare(scenario)
        workload = generate(setting, 1_000_000 + seed)
        assert workload.allowed.any(axis=1).all()
        assert np.isfinite(fastest_possible(workload, setting.layout)).all()


def test_a_scenario_that_is_not_feasible_is_drawn_again_and_a_hundred_are_given_up(monkeypatch):
    usual, tries = wide_family._draw, []

    def bad(rng, most):
        tries.append(most)
        if len(tries) < bad.until:
            raise ConfigError("too large")
        return usual(rng, most)

    monkeypatch.setattr(wide_family, "_draw", bad)
    bad.until = 3
    assert draw(np.random.default_rng(0), SMALL).name == "wide"
    assert tries == [SMALL] * 3
    bad.until = 1000
    with pytest.raises(ConfigError, match=r"^no wide scenario in 100 tries: too large$"):
        draw(np.random.default_rng(0))
