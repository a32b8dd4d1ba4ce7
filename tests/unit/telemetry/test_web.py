"""Asking over HTTP: every way in which the other side can fail becomes one line."""

import contextlib
import json
import math
import random
import socket
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.cli.telemetry import lines
from adlro.errors import TelemetryError
from adlro.telemetry.check import NEEDED, check
from adlro.telemetry.gather import SampleBuilder
from adlro.telemetry.prometheus import Endpoint, parse, query, read
from adlro.telemetry.web import Limits, ask, clean
from bench import round_trip
from tests.gpu_exporter import serving

QUICK, PATIENT = Limits(seconds=0.5), Limits(seconds=5)


def vector(*series):
    return {"status": "success", "data": {"resultType": "vector", "result": list(series)}}


def series(value, at=100.0, **labels):
    return {"metric": labels, "value": [at, value]}


def answer_of(body):
    with serving(body if isinstance(body, str | bytes) else json.dumps(body)) as server:
        seen = []
        told = query(Endpoint(server.url), "up", lambda labels, value: seen.append((labels, value)))
        return told, seen


def test_an_answer_is_handed_out_with_its_moment():
    body = vector(series("37", 1794768234.873, a="b"), series("NaN", 1794768234.873))
    told, seen = answer_of(body)
    assert told == (1794768234.873, ())
    assert seen[0] == ({"a": "b"}, 37.0)
    assert np.isnan(seen[1][1])


def test_an_answer_without_series_has_no_moment():
    assert answer_of(vector()) == ((None, ()), [])


def test_warnings_are_handed_out_and_a_partial_answer_is_one():
    told, _ = answer_of(vector() | {"warnings": ["a", "b"], "isPartial": True})
    assert told.warnings == ("a", "b", "the answer is partial")


def test_warnings_become_notes_each_once_and_not_too_many():
    body = json.dumps(vector() | {"warnings": ["store 7\nis down", *map(str, range(6))]})
    with serving(body) as server:
        notes = read(Endpoint(server.url), lost=True).notes
    assert notes[0] == "Prometheus warns: store 7 is down"
    assert notes[5:] == ("2 more warnings of Prometheus",)


def test_the_times_and_the_last_hour_are_asked_about_at_the_moment_of_the_values():
    gpu = {"gpu": "0", "Hostname": "h"}
    bodies = [
        vector(series("60", 100.25, __name__="DCGM_FI_DEV_GPU_TEMP", **gpu)) | {"warnings": ["a"]},
        vector(series("90.25", 100.25, **gpu)) | {"warnings": ["a", "b"]},
        vector(series("1", 100.25, **gpu)) | {"warnings": ["c"]},
    ]
    with serving("") as server:
        server.pages = [json.dumps(body).encode() for body in bodies]
        sample = read(Endpoint(server.url), lost=True)
    assert [form.get("time") for form in server.forms] == [None, "100.250", "100.250"]
    assert "DCGM_FI_DEV_GPU_TEMP|" in server.forms[0]["query"]
    assert "timestamp(DCGM_FI_DEV_GPU_TEMP)" in server.forms[1]["query"]
    assert "[3600s]" in server.forms[2]["query"]
    assert sample.age.tolist() == [10.0]
    assert sample.notes == tuple(f"Prometheus warns: {words}" for words in "abc")


def test_metrics_of_no_gpu_are_a_note_and_no_empty_question():
    with serving(json.dumps(vector(series("5", __name__="gpu_power_usage")))) as server:
        sample = read(Endpoint(server.url))
    assert len(server.asked) == 1  # with no metric to date, the question for times would be empty
    assert sample.host == ()
    assert sample.notes == ("1 readings left out that do not say of which GPU",)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<!DOCTYPE html><p>Log in", "answers with a web page; is it a Prometheus?"),
        ("", "malformed JSON"),
        ('{"status":"success","data":{"resultType":"vec', "malformed JSON"),
        ("[" * 100_000, "malformed JSON"),
        (b"\xff\xfe{}", "malformed JSON"),
        ("7", "JSON that is not a Prometheus's"),
        ("{}", "JSON that is not a Prometheus's"),
        ({"data": {"resultType": "matrix", "result": []}}, "JSON that is not a Prometheus's"),
        ({"data": {"resultType": "vector", "result": []}}, "JSON that is not a Prometheus's"),
        ({"status": "success", "data": []}, "JSON that is not a Prometheus's"),
        ({"status": "success", "data": {"resultType": "vector"}}, "malformed series"),
        ({"status": "success", "data": {"resultType": "vector", "result": 7}}, "malformed series"),
        ({"status": "error", "error": "too\nmany"}, "/api/v1/query: too many"),
        (vector() | {"status": "error", "error": "too many"}, "/api/v1/query: too many"),
        (vector() | {"status": "error"}, "JSON that is not a Prometheus's"),
        (vector() | {"warnings": "many"}, "JSON that is not a Prometheus's"),
        (vector() | {"warnings": [1]}, "JSON that is not a Prometheus's"),
        (vector(series("1", float("nan"))), "malformed series: a time that cannot be one"),
        (vector(series("1", True)), "malformed series: a time that cannot be one"),
        (vector(series("1", -1)), "malformed series: a time that cannot be one"),
        (vector(series("1", 10**400)), "malformed series: a time that cannot be one"),
        (vector({"metric": {}, "value": "12"}), "malformed series: a time that cannot be one"),
        (vector(7), "malformed series"),
        (vector({"metric": {}}), "malformed series"),
        (vector(series(37)), "malformed series: a label or a value that is not text"),
        (vector(series("37", a=1)), "malformed series: a label or a value that is not text"),
        (vector(series("many")), "malformed series: could not convert"),
        (vector({"metric": [], "value": [1, "1"]}), "malformed series"),
        (vector({"metric": {}, "value": ["now", "1"]}), "malformed series"),
        (vector({"metric": {}, "value": [1, "1", "2"]}), "malformed series"),
    ],
)
def test_what_is_not_the_answer_of_a_prometheus_is_said_in_one_line(body, words):
    with pytest.raises(TelemetryError) as caught:
        answer_of(body)
    assert words in str(caught.value)
    assert str(caught.value).startswith("http://127.0.0.1:")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 250


