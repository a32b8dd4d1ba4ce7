"""What can happen to a cluster, as written down."""

import pytest
from pydantic import ValidationError

from adlro.config.events import Failures, Throttling, Wear


@pytest.mark.parametrize(
    ("mtbf_h", "repair_h", "share"), [(9, 1, 0.9), (1, 1, 0.5), (1, 3, 0.25), (999, 1, 0.999)]
)
def test_a_node_is_up_for_its_share_of_a_cycle(mtbf_h, repair_h, share):
    assert Failures(mtbf_h=mtbf_h, repair_h=repair_h).availability == pytest.approx(share)


@pytest.mark.parametrize(
    ("named", "touched"), [((), ["a", "b"]), (("a",), ["a"]), (("a", "b"), ["a", "b"])]
)
def test_all_groups_fail_unless_some_are_named(named, touched):
    failures = Failures(mtbf_h=9, repair_h=1, nodes=named)
    assert [group for group in ("a", "b") if failures.touches(group)] == touched


@pytest.mark.parametrize("speed", [0, 1, 1.5, -0.5])
@pytest.mark.parametrize(("record", "kind"), [(Wear, "wear"), (Throttling, "throttling")])
def test_wear_and_heat_only_ever_slow_a_gpu_and_never_stop_it(record, kind, speed):
    with pytest.raises(ValidationError, match="speed"):
        record(kind=kind, to_h=1, speed=speed)


def test_a_throttled_gpu_is_twelve_degrees_hotter_unless_told_otherwise():
    assert Throttling(kind="throttling", to_h=1, speed=0.5).heat_c == 12
