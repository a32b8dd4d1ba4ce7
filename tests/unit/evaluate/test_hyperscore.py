import pytest

from adlro.evaluate.hyperscore import hyperscore, value


@pytest.mark.parametrize(("v", "score"), [(1.0, 109.96), (0.9, 104.48), (0.5, 100.016)])
def test_the_score_has_the_published_values(v, score):
    assert hyperscore(v) == pytest.approx(score, abs=0.006 if score > 101 else 0.0006)


def test_everything_below_three_quarters_lies_in_the_last_percent():
    assert 100 < hyperscore(0.75) < 101.4
    assert hyperscore(0.3) < 100.001


def test_the_score_rises_with_v_and_survives_zero():
    assert hyperscore(0.0) == 100.0
    assert hyperscore(0.6) < hyperscore(0.7) < hyperscore(0.99)


def test_v_is_the_geometric_mean_of_the_three_shares():
    assert value(0.5, 0.25, 1.0) == pytest.approx(0.5)
    assert value(1.0, 1.0, 1.0) == 1.0
