"""Scenario files: which there are, how one is laid over its base, and what cannot be read."""

import math
import os
import re
from pathlib import Path

import pytest

from adlro.config.events import Failures, Throttling, Update, Wear
from adlro.config.files import (
    adjusted,
    find_cluster,
    find_scenario,
    load_cluster,
    load_scenario,
    shipped,
)
from adlro.config.quotas import Quota
from adlro.config.scenario import Bursty, Scenario, Surge
from adlro.errors import ConfigError
from adlro.model.cluster import NodeGroup
from adlro.model.job import Colocation, JobType
from adlro.model.slurm import Slurm
from adlro.workloads.setting import prepare
from tests.scenario_files import NODES, TYPE, refusal, write

SHIPPED = [
    "datacenter",
    "gavel16",
    "hetero64",
    "paper16",
    "paper16-single",
    "paper16-surge",
    "quotas64",
    "rough64",
]
DOCS = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_loads_under_its_own_name(name):
    assert find_scenario(name).name == name


def test_these_scenarios_are_shipped():
    assert sorted(shipped()) == SHIPPED


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("load = ", "is not valid TOML: Invalid value"),
        ("load = 1\nload = 2", "is not valid TOML: Cannot overwrite a value"),
        ('name = "one\ntwo"', "is not valid TOML: Illegal character"),
        ("\0", "is not valid TOML: Invalid statement"),
    ],
)
def test_malformed_toml_is_told_with_the_place(tmp_path, text, said):
    path = write(tmp_path, text)
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: {said}")
    assert "(at " in message


def test_a_file_that_is_not_utf_8_is_told_with_the_byte(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"name = '\xff'")
    assert refusal(load_scenario, path) == f"{path}: is not text (byte 8 is not UTF-8)"


def test_a_missing_file_is_named(tmp_path):
    path = tmp_path / "none.toml"
    said = f"{path}: cannot be read: No such file or directory"
    assert refusal(find_scenario, str(path)) == said


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("papr16", "did you mean 'paper16' or"),
        ("PAPER16", "did you mean 'paper16' or"),
        ("zzzz", "known: datacenter, gavel16, "),
    ],
)
def test_an_unknown_scenario_is_answered_with_near_misses_or_all_there_are(name, advice):
    assert refusal(find_scenario, name).startswith(f"unknown scenario {name!r}; {advice}")


def test_a_path_is_never_taken_for_a_shipped_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refusal(find_scenario, "./paper16").startswith("paper16: cannot be read")


@pytest.mark.parametrize("base", ['"paper17"', '"mine"', "3", '["paper16"]'])
def test_an_unknown_base_is_named(tmp_path, base):
    path = write(tmp_path, f"base = {base}")
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: base: unknown scenario ")
    assert "paper16" in message


@pytest.mark.parametrize("types", ["types = [3]", '[[types]]\nname = ["x"]', "types = 3"])
def test_job_types_that_are_no_tables_are_refused_over_a_base_too(tmp_path, types):
    path = write(tmp_path, f'base = "paper16"\n{types}')
    assert refusal(load_scenario, path).startswith(f"{path}: types")


def test_a_base_is_changed_only_where_the_file_says_so(tmp_path):
    text = 'base = "paper16"\nload = 0.5\n[[types]]\nname = "ml"\ncores = 3\n'
    base = find_scenario("paper16")
    mine = load_scenario(write(tmp_path, text))
    old = {job_type.name: job_type for job_type in base.types}
    assert mine.name == "mine"
    assert mine.load == 0.5
    assert (mine.cluster, mine.affinity, mine.noise) == (base.cluster, base.affinity, base.noise)
    assert [t.name for t in mine.types] == ["simulation", "ml", "data"]
    assert mine.types[0] == old["simulation"]
    assert mine.types[1].cores.values == (3,)
    assert mine.types[1] == old["ml"].model_copy(update={"cores": mine.types[1].cores})


def test_a_type_that_the_base_does_not_have_is_added(tmp_path):
    new = '[[types]]\nname = "new"\nshare = 0.5\nkind = "ml"\nsize = { median_s = 9 }\n'
    mine = load_scenario(write(tmp_path, f'base = "paper16"\n{new}'))
    assert [t.name for t in mine.types] == ["simulation", "ml", "data", "new"]


