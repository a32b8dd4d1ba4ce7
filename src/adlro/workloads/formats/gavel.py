"""Reader of Gavel's traces: tab-separated job type, command, steps, arrival and GPUs.

Narayanan et al., OSDI 2020. A job type such as "ResNet-18 (batch size 16)" is named as in the
scenario gavel16: "ResNet-18-16".
"""

from __future__ import annotations

import re

from adlro.model.history import History
from adlro.model.state import WHOLE
from adlro.workloads.formats.format import Format, Head, TableFormat, read_table
from adlro.workloads.formats.gather import Columns, ReadOptions
from adlro.workloads.formats.table import Rows, Style
from adlro.workloads.formats.text_file import TextFile

_NAMES = ("type", "command", "argument", "needs_data", "steps", "arrival_s", "gpus")
_BATCH = re.compile(r" \(batch size (\d+)\)$")


def _columns(rows: Rows) -> Columns:
    rows.whole("steps")
    return {
        "name": [_BATCH.sub(r"-\1", word) for word in rows.words("type")],
        "submit_s": rows.numbers("arrival_s"),
        "gpus": rows.whole("gpus") * WHOLE,
    }


_PLAN = TableFormat(
    "gavel",
    "Gavel trace, tabs: job type, command, argument, needs data, steps, arrival, GPUs",
    _NAMES,
    _columns,
    Style(delimiter="\t", quoted=False, names=_NAMES),
    notes=("states steps, not seconds: run times need throughputs that are not in the file",),
)


def _recognises(head: Head) -> bool:
    fields = head.lines[0].split("\t") if head.lines else []
    return len(fields) == len(_NAMES) and fields[3] in ("0", "1") and fields[4].isdigit()


def _read(source: TextFile, options: ReadOptions) -> History:
    return read_table(_PLAN, source, options)


FORMAT = Format(_PLAN.name, _PLAN.about, _recognises, _read)
