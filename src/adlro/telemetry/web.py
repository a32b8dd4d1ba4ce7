"""Sends one HTTP request without redirects or proxies, with limits on time and size."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.parse
from collections.abc import Mapping
from typing import NamedTuple

from adlro.errors import TelemetryError

_CHUNK = 1 << 16
_SHOWN = 80  # characters of foreign text in a message


class Limits(NamedTuple):
    """The limits on the time and the size of an answer."""

    seconds: float = 5.0
    size: int = 64 << 20  # bytes


class Answer(NamedTuple):
    """Status, content type and body of the answer to a request."""

    status: int
    kind: str  # the content type
    body: bytes


def clean(text: str) -> str:
    """Return foreign text on one line, without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shown(text: str) -> str:
    """Return foreign text on one line, shortened for a message."""
    words = clean(text)
    return words if len(words) <= _SHOWN else words[:_SHOWN] + " …"


def check_address(url: str) -> urllib.parse.SplitResult:
    """Split the address of a web server into its parts.

    Raises:
        TelemetryError: the address is not one of HTTP or HTTPS, or holds a password.
    """
    example = "write it like http://127.0.0.1:9090"
    if "@" in url:  # first: no other message may show it
        raise TelemetryError(f"an address with a password in it is not taken; {example}")
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise TelemetryError(f"{shown(url)!r} is not an address: {exc}") from exc
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not host or not is_plain:
        raise TelemetryError(f"{shown(url)!r} is not an address of the web; {example}")
    return parts


class _Deadline:
    """Closes the connection after a deadline, even if data still trickles in."""

    def __init__(self, line: socket.socket, seconds: float) -> None:
        self.has_passed = False
        self._line = line
        self._timer = threading.Timer(seconds, self._close)
        self._timer.daemon = True

    def _close(self) -> None:
        self.has_passed = True
        with contextlib.suppress(OSError):  # the other side was faster
            self._line.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _connection(parts: urllib.parse.SplitResult, seconds: float) -> http.client.HTTPConnection:
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return make(parts.hostname or "", parts.port, timeout=seconds)


def _read(response: http.client.HTTPResponse, url: str, size: int) -> bytes:
    chunks, length = [], 0
    # read() accepts a chunk length of -1 and then reads without limit
    read = response.read1 if response.chunked else response.read
    while chunk := read(_CHUNK):
        length += len(chunk)
        if length > size:
            raise TelemetryError(f"{url}: the answer is longer than {size:,} bytes: refused")
        chunks.append(chunk)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(chunks)


def _request(
    connection: http.client.HTTPConnection, parts: urllib.parse.SplitResult, form: str | None
) -> http.client.HTTPResponse:
    path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    if form is None:
        connection.request("GET", path, headers={"Accept": "text/plain; version=0.0.4, */*; q=0.1"})
    else:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", path, form, kind)
    return connection.getresponse()


def ask(url: str, form: Mapping[str, str] | None = None, limits: Limits | None = None) -> Answer:
    """Send a GET request, or a POST if there is a form, and return the answer.

    Raises:
        TelemetryError: there is no answer, or it is late, too large or a redirect.
    """
    parts, limits = check_address(url), limits or Limits()
    connection = _connection(parts, limits.seconds)
    is_late = False
    try:
        connection.connect()
        with _Deadline(connection.sock, limits.seconds) as deadline:
            try:
                response = _request(
                    connection, parts, urllib.parse.urlencode(form) if form else None
                )
                if 300 <= response.status < 400:
                    raise _redirected(url, response.getheader("Location", ""))
                text = _read(response, url, limits.size)
            finally:
                is_late = deadline.has_passed
    except (OSError, http.client.HTTPException, ValueError) as exc:
        if is_late or isinstance(exc, TimeoutError):
            raise _too_slow(url, limits) from exc
        raise TelemetryError(f"{url}: no answer: {_reason(exc)}; is it running there?") from exc
    finally:
        connection.close()
    if is_late:  # closed in the middle of a body of unknown length
        raise _too_slow(url, limits)
    return Answer(response.status, response.getheader("Content-Type", ""), text)


def _redirected(url: str, where: str) -> TelemetryError:
    if not where or "@" in where:  # which may be a password
        return TelemetryError(
            f"{url}: sends us on elsewhere; give the address of the source itself"
        )
    return TelemetryError(f"{url}: sends us on to {shown(where)}; give that address")


def _too_slow(url: str, limits: Limits) -> TelemetryError:
    return TelemetryError(f"{url}: no complete answer within {limits.seconds:g} s")


def _reason(exc: Exception) -> str:
    text = getattr(exc, "strerror", None) or str(exc)
    return shown(text or type(exc).__name__)
