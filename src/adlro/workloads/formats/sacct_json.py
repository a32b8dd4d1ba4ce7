"""Reader of Slurm's accounting as JSON, the output of `sacct --json`."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from adlro.errors import TraceError
from adlro.model.history import Header, History
from adlro.model.state import WHOLE
from adlro.workloads.formats import slurm, submit_line
from adlro.workloads.formats.format import Format, Head
from adlro.workloads.formats.gather import Columns, HistoryBuilder, ReadOptions
from adlro.workloads.formats.slurm import Resources
from adlro.workloads.formats.submit_line import Asked
from adlro.workloads.formats.table import Rows, shown
from adlro.workloads.formats.text_file import TextFile

_MOST = 1 << 30  # bytes; JSON is read as a whole
_MINUTE = 60.0
_TRES = ("cpu", "mem", "node", "gres")  # others may have any count


class _OddError(Exception):
    """Raised for a job that does not have the form in which sacct writes jobs."""


def _number(value: object, name: str) -> float:
    """Return a number that is written bare, or in an object as newer versions of Slurm do.

    nan = not set or infinite. `name` is used in the error message.

    Raises:
        _OddError: the value is not a number.
    """
    if isinstance(value, dict):
        if value.get("infinite") or value.get("set") is False:
            return math.nan
        value = value.get("number")
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e18:
        raise _OddError(f"{name} must be a number, not {shown(str(value))}")
    return float(value)


def _word(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _OddError(f"{shown(text)} is not text")
    return text


def _table(value: object, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _OddError(f"{name} must be an object, not {shown(str(value))}")
    return value


def _resources(entries: object) -> Resources:
    if entries is None:
        return Resources()
    if not isinstance(entries, list):
        raise _OddError(f"tres must be a list, not {shown(str(entries))}")
    parts = []
    for entry in entries:
        one = _table(entry, "tres")
        kind, name = _word(one.get("type")), _word(one.get("name"))
        if kind not in _TRES:
            continue
        count = _number(one.get("count"), "tres.count")
        if not math.isnan(count):
            parts.append(f"{kind}/{name}={count:.0f}" if name else f"{kind}={count:.0f}")
    found = slurm.resources(",".join(parts))
    if found is None:
        raise _OddError(f"tres must have counts from 0 on, not {shown(','.join(parts))}")
    return found


def _time(times: dict[str, Any], key: str) -> float:
    """Return a time of the job in Unix seconds; nan for 0, which Slurm writes for "not yet"."""
    value = _number(times.get(key), f"time.{key}")
    return math.nan if value == 0 else value


def _state(value: object) -> str:
    current = _table(value, "state").get("current")
    if isinstance(current, list):
        current = current[0] if current else ""
    return slurm.status(_word(current))


def _job(job: object) -> dict[str, Any]:
    entry = _table(job, "a job")
    times, tres = _table(entry.get("time"), "time"), _table(entry.get("tres"), "tres")
    wanted = _resources(tres.get("requested"))
    has = _resources(tres.get("allocated")).over(wanted)
    name, partition = _word(entry.get("name")), _word(entry.get("partition"))
    asked = submit_line.asked(_word(entry.get("submit_line")), name)
    number = entry.get("job_id")
    if isinstance(number, bool) or not isinstance(number, int):
        raise _OddError(f"job_id must be a number, not {shown(str(number))}")
    start, end = _time(times, "start"), _time(times, "end")
    state, hosts = _state(entry.get("state")), _hosts(_word(entry.get("nodes")))
    if state == "cancelled" and not hosts and _number(times.get("elapsed"), "elapsed") == 0:
        start = math.nan  # that of the cancellation
    return {
        "id": str(number),
        "submit_s": _time(times, "submission"),
        "start_s": start,
        "eligible_s": _time(times, "eligible"),
        "end_s": math.nan if math.isnan(start) else end,
        "run_s": math.nan if math.isnan(end + start) else _number(times.get("elapsed"), "elapsed"),
        "requested_s": _number(times.get("limit"), "time.limit") * _MINUTE,
        "gpus": has.gpus * WHOLE,
        "gpu_model": has.gpu_model,
        "cores": has.cores,
        "memory_mb": has.memory_mb,
        "nodes": has.nodes,
        "one_node": _one_node(wanted, has, asked),
        "allowed": "|".join(wanted.gpu_types or asked.gpu_types),
        "partitions": submit_line.partitions_of(asked, partition),
        "features": _word(entry.get("constraints")) or asked.features,
        "hosts": hosts,
        "user": _word(
            entry.get("user") or _table(entry.get("association"), "association").get("user")
        ),
        "account": _word(entry.get("account")),
        "queue": partition,
        "name": name,
        "qos": _word(entry.get("qos")),
        "status": state,
        "priority": _number(entry.get("priority"), "priority"),
    }


def _one_node(wanted: Resources, has: Resources, asked: Asked) -> float:
    """Return 1 if the GPUs were asked for on one node, 0 if not, nan if unknown."""
    if math.isnan(wanted.nodes):
        return math.nan
    return float(wanted.nodes == 1 and not asked.may_span and not has.nodes > 1)


def _hosts(text: str) -> str:
    return "" if text in ("None assigned", "(null)") else text


def _jobs(source: TextFile) -> list[Any]:
    try:
        data = json.loads(source.everything(_MOST))
    except (ValueError, RecursionError) as exc:
        line = f":{exc.lineno}" if isinstance(exc, json.JSONDecodeError) else ""
        raise TraceError(
            f"{source.path}{line}: is not valid JSON (cut short?); write it anew"
        ) from exc
    jobs = data.get("jobs") if isinstance(data, dict) else None
    if not isinstance(jobs, list):
        raise TraceError(f"{source.path}: has no list 'jobs'; is it the output of sacct --json?")
    return jobs


def _read(source: TextFile, options: ReadOptions) -> History:
    jobs = _jobs(source)
    cells, numbers = np.zeros((len(jobs), 0, 2), np.int32), np.arange(1, len(jobs) + 1)
    rows = Rows(b"", cells, numbers, (), source.path)
    blank = _job({"job_id": 0})
    found = []
    for row, job in enumerate(jobs):
        try:
            found.append(_job(job))
        except _OddError as exc:
            found.append(blank)
            rows.note(row, "not as sacct writes it", f"{exc} (counted in jobs, not lines)")
    columns: Columns = {}
    for name, example in blank.items():
        values = [one[name] for one in found]
        columns[name] = values if isinstance(example, str) else np.array(values, np.float64)
    builder = HistoryBuilder(source.path, options, requeues=True)
    builder.add(rows, columns)
    notes = tuple(f"skipped {text}" for text in builder.skipped)
    header = Header(format="sacct-json", source=source.path.name, clock="UTC", notes=notes)
    return slurm.unless_untracked(builder.finish(header))


def _recognises(head: Head) -> bool:
    return head.raw.lstrip()[:1] == b"{"


FORMAT = Format("sacct-json", "Slurm: sacct --json", _recognises, _read)
