"""The text format of exporters: what is taken, what is not, and that nothing breaks the reader."""

import json
import math
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.cli.telemetry import lines
from adlro.errors import TelemetryError
from adlro.telemetry import exposition
from adlro.telemetry.check import NEEDED, check
from adlro.telemetry.gather import SampleBuilder
from adlro.telemetry.names import identify
from adlro.telemetry.prometheus import Endpoint
from tests.gpu_exporter import amd_smi, dcgm, line, rocm, serving

PAGES = (dcgm(), rocm(prefix="amd_"), amd_smi())


def only(text, **options):
    page = exposition.parse(f"{text}\n".encode(), **options)
    assert page.malformed == 0
    (reading,) = page.readings
    return reading


@pytest.mark.parametrize(
    ("text", "name", "labels", "value"),
    [
        ("up 1", "up", {}, 1),
        ("up{} 1", "up", {}, 1),
        ("  a:b_c\t-2.5e3\r", "a:b_c", {}, -2500),
        ('x{a="1",b="2"} .5', "x", {"a": "1", "b": "2"}, 0.5),
        ('x { a = "1" , } +Inf', "x", {"a": "1"}, math.inf),
        ('x{a="} 7"} 3', "x", {"a": "} 7"}, 3),
        (r'x{a="q\"b\\n\n"} 3', "x", {"a": 'q"b\\n\n'}, 3),
        ('x{a="","b"="2"} 3'.replace('"b"', "b"), "x", {"a": "", "b": "2"}, 3),
        ('x{a="é"} 3', "x", {"a": "é"}, 3),
    ],
)
def test_a_line_is_taken_as_the_format_says(text, name, labels, value):
    reading = only(text)
    assert reading[:3] == (name, labels, value)
    assert math.isnan(reading.time)


def test_a_line_may_say_when_in_milliseconds():
    assert only("x 3 1794768234873").time == 1794768234.873


def test_a_value_may_be_no_number():
    assert math.isnan(only("x NaN").value)


@pytest.mark.parametrize(
    "text",
    [
        "x", "x{", "x{}", "x{a} 3", 'x{a="1} 3', "x{a='1'} 3", 'x{a="1" b="2"} 3', 'x{,} 3',
        'x{a="1",,b="2"} 3', 'x{a="1",a="2"} 3', 'x{1a="1"} 3', '1x 3', "x 3 4 5", "x 3 later",
        "x 1_0", "x 0x10", "x 3,5", "x \u0663", "x3.", "x.5", "x 1e99999", r'x{a="\q"} 3',
        "x 3 12345678901234567", "<html>", "x-y 3", "x 3 # why", "x 3 1.5",
        'x 3 # {a="1"} 2', 'x{a="' + "a" * 70_000 + '"} 3',
    ],
)  # fmt: skip
def test_a_line_that_is_not_of_the_format_is_left_out_and_listed(text):
    page = exposition.parse(f"ok 1\n{text}\nok 2\n".encode())
    assert [reading.value for reading in page.readings] == [1, 2]
    assert page.malformed == 1
    assert page.examples[0].startswith("line 2: ")
    assert len(page.examples[0]) < 120


def test_bytes_that_are_no_text_spoil_their_line_only():
    page = exposition.parse(b'ok 1\nx{a="\xff"} 3\nok 2\n')
    assert (len(page.readings), page.malformed) == (2, 1)


def test_a_last_line_without_an_end_may_be_half_a_number_and_is_left_out():
    page = exposition.parse(b"ok 1\nx 21")  # of x 218.75
    assert [reading.value for reading in page.readings] == [1]
    assert page.examples == ("line 2 has no end: 'x 21'",)
    assert exposition.parse(b"ok 1\n# EOF").malformed == 0


LONG = 60_000


