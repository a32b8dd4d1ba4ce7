"""The scenario gavel16 against what it was made from."""

import csv
from pathlib import Path

import pytest

from adlro.config.files import find_scenario
from adlro.workloads.setting import prepare

DATA = Path(__file__).parents[4] / "shared" / "data" / "gavel" / "gavel_isolated_throughputs.csv"


def test_its_capacity_is_that_of_the_reference_experiment():
    # Computed independently by a prototype of the fluid LP: 0.947 jobs an hour by the fluid LP.
    setting = prepare(find_scenario("gavel16"))
    assert setting.capacity_per_s * 3600 == pytest.approx(0.947, abs=0.0005)
    assert len(setting.layout.gpus) == 16


@pytest.mark.skipif(not DATA.is_file(), reason="../shared/data is not here")
def test_its_speeds_are_gavels_throughputs():
    steps = {}
    with DATA.open() as file:
        for row in csv.DictReader(file):
            if row["num_gpus"] == "1":
                name = row["job_type"].replace(" (batch size ", "-").removesuffix(")")
                steps[name, row["gpu_type"].upper()] = float(row["steps_per_s"])
    types = find_scenario("gavel16").types
    assert len(types) == 26
    for kind in types:
        alone = {gpu: steps[kind.name, gpu] / steps[kind.name, "V100"] for gpu in kind.speed}
        assert kind.speed == pytest.approx(alone, rel=1e-4)
