"""GPU models that a cluster file defines: [[gpu]] tables, good and bad."""

import tomllib

import numpy as np
import pytest

from adlro.config.files import load_cluster, load_scenario
from adlro.config.scenario import Scenario
from adlro.config.to_toml import as_toml
from adlro.errors import ConfigError
from adlro.model import gpu
from adlro.model.cluster import lay_out
from adlro.workloads import capacity, traits
from adlro.workloads.setting import prepare
from tests.scenario_files import TYPE, of_type, refusal, write

FIGURES = "bandwidth_gb_s = 1796\nfp32_tflops = 31.34\ntensor_tflops = 250\n"  # twice the V100's
NODES = '[[nodes]]\nname = "n"\ngpu = "x1-64"\ngpus = 4\ncores = 8\nmemory_gb = 64\n'


def table(more="", name="X1", memory_gb="64"):
    return f'[[gpu]]\nname = "{name}"\naliases = ["x1_64"]\nmemory_gb = {memory_gb}\n{more}\n'


def of_cluster(folder, own, types=TYPE):
    """The path of a scenario with one type on the nodes of a cluster file that defines a GPU."""
    write(folder, own + NODES, "cluster.toml")
    return write(folder, f'cluster = "cluster.toml"\n{types}')


def speeds(scenario):
    return capacity.type_speeds(scenario, lay_out(scenario.cluster)).tolist()


def test_a_defined_gpu_has_its_own_memory_and_name(tmp_path):
    write(tmp_path, table() + NODES, "cluster.toml")
    layout = lay_out(load_cluster(tmp_path / "cluster.toml"))
    assert [model.name for model in layout.models] == ["X1"]
    assert layout.pool_names == ("X1 (main)",)
    assert layout.pools["gpu_memory"].tolist() == [64 * 1024]


def test_a_scenario_defines_a_gpu_inside_its_own_cluster(tmp_path):
    own = table(FIGURES).replace("[[gpu]]", "[[cluster.gpu]]")
    nodes = NODES.replace("[[nodes]]", "[[cluster.nodes]]")
    scenario = load_scenario(write(tmp_path, own + nodes + TYPE))
    assert speeds(scenario) == [[pytest.approx(2)]]


@pytest.mark.parametrize(
    ("own", "type_speed", "speed"),
    [
        (FIGURES, "", 2),  # roofline
        (FIGURES + "speed = { ml = 3 }", "", 3),  # by kind, before the roofline
        ("speed = { ml = 3, t = 4 }", "", 4),  # by type, before the kind
        ("speed = { t = 4 }", "speed = { X1 = 5 }", 5),  # of the scenario, before all
        ("", 'speed = { "x1 64" = 5 }', 5),  # under another name
    ],
)
def test_the_speed_is_the_scenarios_else_the_tables_else_the_roofline(
    tmp_path, own, type_speed, speed
):
    types = TYPE.replace('kind = "ml"', f'kind = "ml"\n{type_speed}')
    assert speeds(load_scenario(of_cluster(tmp_path, table(own), types))) == [
        [pytest.approx(speed)]
    ]


@pytest.mark.parametrize(
    ("own", "unknown"),
    [
        ("", "fp32_tflops and tensor_tflops and bandwidth_gb_s are"),
        ("fp32_tflops = 20\nbandwidth_gb_s = 900", "tensor_tflops is"),
        ("speed = { data = 2 }", "fp32_tflops and tensor_tflops and bandwidth_gb_s are"),
    ],
)
def test_a_type_without_a_speed_on_it_is_told_what_to_add(tmp_path, own, unknown):
    scenario = load_scenario(of_cluster(tmp_path, table(own)))
    assert refusal(speeds, scenario) == (
        f"types.t.speed says nothing of 'X1', and its {unknown} not known; add the speed there, or "
        "either to its [[gpu]] table"
    )


def test_a_model_of_the_catalogue_with_blank_figures_takes_the_users_speed(tmp_path):
    text = of_type("").replace('gpu = "V100"', 'gpu = "Gaudi 2"')
    assert refusal(speeds, load_scenario(write(tmp_path, text))) == (
        "types.t.speed says nothing of 'Gaudi 2', and its fp32_tflops is not known; add the speed "
        "there"
    )
    text = of_type("speed = { gaudi2 = 1.5 }").replace('gpu = "V100"', 'gpu = "Gaudi 2"')
    assert speeds(load_scenario(write(tmp_path, text))) == [[1.5]]


