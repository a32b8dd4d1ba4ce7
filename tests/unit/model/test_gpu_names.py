import pytest

from adlro.errors import ConfigError
from adlro.model import gpu

# Names of GPUs as people, Slurm (gres.conf, AutoDetect), nvidia-smi, rocm-smi and DCGM write them.
NAMES = {
    "V100 32GB": ["V100", "v100 32gb", "Tesla V100-SXM2-32GB", "tesla_v100-sxm2-32gb", "V100M32"],
    "V100 16GB": ["Tesla V100-SXM2-16GB", "v100_16g", "V100M16"],
    "V100 PCIe 16GB": ["Tesla V100-PCIE-16GB"],
    "V100 PCIe 32GB": ["tesla_v100-pcie-32gb"],
    "V100S": ["v100s", "tesla_v100s", "Tesla V100S-PCIE-32GB", "tesla_v100s-pcie-32gb"],
    "T4": ["t4", "Tesla T4", "tesla_t4"],
    "P100": ["p100", "Tesla P100-SXM2-16GB"],
    "P100 PCIe": ["Tesla P100-PCIE-16GB"],
    "P40": ["tesla_p40"],
    "A2": ["NVIDIA A2"],
    "A10": ["a10", "nvidia_a10"],
    "A10G": ["a10g", "NVIDIA A10G"],
    "A16": ["a16", "NVIDIA A16"],
    "A30": ["a30", "nvidia_a30", "NVIDIA A30"],
    "A40": ["a40", "nvidia_a40", "NVIDIA A40"],
    "A100 40GB": ["A100", "a100", "nvidia_a100-sxm4-40gb", "NVIDIA A100-SXM4-40GB"],
    "A100 80GB": ["a100-sxm4-80gb", "a100_80gb", "a100_80g", "NVIDIA A100-SXM4-80GB"],
    "A100 PCIe 40GB": ["NVIDIA A100-PCIE-40GB", "nvidia_a100-pcie-40gb"],
    "A100 PCIe 80GB": ["nvidia_a100_80gb_pcie", "NVIDIA A100 80GB PCIe"],
    "A800 80GB": ["a800", "A800-SXM4-80GB", "NVIDIA A800-SXM4-80GB"],
    "A800 PCIe 80GB": ["NVIDIA A800 80GB PCIe"],
    "H100": ["h100", "nvidia_h100_80gb_hbm3", "NVIDIA H100 80GB HBM3", "h100_sxm"],
    "H100 PCIe": ["NVIDIA H100 PCIe", "nvidia_h100_pcie", "h100-pcie"],
    "H100 NVL": ["h100_nvl", "NVIDIA H100 NVL", "nvidia_h100_nvl"],
    "H800": ["h800", "NVIDIA H800"],
    "H200": ["h200", "NVIDIA H200", "nvidia_h200"],
    "H200 NVL": ["NVIDIA H200 NVL"],
    "GH200": ["gh200", "NVIDIA GH200 480GB", "nvidia_gh200_120gb"],
    "B200": ["b200", "NVIDIA B200"],
    "GB200": ["gb200", "NVIDIA GB200"],
    "L4": ["l4", "nvidia_l4"],
    "L40": ["l40", "NVIDIA L40"],
    "L40S": ["l40s", "nvidia_l40s", "NVIDIA L40S"],
    "RTX A4000": ["rtx_a4000", "NVIDIA RTX A4000", "a4000"],
    "RTX A4500": ["rtx_a4500", "NVIDIA RTX A4500"],
    "RTX A5000": ["rtx_a5000", "rtxa5000", "nvidia_rtx_a5000"],
    "RTX A5500": ["rtx_a5500"],
    "RTX A6000": ["rtxa6000", "rtx_a6000", "a6000", "NVIDIA RTX A6000", "nvidia_rtx_a6000"],
    "RTX 6000": ["quadro_rtx_6000", "Quadro RTX 6000"],
    "RTX 8000": ["quadro_rtx_8000", "rtx8000"],
    "RTX 6000 Ada": ["rtx_6000_ada", "NVIDIA RTX 6000 Ada Generation", "rtx6000ada"],
    "RTX PRO 6000": [
        "rtx_pro_6000",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "nvidia_rtx_pro_6000_blackwell_workstation_edition",
    ],
    "GTX 1080 Ti": ["gtx_1080_ti", "gtx1080ti", "GeForce GTX 1080 Ti", "1080ti"],
    "Titan RTX": ["titan_rtx", "TITAN RTX", "NVIDIA TITAN RTX"],
    "Titan V": ["titan_v", "TITAN V"],
    "RTX 2080 Ti": ["rtx_2080_ti", "2080ti", "nvidia_geforce_rtx_2080_ti", "rtx2080ti"],
    "RTX 3060": ["rtx_3060", "rtx3060"],
    "RTX 3060 Ti": ["rtx_3060_ti"],
    "RTX 3070": ["rtx3070"],
    "RTX 3070 Ti": ["rtx_3070_ti"],
    "RTX 3080": ["rtx3080"],
    "RTX 3080 Ti": ["geforce_rtx_3080_ti"],
    "RTX 3090": ["rtx_3090", "rtx3090", "nvidia_geforce_rtx_3090", "3090"],
    "RTX 3090 Ti": ["rtx_3090_ti"],
    "RTX 4070": ["rtx_4070"],
    "RTX 4070 Ti": ["rtx4070ti"],
    "RTX 4080": ["rtx_4080", "NVIDIA GeForce RTX 4080"],
    "RTX 4080 Super": ["NVIDIA GeForce RTX 4080 SUPER"],
    "RTX 4090": ["rtx_4090", "rtx4090", "NVIDIA GeForce RTX 4090"],
    "RTX 5070": ["rtx_5070"],
    "RTX 5070 Ti": ["rtx_5070_ti"],
    "RTX 5080": ["rtx_5080"],
    "RTX 5090": ["rtx_5090", "NVIDIA GeForce RTX 5090"],
    "MI50": ["AMD Instinct MI50", "mi50"],
    "MI100": ["mi100", "AMD Instinct MI100"],
    "MI210": ["mi210", "AMD Instinct MI210", "amd_instinct_mi210"],
    "MI250": ["mi250", "AMD Instinct MI250"],
    "MI250X": ["mi250x", "amd_instinct_mi250x"],
    "MI250 die": ["mi250_die", "MI250 GCD"],
    "MI300A": ["mi300a", "AMD Instinct MI300A"],
    "MI300X": ["mi300x", "AMD Instinct MI300X OAM"],
    "MI325X": ["mi325x", "AMD Instinct MI325X"],
    "MI355X": ["mi355x", "AMD Instinct MI355X"],
    "Max 1550": ["max_1550", "Intel Data Center GPU Max 1550", "pvc"],
    "Gaudi 2": ["gaudi2", "Intel Gaudi 2", "habana_gaudi2"],
    "Gaudi 3": ["gaudi3", "gaudi_3"],
    "A100 40GB MIG 1g.5gb": [
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "nvidia_a100_1g.5gb",
        "a100_1g.5gb",
        "1g.5gb",
        "nvidia_a100-sxm4-40gb_mig_1g.5gb",
        "1g.5gb+me",
    ],
    "A100 40GB MIG 3g.20gb": ["a100_3g.20gb", "3g.20gb", "A100-3g.20gb"],
    "A100 80GB MIG 1g.10gb": ["1g.10gb", "a100_1g.10gb", "gpu_1g.10gb", "mig-1g.10gb"],
    "A100 80GB MIG 1g.20gb": ["a100_1g.20gb"],
    "A100 80GB MIG 7g.80gb": ["a100_7g.80gb"],
    "H100 MIG 2g.20gb": ["h100_2g.20gb", "nvidia_h100_80gb_hbm3_2g.20gb"],
    "H100 NVL MIG 3g.47gb": ["3g.47gb", "h100_nvl_3g.47gb"],
    "H200 MIG 1g.18gb": ["h200_1g.18gb", "1g.18gb"],
    "B200 MIG 3g.90gb": ["b200_3g.90gb"],
    "GH200 MIG 3g.48gb": ["gh200_3g.48gb"],
    "A30 MIG 1g.6gb": ["a30_1g.6gb", "1g.6gb"],
}


