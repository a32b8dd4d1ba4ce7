"""`adlro policy explain` as a user meets it when something is wrong."""

import pytest

from tests.commands import called

SMALL = ("paper16", "--jobs", "40")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ("min-min", *SMALL, "--job", "40"),
            "--job 40: there is no such job; this run has 0 to 39",
        ),
        (("min-min", *SMALL, "--decision", "9999"), "--decision 9999: there is no such decision"),
        (("min-min", *SMALL, "--at", "-5"), "'--at': -5.0 is not in the range x>=0"),
        (("min-min", *SMALL), "min-min never decides otherwise than Min-Min in this run"),
    ],
)
def test_what_cannot_be_explained_is_one_line_and_status_2(args, words):
    result = called("policy", "explain", *args)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("compiling")]
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(lines) == 1
    assert lines[0].startswith("adlro: ")
    assert words in lines[0]
