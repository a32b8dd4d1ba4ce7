"""What is learned from the errors of estimates: quantiles, confidences, and their file."""

import math

import numpy as np
import pytest

from adlro.estimates.calibration import copy_into, restore, saved_calibration
from adlro.estimates.calibration_kernel import (
    BY_REQUEST,
    KINDS,
    PROBABILITIES,
    calibration,
    describe,
    forecast,
    kind_of,
    observe,
    recollect,
    remember,
)

MIDDLE = PROBABILITIES.index(0.5)
LOW, HIGH = PROBABILITIES.index(0.1), PROBABILITIES.index(0.9)


def said(cal, centre=5.0, kind=BY_REQUEST, low=0.0, high=0.0, outcomes=0.0):
    """Confidence and quantiles of an estimate."""
    out = np.zeros(len(PROBABILITIES))
    forecast(cal, centre, low, high, outcomes, kind, cal.latest[0])
    return describe(cal, cal.latest[0], out), out


def test_cold_it_doubts_and_its_interval_is_wide():
    confidence, quantiles = said(calibration(1))
    assert 0.15 < confidence < 0.3
    assert quantiles[MIDDLE] == pytest.approx(5.0, abs=0.01)
    assert quantiles[HIGH] - quantiles[LOW] > math.log(100)


def test_without_an_estimate_there_is_no_confidence_and_no_quantile():
    cal = calibration(1)
    confidence, quantiles = said(cal, math.nan)
    assert confidence == 0
    assert np.isnan(quantiles).all()
    observe(cal, cal.latest[0], 3.0)
    assert not cal.counts.any()


def test_quantiles_become_those_of_the_errors_also_if_they_are_skew():
    # Requests are too long: by a factor of e to e^3, evenly in logs, and never too short.
    rng, cal = np.random.default_rng(0), calibration(1)
    for _ in range(2000):
        said(cal)
        observe(cal, cal.latest[0], 5.0 - rng.uniform(1, 3))
    confidence, quantiles = said(cal)
    assert quantiles[[LOW, MIDDLE, HIGH]] == pytest.approx([2.2, 3.0, 3.8], abs=0.2)
    assert confidence < 0.05


def test_confidences_become_the_share_within_a_factor_of_2():
    rng, cal = np.random.default_rng(1), calibration(1)
    for _ in range(2000):
        said(cal)
        observe(cal, cal.latest[0], 5.0 + (0.1 if rng.random() < 0.7 else 2.0))
    assert said(cal)[0] == pytest.approx(0.7, abs=0.06)


def test_kinds_of_estimates_are_learned_apart():
    rng, cal = np.random.default_rng(2), calibration(1)
    near, far = kind_of(9.0, 0.05), kind_of(0.0, 2.0)
    assert near != far
    for _ in range(500):
        for kind, sigma in ((near, 0.05), (far, 2.0)):
            said(cal, kind=kind)
            observe(cal, cal.latest[0], 5.0 + sigma * rng.standard_normal())
    assert said(cal, kind=near)[0] > 0.9
    assert said(cal, kind=far)[0] < 0.5


def test_every_kind_has_its_row():
    found = {kind_of(n, s) for n in (0.0, 0.1, 1.0, 3.0, 9.0) for s in (0.0, 0.3, 2.0)}
    assert found == set(range(2, KINDS))


def test_an_estimate_is_kept_until_its_job_ends():
    cal = calibration(2)
    for k in range(2):
        forecast(cal, 5.0 + k, 0.0, 0.0, 0.0, BY_REQUEST, cal.latest[k])
    remember(cal, 17)
    forecast(cal, 9.0, 0.0, 0.0, 0.0, BY_REQUEST, cal.latest[0])
    assert not recollect(cal, 18)
    assert recollect(cal, 17)
    assert cal.latest["centre"].tolist() == [5.0, 6.0]
    assert not recollect(cal, 17)


def experienced():
    rng, cal = np.random.default_rng(3), calibration(1)
    for source in range(60):
        said(cal, kind=int(rng.integers(KINDS)))
        observe(cal, cal.latest[0], rng.normal(5))
        remember(cal, source)
    said(cal, math.nan)
    remember(cal, 1000)
    return cal


def test_a_saved_calibration_is_the_same():
    cal, again = experienced(), calibration(1)
    text = saved_calibration(cal).model_dump_json()
    assert restore(again, type(saved_calibration(cal)).model_validate_json(text))
    for name in ("counts", "sizes", "hits", "keys"):
        np.testing.assert_array_equal(getattr(again, name), getattr(cal, name))
    np.testing.assert_array_equal(
        again.waiting["centre"][again.keys > 0], cal.waiting["centre"][cal.keys > 0]
    )
    assert saved_calibration(again).model_dump_json() == text
    assert not restore(calibration(2), saved_calibration(cal))


def test_a_copy_shares_nothing():
    cal, other = experienced(), calibration(1)
    copy_into(other, cal)
    before = saved_calibration(cal).model_dump_json()
    assert saved_calibration(other).model_dump_json() == before
    said(other)
    observe(other, other.latest[0], 9.0)
    assert saved_calibration(cal).model_dump_json() == before