@pytest.mark.parametrize(
    ("written", "name"), [(written, name) for name, all_ in NAMES.items() for written in all_]
)
def test_a_model_is_found_however_tools_and_people_spell_it(written, name):
    assert gpu.find(written).name == name


@pytest.mark.parametrize("model", gpu.models(), ids=lambda model: model.name)
def test_no_other_model_has_the_same_name_or_alias(model):
    assert {gpu.find(name).name for name in (model.name, *model.aliases)} == {model.name}


def test_an_unknown_model_is_answered_with_close_ones():
    with pytest.raises(ConfigError, match=r"^unknown GPU model 'V10': did you mean 'V100 32GB' or"):
        gpu.find("V10")


def test_no_more_than_three_models_are_suggested():
    with pytest.raises(ConfigError) as caught:
        gpu.find("MI25")
    assert str(caught.value).endswith("did you mean 'MI250' or 'MI325X' or 'MI250X'?")


@pytest.mark.parametrize("written", ["", "nothing at all", "§"])
def test_for_a_name_like_no_other_the_error_gives_the_number_of_models(written):
    count = len(gpu.models())
    with pytest.raises(ConfigError, match=rf"^unknown GPU model '{written}': none of the {count} "):
        gpu.find(written)


@pytest.mark.parametrize(
    "written", ["a100_1g.7gb", "t4_1g.5gb", "5g.10gb", "a100_3g", "v100_1g.5gb"]
)
def test_a_mig_profile_that_no_such_gpu_has_is_unknown(written):
    with pytest.raises(ConfigError, match="unknown GPU model"):
        gpu.find(written)