def test_everything_that_names_a_gpu_may_name_it(tmp_path):
    more = (
        'affinity = { t = "X1" }\nprices = { x1_64 = 2.0 }\ntelemetry = true\n'
        '[[quotas]]\nusers = "each"\ncaps = { X1 = 2 }\n'
        '[[changes]]\nkind = "update"\ntype = "t"\nmodel = "X1"\nat_h = 1\nspeed = 2.0\n'
    )
    types = TYPE.replace('kind = "ml"', 'kind = "ml"\nmodels = ["X1"]')
    path = of_cluster(tmp_path, table("speed = { ml = 3 }"), more + types)
    setting = prepare(load_scenario(path))
    assert setting.affinity == (0,)
    assert setting.prices.tolist() == [2.0]
    readings = traits.readings(setting.scenario, np.array([[3.0]]), setting.layout)
    assert readings["power"][1, 0] == pytest.approx(45)  # idle, of the assumed 300 W


def test_a_scenario_with_a_defined_gpu_written_as_toml_reads_back_the_same(tmp_path):
    path = of_cluster(
        tmp_path, table(FIGURES + 'speed = { t = 2 }\nhost_interface = "PCIe 5.0 x8"')
    )
    scenario = load_scenario(path)
    again = Scenario.model_validate(tomllib.loads(as_toml(scenario)))
    assert again == scenario
    assert again.cluster.gpu[0].speed == {"t": 2}


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (table(memory_gb="0"), "gpu.0.memory_gb: input should be greater than 0, not 0"),
        (table(memory_gb="1e6"), "gpu.0.memory_gb: input should be less than or equal to 4096"),
        ('[[gpu]]\nname = "X1"\n', "gpu.0.memory_gb: field required"),
        (table(name=""), "gpu.0.name: string should have at least 1 character"),
        (
            table(name="a100_80gb", memory_gb="96"),
            "gpu.0: 'a100_80gb' is a name of the catalogue's 'A100 80GB' with 80 GB; choose "
            "another name or remove this table",
        ),
        (table(name="mi250"), "gpu.0: 'mi250' is a name of the catalogue's 'MI250' with 128 GB"),
        (
            table(name="a100_3g.20gb"),
            "gpu.0: 'a100_3g.20gb' is a name of the catalogue's 'A100 40GB",
        ),
        (
            table(name="X1 96GB"),
            "gpu.0.memory_gb: 'X1 96GB' says 96 GB, not 64; correct one",
        ),
        (table() + table(name="x1"), "gpu.1: two GPU models are called 'x1'; rename one"),
        (table("fp32_tflops = -1"), "gpu.0.fp32_tflops: input should be greater than 0, not -1"),
        (table("bandwidth_gb_s = nan"), "gpu.0.bandwidth_gb_s: input should be"),
        (table("speed = { ml = 0 }"), "gpu.0.speed.ml: input should be greater than 0, not 0"),
        (table("tflops = 3"), "gpu.0.tflops: unknown key"),
        (
            table('host_interface = "PCIe 9"'),
            "gpu.0.host_interface: input should be 'PCIe 3.0 x16'",
        ),
        (
            table('parent = "H100"'),
            "gpu.0.parent: only models of the catalogue have one; remove it",
        ),
        (table('tensor_like = "H10"'), "gpu.0.tensor_like: unknown GPU model 'H10': did you mean"),
        (
            table().replace("x1_64", "x1_32"),
            "nodes.0.gpu: unknown GPU model 'x1-64': did you mean 'X1'",
        ),
        ("gpu = 3\n", "gpu: should be a list ([[ ]] makes one of tables), not 3"),
    ],
)
def test_a_wrong_table_is_named_by_file_and_key(tmp_path, own, message):
    path = write(tmp_path, own + NODES, "cluster.toml")
    assert refusal(load_cluster, path).startswith(f"{path}: {message}")


def test_inside_a_scenario_the_key_names_the_cluster(tmp_path):
    own = table(name="H100").replace("[[gpu]]", "[[cluster.gpu]]")
    path = write(tmp_path, own + NODES.replace("[[nodes]]", "[[cluster.nodes]]") + TYPE)
    assert refusal(load_scenario, path).startswith(f"{path}: cluster.gpu.0: 'H100' is a name of")


def test_a_gpu_of_one_cluster_is_unknown_to_the_next(tmp_path):
    load_scenario(of_cluster(tmp_path, table(FIGURES)))
    path = write(tmp_path, of_type("speed = { X1 = 2.0 }"), "other.toml")
    assert "types.0.speed.X1: unknown GPU model 'X1'" in refusal(load_scenario, path)
    with pytest.raises(ConfigError):
        gpu.find("X1")
