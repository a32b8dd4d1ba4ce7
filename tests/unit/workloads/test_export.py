"""Histories written out and read again."""

import hashlib
import io
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

from adlro.cli import trace
from adlro.errors import TraceError
from adlro.model.history import FIELDS, NUMBERS, WHOLE_NUMBERS
from adlro.workloads.export import anonymous, as_csv, as_swf
from adlro.workloads.formats import npz
from tests.histories import SAMPLES, history, words, write

SALT = b"salt"


@pytest.mark.parametrize("name", SAMPLES)
def test_the_own_file_keeps_everything(tmp_path, name):
    before = history(tmp_path, SAMPLES[name])
    after = history(tmp_path, npz.pack(before), "x.npz")
    assert (after.header, after.id, after.tables) == (before.header, before.id, before.tables)
    for field in FIELDS[1:]:
        np.testing.assert_array_equal(getattr(after, field), getattr(before, field))


def test_the_own_file_is_the_same_bytes_each_time(tmp_path):
    before = history(tmp_path, SAMPLES["sacct"])
    assert npz.pack(before) == npz.pack(before)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "dlrm"])
def test_a_csv_file_is_read_again_as_it_was(tmp_path, name):
    before = history(tmp_path, SAMPLES[name])
    if before.missing("submit_s"):
        pytest.skip("a CSV file needs times of submission")
    after = history(tmp_path, "".join(as_csv(before)), "x.csv")
    assert (after.header.format, after.id) == ("csv", before.id)
    for field in (*NUMBERS, *WHOLE_NUMBERS):
        shift = 0.0
        if field in ("submit_s", "start_s", "end_s") and before.header.origin_unix_s:
            shift = after.header.origin_unix_s - before.header.origin_unix_s
        np.testing.assert_allclose(
            getattr(after, field) + shift, getattr(before, field), rtol=1e-12, atol=1e-6
        )
    for field in ("user", "queue", "name", "status", "gpu_model", "allowed"):
        assert words(after, field) == words(before, field)


def test_an_swf_file_has_the_gpus_as_processors(tmp_path):
    before = history(tmp_path, SAMPLES["thetagpu"])
    after = history(tmp_path, "".join(as_swf(before)), "x.swf")
    assert after.header.format == "swf"
    np.testing.assert_array_equal(after.submit_s, before.submit_s)
    np.testing.assert_array_equal(after.start_s, before.start_s)
    np.testing.assert_array_equal(after.run_s, before.run_s)
    np.testing.assert_array_equal(after.cores, [1, 8])
    np.testing.assert_array_equal(after.requested_s, before.requested_s)
    assert words(after, "user") == ["1", ""]
    assert words(after, "status") == ["completed", "cancelled"]
    assert after.header.origin_unix_s == before.header.origin_unix_s


def test_anonymous_histories_tell_users_apart_but_not_who_they_are(tmp_path):
    before = history(tmp_path, SAMPLES["sacct"])
    after = anonymous(before, SALT)
    text = repr(after)
    for word in ("ann", "bob", "phys", "train", "post"):
        assert f"'{word}'" not in text
    np.testing.assert_array_equal(after.user, before.user)
    assert len(set(words(after, "user"))) == 2
    assert words(after, "user") == words(anonymous(before, SALT), "user")
    assert words(after, "user") != words(anonymous(before, b"pepper"), "user")
    for field in (*NUMBERS, *WHOLE_NUMBERS, "status", "queue"):
        np.testing.assert_array_equal(getattr(after, field), getattr(before, field))
    moved = before.header.origin_unix_s - after.header.origin_unix_s
    assert moved > 0
    assert moved % (7 * 86400) == 0


def test_one_word_has_different_codes_as_user_account_and_name(tmp_path):
    before = history(tmp_path, "submit_time,user,account,name\n1,x,x,x\n")
    after = anonymous(before, SALT)
    codes = {words(after, name)[0].partition("-")[2] for name in ("user", "account", "name")}
    assert len(codes) == 3


@pytest.mark.parametrize("suffix", ["npz", "csv", "swf"])
def test_anonymous_histories_do_not_name_their_source(tmp_path, suffix):
    path = write(tmp_path, "submit_time,run_s,user\n1,2,ann\n3,oops,bob\n", "secret-lab.csv")
    out = tmp_path / f"out.{suffix}"
    arguments = ["anonymise", str(path), str(out), "--lenient", "--salt", "s"]
    assert CliRunner().invoke(trace.command, arguments).exit_code == 0
    data = out.read_bytes()
    if suffix == "npz":
        data = repr(history(tmp_path, data, "y.npz")).encode()
    assert b"secret" not in data
    assert b"ann" not in data.replace(b"anonymised", b"").replace(b"nan", b"")


