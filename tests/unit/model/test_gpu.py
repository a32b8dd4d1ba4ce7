import csv
import gzip
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from adlro.errors import ConfigError
from adlro.model import gpu

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data"
SPECS, SUMMARY = DATA / "gpu_specs.csv", DATA / "gpu_class_summary.csv"
NEEDS_DATA = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
DOCS = (ROOT / "docs" / "gpus.md").read_text(encoding="utf-8")
TOML = tomllib.loads((ROOT / "src/adlro/model/gpus.toml").read_text(encoding="utf-8"))

MEASURED = [(row["class"], row["gpu"], row["relative"]) for row in TOML["measured"]]
BORROWED = [
    (row["class"], row["gpu"], name)
    for row in TOML["measured"]
    for name in row.get("stands_in_for", ())
]
SOURCED = [*TOML["gpu"], *TOML["mig"], *TOML["measured"], *TOML["colocation"]]
WHOLE = [model for model in gpu.models() if model.parent is None]
SLICES = [model for model in gpu.models() if model.parent is not None]

TOLERANCE = 0.25
# Cells (class, model) whose roofline misses the measured speed by more than the tolerance.
OFF_THE_ROOFLINE = frozenset({("ml", "GTX 1080 Ti")})


def by_name(model):
    return model.name


def number(cell):
    special = {"": None, "none": 0.0}
    return special[cell] if cell in special else float(cell)


def speed(workload_class, name):
    return gpu.speed(workload_class, gpu.DEMANDS[workload_class], gpu.find(name))


def deviation(workload_class, name, measured):
    return gpu.roofline(gpu.DEMANDS[workload_class], gpu.find(name)) / measured - 1


