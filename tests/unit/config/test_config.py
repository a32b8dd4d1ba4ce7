"""Scenario files: what loads, what they mean, and how a mistake in one is told."""

import math
import re
from pathlib import Path

import pytest

from adlro.config.events import Failures, Throttling, Update, Wear
from adlro.config.files import adjusted, find_scenario, load_cluster, load_scenario, shipped
from adlro.config.quotas import Quota
from adlro.config.scenario import Bursty, Estimates, Measure, Poisson, Scenario, Surge, _as_measure
from adlro.errors import ConfigError
from adlro.model.cluster import NodeGroup
from adlro.model.job import Colocation, JobType, Lognormal
from adlro.workloads.setting import prepare
from tests.scenario_files import (
    GOOD,
    NODES,
    SIZE,
    TYPE,
    changed,
    of_node,
    of_type,
    refusal,
    top,
    with_table,
    write,
)

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


def test_what_a_file_leaves_out_has_its_default(tmp_path):
    scenario = load_scenario(write(tmp_path, GOOD))
    [job_type] = scenario.types
    assert (scenario.name, scenario.load, scenario.limit) == ("mine", 0.8, "none")
    assert (scenario.arrivals, scenario.estimates, scenario.measure) == (
        Poisson(),
        Estimates(),
        Measure(),
    )
    assert job_type.size == Lognormal(median_s=10, sigma=1, cap=20)
    assert (job_type.cores.values, job_type.cores.p) == ((1,), (1,))
    assert scenario.cluster.nodes[0].network_gb_s == 12.5


@pytest.mark.parametrize("literal", ["nan", "inf", "-inf", "-1"])
@pytest.mark.parametrize("key", ["load", "noise", "idle_weight", "user_skew", "users", "jobs"])
def test_a_number_of_the_scenario_out_of_range_is_named(tmp_path, key, literal):
    path = write(tmp_path, top(f"{key} = {literal}"))
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: {key}: input should be ")
    assert message.endswith(f", not {literal}")


@pytest.mark.parametrize("literal", ["nan", "inf", "-1"])
@pytest.mark.parametrize(
    "key", ["count", "gpus", "cores", "memory_gb", "link_gb_s", "network_gb_s"]
)
def test_a_number_of_a_group_of_nodes_out_of_range_is_named(tmp_path, key, literal):
    path = write(tmp_path, of_node(f"{key} = {literal}"))
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: cluster.nodes.0.{key}: input should be ")
    assert message.endswith(f", not {literal}")


def change(kind, keys):
    """The good scenario with one change."""
    return with_table(f'[[changes]]\nkind = "{kind}"\n{keys}')


def colocated(types, slowdown):
    """The good scenario with one figure of co-location."""
    return with_table(f"[[colocation]]\ntypes = {types}\nslowdown = {slowdown}")


