"""The public API: the names of `adlro`, what they cost to import, and what they compute."""

import subprocess
import sys
from pathlib import Path

import pytest

import adlro
from adlro import api
from adlro.errors import ConfigError, PolicyError
from tests.commands import called

PUBLIC = ["__version__", "compare", "load_policy", "load_scenario", "simulate"]


def test_the_public_names_are_listed_and_found():
    assert sorted(adlro.__all__) == PUBLIC
    assert set(PUBLIC) <= set(dir(adlro))
    assert [getattr(adlro, name) for name in PUBLIC[1:]] == [
        api.compare, api.load_policy, api.load_scenario, api.simulate,
    ]  # fmt: skip


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'adlro' has no attribute 'simulat'"):
        adlro.simulat  # noqa: B018  the access is what is tested


def test_importing_the_package_imports_nothing_else():
    code = "import sys, adlro; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    ours = {name for name in loaded if name.split(".")[0] == "adlro"}
    assert ours <= {"adlro", "adlro.gymnasium_plugin"}  # the second at the start of Python
    assert loaded.isdisjoint({"numpy", "numba", "click", "pydantic"})


def test_a_scenario_is_loaded_by_name_or_file_and_changed(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('base = "paper16"\njobs = 30\n')
    assert adlro.load_scenario("paper16").jobs == 400
    assert adlro.load_scenario(file).name == "mine"
    changed = adlro.load_scenario(str(file), load=0.95)
    assert (changed.jobs, changed.load) == (30, 0.95)
    with pytest.raises(ConfigError, match="unknown scenario 'paper17'; did you mean 'paper16'"):
        adlro.load_scenario("paper17")
    with pytest.raises(ConfigError, match="load"):
        adlro.load_scenario("paper16", load=-1)


def test_a_policy_is_loaded_by_name_or_file():
    example = Path(__file__).parents[2] / "examples" / "01_own_policy.py"
    scenario = adlro.load_scenario("paper16")
    assert adlro.load_policy("fcfs", scenario).name == "fcfs"
    assert adlro.load_policy(example, "paper16").file == example
    with pytest.raises(PolicyError, match="unknown policy 'fcsf'; did you mean 'fcfs'"):
        adlro.load_policy("fcsf", scenario)


def test_a_simulation_has_the_figures_of_the_command():
    scenario = adlro.load_scenario("paper16", jobs=40)
    found = adlro.simulate(scenario, "fcfs", seed=3)
    assert (found.policy, found.seed, len(found.run.outcome)) == ("fcfs", 3, 40)
    jct = found.run.outcome["finish"] - found.workload.jobs["arrival"]
    assert found.metrics.mean_jct_s == pytest.approx(jct.mean())
    options = ("--policy", "fcfs", "--seed", "3", "--jobs", "40", "--json", "-")
    told = called("simulate", "paper16", *options).stdout
    assert f'"mean_jct_s": {found.metrics.mean_jct_s}' in told


def test_min_min_is_simulated_unless_another_policy_is_named():
    scenario = adlro.load_scenario("paper16", jobs=10)
    loaded = adlro.load_policy("min-min", scenario)
    assert adlro.simulate(scenario).policy == "min-min"
    assert adlro.simulate(scenario, loaded).metrics == adlro.simulate(scenario).metrics


def test_a_comparison_takes_names_and_policies_and_seeds_or_a_range():
    scenario = adlro.load_scenario("paper16", jobs=40)
    both = ["fcfs", adlro.load_policy("min-min", scenario)]
    found = adlro.compare(scenario, both, seeds=2)
    assert [row.name for row in found.policies] == ["fcfs", "min-min"]
    assert (found.seeds, found.first_seed) == (2, 0)
    alone = adlro.simulate(scenario, "min-min", seed=1).metrics.mean_jct_s
    assert found.policies[1].per_seed["mean_jct_s"][1] == alone
    second = adlro.compare(scenario, ["min-min"], range(1, 2), threads=1)
    assert second.policies[0].jct == alone


@pytest.mark.parametrize(("policies", "seeds"), [([], 2), (["fcfs"], 0), (["fcfs"], range(3, 3))])
def test_a_comparison_of_nothing_is_refused(policies, seeds):
    with pytest.raises(ConfigError, match="at least one seed and one policy"):
        adlro.compare("paper16", policies, seeds)
