"""What can happen to a cluster, as written down."""

import re

import pytest
from pydantic import ValidationError

from adlro.config.events import Failures, Throttling, Wear
from adlro.config.files import load_scenario
from tests.scenario_files import GOOD, change, colocated, of_node, refusal, top, with_table, write


@pytest.mark.parametrize(
    ("mtbf_h", "repair_h", "share"), [(9, 1, 0.9), (1, 1, 0.5), (1, 3, 0.25), (999, 1, 0.999)]
)
def test_a_node_is_up_for_its_share_of_a_cycle(mtbf_h, repair_h, share):
    assert Failures(mtbf_h=mtbf_h, repair_h=repair_h).availability == pytest.approx(share)


@pytest.mark.parametrize(
    ("named", "touched"), [((), ["a", "b"]), (("a",), ["a"]), (("a", "b"), ["a", "b"])]
)
def test_all_groups_fail_unless_some_are_named(named, touched):
    failures = Failures(mtbf_h=9, repair_h=1, nodes=named)
    assert [group for group in ("a", "b") if failures.touches(group)] == touched


@pytest.mark.parametrize("speed", [0, 1, 1.5, -0.5])
@pytest.mark.parametrize(("record", "kind"), [(Wear, "wear"), (Throttling, "throttling")])
def test_wear_and_heat_only_ever_slow_a_gpu_and_never_stop_it(record, kind, speed):
    with pytest.raises(ValidationError, match="speed"):
        record(kind=kind, to_h=1, speed=speed)


def test_a_throttled_gpu_is_twelve_degrees_hotter_unless_told_otherwise():
    assert Throttling(kind="throttling", to_h=1, speed=0.5).heat_c == 12


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
            "placement: input should be 'best-fit', 'fgd' or 'in-order', not 'worst-fit'",
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


@pytest.mark.parametrize("node", ['"volta"', '"volta-1"'])
def test_a_change_may_name_a_node_or_a_group_of_nodes(tmp_path, node):
    text = f'base = "paper16"\n[[changes]]\nkind = "wear"\nnode = {node}\nto_h = 1\nspeed = 0.5'
    [wear] = load_scenario(write(tmp_path, text)).changes
    assert isinstance(wear, Wear)


@pytest.mark.parametrize(("written", "both"), [("1.2", (1.2, 1.2)), ("[1.2, 1.2]", (1.2, 1.2))])
def test_one_slowdown_holds_both_ways(tmp_path, written, both):
    [entry] = load_scenario(write(tmp_path, colocated('["t", "t"]', written))).colocation
    assert entry.slowdown == both
