"""Scaling to [0, 1]: by hand, in any order, with what is missing and what lies beyond."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.errors import TelemetryError
from adlro.telemetry import normalise
from adlro.telemetry.normalise import LEARNED, SCALED
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


def scaled(norm, model, **columns):
    got = normalise.scale(norm, [model], table(1, **columns))
    return {name: got.values[0, c] for c, name in enumerate(SCALED)}


def test_before_anything_was_seen_the_catalogue_gives_the_range():
    # T4: 70 W, 16 GB; degrees from 30 to 85: 41 is (41 - 30) / 55 = 0.2 of the way
    got = scaled(normalise.empty(), "Tesla T4", power=35.0, memory_used=4096.0, temperature=41.0)
    assert got["power"] == 0.5
    assert got["memory_used"] == 0.25
    assert got["temperature"] == pytest.approx(0.2)


def test_a_model_that_nobody_knows_has_the_range_of_a_usual_gpu():
    assert scaled(normalise.empty(), "Nobody's GPU", power=175.0)["power"] == 0.5


def test_shares_stay_as_they_are_and_errors_saturate():
    got = scaled(normalise.empty(), "Tesla T4", utilisation=0.37, bandwidth=1.0, errors=3.0)
    assert (got["utilisation"], got["bandwidth"], got["errors"]) == (0.37, 1.0, 0.75)
    assert scaled(normalise.empty(), "Tesla T4", errors=0.0)["errors"] == 0.0


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


def test_what_lies_beyond_the_range_becomes_0_or_1_and_is_counted():
    values = table(4, power=[-3.0, 35.0, 71.0, 9_000.0], utilisation=[0.5, -0.1, 1.2, np.nan])
    got = normalise.scale(normalise.empty(), ["Tesla T4"] * 4, values)
    assert got.values[:, SCALED.index("power")].tolist() == [0.0, 0.5, 1.0, 1.0]
    assert got.clipped[SCALED.index("power")] == 3
    assert got.clipped[SCALED.index("utilisation")] == 2
    assert got.clipped.sum() == 5


def test_errors_without_end_are_1_and_fewer_than_none_are_0_and_counted():
    values = table(4, errors=[np.inf, -2.0, -1.0, np.nan])
    got = normalise.scale(normalise.empty(), ["Tesla T4"] * 4, values)
    np.testing.assert_array_equal(got.values[:, SCALED.index("errors")], [1.0, 0.0, 0.0, np.nan])
    assert got.clipped[SCALED.index("errors")] == 2


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


def test_what_is_missing_stays_missing():
    norm = seen("Tesla T4", temperature=np.array([50.0, np.nan]))
    assert norm.counts.sum() == 1
    got = normalise.scale(norm, ["Tesla T4"], table(1, temperature=50.0))
    assert got.known[0].tolist() == [name == "temperature" for name in SCALED]
    np.testing.assert_array_equal(np.isnan(got.values), ~got.known)


def test_no_gpus_at_all_are_no_trouble():
    norm = normalise.observe(normalise.empty(), [], table(0))
    assert norm.models == ()
    assert normalise.scale(norm, [], table(0)).values.shape == (0, len(SCALED))


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
    one, other = (normalise.scale(norm, models, values) for norm in (batch, stream))
    np.testing.assert_array_equal(one.values, other.values)


@given(rows=ROWS)
@settings(max_examples=60, deadline=None)
def test_whatever_was_seen_the_outcome_is_in_0_to_1_and_rises_with_the_reading(rows):
    models, values = columns(rows)
    norm = normalise.observe(normalise.empty(), models, values)
    got = normalise.scale(norm, models, values)
    known = got.values[got.known]
    assert np.all((known >= 0) & (known <= 1))
    steps = table(50, power=np.linspace(0, 500, 50))
    rising = normalise.scale(norm, ["Tesla T4"] * 50, steps).values[:, SCALED.index("power")]
    assert np.all(np.diff(rising) >= 0)
    assert rising[0] < rising[-1]


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
    with pytest.raises(TelemetryError, match="is damaged; learn it anew"):
        normalise.from_arrays(arrays)


def test_a_state_that_lacks_a_part_is_refused():
    arrays = normalise.to_arrays(normalise.empty())
    del arrays["telemetry_counts"]
    with pytest.raises(TelemetryError, match="lacks telemetry_counts"):
        normalise.from_arrays(arrays)
