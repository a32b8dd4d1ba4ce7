"""Training ranges of features: how they are measured, stored in a card, and refused if wrong."""

import json

import numpy as np
import pytest

from adlro.policies import registry
from adlro.policies.loading import learned
from adlro.policies.loading.feature_ranges import FeatureRanges, Range, measure_ranges
from tests.commands import called
from tests.trained import NAMES, ORIGIN, arrays, forged, network, refused, saved, zipped
from tests.worlds import build, job, nodes

RANGES = FeatureRanges(
    states=1200, options=5000, features={name: Range(-1.5, -1.0, 2.0, 2.5) for name in NAMES}
)


def with_toy_ranges(folder):
    path = folder / "toy.npz"
    learned.save(path, network(), ORIGIN.model_copy(update={"ranges": RANGES}))
    return path


def changed(**changes):
    """The ranges as JSON, with those of some features changed; None = left out."""
    data = RANGES.model_dump(mode="json")
    features = data["features"] | changes
    data["features"] = {name: value for name, value in features.items() if value is not None}
    return data


def test_a_range_holds_the_middle_998_of_1000_values_and_the_extremes():
    values = np.arange(10_000, dtype=np.float32)[:, None] * [1, -1]
    halves = [values[::2].astype(np.float32), values[1::2].astype(np.float32)]
    found = measure_ranges(("up", "down"), halves, 700)
    assert (found.states, found.options) == (700, 10_000)
    assert found.features["up"] == (0.0, 9.0, 9989.0, 9999.0)
    assert found.features["down"] == (-9999.0, -9990.0, -10.0, 0.0)


def test_bounds_are_those_of_training_in_the_precision_of_training():
    third = np.float32(1 / 3)
    found = measure_ranges(("x",), [np.full((5, 1), third)], 5)
    low, high = found.bounds(["x"])
    assert low[0] == high[0] == third
    assert json.loads(found.model_dump_json())["features"]["x"] == [0.33333334] * 4


def test_ranges_are_loaded_as_they_were_saved(tmp_path):
    path = with_toy_ranges(tmp_path)
    assert learned.load(path).card.ranges == RANGES
    copy = tmp_path / "copy.npz"
    learned.save(copy, *learned.load(path))
    assert copy.with_suffix(".json").read_bytes() == path.with_suffix(".json").read_bytes()


def test_an_old_card_has_no_ranges_and_is_still_loaded(tmp_path):
    path = saved(tmp_path)
    assert "ranges" not in json.loads(path.with_suffix(".json").read_text())
    assert learned.load(path).card.ranges is None
    setting = build([nodes("V100")], [job(0, 40)]).setting
    assert registry.load(str(path), setting).ranges is None


def test_a_loaded_policy_has_the_ranges_of_its_card(tmp_path):
    setting = build([nodes("V100")], [job(0, 40)]).setting
    assert registry.load(str(with_toy_ranges(tmp_path)), setting).ranges == RANGES
    assert registry.load("adlro", setting).ranges == learned.shipped().card.ranges
    assert registry.load("min-min", setting).ranges is None


def test_changed_ranges_are_refused_with_one_line_and_status_2(tmp_path):
    path = with_toy_ranges(tmp_path)
    file = path.with_suffix(".json")
    file.write_text(file.read_text().replace("-1.5", "-9.5", 1))
    assert refused(path).startswith(
        ".json: was changed after it was written (sha256_card differs); copy"
    )
    result = called("policy", "show", str(path))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert "sha256_card differs" in result.stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"wait": None}, "ranges: 'wait' has no range; copy the file again"),
        ({"blocked": [0, 0, 1, 1]}, "ranges: 'blocked' is no feature of the network; copy"),
        ({"drain": [0, float("nan"), 1, 1]}, "'ranges.features.drain.1': input should be a finite"),
        ({"drain": [0, 0, 1, float("inf")]}, "'ranges.features.drain.3': input should be a finite"),
        ({"drain": [0, 2, 1, 3]}, "'ranges.features.drain': a range is in ascending order"),
        ({"drain": [3, 1, 2, 4]}, "'ranges.features.drain': a range is in ascending order"),
        ({"drain": [0, 1]}, "'ranges.features.drain.2': field required"),
        ({"drain": "wide"}, "'ranges.features.drain': "),
        ({"drain": ["0", "0", "1", "1"]}, "'ranges.features.drain.0': input should be a valid num"),
        ({"drain": [0, 0, True, 1]}, "'ranges.features.drain.2': input should be a valid number"),
        ({"drain": [0, 0, 1, 1e300]}, "'ranges.features.drain.3': input should be less than"),
    ],
)
def test_wrong_ranges_are_refused_even_if_the_hash_is_right(tmp_path, changes, said):
    path = forged(tmp_path, zipped(arrays()), ranges=changed(**changes))
    assert refused(path).startswith(f".json: {said}")


@pytest.mark.parametrize("key", ["states", "options"])
def test_ranges_of_nothing_are_refused(tmp_path, key):
    path = forged(tmp_path, zipped(arrays()), ranges=changed() | {key: 0})
    assert refused(path).startswith(f".json: 'ranges.{key}': input should be greater than 0")
    path = forged(tmp_path, zipped(arrays()), ranges=changed() | {key: 10**30})
    assert refused(path).startswith(f".json: 'ranges.{key}': input should be less than")


def test_no_ranges_at_all_are_not_ranges_of_the_features(tmp_path):
    path = forged(tmp_path, zipped(arrays()), ranges=changed() | {"features": {}})
    assert refused(path).startswith(".json: 'ranges.features': dictionary should have at least 1")


def test_the_card_is_shown_with_what_the_ranges_were_measured_on(tmp_path):
    told = called("policy", "show", str(with_toy_ranges(tmp_path))).stdout
    assert "over 5,000 options of 1,200 training states" in " ".join(told.split())
    old = called("policy", "show", str(saved(tmp_path, "old.npz"))).stdout
    assert any(line.split() == ["training", "ranges", "none"] for line in old.splitlines())


def test_the_shipped_ranges_are_of_at_least_100000_states():
    ranges = learned.shipped().card.ranges
    assert ranges.states >= 100_000
    assert tuple(ranges.features) == learned.shipped().network.features
