"""Reader of plain CSV files: columns are found by their usual names, or as the user names them.

The delimiter may be a comma, a semicolon or a tab. Times are seconds or dates; a column must not
mix them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.errors import TraceError, suggestion
from adlro.model.history import FIELDS, NUMBERS, TIMES, WHOLE_NUMBERS, WORDS, Header, History
from adlro.model.state import WHOLE, Floats
from adlro.workloads.formats import slurm
from adlro.workloads.formats.format import LOCAL, Format, Head, head_of
from adlro.workloads.formats.gather import Columns, HistoryBuilder, ReadOptions
from adlro.workloads.formats.table import Rows, Style, Table, shown
from adlro.workloads.formats.text_file import TextFile

KNOWN: dict[str, tuple[str, ...]] = {  # field -> usual names, the best first, in lower case
    "id": ("id", "job_id", "jobid", "id_job", "job"),
    "submit_s": (
        "submit_s", "submit_time", "submission_time", "submit", "arrival_s", "arrival_time",
        "time_submit", "creation_time", "submitted", "arrival", "timestamp",
    ),
    "start_s": ("start_s", "start_time", "time_start", "start", "scheduled_time"),
    "end_s": ("end_s", "end_time", "time_end", "end", "finish_time", "deletion_time"),
    "run_s": (
        "run_s", "run_time", "runtime", "duration", "duration_s", "service_sec", "service_s",
        "elapsed", "elapsed_s",
    ),
    "requested_s": (
        "requested_s", "requested_time", "wall_time", "walltime", "wallclock_req", "time_limit_s",
        "timelimit_s",
    ),
    "gpus": ("gpus", "num_gpus", "num_gpu", "gpu_num", "gpu_count", "gpus_req", "n_gpus"),
    "gpu_model": ("gpu_model", "gpu_type", "gpu_name"),
    "allowed": ("allowed", "gpu_spec"),
    "cores": ("cores", "cpus", "num_cpus", "cpu_num", "cpu_count", "processors_req", "n_cpus"),
    "memory_mb": ("memory_mb", "mem_mb", "memory_mib"),
    "gpu_memory_mb": ("gpu_memory_mb", "gpu_mem_mb"),
    "eligible_s": ("eligible_s", "eligible_time", "time_eligible", "eligible"),
    "one_node": ("one_node",),
    "lost": ("lost",),
    "partitions": ("partitions",),
    "features": ("features", "constraint", "constraints"),
    "hosts": ("hosts", "nodelist", "node_list"),
    "nodes": ("nodes", "num_nodes", "node_num", "nodes_req", "n_nodes"),
    "user": ("user", "user_id", "username", "id_user"),
    "account": ("account", "project", "group"),
    "queue": ("queue", "partition", "vc", "virtual_cluster", "cluster"),
    "name": ("name", "job_name", "jobname", "model_name", "application", "type"),
    "status": ("status", "state", "job_state"),
    "qos": ("qos", "priority_class"),
    "priority": ("priority",),
}  # fmt: skip
_DELIMITERS = (",", ";", "\t")


class _Column(NamedTuple):
    """The column of the file that holds a field, and the factor that converts its numbers."""

    column: str
    factor: float = 1.0


def _own(options: ReadOptions, names: Sequence[str], where: str) -> dict[str, _Column]:
    """Return the columns that the user named as FIELD=COLUMN or FIELD=COLUMN*FACTOR, by field.

    where: file and line, for error messages.

    Raises:
        TraceError: there is no such field or column, or the factor is not valid.
    """
    taken = {}
    for field, text in options.columns:
        if field not in FIELDS:
            raise TraceError(f"--column {field}={text}: {suggestion(field, FIELDS)}")
        column, star, number = text.rpartition("*") if text not in names else (text, "", "1")
        factor = _factor(number) if star else 1.0
        if not star:
            column = text
        if column not in names:
            raise TraceError(f"{where}: there is no column {column!r}; {suggestion(column, names)}")
        if math.isnan(factor) or (star and field not in (*NUMBERS, *WHOLE_NUMBERS)):
            raise TraceError(f"--column {field}={text}: {number!r} is no factor for {field}")
        taken[field] = _Column(column, factor)
    return taken


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if 0 < value < math.inf else math.nan


def mapping(options: ReadOptions, names: Sequence[str], where: str) -> dict[str, _Column]:
    """Return the column of each field: the one that the user named, else one with a usual name.

    Args:
        options: with the columns that the user named.
        names: all columns of the file.
        where: file and line, for error messages.

    Raises:
        TraceError: a column named by the user is missing, or none holds submission times.
    """
    taken = _own(options, names, where)
    lower = {name.lower(): name for name in reversed(names)}
    used = {one.column for one in taken.values()}
    for field, known in KNOWN.items():
        match = next((lower[name] for name in known if name in lower), None)
        if field not in taken and match is not None and match not in used:
            taken[field] = _Column(match)
            used.add(match)
    if "submit_s" not in taken:
        raise TraceError(
            f"{where}: no column says when jobs were submitted ({', '.join(names[:8])}); name it: "
            "--column submit_s=COLUMN"
        )
    return taken


def _amounts(rows: Rows, field: str, taken: _Column) -> Floats:
    values = rows.times(taken.column) if field in TIMES else rows.numbers(taken.column)
    values = values * taken.factor
    if field == "gpus":
        values = np.rint(values * WHOLE)
    if field in ("nodes", "one_node", "lost"):
        most, what = (np.inf, "a whole number") if field == "nodes" else (1, "0 or 1")
        rows.note_where(
            (values < 0) | (values > most) | (values != np.rint(values)) & ~np.isnan(values),
            "impossible number",
            lambda row: f"{taken.column} must be {what}, not {values[row]:g}",
        )
        values = np.where(np.abs(values) < 2**31, values, np.nan)
    return values


def _columns(rows: Rows, taken: dict[str, _Column]) -> Columns:
    found: Columns = {}
    for field, one in taken.items():
        if field == "id" or field in WORDS:
            words = rows.words(one.column)
            found[field] = [slurm.status(w) for w in words] if field == "status" else words
        else:
            found[field] = _amounts(rows, field, one)
    rows.note_where(
        np.isnan(np.asarray(found["submit_s"])),
        "no time",
        lambda row: f"{taken['submit_s'].column} is empty: when was it submitted?",
    )
    return found


def _delimiter(head: Head) -> str:
    line = head.lines[0] if head.lines else ""
    return max(_DELIMITERS, key=line.count)


def _read(source: TextFile, options: ReadOptions) -> History:
    table = Table(source, Style(delimiter=_delimiter(head_of(source.head))))
    builder = HistoryBuilder(source.path, options)
    taken: dict[str, _Column] = {}
    for rows in table.parts():
        if rows.names:
            taken = taken or mapping(options, rows.names, f"{source.path}:1")
            builder.add(rows, _columns(rows, taken))
        else:
            builder.add(rows, {})
    notes = [f"{field} is column {shown(one.column)}" for field, one in taken.items()]
    notes += [f"skipped {text}" for text in builder.skipped]
    header = Header(format="csv", source=source.path.name, clock=LOCAL, notes=tuple(notes))
    return builder.finish(header)


def _recognises(head: Head) -> bool:
    if not head.lines:
        return False
    fields = head.lines[0].split(_delimiter(head))
    return len(fields) > 1 and any(c.isalpha() for c in head.lines[0])


FORMAT = Format("csv", "a plain CSV file with named columns", _recognises, _read)
