"""The offered load of a seed, by hand and on average."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario, scenario_of
from adlro.config.scenario import Scenario
from adlro.evaluate.load import offered_load
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare

NODE = {"name": "a", "gpu": "V100", "gpus": 2, "cores": 8, "memory_gb": 64}
TYPE = {"name": "t", "share": 1, "speed": {"V100": 1}, "size": {"law": "constant", "seconds": 100}}
SCENARIO = {"name": "hand", "cluster": {"nodes": [NODE]}, "types": [TYPE], "jobs": 3}


def by_hand(arrivals, seconds, gpus):
    setting = prepare(Scenario.model_validate(SCENARIO))
    drawn = generate(setting, 0)
    jobs = drawn.jobs.copy()
    jobs["arrival"], jobs["gpus"] = arrivals, gpus
    workload = drawn._replace(jobs=jobs, seconds=np.array(seconds, np.float64)[:, None])
    return offered_load(setting, workload)


def test_gpu_seconds_that_arrived_over_what_the_gpus_could_do_meanwhile():
    # 100 + 2 * 50 + 20 GPU-seconds in 200 s; two GPUs do 400
    assert by_hand([50, 100, 200], [100, 50, 20], [1, 2, 1]) == pytest.approx(220 / 400)


def test_the_same_work_in_half_the_time_is_twice_the_load():
    assert by_hand([25, 50, 100], [100, 50, 20], [1, 2, 1]) == pytest.approx(220 / 200)


def test_the_load_of_jobs_that_all_arrive_at_0_is_nan():
    assert np.isnan(by_hand([0, 0, 0], [100, 50, 20], 1))


def test_work_is_counted_where_the_capacity_lp_puts_it():
    # two types, each ten times faster on a model of its own: a GPU of each does a job in 100 s.
    # 100 + 100 + 50 GPU-seconds there in 250 s; two GPUs do 500
    nodes = [{**NODE, "gpus": 1}, {**NODE, "name": "b", "gpu": "P100", "gpus": 1}]
    speeds = {"t": {"V100": 1, "P100": 0.1}, "u": {"V100": 0.1, "P100": 1}}
    types = [{**TYPE, "name": name, "speed": speed} for name, speed in speeds.items()]
    text = {**SCENARIO, "cluster": {"nodes": nodes}, "types": types}
    setting = prepare(Scenario.model_validate(text))
    drawn = generate(setting, 0)
    jobs = drawn.jobs.copy()
    jobs["arrival"], jobs["type"] = [50, 100, 250], [0, 1, 0]
    seconds = np.array([[100.0, 1000.0], [1000.0, 100.0], [50.0, 500.0]])
    workload = drawn._replace(jobs=jobs, seconds=seconds)
    assert offered_load(setting, workload) == pytest.approx(250 / 500)
    # a job that may not run there is counted where it may: 1,000 s in place of 100
    allowed = np.array([[False, True], [True, True], [True, True]])
    moved = offered_load(setting, workload._replace(allowed=allowed))
    assert moved == pytest.approx(1150 / 500)


@pytest.mark.parametrize("name", ["paper16", "hetero64", "rough64", "gavel16"])
@pytest.mark.parametrize("load", [0.5, 0.9])
def test_the_mean_offered_load_is_the_load_of_the_scenario(name, load):
    evenly = {
        "arrivals": find_scenario("paper16").arrivals
    }  # a daily wave would begin with a crowd
    scenario = find_scenario(name).model_copy(update=evenly)
    setting = prepare(adjusted(scenario, load=load, jobs=400))
    found = [offered_load(setting, generate(setting, seed)) for seed in range(60)]
    assert np.mean(found) == pytest.approx(load, rel=0.06)
    assert np.std(found) > 0.01


def test_the_load_of_a_history_is_that_of_its_own_jobs(tmp_path):
    # 100 + 2 * 50 + 20 GPU-seconds in 200 s; two GPUs do 400
    rows = "submit_time,run_s,gpus\n0,100,1\n100,50,2\n200,20,1\n"
    (tmp_path / "jobs.csv").write_text(rows)
    tables = {"cluster": {"nodes": [NODE]}, "history": "jobs.csv", "jobs": 3}
    wanted = scenario_of(tables, tmp_path / "mine.toml")
    tried = prepare(wanted)
    setting = prepare(adjusted(wanted, load=tried.played.rate / tried.capacity_per_s))
    assert offered_load(setting, generate(setting, 0)) == pytest.approx(220 / 400)