def test_the_single_gpu_scenario_is_paper16_with_gangs_of_one():
    single, base = find_scenario("paper16-single"), find_scenario("paper16")
    one = single.types[0].gpus
    assert one.values == (1,)
    assert single.types == tuple(t.model_copy(update={"gpus": one}) for t in base.types)
    assert (single.cluster, single.jobs, single.load) == (base.cluster, base.jobs, base.load)


def test_the_surge_is_paper16_with_a_wave_of_machine_learning():
    surge, base = find_scenario("paper16-surge"), find_scenario("paper16")
    assert surge.arrivals == Surge(process="surge", type="ml", share=0.25, at=0.4, length_s=1800)
    assert (surge.types, surge.cluster) == (base.types, base.cluster)


def test_a_cluster_file_is_looked_up_beside_the_scenario(tmp_path):
    write(tmp_path, NODES.replace("cluster.nodes", "nodes"), "ours.toml")
    text = 'cluster = "ours.toml"\n' + TYPE
    assert load_scenario(write(tmp_path, text)).cluster.nodes[0].gpus == 4


def test_a_cluster_file_that_is_missing_is_named(tmp_path):
    path = write(tmp_path, 'cluster = "ours.toml"\n' + TYPE)
    said = f"{tmp_path / 'ours.toml'}: cannot be read: No such file or directory"
    assert refusal(load_scenario, path) == said


def test_a_mistake_in_a_cluster_file_is_named_by_that_file(tmp_path):
    path = write(tmp_path, '[[nodes]]\nname = "n"\ngpu = "V100"\ngpus = 0\n', "ours.toml")
    message = refusal(load_cluster, path)
    assert message == f"{path}: nodes.0.gpus: input should be greater than or equal to 1, not 0"


def test_an_adjusted_scenario_differs_only_in_what_was_given():
    base = find_scenario("paper16")
    mine = adjusted(base, load=0.5, estimates="noisy:0.3", jobs=None)
    assert (mine.load, str(mine.estimates), mine.jobs) == (0.5, "noisy:0.3", 400)
    assert mine.model_copy(update={"load": base.load, "estimates": base.estimates}) == base


def test_an_adjusted_scenario_without_changes_is_the_same():
    scenario = find_scenario("datacenter")
    assert isinstance(scenario.arrivals, Bursty)
    assert adjusted(scenario) == scenario


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"load": 0.0}, "input should be greater than 0, not 0.0"),
        ({"load": math.nan}, "input should be a finite number, not nan"),
        ({"load": None, "jobs": -1}, "input should be greater than or equal to 1, not -1"),
        ({"jobs": 5, "estimates": "nosy"}, "say oracle, .* not 'nosy'"),
    ],
)
def test_a_wrong_option_is_named(changes, said):
    wrong = list(changes)[-1]
    with pytest.raises(ConfigError, match=rf"^--{wrong}: .*{said}$"):
        adjusted(find_scenario("paper16"), **changes)


def test_a_base_may_have_a_base_of_its_own(tmp_path):
    mine = load_scenario(write(tmp_path, 'base = "paper16-single"\nload = 0.5\n'))
    single = find_scenario("paper16-single")
    assert mine.types == single.types
    assert mine.cluster == single.cluster
    assert mine.load == 0.5


def test_failures_of_a_base_can_be_switched_off(tmp_path):
    base = find_scenario("rough64")
    mine = load_scenario(write(tmp_path, 'base = "rough64"\nfailures = false'))
    assert mine == base.model_copy(update={"name": "mine", "failures": None})


def test_a_scenario_with_everything_in_it_survives_being_adjusted():
    scenario = find_scenario("rough64")
    assert adjusted(scenario) == scenario


def test_the_rough_scenario_is_hetero64_and_has_some_of_everything():
    rough, base = find_scenario("rough64"), find_scenario("hetero64")
    assert [t.name for t in rough.types] == [*(t.name for t in base.types), "notebook"]
    assert {type(one) for one in rough.changes} == {Wear, Throttling, Update}
    assert rough.failures is not None
    assert rough.telemetry
    groups = {group.name: group for group in rough.cluster.nodes}
    late = [name for name, group in groups.items() if group.joins_h > 0]
    assert [groups[name].gpu for name in late] == ["MI300X"]
    assert sum(group.gpu == "MI300X" for group in groups.values()) == 1  # a model not there before
    assert [name for name, group in groups.items() if group.leaves_h] == ["volta-old"]