def test_importing_the_catalogue_reads_no_file_and_no_numba():
    code = (
        "import sys; from adlro.model import gpu, gpu_catalogue;"
        "sys.exit('numba' in sys.modules or gpu_catalogue.catalogue.cache_info().currsize)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def collected():
    if not DATA.is_dir():
        return []
    with SPECS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@NEEDS_DATA
@pytest.mark.parametrize("row", collected(), ids=lambda row: row["gpu"])
def test_every_collected_figure_is_that_of_the_model(row):
    model = gpu.find(re.sub(r" \(.*", "", row["gpu"]))
    linkless = row["gpu_interconnect"] == "none"
    aside = {"name", "aliases", "tensor_like", "speed", "source", "parent", "board"}
    assert model.model_dump(exclude=aside) == {
        "vendor": row["vendor"],
        "architecture": row["architecture"],
        "launch": int(row["launch"]),
        "fp64_tflops": number(row["fp64_tflops"]),
        "fp32_tflops": number(row["fp32_tflops"]),
        "fp16_tflops": number(row["fp16_vector_tflops"]),
        "tensor_tflops": number(row["fp16_matrix_dense_tflops"]),
        "memory_gb": number(row["memory_gb"]),
        "bandwidth_gb_s": number(row["memory_bw_gb_s"]),
        "tdp_w": number(row["tdp_w"]),
        "host_interface": row["host_interface"],
        "interconnect": row["gpu_interconnect"] or None,
        "interconnect_gb_s": 0.0 if linkless else number(row["gpu_interconnect_gb_s_total"]),
    }


@pytest.mark.parametrize(
    "part", sorted({part for row in SOURCED for part in row["source"].split("; ")})
)
def test_a_source_names_an_entry_of_the_list_and_figures_of_the_record(part):
    key, figures = re.fullmatch(r"([\w-]+)(?:/[\w.-]+)?(?: \((.+)\))?", part).groups()
    assert key in TOML["sources"]
    assert set((figures or "name").split(", ")) <= gpu.GpuModel.model_fields.keys()


def test_every_listed_source_is_used():
    used = " ".join(row["source"] for row in SOURCED)
    assert [key for key in TOML["sources"] if not re.search(rf"\b{key}\b", used)] == []


@pytest.mark.parametrize(
    ("name", "gb_s"),
    [
        ("V100", 300),  # NVLink 2
        ("V100 PCIe", 32),  # none: PCIe 3.0
        ("A100 PCIe 40GB", 64),  # a bridge of unknown rate: PCIe 4.0
        ("H100 PCIe", 128),  # unknown: PCIe 5.0
        ("A100 40GB MIG 1g.5gb", 64),
    ],
)
def test_gpus_talk_over_the_host_interface_where_no_link_is_known(name, gb_s):
    assert gpu.find(name).link_gb_s == gb_s


def test_a_model_can_be_a_key_and_cannot_be_changed():
    model = gpu.find("T4")
    assert {model: 1}[gpu.find("Tesla T4")] == 1
    with pytest.raises(ValidationError, match="frozen"):
        model.tdp_w = 1


def test_a_slice_has_sevenths_of_the_compute_and_eighths_of_the_memory():
    part = gpu.find("A100 40GB MIG 3g.20gb")
    assert part.parent == "A100 40GB"
    assert (part.fp64_tflops, part.fp32_tflops) == pytest.approx((9.7 * 3 / 7, 19.5 * 3 / 7))
    assert (part.tensor_tflops, part.tdp_w) == pytest.approx((312 * 3 / 7, 400 * 3 / 7))
    assert (part.memory_gb, part.bandwidth_gb_s) == (20, 1555 / 2)


@pytest.mark.parametrize("part", SLICES, ids=by_name)
def test_the_name_of_a_slice_tells_its_size(part):
    slices, memory_gb = re.fullmatch(r".* MIG (\d)g\.(\d+)gb", part.name).groups()
    whole = gpu.find(part.parent)
    compute = {"A30": 4, "RTX PRO 6000": 4}.get(whole.name, 7)
    assert part.memory_gb == pytest.approx(int(memory_gb), abs=0.6)  # the names round
    assert part.fp32_tflops * compute == pytest.approx(whole.fp32_tflops * int(slices))


@pytest.mark.parametrize("model", WHOLE, ids=by_name)
def test_every_model_of_the_catalogue_names_its_maker_and_its_source(model):
    assert model.vendor
    assert model.architecture
    assert model.source
    assert model.speed == {}


@pytest.mark.parametrize(("die", "board"), [("MI250 die", "MI250"), ("MI250X die", "MI250X")])
def test_a_die_has_half_of_its_board(die, board):
    one, both = gpu.find(die), gpu.find(board)
    assert one.board == board
    for figure in ("fp64_tflops", "fp32_tflops", "tensor_tflops", "memory_gb", "bandwidth_gb_s"):
        assert getattr(one, figure) == pytest.approx(getattr(both, figure) / 2)
    assert one.tdp_w == both.tdp_w / 2


def test_a_speed_that_needs_an_unknown_figure_is_refused_by_the_name_of_the_figure():
    gaudi, ml = gpu.find("Gaudi 3"), gpu.DEMANDS["ml"]
    assert gpu.missing(ml, gaudi) == ("fp32_tflops",)
    assert gpu.missing(gpu.Demand(tensor=0.5, bandwidth=0.5), gaudi) == ()
    assert gpu.roofline(gpu.Demand(bandwidth=1), gaudi) == pytest.approx(3670 / 898)
    with pytest.raises(
        ConfigError, match=r"^no speed can be computed for 'Gaudi 3': its fp32_tflops is not known$"
    ):
        gpu.speed("ml", ml, gaudi)
    with pytest.raises(ConfigError, match=r"its fp64_tflops and fp32_tflops are not known$"):
        gpu.speed("data", gpu.DEMANDS["data"], gaudi)


def test_a_gpu_of_unknown_figures_reads_as_busy_and_as_memory_bound_as_the_reference():
    model = gpu.GpuModel(name="X1", memory_gb=64)
    assert (model.power_w, model.peak_gb_s, model.link_gb_s) == (300, 898, 64)
    demand = gpu.Demand(fp32=0.5, bandwidth=0.5)
    assert gpu.busy(demand, 7.0, model) == gpu.busy(demand, 1.0, gpu.find(gpu.REFERENCE))


def test_a_slow_fp16_unit_is_not_used_for_matrix_work():
    old = gpu.find("GTX 1080 Ti")  # FP16 at a 64th of FP32
    assert gpu.roofline(gpu.Demand(tensor=1), old) == pytest.approx(11.34 / 125)


def test_a_slice_is_slower_than_its_parent_by_the_ratio_of_rooflines():
    bound = gpu.Demand(bandwidth=1)
    part = gpu.speed("data", bound, gpu.find("A100 40GB MIG 3g.20gb"))
    assert part == (pytest.approx(1.637 / 2), "stand-in")


def test_a_slice_of_a_gpu_without_measurements_has_roofline_speed():
    assert speed("ml", "H100 MIG 1g.10gb").origin == "roofline"


def test_each_share_of_the_run_time_shrinks_with_its_own_rate():
    demand = gpu.Demand(fp32=0.5, bandwidth=0.5)
    expected = 1 / (0.5 * 15.67 / 8.141 + 0.5 * 898 / 320)
    assert gpu.roofline(demand, gpu.find("T4")) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda shares: sum(shares) > 0.01))
