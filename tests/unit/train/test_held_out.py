"""The rule by which a tuned policy is shipped."""

import pytest

from adlro.evaluate.pooled import Pooled
from adlro.train.held_out import HeldOut, Tuned


def pooled(low, high):
    return Pooled(windows=5, mean_pct=(low + high) / 2, ci95=(low, high), worst_pct=high)


def held_out(jct, p99):
    tuned = None
    if jct is not None:
        tuned = Tuned(jct=pooled(*jct), p99=pooled(*p99), jct_vs_min_min=pooled(-9, -7))
    return HeldOut(
        jobs=270, windows=5, window_jobs=50, repeats=4, load=0.8, start_vs_min_min=pooled(-6, -4),
        tuned=tuned,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("jct", "p99", "is_shipped", "reason"),
    [
        ((-3, -1), (-2, 1), True, "on the held-out jobs mean JCT -2.00 % (-3.00 to -1.00), p99"),
        ((-3, -1), (-4, 12), True, "on the held-out jobs mean JCT"),
        ((-3, 0), (-2, 1), False, "on the held-out jobs the tuned policy is not clearly better"),
        ((0, 0), (0, 0), False, "on the held-out jobs the tuned policy is not clearly better"),
        ((1, 3), (-2, 1), False, "on the held-out jobs the tuned policy is not clearly better"),
        ((-3, -1), (1, 3), False, "on the held-out jobs the p99 JCT of the tuned policy is longer"),
        ((-3, -1), (-1, 12), False, "on the held-out jobs the p99 JCT of the tuned policy"),
        (None, None, False, "no tuned network was better on the selection windows"),
    ],
)
def test_it_is_shipped_if_surely_faster_and_without_a_longer_tail(jct, p99, is_shipped, reason):
    found = held_out(jct, p99)
    assert found.is_shipped == is_shipped
    assert found.reason.startswith(reason)
    assert found.versus_min_min.mean_pct == (-8 if is_shipped else -5)


def test_it_says_on_which_jobs():
    assert held_out((-3, -1), (-2, 1)).where == (
        "held out: the last 270 jobs, in 5 windows of 50, each played 4 times"
    )