def test_the_scenario_with_quotas_is_hetero64_shared_by_three_accounts():
    scenario = find_scenario("quotas64")
    assert [(q.account, q.share) for q in scenario.quotas] == [
        ("research", 0.5),
        ("product", 0.3),
        ("students", 0.2),
    ]
    assert scenario.types == find_scenario("hetero64").types
    assert prepare(scenario).quotas.caps.max() == 4


def test_the_example_of_the_documentation_can_be_run(tmp_path):
    _, text = re.findall(r"```toml\n(.*?)```", DOCS, re.DOTALL)
    scenario = load_scenario(write(tmp_path, text))
    assert prepare(scenario).capacity_per_s > 0
    assert len(scenario.changes) == 3


@pytest.mark.parametrize(
    "record",
    [Scenario, JobType, NodeGroup, Failures, Wear, Throttling, Update, Colocation, Quota, Slurm],
)
def test_the_documentation_names_every_key(record):
    assert [key for key in record.model_fields if f"`{key}`" not in DOCS] == []


def both(path):
    """What is said of a file as a scenario and as a cluster; the same."""
    said = {refusal(find_scenario, str(path)), refusal(find_cluster, str(path))}
    assert len(said) == 1
    return said.pop().removeprefix(f"{path}: ")


@pytest.mark.parametrize("first", ['base = "paper16"', 'history = "jobs.csv"'])
@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("cluster = []", "cluster: should be a table, not []"),
        ("cluster = 1", "cluster: should be a table, not 1"),
        ("cluster = { nodes = 3 }", "cluster.nodes: should be a list ([[ ]] makes"),
        ('cluster = { nodes = "n" }', "cluster.nodes: should be a list ([[ ]] makes"),
        ("cluster = { nodes = [1] }", "cluster.nodes.0: should be a table, not 1"),
    ],
)
def test_a_cluster_that_is_no_table_is_named_by_its_key(tmp_path, first, cluster, said):
    assert both(write(tmp_path, f"{first}\n{cluster}\n")).startswith(said)


DIGITS = "9" * 10_000
HEX = "0x" + "f" * 10_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + "[" * 5000, "brackets are nested too deeply; remove some"),
        ("x = " + "{ a = " * 5000, "brackets are nested too deeply; remove some"),
        (f"jobs = {DIGITS}", "a number has thousands of digits; write fewer"),
        (f'base = "paper16"\njobs = {HEX}', "jobs: .*, not a number of thousands of digits"),
        (f'base = "paper16"\nload = {HEX}', "load: .*, not a number of thousands of digits"),
        ('base = "paper16"\nload = 1e999', "load: input should be a finite number, not inf"),
        ('base = "paper16"\nload = 1' + "0" * 400, "load: input should be .*, not 10{199} …"),
        ('name = "\\ud800"', "is not valid TOML: Escaped character is not"),
    ],
)
def test_numbers_and_brackets_without_end_are_refused(tmp_path, text, said):
    assert re.match(said, both(write(tmp_path, text)))


def test_a_cluster_file_with_a_null_in_its_name_cannot_be_read(tmp_path):
    path = write(tmp_path, 'base = "paper16"\ncluster = "a\\u0000b"')
    assert refusal(find_scenario, str(path)).endswith("cannot be read: embedded null byte")


def test_a_file_without_an_end_or_a_pipe_without_a_writer_is_refused(tmp_path):
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    assert both(tmp_path / "zero.toml") == "cannot be read: it is larger than 16 MiB"
    os.mkfifo(tmp_path / "pipe.toml")
    assert both(tmp_path / "pipe.toml") == "cluster: field required"
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    assert both(tmp_path / "loop.toml").startswith("cannot be read: Too many levels")


def test_a_pipe_is_read_once(tmp_path):
    source, target = os.pipe()
    os.write(target, b'base = "paper16"\n')
    os.close(target)
    assert find_cluster(f"/dev/fd/{source}") == find_scenario("paper16").cluster
    os.close(source)


def test_a_file_name_that_is_not_utf_8_gives_a_printable_name(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9\x1b.toml")
    path.write_text('base = "paper16"\n')
    assert load_scenario(path).name == "caf\\xe9\\x1b"
