"""What stands out in a record: each kind fires on a history made for it, and else not."""

import pytest

from adlro.evaluate import findings
from adlro.evaluate.group_waits import GroupChange
from adlro.evaluate.stats import Estimate
from adlro.evaluate.variants import Variant
from adlro.model.slurm import Slurm, TresWeights
from tests.assessed import V100S, variants

HEAD = "id,submit,start,end,run_s,gpus,queue,gpu_model,account\n"
A100S = V100S | {"name": "ampere", "gpu": "A100", "gpu_type": "a100", "partitions": ["long"]}
NODES = (V100S | {"gpu_type": "v100", "partitions": ["main"]}, A100S)


def found_in(folder, lines, finder, **more):
    content = HEAD + "".join(lines)
    one = variants(folder, content, nodes=more.pop("nodes", NODES), **more)
    return finder(one.history, one.setting(Variant()))


def lines_of(gpu="v100", wait=3_600, jobs=20, run=8_640, queue="main", first=0):
    """Jobs of two GPUs, one every 8,640 s (20 in two days); they use half of four GPUs."""
    return [
        f"{queue}{i},{8_640 * i + first},{8_640 * i + first + wait},"
        f"{8_640 * i + first + wait + run},{run},2,{queue},{gpu},a\n"
        for i in range(jobs)
    ]


def test_gpus_that_nobody_uses_while_jobs_wait_are_named(tmp_path):
    [one] = found_in(tmp_path, lines_of(), findings.idle_gpus)
    assert (one.kind, one.name) == ("idle-gpus", "a100")
    assert one.text == (
        "4 a100 GPUs stand idle: 0.0 % in use, the others 50 %, while jobs wait 60 min on average"
    )


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (lines_of(wait=290), "nobody waits"),
        (lines_of(run=4_000), "the others are hardly used either"),
        (lines_of() + lines_of("a100", jobs=20, queue="long"), "both are used"),
        (lines_of(gpu=""), "where jobs ran is not known"),
    ],
)
def test_idle_gpus_are_no_finding_where(lines, why, tmp_path):
    assert found_in(tmp_path, lines, findings.idle_gpus) == [], why


def test_one_gpu_type_has_no_others_to_compare_with(tmp_path):
    assert found_in(tmp_path, lines_of(), findings.idle_gpus, nodes=NODES[:1]) == []


def test_a_partition_that_is_asked_for_more_than_it_has_is_named(tmp_path):
    # 20 jobs of 2 GPUs x 20,736 s = 829,440 GPU-s; 4 GPUs have 4 x 19 x 8,640 s = 656,640.
    lines = lines_of(run=20_736)
    [one] = found_in(tmp_path, lines, findings.overloaded_partitions)
    assert (one.kind, one.name) == ("overloaded-partition", "main")
    assert "its jobs need 1.26 times the GPU-hours that its 4 GPUs have from the first" in one.text
    assert "waits went" not in one.text  # they did not grow
    later = [*lines[:10], *lines_of(run=20_736, wait=36_000)[10:]]
    [one] = found_in(tmp_path, later, findings.overloaded_partitions)
    assert one.text.endswith("; mean waits went from 1.0 h to 10.0 h")


def test_a_partition_below_its_capacity_is_no_finding(tmp_path):
    lines = lines_of(run=16_000)  # 0.97 of it
    assert found_in(tmp_path, lines, findings.overloaded_partitions) == []


def test_the_jobs_of_a_few_hours_overload_nothing(tmp_path):
    lines = lines_of(run=20_736, jobs=10)
    assert found_in(tmp_path, lines, findings.overloaded_partitions) == []


def test_a_partition_without_nodes_and_a_history_without_partitions_are_no_findings(tmp_path):
    lines = [line.replace(",main,", ",,") for line in lines_of(run=20_736)]
    assert found_in(tmp_path, lines, findings.overloaded_partitions) == []


def change(name, before, after, jobs=50, grouping="account"):
    return GroupChange(
        grouping=grouping, name=name, jobs=jobs, before_s=before, after_s=after, longer_in=0,
        change_s=Estimate(mean=after - before, sd=None, ci95=None), assumptions=1,
    )  # fmt: skip


def test_an_account_that_the_weights_starve_is_named():
    found = findings.starved_accounts(
        [change("small", 7_200, 3_600), change("big", 1_800, 2_400), change("mid", 3_600, 3_600)]
    )
    [one] = found
    assert (one.kind, one.name) == ("starved-account", "small")
    assert one.text == (
        "account small is starved by the priority weights: its jobs wait 2.0 h on average, others "
        "0.8 h; in the order of submission it would be 1.0 h"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([change("a", 7_200, 3_600)], "there are no others"),
        ([change("a", 7_200, 3_600, jobs=19), change("b", 1_800, 0)], "it has few jobs"),
        ([change("a", 7_200, 4_400), change("b", 1_800, 0)], "it is not relieved"),
        ([change("a", 7_200, 3_600), change("b", 3_700, 0)], "others wait half as long"),
        ([change("a", 290, 0), change("b", 0, 0)], "it waits for minutes"),
        ([change("a", 7_200, 0, grouping="partition"), change("b", 0, 0)], "it is no account"),
    ],
)
def test_an_account_is_not_starved_where(changes, why):
    assert findings.starved_accounts(changes) == [], why


def test_without_weights_only_the_order_of_submission_is_left():
    slurm = Slurm(
        weight_age=1, weight_fairshare=2, weight_job_size=3, weight_partition=4, weight_qos=5,
        weight_tres=TresWeights(gpu=6), partition_tiers={"main": 2}, bf_interval_s=11,
    )  # fmt: skip
    assert findings.without_weights(slurm) == Slurm(bf_interval_s=11)
    assert findings.without_weights(Slurm()) == Slurm()