def survives(body):
    """Read an answer as a user's command would, up to what is printed and written."""
    gather = SampleBuilder()
    try:
        told = parse("url", body, lambda labels, v: gather.take(labels["__name__"], labels, v))
        parse("url", body, gather.date)
    except TelemetryError:
        return
    sample = gather.sample(math.nan if told.moment is None else told.moment, told.warnings)
    found = check("url", sample, 120.0, NEEDED)
    json.loads(found.model_dump_json())
    clean("\n".join(lines(found))).encode()


def mutated(rng):
    """A true answer with bytes changed, dropped, doubled, or a piece of JSON put in."""
    body = bytearray(rng.choice(ANSWERS))
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randrange(len(body)), rng.randint(1, 30)
        kind = rng.randrange(4)
        if kind == 0:
            body[at] = rng.randrange(256)
        elif kind == 1 and len(body) > length:
            del body[at : at + length]
        elif kind == 2:
            body[at:at] = body[at : at + length]
        else:
            body[at : at + rng.randrange(2) * length] = rng.choice(PIECES)
    return bytes(body) or b" "


def replaced(rng):
    """A true answer with some values, at any depth, made something else."""

    def change(tree):
        if rng.random() < 0.04:
            return rng.choice(OTHERS)
        if isinstance(tree, dict):
            return {key: change(inner) for key, inner in tree.items() if rng.random() > 0.01}
        return [change(inner) for inner in tree] if isinstance(tree, list) else tree

    return json.dumps(change(json.loads(rng.choice(ANSWERS)))).encode()


ANSWERS = round_trip.answers(2)
PIECES = (
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"1e999",
    b"9" * 400,
    b"\\ud800",
    b"NaN",
)
OTHERS = (
    None, True, 7, -1.5, 10**400, math.nan, math.inf, "", "x", "NaN", "-Inf", "1e999", "7",
    "\ud800", "a\x1b[2J", "x" * 500, [], {}, [1, "2"], {"gpu": "0"},
    {"gpu": "1", "Hostname": "\udfff"},
)  # fmt: skip


def fuzz(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        survives(rng.choice((mutated, replaced))(rng))


def test_four_hundred_mutated_answers_break_nothing():
    fuzz(400, seed=0)


@pytest.mark.slow
def test_twenty_thousand_mutated_answers_break_nothing():
    fuzz(20_000, seed=1)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda inner: (
    st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["data", "result", "metric", "value", "x"]), inner)
), max_leaves=8))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_no_json_breaks_the_reader(tree):
    whole = {"status": "success", "data": {"resultType": "vector", "result": tree}}
    for body in (tree, whole, vector(tree)):
        survives(json.dumps(body).encode())


def test_a_refusal_is_passed_on_in_the_servers_words():
    with serving('{"status":"error","errorType":"bad_data","error":"parse\\nerror"}') as server:
        server.status = 400
        with pytest.raises(TelemetryError, match=r"/api/v1/query: HTTP 400: parse error$"):
            query(Endpoint(server.url), "sum(", lambda *_: None)


def test_a_refusal_without_words_is_passed_on_by_its_number():
    with serving("Forbidden") as server:
        server.status = 403
        with pytest.raises(TelemetryError, match=r"HTTP 403; it refuses this client$"):
            query(Endpoint(server.url), "up", lambda *_: None)
        server.status = 500
        with pytest.raises(TelemetryError, match=r"HTTP 500; is it a Prometheus\?$"):
            query(Endpoint(server.url), "up", lambda *_: None)


