"""Reader of MIT Supercloud (2021): rows of Slurm's accounting database with rounded job ids."""

from __future__ import annotations

import numpy as np

from adlro.model.state import WHOLE
from adlro.workloads.formats import slurm
from adlro.workloads.formats.format import TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.slurm import Resources
from adlro.workloads.formats.table import Rows, shown

_MINUTE, _NO_LIMIT = 60.0, 4_294_967_295.0
_STATES = dict(enumerate(slurm.NUMBERED))


def _resources(rows: Rows) -> list[Resources]:
    words = rows.words("tres_alloc")
    known = {word: slurm.numbered(word) for word in set(words)}
    for row, word in enumerate(words):
        if known[word] is None:
            said = f"tres_alloc must be a list such as 1=20,1002=2, not {shown(word)}"
            rows.note(row, "text in numbers", said)
    return [known[word] or Resources() for word in words]


def _columns(rows: Rows) -> Columns:
    has, limit = _resources(rows), rows.whole("timelimit")
    states = rows.whole("state", len(slurm.NUMBERED) - 1)
    return {
        "user": rows.words("id_user"),
        "queue": rows.words("partition"),
        "name": rows.words("job_type"),
        "status": [_STATES.get(state, "") for state in states.tolist()],
        "priority": rows.numbers("priority"),
        "requested_s": np.where(limit == _NO_LIMIT, np.nan, limit) * _MINUTE,
        "submit_s": rows.numbers("time_submit"),
        "start_s": rows.numbers("time_start"),
        "end_s": rows.numbers("time_end"),
        "gpus": np.array([one.gpus for one in has]) * WHOLE,
        "cores": np.array([one.cores for one in has]),
        "memory_mb": np.array([one.memory_mb for one in has]),
        "nodes": np.array([one.nodes for one in has]),
    }


FORMAT = of_table(
    TableFormat(
        "supercloud",
        "MIT Supercloud 2021: id_job,id_user,partition,state,timelimit,time_submit,tres_alloc …",
        (
            "id_job",
            "id_user",
            "partition",
            "priority",
            "state",
            "timelimit",
            "time_submit",
            "time_start",
            "time_end",
            "tres_alloc",
            "job_type",
        ),
        _columns,
        notes=("job ids are rounded in the source and do not tell jobs apart: not taken",),
        clock="UTC",
    )
)