def identified(name, *features):
    model, others = gpu.identify(name, features)
    return model.name, [other.name for other in others]


@pytest.mark.parametrize(
    ("name", "features", "model", "others"),
    [
        ("a100", [], "A100 40GB", ["A100 80GB", "A100 PCIe 40GB", "A100 PCIe 80GB"]),
        ("h200", ["intel", "ib", "skylake"], "H200", ["H200 NVL"]),
        ("a100", ["80g"], "A100 80GB", ["A100 PCIe 80GB"]),
        ("a100", ["a100_80gb"], "A100 80GB", ["A100 PCIe 80GB"]),
        ("a100", ["gpu80", "sxm4"], "A100 80GB", []),
        ("a100", ["a100", "GPU_MEM:80GB", "GPU_BRD:PCIe"], "A100 PCIe 80GB", []),
        ("a100", ["40gb", "pcie"], "A100 PCIe 40GB", []),
        ("v100", ["v100-16"], "V100 16GB", ["V100 PCIe 16GB"]),
        ("v100", ["32gb", "nvlink", "sxm2"], "V100 32GB", []),
        ("h100", ["nvl"], "H100 NVL", []),
        ("h200", ["nvlink", "nvl72"], "H200", ["H200 NVL"]),
        ("h100", ["94gb"], "H100 NVL", []),
        ("h100", ["64g"], "H100 64GB", []),
        ("rtx_6000", ["ada"], "RTX 6000 Ada", []),
        ("1g.10gb", ["h100", "sxm5"], "H100 MIG 1g.10gb", []),
        ("a100_1g.10gb", ["40gb", "sxm4"], "A100 40GB MIG 1g.10gb", []),
        ("mi250", [], "MI250 die", []),
        ("amd_instinct_mi250x", [], "MI250X die", []),
        ("l40s", ["80g", "anything"], "L40S", []),
    ],
)
def test_features_of_the_node_decide_between_models_of_one_name(name, features, model, others):
    assert identified(name, *features) == (model, others)


def test_a_name_that_may_mean_several_models_lists_all_of_them():
    assert [model.name for model in gpu.meant_by("h100")] == [
        "H100", "H100 PCIe", "H100 NVL", "H100 64GB"
    ]  # fmt: skip
    assert [model.name for model in gpu.meant_by("mi250")] == ["MI250", "MI250 die"]
    assert gpu.meant_by("no such") == ()


@pytest.mark.parametrize(
    ("asked", "may_use"),
    [
        ("a100", ["A100 80GB", "A100 PCIe 40GB"]),
        ("a100_80gb", ["A100 80GB"]),
        ("mi250", ["MI250 die"]),
        ("a100_3g.20gb", ["A100 40GB MIG 3g.20gb"]),
        ("x1_64", ["X1"]),
        ("v100", []),
        ("no such", []),
    ],
)
def test_a_job_that_asks_for_a_name_may_use_every_model_here_that_has_it(asked, may_use):
    names = ["A100 80GB", "A100 PCIe 40GB", "MI250 die", "A100 40GB MIG 3g.20gb"]
    mine = gpu.GpuModel(name="X1", aliases=("x1_64",), memory_gb=64)
    here = (*map(gpu.find, names), mine)
    assert [model.name for model in gpu.among(asked, here)] == may_use


def test_a_model_of_the_cluster_comes_before_the_catalogue():
    mine = gpu.GpuModel(name="X1", aliases=("x1_64",), memory_gb=64)
    assert gpu.find("x1-64", (mine,)) is mine
    assert gpu.identify("X1", ["80g"], (mine,)) == (mine, ())
    assert gpu.find("T4", (mine,)).name == "T4"
    with pytest.raises(ConfigError, match=r"unknown GPU model 'X2': did you mean 'X1'"):
        gpu.find("X2", (mine,))


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [("a100", "A100 40GB", True), ("a100", "A100 80GB", False), ("X1", "A100 40GB", False)],
)
def test_a_name_is_that_of_the_model_that_it_means(name, model, expected):
    assert gpu.is_name_of(name, gpu.find(model)) is expected