@pytest.mark.parametrize("literal", ["nan", "inf", "-1"])
@pytest.mark.parametrize(
    ("arrivals", "key"),
    [
        ('process = "bursty", peak = {}', "peak"),
        ('process = "bursty", share = {}', "share"),
        ('process = "bursty", length_s = {}', "length_s"),
        ('process = "diurnal", amplitude = {}', "amplitude"),
        ('process = "diurnal", period_s = {}', "period_s"),
        ('process = "surge", type = "t", share = {}', "share"),
        ('process = "surge", type = "t", at = {}', "at"),
        ('process = "surge", type = "t", length_s = {}', "length_s"),
    ],
)
def test_a_number_of_the_arrivals_out_of_range_is_named(tmp_path, arrivals, key, literal):
    path = write(tmp_path, top(f"arrivals = {{ {arrivals.format(literal)} }}"))
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: arrivals.{key}: input should be ")
    assert message.endswith(f", not {literal}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (top("lod = 0.5"), "lod: unknown key"),
        (top("update = 1"), "update: unknown key"),
        (of_type("wear = 1"), "types.0.wear: unknown key"),
        (of_node("throttling = 1"), "cluster.nodes.0.throttling: unknown key"),
        (change("wear", "to_h = 1\nspeed = 0.5\nwear = 1"), "changes.0.wear: unknown key"),
        (changed("median_s = 10", "median_s = 10, pareto = 1"), "types.0.size.pareto: unknown key"),
        (top('arrivals = { process = "poisson", surge = 1 }'), "arrivals.surge: unknown key"),
        (changed('name = "c"', 'name = "c"\nplace = "x"'), "cluster.place: unknown key"),
        (of_node("gpu_count = 4"), "cluster.nodes.0.gpu_count: unknown key"),
        (of_type("core = 4"), "types.0.core: unknown key"),
        (changed("p = [", "odds = 1, p = ["), "types.0.gpus.odds: unknown key"),
        (
            changed("median_s = 10", "median_s = 10, mean = 3"),
            "types.0.size.mean: unknown",
        ),
        (of_type("priority = { lo = 0.1 }"), "types.0.priority.lo: unknown key"),
        (of_type("demand = { fp16 = 1 }"), "types.0.demand.fp16: unknown key"),
        (top('arrivals = { process = "poisson", peak = 3 }'), "arrivals.peak: unknown key"),
        (top("measure = { midle = 0.7 }"), "measure.midle: unknown key"),
        (top("estimates = { spread = 1 }"), "estimates.spread: unknown key"),
        (top("failures = { mtbf_h = 9, repair_h = 1, mttr_h = 1 }"), "failures.mttr_h: unknown"),
        (change("wear", "to_h = 1\nspeed = 0.5\nheat_c = 1"), "changes.0.heat_c: unknown key"),
        (change("update", "at = 1"), "changes.0.type: field required"),
        (colocated('["t", "t"]', "1.1\nslow = 1"), "colocation.0.slow: unknown key"),
    ],
)
def test_an_unknown_key_is_named_at_every_level(tmp_path, text, said):
    path = write(tmp_path, text)
    assert refusal(load_scenario, path).startswith(f"{path}: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (changed(TYPE, ""), "types: field required"),
        (changed("gpus = 4\n", ""), "cluster.nodes.0.gpus: field required"),
        (changed('name = "t"\n', ""), "types.0.name: field required"),
        (top("jobs = 0"), "jobs: input should be greater than or equal to 1, not 0"),
        (top("jobs = 1.5"), "jobs: input should be a valid integer, .*, not 1.5"),
        (top('jobs = "many"'), "jobs: input should be a valid integer, .*, not 'many'"),
        (top("load = 0"), "load: input should be greater than 0, not 0"),
        (top("load = 101"), "load: input should be less than or equal to 100, not 101"),
        (top('limit = "kil"'), "limit: input should be 'none' or 'kill', not 'kil'"),
        (top("accounts = []"), r"accounts: .* at least 1 item .*not \[\]"),
        (changed('kind = "ml"', 'kind = "mll"'), "types.0.kind: .*, not 'mll'"),
        (changed('kind = "ml"\n', ""), "types.0: needs 'kind', 'demand' or 'speed'"),
        (changed('kind = "ml"', "demand = { fp32 = 0.5 }"), "types.0.demand: .* sum to 1, not 0.5"),
        (
            of_type("priority = { low = 0.9, high = 0.5 }"),
            "types.0.priority: low 0.9 is above high 0.5",
        ),
        (
            changed("share = 1.0", "share = 0"),
            "types.0.share: input should be greater than 0, not 0",
        ),
        (changed(SIZE, "size = { median_s = 0 }"), "types.0.size.median_s: .*, not 0"),
        (
            changed(SIZE, "size = { median_s = 1, cap = 1 }"),
            "types.0.size.cap: .*, not 1",
        ),
        (changed(SIZE, 'size = { law = "normal" }'), "types.0.size: input tag 'normal'"),
        (top('arrivals = { process = "poison" }'), "arrivals: input tag 'poison'"),
        (
            top('arrivals = { process = "bursty", peak = 9, share = 0.5 }'),
            "arrivals: peak 9 x share 0.5 is more than all arrivals",
        ),
        (GOOD + TYPE, r".*two job types have the same name: \['t', 't'\]"),
        (
            changed(NODES, NODES + NODES),
            "cluster: two groups of nodes are called 'n'",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_key_and_value(tmp_path, text, said):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=f"^{path}: {said}"):
        load_scenario(path)
    refusal(load_scenario, path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (changed('gpu = "V100"', 'gpu = "V10"'), "cluster.nodes.0.gpu"),
        (top('affinity = { t = "V10" }'), "affinity"),
        (of_type('models = ["T4", "V10"]'), "types.0.models"),
        (of_type("speed = { V10 = 1.0 }"), "types.0.speed"),
    ],
)
def test_an_unknown_gpu_model_is_named_by_file_and_key_with_a_near_miss(tmp_path, text, key):
    path = write(tmp_path, text)
    message = refusal(load_scenario, path)
    assert "unknown GPU model 'V10': did you mean 'V100 32GB'" in message
    assert message.startswith(f"{path}: {key}")


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('affinity = { tt = "V100" }', "affinity"),
        ('arrivals = { process = "surge", type = "tt" }', "arrivals"),
    ],
)
def test_an_unknown_job_type_is_named_by_file_and_key_with_a_near_miss(tmp_path, line, key):
    path = write(tmp_path, top(line))
    message = refusal(load_scenario, path)
    assert message.endswith("unknown job type 'tt'; did you mean 't'?")
    assert message.startswith(f"{path}: {key}")


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


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ("all", 1),
        ("all jobs", 1),
        ("middle 70 %", 0.7),
        ("middle 70%", 0.7),
        ("middle 12.5 %", 0.125),
    ],
)
def test_a_measure_is_written_in_words(tmp_path, written, share):
    scenario = load_scenario(write(tmp_path, top(f'measure = "{written}"')))
    assert scenario.measure.middle == share


