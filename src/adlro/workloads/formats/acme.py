"""Reader of Acme (Shanghai AI Lab, 2023) in a converted form: large jobs of the cluster Kalos.

Hu et al., NSDI 2024. The logs as published are plain CSV files: csv_columns.py reads them.
"""

from __future__ import annotations

from adlro.model.state import WHOLE
from adlro.workloads.formats.format import TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows

_ITERATION_S = 0.5
_POD_MB = 100 * 1024  # a unit of tensorsizes
_PRETRAIN = 0.75  # what iteration_networking_time is for it


def _columns(rows: Rows) -> Columns:
    pods = rows.whole("gpu_workers")
    gpus = pods * rows.whole("gpu_per_worker")
    marks = rows.numbers("iteration_networking_time").tolist()
    return {
        "id": rows.words("job_id"),
        "submit_s": rows.numbers("arrival_time"),
        "run_s": rows.numbers("num_iteration") * _ITERATION_S,
        "gpus": gpus * WHOLE,
        "nodes": pods,
        "cores": rows.numbers("cpu_per_gpu_worker") * gpus,
        "memory_mb": rows.numbers("tensorsizes") * _POD_MB * pods,
        "name": ["pretrain" if mark == _PRETRAIN else "" for mark in marks],
    }


FORMAT = of_table(
    TableFormat(
        "acme",
        "Acme Kalos 2023, converted: arrival_time,num_iteration,gpu_workers,gpu_per_worker …",
        (
            "job_id",
            "arrival_time",
            "num_iteration",
            "iteration_networking_time",
            "gpu_workers",
            "gpu_per_worker",
            "cpu_per_gpu_worker",
            "tensorsizes",
        ),
        _columns,
        notes=("a sample of completed jobs only: large ones",),
    )
)
