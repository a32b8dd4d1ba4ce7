"""Write histories as CSV or SWF, and replace personal data in them by codes."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator

import numpy as np

from adlro.errors import TraceError
from adlro.model.history import FIELDS, NUMBERS, TIMES, WORDS, History
from adlro.model.state import WHOLE
from adlro.workloads.formats.text_file import LONGEST
from adlro.workloads.summary import demand

_ROWS = 8192  # written at a time
_WEEK = 604_800.0
_MOST_WEEKS = 520
_CODED = {"user": "u", "account": "a", "name": "n"}  # column -> letter of its codes
_STATUS = {"failed": 0, "completed": 1, "partial": 2, "cancelled": 5}
_QUOTED = frozenset(',"\n\r')  # a field that holds one of these is quoted
_STRETCHING = {"n": 2**15, "r": 8, "p": 1, "maxmem": 2**26}  # of scrypt: 32 MiB, about 0.1 s a try


def _decimal(value: float, unknown: str = "") -> str:
    """Format a number without an exponent, so that reading the text gives exactly the same number.

    `unknown` is the text for nan.
    """
    if math.isnan(value):
        return unknown
    text = f"{value:.15g}"
    is_exact = "e" not in text and float(text) == value
    return text if is_exact else np.format_float_positional(value, trim="-")


def _field(word: str) -> str:
    """Return a word as a field of a CSV file, in quotes if it needs them."""
    return '"' + word.replace('"', '""') + '"' if _QUOTED & set(word) else word


def _refuse_unsubmitted(history: History) -> None:
    count = history.missing("submit_s")
    if count:
        raise TraceError(
            f"{history.header.source}: {count:,} of {history.rows:,} jobs have no time of "
            "submission, which CSV and SWF files need; write OUT.npz instead"
        )


def _column(history: History, name: str, some: slice) -> list[str]:
    """Return the fields of one CSV column for the jobs in the slice `some`."""
    if name == "id":
        return [_field(word) for word in history.id[some]]
    values = getattr(history, name)[some]
    if name in WORDS:
        words = (*map(_field, history.tables[name]), "")
        return [words[code] for code in values.tolist()]
    if name in NUMBERS:
        origin = history.header.origin_unix_s or 0.0
        shift = origin if name in TIMES else 0.0
        return [_decimal(value) for value in (values + shift).tolist()]
    unit = WHOLE if name == "gpus" else 1
    return ["" if value < 0 else _decimal(value / unit) for value in values.tolist()]


def as_csv(history: History) -> Iterator[str]:
    """Return the lines of a CSV file that adlro can read again, with all columns that have values.

    Times are Unix seconds, or seconds of the history if its origin is unknown.

    Raises:
        TraceError: a job has no time of submission, or names are too long for the CSV reader.
    """
    _refuse_unsubmitted(history)
    present = {name for name in FIELDS if history.missing(name) < history.rows}
    # A reader needs two columns, and without run_s it would compute run times from start and end.
    names = [name for name in FIELDS if name in present | {"run_s"}]
    texts = (history.id, *history.tables.values())
    if sum(max((len(_field(text)) for text in some), default=0) for some in texts) > LONGEST // 8:
        raise TraceError(
            f"{history.header.source}: has names too long for a CSV file that can be read; "
            "write OUT.npz instead"
        )
    return itertools.chain([",".join(names) + "\n"], _csv_lines(history, names))


def _csv_lines(history: History, names: list[str]) -> Iterator[str]:
    for first in range(0, history.rows, _ROWS):
        some = slice(first, first + _ROWS)
        for row in zip(*(_column(history, name, some) for name in names), strict=True):
            yield ",".join(row) + "\n"


def as_swf(history: History) -> Iterator[str]:
    """Return the lines of an SWF file: jobs numbered by submission, GPUs written as processors.

    Lost runs of requeued jobs are left out.

    Raises:
        TraceError: a job has no time of submission.
    """
    _refuse_unsubmitted(history)
    return _swf_lines(history.without_lost().by_submission())


def _swf_lines(ordered: History) -> Iterator[str]:
    unit, amount = demand(ordered)
    origin = ordered.header.origin_unix_s or 0.0
    start = math.floor(max(origin, 0.0))  # a whole number from 0 on
    source = " ".join(ordered.header.source.split())
    yield "; Version: 2.2\n"
    yield f"; Note: written by adlro from {source}; processors are {unit}\n"
    if start > 0:
        yield f"; UnixStartTime: {start}\n"
    submit = ordered.submit_s + (origin - start)
    words = (ordered.user, ordered.account, ordered.name, ordered.queue)
    for job in range(ordered.rows):
        status = _STATUS.get(ordered.word("status", job), -1)
        codes = [code[job] + 1 if code[job] >= 0 else -1 for code in words]
        wait = ordered.start_s[job] - ordered.submit_s[job]
        count = np.ceil(amount[job])
        memory = ordered.memory_mb[job] * 1024 / max(1.0, count)
        times = (submit[job], wait, ordered.run_s[job])
        numbers = (*times, count, np.nan, np.nan, count, ordered.requested_s[job], memory)
        fields = (job + 1, *(_decimal(x, "-1") for x in numbers), status, *codes, -1, -1, -1)
        yield " ".join(map(str, fields)) + "\n"


def _digest(purpose: str, word: str, key: bytes) -> bytes:
    """Return an 8-byte keyed hash of a word, which differs from one purpose to another."""
    return hashlib.blake2b(word.encode(), key=key, digest_size=8, person=purpose.encode()).digest()


def anonymous(history: History, salt: bytes) -> History:
    """Return the history with users, accounts and job names replaced by codes, and dates moved.

    All dates are moved back by the same number of weeks, 1 to 520. The same salt gives the same
    codes and weeks. Without the salt, codes cannot be computed from guessed words; a slow key
    derivation hinders guessing short salts. The name of the file and the notes that quote skipped
    lines are removed.
    """
    key = hashlib.scrypt(salt, salt=b"adlro trace anonymise", dklen=32, **_STRETCHING)
    tables = dict(history.tables)
    for column, letter in _CODED.items():
        words = history.tables[column]
        tables[column] = tuple(f"{letter}-{_digest(column, word, key).hex()}" for word in words)
    header, origin = history.header, history.header.origin_unix_s
    if origin is not None:
        drawn = int.from_bytes(_digest("weeks", "", key), "big")
        origin -= (1 + drawn % _MOST_WEEKS) * _WEEK
    kept = tuple(note for note in header.notes if not note.startswith("skipped "))
    update = {
        "source": "anonymised",
        "origin_unix_s": origin,
        "notes": (*kept, "users, accounts and names are codes; dates are moved by whole weeks"),
    }
    return history._replace(header=header.model_copy(update=update), tables=tables)
