"""Readers of small job lists: Tiresias, Sia and Pollux, Alibaba's DLRM instances (2025)."""

from __future__ import annotations

from adlro.model.state import WHOLE
from adlro.workloads.formats.format import TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows

_MB_PER_GB = 1024


def _tiresias(rows: Rows) -> Columns:
    return {
        "id": rows.words("job_id"),
        "submit_s": rows.numbers("submit_time"),
        "run_s": rows.numbers("duration"),
        "gpus": rows.whole("num_gpu") * WHOLE,
        "name": rows.words("model_name"),
    }


TIRESIAS = of_table(
    TableFormat(
        "tiresias",
        "Tiresias: job_id,num_gpu,submit_time,iterations,model_name,duration",
        ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration"),
        _tiresias,
    )
)


def _sia(rows: Rows) -> Columns:
    return {
        "id": rows.words("name"),
        "submit_s": rows.numbers("time"),
        "gpus": rows.whole("num_replicas") * WHOLE,
        "name": rows.words("application"),
    }


SIA = of_table(
    TableFormat(
        "sia",
        "Sia and Pollux workloads: name,time,application,num_replicas,batch_size",
        ("name", "time", "application", "num_replicas", "batch_size"),
        _sia,
        notes=("run times follow from profiles that are not in the file",),
    )
)


def _dlrm(rows: Rows) -> Columns:
    submit, end = rows.numbers("creation_time"), rows.numbers("deletion_time")
    return {
        "id": rows.words("instance_sn"),
        "queue": rows.words("role"),
        "name": rows.words("app_name"),
        "submit_s": submit,
        "start_s": rows.numbers("scheduled_time"),
        "end_s": end,
        "gpus": rows.whole("gpu_request") * WHOLE,
        "cores": rows.numbers("cpu_request"),
        "memory_mb": rows.numbers("memory_request") * _MB_PER_GB,
    }


DLRM = of_table(
    TableFormat(
        "dlrm",
        "Alibaba DLRM inference instances 2025: instance_sn,role,app_name …",
        ("instance_sn", "role", "app_name", "gpu_request", "creation_time", "deletion_time"),
        _dlrm,
        notes=("an empty time is before the beginning or after the end of the trace",),
    )
)