@pytest.mark.parametrize("status", [400, 422, 503])
def test_every_kind_of_refusal_keeps_the_servers_words(status):
    with serving('{"status":"error","errorType":"x","error":"query timed out"}') as server:
        server.status = status
        with pytest.raises(TelemetryError, match=f"HTTP {status}: query timed out$"):
            query(Endpoint(server.url), "up", lambda *_: None)


def test_a_password_in_the_way_to_elsewhere_is_not_printed():
    with serving("") as server:
        server.status, server.headers = 302, {"Location": "http://me:hunter2@other/"}
        with pytest.raises(TelemetryError, match=r"sends us on elsewhere; give the address of"):
            ask(server.url)


def test_the_way_to_elsewhere_is_not_taken():
    with serving("secret") as other, serving("") as server:
        server.status, server.headers = 302, {"Location": other.url}
        with pytest.raises(TelemetryError, match=f"sends us on to {other.url}; give that address$"):
            ask(server.url)
        assert other.asked == []


def test_the_environments_proxies_are_not_asked(monkeypatch):
    with serving("no") as proxy, serving("yes") as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert ask(server.url).body == b"yes"
        assert proxy.asked == []


def test_an_answer_that_is_too_long_is_refused():
    with serving(b"x" * 200_000) as server:
        assert len(ask(server.url, limits=Limits(size=200_000)).body) == 200_000
        with pytest.raises(TelemetryError, match="longer than 199,999 bytes: refused"):
            ask(server.url, limits=Limits(size=199_999))


def too_slow(server):
    start = time.monotonic()
    with pytest.raises(TelemetryError, match=r"no complete answer within 0\.5 s$"):
        ask(server.url, limits=QUICK)
    assert time.monotonic() - start < 10


def test_an_answer_that_does_not_begin_in_time_is_given_up():
    with serving("late") as server:
        server.wait_s = 2.0
        too_slow(server)


def test_an_answer_that_drips_is_given_up():
    with serving("x" * 100) as server:
        server.drip_s = 0.1
        too_slow(server)


def raw_answer(text, limits=PATIENT):
    """What we make of bytes from a socket that does not speak as it should."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk():
            line, _ = listener.accept()
            with line:
                line.recv(4096)
                with contextlib.suppress(OSError):  # we may hang up before the end
                    line.sendall(text)

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            with pytest.raises(TelemetryError) as caught:
                ask(f"http://127.0.0.1:{listener.getsockname()[1]}", limits=limits)
        finally:
            thread.join()
        return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_not_http_is_said_in_one_line(text):
    said = raw_answer(text)
    assert "no answer: " in said
    assert said.isprintable()


@pytest.mark.parametrize("size", [b"-1", b"7fffffffffffffff"])
def test_a_chunk_that_lies_about_its_length_does_not_lift_the_limit(size):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    said = raw_answer(head + size + b"\r\n" + b"x" * 5_000_000, Limits(seconds=5, size=100_000))
    assert "longer than 100,000 bytes: refused" in said


@pytest.mark.parametrize(
    "url",
    [
        "", "127.0.0.1:9090", "ftp://127.0.0.1", "http://", "http://a b", "file:///etc/passwd",
        "http://host:port", "http://[", "http://h\nost", "http://hôte",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(url):
    with pytest.raises(TelemetryError, match="is not an address"):
        read(Endpoint(url))


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@127.0.0.1/", "http://me:hunter2@h:port", "ftp://me:hunter2@h",
        "http://me:hunter2@h ost", "me:hunter2@h", "http://me:hunter2/x@h", "http://me:hunter2#x@h",
        "http://me:hunter2?x@h", "http://me:hunter2@[",
    ],
)  # fmt: skip
def test_an_address_with_a_password_is_refused_without_printing_it(url):
    with pytest.raises(TelemetryError, match="with a password in it is not taken") as caught:
        ask(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("end", ["/?x=1", "?x=1", "#top"])
def test_the_address_of_a_prometheus_goes_no_further_than_its_path(end):
    with serving("") as server, pytest.raises(TelemetryError, match=r"without what begins with \?"):
        read(Endpoint(server.url + end))
    assert server.asked == []


def test_a_prometheus_may_live_below_a_path():
    with serving(json.dumps(vector())) as server:
        read(Endpoint(server.url + "/monitoring/"))
    assert server.asked == ["/monitoring/api/v1/query"]


def test_a_host_that_does_not_exist_is_said_in_one_line():
    with pytest.raises(TelemetryError, match="no answer: "):
        ask("http://host.invalid/", limits=Limits(seconds=20))


def test_a_prefix_that_cannot_be_one_is_refused_before_anybody_is_asked():
    with pytest.raises(TelemetryError, match="cannot be the beginning of a metric's name"):
        read(Endpoint("http://127.0.0.1:1", prefix='a"} or up{x="'))


def test_words_of_others_cannot_move_the_cursor():
    assert clean("a\x1b[31m\nb\u202e c") == "a [31m b c"
