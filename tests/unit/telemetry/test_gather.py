"""From readings of the exporters to one sample: units, choice among metrics, blanks, nonsense."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.errors import TelemetryError
from adlro.telemetry.gather import SampleBuilder
from adlro.telemetry.names import Gpu, identify, metrics, model_name
from adlro.telemetry.sample import NAMES, Sample, readings

GPU = {"gpu": "0", "Hostname": "h"}


def gathered(*readings, **options):
    gather = SampleBuilder(**options)
    for name, raw in readings:
        gather.take(name, GPU, raw)
    return gather.sample(0.0)


def value(channel, *readings):
    return gathered(*readings).column(channel)[0]


@pytest.mark.parametrize(
    ("labels", "gpu"),
    [
        ({"gpu": "3", "Hostname": "a"}, Gpu("a", 3)),
        ({"gpu": "3", "hostname": "a"}, Gpu("a", 3)),
        ({"gpu": "3", "Hostname": "", "hostname": "a", "instance": "b:1"}, Gpu("a", 3)),
        ({"gpu": "3", "instance": "10.0.0.7:9400"}, Gpu("10.0.0.7", 3)),
        ({"gpu": "3", "instance": "node7"}, Gpu("node7", 3)),
        ({"gpu": "3", "Hostname": "a", "GPU_I_ID": "2", "GPU_I_PROFILE": "1g.5gb"}, Gpu("a", 3, 2)),
        ({"gpu_id": "1", "hostname": "a", "gpu_partition_id": "0"}, Gpu("a", 1)),
        (
            {"gpu_id": "1", "hostname": "a", "gpu_partition_id": "5",
             "gpu_compute_partition_type": "CPX"},
            Gpu("a", 1, 5),
        ),
        (
            {"gpu_id": "1", "hostname": "a", "gpu_partition_id": "0",
             "gpu_compute_partition_type": "SPX"},
            Gpu("a", 1),
        ),
        ({"gpu_power": "4", "productname": "x", "instance": "a:2021"}, Gpu("a", 4)),
    ],
)  # fmt: skip
def test_the_labels_of_each_exporter_say_which_gpu_it_is(labels, gpu):
    assert identify(labels) == gpu


@pytest.mark.parametrize(
    "labels",
    [
        {}, {"gpu": "0"}, {"Hostname": "a"}, {"gpu": "", "Hostname": "a"},
        {"gpu": "-1", "Hostname": "a"}, {"gpu": "²", "Hostname": "a"},
        {"gpu": "12345678", "Hostname": "a"}, {"gpu": "0", "Hostname": "a", "GPU_I_ID": "x"},
        {"gpu": "0", "Hostname": "a\ud800"}, {"gpu": "0", "Hostname": "a\x1b[2J"},
        {"gpu": "0", "Hostname": "a" * 201}, {"gpu": "0", "instance": "a\n:9400"},
        {"gpu_id": "0", "hostname": "a", "gpu_compute_partition_type": "CPX"},
    ],
)  # fmt: skip
def test_labels_that_do_not_say_which_gpu_it_is_name_none(labels):
    assert identify(labels) is None


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"modelName": "Tesla T4"}, "Tesla T4"),
        ({"modelName": "A100-SXM4-40GB", "GPU_I_PROFILE": "1g.5gb"}, "A100-SXM4-40GB MIG 1g.5gb"),
        ({"card_model": "0xc34", "card_series": "AMD INSTINCT MI100"}, "AMD INSTINCT MI100"),
        ({"card_model": "0xc34"}, "0xc34"),
        ({"productname": "MI210"}, "MI210"),
        ({"modelName": "T4\0"}, ""),
        ({"modelName": "T" * 200}, "T" * 200),
        ({"modelName": "T" * 201}, ""),
        ({"modelName": "T" * 196, "GPU_I_PROFILE": "1g.5gb"}, ""),
        ({}, ""),
    ],
)
def test_the_labels_of_each_exporter_say_which_model_it_is(labels, name):
    assert model_name(labels) == name


UNITS = {  # channel, raw, in our unit
    "DCGM_FI_DEV_GPU_UTIL": ("utilisation", 37, 0.37),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("utilisation", 0.37, 0.37),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("bandwidth", 0.098, 0.098),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("bandwidth", 42, 0.42),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature", 68, 68),
    "DCGM_FI_DEV_POWER_USAGE": ("power", 218.751, 218.751),
    "DCGM_FI_DEV_FB_TOTAL": ("memory_total", 16_384, 16_384),
    "DCGM_FI_DEV_FB_USED": ("memory_used", 2015, 2015),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("errors", 7, 7),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("errors", 7, 7),
    "DCGM_FI_DEV_XID_ERRORS": ("errors", 79, 1),
    "gpu_gfx_activity": ("utilisation", 100, 1.0),
    "gpu_umc_activity": ("bandwidth", 44, 0.44),
    "gpu_edge_temperature": ("temperature", 74, 74),
    "gpu_junction_temperature": ("temperature", 51, 51),
    "gpu_average_package_power": ("power", 163, 163),
    "gpu_package_power": ("power", 700, 700),
    "gpu_power_usage": ("power", 700, 700),
    "gpu_total_vram": ("memory_total", 32_752, 32_752),
    "gpu_used_vram": ("memory_used", 19_691, 19_691),
    "gpu_ecc_uncorrect_total": ("errors", 3, 3),
    "amd_gpu_use_percent": ("utilisation", 40, 0.4),
    "amd_gpu_memory_use_percent": ("bandwidth", 10, 0.1),
    "amd_gpu_current_temperature": ("temperature", 54_000, 54.0),
    "amd_gpu_power": ("power", 150_500_000, 150.5),
    "amd_gpu_power_avg": ("power", 150_500_000, 150.5),
}
PARTS = {"DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED", "gpu_free_vram"}  # of the total


@pytest.mark.parametrize("name", UNITS)
def test_every_unit_becomes_ours(name):
    channel, raw, expected = UNITS[name]
    sample = gathered((name, raw))
    assert sample.column(channel)[0] == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(sample.values).sum() == 1


def test_no_metric_is_understood_that_is_not_tried_here():
    prefixed = {"amd_" + name for name in metrics() if "amd_" + name in metrics()}
    assert len(prefixed) == 11  # of ROCm
    assert metrics().keys() - prefixed == {*UNITS, *PARTS}


@pytest.mark.parametrize(
    ("channel", "worse", "better"),
    [
        ("utilisation", ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.9), ("DCGM_FI_DEV_GPU_UTIL", 40)),
        ("power", ("gpu_power_usage", 100), ("gpu_package_power", 90)),
        ("power", ("gpu_package_power", 100), ("gpu_average_package_power", 90)),
        ("power", ("amd_gpu_power_avg", 9e7), ("amd_gpu_power", 8e7)),
        ("errors", ("DCGM_FI_DEV_XID_ERRORS", 31), ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 0)),
        (
            "errors",
            ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 2),
            ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0),
        ),
        ("bandwidth", ("DCGM_FI_DEV_MEM_COPY_UTIL", 90), ("DCGM_FI_PROF_DRAM_ACTIVE", 0.25)),
        ("temperature", ("gpu_junction_temperature", 80), ("gpu_edge_temperature", 60)),
        ("errors", ("DCGM_FI_DEV_XID_ERRORS", 31), ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0)),
    ],
)
def test_of_several_metrics_for_one_channel_the_best_counts(channel, worse, better):
    expected = value(channel, better)
    assert value(channel, worse, better) == expected
    assert value(channel, better, worse) == expected
    assert value(channel, worse) != expected


def test_the_total_of_the_memory_is_the_sum_of_its_parts():
    # 10,908 used + 5,252 free + 224 reserved = 16,384 MB
    used, free = ("DCGM_FI_DEV_FB_USED", 10_908), ("DCGM_FI_DEV_FB_FREE", 5_252)
    reserved, total = ("DCGM_FI_DEV_FB_RESERVED", 224), ("DCGM_FI_DEV_FB_TOTAL", 16_000)
    assert value("memory_total", used, free) == 16_160
    assert value("memory_total", used, free, reserved) == 16_384
    assert value("memory_total", used, free, reserved, total) == 16_000
    assert math.isnan(value("memory_total", used))
    # 1,793 used + 30,959 free = 32,752 MB
    of_amd = ("gpu_used_vram", 1_793), ("gpu_free_vram", 30_959)
    assert value("memory_total", *of_amd) == 32_752
    assert math.isnan(value("memory_total", ("gpu_free_vram", 30_959)))


BLANKS = (
    math.nan, 0x7FFFFFF0, 0x7FFFFFFF, 2**47, 2**47 + 15, 9223372036854775794, 2**64 - 1, 0xFFFF,
    0xFFFFFFFF, -1,
)  # fmt: skip


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("name", ["DCGM_FI_DEV_GPU_TEMP", "gpu_gfx_activity", "gpu_package_power"])
def test_a_blank_is_missing_and_no_reason_for_a_note(name, blank):
    sample = gathered((name, float(blank)))
    assert np.isnan(sample.values).all()
    assert len(sample.host) == 1
    assert sample.notes == ()


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", 101), ("DCGM_FI_DEV_GPU_UTIL", -5),
        ("DCGM_FI_DEV_GPU_TEMP", 9000), ("DCGM_FI_DEV_GPU_TEMP", 0),
        ("DCGM_FI_DEV_POWER_USAGE", math.inf), ("amd_gpu_current_temperature", 54),
    ],
)  # fmt: skip
def test_what_cannot_be_true_is_left_out_with_a_note(name, raw):
    sample = gathered((name, raw))
    assert np.isnan(sample.values).all()
    assert sample.notes == (f"1 absurd values left out, such as {name} = {raw:g} of h/0",)


@pytest.mark.parametrize("blank", [math.nan, 0x7FFFFFF0, 2**47, 9223372036854775794, 0xFFFFFFFF])
def test_a_blank_among_the_codes_of_errors_is_no_error(blank):
    sample = gathered(("DCGM_FI_DEV_XID_ERRORS", float(blank)))
    assert np.isnan(sample.column("errors")).all()
    assert sample.notes == ()


def test_a_blank_leaves_the_channel_to_the_next_best_metric():
    readings = ("gpu_average_package_power", 65535.0), ("gpu_package_power", 700.0)
    assert value("power", *readings) == 700.0


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_two_models_of_one_gpu_are_noted_and_the_order_does_not_matter(order):
    said = [
        ("DCGM_FI_DEV_GPU_TEMP", "Tesla T4"),
        ("gpu_gfx_activity", "MI100"),
        ("gpu_used_vram", ""),
    ]
    gather = SampleBuilder()
    for place in order:
        name, model = said[place]
        gather.take(name, {**GPU, "modelName": model}, 50.0)
    sample = gather.sample(0.0)
    assert sample.model == ("MI100",)
    (note,) = sample.notes
    assert note.startswith("1 GPUs have two models, such as h/0: ")
    assert note.endswith("; are two GPUs of one host numbered alike?")


def test_the_model_of_a_gpu_that_was_exchanged_within_the_hour_is_the_one_it_has_now():
    gather = SampleBuilder()
    gather.take("DCGM_FI_DEV_GPU_TEMP", {**GPU, "modelName": "Tesla T4"}, 50.0)
    gather.expect({**GPU, "modelName": "A2"})
    sample = gather.sample(0.0)
    assert (sample.model, sample.notes) == (("Tesla T4",), ())


def test_a_reading_of_no_gpu_is_left_out_with_a_note():
    gather = SampleBuilder()
    gather.take("DCGM_FI_DEV_GPU_UTIL", {"gpu": "0"}, 5.0)
    gather.take("node_load1", {}, 5.0)
    sample = gather.sample(0.0)
    assert sample.host == ()
    assert sample.values.shape == (0, len(NAMES))
    assert sample.notes == ("1 readings left out that do not say of which GPU",)


def test_of_two_readings_of_the_same_the_larger_is_taken_and_a_blank_never():
    name = "DCGM_FI_DEV_GPU_TEMP"
    sample = gathered((name, 60.0), (name, 70.0), (name, 65.0), (name, 2.0**47))
    assert sample.column("temperature").tolist() == [70.0]
    assert sample.notes == ("2 readings came twice: the larger was taken",)


def test_a_prefix_of_ones_own_is_one_more_not_another():
    names = metrics("site_")
    assert {"gpu_used_vram", "amd_gpu_used_vram", "site_gpu_used_vram"} <= set(names)
    assert "site_gpu_used_vram" not in metrics()


@pytest.mark.parametrize("prefix", ['a"} or up{x="', "7up", "é", "a b", "a\n"])
def test_a_prefix_that_no_metric_can_have_is_refused(prefix):
    with pytest.raises(TelemetryError, match="cannot be the beginning of a metric's name"):
        metrics(prefix)


def test_the_model_is_taken_from_the_first_reading_that_names_it():
    gather = SampleBuilder()
    gather.take("DCGM_FI_DEV_GPU_TEMP", GPU, 50.0)
    gather.take("DCGM_FI_DEV_GPU_UTIL", {**GPU, "modelName": "Tesla T4"}, 50.0)
    assert gather.sample(0.0).model == ("Tesla T4",)


def test_a_gpu_that_is_only_expected_has_no_value_and_no_age():
    gather = SampleBuilder()
    gather.expect({**GPU, "modelName": "Tesla T4"})
    sample = gather.sample(50.0)
    assert sample.model == ("Tesla T4",)
    assert np.isnan(sample.values).all()
    assert sample.is_fresh(math.inf).tolist() == [False]


@given(st.permutations([(host, gpu) for host in ("a", "b") for gpu in range(3)]))
@settings(deadline=None)
def test_the_order_of_the_readings_does_not_matter(order):
    gather = SampleBuilder()
    for host, gpu in order:
        labels = {"gpu": str(gpu), "Hostname": host}
        gather.take("DCGM_FI_DEV_GPU_TEMP", labels, 40.0 + gpu + 10 * (host == "b"))
        gather.date(labels, 100.0 + gpu)
    sample = gather.sample(110.0)
    assert sample.host == ("a", "a", "a", "b", "b", "b")
    assert sample.gpu.tolist() == [0, 1, 2, 0, 1, 2]
    assert sample.column("temperature").tolist() == [40, 41, 42, 50, 51, 52]
    assert sample.age.tolist() == [10, 9, 8, 10, 9, 8]


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf, -1.0, 1e11])
def test_what_cannot_be_a_time_leaves_the_age_unknown(time):
    gather = SampleBuilder()
    gather.date(GPU, time)
    assert np.isnan(gather.sample(100.0).age).all()
    gather.date(GPU, 70.0)
    gather.date(GPU, time)
    assert gather.sample(100.0).age.tolist() == [30.0]


def test_a_reading_is_fresh_up_to_the_limit_and_not_from_the_future():
    gather = SampleBuilder()
    for gpu, time in enumerate((70.0, 69.9, 130.0, 130.1)):
        gather.date({"gpu": str(gpu), "Hostname": "h"}, time)
    assert gather.sample(100.0).is_fresh(30.0).tolist() == [True, False, True, False]


def test_policies_get_the_bandwidth_in_gb_per_second_where_the_model_is_known():
    values = np.full((3, len(NAMES)), np.nan)
    values[:, NAMES.index("bandwidth")] = 0.5, 0.5, np.nan
    values[:, NAMES.index("power")] = 60.0
    models = ("Tesla T4", "Nobody's GPU", "Tesla T4")
    zeros = np.zeros(3, np.int64)
    got = readings(Sample(("h",) * 3, zeros, zeros, models, values, np.zeros(3), 0.0))
    np.testing.assert_array_equal(got["bandwidth"], [160.0, np.nan, np.nan])  # 0.5 * 320 GB/s
    np.testing.assert_array_equal(got["power"], [60.0] * 3)
    assert np.isnan(got["utilisation"]).all()


def test_policies_get_nothing_that_is_old_or_of_unknown_age():
    values = np.full((3, len(NAMES)), 0.5)
    zeros = np.zeros(3, np.int64)
    times = np.array([95.0, 80.0, np.nan])
    sample = Sample(("h",) * 3, zeros, zeros, ("Tesla T4",) * 3, values, times, 100.0)
    got = readings(sample, most_age_s=10.0)
    for name in ("utilisation", "bandwidth", "temperature", "power"):
        assert np.isnan(got[name]).tolist() == [False, True, True]
