"""Reader of the Standard Workload Format: 18 numbers for each job, comment lines begin with `;`.

Feitelson et al., Parallel Workloads Archive. Some files have a 19th number, which is ignored. Jobs
ask for processors; the format has no GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from adlro.model.history import Header, History
from adlro.model.state import Floats
from adlro.workloads.formats.format import Format, Head
from adlro.workloads.formats.gather import Columns, HistoryBuilder, ReadOptions
from adlro.workloads.formats.table import Rows, Style, Table
from adlro.workloads.formats.text_file import TextFile

_NAMES = (
    "job",
    "submit",
    "wait",
    "run",
    "processors",
    "cpu_time",
    "memory_kb",
    "requested_processors",
    "requested_time",
    "requested_memory_kb",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding",
    "think_time",
)
_STYLE = Style(delimiter="", quoted=False, comment=";", names=_NAMES, spare=1)
_STATUS = {0: "failed", 1: "completed", 2: "partial", 3: "partial", 4: "partial", 5: "cancelled"}


def _known(rows: Rows, name: str) -> Floats:
    """Return a column as numbers [R], with nan where the file has -1, which means unknown."""
    values = rows.numbers(name)
    return np.where(values == -1, np.nan, values)


def _named(values: Floats) -> list[str]:
    """Return whole numbers as words, the form in which histories hold names; "" for nan."""
    numbers, places = np.unique(values, return_inverse=True)
    words = np.array(["" if np.isnan(n) else f"{n:.15g}" for n in numbers.tolist()], object)
    found: list[str] = words[places].tolist()
    return found


def _columns(rows: Rows) -> Columns:
    submit, wait = rows.numbers("submit"), _known(rows, "wait")
    asked, used = _known(rows, "requested_processors"), _known(rows, "processors")
    cores = np.where(np.isnan(asked), used, asked)
    memory = _known(rows, "requested_memory_kb")
    memory = np.where(np.isnan(memory), _known(rows, "memory_kb"), memory)
    status = _known(rows, "status").tolist()
    return {
        "id": rows.words("job"),
        "submit_s": submit,
        "start_s": submit + wait,
        "run_s": _known(rows, "run"),
        "requested_s": _known(rows, "requested_time"),
        "cores": cores,
        "memory_mb": memory * cores / 1024,
        "user": _named(_known(rows, "user")),
        "account": _named(_known(rows, "group")),
        "queue": _named(_known(rows, "queue")),
        "partitions": _named(_known(rows, "partition")),
        "name": _named(_known(rows, "executable")),
        "status": [_STATUS.get(s, "") for s in status],
    }


def _said(comments: Iterable[str], key: str) -> int | None:
    for comment in comments:
        found = re.match(rf";\s*{key}\s*:\s*(\d{{1,12}})\b", comment)
        if found:
            return int(found[1])
    return None


def _read(source: TextFile, options: ReadOptions) -> History:
    table = Table(source, _STYLE)
    builder = HistoryBuilder(source.path, options)
    for rows in table.parts():
        builder.add(rows, _columns(rows))
    origin = _said(table.comments, "UnixStartTime")
    header = Header(
        format="swf",
        source=source.path.name,
        origin_unix_s=origin or None,
        machine_cores=_said(table.comments, "MaxProcs") or _said(table.comments, "MaxNodes"),
        notes=tuple(f"skipped {text}" for text in builder.skipped),
    )
    return builder.finish(header)


def _recognises(head: Head) -> bool:
    lines = [line for line in head.lines if not line.startswith(";")]
    if not lines:
        return bool(head.lines)
    fields = lines[0].split()
    return len(fields) in (18, 19) and all(
        re.fullmatch(r"[-+]?\d+(\.\d*)?", field) for field in fields
    )


FORMAT = Format("swf", "Standard Workload Format (18 or 19 numbers a line)", _recognises, _read)