@pytest.mark.parametrize(
    "text",
    [
        "a" + "1" * LONG + "!", "a" + " " * LONG + "x", "a " + "1" * LONG + "!", "a{" + "}" * LONG,
        "a{" + "} 1 " * (LONG // 4) + "x", 'a{a="' + '\\"' * (LONG // 2), "a{" + 'a="",' * LONG,
        "a{a" + " " * LONG + "x} 1", 'a{a="1"' + " " * LONG + "x} 1", "a 1" + " " * LONG + "x",
        'a{a="1",' + " " * LONG + "2} 1", "a 1e" + "1" * LONG, "a ." + "1" * LONG + "!",
        "a{" + "a" * LONG, 'a{a="' + "a" * LONG, 'a{a="' + "a" * LONG + r'\q"} 1',
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_open", [False, True])
def test_no_line_however_long_takes_long(text, is_open):
    start = time.process_time()
    assert exposition.parse(f"{text}\n".encode(), is_open).malformed == 1
    assert time.process_time() - start < 1  # it was minutes for some, at a cost of length squared


@pytest.mark.parametrize(
    ("text", "time_s"),
    [
        ('x{a="1"} 3 1794768234.5', 1794768234.5),
        ("x 3 1794768234", 1794768234.0),
        ('x_total{a="1"} 3 # {trace="} 4"} 0.5 12.5', math.nan),
        ("x_total 3 12 # {} 0.5", 12.0),
    ],
)
def test_open_metrics_dates_in_seconds_and_may_add_an_exemplar(text, time_s):
    reading = only(text, is_open=True)
    assert reading.value == 3
    assert reading.time == pytest.approx(time_s, nan_ok=True)


def test_the_kind_of_a_page_says_how_its_times_are_read():
    now = round(time.time())
    page = f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",Hostname="h"}} 60 {now}\n# EOF\n'
    with serving(page) as server:
        server.kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
        sample = exposition.read(Endpoint(server.url))
        assert sample.time.tolist() == [now]
        assert server.accepted[0].startswith("text/plain; version=0.0.4")


def test_lines_may_end_as_on_windows():
    page = exposition.parse(b'x{a="1"} 3\r\ny 4 1000\r\n')
    assert [reading.value for reading in page.readings] == [3, 4]
    assert page.readings[1].time == 1.0


def test_only_the_first_malformed_lines_are_listed():
    page = exposition.parse(b"?\n" * 9)
    assert (page.malformed, len(page.examples)) == (9, 5)


@pytest.mark.parametrize("page", PAGES)
def test_every_line_of_the_three_exporters_is_understood(page):
    lines = [text for text in page.splitlines() if not text.startswith("#")]
    parsed = exposition.parse(page.encode())
    assert (len(parsed.readings), parsed.malformed) == (len(lines), 0)


def test_a_page_is_read_with_the_host_of_its_address_if_it_names_none():
    with serving(amd_smi()) as server:
        sample = exposition.read(Endpoint(server.url + "/metrics"))
    assert server.asked == ["/metrics"]
    assert sample.host == ("127.0.0.1", "127.0.0.1")
    assert sample.column("power").tolist() == [150.5, 150.5]
    assert np.all(sample.age == 0)


def test_a_page_with_malformed_lines_gives_the_others_and_a_note():
    page = dcgm(gpus=1) + "oops oops\n" * 7
    with serving(page) as server:
        sample = exposition.read(Endpoint(server.url))
    assert sample.column("temperature").tolist() == [68.0]
    assert len(sample.notes) == 6
    assert "'oops oops'" in sample.notes[0]
    assert sample.notes[-1] == "2 more malformed lines left out"


def test_the_oldest_line_of_a_gpu_dates_it():
    then = time.time() - 1000
    labels = {"gpu": 0, "Hostname": "h"}
    page = line("DCGM_FI_DEV_GPU_TEMP", 60, **labels)
    page += line("DCGM_FI_DEV_GPU_UTIL", 10, then, **labels)
    with serving(page) as server:
        sample = exposition.read(Endpoint(server.url))
    assert sample.time == pytest.approx([then], abs=0.001)
    assert sample.is_fresh(900.0).tolist() == [False]


def test_a_web_page_is_not_a_page_of_metrics():
    with (
        serving("<html>\n<body>Welcome</body>\n") as server,
        pytest.raises(TelemetryError, match=r"is not a page of metrics \(line 1: '<html>'\)"),
    ):
        exposition.read(Endpoint(server.url))


def test_a_page_that_is_not_there_is_an_error():
    with serving("") as server:
        server.status = 404
        with pytest.raises(TelemetryError, match="HTTP 404; its page is mostly at /metrics"):
            exposition.read(Endpoint(server.url))


def test_a_page_that_is_refused_is_not_looked_for_elsewhere():
    with serving("") as server:
        server.status = 503
        with pytest.raises(TelemetryError, match=r"HTTP 503; see what it logs$"):
            exposition.read(Endpoint(server.url))


def test_a_reading_of_no_gpu_is_counted_once():
    with serving("gpu_power_usage 5\n") as server:
        notes = exposition.read(Endpoint(server.url)).notes
    assert notes == ("1 readings left out that do not say of which GPU",)


def test_the_host_of_an_address_in_ipv6_is_taken_as_a_whole():
    labels = {"gpu": "0", "instance": "[2001:db8::7]"}
    assert identify(labels).host == identify({**labels, "instance": "[2001:db8::7]:9400"}).host
    assert identify(labels).host == "[2001:db8::7]"


def test_a_prefix_that_cannot_be_one_is_refused_before_a_page_is_asked_for():
    with (
        serving("") as server,
        pytest.raises(TelemetryError, match="'7up' cannot be the beginning"),
    ):
        exposition.read(Endpoint(server.url, prefix="7up"))
    assert server.asked == []


def survives(body):
    """Read a page as a user's command would, up to what is printed and written."""
    for is_open in (False, True):
        page = exposition.parse(body, is_open)
        gather = SampleBuilder()
        for reading in page.readings:
            gather.take(reading.name, reading.labels, reading.value)
            gather.date(reading.labels, reading.time)
        sample = gather.sample(0.0, page.examples)
        assert sample.values.shape == (len(sample.host), 7)
        found = check("page", sample, 120.0, NEEDED)
        json.loads(found.model_dump_json())
        "\n".join(lines(found)).encode()


def mutated(rng, page):
    """A real page with bytes changed, dropped, doubled and moved."""
    body = bytearray(page.encode())
    for _ in range(rng.randint(1, 12)):
        at, length = rng.randrange(len(body)), rng.randint(1, 40)
        kind = rng.randrange(5)
        if kind == 0:
            body[at] = rng.randrange(256)
        elif kind == 1:
            del body[at : at + length]
        elif kind == 2:
            body[at:at] = body[at : at + length]
        elif kind == 3:
            body[at:at] = rng.choice((b'"', b"{", b"}", b"\\", b"\n", b",", b"=", b" ", b"1e308"))
        else:
            other = rng.randrange(len(body))
            body[at:at] = body[other : other + length]
        if not body:
            return b""
    return bytes(body)


def fuzz(count, seed):
    rng = random.Random(seed)
    pages = [dcgm(gpus=1), rocm(gpus=1), amd_smi(gpus=1), dcgm(gpus=1, at=1.5)]
    for _ in range(count):
        survives(mutated(rng, rng.choice(pages)))


def test_three_hundred_mutated_pages_break_nothing():
    fuzz(300, seed=0)


@pytest.mark.slow
def test_twenty_thousand_mutated_pages_break_nothing():
    fuzz(20_000, seed=1)


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_bytes_break_the_reader(body):
    survives(body)


@given(st.lists(st.from_regex(r'\A[a-z]{0,3}\{?([a-z]="?[^\n]{0,5}"?,?){0,3}\}? ?[0-9.eE+-]{0,6}')))
@settings(max_examples=60, deadline=None)
def test_no_lines_nearly_of_the_format_break_the_reader(lines):
    survives("\n".join(lines).encode())


@given(
    name=st.from_regex(r"\A[a-zA-Z_:][a-zA-Z0-9_:]{0,20}\Z"),
    labels=st.dictionaries(
        st.from_regex(r"\A[a-zA-Z_][a-zA-Z0-9_]{0,10}\Z"),
        st.text(st.characters(codec="utf-8"), max_size=20),
        max_size=5,
    ),
    value=st.floats(allow_nan=False),
)
@settings(max_examples=200, deadline=None)
def test_whatever_is_written_by_the_rules_is_read_back(name, labels, value):
    def escaped(text):
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    inner = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
    number = {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, repr(value))
    reading = only(f"{name}{{{inner}}} {number}")
    assert reading[:3] == (name, labels, value)
