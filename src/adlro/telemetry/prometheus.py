"""Reads GPUs from a Prometheus, or from a server with the same HTTP API.

The answer to an instant query gives every value the time of the query. The times of the readings
are therefore queried separately, for the same moment. Ages are measured by Prometheus's clock
alone, never by ours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from adlro.errors import TelemetryError
from adlro.telemetry import names
from adlro.telemetry.gather import SampleBuilder
from adlro.telemetry.sample import LATEST, Sample
from adlro.telemetry.web import Limits, ask, check_address, shown

LOST_S = 3600  # a GPU with a reading within this time but none now is lost

_IDENTITY = (*names.HOST_LABELS, names.INSTANCE, *names.INDEX_LABELS, *names.PART_LABELS)
_WARNINGS = 5  # most warnings in the notes
_HINTS = {
    401: "it asks for credentials, which are not supported",
    403: "it refuses this client",
    404: "its address usually has no path, as in http://127.0.0.1:9090",
}

Each = Callable[[Mapping[str, str], float], None]


class Endpoint(NamedTuple):
    """The address of a source, the prefix of its metrics, and the limits on its answers."""

    url: str
    prefix: str = ""  # of ROCm's exporter, besides none and names.PREFIX
    limits: Limits = Limits()


class QueryStatus(NamedTuple):
    """What an answer holds besides its series: the time of the query, and warnings."""

    moment: float | None  # of the query, by Prometheus's clock; None = there is no series
    warnings: tuple[str, ...]  # such as that a part of the data could not be read


def _not_ours(url: str) -> TelemetryError:
    return TelemetryError(f"{url}: answers with JSON that is not a Prometheus's")


def _load(url: str, body: bytes) -> dict[str, Any]:
    """Parse the body of an answer, which must be a JSON object.

    Raises:
        TelemetryError: the body is not a JSON object.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as exc:
        if body.lstrip()[:1] == b"<":
            raise TelemetryError(f"{url}: answers with a web page; is it a Prometheus?") from exc
        raise TelemetryError(f"{url}: answers with malformed JSON: {shown(str(exc))}") from exc
    if not isinstance(answer, dict):
        raise _not_ours(url)
    return answer


def _warnings(url: str, answer: Mapping[str, Any]) -> tuple[str, ...]:
    warnings = answer.get("warnings", [])
    if not isinstance(warnings, list) or not all(isinstance(text, str) for text in warnings):
        raise _not_ours(url)
    partial = (
        ["the answer is partial"] if answer.get("isPartial") is True else []
    )  # VictoriaMetrics
    return tuple(warnings + partial)


def parse(url: str, body: bytes, each: Each) -> QueryStatus:
    """Call `each` with the labels and the value of every series in an answer.

    Raises:
        TelemetryError: the body is not the answer of a Prometheus to an instant query.
    """
    answer = _load(url, body)
    if answer.get("status") == "error" and isinstance(answer.get("error"), str):
        raise TelemetryError(f"{url}: {shown(answer['error'])}")
    data = answer.get("data")
    is_vector = isinstance(data, dict) and data.get("resultType") == "vector"
    if answer.get("status") != "success" or not isinstance(data, dict) or not is_vector:
        raise _not_ours(url)
    warnings, moment = _warnings(url, answer), None
    try:
        for series in data["result"]:
            at, value = series["value"]
            labels = series["metric"]
            if {*map(type, labels.values()), type(value)} != {str}:
                raise TypeError("a label or a value that is not text")
            if type(at) not in (int, float) or not 0 <= at < LATEST:
                raise TypeError("a time that cannot be one")
            moment = float(at)
            each(labels, float(value))
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise TelemetryError(f"{url}: answers with a malformed series: {shown(str(exc))}") from exc
    return QueryStatus(moment, warnings)


def _refusal(url: str, status: int, body: bytes) -> TelemetryError:
    """Return the error for an HTTP status other than 200, with the server's message if any."""
    try:
        error = _load(url, body).get("error")
    except TelemetryError:
        error = None
    hint = _HINTS.get(status, "is it a Prometheus?")
    detail = f": {shown(error)}" if isinstance(error, str) else f"; {hint}"
    return TelemetryError(f"{url}: HTTP {status}{detail}")


def query(source: Endpoint, text: str, each: Each, at: float | None = None) -> QueryStatus:
    """Send an instant query for time `at` (None = now) and call `each` for each series.

    Raises:
        TelemetryError: there is no answer, or a malformed one.
    """
    parts = check_address(source.url)
    if parts.query or parts.fragment:
        raise TelemetryError(f"{shown(source.url)!r}: give it without what begins with ? or #")
    url = source.url.rstrip("/") + "/api/v1/query"
    form = {"query": text} if at is None else {"query": text, "time": f"{at:.3f}"}
    answer = ask(url, form, source.limits)
    if answer.status != 200:
        raise _refusal(url, answer.status, answer.body)
    return parse(url, answer.body, each)


def _any_of(metrics: Iterable[str]) -> str:
    return '{__name__=~"' + "|".join(metrics) + '"}'


def _times(metrics: Iterable[str]) -> str:
    """Return the PromQL query for the time of each GPU's oldest reading.

    timestamp() drops the name of the metric, so without the added label `metric` the series of one
    GPU would collide.
    """
    dated = (f'label_replace(timestamp({name}), "metric", "{name}", "", "")' for name in metrics)
    return f"min by ({', '.join(_IDENTITY)}) ({' or '.join(dated)})"


def _lost(metrics: Iterable[str]) -> str:
    """Return the PromQL query for every GPU with a reading in the last LOST_S seconds."""
    labels = ", ".join((*_IDENTITY, *names.MODEL_LABELS, names.PROFILE_LABEL))
    return f"group by ({labels}) (last_over_time({_any_of(metrics)}[{LOST_S}s]))"


def read(source: Endpoint, lost: bool = False) -> Sample:
    """Return a sample of all GPUs that a Prometheus knows.

    Args:
        source: the address of the Prometheus.
        lost: also list, without values, the GPUs with a reading within LOST_S but none now: their
            exporter is down or does not see them. Costs Prometheus more.

    Raises:
        TelemetryError: there is no answer, or a malformed one.
    """
    gather, metrics = SampleBuilder(source.prefix), names.metrics(source.prefix)
    take = gather.take
    now, warnings = query(
        source, _any_of(metrics), lambda labels, value: take(labels["__name__"], labels, value)
    )
    if gather.names():
        warnings += query(source, _times(gather.names()), gather.date, now).warnings
    if lost:
        status = query(source, _lost(metrics), lambda labels, _: gather.expect(labels), now)
        now = status.moment if now is None else now
        warnings += status.warnings
    return gather.sample(math.nan if now is None else now, _warned(warnings))


def _warned(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return a note for each distinct warning, up to _WARNINGS, and one that counts the rest."""
    different = list(dict.fromkeys(map(shown, warnings)))
    notes = [f"Prometheus warns: {words}" for words in different[:_WARNINGS]]
    if len(different) > _WARNINGS:
        notes.append(f"{len(different) - _WARNINGS:,} more warnings of Prometheus")
    return tuple(notes)
