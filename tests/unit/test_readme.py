"""What README promises must be what the program does."""

import re
from pathlib import Path

import pytest

from adlro.config.files import find_scenario, load_scenario
from adlro.evaluate.compare import compare
from adlro.policies import registry
from adlro.sim.simulator import is_compiled
from adlro.workloads.setting import prepare

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
EXAMPLE = Path(__file__).parents[2] / "examples" / "01_own_policy.py"


TABLES = pytest.mark.parametrize(("scenario", "policies"), [("paper16", 9), ("rough64", 5)])


@pytest.mark.slow
@TABLES
def test_each_table_is_what_its_command_prints(scenario, policies):
    check_table(scenario, policies, lambda policy: True)


@TABLES
def test_the_rows_of_compiled_policies_are_what_the_command_prints(scenario, policies):
    check_table(scenario, policies, lambda policy: is_compiled(policy.decide))


def check_table(scenario, policies, is_played):
    table = re.search(rf"```\n{scenario} · load .*?```", README, re.DOTALL)[0]
    rows = re.findall(r"^  ([a-z-]+) +([\d,]+) ± ([\d,]+) ", table, re.MULTILINE)
    setting = prepare(find_scenario(scenario))
    ready = [registry.load(name, setting) for name, _, _ in rows]
    played = [policy for policy in ready if is_played(policy)]
    result = compare(setting, played, range(50))
    means = {row.name: row.metrics["mean_jct_s"].mean for row in result.policies}
    assert len(rows) == policies
    assert len(played) > policies / 2
    shown = {name: float(mean.replace(",", "")) for name, mean, _ in rows if name in means}
    assert shown == {name: pytest.approx(mean, rel=0.001) for name, mean in means.items()}


def test_the_example_scenario_loads(tmp_path):
    text = next(t for t in re.findall(r"```toml\n(.*?)```", README, re.DOTALL))
    (tmp_path / "mine.toml").write_text(text)
    scenario = load_scenario(tmp_path / "mine.toml")
    assert [job_type.name for job_type in scenario.types] == ["training"]
    assert prepare(scenario).capacity_per_s > 0


def test_the_example_policy_is_the_file_and_runs():
    shown = next(t for t in re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    assert shown.strip() in EXAMPLE.read_text()
    setting = prepare(find_scenario("paper16"))
    policy = registry.load(str(EXAMPLE), setting)
    assert compare(setting, [policy], range(1)).policies[0].name == "01_own_policy"