@pytest.mark.parametrize(
    ("middle", "words"), [(1.0, "all jobs"), (0.7, "middle 70 %"), (0.07, "middle 7 %")]
)
def test_a_measure_reads_back_as_it_is_written(middle, words):
    assert str(Measure(middle=middle)) == words
    assert _as_measure(words) == ({} if middle == 1 else {"middle": middle})


@pytest.mark.parametrize(
    ("middle", "jobs", "window"),
    [
        (1.0, 400, slice(0, 400)),
        (0.7, 400, slice(60, 340)),  # 15 % are cut at each end
        (0.7, 7, slice(1, 6)),  # 7 * 0.15 = 1.05
        (0.5, 1, slice(0, 1)),
    ],
)
def test_the_middle_is_what_is_left_when_both_ends_are_cut_alike(middle, jobs, window):
    assert Measure(middle=middle).window(jobs) == window


@pytest.mark.parametrize(
    ("written", "jobs", "window"),
    [
        ("after 10 %", 400, slice(40, 400)),
        ("after 12.5%", 8, slice(1, 8)),
        ("after 99 %", 1, slice(0, 1)),  # never none
    ],
)
def test_a_warm_up_is_cut_at_the_beginning_alone(tmp_path, written, jobs, window):
    measure = load_scenario(write(tmp_path, top(f'measure = "{written}"'))).measure
    assert measure.window(jobs) == window
    assert _as_measure(str(measure)) == {"warm_up": measure.warm_up}


def test_a_warm_up_and_the_middle_exclude_each_other(tmp_path):
    path = write(tmp_path, top("measure = { middle = 0.5, warm_up = 0.1 }"))
    assert "say the middle or a warm-up, not both" in refusal(load_scenario, path)


@pytest.mark.parametrize("jobs", [1, 2, 3, 10, 400])
@pytest.mark.parametrize("middle", [0.001, 0.1, 0.7])
def test_the_middle_of_some_jobs_is_never_empty(middle, jobs):
    window = Measure(middle=middle).window(jobs)
    assert len(range(jobs)[window]) >= 1


@pytest.mark.parametrize(
    "written", ["", "midle 70 %", "middle", "middle -5 %", "middle 70", "70 %"]
)
def test_a_measure_that_is_no_measure_is_answered_with_examples(tmp_path, written):
    path = write(tmp_path, top(f'measure = "{written}"'))
    said = f"{path}: measure: say 'all', 'middle 70 %' or 'after 10 %', not {written!r}"
    assert refusal(load_scenario, path) == said


@pytest.mark.parametrize(("written", "value"), [("middle 0 %", "0.0"), ("middle 170 %", "1.7")])
def test_a_share_of_nothing_or_more_than_all_cannot_be_measured(tmp_path, written, value):
    path = write(tmp_path, top(f'measure = "{written}"'))
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: measure.middle: input should be ")
    assert message.endswith(f"not {value}")


@pytest.mark.parametrize(
    ("written", "source", "sigma"),
    [("oracle", "oracle", 0), ("request", "request", 0), ("noisy:0.5", "noisy", 0.5)],
)
def test_estimates_are_written_in_words_and_read_back(tmp_path, written, source, sigma):
    scenario = load_scenario(write(tmp_path, top(f'estimates = "{written}"')))
    assert scenario.estimates == Estimates(source=source, sigma=sigma)
    assert str(scenario.estimates) == written


