"""The GPUs of one's own host: NVML, amdsmi and sysfs, each with a stand-in for what is not here."""

import math
import socket
import types

import numpy as np
import pytest

from adlro.errors import MissingExtraError, TelemetryError
from adlro.telemetry import amd, nvml
from adlro.telemetry.sample import NAMES


class NVMLError(Exception):
    pass


def nvidia(**lacks):
    """NVIDIA's library with one V100; functions named in `lacks` raise what is given there."""
    said = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": "handle",
        "nvmlDeviceGetName": b"Tesla V100-SXM2-16GB",
        "nvmlDeviceGetUtilizationRates": types.SimpleNamespace(gpu=84, memory=50),
        "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(used=1 << 30, total=16 << 30),
        "nvmlDeviceGetTemperature": 68,
        "nvmlDeviceGetPowerUsage": 218_750,
        "nvmlDeviceGetTotalEccErrors": 2,
    }
    ended = []

    def function(name):
        def call(*_):
            if name in lacks:
                raise lacks[name]
            if name == "nvmlShutdown":
                ended.append(True)
            return said[name]

        return call

    constants = dict.fromkeys(
        ("NVML_TEMPERATURE_GPU", "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC"), 0
    )
    return types.SimpleNamespace(
        NVMLError=NVMLError, ended=ended, **constants, **{name: function(name) for name in said}
    )


def test_nvml_gives_every_channel_in_our_units():
    library = nvidia()
    sample = nvml.read(library)
    assert sample.host == (socket.gethostname(),)
    assert sample.model == ("Tesla V100-SXM2-16GB",)
    assert sample.values.tolist() == [[0.84, 1024.0, 16384.0, 0.5, 68.0, 218.75, 2.0]]
    assert sample.is_fresh(5.0).all()
    assert library.ended == [True]


def test_what_a_gpu_cannot_tell_nvml_is_missing():
    sample = nvml.read(nvidia(nvmlDeviceGetTotalEccErrors=NVMLError("Not Supported")))
    assert [name for name in NAMES if np.isnan(sample.column(name)[0])] == ["errors"]


def test_a_gpu_that_fell_off_the_bus_is_missing_and_the_others_are_there():
    library = nvidia()
    library.nvmlDeviceGetCount = lambda: 2

    def handle(index):
        if index == 0:
            raise NVMLError("GPU is lost")
        return "handle"

    library.nvmlDeviceGetHandleByIndex = handle
    sample = nvml.read(library)
    assert sample.gpu.tolist() == [0, 1]
    assert sample.model == ("", "Tesla V100-SXM2-16GB")
    assert np.isnan(sample.values).all(axis=1).tolist() == [True, False]
    assert sample.notes == ("GPU 0 does not answer: GPU is lost",)


def test_a_driver_without_gpus_says_so():
    library = nvidia()
    library.nvmlDeviceGetCount = lambda: 0
    with pytest.raises(TelemetryError, match="NVIDIA's driver shows no GPU on this host"):
        nvml.read(library)
    assert library.ended == [True]


def test_an_absurd_value_of_ones_own_gpu_is_left_out_with_a_note():
    library = nvidia()
    library.nvmlDeviceGetTemperature = lambda *_: 900
    sample = nvml.read(library)
    assert math.isnan(sample.column("temperature")[0])
    assert sample.notes == ("absurd and left out: temperature = 900 of GPU 0",)


def test_without_a_driver_nvml_says_so_in_one_line():
    with pytest.raises(TelemetryError, match=r"^NVML: Not Found; is NVIDIA's driver loaded"):
        nvml.read(nvidia(nvmlInit=NVMLError("Not Found")))


def test_nvml_is_let_go_when_it_fails_half_way():
    library = nvidia(nvmlDeviceGetCount=NVMLError("GPU is lost"))
    with pytest.raises(TelemetryError, match="GPU is lost"):
        nvml.read(library)
    assert library.ended == [True]


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'adlro\[nvidia\]'"):
        nvml.load()


def test_the_real_library_without_a_driver_fails_as_we_expect():
    library = pytest.importorskip("pynvml", reason="the extra nvidia is not installed")
    try:
        library.nvmlInit()
    except library.NVMLError:
        with pytest.raises(TelemetryError, match="is NVIDIA's driver loaded"):
            nvml.read(library)
    else:
        assert len(nvml.read(library).host) == library.nvmlDeviceGetCount()


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def sysfs(tmp_path):
    """An MI100 as card1 and a bare Radeon as card10, beside somebody else's card and a screen."""
    cards = tmp_path / "class" / "drm"
    write(
        cards / "card1" / "device",
        vendor="0x1002\n", product_name="Instinct MI100\n", gpu_busy_percent="61\n",
        mem_busy_percent="20\n", mem_info_vram_used=f"{1793 << 20}\n",
        mem_info_vram_total=f"{32752 << 20}\n", ras__umc_err_count="ue: 2\nce: 9\n",
        ras__gfx_err_count="ue: 1\nce: 0\n", hwmon__hwmon3__temp1_label="edge\n",
        hwmon__hwmon3__temp1_input="37000\n", hwmon__hwmon3__temp2_label="junction\n",
        hwmon__hwmon3__temp2_input="41000\n", hwmon__hwmon3__power1_average="51000000\n",
    )  # fmt: skip
    write(
        cards / "card10" / "device",
        vendor="0x1002\n", device="0x731f\n", gpu_busy_percent="?\n",
        hwmon__hwmon5__temp2_label="junction\n", hwmon__hwmon5__temp2_input="41000\n",
        hwmon__hwmon5__power1_input="9000000\n",
    )  # fmt: skip
    write(cards / "card2" / "device", vendor="0x10de\n", gpu_busy_percent="50\n")
    (cards / "card1-DP-1").mkdir()
    return tmp_path


