"""Reader of the output of the simulator CQSim (.rst): processors and times of each job."""

from __future__ import annotations

import re

from adlro.model.history import History
from adlro.workloads.formats.format import Format, Head, TableFormat, read_table
from adlro.workloads.formats.gather import Columns, ReadOptions
from adlro.workloads.formats.table import Rows, Style
from adlro.workloads.formats.text_file import TextFile

_NAMES = ("id", "asked", "used", "requested_s", "run_s", "wait_s", "submit_s", "start_s", "end_s")


def _columns(rows: Rows) -> Columns:
    times = ("requested_s", "run_s", "submit_s", "start_s", "end_s")
    return {
        "id": rows.words("id"),
        "cores": rows.whole("asked"),
        **{name: rows.numbers(name) for name in times},
    }


_PLAN = TableFormat(
    "cqsim",
    "CQSim output: id;procs;procs;requested;run;wait;submit;start;end",
    _NAMES,
    _columns,
    Style(delimiter=";", quoted=False, names=_NAMES),
    notes=("waits, starts and ends are a simulator's, not a cluster's",),
)


def _recognises(head: Head) -> bool:
    fields = head.lines[0].strip().split(";") if head.lines else []
    return len(fields) == len(_NAMES) and all(
        re.fullmatch(r"-?\d+(\.\d*)?", field) for field in fields
    )


def _read(source: TextFile, options: ReadOptions) -> History:
    return read_table(_PLAN, source, options)


FORMAT = Format(_PLAN.name, _PLAN.about, _recognises, _read)
