"""Files written whole or not at all, read within bounds, and arrays without objects."""

import errno
import io
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from adlro import files
from adlro.errors import OutputError


def test_a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path):
    target = tmp_path / "out.json"
    target.write_text("old")
    files.write_text(target, "new")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_is_refused_in_one_line(tmp_path):
    with pytest.raises(OutputError, match=r"there is no folder .*; make it first$"):
        files.write_text(tmp_path / "nowhere" / "out.json", "text")


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    files.write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_device_is_written_to_and_stays_a_device():
    files.write_text(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()


def test_a_name_too_long_is_refused_in_one_line(tmp_path):
    with pytest.raises(OutputError, match=r"cannot be written: File name too long$"):
        files.check_writable(tmp_path / ("x" * 300))


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(OutputError, match="is a folder; name a file"):
        files.check_writable(tmp_path)


def test_text_that_cannot_be_encoded_leaves_the_old_file_alone(tmp_path):
    target = tmp_path / "out.json"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        files.write_text(target, "\ud800")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_parts_that_break_off_leave_the_old_file_alone(tmp_path):
    def parts():
        yield "new"
        raise RuntimeError("no more")

    target = tmp_path / "out.csv"
    target.write_text("old")
    with pytest.raises(RuntimeError, match="no more"):
        files.write_parts(target, parts())
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_parts_are_written_one_after_the_other(tmp_path):
    files.write_parts(tmp_path / "out.csv", iter(["a\n", "b\n"]))
    assert (tmp_path / "out.csv").read_text() == "a\nb\n"


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_we_go_on(
    tmp_path, monkeypatch
):
    done, fsync, replace = [], os.fsync, os.replace

    def flushed(handle):
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def renamed(source, target):
        done.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    files.write_text(tmp_path / "out.json", "text")
    assert done == ["file", "rename", "folder"]


def test_a_file_system_that_cannot_flush_a_folder_is_no_error(tmp_path, monkeypatch):
    fsync = os.fsync

    def flushed(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", flushed)
    files.write_text(tmp_path / "out.json", "text")
    assert (tmp_path / "out.json").read_text() == "text"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0, 0o666)])
def test_permissions_follow_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        files.write_text(tmp_path / "out.json", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == mode


def test_links_in_a_loop_are_refused_in_one_line(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for path in (tmp_path / "a", tmp_path / "a" / "out.json"):
        with pytest.raises(OutputError, match=r"cannot be written: .*(symbolic links|loop)"):
            files.write_text(path, "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_the_longest_name_that_a_folder_takes_is_written(tmp_path):
    files.write_text(tmp_path / ("x" * 255), "text")
    assert [path.name for path in tmp_path.iterdir()] == ["x" * 255]
    with pytest.raises(OutputError, match=r"cannot be written: File name too long$"):
        files.write_text(tmp_path / "/".join(["x" * 255] * 20), "text")


def test_a_name_that_is_not_utf_8_is_written(tmp_path):
    target = tmp_path / os.fsdecode(b"caf\xe9.json")
    files.write_text(target, "text")
    assert [os.fsencode(path.name) for path in tmp_path.iterdir()] == [b"caf\xe9.json"]


def test_a_name_with_a_null_character_is_refused(tmp_path):
    with pytest.raises(OutputError, match=r"cannot be written: .*null"):
        files.write_text(tmp_path / "a\0b", "text")


IN_A_DELETED_FOLDER = """
import os, sys
from pathlib import Path
from adlro import files
os.rmdir(os.getcwd())
try:
    files.check_writable(Path("out.json"))
except files.OutputError as exc:
    print(exc)
"""


def test_a_deleted_working_folder_is_told(tmp_path):
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", IN_A_DELETED_FOLDER],
        cwd=tmp_path / "gone",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "out.json: the working folder is gone; change to another\n"


def test_what_is_read_is_bounded(tmp_path):
    (tmp_path / "small").write_bytes(b"x" * 100)
    assert files.read_bytes(tmp_path / "small", 100) == b"x" * 100
    with pytest.raises(OSError, match="it is larger than"):
        files.read_bytes(tmp_path / "small", 99)
    with pytest.raises(OSError, match="it is larger than 3 MiB"):
        files.read_bytes(Path("/dev/zero"), 3 << 20)


def test_a_pipe_gives_what_is_in_it_and_is_empty_without_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert files.read_bytes(tmp_path / "pipe", 10) == b""
    source, target = os.pipe()
    os.write(target, b"text")
    os.close(target)
    assert files.read_bytes(Path(f"/dev/fd/{source}"), 10) == b"text"
    os.close(source)


def test_a_folder_cannot_be_read(tmp_path):
    with pytest.raises(IsADirectoryError):
        files.read_bytes(tmp_path, 10)


ARRAYS = {"b": np.arange(3.0), "a": np.array([["x", "y"]]), "none": np.zeros((0, 2), np.int32)}


def test_packed_arrays_are_unpacked_as_they_were_in_any_order_of_memory():
    turned = {"t": np.asfortranarray(np.arange(6).reshape(2, 3))}
    for arrays in (ARRAYS, turned):
        found = files.unpack_arrays(files.pack_arrays(arrays), "a test")
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            assert found[name].tolist() == array.tolist()
    assert files.pack_arrays(ARRAYS) == files.pack_arrays(ARRAYS)


def test_objects_are_neither_packed_nor_unpacked():
    objects = np.array([{}], object)
    with pytest.raises(ValueError, match="Object arrays"):
        files.pack_arrays({"a": objects})
    data = io.BytesIO()
    np.savez(data, a=objects)
    with pytest.raises(files.BROKEN):
        files.unpack_arrays(data.getvalue(), "a test")


def test_other_arrays_than_those_that_were_asked_for_are_refused():
    data = files.pack_arrays(ARRAYS)
    with pytest.raises(ValueError, match="its arrays are not those of a test"):
        files.unpack_arrays(data, "a test", ["a", "b"])
    assert list(files.unpack_arrays(data, "a test", list(ARRAYS))) == list(ARRAYS)


def test_arrays_that_claim_to_be_huge_are_never_read():
    arrays = {"a": np.zeros(3), "b": np.zeros(3)}
    data = bytearray(files.pack_arrays(arrays, zipfile.ZIP_STORED))
    for name in (b"a.npy", b"b.npy"):
        listed = data.rindex(name) - 46  # its entry of the central directory
        data[listed + 24 : listed + 28] = (2**32 - 2).to_bytes(4, "little")
    with pytest.raises(ValueError, match="its arrays are too large"):
        files.unpack_arrays(bytes(data), "a test")


def test_no_damage_to_packed_arrays_raises_anything_but_what_is_named():
    data, rng = files.pack_arrays(ARRAYS), np.random.default_rng(5)
    for _ in range(500):
        broken = bytearray(data)
        for at in rng.integers(len(data), size=rng.integers(1, 4)):
            broken[at] ^= rng.integers(1, 256)
        try:
            files.unpack_arrays(bytes(broken[: rng.integers(1, len(data) + 1)]), "a test")
        except files.BROKEN:
            continue
