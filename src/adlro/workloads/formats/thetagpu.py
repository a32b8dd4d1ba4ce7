"""Reader of ALCF ThetaGPU (2022-2023) with LUMOS columns: users, projects, requested times."""

from __future__ import annotations

from adlro.model.state import WHOLE
from adlro.workloads.formats.format import TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows

_STATUS = {"Pass": "completed", "Failed": "failed", "Killed": "cancelled"}
_UNNAMED = ("0", "0.0")  # users and projects that are not in the public list


def _hashed(rows: Rows, name: str) -> list[str]:
    return ["" if word in _UNNAMED else word.removesuffix(".0") for word in rows.words(name)]


def _columns(rows: Rows) -> Columns:
    submit, wait = rows.numbers("submit_time"), rows.numbers("wait_time")
    return {
        "id": rows.words("job"),
        "user": _hashed(rows, "user"),
        "account": _hashed(rows, "project"),
        "submit_s": submit,
        "start_s": submit + wait,
        "run_s": rows.numbers("run_time"),
        "requested_s": rows.numbers("wall_time"),
        "gpus": rows.whole("gpu_num") * WHOLE,
        "nodes": rows.whole("node_num"),
        "status": [_STATUS.get(word, word.lower()) for word in rows.words("new_status")],
    }


FORMAT = of_table(
    TableFormat(
        "thetagpu",
        "ALCF ThetaGPU in the columns of LUMOS: user, project, wall_time, new_status",
        ("job", "user", "project", "gpu_num", "submit_time", "wait_time", "run_time", "wall_time"),
        _columns,
        notes=(
            "gpu_num counts single GPUs or whole nodes of 8 by queue, and the source does not say "
            "which; it is taken as GPUs",
        ),
    )
)
