"""A Slurm configuration is read into the table [slurm]."""

from pathlib import Path

import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.config.slurm import read_slurm
from adlro.errors import ConfigError
from adlro.model.slurm import Slurm, TresWeights

SAMPLE = Path(__file__).parents[2] / "data" / "slurm" / "config.txt"


def read(tmp_path, text, partitions=()):
    path = tmp_path / "slurm.txt"
    path.write_text(text)
    return read_slurm(path, partitions)


def refused(tmp_path, text):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    message = str(caught.value).replace(str(tmp_path / "slurm.txt"), "FILE")
    assert "\n" not in message
    return message


def test_what_scontrol_shows_is_read():
    found = read_slurm(SAMPLE, ["short", "long"])
    assert found.slurm == Slurm(
        weight_age=1000,
        weight_fairshare=10_000,
        weight_job_size=50,
        weight_partition=200,
        weight_qos=300,
        weight_tres=TresWeights(cpu=10, gpu=400),
        max_age_s=14 * 86_400,
        favor_small=True,
        partition_factors={"short": 0.5, "long": 0.25},  # of the highest, cpu's
        partition_tiers={"short": 3},
        default_queue_depth=30,
        bf_interval_s=20,
        bf_window_min=2880,
        bf_max_job_test=250,
    )
    assert found.ignored == ("bf_continue",)


def test_partitions_that_the_cluster_does_not_have_are_left_out():
    slurm = read_slurm(SAMPLE, ["long"]).slurm
    assert (slurm.partition_factors, slurm.partition_tiers) == ({"long": 0.25}, {})


def test_a_slurm_conf_is_read_too(tmp_path):
    text = """
    # PriorityType=priority/basic
schedulertype=sched/builtin   # no backfill
PriorityMaxAge=3-12
PriorityWeightAge=7
PartitionName=DEFAULT PriorityTier=4 State=UP
PartitionName=a Nodes=ALL Default=YES
PartitionName=b Nodes=ALL PriorityTier=2
"""
    slurm = read(tmp_path, text, ["a", "b"]).slurm
    assert (slurm.scheduler, slurm.weight_age, slurm.max_age_s) == ("builtin", 7, 3.5 * 86_400)
    assert slurm.partition_tiers == {"a": 4, "b": 2}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("30:10", 1810),
        ("2:30:10", 9010),
        ("1-0", 86_400),
        ("1-02:30", 86_400 + 9000),
        ("1-02:30:10", 86_400 + 9010),
    ],
)
def test_times_are_written_in_many_ways(tmp_path, text, seconds):
    config = f"SchedulerType = sched/backfill\nPriorityMaxAge = {text}\n"
    assert read(tmp_path, config).slurm.max_age_s == seconds


def test_what_is_not_set_is_slurms_default(tmp_path):
    text = "SchedulerType = sched/backfill\nSchedulerParameters = (null)\nPriorityMaxAge = (null)\n"
    assert read(tmp_path, text).slurm == Slurm()


def test_a_backfill_interval_of_minus_one_means_no_backfill(tmp_path):
    assert read(tmp_path, "SchedulerParameters = bf_interval=-1").slurm.scheduler == "builtin"


def test_settings_that_have_no_effect_are_named(tmp_path):
    text = """PriorityType = priority/multifactor
PriorityFlags = FAIR_TREE
PriorityWeightAssoc = 5
PriorityWeightTRES = license/matlab=3,gres/gpu=4
PreemptType = preempt/qos
SchedulerParameters = batch_sched_delay=0,bf_yield_interval=9
"""
    found = read(tmp_path, text)
    assert found.ignored == (
        "batch_sched_delay",
        "bf_yield_interval",
        "PriorityWeightTRES license/matlab",
        "PriorityWeightAssoc",
        "PriorityFlags",
        "PreemptType",
    )
    assert found.slurm.weight_tres.gpu == 4


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "SchedulerType = sched/wiki",
            "FILE:2: SchedulerType: expected sched/backfill or sched/builtin, which the policy "
            "slurm plays, got 'sched/wiki'",
        ),
        (
            "PriorityWeightAge = much",
            "FILE:2: PriorityWeightAge: expected a whole number, got 'much'",
        ),
        (
            "PriorityMaxAge = 7 days",
            "FILE:2: PriorityMaxAge: expected a time such as 7-00:00:00, got '7 days'",
        ),
        ("PriorityFavorSmall = 2", "FILE:2: PriorityFavorSmall: expected Yes or No, got '2'"),
        (
            "SchedulerParameters = bf_window",
            "FILE:2: bf_window: expected a whole number, got ''",
        ),
        (
            "SchedulerParameters = bf_resolution=0",
            "FILE: bf_resolution_s: input should be greater than or equal to 1, not 0",
        ),
        (
            "PartitionName=a PriorityTier=high",
            "FILE:2: PriorityTier: expected a whole number, got 'high'",
        ),
    ],
)
def test_a_wrong_value_is_named_by_file_and_line(tmp_path, line, message):
    assert refused(tmp_path, f"PriorityType = priority/basic\n{line}\n") == message


def test_another_file_is_refused(tmp_path):
    assert refused(tmp_path, "NodeName=v1 State=IDLE\n") == (
        "FILE: no line 'SchedulerType = …'; name the output of `scontrol show config`, or a "
        "slurm.conf"
    )
    with pytest.raises(ConfigError, match=r"none\.txt: cannot be read"):
        read_slurm(tmp_path / "none.txt", ())


def test_a_scenario_refuses_partitions_that_its_cluster_does_not_have():
    scenario = find_scenario("paper16")
    assert scenario.slurm == Slurm()
    for key in ("partition_factors", "partition_tiers"):
        with pytest.raises(ConfigError, match=rf"slurm\.{key}: unknown partition 'mian'; .*'main'"):
            adjusted(scenario, slurm={key: {"mian": 1}})