@pytest.mark.parametrize(
    "written", ["", "nosy", "noisy", "noisy:", "noisy:-1", "noisy:nan", "Oracle"]
)
def test_estimates_that_do_not_exist_are_answered_with_those_that_do(tmp_path, written):
    path = write(tmp_path, top(f'estimates = "{written}"'))
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: estimates: say oracle, noisy:S ")
    assert message.endswith(f"request, last-two, user-mean or memory, not {written!r}")


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


def test_nothing_goes_wrong_unless_the_file_says_so(tmp_path):
    scenario = load_scenario(write(tmp_path, GOOD))
    assert (scenario.failures, scenario.changes, scenario.colocation) == (None, (), ())
    assert (scenario.least_run_s, scenario.placement) == (0, "best-fit")
    assert scenario.telemetry is False
    assert scenario.types[0].checkpoint_every_s is None
    assert scenario.types[0].gpu_share.values == (1,)
    assert (scenario.cluster.nodes[0].joins_h, scenario.cluster.nodes[0].leaves_h) == (0, None)


@pytest.mark.parametrize("literal", ["nan", "inf", "-1", '"x"'])
@pytest.mark.parametrize(
    ("text", "key"),
    [
        (top("least_run_s = {}"), "least_run_s"),
        (top("failures = {{ mtbf_h = {}, repair_h = 1 }}"), "failures.mtbf_h"),
        (top("failures = {{ mtbf_h = 1, repair_h = {} }}"), "failures.repair_h"),
        (of_node("joins_h = {}"), "cluster.nodes.0.joins_h"),
        (of_node("leaves_h = {}"), "cluster.nodes.0.leaves_h"),
        (change("wear", "speed = 0.5\nto_h = {}"), "changes.0.to_h"),
        (change("wear", "speed = {}\nto_h = 1"), "changes.0.speed"),
        (change("throttling", "speed = 0.5\nto_h = 1\nheat_c = {}"), "changes.0.heat_c"),
        (
            change("update", 'type = "t"\nmodel = "V100"\nat_h = {}\nspeed = 1'),
            "changes.0.at_h",
        ),
        (
            change("update", 'type = "t"\nmodel = "V100"\nat_h = 1\nspeed = {}'),
            "changes.0.speed",
        ),
        (colocated('["t", "t"]', "{}"), "colocation.0.slowdown"),
    ],
)
def test_a_number_of_what_goes_wrong_out_of_range_is_named(tmp_path, text, key, literal):
    written = text.replace("{}", literal).replace("{{", "{").replace("}}", "}")
    path = write(tmp_path, written)
    assert refusal(load_scenario, path).startswith(f"{path}: {key}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            top('placement = "worst-fit"'),
            "placement: input should be 'best-fit' or 'fgd', not 'worst-fit'",
        ),
        (top('telemetry = "maybe"'), "telemetry: input should be a valid boolean, .*, not 'maybe'"),
        (
            top("failures = { mtbf_h = 1, repair_h = 3 }"),
            "failures: mtbf_h = 1 and repair_h = 3 leave 0.25 of 1 nodes up on average; raise",
        ),
        (
            top("failures = { mtbf_h = 1, repair_h = 20 }").replace(
                "gpus = 4", "gpus = 4\ncount = 9"
            ),
            "failures: mtbf_h = 1 and repair_h = 20 leave 0.43 of 9 nodes up on average",
        ),
        (
            top('failures = { mtbf_h = 9, repair_h = 1, nodes = ["m"] }'),
            "failures.nodes: unknown group of nodes 'm'; known: n$",
        ),
        (change("war", ""), "changes.0: input tag 'war' found using 'kind' does not match any"),
        (
            change("wear", "from_h = 2\nto_h = 2\nspeed = 0.5"),
            "changes.0: from_h 2 is not before to_h 2",
        ),
        (change("wear", "to_h = 2\nspeed = 1"), "changes.0.speed: .* less than 1, not 1"),
        (
            change("wear", 'node = "nn"\nto_h = 2\nspeed = 0.5'),
            r"changes.0.node: unknown node 'nn'; did you mean 'n'\?",
        ),
        (
            change("throttling", "gpu = 4\nto_h = 2\nspeed = 0.5"),
            "changes.0.gpu: no GPU 4 on a node of 4; they count from 0",
        ),
        (
            change("wear", "count = 5\nto_h = 2\nspeed = 0.5"),
            "changes.0.count: 5 GPUs are more than the 4 meant",
        ),
        (
            change("wear", "count = 2\ngpu = 0\nto_h = 2\nspeed = 0.5"),
            "changes.0.count: 2 GPUs are more than the 1 meant",
        ),
        (
            change("update", 'type = "tt"\nmodel = "V100"\nat_h = 1\nspeed = 2'),
            r"changes.0.type: unknown job type 'tt'; did you mean 't'\?",
        ),
        (
            change("update", 'type = "t"\nmodel = "V10"\nat_h = 1\nspeed = 2'),
            "changes.0.model: unknown GPU model 'V10': did you mean 'V100 32GB'",
        ),
        (
            change("update", 'type = "t"\nmodel = "V100 16GB"\nat_h = 1\nspeed = 2'),
            r"changes.0.model: unknown model here 'V100 16GB'; did you mean 'V100 32GB'\?",
        ),
        (colocated('["t", "u"]', "1.1"), "colocation.0.types: unknown job type 'u'; known: t$"),
        (colocated('["t", "t"]', "[1.1, 1.2]"), r"colocation.0: two slowdowns \(1.1, 1.2\) of one"),
        (colocated('["t"]', "1.1"), "colocation.0.types.1: field required"),
        (
            colocated('["t", "t", "t"]', "1.1"),
            r"colocation.0.types: should have at most 2 entries, not \['t', 't', 't'\]$",
        ),
        (colocated('["t", "t"]', "true"), "colocation.0.slowdown.0: .* valid number, not True$"),
        (colocated('["t", "t"]', "[1, true]"), "colocation.0.slowdown.1: .* number, not True$"),
        (with_table("[[changes]]\nto_h = 1\nspeed = 0.5"), "changes.0: 'kind' is missing$"),
        (top("changes = [3]"), "changes.0: should be a table, not 3$"),
        (top("failures = true"), "failures: should be a table, not True$"),
        (top("failures = 0"), "failures: should be a table, not 0$"),
        (colocated('["t", "t"]', "0.9"), "colocation.0.slowdown.0: .* equal to 1, not 0.9"),
        (
            colocated('["t", "t"]', "1.1") + "[[colocation]]\ntypes=['t', 't']\nslowdown = 1",
            "colocation.1: t and t are there twice",
        ),
    ],
)
def test_what_is_wrong_with_failures_and_changes_is_said_in_one_line(tmp_path, text, said):
    path = write(tmp_path, text)
    assert re.search(f"^{re.escape(str(path))}: {said}", refusal(load_scenario, path))


