"""An exporter's own page: Prometheus's text format, read without a Prometheus.

A line is taken as a whole or not at all; lines that are not of the format are counted and listed.
"""

from __future__ import annotations

import math
import re
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from adlro.errors import TelemetryError
from adlro.telemetry.gather import Gather
from adlro.telemetry.names import INSTANCE
from adlro.telemetry.prometheus import Source
from adlro.telemetry.sample import Sample
from adlro.telemetry.web import ask, shown

_LONGEST = 1 << 16  # bytes of a line
_LISTED = 5  # malformed lines
_NUMBER = r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?|[iI]nf)|[nN]a[nN]"
_LINE = re.compile(
    rf"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:{{(.*)}})?[ \t]*({_NUMBER})(?:[ \t]+(-?[0-9]{{1,15}}))?"
)
_LABEL = re.compile(
    r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\[\\n"])*)"[ \t]*(,?)'
)
_ESCAPED = re.compile(r"\\(.)")


class Reading(NamedTuple):
    """One line of a page."""

    name: str
    labels: dict[str, str]
    value: float
    time: float  # seconds since 1970; NaN = the line does not say


class Page(NamedTuple):
    """A page, read."""

    readings: list[Reading]
    malformed: int
    examples: tuple[str, ...]  # the first malformed lines, with their numbers


def _labels(text: str) -> dict[str, str] | None:
    """The labels between the braces; None = malformed."""
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


def _reading(line: str) -> Reading | None:
    """A line that is not empty and no comment; None = malformed."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    name, inner, number, milliseconds = match.groups()
    labels = _labels(inner) if inner else {}
    if labels is None or (inner is None and line[len(name)] not in " \t"):
        return None
    time_s = int(milliseconds) / 1000 if milliseconds else math.nan
    return Reading(name, labels, float(number), time_s)


def parse(body: bytes) -> Page:
    """Every reading on a page."""
    readings: list[Reading] = []
    examples: list[str] = []
    malformed = 0
    for number, raw in enumerate(body.split(b"\n"), 1):
        stripped = raw.strip(b" \t\r")
        if not stripped or stripped.startswith(b"#"):
            continue
        try:
            reading = _reading(stripped.decode()) if len(stripped) <= _LONGEST else None
        except UnicodeDecodeError:
            reading = None
        if reading is not None:
            readings.append(reading)
            continue
        malformed += 1
        if len(examples) < _LISTED:
            examples.append(f"line {number}: {shown(stripped[:200].decode(errors='replace'))!r}")
    return Page(readings, malformed, tuple(examples))


def read(source: Source) -> Sample:
    """All GPUs on an exporter's page.

    Raises:
        TelemetryError: there is no page, or it holds no metrics.
    """
    answer = ask(source.url, limits=source.limits)
    now = time.time()
    if answer.status != 200:
        raise TelemetryError(f"{source.url}: HTTP {answer.status}; its page is mostly at /metrics")
    page = parse(answer.body)
    if page.malformed and not page.readings:
        hint = "the page of an exporter is mostly at /metrics"
        raise TelemetryError(f"{source.url}: is not a page of metrics ({page.examples[0]}); {hint}")
    gather, own = Gather(source.prefix), {INSTANCE: urlsplit(source.url).netloc}
    for reading in page.readings:
        if gather.knows(reading.name):
            labels = own | reading.labels
            gather.take(reading.name, labels, reading.value)
            gather.date(labels, now if math.isnan(reading.time) else reading.time)
    notes = [f"malformed and left out: {example}" for example in page.examples]
    if page.malformed > len(notes):
        notes.append(f"{page.malformed - len(notes):,} more malformed lines left out")
    return gather.sample(now, tuple(notes))
