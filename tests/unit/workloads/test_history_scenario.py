"""The scenario that replays a history, as tables of a scenario file."""

import pytest

from adlro.config.files import scenario_of
from adlro.workloads.generate import stretch_of
from adlro.workloads.history_scenario import at_recorded_pace, recorded_load, tables_of
from tests.assessed import HEAD, row, text, variants


def tables(folder, content=None, **more):
    one = variants(folder, content, **more)
    return tables_of(one.source, one.history, folder)


def test_the_tables_name_the_history_its_accounts_and_users(tmp_path):
    found = tables(tmp_path, text(40), recorded={"format": "", "lenient": True})
    assert found["history"] == {"file": "jobs.csv", "lenient": True, "unfit": "drop"}
    assert (found["users"], sorted(found["accounts"])) == (2, ["speech", "vision"])
    assert "slurm" not in found
    assert "placement" not in found  # only Slurm is known to fill nodes in order
    assert found["measure"] == "all"


def test_the_path_of_the_history_is_relative_to_the_folder_of_the_scenario(tmp_path):
    one, beside = variants(tmp_path, text(40)), tmp_path / "beside"
    beside.mkdir()
    assert tables_of(one.source, one.history, beside)["history"]["file"] == "../jobs.csv"


def test_slurm_settings_and_a_warm_up_are_passed_on(tmp_path):
    one = variants(tmp_path, text(40), slurm={"weight_age": 3})
    found = tables_of(one.source._replace(warm_up=0.25), one.history, tmp_path)
    assert (found["slurm"], found["measure"]) == ({"weight_age": 3}, "after 25 %")


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_jobs_arrive_at_the_recorded_pace_or_a_multiple_of_it(scale, tmp_path):
    wanted = scenario_of(tables(tmp_path, text(40)), tmp_path / "mine.toml")
    ready = at_recorded_pace(wanted, scale)
    assert stretch_of(ready) == pytest.approx(1 / scale)
    assert ready.scenario.load == pytest.approx(recorded_load(ready) * scale)


def test_jobs_that_all_came_at_once_have_no_pace(tmp_path):
    lines = (row(i, 0, 60) for i in range(10))
    wanted = scenario_of(tables(tmp_path, HEAD + "".join(lines)), tmp_path / "mine.toml")
    ready = at_recorded_pace(wanted)
    assert recorded_load(ready) == 0
    assert stretch_of(ready) == 1