def test_the_reference_has_speed_one_whatever_the_demand(shares):
    fp64, fp32, tensor, bandwidth = (share / sum(shares) for share in shares)
    demand = gpu.Demand(fp64=fp64, fp32=fp32, tensor=tensor, bandwidth=bandwidth)
    assert gpu.roofline(demand, gpu.find(gpu.REFERENCE)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("A100", 312),
        ("Radeon VII", 26.88),  # no tensor cores: FP16 vector rate
        ("K80", 4.113),  # nor a known FP16 rate: FP32
        ("RTX 2080 Ti", 13.45 * 130.5 / 16.31),  # unknown: the ratio of the RTX 6000
    ],
)
def test_matrix_work_runs_at_the_best_rate_known(name, tflops):
    assert gpu.roofline(gpu.Demand(tensor=1), gpu.find(name)) == pytest.approx(tflops / 125)


@pytest.mark.parametrize(
    "shares", [{}, {"fp32": 0.5}, {"fp32": 1.5, "fp64": -0.5}, {"fp32": float("nan")}, {"fp16": 1}]
)
def test_a_demand_whose_shares_do_not_sum_to_one_is_refused(shares):
    with pytest.raises(ValidationError):
        gpu.Demand(**shares)


@pytest.mark.parametrize(("workload_class", "name", "measured"), MEASURED)
def test_the_roofline_meets_a_measured_speed_unless_listed(workload_class, name, measured):
    is_off = abs(deviation(workload_class, name, measured)) > TOLERANCE
    assert is_off == ((workload_class, name) in OFF_THE_ROOFLINE)


def test_the_list_of_missed_cells_holds_measured_cells_only():
    assert {(workload_class, name) for workload_class, name, _ in MEASURED} >= OFF_THE_ROOFLINE


@pytest.mark.parametrize(
    ("workload_class", "name", "relative", "origin"),
    [
        ("simulation", "V100 32GB", 1.0, "measured"),
        ("simulation", "RTX 6000", 0.525, "stand-in"),
        ("simulation", "Radeon Pro VII", 0.839, "stand-in"),
        ("ml", "V100 32GB", 1.0, "measured"),
        ("ml", "RTX 6000", 0.803, "measured"),
        ("ml", "Radeon Pro VII", 0.486, "measured"),
        ("data", "V100 32GB", 1.0, "measured"),
        ("data", "RTX 6000", pytest.approx(0.70, abs=0.005), "roofline"),
        ("data", "Radeon Pro VII", 0.975, "stand-in"),
    ],
)
def test_the_speeds_of_the_papers_cluster(workload_class, name, relative, origin):
    assert speed(workload_class, name) == (relative, origin)


@pytest.mark.parametrize("workload_class", [None, "rendering"])
def test_a_class_without_measurements_follows_the_roofline(workload_class):
    found = gpu.speed(workload_class, gpu.Demand(bandwidth=1), gpu.find("P100"))
    assert found == (pytest.approx(732 / 898), "roofline")


@NEEDS_DATA
def test_the_measured_speeds_equal_the_collected_summary():
    classes = {
        ("hpc_simulation", "fp64"): "simulation",
        ("ml_training", "fp32"): "ml",
        ("data_processing_memory_bound", "fp64"): "data",
    }
    with SUMMARY.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["gpu"] != "K20"]
    assert set(MEASURED) == {
        (
            classes[row["class"], row["precision"]],
            gpu.find(row["gpu"].replace("SXM3", "SXM2")).name,
            float(row["relative_geomean"]),
        )
        for row in rows
        if (row["class"], row["precision"]) in classes
    }


def test_a_cell_is_measured_or_borrowed_once():
    cells = [(workload_class, name) for workload_class, name, _ in MEASURED]
    cells += [(workload_class, name) for workload_class, _, name in BORROWED]
    assert len(cells) == len(set(cells))
    assert {workload_class for workload_class, _ in cells} == gpu.DEMANDS.keys()


