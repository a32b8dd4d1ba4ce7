"""Readers of two lists derived from Alibaba PAI (2020): sampled GPU tasks, and the list of Hydra.

Weng et al., NSDI 2022. Hydra's list has times on three GPU models, which are one real time scaled
by assumed factors; only the time on the V100 is read.
"""

from __future__ import annotations

import numpy as np

from adlro.model.state import WHOLE
from adlro.workloads.formats import helios
from adlro.workloads.formats.format import Head, TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows


def _is_pai(head: Head) -> bool:
    return head.first_field(1).startswith("ali-")


FORMAT = of_table(
    TableFormat(
        "pai",
        "Alibaba PAI 2020, sampled GPU tasks: job_id,arrival_s,service_sec,gpu_count",
        helios.NEEDS,
        helios.columns,
        notes=(
            "submission is the start of the task: the source has no other",
            "run times are capped at 172,800 s, and parts of a GPU rounded up to 1, by whoever "
            "derived the file",
        ),
    ),
    _is_pai,
)


def _hydra(rows: Rows) -> Columns:
    return {
        "id": rows.words("job_name"),
        "submit_s": rows.numbers("norm_job_submit_time"),
        "run_s": rows.numbers("V100"),
        "gpus": np.full(len(rows), float(WHOLE)),
        "gpu_model": ["V100"] * len(rows),
    }


HYDRA = of_table(
    TableFormat(
        "hydra",
        "Alibaba PAI tasks with times on three GPU models (Hydra)",
        ("job_name", "norm_job_submit_time", "A100", "V100", "GTX2080Ti"),
        _hydra,
        notes=(
            "one GPU each, as the source says of all; deadlines and the times on A100 and "
            "GTX2080Ti, which are assumed factors, are not taken",
        ),
    )
)
