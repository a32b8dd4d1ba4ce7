"""Reads an exporter's page, in Prometheus's text format or OpenMetrics.

A line is accepted as a whole or not at all; malformed lines are counted and listed. All quantifiers
are possessive: parsing a line takes time in proportion to its length, whatever it contains.
"""

from __future__ import annotations

import math
import re
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from adlro.errors import TelemetryError
from adlro.telemetry.gather import SampleBuilder
from adlro.telemetry.names import INSTANCE
from adlro.telemetry.prometheus import Endpoint
from adlro.telemetry.sample import Sample
from adlro.telemetry.web import ask, shown

_LONGEST = 1 << 16  # bytes of a line
_LISTED = 5  # malformed lines in the notes
_NUMBER = r"[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]{1,4}+)?|[iI]nf)|[nN]a[nN]"
_VALUE = (
    r"([a-zA-Z_:][a-zA-Z0-9_:]*+)"
    r'(?:[ \t]*+{((?:[^"{}]++|"(?:[^"\\]++|\\.)*+")*+)}[ \t]*+|[ \t]++)'
    rf"({_NUMBER})"
)
_LINE = re.compile(rf"{_VALUE}(?:[ \t]++(-?[0-9]{{1,15}}))?")  # milliseconds
_OPEN_LINE = re.compile(rf"{_VALUE}(?: (-?[0-9]{{1,12}}(?:\.[0-9]*+)?))?(?: # {{.*)?")  # seconds
_OPEN_KIND = "application/openmetrics-text"
_LABEL = re.compile(
    r'[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"((?:[^"\\]++|\\[\\n"])*+)"[ \t]*+(,?)'
)
_ESCAPED = re.compile(r"\\(.)")


class Reading(NamedTuple):
    """The reading on one line of a page."""

    name: str
    labels: dict[str, str]
    value: float
    time: float  # seconds since 1970; NaN = the line has none


class Page(NamedTuple):
    """The readings of a page, and its malformed lines."""

    readings: list[Reading]
    malformed: int
    examples: tuple[str, ...]  # the first malformed lines, with their numbers


def _labels(text: str) -> dict[str, str] | None:
    """Parse the labels between the braces of a line; None = malformed."""
    labels: dict[str, str] = {}
    at, comma = 0, ","
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None or not comma or match[1] in labels:
            return labels if not text[at:].strip(" \t") and comma else None
        value = match[2]
        if "\\" in value:
            value = _ESCAPED.sub(lambda escape: {"n": "\n"}.get(escape[1], escape[1]), value)
        labels[match[1]] = value
        at, comma = match.end(), match[3]
    return labels


def _reading(raw: bytes, is_open: bool) -> Reading | None:
    """Parse a line that is neither empty nor a comment; None = malformed."""
    if len(raw) > _LONGEST:
        return None
    try:
        match = (_OPEN_LINE if is_open else _LINE).fullmatch(raw.decode())
    except UnicodeDecodeError:
        return None
    if match is None:
        return None
    name, inner, number, moment = match.groups()
    labels = _labels(inner) if inner else {}
    if labels is None:
        return None
    time_s = float(moment) / (1 if is_open else 1000) if moment else math.nan
    return Reading(name, labels, float(number), time_s)


def parse(body: bytes, is_open: bool = False) -> Page:
    """Parse all readings on a page.

    A last line without a line break counts as malformed: it may be cut off in the middle of a
    number.

    Args:
        body: the page.
        is_open: True for OpenMetrics, where times are in seconds and a line may end in an exemplar.
    """
    readings: list[Reading] = []
    examples: list[str] = []
    malformed = 0
    lines = body.split(b"\n")
    for number, line in enumerate(lines, 1):
        raw = line.strip(b" \t\r")
        if not raw or raw.startswith(b"#"):
            continue
        is_whole = number < len(lines)
        reading = _reading(raw, is_open) if is_whole else None
        if reading is not None:
            readings.append(reading)
            continue
        malformed += 1
        if len(examples) < _LISTED:
            words = repr(shown(raw[:200].decode(errors="replace")))
            examples.append(f"line {number}{'' if is_whole else ' has no end'}: {words}")
    return Page(readings, malformed, tuple(examples))


def read(source: Endpoint) -> Sample:
    """Return a sample of all GPUs on an exporter's page.

    Raises:
        TelemetryError: there is no page, or it has no metrics.
    """
    gather, own = SampleBuilder(source.prefix), {INSTANCE: urlsplit(source.url).netloc}
    answer = ask(source.url, limits=source.limits)
    now = time.time()
    if answer.status != 200:
        hint = "its page is mostly at /metrics" if answer.status == 404 else "see what it logs"
        raise TelemetryError(f"{source.url}: HTTP {answer.status}; {hint}")
    page = parse(answer.body, is_open=answer.kind.lower().startswith(_OPEN_KIND))
    if page.malformed and not page.readings:
        hint = "the page of an exporter is mostly at /metrics"
        raise TelemetryError(f"{source.url}: is not a page of metrics ({page.examples[0]}); {hint}")
    for reading in page.readings:
        if gather.knows(reading.name):
            labels = own | reading.labels
            gather.take(reading.name, labels, reading.value)
            gather.date(labels, now if math.isnan(reading.time) else reading.time)
    notes = [f"malformed and left out: {example}" for example in page.examples]
    if page.malformed > len(notes):
        notes.append(f"{page.malformed - len(notes):,} more malformed lines left out")
    return gather.sample(now, tuple(notes))
