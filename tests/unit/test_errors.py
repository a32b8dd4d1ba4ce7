"""What errors have to say."""

import os

import pytest

from adlro.errors import printable, suggestion


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain · text ± 日本", "plain · text ± 日本"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\x00\x7f\x9b", "a\\nb\\tc\\x00\\x7f\\x9b"),
        ("right\u202eleft\u2066", "right\\u202eleft\\u2066"),
        (os.fsdecode(b"caf\xe9"), "caf\\xe9"),
        ("\ud800", "\\ud800"),
    ],
)
def test_nothing_that_a_terminal_acts_on_is_left(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()
    printable(text).encode()


def test_a_misspelt_name_is_answered_with_the_near_ones_or_all():
    assert suggestion("fcsf", ["fcfs", "sjf"]) == "did you mean 'fcfs' or 'sjf'?"
    assert suggestion("zzz", ["fcfs", "sjf"]) == "known: fcfs, sjf"
