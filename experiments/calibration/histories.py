"""The public histories with recorded starts, each with the cluster it is replayed on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from traces.catalogue import TRACES

from adlro.workloads import inventory

Groups = list[dict[str, Any]]  # tables of cluster.nodes
_ANY = "V100 32GB"  # the reference GPU; all models are alike here
_LOTS_GB = 4096  # memory that limits no job: the source does not state that of a node


class PublicHistory(NamedTuple):
    """A history file, and a cluster."""

    name: str
    file: str  # in the folder of shared data
    nodes: Callable[[Path], Groups]  # made from the folder of shared data
    cluster: str  # what the cluster is, and where that is stated
    recorded: Mapping[str, str] = {}  # further keys of the scenario's [history]


def _alike(
    count: int, gpus: int, cores: int = 128, memory_gb: int = _LOTS_GB
) -> Callable[[Path], Groups]:
    """Return a cluster of nodes that are alike."""
    group = {"name": "node", "count": count, "gpu": _ANY, "gpus": gpus}
    return lambda _: [{**group, "cores": cores, "memory_gb": memory_gb}]


def _of_traces(name: str) -> Callable[[Path], Groups]:
    """Return the cluster of the experiment `traces`."""
    (trace,) = (one for one in TRACES if one.name == name)
    return lambda _: [
        {"name": model, "count": count, "gpu": model, "gpus": gpus, "cores": c, "memory_gb": gb}
        for model, (count, gpus, c, gb) in trace.nodes.items()
    ]


def _openb_nodes(folder: Path) -> Groups:
    listed = inventory.read(folder / _OPENB / "openb_node_list_gpu_node.csv", {})
    models = {"G2": "A10", "G3": "A10"}  # unnamed in the source
    found = inventory.as_cluster(listed, inventory.Request("openb", models))
    groups: Any = found.tables["nodes"]
    return list(groups)


_OPENB = "data/alibaba_openb_2023"
_OPENB_PODS = f"{_OPENB}/openb_pod_list_default.dev.csv.gz"
_THETA = "data/thetagpu/thetagpu_jobs.dev.csv.gz"
_CORES = {"gpus_from": "cores"}

HISTORIES = (
    PublicHistory(
        "ThetaGPU, as in traces", _THETA, _of_traces("ThetaGPU"),
        "16 A100, the small cluster of the experiment `traces`",
    ),
    PublicHistory(
        "ThetaGPU, units are GPUs", _THETA, _alike(24, 8),
        "24 DGX A100 of 8 GPUs (docs.alcf.anl.gov); `gpu_num` read as GPUs",
    ),
    PublicHistory(
        "ThetaGPU, units are nodes", _THETA, _alike(24, 1),
        "24 DGX A100 (docs.alcf.anl.gov); `gpu_num` read as whole nodes",
    ),
    PublicHistory(
        "openb, as in traces", _OPENB_PODS, _of_traces("openb"),
        "8 A10, 4 T4, 2 P100, the small cluster of the experiment `traces`",
    ),
    PublicHistory(
        "openb, all nodes", _OPENB_PODS, _openb_nodes, "6,212 GPUs, openb's own list of nodes"
    ),
    PublicHistory(
        "MIT Supercloud", "data/mit_supercloud/slurm_9628_jobs.csv.gz", _alike(224, 2, 40, 384),
        "224 nodes with 2 V100, 40 cores and 384 GB (docs of llsc-supercloud, "
        "systems-and-software.md)",
    ),
    PublicHistory(
        "DLRM 2025", "data/alibaba_other/disaggregated_DLRM_2025.csv.gz", _alike(30, 8),
        "not published; 240 GPUs, in nodes of 8, hold the 227 that were in use at once",
    ),
    PublicHistory(
        "HPC2N", "data/swf/HPC2N-2002-2-first3170.swf.gz", _alike(240, 1),
        "240 nodes with a processor each (header of the file)", _CORES,
    ),
    PublicHistory(
        "RICC", "data/swf/RICC-2010-2.swf.gz", _alike(1024, 8),
        "1,024 nodes with 8,192 cores (header of the file)", _CORES,
    ),
    PublicHistory(
        "Eagle", "data/nrel_eagle/sample_eagle_data.csv.gz", _alike(2618, 36),
        "2,618 nodes of 36 cores (nrel.gov/hpc/eagle-system-configuration.html)", _CORES,
    ),
    PublicHistory(
        "SDSC SP2, simulated by CQSim", "data/swf/SDSC-SP2-1998-4_cqsim_output.rst.gz",
        _alike(128, 1), "128 processors, as many as its largest job has", _CORES,
    ),
)  # fmt: skip

WITHOUT_STARTS = {  # name -> pattern of its files in the folder of shared data
    "Philly": "data/philly/philly_jobs.dev.csv.gz",
    "Philly by Gavel": "data/philly/gavel_msr_seed0/*.trace.gz",
    "Helios Venus": "data/helios/venus_gpu_jobs_*.csv.gz",
    "PAI": "data/alibaba_pai_2020/pai_gpu_tasks_*.csv.gz",
    "PAI by Hydra": "data/alibaba_pai_2020/hydra_*.csv.gz",
    "ITP": "data/microsoft_itp_2021/cluster*.csv.gz",
    "Acme Kalos": "data/acme/kalos_converted_319_jobs.csv",
    "Sia": "data/sia_pollux/workloads/*/*.csv",
    "Tiresias": "data/tiresias/60_job.csv",
    "Mira": "data/swf/ALCF-Mira-2018.swf.gz",
    "LCG": "data/swf/LCG-2005-1.swf.gz",
    "NASA": "data/swf/NASA-iPSC-1993-3.1-cln.swf.gz",
    "Lublin (synthetic)": "data/swf/lublin_256*.swf.gz",
}
