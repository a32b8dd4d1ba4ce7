"""The sensor time series matches what policies saw during the run."""

import csv

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.errors import OutputError
from adlro.evaluate.compare import run_one
from adlro.evaluate.downtime import window
from adlro.evaluate.telemetry import COLUMNS, sample_sensors, series
from adlro.model.state import READING
from adlro.policies import registry
from adlro.sim.world import EmptyCluster
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.worlds import InPython, World, play


@pytest.fixture(scope="module")
def rough():
    """Setting, workload, result and the last GPU readings seen at each decision time."""
    setting = prepare(adjusted(find_scenario("rough64"), jobs=250))
    workload, layout, seen = generate(setting, 3), setting.layout, {}
    world = World(EmptyCluster(layout.pools, layout.nodes, layout.gpus), workload, setting)

    def look(view):
        seen[view.now] = np.array(view.gpus)

    result = play(world, InPython("restless", world, look), 3)
    return setting, workload, result, seen


def test_samples_are_what_a_policy_saw_at_its_decisions(rough):
    setting, workload, result, seen = rough
    assert (result.outcome["restarts"] > 0).any()
    assert (workload.jobs["share"] < 1000).any()
    taken = sample_sensors(np.array(list(seen)), setting, workload, result)
    for name in READING.names:
        expected = np.array([gpus[name] for gpus in seen.values()])
        assert np.isnan(expected).any()
        np.testing.assert_allclose(taken.readings[name], expected, rtol=0, atol=1e-9)


def test_jobs_are_sampled_on_the_gpus_that_held_them(rough):
    setting, workload, result, seen = rough
    taken = sample_sensors(np.array(list(seen)), setting, workload, result)
    held = np.array([gpus["job"] for gpus in seen.values()]).ravel()
    whole = workload.jobs["share"][taken.job] == 1000
    expected = np.full(held.shape, -1)
    expected[taken.cell[whole]] = taken.job[whole]
    assert (expected == held).all()


def _rows(setting, workload, result, every_s):
    count, parts = series(setting, workload, result, every_s)
    rows = list(csv.DictReader("".join(parts).splitlines()))
    assert len(rows) == count
    return rows


def test_every_gpu_has_a_row_at_every_multiple_of_the_interval(rough):
    setting, workload, result, _ = rough
    rows = _rows(setting, workload, result, 600.0)
    gpus, length = len(setting.layout.gpus), window(workload, result).length
    assert tuple(rows[0]) == COLUMNS
    times = [float(row["time_s"]) for row in rows]
    assert times == np.repeat(np.arange(0, length, 600.0), gpus).tolist()
    names = [(row["node"], row["gpu"], row["model"]) for row in rows[:gpus]]
    assert names[0] == ("hopper", "0", "H100")
    assert names[8 + 9] == ("ampere-1", "1", "A100 80GB")


def test_the_text_holds_the_readings_of_its_time_and_nothing_for_a_gpu_that_is_down(rough):
    setting, workload, result, _ = rough
    rows = _rows(setting, workload, result, 900.0)
    times = workload.jobs["arrival"][0] + np.arange(0, float(rows[-1]["time_s"]) + 1, 900.0)
    taken = sample_sensors(times, setting, workload, result)
    power = taken.readings["power"].ravel()
    written = np.array([float(row["power_w"] or "nan") for row in rows])
    np.testing.assert_allclose(written, power, rtol=1e-11)
    down = [row for row in rows if row["power_w"] == ""]
    assert len(down) == np.isnan(power).sum() > 0
    assert {tuple(list(row.values())[4:]) for row in down} == {("",) * 5}


def test_the_types_of_all_slices_on_a_gpu_are_named(rough):
    setting, workload, result, _ = rough
    rows = _rows(setting, workload, result, 60.0)
    both = [row["job_types"] for row in rows if ";" in row["job_types"]]
    assert {name for text in both for name in text.split(";")} == {"inference", "notebook"}
    idle = [row for row in rows if row["job_types"] == "" and row["power_w"]]
    assert {row["utilisation"] for row in idle} == {"0"}


def test_parts_do_not_change_the_series():
    """A series in several parts equals the same series in one part."""
    setting = prepare(adjusted(find_scenario("paper16"), jobs=40, telemetry=True))
    workload = generate(setting, 0)
    result = run_one(setting, workload, registry.load("fcfs", setting), 0, keep_spans=True)
    rows = _rows(setting, workload, result, 1.0)
    assert len(rows) > 150_000
    times = workload.jobs["arrival"][0] + np.arange(len(rows) // 16, dtype=np.float64)
    at_once = sample_sensors(times, setting, workload, result).readings["power"].ravel()
    np.testing.assert_allclose([float(row["power_w"]) for row in rows], at_once, rtol=1e-11)


def test_too_many_rows_are_refused(rough):
    setting, workload, result, _ = rough
    with pytest.raises(OutputError, match=r"a sample every 1e-06 s makes \d\.?\d*e\+12 rows"):
        series(setting, workload, result, 1e-6)
    every_s = 64e-8 * window(workload, result).length
    assert series(setting, workload, result, 1.01 * every_s)[0] < 100_000_000
    with pytest.raises(OutputError, match=r"makes 1.01e\+08 rows"):
        series(setting, workload, result, 0.99 * every_s)


def test_names_with_commas_and_quotes_are_quoted():
    scenario = find_scenario("paper16").model_dump()
    scenario["types"][0]["name"] = 'a,"b"'
    scenario |= {"affinity": {}, "jobs": 30, "telemetry": True}
    setting = prepare(Scenario.model_validate(scenario))
    workload = generate(setting, 0)
    result = run_one(setting, workload, registry.load("fcfs", setting), 0, keep_spans=True)
    types = {row["job_types"] for row in _rows(setting, workload, result, 60.0)}
    assert 'a,"b"' in types
