"""Histories for other programs to read, as CSV and SWF, and histories that may be shared."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterator

import numpy as np

from adlro.model.history import FIELDS, NUMBERS, WORDS, History
from adlro.model.state import WHOLE
from adlro.workloads.summary import demand

_ROWS = 8192  # written at a time
_TIMES = ("submit_s", "start_s", "end_s")
_WEEK = 604_800.0
_MOST_WEEKS = 520
_CODED = {"user": "u", "account": "a", "name": "n"}  # column -> letter of its codes
_STATUS = {"failed": 0, "completed": 1, "cancelled": 5}


def _shown(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.15g}"


def _column(history: History, name: str, some: slice) -> list[str]:
    """A column of a CSV file, as text."""
    if name == "id":
        return list(history.id[some])
    values = getattr(history, name)[some]
    if name in WORDS:
        words = (*history.tables[name], "")
        return [words[code] for code in values.tolist()]
    if name in NUMBERS:
        origin = history.header.origin_unix_s or 0.0
        shift = origin if name in _TIMES else 0.0
        return [_shown(value) for value in (values + shift).tolist()]
    unit = WHOLE if name == "gpus" else 1
    return ["" if value < 0 else _shown(value / unit) for value in values.tolist()]


def as_csv(history: History) -> Iterator[str]:
    """A CSV file that `trace` reads again: the columns that say anything, times in Unix seconds.

    Times stay relative where it is not known what 0 s is.
    """
    names = [name for name in FIELDS if history.missing(name) < history.jobs]
    yield ",".join(names) + "\n"
    for first in range(0, history.jobs, _ROWS):
        some = slice(first, first + _ROWS)
        text = io.StringIO()
        columns = [_column(history, name, some) for name in names]
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        yield text.getvalue()


def _known(value: float) -> str:
    return "-1" if math.isnan(value) else f"{value:.15g}"


def as_swf(history: History) -> Iterator[str]:
    """An SWF file, by submission: jobs are numbered anew, and processors stand for GPUs."""
    ordered = history.by_submission()
    unit, amount = demand(ordered)
    origin = ordered.header.origin_unix_s
    yield "; Version: 2.2\n"
    yield f"; Note: written by adlro from {ordered.header.source}; processors are {unit}\n"
    if origin is not None:
        yield f"; UnixStartTime: {origin:.0f}\n"
    codes = (ordered.user, ordered.account, ordered.name, ordered.queue)
    for job in range(ordered.jobs):
        status = _STATUS.get(ordered.word("status", job), -1)
        who = [code[job] + 1 if code[job] >= 0 else -1 for code in codes]
        wait = ordered.start_s[job] - ordered.submit_s[job]
        count = _known(np.ceil(amount[job]))
        memory = ordered.memory_mb[job] * 1024 / max(1.0, amount[job])
        fields = (
            *(job + 1, _known(ordered.submit_s[job]), _known(wait), _known(ordered.run_s[job])),
            *(count, -1, -1, count, _known(ordered.requested_s[job]), _known(memory), status),
            *(*who, -1, -1, -1),
        )
        yield " ".join(map(str, fields)) + "\n"


def _code(letter: str, word: str, salt: bytes) -> str:
    digest = hashlib.blake2b(word.encode(), key=salt, digest_size=5).hexdigest()
    return f"{letter}-{digest}"


def anonymous(history: History, salt: bytes) -> History:
    """The history with codes for users, accounts and names, and its dates moved by whole weeks.

    The same salt (1 to 64 bytes) gives the same codes; without it nobody can tell whose they are.
    What was said of skipped lines goes, as it quotes them.
    """
    tables = dict(history.tables)
    for column, letter in _CODED.items():
        tables[column] = tuple(_code(letter, word, salt) for word in history.tables[column])
    header, origin = history.header, history.header.origin_unix_s
    if origin is not None:
        drawn = hashlib.blake2b(b"weeks", key=salt, digest_size=8).digest()
        origin -= (1 + int.from_bytes(drawn, "big") % _MOST_WEEKS) * _WEEK
    kept = tuple(note for note in header.notes if not note.startswith("skipped "))
    update = {
        "origin_unix_s": origin,
        "notes": (*kept, "users, accounts and names are codes; dates are moved by whole weeks"),
    }
    return history._replace(header=header.model_copy(update=update), tables=tables)
