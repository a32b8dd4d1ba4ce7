from pathlib import Path

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
