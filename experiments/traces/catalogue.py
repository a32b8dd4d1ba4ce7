"""The public traces of the experiment, each with a cluster of several GPU models.

Times are seconds of the trace. The split is a round number near the median submission; the window
leaves eight windows or more after the split.
"""

from __future__ import annotations

from .halves import Trace

_HALF_V100 = "half V100, a quarter each P100 and K80, as in gavel16"
_THIRDS = "a third each A100, V100 and T4"


def _era(v100: int, p100: int, k80: int) -> dict[str, tuple[int, int, int, int]]:
    return {"V100 32GB": (v100, 8, 64, 512), "P100": (p100, 8, 64, 512), "K80": (k80, 8, 64, 512)}


_ITP = {"A100 40GB": (2, 8, 64, 512), "V100 32GB": (2, 8, 64, 512), "T4": (2, 8, 64, 512)}
_PAI = {
    "P100": (40, 2, 64, 512), "T4": (25, 2, 96, 512), "V100 32GB": (7, 8, 96, 384),
    "V100 16GB": (5, 8, 96, 512),
}  # fmt: skip
_OPENB = {"A10": (1, 8, 96, 384), "T4": (2, 2, 104, 512), "P100": (1, 2, 16, 120)}

TRACES = (
    Trace(
        "Philly", "data/philly/philly_jobs.dev.csv.gz", 1.7e6, 3.7e6, 2000, _era(4, 2, 2),
        _HALF_V100,
    ),
    Trace(
        "Helios Venus", "data/helios/venus_gpu_jobs_until_2020-08.csv.gz", 1.2e6, 8.3e6, 2000,
        _era(16, 8, 8), _HALF_V100,
    ),
    Trace(
        "PAI", "data/alibaba_pai_2020/pai_gpu_tasks_8pct.dev.csv.gz", 0.0, 2.4e6, 1000, _PAI,
        "pai_machine_spec at 1 : 20, without the GPUs that it does not name",
    ),
    Trace(
        "openb", "data/alibaba_openb_2023/openb_pod_list_default.dev.csv.gz", 9.9e6, 11.2e6, 280,
        _OPENB, "the largest groups of openb's nodes at about 1 : 500; its G2, unnamed, is an A10",
    ),
    Trace("ITP 02", "data/microsoft_itp_2021/cluster02.csv.gz", 0.0, 2.7e6, 250, _ITP, _THIRDS),
    Trace("ITP 07", "data/microsoft_itp_2021/cluster07.csv.gz", 0.0, 2.0e6, 500, _ITP, _THIRDS),
    Trace("ITP 08", "data/microsoft_itp_2021/cluster08.csv.gz", 0.0, 1.8e6, 500, _ITP, _THIRDS),
    Trace("ITP 09", "data/microsoft_itp_2021/cluster09.csv.gz", 0.0, 3.1e6, 500, _ITP, _THIRDS),
    Trace(
        "ThetaGPU", "data/thetagpu/thetagpu_jobs.dev.csv.gz", 8.6e6, 14.4e6, 500,
        {"A100 40GB": (2, 8, 128, 1024)}, "its own kind of node; only one GPU model",
    ),
)  # fmt: skip
