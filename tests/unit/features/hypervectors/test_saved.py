"""The file of a memory: the same answers, and a clear word about one that is broken."""

import io
import math
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.errors import TraceError
from adlro.features.hypervectors import saved
from adlro.features.hypervectors.memory import HEAD, Size
from adlro.features.hypervectors.saved import SavedMemory, pack, unpack
from adlro.features.hypervectors.speeds_kernel import learn_speeds
from tests.remembered import PLAIN, SCHEMA, mind

MODELS = ("V100", "T4")


def experienced(jobs=60, slots=16):
    one = mind(Size(slots=slots, latest=2, classes=1, half_s=1e4, half_jobs=30.0), MODELS)
    rng = np.random.default_rng(2)
    for i in range(jobs):
        user, name = rng.choice(list("abcdef"), 2)
        place, value = int(rng.integers(2)), rng.normal()
        query = one.query(user, name, kind=0)
        learn_speeds(one.space, one.memory, query, PLAIN, one.work, value, place)
        one.learn(value, user, name, float(i), i, MODELS[place], extra=value)
    return one


def kept(one):
    return SavedMemory(SCHEMA, MODELS, one.memory, '{"trees": "ärger"}')


def again(one):
    return one._replace(memory=unpack(pack(kept(one)), "m.npz").memory)


def changed(data, name, change):
    """The file with one of its arrays changed."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(result, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == f"{name}.npy":
                array = change(np.lib.format.read_array(io.BytesIO(content)))
                file = io.BytesIO()
                np.lib.format.write_array(file, array)
                content = file.getvalue()
            new.writestr(entry.filename, content)
    return result.getvalue()


@pytest.mark.parametrize("jobs", [0, 1, 10, 60])
def test_a_saved_memory_recalls_the_same_bytes_and_learns_on_alike(jobs):
    one = experienced(jobs)
    other = again(one)
    for turn in range(30):
        for query in (one.query("a", "b"), one.query("f"), one.query("nobody", "x", extra=2.0)):
            for ours, theirs in zip(one.recall(query), other.recall(query), strict=True):
                assert ours.tobytes() == theirs.tobytes()
        user, name = ("a", f"new {turn}") if turn % 2 else ("abcdef"[turn // 2 % 6], "c")
        for each in (one, other):
            each.learn(3.0, user, name, 99.0, model="T4")
    assert pack(kept(one)) == pack(kept(other))


def test_the_file_says_what_it_is_of():
    got = unpack(pack(kept(experienced())), "m.npz")
    assert (got.schema, got.models, got.note) == (SCHEMA, MODELS, '{"trees": "ärger"}')
    assert len(got.memory.slots) == 16
    assert got.memory.head[0]["half_jobs"] == 30.0


def put(field, value, at=0):
    def change(array):
        array = array.copy()
        array[field].flat[at] = value
        return array

    return change


def first(value):
    def change(array):
        array = array.copy()
        array.flat[0] = value
        return array

    return change


def swapped(array):
    array = array.copy()
    array[[0, -1]] = array[[-1, 0]]
    return array


def text(array):
    return np.frombuffer(array.tobytes().replace(b"adlro-memory-2", b"adlro-memory-1"), np.uint8)


def no_roles(array):
    del array
    header = b'{"roles":[],"bits":256,"models":[],"slots":1,"latest":1,"classes":0,"note":""}'
    return np.frombuffer(header, np.uint8)


CHANGES = [
    ("head", put("size", 17), "more than it has room for"),
    ("head", put("size", -1), "more than it has room for"),
    ("head", put("size", 3), "'patterns' is not as it must be"),
    ("head", put("half_jobs", 0.0), "contradict"),
    ("head", put("now", math.nan), "contradict"),
    ("head", put("learned", 3), "contradict"),
    ("slots", put("strength", math.inf), "contradict"),
    ("slots", put("jobs", 0), "contradict"),
    ("slots", put("old_strength", math.nan), "contradict"),
    ("slots", put("hash", 5), "contradict"),
    ("slots", lambda array: array[["hash", "jobs"]].copy(), "'slots' is not as it must be"),
    ("outcomes", put("log_seconds", math.nan), "contradict"),
    ("outcomes", put("extra", math.inf), "contradict"),
    ("outcomes", put("turn", 1 << 40), "contradict"),
    ("outcomes", lambda array: array[:, :1], "'outcomes' is not as it must be"),
    ("patterns", first(77), "contradict"),
    ("patterns", lambda array: array.astype(np.int64), "'patterns' is not as it must be"),
    ("models", first(2), "contradict"),
    ("models", first(-2), "contradict"),
    ("turns", first(1e9), "contradict"),
    ("heap", first(99), "contradict"),
    ("heap", first(-1), "contradict"),
    ("heap", swapped, "contradict"),
    ("pair_weights", first(-1.0), "contradict"),
    ("speeds", first(math.inf), "contradict"),
    ("header", text, "of this version"),
    ("header", lambda array: array[:-9], "of this version"),
    ("header", no_roles, "at least one role"),
    ("header", lambda _: np.zeros(1, HEAD), "cut short or changed"),
]


@pytest.mark.parametrize(("name", "change", "words"), CHANGES)
def test_a_changed_file_is_refused(name, change, words):
    data = changed(pack(kept(experienced())), name, change)
    with pytest.raises(TraceError, match=r"^m\.npz: ") as caught:
        unpack(data, "m.npz")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_memory_that_does_not_fit_into_the_machine_is_refused(monkeypatch):
    def no_room(*_):
        raise MemoryError

    data = pack(kept(experienced(1)))
    monkeypatch.setattr(saved, "empty", no_room)
    with pytest.raises(TraceError, match=r"^m\.npz: is too large for this machine"):
        unpack(data, "m.npz")


def test_two_slots_with_the_same_pattern_are_refused():
    one = experienced()
    memory = one.memory
    memory.patterns[:, 1] = memory.patterns[:, 0]
    memory.models[1] = memory.models[0]
    memory.slots["hash"][1] = memory.slots["hash"][0]
    with pytest.raises(TraceError, match="contradict"):
        unpack(pack(kept(one)), "m.npz")


WHOLE = pack(kept(experienced()))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_file_that_is_cut_short_or_scribbled_on_is_refused_or_unharmed(data):
    cut = data.draw(st.integers(0, len(WHOLE)))
    broken = bytearray(WHOLE[:cut] if data.draw(st.booleans()) else WHOLE)
    for _ in range(data.draw(st.integers(0, 3))):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    try:
        got = unpack(bytes(broken), "m.npz")
    except TraceError:
        return
    assert pack(got) == WHOLE
