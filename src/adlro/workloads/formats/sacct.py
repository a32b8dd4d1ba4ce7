"""Reader of Slurm's accounting as text, the output of `sacct -aXP --format=…`.

Fields are separated by |, and the first line names them. The job id and the time of submission are
required; all other fields are optional. Job steps are left out; of the records of a requeued job
(`sacct -D`), the last counts and the others are lost runs. SubmitLine as the last field, and
Constraints in front of it, may hold | themselves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from adlro.errors import TraceError
from adlro.model.history import Header, History
from adlro.model.state import WHOLE, Floats, Mask
from adlro.workloads.formats import slurm, submit_line
from adlro.workloads.formats.format import LOCAL, Format, Head
from adlro.workloads.formats.gather import Columns, HistoryBuilder, ReadOptions
from adlro.workloads.formats.slurm import Resources
from adlro.workloads.formats.table import Rows, Style, Table, shown
from adlro.workloads.formats.text_file import TextFile

_IDS = ("JobIDRaw", "JobID")
_NO_TIME = ("Unknown", "None", "N/A")
_NO_HOSTS = ("None assigned", "(null)")
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
_LONG_NIGHTS = ((322, 408), (1022, 1108))  # months and days between which summer time ends
_WEEKS = 53
_SUBMITTED = re.compile(r"(?:\S*/)?(?:sbatch|salloc|srun)\b")


def _first(rows: Rows, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in rows), None)


def _each(rows: Rows, name: str, what: str, of: Callable[[str], float | None]) -> Floats:
    """Return a column as numbers [R], parsed by the function `of`.

    Invalid text becomes nan and is noted as a defect of its row.

    Args:
        rows: the rows of the file.
        name: of the column.
        what: the text expected, for the message on a defect.
        of: returns the number of a text, or None if the text is invalid.
    """
    words = rows.words(name)
    known = {word: of(word) for word in set(words)}
    values = np.array([math.nan if known[w] is None else known[w] for w in words], np.float64)
    bad = np.array([known[word] is None for word in words], np.bool_)
    rows.note_where(
        bad, "text in numbers", lambda row: f"{name} must be {what}, not {shown(words[row])}"
    )
    return values


def _minutes(text: str) -> float | None:
    if text in slurm.UNLIMITED:
        return math.nan
    return float(text) if text.isascii() and text.isdigit() else None


def _limit(text: str) -> float | None:
    return math.nan if text in slurm.UNLIMITED else slurm.duration_s(text)


def _elapsed(text: str) -> float | None:
    return math.nan if not text else slurm.duration_s(text)


def _durations(rows: Rows) -> Columns:
    found: Columns = {}
    if "ElapsedRaw" in rows:
        found["run_s"] = rows.numbers("ElapsedRaw")
    elif "Elapsed" in rows:
        found["run_s"] = _each(rows, "Elapsed", "a duration such as 1-02:03:04", _elapsed)
    if "TimelimitRaw" in rows:
        found["requested_s"] = _MINUTE * _each(rows, "TimelimitRaw", "minutes", _minutes)
    elif "Timelimit" in rows:
        found["requested_s"] = _each(rows, "Timelimit", "a duration such as 1-02:03:04", _limit)
    return found


def _resources(rows: Rows) -> list[Resources]:
    """Return the resources of each row: those allocated, and where unknown those requested."""
    columns = {name: rows.words(name) for name in ("AllocTRES", "ReqTRES") if name in rows}
    known = {word: slurm.resources(word) for words in columns.values() for word in set(words)}
    wrong = {word for word, named in known.items() if named is None}
    for name, words in columns.items() if wrong else ():
        for row, word in enumerate(words):
            if word in wrong:
                said = f"{name} must be a list such as cpu=2,gres/gpu=1, not {shown(word)}"
                rows.note(row, "text in numbers", said)
    together: dict[tuple[str, ...], Resources] = {}
    lists = list(zip(*columns.values(), strict=True)) or [()] * len(rows)
    for both in set(lists):
        named = Resources()
        for word in both:
            named = named.over(known[word] or Resources())
        together[both] = named
    return [together[both] for both in lists]


_WORDS = (
    ("user", ("User", "UID")),
    ("account", ("Account",)),
    ("queue", ("Partition",)),
    ("name", ("JobName",)),
    ("qos", ("QOS",)),
)


def _or_blank(rows: Rows, name: str) -> list[str]:
    """Return a column of words [R]; all "" if there is no such column."""
    return rows.words(name) if name in rows else [""] * len(rows)


def _submitted(rows: Rows) -> list[tuple[str, str]]:
    """Return the constraints and the submitted line of each row.

    Where the constraints hold | and are written in front of the line, the rest of them is read as
    the beginning of the line; the name of a command tells where the line begins.
    """
    pairs = list(zip(_or_blank(rows, "Constraints"), _or_blank(rows, "SubmitLine"), strict=True))
    if rows.names[-2:] != ("Constraints", "SubmitLine"):
        return pairs
    for row, (features, line) in enumerate(pairs):
        parts = line.split("|")
        first = next((k for k, part in enumerate(parts) if _SUBMITTED.match(part)), len(parts) - 1)
        if first:
            pairs[row] = "|".join([features, *parts[:first]]), "|".join(parts[first:])
    return pairs


def _requests(rows: Rows, has: list[Resources]) -> Columns:
    """Return what jobs asked for: GPU types, partitions, features, and whether one node.

    has [R]: resources that they had, or else asked for.
    """
    written, submitted = zip(*_submitted(rows), strict=True) if len(rows) else ((), ())
    lines = list(zip(submitted, _or_blank(rows, "JobName"), strict=True))
    known = {line: submit_line.asked(*line) for line in set(lines)}
    asked = [known[line] for line in lines]
    texts = _or_blank(rows, "ReqTRES")
    parsed = {text: slurm.resources(text) or Resources() for text in set(texts)}
    wanted = [parsed[text] for text in texts]
    gres = [submit_line.gpu_types(text) for text in _or_blank(rows, "ReqGRES")]
    types = [
        one.gpu_types or names or said.gpu_types
        for one, names, said in zip(wanted, gres, asked, strict=True)
    ]
    ran_in = zip(asked, _or_blank(rows, "Partition"), strict=True)
    features = zip(written, asked, strict=True)
    may_span = np.array([one.may_span for one in asked], np.bool_)
    return {
        "allowed": ["|".join(names) for names in types],
        "partitions": [submit_line.partitions_of(one, partition) for one, partition in ran_in],
        "features": [text or said.features for text, said in features],
        "one_node": _one_node(rows, has, wanted, may_span),
    }


def _one_node(rows: Rows, has: list[Resources], wanted: list[Resources], may_span: Mask) -> Floats:
    """Return for each row 1 if its GPUs were asked for on one node, 0 if not, nan if unknown."""
    asked, used = (np.array([one.nodes for one in some]) for some in (wanted, has))
    if "ReqNodes" in rows:
        asked = np.fmax(rows.numbers("ReqNodes"), asked)
    if "NNodes" in rows:
        used = np.fmax(rows.numbers("NNodes"), used)
    return np.where(np.isnan(asked), np.nan, (asked == 1) & ~may_span & ~(used > 1))


def _columns(rows: Rows) -> Columns:
    has = _resources(rows)
    found: Columns = {
        "id": rows.words(_first(rows, _IDS) or ""),
        "submit_s": rows.times("Submit", _NO_TIME),
        "gpus": np.array([one.gpus for one in has]) * WHOLE,
        "gpu_model": [one.gpu_model for one in has],
        "cores": np.array([one.cores for one in has]),
        "memory_mb": np.array([one.memory_mb for one in has]),
        "nodes": np.array([one.nodes for one in has]),
    }
    for field, name in (("start_s", "Start"), ("end_s", "End"), ("eligible_s", "Eligible")):
        if name in rows:
            found[field] = rows.times(name, _NO_TIME)
    for field, names in _WORDS:
        there = _first(rows, names)
        if there is not None:
            found[field] = rows.words(there)
    if "State" in rows:
        states = rows.words("State")
        named = {word: slurm.status(word) for word in set(states)}
        found["status"] = [named[word] for word in states]
    if "Priority" in rows:
        found["priority"] = rows.numbers("Priority")
    if "NodeList" in rows:
        hosts = rows.words("NodeList")
        found["hosts"] = ["" if word in _NO_HOSTS else word for word in hosts]
    return _with_ends(found | _requests(rows, has) | _durations(rows))


def _with_ends(found: Columns) -> Columns:
    """Set the end and the run time to nan for jobs that have not ended or never started.

    A job that was cancelled while it waited has the time of that as its start and end.
    """
    if {"start_s", "run_s", "status"} <= found.keys():
        start, run = (np.asarray(found[name], np.float64) for name in ("start_s", "run_s"))
        hosts = found.get("hosts", [""] * len(start))
        words = zip(found["status"], hosts, strict=True)
        idle = np.array([state == "cancelled" and not host for state, host in words], np.bool_)
        found["start_s"] = np.where(idle & (run == 0), np.nan, start)
    is_over = np.ones(len(found["id"]), np.bool_)
    for name in ("start_s", "end_s"):
        if name in found:
            is_over &= ~np.isnan(np.asarray(found[name], np.float64))
    if "end_s" not in found and "status" in found:
        is_over &= np.array([word not in slurm.UNDER_WAY for word in found["status"]])
    for name in ("end_s", "run_s"):
        if name in found:
            found[name] = np.where(is_over, np.asarray(found[name], np.float64), np.nan)
    return found


class _Corrected(NamedTuple):
    """Numbers of jobs whose times were corrected."""

    set_back: int  # across the end of summer time
    early: int  # started before the submission at any other time


def _set_back(found: Columns) -> _Corrected:
    """Correct times of jobs across the end of summer time, and other starts before the submission.

    Local clocks go back by an hour at the end of summer time: a job may seem to end before it
    starts, or to start before it was submitted. Its end is its start + run time; a start within the
    hour before the submission is taken as the submission. At any other time, a start within the
    hour before the submission is kept, and the job has not waited.
    """
    if not {"start_s", "end_s", "run_s"} <= found.keys():
        return _Corrected(0, 0)
    submit, start, end, run = (
        np.asarray(found[name], np.float64) for name in ("submit_s", "start_s", "end_s", "run_s")
    )
    is_short = np.abs(end - start + _HOUR - run) < _MINUTE
    is_short[is_short] = _has_long_night(start[is_short], (start + run)[is_short])
    is_early = (start < submit) & (start >= submit - _HOUR) & ~np.isnan(run)
    is_set_back = is_early.copy()
    is_set_back[is_early] = _has_long_night(start[is_early], submit[is_early])
    is_odd = is_early & ~is_set_back
    found["submit_s"] = np.where(is_odd, start, submit)
    found["start_s"] = start = np.where(is_set_back, submit, start)
    found["end_s"] = np.where(is_short | is_set_back, start + run, end)
    return _Corrected(int((is_short | is_set_back).sum()), int(is_odd.sum()))


def _has_long_night(first: Floats, last: Floats) -> Mask:
    """Return whether clocks may go back by an hour between two local times [K].

    They do so between 23:00 and 04:00 of a night to Sunday: at the end of October or the beginning
    of November, south of the equator at the end of March or the beginning of April. Which of these
    nights it is depends on the zone, which is not recorded.
    """
    day = np.floor((first - 4 * _HOUR) / _DAY).astype(np.int64) + 1  # the next 04:00 is on this day
    sunday = day + (3 - day) % 7  # 1970-01-01 was a Thursday
    is_long = np.zeros(len(first), np.bool_)
    for weeks in range(_WEEKS):  # longer runs are sure to meet such a night
        night = sunday + 7 * weeks
        date = night.astype("datetime64[D]")
        month = date.astype("datetime64[M]")
        number = 100 * (month.astype(np.int64) % 12 + 1) + (date - month).astype(np.int64) + 1
        inside = sum(((number >= a) & (number <= b) for a, b in _LONG_NIGHTS), is_long & False)
        is_long |= inside & (night * _DAY - _HOUR <= last)
    return is_long


def _read(source: TextFile, options: ReadOptions) -> History:
    table = Table(source, Style(delimiter="|", quoted=False, open_end="SubmitLine"))
    builder = HistoryBuilder(source.path, options, requeues=True)
    for rows in table.parts():
        name = _first(rows, _IDS)
        if name is None or "Submit" not in rows:
            raise TraceError(
                f"{source.path}:1: sacct must print JobID (or JobIDRaw) and Submit; see "
                "docs/traces.md for a good list"
            )
        jobs = np.array(["." not in word for word in rows.words(name)], np.bool_)
        builder.count("steps left out", int((~jobs).sum()))
        kept = rows.where(jobs)
        columns = _columns(kept)
        corrected = _set_back(columns)
        builder.count("times corrected across the end of summer time", corrected.set_back)
        builder.count("starts before the submission, with a wait of 0 s", corrected.early)
        builder.add(kept, columns)
    header = Header(
        format="sacct",
        source=source.path.name,
        clock=LOCAL,
        notes=tuple(f"skipped {text}" for text in builder.skipped),
    )
    return slurm.unless_untracked(builder.finish(header))


def _recognises(head: Head) -> bool:
    names = head.lines[0].strip().split("|") if head.lines else []
    return len(names) > 1 and any(name in _IDS for name in names)


FORMAT = Format("sacct", "Slurm: sacct -aXP --format=…", _recognises, _read)
