"""Build a history from the rows of a file, with the checks that are the same for all formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.errors import TraceError
from adlro.model.history import NUMBERS, TIMES, WHOLE_NUMBERS, WORDS, Header, History
from adlro.model.state import WHOLE, Floats
from adlro.workloads.formats import requeues
from adlro.workloads.formats.table import Defect, Rows

_LISTED = 5  # skipped lines that are listed
MOST_GPUS = 1_000_000
_LARGEST_S = 1e11  # beyond any Unix time in seconds
_ABSOLUTE_S = 1e8  # times above that are Unix times

ColumnValues = Floats | Sequence[str]
Columns = dict[str, ColumnValues]  # by field of History; absent = missing


class ReadOptions(NamedTuple):
    """Options for reading a file: treatment of defective lines, format, columns of CSV files."""

    lenient: bool = False  # skip and count defective lines
    format: str = ""  # "" = recognise it by the content
    columns: tuple[tuple[str, str], ...] = ()  # field -> column, for a plain CSV file


STRICT = ReadOptions()


class HistoryBuilder:
    """Collects rows of a file part by part, and builds a history from them.

    With `requeues`, several rows with one id are runs of one job, of which the last counts; else
    they are a defect, unless all but one are marked as lost.
    """

    def __init__(self, path: Path, options: ReadOptions, *, requeues: bool = False) -> None:
        self.path, self.options, self._requeues = path, options, requeues
        self.defects: dict[str, int] = {}
        self.skipped: list[str] = []  # the first few defective lines
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._codes: dict[str, dict[str, int]] = {name: {} for name in WORDS}
        self._ids: list[str] = []
        self._seen: set[str] = set()
        self._present: set[str] = set()

    def count(self, kind: str, times: int = 1) -> None:
        """Add `times` to the number of defects of a kind, for the report."""
        if times:
            self.defects[kind] = self.defects.get(kind, 0) + times

    def add(self, rows: Rows, columns: Columns) -> None:
        """Add the rows that have no defect; count and skip the others if the options are lenient.

        Raises:
            TraceError: a row has a defect, and the options are not lenient.
        """
        columns = dict(columns)
        _check(rows, columns)
        for name in ("id", *WORDS):
            if name in columns:
                columns[name] = _texts(rows, name, columns[name])
        if "id" in columns:
            self._refuse_twins(rows, columns)
        for wrong in sorted(rows.wrong.values(), key=lambda one: one.line):
            self._blame(wrong)
        keep = np.ones(len(rows), np.bool_)
        keep[list(rows.wrong)] = False
        self._present |= columns.keys()
        part = {name: np.asarray(columns[name]) for name in columns if name in NUMBERS}
        part |= {name: _whole(columns[name]) for name in columns if name in WHOLE_NUMBERS}
        part |= {name: self._coded(name, columns[name]) for name in columns if name in WORDS}
        part["keep"] = keep
        if "id" in columns:
            ids = columns["id"]
            self._ids += [ids[row] for row in np.flatnonzero(keep).tolist()]
        self._parts.append({name: values[keep] for name, values in part.items()})

    def _blame(self, wrong: Defect) -> None:
        text = f"{self.path}:{wrong.line}: {wrong.text}"
        if not self.options.lenient:
            raise TraceError(f"{text}; correct it, or skip such lines with --lenient")
        self.count(f"skipped: {wrong.kind}")
        if len(self.skipped) < _LISTED:
            self.skipped.append(text)

    def _refuse_twins(self, rows: Rows, columns: Columns) -> None:
        is_lost = np.asarray(columns.get("lost", np.zeros(len(rows)))) == 1
        for row, one in enumerate(columns["id"]):
            if row in rows.wrong:
                continue
            if not one:
                rows.note(row, "no id", "the job has no id")
            elif self._requeues or is_lost[row]:
                continue
            elif one in self._seen:
                rows.note(row, "duplicate id", f"there is a job {one!r} already")
            self._seen.add(str(one))

    def _coded(self, name: str, words: ColumnValues) -> NDArray[np.int32]:
        codes = self._codes[name]
        found = [codes.setdefault(word, len(codes)) if word else -1 for word in words]
        return np.array(found, np.int32)

    def finish(self, header: Header) -> History:
        """Return the history of all rows added, with times relative to its origin.

        Raises:
            TraceError: no job was added.
        """
        count = sum(len(part["keep"]) for part in self._parts)
        if count == 0:
            skipped = f"; {self.skipped[0]}, and so on" if self.skipped else ""
            raise TraceError(f"{self.path}: there are no jobs in it{skipped}")
        columns: dict[str, NDArray[Any]] = {}
        for name in (*NUMBERS, *WHOLE_NUMBERS, *WORDS):
            blank = np.nan if name in NUMBERS else -1
            kind = np.float64 if name in NUMBERS else np.int32 if name in WORDS else np.int64
            parts = [
                part.get(name, np.full(len(part["keep"]), blank, kind)) for part in self._parts
            ]
            columns[name] = np.concatenate(parts).astype(kind)
        if (columns["lost"] == 1).all():
            raise TraceError(f"{self.path}: there are no jobs in it, only runs marked as lost")
        ids: Sequence[str] = self._ids
        if self._requeues and ids:
            ids, columns = self._told_apart(columns)
        origin = header.origin_unix_s
        first = np.nanmin(columns["submit_s"], initial=np.inf)
        if origin is None and np.isfinite(first) and first > _ABSOLUTE_S:
            origin = float(np.floor(first))
            for name in TIMES:
                columns[name] -= origin
        header = header.model_copy(
            update={"origin_unix_s": origin, "defects": header.defects | self._found(columns)}
        )
        tables = {name: tuple(codes) for name, codes in self._codes.items()}
        return History(header=header, id=tuple(ids), tables=tables, **columns)

    def _told_apart(
        self, columns: dict[str, NDArray[Any]]
    ) -> tuple[list[str], dict[str, NDArray[Any]]]:
        """Return ids and columns of the jobs and of the runs that requeued jobs lost."""
        found = requeues.tell_apart(self._ids, columns)
        self.count("earlier records of requeued jobs that had not run", found.without_run)
        self.count("job ids that a later job used again", found.reused)
        kept = {name: values[found.kept] for name, values in columns.items()}
        kept["lost"] = np.where(found.is_lost[found.kept], 1, -1)
        return [found.ids[row] for row in found.kept.tolist()], kept

    def _found(self, columns: dict[str, NDArray[Any]]) -> dict[str, int]:
        """Count defects that only whole columns show, and return the counts of all kinds."""
        is_job = columns["lost"] != 1
        run, gpus, requested = (columns[name][is_job] for name in ("run_s", "gpus", "requested_s"))
        with np.errstate(invalid="ignore"):
            self.count("not in order of submission", int((np.diff(columns["submit_s"]) < 0).sum()))
            self.count("ran for 0 s", int((run == 0).sum()))
            self.count("ran longer than requested", int((run > requested).sum()))
            self.count("asks for no GPU", int((gpus == 0).sum()))
        return self.defects


def _is_text(word: str) -> bool:
    """Return whether a word can be written to a file: it has no zero byte and no lone surrogate."""
    return "\0" not in word and not any("\ud800" <= letter <= "\udfff" for letter in word)


def _texts(rows: Rows, name: str, words: ColumnValues) -> list[str]:
    """Return words without surrounding blanks.

    Words that cannot be written to a file are noted as defects of their rows.
    """
    stripped = [str(word).strip() for word in words]
    odd = {word for word in set(stripped) if not (word.isprintable() or _is_text(word))}
    for row, word in enumerate(stripped if odd else ()):
        if word in odd:
            rows.note(row, "not text", f"{name} = {word!r} is not text")
    return stripped


def _whole(values: ColumnValues) -> NDArray[np.int64]:
    numbers = np.asarray(values, np.float64)
    return np.where(np.isnan(numbers), -1, numbers).astype(np.int64)


def _check(rows: Rows, columns: Columns) -> None:
    """Note impossible values as defects; add run times (end - start) if there are none."""
    known = {name: np.asarray(columns[name], np.float64) for name in NUMBERS if name in columns}
    for name, values in known.items():
        _note_absurd(rows, name, values)
    start, end = known.get("start_s"), known.get("end_s")
    if start is not None and end is not None:
        rows.note_where(
            end < start,
            "end before start",
            lambda row: f"it ends at {end[row]:.15g}, before it starts at {start[row]:.15g}",
        )
        if "run_s" not in columns:
            columns["run_s"] = end - start
    submit = known.get("submit_s")
    if submit is not None and start is not None:
        rows.note_where(
            start < submit,
            "start before submission",
            lambda row: f"it starts at {start[row]:.15g}, before it was submitted",
        )
    if "gpus" in columns:
        gpus = np.asarray(columns["gpus"], np.float64)
        rows.note_where(
            (gpus < 0) | (gpus > MOST_GPUS * WHOLE),
            "impossible number",
            lambda row: f"{gpus[row] / WHOLE:g} GPUs cannot be",
        )
        columns["gpus"] = np.where(np.abs(gpus) <= MOST_GPUS * WHOLE, gpus, np.nan)


def limits(name: str) -> tuple[float, float]:
    """Return the least and largest possible value of a column of numbers, before times are shifted.

    Times are shifted to the origin when the history is built.
    """
    most = _LARGEST_S if name.endswith("_s") else 2.0**53
    may_be_negative = name in (*TIMES, "priority")
    return -most if may_be_negative else 0.0, most


def _note_absurd(rows: Rows, name: str, values: Floats) -> None:
    least, most = limits(name)
    kind = "negative duration" if name in ("run_s", "requested_s") else "impossible number"
    rows.note_where(
        (values < least) | (values > most),
        kind,
        lambda row: f"{name} = {values[row]:.15g} cannot be",
    )
