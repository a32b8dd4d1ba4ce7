"""The learning curve as text."""

from adlro.cli.curve import plot


def test_points_and_levels_stand_at_logarithmic_heights():
    # From 100 to 10,000 on five rows, half a decade each: 1,000 is in the middle.
    rows = plot([(0, 10_000), (0.5, 1000), (1, 100)], {"fcfs": 1000}, 5, 5)
    assert rows == [
        "10,000 s ●",
        "",
        "         ┄┄●┄┄ fcfs 1,000 s",
        "",
        "   100 s     ●",
    ]


def test_levels_of_one_height_share_their_row():
    rows = plot([(1.0, 50)], {"a": 100, "b": 100}, 3, 2)
    assert rows == ["100 s ┄┄┄ a 100 s, b 100 s", " 50 s   ●"]


def test_a_flat_curve_is_drawn_too():
    assert plot([(0, 7), (1, 7)], {}, 3, 3)[1].strip() == "● ●"