def test_a_short_salt_is_stretched_by_a_slow_derivation(tmp_path, monkeypatch):
    used, scrypt = [], hashlib.scrypt

    def spy(password, **more):
        used.append((password, more["n"] * more["r"]))
        return scrypt(password, **more)

    monkeypatch.setattr(hashlib, "scrypt", spy)
    before = history(tmp_path, "submit_time,user\n1,ann\n")
    assert words(anonymous(before, b"1"), "user") == words(anonymous(before, b"1"), "user")
    assert used == [(b"1", 2**18)] * 2  # 128 times as many bytes: 32 MiB for each try


def test_anonymous_histories_do_not_quote_lines_that_were_skipped(tmp_path):
    from adlro.workloads.formats.gather import ReadOptions
    from adlro.workloads.formats.registry import read

    path = write(tmp_path, "user,submit,run_s\nann,1,secret\nbob,2,5\n")
    before = read(path, ReadOptions(lenient=True))
    assert "secret" in repr(before.header)
    assert "secret" not in repr(anonymous(before, SALT).header)


def test_an_own_file_that_was_changed_is_refused(tmp_path):
    data = bytearray(npz.pack(history(tmp_path, SAMPLES["helios"])))
    data[data.index(b"run_s.npy") + 20] ^= 0xFF  # of its compressed column
    with pytest.raises(TraceError, match="is not a history of adlro"):
        history(tmp_path, bytes(data), "x.npz")
    with pytest.raises(TraceError, match="is not a history of adlro"):
        history(tmp_path, bytes(data[: len(data) // 3]), "x.npz")


def test_an_own_file_with_objects_or_other_arrays_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, header=np.array([{"a": 1}], object))
    with pytest.raises(TraceError, match="its arrays are not those of a history"):
        history(tmp_path, path.read_bytes(), "y.npz")


def test_an_own_file_whose_codes_have_no_words_is_refused(tmp_path):
    before = history(tmp_path, SAMPLES["sacct"])
    wrong = before._replace(user=before.user + 5)
    with pytest.raises(TraceError, match="'user' holds a code without a word"):
        history(tmp_path, npz.pack(wrong), "x.npz")


@pytest.mark.parametrize("status", ["node failed", "out of memory", "timeout", "cancelled"])
def test_a_status_is_read_again_as_it_was_written(tmp_path, status):
    before = history(tmp_path, f"submit,run_s,status\n5,6,{status}\n")
    assert words(before, "status") == [status]
    after = history(tmp_path, "".join(as_csv(before)), "x.csv")
    assert words(after, "status") == [status]


@pytest.mark.parametrize(
    ("column", "value"),
    [("run_s", -5.0), ("cores", -1.0), ("submit_s", 1e300), ("memory_mb", np.inf)],
)
def test_an_own_file_with_numbers_that_cannot_be_is_refused(tmp_path, column, value):
    before = history(tmp_path, SAMPLES["sacct"])
    wrong = before._replace(**{column: np.full(before.jobs, value)})
    with pytest.raises(TraceError, match=f"{column!r} holds a number that cannot be"):
        history(tmp_path, npz.pack(wrong), "x.npz")


@pytest.mark.parametrize("gpus", [-2, 2**62])
def test_an_own_file_with_gpus_that_cannot_be_is_refused(tmp_path, gpus):
    before = history(tmp_path, SAMPLES["sacct"])
    wrong = before._replace(gpus=np.full(before.jobs, gpus))
    with pytest.raises(TraceError, match="'gpus' holds a number that cannot be"):
        history(tmp_path, npz.pack(wrong), "x.npz")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2000000000000,)}",
        "-" * 9000 + "1",
    ],
)
def test_an_own_file_whose_array_lies_about_itself_is_refused(tmp_path, header):
    good, bad = io.BytesIO(npz.pack(history(tmp_path, SAMPLES["helios"]))), io.BytesIO()
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(bad, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "run_s.npy":
                data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
            new.writestr(name, data)
    with pytest.raises(TraceError, match="is not a history of adlro: it is cut short or changed"):
        history(tmp_path, bad.getvalue(), "x.npz")
