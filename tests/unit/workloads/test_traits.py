"""What job types are like beside each other, on the meters, and to placement."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.model import gpu
from adlro.model.cluster import lay_out
from adlro.model.state import DEMAND
from adlro.workloads import capacity, traits
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.scenario_files import refusal

MEASURED = 1.474


def scenario(**changes):
    return adjusted(find_scenario("paper16"), **changes)


def demands(types, nodes=None, **changes):
    """Demands of a scenario of these types, on two nodes of V100 unless told otherwise."""
    nodes = nodes or [
        {"name": "n", "count": 2, "gpu": "V100", "gpus": 4, "cores": 64, "memory_gb": 64}
    ]
    size = {"law": "constant", "seconds": 9}
    filled = [{"share": 1, "kind": "ml", "size": size, "cores": 0, **one} for one in types]
    changes = {"placement": "fgd", "affinity": {}, "cluster": {"nodes": nodes}, **changes}
    made = scenario(types=filled, **changes)
    return traits.placement(made, lay_out(made.cluster), None)


def rows(found):
    """Demands without their weights."""
    return found[["pools", "gpus", "share", "cores", "memory"]].tolist()


def test_two_types_of_kind_ml_slow_each_other_as_measured_and_others_do_not():
    slowed = traits.colocation(find_scenario("hetero64"))  # simulation, ml, none, data
    expected = np.ones((4, 4))
    expected[1, 1] = MEASURED
    assert slowed.tolist() == expected.tolist()


def test_the_scenarios_own_slowdowns_go_before_the_measured_ones():
    own = [
        {"types": ["ml", "data"], "slowdown": [1.3, 1.1]},
        {"types": ["ml", "ml"], "slowdown": 1.2},
    ]
    slowed = traits.colocation(scenario(colocation=own))
    assert slowed.tolist() == [[1, 1, 1], [1, 1.2, 1.3], [1, 1.1, 1]]


def test_without_telemetry_there_are_no_readings():
    assert prepare(scenario()).readings.shape == (0, 0)


def test_readings_are_those_of_each_type_on_each_model_and_last_of_the_idle_gpu():
    shown = prepare(scenario(telemetry=True)).readings
    assert shown.shape == (4, 3)
    turing = gpu.find("RTX 6000")
    expected = gpu.busy(gpu.DEMANDS["ml"], 0.803, turing)
    assert tuple(shown[1, 1]) == pytest.approx(tuple(expected))
    assert expected.utilisation == pytest.approx(0.803 / 0.871, rel=1e-3)  # its roofline
    assert tuple(shown[3, 1]) == pytest.approx((0, 0, 35, 0.15 * 260))


def test_a_type_that_gives_speeds_alone_has_readings_too():
    speed = {"V100": 1, "RTX 6000": 1, "Radeon Pro VII": 1}
    size = {"law": "constant", "seconds": 9}
    types = [{"name": "own", "share": 1, "size": size, "speed": speed}]
    made = scenario(types=types, telemetry=True, affinity={})
    assert (prepare(made).readings["power"] > 0).all()


def test_best_fit_looks_at_no_demands():
    found = prepare(scenario()).placement
    assert (len(found), found.dtype) == (0, DEMAND)


def test_demands_come_with_their_probability_the_most_frequent_first():
    found = demands(
        [
            {
                "name": "a",
                "share": 0.75,
                "gpus": {"values": [1, 8], "p": [0.4, 0.6]},
                "memory_gb": 1,
            },
            {"name": "b", "share": 0.25, "gpu_share": 0.25, "cores": 3},
        ]
    )
    assert rows(found) == [(1, 8, 1000, 0, 1024), (1, 1, 1000, 0, 1024), (1, 1, 250, 3, 0)]
    assert found["weight"] == pytest.approx([0.45, 0.3, 0.25])


def test_equal_demands_of_several_types_are_one():
    memory = {"values": [1, 2, 30], "p": [0.2, 0.3, 0.5]}  # GPU memory, which placement ignores
    found = demands([{"name": "a", "gpu_memory_gb": memory}, {"name": "b", "kind": "data"}])
    assert rows(found) == [(1, 1, 1000, 0, 0)]
    assert found["weight"].tolist() == [1]


def test_demands_that_may_run_on_other_pools_are_not_equal():
    nodes = [
        {"name": name, "gpu": name, "gpus": 1, "cores": 1, "memory_gb": 9}
        for name in ("T4", "V100", "A100")
    ]
    memory = {"values": [1, 30], "p": [0.25, 0.75]}
    found = demands([{"name": "a", "gpu_memory_gb": memory}], nodes)
    assert found["pools"].tolist() == [0b110, 0b111]
    assert found["weight"] == pytest.approx([0.75, 0.25])


def test_demands_that_make_up_the_last_twentieth_are_left_out():
    cores = {"values": [1, 2, 3, 4], "p": [0.5, 0.3, 0.15, 0.05]}
    found = demands([{"name": "a", "cores": cores}])
    assert found["cores"].tolist() == [1, 2, 3]
    assert found["weight"] == pytest.approx(np.array([0.5, 0.3, 0.15]) / 0.95)


def test_no_more_than_64_demands_are_kept():
    cores = {"values": list(range(1, 33)), "p": [1 / 32] * 32}
    memory = {"values": list(range(1, 9)), "p": [1 / 8] * 8}
    found = demands([{"name": "a", "cores": cores, "memory_gb": memory}])
    assert len(found) == 64
    assert found["weight"] == pytest.approx(np.full(64, 1 / 64))


@pytest.mark.parametrize("name", ["paper16", "hetero64", "datacenter", "rough64"])
def test_the_demands_of_a_shipped_scenario_are_those_of_its_jobs(name):
    setting = prepare(adjusted(find_scenario(name), placement="fgd", jobs=20_000))
    workload = generate(setting, 0)
    bits = workload.allowed @ (1 << np.arange(len(setting.pools)))
    jobs = workload.jobs
    drawn = list(zip(bits, *(jobs[k] for k in ("gpus", "share", "cores", "memory")), strict=True))
    found, counts = np.unique(np.array(drawn), axis=0, return_counts=True)
    share = dict(zip(map(tuple, found.tolist()), (counts / len(jobs)).tolist(), strict=True))
    assert setting.demands.tobytes() == setting.placement.tobytes()
    looked_at = [share.get(row, 0.0) for row in rows(setting.demands)]
    assert setting.demands["weight"].sum() == pytest.approx(1)
    assert setting.demands["weight"] * sum(looked_at) == pytest.approx(looked_at, abs=0.01)


@pytest.mark.parametrize(("pools", "is_refused"), [(63, False), (64, True)])
def test_fgd_can_look_at_63_pools(pools, is_refused):
    nodes = [
        {"name": f"n{i}", "gpu": "V100", "gpus": 1, "cores": i + 1, "memory_gb": 9}
        for i in range(pools)
    ]
    if is_refused:
        said = "scenario paper16: placement = 'fgd' can look at 63 pools, not 64; use 'best-fit'"
        assert refusal(demands, [{"name": "a"}], nodes).startswith(said)
    else:
        assert demands([{"name": "a"}], nodes)["pools"].tolist() == [2**63 - 1]


def test_the_speed_of_a_type_is_that_of_its_readings():
    made = adjusted(find_scenario("rough64"))
    layout = lay_out(made.cluster)
    speeds = capacity.type_speeds(made, layout)
    slow = traits.readings(made, speeds / 2, layout)
    assert slow["utilisation"][:-1] == pytest.approx(np.full(speeds.shape, 0.5))
