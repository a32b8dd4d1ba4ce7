"""What a policy is worth in GPUs: crossings computed by hand."""

import numpy as np
import pytest

from adlro.evaluate.worth import Measured, crossing, steps, worth
from adlro.model.cluster import Cluster

GPUS = (0, 4, 8)


def measured(target, windows=6):
    curve = np.repeat([[[100.0], [80.0], [70.0]]], windows, axis=2)
    return Measured(GPUS, curve, np.full((1, windows), float(target)))


@pytest.mark.parametrize(
    ("target", "gpus"), [(100, 0), (120, 0), (90, 2), (80, 4), (75, 6), (70, 8), (69, np.inf)]
)
def test_the_crossing_is_interpolated(target, gpus):
    assert measured(target).mean() == pytest.approx(gpus)


def test_a_curve_that_rises_again_is_crossed_where_it_first_falls():
    curve = np.array([[100.0], [60.0], [90.0]])
    assert crossing(GPUS, curve, np.array([80.0])) == pytest.approx(2)


def test_windows_that_differ_make_an_interval():
    today = np.array([[[100.0] * 6, [80.0] * 6, [60.0] * 6]])
    found = Measured(GPUS, today, np.array([[100.0, 95, 90, 85, 80, 75]]))
    low, high = found.interval()
    assert 0 < low < found.mean() < high < 8


def test_all_three_outcomes_are_told():
    told = {target: worth("adlro", "slurm", "T4", measured(target)) for target in (110, 90, 50)}
    assert (told[110].gpus, told[90].gpus, told[50].gpus) == (0, pytest.approx(2), None)
    assert "no additional GPU" in told[110].text
    assert "adlro is worth about 2 T4 GPUs (2 to 2)" in told[90].text
    assert "more than 8 T4 GPUs" in told[50].text
    assert told[50].ci95 == (8, None)


def test_steps_add_nodes_of_the_most_numerous_model_until_the_cluster_has_doubled():
    nodes = [
        {"name": "a", "gpu": "A100", "gpus": 8, "count": 1},
        {"name": "t", "gpu": "T4", "gpus": 4, "count": 3, "hosts": ["t1", "t2", "t3"]},
    ]
    cluster = Cluster.model_validate({"nodes": [n | {"cores": 8, "memory_gb": 8} for n in nodes]})
    found = steps(cluster)
    assert (found.model, found.gpus) == ("T4", (4, 8, 16, 32))
    assert [one.nodes[-1].count for one in found.clusters] == [1, 2, 4, 8]
