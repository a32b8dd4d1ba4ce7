"""What the meters of a pool's GPUs say to a network: by hand, missing readings, absurd ones."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adlro.features.telemetry_kernel import RANGES, TELEMETRY_FEATURES, read_pools
from adlro.model.state import GPU, POOL, WHOLE
from tests.looking import seen_closely_at
from tests.worlds import fails, fill, gpu_speed, job, nodes, reading

# Idle V100s show 35 degrees and 50 W; a job adds 40 degrees, 250 W and 450 GB/s. T4s stay idle.
READINGS = [
    [reading(1.0, 450, 40, 250), reading(0.5, 100, 20, 30)],
    [reading(0.0, 0, 35, 50), reading(0.0, 0, 30, 10)],
]
V100, T4 = (35, 85, 50, 300, 900), (30, 80, 10, 70, 320)  # degrees, W, GB/s
GROUPS = [nodes("V100", 4), nodes("T4", 2)]
JOBS = [job(0, 99, 99), job(0, 99, 99), job(2, 5, 9)]


@cache
def worked():
    """Jobs 0 and 1 hold V100s 0 and 1; job 2 comes at 2, with two V100s and two T4s free.

    Since 1 V100 0 runs at half its speed, and V100 3, idle, is 10 degrees warmer.
    So V100 0 shows 225 GB/s, 55 degrees and 175 W, V100 1 shows 450, 75 and 300.
    """
    slower = [gpu_speed(1, 0, 0.5), gpu_speed(1, 3, 0.5, heat=10)]
    return seen_closely_at(2, GROUPS, JOBS, (*V100, *T4), events=slower, readings=READINGS)


WORKED = {  # of: wait, job 2 on a V100, job 2 on a T4
    "meters_known": [0, 1, 1],
    "meters_busy": [0, 0.5, 0],  # two of four
    "meters_drive": [0, 0.75, 0],  # (175 - 50) / 250 and (300 - 50) / 250
    "meters_drive_least": [0, 0.5, 0],
    "meters_stream": [0, 0.375, 0],  # 225 / 900 and 450 / 900
    "meters_stream_least": [0, 0.25, 0],
    "meters_heat": [0, 0.35, 0],  # (20 + 40 + 0 + 10) / 50 / 4
    "meters_heat_free": [0, 0.2, 0],  # 10 / 50 of V100 3
}


@pytest.mark.parametrize("name", TELEMETRY_FEATURES)
def test_every_meter_is_what_was_worked_out_by_hand(name):
    assert worked()[name] == pytest.approx(WORKED[name], abs=1e-12)


def test_without_telemetry_all_meters_are_0():
    seen = seen_closely_at(2, GROUPS, JOBS, (*V100, *T4))
    assert {name: seen[name] for name in TELEMETRY_FEATURES} == {
        name: [0, 0, 0] for name in TELEMETRY_FEATURES
    }


def test_gpus_of_a_node_that_is_down_are_not_known():
    # Of two nodes of two V100s the second fails at 1: the others are busy.
    groups = [nodes("V100", 2, count=2), nodes("T4", 2)]
    seen = seen_closely_at(2, groups, JOBS, (*V100, *T4), events=[fails(1, 1)], readings=READINGS)
    assert [seen[name][1] for name in ("meters_known", "meters_busy")] == [1, 0]  # on a T4
    jobs = [job(0, 99, 99), job(2, 5, 9)]  # one V100 of the first node is free
    seen = seen_closely_at(2, groups, jobs, (*V100, *T4), events=[fails(1, 1)], readings=READINGS)
    assert [seen[name][1] for name in ("meters_known", "meters_busy")] == [0.5, 0.5]


def read(*gpus, ranges=V100):
    """The meters of one pool of these GPUs: dicts of fields."""
    pools = fill(POOL, [{"size": len(gpus)}])
    x = np.full(len(TELEMETRY_FEATURES), np.nan)
    read_pools(np.array(ranges, np.float64), pools, fill(GPU, list(gpus), job=-1), x)
    return dict(zip(TELEMETRY_FEATURES, x.tolist(), strict=True))


FULL = {"utilisation": 1.0, "bandwidth": 450.0, "temperature": 60.0, "power": 175.0}


@pytest.mark.parametrize("channel", ["bandwidth", "power"])
def test_a_channel_that_is_missing_leaves_the_others_alone(channel):
    half = {**FULL, channel: np.nan}
    one, both, alone = read(FULL), read(FULL, half), read(half)
    assert both == one  # what is missing is not averaged in
    gone = "meters_stream" if channel == "bandwidth" else "meters_drive"
    assert (alone[gone], alone[f"{gone}_least"]) == (0, 0)
    assert alone["meters_known"] == 1


@pytest.mark.parametrize("degrees", [np.nan, 0.0, -5.0])
def test_a_gpu_without_a_temperature_is_not_known(degrees):
    assert read({**FULL, "temperature": degrees}) == dict.fromkeys(TELEMETRY_FEATURES, 0)


def test_beyond_the_range_is_its_end():
    hot = read({**FULL, "temperature": 120.0, "power": 900.0, "bandwidth": 5000.0})
    cold = read({**FULL, "temperature": 20.0, "power": 3.0})
    assert (hot["meters_heat"], hot["meters_drive"], hot["meters_stream"]) == (1, 1, 1)
    assert (cold["meters_heat"], cold["meters_drive"]) == (0, 0)


def test_power_and_bandwidth_count_for_the_share_of_the_time_that_is_used():
    # Half used: 75 W of 250 above idle are 0.3, for each used share 0.6.
    half = read({**FULL, "utilisation": 0.5, "power": 125.0, "bandwidth": 225.0})
    assert half["meters_drive"] == pytest.approx(0.6)
    assert half["meters_stream"] == pytest.approx(0.5)


def test_a_gpu_whose_utilisation_is_missing_is_not_taken_as_idle():
    blind = {**FULL, "utilisation": np.nan}
    assert read(FULL, blind) == read(FULL)
    assert (read(blind)["meters_busy"], read(blind)["meters_known"]) == (0, 1)
    assert read(FULL, {**FULL, "utilisation": 0.0})["meters_busy"] == 0.5


def test_a_gpu_that_is_hardly_used_says_nothing_of_its_pace():
    idle = read({**FULL, "utilisation": 0.04})
    assert (idle["meters_drive"], idle["meters_busy"], idle["meters_known"]) == (0, 0, 1)


def test_only_gpus_with_nothing_on_them_are_free():
    free, taken = {**FULL, "temperature": 45.0, "free": WHOLE}, {**FULL, "free": WHOLE - 1}
    assert read(free, taken)["meters_heat_free"] == pytest.approx(0.2)


def test_each_model_has_ranges_of_its_own():
    pools = fill(POOL, [{"size": 1}, {"size": 1, "first_gpu": 1, "model": 1}])
    x = np.zeros(2 * len(TELEMETRY_FEATURES))
    gpus = fill(GPU, [FULL, FULL], job=-1)
    read_pools(np.array([*V100, *T4], np.float64), pools, gpus, x)
    heat = TELEMETRY_FEATURES.index("meters_heat")
    assert x[[heat, len(TELEMETRY_FEATURES) + heat]].tolist() == [
        0.5,
        0.6,
    ]  # 25 and 30 of 50 degrees
    assert len(V100) == len(T4) == RANGES


ANY = st.floats(allow_nan=True, allow_infinity=True)


@given(st.lists(st.tuples(ANY, ANY, ANY, ANY, st.integers(0, WHOLE)), min_size=1, max_size=4))
def test_whatever_is_read_all_meters_lie_between_0_and_1(rows):
    names = ("utilisation", "bandwidth", "temperature", "power", "free")
    found = read(*(dict(zip(names, row, strict=True)) for row in rows))
    assert all(0 <= value <= 1 for value in found.values()), found
