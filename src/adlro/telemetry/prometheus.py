"""GPUs by way of a Prometheus: its HTTP API, or one that speaks like it.

An instant query dates every value by the moment of the question. So the readings' own times are
asked for apart, at the same moment: an age is by Prometheus's clock alone, never by ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from adlro.errors import TelemetryError
from adlro.telemetry import names
from adlro.telemetry.gather import Gather
from adlro.telemetry.sample import Sample
from adlro.telemetry.web import Limits, ask, check_address, shown

LOST_S = 3600  # a GPU seen within that time and not now is lost, not unknown

_WHO = (*names.HOST_LABELS, names.INSTANCE, *names.INDEX_LABELS, *names.PART_LABELS)
_BAD_NAME = re.compile("[^a-zA-Z0-9_:]")

Each = Callable[[Mapping[str, str], float], None]


class Source(NamedTuple):
    """Where to ask, and what the metrics are called there."""

    url: str
    prefix: str = ""  # of ROCm's exporter, besides none and names.PREFIX
    limits: Limits = Limits()


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


def parse(url: str, body: bytes, each: Each) -> float | None:
    """Hand out the labels and the value of every series in an answer to an instant query.

    Returns:
        The moment that was asked about, by Prometheus's clock; None if there is no series.

    Raises:
        TelemetryError: it is not the answer of a Prometheus to an instant query.
    """
    data = _load(url, body).get("data")
    if not isinstance(data, dict) or data.get("resultType") != "vector":
        raise _not_ours(url)
    moment = None
    try:
        for series in data["result"]:
            at, value = series["value"]
            labels = series["metric"]
            if {*map(type, labels.values()), type(value)} != {str}:
                raise TypeError("a label or a value that is not text")
            moment = float(at)
            each(labels, float(value))
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise TelemetryError(f"{url}: answers with a malformed series: {shown(str(exc))}") from exc
    return moment


def _refusal(url: str, status: int, body: bytes) -> TelemetryError:
    """What to say about an answer that is not 200: in the server's words, if it has any."""
    try:
        error = _load(url, body).get("error")
    except TelemetryError:
        error = None
    said = f": {shown(error)}" if isinstance(error, str) else "; is it a Prometheus?"
    return TelemetryError(f"{url}: HTTP {status}{said}")


def query(source: Source, text: str, each: Each, at: float | None = None) -> float | None:
    """Ask an instant query and hand out its series (see parse); without a moment: now.

    Raises:
        TelemetryError: there is no answer, or not the one that was asked for.
    """
    check_address(source.url)
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


def read(source: Source, lost: bool = False) -> Sample:
    """All GPUs that a Prometheus knows.

    Args:
        source: where it is.
        lost: also list, without values, the GPUs that it had within LOST_S and has no more: their
            exporter is down or does not see them. Costs Prometheus more.

    Raises:
        TelemetryError: there is no answer, or not the one that was asked for.
    """
    if _BAD_NAME.search(source.prefix):
        raise TelemetryError(f"{shown(source.prefix)!r} cannot be the beginning of a metric's name")
    gather, metrics = Gather(source.prefix), names.metrics(source.prefix)
    take = gather.take
    now = query(
        source, _any_of(metrics), lambda labels, value: take(labels["__name__"], labels, value)
    )
    if now is not None:
        query(source, _times(gather.names()), gather.date, now)
    if lost:
        moment = query(source, _lost(metrics), lambda labels, _: gather.expect(labels), now)
        now = moment if now is None else now
    return gather.sample(float("nan") if now is None else now)
