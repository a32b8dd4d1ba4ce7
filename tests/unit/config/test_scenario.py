"""Scenarios: what their keys mean, and how a mistake in one is named."""

import pytest

from adlro.config.files import load_scenario
from adlro.config.scenario import Estimates, Measure, Poisson, _as_measure
from adlro.errors import ConfigError
from adlro.model.job import Lognormal
from tests.scenario_files import (
    GOOD,
    NODES,
    SIZE,
    TYPE,
    change,
    changed,
    colocated,
    of_node,
    of_type,
    refusal,
    top,
    write,
)


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


OF_SCENARIO = ("load", "noise", "idle_weight", "user_skew", "users", "jobs")
OF_NODES = ("count", "gpus", "cores", "memory_gb", "link_gb_s", "network_gb_s")
OF_ARRIVALS = {
    'process = "bursty"': ("peak", "share", "length_s"),
    'process = "diurnal"': ("amplitude", "period_s"),
    'process = "surge", type = "t"': ("share", "at", "length_s"),
}
NUMBERS = [  # a scenario with VALUE for a number, and where that is
    *((top(f"{key} = VALUE"), key) for key in OF_SCENARIO),
    *((of_node(f"{key} = VALUE"), f"cluster.nodes.0.{key}") for key in OF_NODES),
    *(
        (top(f"arrivals = {{ {process}, {key} = VALUE }}"), f"arrivals.{key}")
        for process, keys in OF_ARRIVALS.items()
        for key in keys
    ),
]


@pytest.mark.parametrize("literal", ["nan", "inf", "-inf", "-1"])
@pytest.mark.parametrize(("text", "key"), NUMBERS)
def test_a_number_out_of_range_is_named(tmp_path, text, key, literal):
    path = write(tmp_path, text.replace("VALUE", literal))
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: {key}: input should be ")
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
    "written",
    ["", "nosy", "noisy", "noisy:", "noisy:-1", "noisy:nan", "Oracle", "memory:", "memory:2"],
)
def test_estimates_that_do_not_exist_are_answered_with_those_that_do(tmp_path, written):
    path = write(tmp_path, top(f'estimates = "{written}"'))
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: estimates: say oracle, noisy:S ")
    assert "user-mean or memory, the last four also with a quanti" in message
    assert message.endswith(f"not {written!r}")


@pytest.mark.parametrize("source", ["memory", "last-two", "last-two-alike", "user-mean"])
def test_an_estimator_that_learns_can_be_asked_for_a_quantile(tmp_path, source):
    found = load_scenario(write(tmp_path, top(f'estimates = "{source}:0.7"'))).estimates
    assert (found.source, found.quantile, str(found)) == (source, 0.7, f"{source}:0.7")


@pytest.mark.parametrize(
    "written", ["memory:", "memory:1", "memory:0.99", "memory:.01", "memory:x", "request:0.5"]
)
def test_a_quantile_that_cannot_be_is_refused_in_a_line(tmp_path, written):
    message = refusal(load_scenario, write(tmp_path, top(f'estimates = "{written}"')))
    assert "estimates" in message
    assert "\n" not in message