@pytest.mark.parametrize(("workload_class", "lender", "borrower"), BORROWED)
def test_a_stand_in_is_a_near_relative(workload_class, lender, borrower):
    one, other = gpu.find(lender), gpu.find(borrower)
    assert one.architecture == other.architecture
    nearness = 0.01 if workload_class == "data" else 0.10
    assert one.bandwidth_gb_s == pytest.approx(other.bandwidth_gb_s, rel=nearness)


@NEEDS_DATA
def test_the_slowdown_on_one_gpu_is_the_median_of_the_measured_pairs():
    with (DATA / "gavel/gavel_isolated_throughputs.csv").open(encoding="utf-8") as file:
        alone = {
            row["job_type"]: float(row["steps_per_s"])
            for row in csv.DictReader(file)
            if (row["gpu_type"], row["num_gpus"]) == ("v100", "1")
        }
    with gzip.open(DATA / "gavel/gavel_colocated_throughputs.csv.gz", "rt") as file:
        beside = [
            (row["job_type"], float(row["steps_per_s"]))
            for row in csv.DictReader(file)
            if (row["gpu_type"], row["num_gpus"], row["other_num_gpus"]) == ("v100", "1", "1")
        ]
    slowdowns = [alone[name] / steps for name, steps in beside if steps > 0]  # 0: did not fit
    low, _, high = statistics.quantiles(slowdowns, n=4)
    assert gpu.slowdown("ml", "ml") == round(statistics.median(slowdowns), 3)
    assert len(slowdowns) == 636
    assert f"{len(slowdowns)} ordered pairs of {len(alone)} jobs" in DOCS
    assert f"{len(beside) - len(slowdowns)} more pairs did not fit" in DOCS
    assert f"between {low:.2f} and {high:.2f}" in DOCS


@pytest.mark.parametrize(
    ("own", "other"), [("ml", "data"), ("data", "ml"), ("data", "data"), (None, None), ("ml", None)]
)
def test_without_measurements_there_is_no_slowdown(own, other):
    assert gpu.slowdown(own, other) == 1


def test_an_idle_gpu_is_cool_and_draws_a_little():
    assert gpu.idle(gpu.find("V100")) == (0, 0, 35, pytest.approx(45))  # 15 % of 300 W


@pytest.mark.parametrize(
    ("demand", "relative", "expected"),
    [
        # All compute, at the roofline: 85 % of 300 W and 45 degrees on top of idle.
        ({"fp32": 1}, 1.0, (1, 0, 45, 255)),
        # All memory: 60 % of that, all 898 GB/s.
        ({"bandwidth": 1}, 1.0, (1, 898, 27, 153)),
        # At half the roofline's speed all of it halves.
        ({"bandwidth": 1}, 0.5, (0.5, 449, 13.5, 76.5)),
        # Half of each: 1 - 0.4 / 2 = 0.8.
        ({"fp32": 0.5, "bandwidth": 0.5}, 1.0, (1, 449, 36, 204)),
        # Faster than the roofline is no more than busy.
        ({"fp32": 1}, 3.0, (1, 0, 45, 255)),
    ],
)
def test_what_a_job_adds_to_the_readings_of_the_reference(demand, relative, expected):
    shown = gpu.busy(gpu.Demand(**demand), relative, gpu.find(gpu.REFERENCE))
    assert shown == pytest.approx(expected)


def test_memory_bounds_a_job_more_where_memory_is_slow():
    # On a T4 half FP32, half memory becomes 0.5 x 15.67 / 8.141 and 0.5 x 898 / 320.
    demand, model = gpu.Demand(fp32=0.5, bandwidth=0.5), gpu.find("T4")
    by_memory = (898 / 320) / (15.67 / 8.141 + 898 / 320)
    shown = gpu.busy(demand, gpu.roofline(demand, model), model)
    assert shown.bandwidth == pytest.approx(by_memory * 320)
    assert shown.power == pytest.approx((1 - 0.4 * by_memory) * 0.85 * 70)


@pytest.mark.parametrize("model", gpu.models(), ids=by_name)
def test_no_job_drives_a_gpu_beyond_its_limits(model):
    idle = gpu.idle(model)
    for workload_class, demand in gpu.DEMANDS.items():
        known = not gpu.missing(demand, model)
        relative = gpu.speed(workload_class, demand, model).relative if known else 1.0
        shown = gpu.busy(demand, relative, model)
        assert 0 < shown.utilisation <= 1
        assert 0 < shown.bandwidth <= model.peak_gb_s
        assert idle.temperature + shown.temperature <= 80
        assert idle.power + shown.power <= model.power_w