def test_sysfs_gives_every_channel_in_our_units(sysfs):
    sample = amd.read_sysfs(sysfs)
    assert sample.model == ("Instinct MI100", "AMD device 0x731f")
    assert sample.gpu.tolist() == [0, 1]
    np.testing.assert_allclose(sample.values[0], [0.61, 1793, 32752, 0.2, 37, 51, 3])


def test_what_a_card_lacks_in_sysfs_is_missing(sysfs):
    sample = amd.read_sysfs(sysfs)
    known = dict(zip(NAMES, sample.values[1], strict=True))
    assert {name for name, value in known.items() if not np.isnan(value)} == {
        "temperature", "power",
    }  # fmt: skip
    assert (known["temperature"], known["power"]) == (41.0, 9.0)


def test_a_host_without_amds_gpus_says_so(tmp_path):
    with pytest.raises(TelemetryError, match="no GPU of AMD; is the amdgpu driver loaded"):
        amd.read_sysfs(tmp_path)


class AmdSmiException(Exception):  # noqa: N818  the library's name
    pass


def smi(**changes):
    """AMD's library with one MI300X, which has no edge sensor and no average power."""

    def degrees(_, kind, __):
        if kind == "edge":
            raise AmdSmiException("not supported")
        return 51

    functions = {
        "amdsmi_init": lambda: None,
        "amdsmi_shut_down": lambda: None,
        "amdsmi_get_processor_handles": lambda: ["handle"],
        "amdsmi_get_gpu_activity": lambda _: {"gfx_activity": 95, "umc_activity": 65535},
        "amdsmi_get_gpu_vram_usage": lambda _: {"vram_used": 2048, "vram_total": 196592},
        "amdsmi_get_power_info": lambda _: {
            "average_socket_power": "N/A", "current_socket_power": 700,
        },
        "amdsmi_get_temp_metric": degrees,
        "amdsmi_get_gpu_total_ecc_count": lambda _: {"uncorrectable_count": 0},
        "amdsmi_get_gpu_asic_info": lambda _: {"market_name": "AMD Instinct MI300X"},
    }  # fmt: skip
    return types.SimpleNamespace(
        AmdSmiException=AmdSmiException,
        AmdSmiTemperatureType=types.SimpleNamespace(EDGE="edge", JUNCTION="junction"),
        AmdSmiTemperatureMetric=types.SimpleNamespace(CURRENT=0),
        **functions | changes,
    )


def test_amdsmi_gives_every_channel_that_it_has_in_our_units():
    sample = amd.read_amdsmi(smi())
    assert sample.model == ("AMD Instinct MI300X",)
    np.testing.assert_allclose(sample.values[0], [0.95, 2048, 196592, np.nan, 51, 700, 0])


def test_a_gpu_that_amdsmi_cannot_name_is_missing_and_the_others_are_there():
    def info(handle):
        if handle == "lost":
            raise AmdSmiException("no such device")
        return {"market_name": "AMD Instinct MI300X"}

    handles = ["lost", "handle"]
    library = smi(amdsmi_get_processor_handles=lambda: handles, amdsmi_get_gpu_asic_info=info)
    sample = amd.read_amdsmi(library)
    assert sample.model == ("", "AMD Instinct MI300X")
    assert np.isnan(sample.values).all(axis=1).tolist() == [True, False]
    assert sample.notes == ("GPU 0 does not answer: no such device",)


def test_amdsmi_without_gpus_says_so():
    with pytest.raises(TelemetryError, match="no GPU of AMD; is the amdgpu driver loaded"):
        amd.read_amdsmi(smi(amdsmi_get_processor_handles=list))


def test_a_name_that_is_none_is_left_out():
    library = smi(amdsmi_get_gpu_asic_info=lambda _: {"market_name": "MI\x1b[2J"})
    assert amd.read_amdsmi(library).model == ("",)


def test_a_number_that_can_be_is_no_blank():
    sample = amd.read_amdsmi(
        smi(amdsmi_get_gpu_vram_usage=lambda _: {"vram_used": 65535, "vram_total": 196592})
    )
    assert sample.column("memory_used").tolist() == [65535.0]
    assert sample.notes == ()


def test_amdsmi_that_fails_says_so_in_one_line():
    def fail():
        raise AmdSmiException("no driver")

    with pytest.raises(TelemetryError, match="amdsmi: no driver; is the amdgpu driver loaded"):
        amd.read_amdsmi(smi(amdsmi_init=fail))


def test_a_library_of_amd_that_does_not_load_is_as_good_as_none(tmp_path, monkeypatch):
    (tmp_path / "amdsmi.py").write_text("raise KeyError('libamd_smi.so')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert amd.load() is None
