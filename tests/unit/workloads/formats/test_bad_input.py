"""Files that are not what they should be: one clear line, or skipped and counted."""

import gzip
import os
import re

import numpy as np
import pytest

from adlro.errors import TraceError
from adlro.workloads.formats import text_file
from adlro.workloads.formats.gather import ReadOptions
from adlro.workloads.formats.registry import read
from tests.histories import SAMPLES, write

HEAD = "job_id,arrival_s,service_sec,gpu_count\n1#0,0,60,1\n"
LENIENT = ReadOptions(lenient=True)


def refused(path):
    with pytest.raises(TraceError) as caught:
        read(path)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text.replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2#1,5,60", "FILE:3: expected 4 fields, got 3"),
        ("2#1,5,60,1,1", "FILE:3: expected 4 fields, got 5"),
        ("2#1,5,soon,1", "FILE:3: service_sec must be a number, not 'soon'"),
        ("2#1,5,1_0,1", "FILE:3: service_sec must be a number, not '1_0'"),
        ("2#1,5,inf,1", "FILE:3: service_sec must be a number, not 'inf'"),
        ("2#1,nan,60,1", "FILE:3: arrival_s must be a number, not 'nan'"),
        ("2#1,5,-60,1", "FILE:3: run_s = -60 cannot be"),
        ("2#1,5,60,1.5", "FILE:3: gpu_count must be a whole number from 0 to"),
        ("2#1,5,60,-1", "FILE:3: gpu_count must be a whole number from 0 to"),
        ("2#1,5,60,9999999", "FILE:3: 1e+07 GPUs cannot be"),
        ("2#1,1e300,60,1", "FILE:3: submit_s = 1e+300 cannot be"),
        ("1#0,5,60,1", "FILE:3: there is a job '1#0' already"),
        (",5,60,1", "FILE:3: the job has no id"),
        ('"2#1"x,5,60,1', "FILE:3: there is text behind a closing quote"),
        ('"2#1,5,60,1', "FILE:3: a quote is opened here and never closed"),
    ],
)
def test_a_wrong_line_is_named_and_skipped_only_on_request(tmp_path, line, said):
    path = write(tmp_path, f"{HEAD}{line}\n3#2,9,30,2\n")
    text = refused(path)
    assert text.startswith(said)
    assert text.endswith("; correct it, or skip such lines with --lenient")
    found = read(path, LENIENT)
    assert found.id == ("1#0", "3#2")
    assert list(found.header.defects.values()) == [1]
    assert found.header.notes[-1].replace(str(path), "FILE").startswith(f"skipped {said}")


@pytest.mark.parametrize(
    ("sample", "old", "new", "said"),
    [
        (
            "philly",
            "2017-10-09 00:00:30",
            "2017-02-29 00:00:30",
            "FILE:3: timestamp must be a time",
        ),
        ("philly", "2017-10-09 00:00:30", "yesterday", "FILE:3: timestamp must be a time"),
        ("swf", "  3  90   0   45", "  3  90   0  -45", "FILE:7: run_s = -45 cannot be"),
        ("swf", "  3  90   0   45", "  3  90", "FILE:7: expected 18 to 19 fields, got 16"),
        ("openb", "0,500,10.0", "0,5,10.0", "FILE:2: it ends at 5, before it starts at 10"),
        ("openb", "20,90,30.0", "50,90,30.0", "FILE:3: it starts at 30, before it was submitted"),
        ("openb", "8,1000,", "8,500,", "FILE:5: 8 GPUs with gpu_milli 500"),
        ("sacct", "cpu=1,mem=500M", "cpu=one", "FILE:4: ReqTRES must be a list"),
        ("sacct", "UNLIMITED", "always", "FILE:4: TimelimitRaw must be minutes"),
        ("supercloud", "1=4,2=100", "1=4,2=x", "FILE:3: tres_alloc must be a list"),
        ("sacct-json", '"job_id": 6', '"job_id": "6"', "FILE:2: job_id must be a number"),
        ("sacct-json", '"elapsed": 300', '"elapsed": "x"', "FILE:1: elapsed must be a number"),
    ],
)
def test_every_format_names_the_line_that_is_wrong(tmp_path, sample, old, new, said):
    assert old in SAMPLES[sample]
    text = refused(write(tmp_path, SAMPLES[sample].replace(old, new)))
    assert text.startswith(said)


def test_one_bad_line_among_many_is_found_and_the_rest_is_kept(tmp_path):
    count, bad = 100_000, 77_777
    lines = [f"{i}#0,{i},60,1" for i in range(count)]
    lines[bad] = f"{bad}#0,{bad},sixty,1"
    path = write(tmp_path, "\n".join([HEAD.splitlines()[0], *lines]) + "\n")
    assert refused(path).startswith(f"FILE:{bad + 2}: service_sec must be a number, not 'sixty'")
    found = read(path, LENIENT)
    assert found.jobs == count - 1
    assert found.header.defects == {"skipped: text in numbers": 1}
    np.testing.assert_array_equal(found.submit_s, np.delete(np.arange(count), bad))


def test_of_many_wrong_lines_the_first_few_are_listed_and_all_are_counted(tmp_path):
    path = write(tmp_path, HEAD + "".join(f"{i}#9,x,60,1\n" for i in range(2, 12)))
    found = read(path, LENIENT)
    assert found.header.defects == {"skipped: text in numbers": 10}
    listed = [note for note in found.header.notes if note.startswith("skipped")]
    assert [re.search(r":(\d+):", note)[1] for note in listed] == ["3", "4", "5", "6", "7"]


