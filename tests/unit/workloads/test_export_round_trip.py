"""Odd histories through `convert` and back: equal as far as the format holds it, or refused."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adlro.cli import trace
from adlro.errors import TraceError
from adlro.model.history import NUMBERS, TIMES, WHOLE_NUMBERS, WORDS, Header, History
from adlro.workloads.export import as_csv, as_swf
from adlro.workloads.formats import npz, slurm
from tests.histories import history, words, write

ODD = ["a,b", 'say "hi"', '""', "two\nlines", "a\rb", "#1", "; x", "-1", "NaN", "Zoë 東京"]
CHARACTER = st.characters(codec="utf-8", exclude_characters="\0")  # readers refuse the others
WORD = st.one_of(st.sampled_from(ODD), st.text(CHARACTER, max_size=6))
SECONDS = st.floats(0, 1e9, allow_subnormal=False)
AMOUNT = st.one_of(st.just(np.nan), st.integers(0, 100).map(float), st.floats(1e-6, 1e6))
MANY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _maybe(draw, values):
    return draw(st.one_of(st.just(np.nan), values))


@st.composite
def histories(draw):
    """Histories as readers return them: words without blanks around, times in order."""
    count = draw(st.integers(1, 4))
    rows = []
    for _ in range(count):
        submit = draw(st.one_of(st.floats(-1e6, 1e6), st.integers(-5, 10**6).map(float)))
        start = submit + _maybe(draw, SECONDS)
        row = {"submit_s": submit, "start_s": start, "end_s": start + _maybe(draw, SECONDS)}
        row |= {"eligible_s": submit + _maybe(draw, SECONDS)}
        row |= {name: _maybe(draw, AMOUNT) for name in NUMBERS if name not in row}
        row |= {"gpus": draw(st.integers(-1, 9000)), "nodes": draw(st.integers(-1, 9))}
        row |= {"one_node": draw(st.integers(-1, 1))}
        row |= {"lost": draw(st.integers(-1, 1)) if rows else -1}  # one is a job
        rows.append(row)
    columns = {name: np.array([row[name] for row in rows]) for name in (*NUMBERS, *WHOLE_NUMBERS)}
    for name in draw(st.sets(st.sampled_from([*NUMBERS[1:], *WHOLE_NUMBERS]))):
        columns[name][:] = np.nan if name in NUMBERS else -1
    tables = {}
    for name in WORDS:
        column = [draw(WORD).strip() for _ in rows] if draw(st.booleans()) else [""] * count
        column = [slurm.status(word) for word in column] if name == "status" else column
        tables[name] = tuple(dict.fromkeys(word for word in column if word))
        codes = [tables[name].index(word) if word else -1 for word in column]
        columns[name] = np.array(codes, np.int32)
    ids = tuple(f"{i}{draw(WORD)}".strip() for i in range(count)) if draw(st.booleans()) else ()
    origin = draw(st.sampled_from([None, 1.6e9, 1.6e9 + 0.25]))
    header = Header(format="csv", source="odd\nname.csv", origin_unix_s=origin)
    return History(header=header, id=ids, tables=tables, **columns)


def informed(path):
    """What `trace info` prints of a file."""
    result = CliRunner().invoke(trace.command, ["info", str(path), "--json"])
    assert result.exit_code == 0, (path.read_bytes()[:500], result.output, result.exception)
    return json.loads(result.stdout)


def absolute(found, name):
    """Times with the origin added."""
    return getattr(found, name) + (found.header.origin_unix_s or 0.0)


def read_again(folder, before, lines, suffix):
    """The history read from exported lines; `trace info` must count the same jobs."""
    path = write(folder, "".join(lines), f"x.{suffix}")
    after = history(folder, path.read_bytes(), f"y.{suffix}")
    assert informed(path)["jobs"] == before.jobs
    assert after.header.format == suffix
    return after


def same_times(after, before, names, **tolerance):
    for name in names:
        np.testing.assert_allclose(absolute(after, name), absolute(before, name), **tolerance)


def same_numbers(after, before, names):
    for name in names:
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name), name)


@settings(MANY, max_examples=150)
@given(before=histories())
def test_a_csv_file_is_read_again_equal(tmp_path, before):
    after = read_again(tmp_path, before, as_csv(before), "csv")
    assert after.id == before.id
    same_times(after, before, TIMES, rtol=0, atol=1e-6)  # Unix times
    same_numbers(after, before, (*(set(NUMBERS) - set(TIMES)), *WHOLE_NUMBERS))
    for name in WORDS:
        assert words(after, name) == words(before, name)


@settings(MANY, max_examples=100)
@given(before=histories())
def test_an_swf_file_is_read_again_with_what_it_can_hold(tmp_path, before):
    after, ordered = read_again(tmp_path, before, as_swf(before), "swf"), before.by_submission()
    ordered = ordered.without_lost()
    same_times(after, ordered, ("submit_s", "start_s"), rtol=1e-12, atol=1e-6)
    same_numbers(after, ordered, ("run_s", "requested_s"))
    for name in ("user", "account", "name", "queue"):
        codes = getattr(ordered, name).tolist()
        assert words(after, name) == ["" if code < 0 else str(code + 1) for code in codes]


@pytest.mark.parametrize("suffix", ["csv", "swf"])
def test_jobs_without_a_submission_are_refused_before_anything_is_written(tmp_path, suffix):
    before = history(tmp_path, "id,submit_time,run_s\na,1,2\nb,3,4\n")
    before.submit_s[1] = np.nan
    source, out = write(tmp_path, npz.pack(before), "x.npz"), tmp_path / f"out.{suffix}"
    result = CliRunner().invoke(trace.command, ["convert", str(source), str(out)])
    assert isinstance(result.exception, TraceError)
    assert "1 of 2 jobs have no time of submission" in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not out.exists()


def test_names_too_long_to_be_read_again_are_refused(tmp_path):
    before = history(tmp_path, "submit_time,name\n1,x\n")
    long = before._replace(tables=before.tables | {"name": ("x" * (1 << 20),)})
    with pytest.raises(TraceError, match="names too long for a CSV file"):
        as_csv(long)


def test_memory_of_a_job_with_part_of_a_gpu_is_kept_by_swf(tmp_path):
    before = history(tmp_path, "submit_time,gpus,memory_mb\n1,1.5,300\n")
    after = history(tmp_path, "".join(as_swf(before)), "x.swf")
    assert after.memory_mb.tolist() == [300]


@pytest.mark.parametrize("name", ["a\\u0000b", "\\ud800"])
def test_what_is_not_text_is_refused_when_it_is_read(tmp_path, name):
    text = '{"jobs": [{"job_id": 1, "name": "NAME", "time": {"submission": 5}}]}'
    with pytest.raises(TraceError, match="is not text"):
        history(tmp_path, text.replace("NAME", name), "x.json")