@pytest.mark.parametrize(
    "failures", ["{ mtbf_h = 1, repair_h = 1 }", "{ mtbf_h = 9, repair_h = 1 }"]
)
def test_a_cluster_of_one_node_may_fail_if_it_is_up_at_least_half_of_the_time(tmp_path, failures):
    scenario = load_scenario(write(tmp_path, top(f"failures = {failures}")))
    assert scenario.failures.touches("n")


def test_failures_of_a_base_can_be_switched_off(tmp_path):
    base = find_scenario("rough64")
    mine = load_scenario(write(tmp_path, 'base = "rough64"\nfailures = false'))
    assert mine == base.model_copy(update={"name": "mine", "failures": None})


@pytest.mark.parametrize("node", ['"volta"', '"volta-1"'])
def test_a_change_may_name_a_node_or_a_group_of_nodes(tmp_path, node):
    text = f'base = "paper16"\n[[changes]]\nkind = "wear"\nnode = {node}\nto_h = 1\nspeed = 0.5'
    [wear] = load_scenario(write(tmp_path, text)).changes
    assert isinstance(wear, Wear)


@pytest.mark.parametrize(("written", "both"), [("1.2", (1.2, 1.2)), ("[1.2, 1.2]", (1.2, 1.2))])
def test_one_slowdown_holds_both_ways(tmp_path, written, both):
    [entry] = load_scenario(write(tmp_path, colocated('["t", "t"]', written))).colocation
    assert entry.slowdown == both


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
    [text] = re.findall(r"```toml\n(.*?)```", DOCS, re.DOTALL)
    scenario = load_scenario(write(tmp_path, text))
    assert prepare(scenario).capacity_per_s > 0
    assert len(scenario.changes) == 3


@pytest.mark.parametrize(
    "record",
    [Scenario, JobType, NodeGroup, Failures, Wear, Throttling, Update, Colocation, Quota],
)
def test_the_documentation_names_every_key(record):
    assert [key for key in record.model_fields if f"`{key}`" not in DOCS] == []