def test_a_truncated_gzip_is_refused_with_the_line_it_got_to(tmp_path):
    rng = np.random.default_rng(1)
    lines = "".join(f"{i}#0,{i},{rng.integers(1, 10**9)},1\n" for i in range(200_000))
    data = gzip.compress((HEAD.splitlines()[0] + "\n" + lines).encode(), 1)
    path = write(tmp_path, data[: len(data) // 2])
    text = refused(path)
    assert re.match(r"FILE: after line [\d,]+: is cut short or not gzip at all; fetch it", text)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "FILE: is empty"),
        (b"\n \n", "FILE: is empty"),
        (b"\x1f\x8b\x08\x00nonsense", "FILE: is cut short or not gzip at all"),
        (b"<html><body>404</body></html>\n", "FILE:1: no known format begins with '<html>"),
        (HEAD.encode() + b"2#\xe9,5,60,1\n", "FILE:3: there is byte 0xe9, which is not UTF-8"),
        (HEAD.encode() + b"2#\0,5,60,1\n", "FILE:3: there is a zero byte"),
        (b"job_id,arrival_s,service_sec,gpu_count\n", "FILE: there are no jobs in it"),
        (b"; only comments\n", "FILE: there are no jobs in it"),
        (b"a,b\n1,2\n", "FILE:1: no column says when jobs were submitted (a, b); name it"),
        (b"submit,submit,run_s\n1,2,3\n", "FILE:1: two columns are called 'submit'"),
        (b"sn,cpu_milli,memory_mib,gpu,model\nn,1,1,1,T4\n", "FILE: is a list of nodes"),
        (b"NodeName=n1 Gres=gpu:4\n", "FILE: is a list of nodes"),
        (b'{"jobs": 7}', "FILE: has no list 'jobs'"),
        (b'{"jobs": [', "FILE:1: is not valid JSON"),
        (b'{"a":' * 100_000, "FILE: is not valid JSON"),
        (b"PK\x03\x04 not really", "FILE: is not a history of adlro"),
        (b"JobID|State\n1|COMPLETED\n", "FILE:1: sacct must print JobID (or JobIDRaw) and Submit"),
        (b"submit,run_s\n" + b"1" * (3 << 20), "FILE:2: a line of more than 1,048,576 bytes"),
    ],
)
def test_a_file_that_is_no_history_is_refused_in_a_line(tmp_path, content, said):
    assert refused(write(tmp_path, content)).startswith(said)


def test_if_every_line_is_skipped_one_of_them_is_told(tmp_path):
    path = write(tmp_path, "job_id,arrival_s,service_sec,gpu_count\n1#0,0,-60,1\n")
    with pytest.raises(TraceError, match=r"no jobs in it; .*:2: run_s = -60 cannot be, and so on"):
        read(path, LENIENT)


def test_an_absent_file_and_a_folder_are_refused(tmp_path):
    assert refused(tmp_path / "absent.csv").startswith("FILE: cannot be read: No such file")
    assert refused(tmp_path).startswith("FILE: is a folder; name a file")


def test_an_unknown_format_or_field_is_refused_with_a_suggestion(tmp_path):
    path = write(tmp_path, SAMPLES["helios"])
    with pytest.raises(TraceError, match="did you mean 'helios'"):
        read(path, ReadOptions(format="helois"))
    with pytest.raises(TraceError, match="did you mean 'gpus'"):
        read(path, ReadOptions(columns=(("gpu", "gpu_count"),)))
    with pytest.raises(TraceError, match="there is no column 'runtime'"):
        read(path, ReadOptions(columns=(("run_s", "runtime"),)))
    with pytest.raises(TraceError, match="'0' is no factor for run_s"):
        read(path, ReadOptions(columns=(("run_s", "service_sec*0"),)))


def test_columns_and_factors_are_as_the_user_says(tmp_path):
    path = write(tmp_path, "who,when,minutes,cards\nann,7,2,3\n")
    columns = (("user", "who"), ("submit_s", "when"), ("run_s", "minutes*60"), ("gpus", "cards"))
    found = read(path, ReadOptions(columns=columns))
    assert (found.run_s[0], found.gpus[0], found.word("user", 0)) == (120.0, 3000, "ann")


@pytest.mark.parametrize(
    "reading", [ReadOptions(columns=(("submit_s", "when"),)), ReadOptions(format="helios")]
)
def test_a_table_with_other_delimiters_is_no_list_of_jobs_without_columns(tmp_path, reading):
    path = write(tmp_path, "id|submit|run\n1|2|3\n4|5|6\n")
    with pytest.raises(TraceError, match=":1: there is no column"):
        read(path, reading)


def test_a_pipe_that_nothing_writes_to_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_file, "_PIPE_WAIT_S", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TraceError, match="cannot be read: nothing writes to this pipe"):
        read(tmp_path / "pipe")


def test_a_file_that_breaks_when_it_is_read_first_is_named(tmp_path, monkeypatch):
    path = write(tmp_path, HEAD)

    class Broken:
        def peek(self, _):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(text_file, "open_bytes", lambda _: Broken())
    assert refused(path) == "FILE: cannot be read: Input/output error"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"name": "train"', '"name": "a\\u0000b"', r"FILE:1: 'a\x00b' is not text"),
        ('"name": "train"', '"name": "\\ud800"', r"FILE:1: '\ud800' is not text"),
        ('"count": 8', '"count": -8', "FILE:1: tres must have counts from 0 on, not 'cpu=-8,"),
        ('"tres": {\n    "allocated"', '"tres": {"allocated": "cpu=8",\n    "x"', "FILE:1: tres "),
    ],
)
def test_a_job_in_json_that_cannot_be_kept_is_named(tmp_path, old, new, said):
    assert old in SAMPLES["sacct-json"]
    assert refused(write(tmp_path, SAMPLES["sacct-json"].replace(old, new, 1))).startswith(said)
