"""GPUs by way of a Prometheus: its HTTP API, or one that speaks like it.

An instant query dates every value by the moment of the question. So the readings' own times are
asked for apart, at the same moment: an age is by Prometheus's clock alone, never by ours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from adlro.errors import TelemetryError
from adlro.telemetry import names
from adlro.telemetry.gather import Gather
from adlro.telemetry.sample import LATEST, Sample
from adlro.telemetry.web import Limits, ask, check_address, shown

LOST_S = 3600  # a GPU seen within that time and not now is lost, not unknown

_WHO = (*names.HOST_LABELS, names.INSTANCE, *names.INDEX_LABELS, *names.PART_LABELS)
_WARNINGS = 5  # that are passed on
_HINTS = {
    401: "it wants to know who asks, which cannot be told",
    403: "it does not answer everybody",
    404: "its address has mostly no path, as http://127.0.0.1:9090",
}

Each = Callable[[Mapping[str, str], float], None]


class Endpoint(NamedTuple):
    """Where to ask, and what the metrics are called there."""

    url: str
    prefix: str = ""  # of ROCm's exporter, besides none and names.PREFIX
    limits: Limits = Limits()


class QueryStatus(NamedTuple):
    """What an answer says besides its series."""

    moment: float | None  # that was asked about, by Prometheus's clock; None = there is no series
    warnings: tuple[str, ...]  # such as that a part of the data could not be read


def _not_ours(url: str) -> TelemetryError:
    return TelemetryError(f"{url}: answers with JSON that is not a Prometheus's")


def _load(url: str, body: bytes) -> dict[str, Any]:
    """An answer as it is.

    Raises:
        TelemetryError: it is not JSON, or no object.
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
    told = answer.get("warnings", [])
    if not isinstance(told, list) or not all(isinstance(words, str) for words in told):
        raise _not_ours(url)
    partial = (
        ["the answer is partial"] if answer.get("isPartial") is True else []
    )  # VictoriaMetrics
    return tuple(told + partial)


def parse(url: str, body: bytes, each: Each) -> QueryStatus:
    """Hand out the labels and the value of every series in an answer to an instant query.

    Raises:
        TelemetryError: it is not the answer of a Prometheus to an instant query.
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
    """What to say about an answer that is not 200: in the server's words, if it has any."""
    try:
        error = _load(url, body).get("error")
    except TelemetryError:
        error = None
    hint = _HINTS.get(status, "is it a Prometheus?")
    said = f": {shown(error)}" if isinstance(error, str) else f"; {hint}"
    return TelemetryError(f"{url}: HTTP {status}{said}")


def query(source: Endpoint, text: str, each: Each, at: float | None = None) -> QueryStatus:
    """Ask an instant query and hand out its series (see parse); without a moment: now.

    Raises:
        TelemetryError: there is no answer, or not the one that was asked for.
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
    """PromQL: the time of each GPU's oldest reading.

    timestamp() drops the metric's name, without which series fall together: hence the label.
    """
    dated = (f'label_replace(timestamp({name}), "metric", "{name}", "", "")' for name in metrics)
    return f"min by ({', '.join(_WHO)}) ({' or '.join(dated)})"


def _lost(metrics: Iterable[str]) -> str:
    """PromQL: every GPU with a reading in the last LOST_S seconds."""
    labels = ", ".join((*_WHO, *names.MODEL_LABELS, names.PROFILE_LABEL))
    return f"group by ({labels}) (last_over_time({_any_of(metrics)}[{LOST_S}s]))"


def read(source: Endpoint, lost: bool = False) -> Sample:
    """All GPUs that a Prometheus knows.

    Args:
        source: where it is.
        lost: also list, without values, the GPUs that it had within LOST_S and has no more: their
            exporter is down or does not see them. Costs Prometheus more.

    Raises:
        TelemetryError: there is no answer, or not the one that was asked for.
    """
    gather, metrics = Gather(source.prefix), names.metrics(source.prefix)
    take = gather.take
    now, warnings = query(
        source, _any_of(metrics), lambda labels, value: take(labels["__name__"], labels, value)
    )
    if gather.names():
        warnings += query(source, _times(gather.names()), gather.date, now).warnings
    if lost:
        told = query(source, _lost(metrics), lambda labels, _: gather.expect(labels), now)
        now = told.moment if now is None else now
        warnings += told.warnings
    return gather.sample(math.nan if now is None else now, _warned(warnings))


def _warned(warnings: Iterable[str]) -> tuple[str, ...]:
    """Notes about the warnings, each once."""
    different = list(dict.fromkeys(map(shown, warnings)))
    notes = [f"Prometheus warns: {words}" for words in different[:_WARNINGS]]
    if len(different) > _WARNINGS:
        notes.append(f"{len(different) - _WARNINGS:,} more warnings of Prometheus")
    return tuple(notes)
