"""Times as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adlro.evaluate.durations import change, changes, duration, durations, hours


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"), (40, "40 s"), (89, "89 s"), (90, "2 min"), (720, "12 min"), (5_399, "90 min"),
        (5_400, "1.5 h"), (12_240, "3.4 h"), (259_199, "72.0 h"), (450_000, "5.2 days"),
    ],
)  # fmt: skip
def test_a_time_has_the_unit_that_suits_it(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((4_080, 6_480), ["1.1 h", "1.8 h"]),
        ((0, 6_480), ["0.0 h", "1.8 h"]),
        ((20, 6_480), ["20 s", "1.8 h"]),  # "0.0 h" would hide it
        ((158_400, 328_320), ["1.8 days", "3.8 days"]),
        ((60, 80), ["60 s", "80 s"]),
    ],
)
def test_times_that_are_compared_have_one_unit(seconds, said):
    assert durations(*seconds) == said


@given(st.lists(st.floats(0, 1e7), min_size=2, max_size=4))
def test_no_time_is_printed_as_0_unless_it_is_less_than_half_a_second(seconds):
    for one, said in zip(seconds, durations(*seconds), strict=True):
        assert (float(said.split()[0]) == 0) <= (one <= 0.5)


def test_differences_have_their_sign_and_0_has_none():
    assert [change(s) for s in (-12_240, 720, 0.2, -0.2)] == ["-3.4 h", "+12 min", "0 s", "0 s"]
    assert changes(-4_740, 14_400) == ["-1.3 h", "+4.0 h"]
    assert changes(0, -7_200) == ["0.0 h", "-2.0 h"]


def test_hours_in_a_column_have_three_digits():
    assert [hours(3_600 * h) for h in (0.05, 3.414, 41.23, 1_204.4)] == [
        "0.05", "3.41", "41.2", "1,204",
    ]  # fmt: skip
