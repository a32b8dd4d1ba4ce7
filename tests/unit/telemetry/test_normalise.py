"""The bounds of readings: by hand, in any order, with missing and impossible readings."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.errors import TelemetryError
from adlro.telemetry import normalise
from adlro.telemetry.normalise import LEARNED
from adlro.telemetry.sample import COLUMN, NAMES

MODELS = ("Tesla T4", "Nobody's GPU", "AMD INSTINCT MI100")


def table(count=1, **columns):
    values = np.full((count, len(NAMES)), np.nan)
    for name, column in columns.items():
        values[:, COLUMN[name]] = column
    return values


def seen(model, **columns):
    count = len(next(iter(columns.values())))
    return normalise.observe(normalise.empty(), [model] * count, table(count, **columns))


def test_before_anything_was_observed_the_catalogue_gives_the_bounds():
    bounds = {name: normalise.bounds(normalise.empty(), "Tesla T4", name) for name in LEARNED}
    assert bounds == {"memory_used": (0, 16 * 1024), "temperature": (30, 85), "power": (0, 70)}


def test_an_unknown_model_has_the_bounds_of_a_common_gpu():
    assert normalise.bounds(normalise.empty(), "Nobody's GPU", "power") == (0, 350)
    assert normalise.bounds(normalise.empty(), "Nobody's GPU", "memory_used") == (0, 32 * 1024)


def test_the_range_moves_from_the_catalogue_to_the_quantiles_of_what_was_seen():
    # 200 readings weigh as much as the catalogue. 40 to 60 degrees evenly: the quantiles are
    # 40 + 0.02 * 20 = 40.4 and 59.6; half way from 30 and 85: 35.2 and 72.3.
    norm = seen("Tesla T4", temperature=np.linspace(40, 60, 200))
    assert normalise.bounds(norm, "Tesla T4", "temperature") == pytest.approx((35.2, 72.3), abs=0.2)
    many = seen("Tesla T4", temperature=np.linspace(40, 60, 200_000))
    assert normalise.bounds(many, "Tesla T4", "temperature") == pytest.approx((40.4, 59.6), abs=0.2)
    assert normalise.bounds(many, "V100", "temperature") == (30.0, 85.0)


def test_bins_on_a_log_scale_keep_small_and_large_apart():
    norm = seen("Tesla T4", power=np.geomspace(10, 60, 1_000_000))
    low, high = normalise.bounds(norm, "Tesla T4", "power")
    assert low == pytest.approx(10 * 6**0.02, rel=0.02)
    assert high == pytest.approx(10 * 6**0.98, rel=0.02)


def test_a_few_wild_readings_move_nothing_much():
    usual = np.linspace(40, 60, 100_000)
    wild = np.concatenate([usual, np.full(500, 149.0)])
    one, other = (
        normalise.bounds(seen("Tesla T4", temperature=column), "Tesla T4", "temperature")
        for column in (usual, wild)
    )
    assert other == pytest.approx(one, abs=0.2)


def test_the_noise_of_a_gpu_that_never_works_is_not_stretched():
    norm = seen("Tesla T4", power=np.full(1_000_000, 10.0))
    low, high = normalise.bounds(norm, "Tesla T4", "power")
    assert low == pytest.approx(10.0, rel=0.02)
    assert high == pytest.approx(low + 7.0)  # a tenth of 70 W


@pytest.mark.parametrize("model", ["x" * 201, "x\0", "x\ud800"])
def test_a_name_that_could_not_be_read_back_is_not_learned(model):
    with pytest.raises(TelemetryError, match="is not the name of a GPU model"):
        seen(model, power=np.array([50.0]))


def test_the_longest_name_goes_through_a_file():
    norm = seen("x" * 200, power=np.array([50.0]))
    assert_same(normalise.from_arrays(normalise.to_arrays(norm)), norm)


def test_what_cannot_be_is_not_learned_but_counted():
    norm = seen("Tesla T4", power=np.array([-3.0, 50.0, 9_000.0, np.nan]))
    c = LEARNED.index("power")
    assert norm.counts[0, c].sum() == 1
    assert norm.outside[0].tolist() == [2 if i == c else 0 for i in range(len(LEARNED))]


def test_a_missing_reading_is_not_learned():
    norm = seen("Tesla T4", temperature=np.array([50.0, np.nan]))
    assert norm.counts.sum() == 1
    assert norm.outside.sum() == 0


def test_no_gpus_at_all_are_no_trouble():
    norm = normalise.observe(normalise.empty(), [], table(0))
    assert norm.models == ()


ROWS = st.lists(
    st.tuples(
        st.sampled_from(MODELS),
        *(st.none() | st.floats(-10, 6000) for _ in LEARNED),
    ),
    max_size=30,
)


def columns(rows):
    models = [row[0] for row in rows]
    values = np.full((len(rows), len(NAMES)), np.nan)
    for g, row in enumerate(rows):
        for name, number in zip(LEARNED, row[1:], strict=True):
            values[g, COLUMN[name]] = np.nan if number is None else number
    return models, values


def assert_same(one, other):
    assert one.models == other.models
    np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_array_equal(one.outside, other.outside)


@given(rows=ROWS, order=st.randoms(use_true_random=False), cut=st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_all_at_once_one_by_one_and_in_two_places_are_the_same_in_any_order(rows, order, cut):
    models, values = columns(rows)
    batch = normalise.observe(normalise.empty(), models, values)
    places = list(range(len(rows)))
    order.shuffle(places)
    stream = normalise.empty()
    for g in places:
        stream = normalise.observe(stream, [models[g]], values[g : g + 1])
    assert_same(stream, batch)
    halves = [
        normalise.observe(normalise.empty(), [models[g] for g in part], values[part])
        for part in (places[cut:], places[:cut])
    ]
    assert_same(normalise.merge(*halves), batch)


@given(rows=ROWS)
@settings(max_examples=60, deadline=None)
def test_whatever_was_observed_the_bounds_are_finite_and_in_order(rows):
    norm = normalise.observe(normalise.empty(), *columns(rows))
    for model in MODELS:
        for name in LEARNED:
            low, high = normalise.bounds(norm, model, name)
            assert -np.inf < low < high < np.inf


def test_observing_does_not_change_what_was_there():
    norm = seen("Tesla T4", power=np.array([50.0]))
    before = norm.counts.copy()
    normalise.observe(norm, ["Tesla T4"], table(1, power=60.0))
    np.testing.assert_array_equal(norm.counts, before)


def test_the_state_goes_through_a_file_without_objects():
    norm = normalise.merge(
        seen("Tesla T4", power=np.array([50.0, 6000.0])), seen("É", power=np.array([5.0]))
    )
    file = io.BytesIO()
    np.savez(file, **normalise.to_arrays(norm))
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        assert_same(normalise.from_arrays(dict(arrays)), norm)
    assert_same(normalise.from_arrays(normalise.to_arrays(normalise.empty())), normalise.empty())


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("telemetry_models", lambda array: array[::-1]),
        ("telemetry_models", lambda array: np.array(["a", "a"])),
        ("telemetry_models", lambda array: np.array(["a"])),
        ("telemetry_models", lambda array: np.array("a")),
        ("telemetry_models", lambda array: np.array(["a", "b" * 300])),
        ("telemetry_models", lambda array: np.array([1, 2])),
        ("telemetry_counts", lambda array: array - 1),
        ("telemetry_counts", lambda array: array.astype(float)),
        ("telemetry_counts", lambda array: array[:, :, 1:]),
        ("telemetry_outside", lambda array: array[:1]),
        ("telemetry_outside", lambda array: array.astype(bool)),
    ],
)
def test_a_damaged_state_is_refused(key, change):
    norm = normalise.merge(seen("a", power=np.array([50.0])), seen("b", power=np.array([50.0])))
    arrays = normalise.to_arrays(norm)
    arrays[key] = change(arrays[key])
    with pytest.raises(TelemetryError, match="are damaged; train again"):
        normalise.from_arrays(arrays)


def test_a_state_that_lacks_a_part_is_refused():
    arrays = normalise.to_arrays(normalise.empty())
    del arrays["telemetry_counts"]
    with pytest.raises(TelemetryError, match="lack telemetry_counts"):
        normalise.from_arrays(arrays)
