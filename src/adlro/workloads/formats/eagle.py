"""Reader of NREL Eagle (2019), a Slurm history with names (not numbers) of users and states."""

from __future__ import annotations

from adlro.model.state import WHOLE
from adlro.workloads.formats import slurm
from adlro.workloads.formats.format import LOCAL, TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows


def _columns(rows: Rows) -> Columns:
    return {
        "user": rows.words("user"),
        "account": rows.words("account"),
        "queue": rows.words("partition"),
        "qos": rows.words("qos"),
        "name": rows.words("name"),
        "status": [slurm.status(word) for word in rows.words("state")],
        "requested_s": rows.numbers("wallclock_req"),
        "nodes": rows.whole("nodes_req"),
        "cores": rows.numbers("processors_req"),
        "gpus": rows.whole("gpus_req") * WHOLE,
        "submit_s": rows.times("submit_time"),
        "start_s": rows.times("start_time"),
        "end_s": rows.times("end_time"),
        "run_s": rows.numbers("run_time"),
    }


FORMAT = of_table(
    TableFormat(
        "eagle",
        "NREL Eagle 2019: job_id,user,account,partition,qos,wallclock_req,gpus_req …",
        (
            "job_id",
            "wallclock_req",
            "nodes_req",
            "processors_req",
            "gpus_req",
            "submit_time",
            "start_time",
            "end_time",
            "run_time",
            "state",
            "name",
            "user",
            "account",
            "partition",
            "qos",
        ),
        _columns,
        notes=(
            "the unit of mem_req is not stated: not taken",
            "tasks of an array share its job_id, which does not tell them apart: not taken",
        ),
        clock=LOCAL,
    )
)
