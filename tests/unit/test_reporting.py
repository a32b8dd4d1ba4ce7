"""What `--report` does around a comparison."""

import pytest

from adlro.cli.reporting import Reporter
from adlro.errors import OutputError


def test_a_folder_that_cannot_be_made_is_refused_at_once(tmp_path):
    with pytest.raises(OutputError, match="there is no folder"):
        Reporter(tmp_path / "none" / "out")


def test_without_a_folder_nothing_is_watched_written_or_said(capsys):
    reporter = Reporter(None)
    reporter.watch(None, [])(None, 0, None, None)
    reporter.write(None, quiet=False)
    reporter.leave_out()
    assert capsys.readouterr() == ("", "")


def test_a_comparison_that_was_stopped_has_no_page_and_says_so(tmp_path, capsys):
    Reporter(tmp_path / "out").leave_out()
    assert "no report" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
