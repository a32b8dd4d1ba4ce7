"""The lines of slurm.conf in which configurations differ; what reads them back agrees."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adlro.config.slurm import read_slurm
from adlro.config.slurm_lines import Written, changes, host_list, lines, merged, node_lines
from adlro.model.slurm import Slurm, TresWeights
from adlro.workloads.slurm_nodes import hosts

PARTITIONS = ("gpu", "long", "test")
weights = st.integers(0, 2**32 - 1)
factors = st.dictionaries(st.sampled_from(PARTITIONS[1:]), st.integers(0, 9), max_size=2)
records = st.builds(
    Slurm,
    weight_age=weights,
    weight_fairshare=weights,
    weight_job_size=weights,
    weight_partition=weights,
    weight_qos=weights,
    weight_tres=st.builds(TresWeights, cpu=weights, mem=weights, gpu=weights),
    max_age_s=st.integers(1, 10**9),
    favor_small=st.booleans(),
    partition_factors=factors.map(lambda some: {name: n / 10 for name, n in some.items()}),
    partition_tiers=st.dictionaries(st.sampled_from(PARTITIONS), st.integers(2, 65_535)),
    default_queue_depth=st.integers(0, 10**6),
    sched_interval_s=st.integers(1, 10**6),
    bf_interval_s=st.integers(0, 10_800),
    bf_resolution_s=st.integers(1, 3_600),
    bf_window_min=st.integers(1, 43_200),
    bf_max_job_test=st.integers(1, 10**6),
    bf_max_job_user=st.integers(0, 10**6),
    scheduler=st.sampled_from(("backfill", "builtin")),
)


@given(records)
def test_lines_read_back_give_the_same_record(tmp_path_factory, slurm):
    text = ["SchedulerType=sched/backfill", "PartitionName=gpu PriorityJobFactor=10"]
    text += ["PartitionName=long PriorityJobFactor=10", "PartitionName=test PriorityJobFactor=10"]
    path = tmp_path_factory.mktemp("conf") / "slurm.conf"
    path.write_text("\n".join([*text, *lines(Slurm(), slurm, Written(PARTITIONS, "", 10))]))
    found = read_slurm(path, PARTITIONS)
    assert found.slurm == slurm
    assert found.highest_factor == 10


def test_only_what_differs_is_written_and_weights_bring_their_plugin():
    before = Slurm(weight_age=5, bf_interval_s=20)
    after = Slurm(weight_age=5, weight_job_size=1000, favor_small=True, bf_window_min=2880)
    written = Written(PARTITIONS, "bf_continue,BF_Interval=20,bf_max_time=9")
    assert lines(before, after, written) == [
        "PriorityType=priority/multifactor",
        "PriorityWeightJobSize=1000",
        "PriorityFavorSmall=Yes",
        "SchedulerParameters=bf_continue,bf_max_time=9,bf_interval=30,bf_window=2880",
    ]
    assert changes(before, after, written)[0].model_dump(by_alias=True) == {
        "key": "PriorityWeightJobSize",
        "from": 0,
        "to": 1000,
    }
    assert lines(before, before, written) == changes(before, before, written) == []


def test_partitions_get_fragments_in_the_units_of_the_site():
    after = Slurm(partition_factors={"long": 0.25}, partition_tiers={"long": 3, "gpu": 2})
    assert lines(Slurm(), after, Written(PARTITIONS, "", 40)) == [
        "PartitionName=gpu PriorityTier=2",
        "PartitionName=long PriorityJobFactor=10 PriorityTier=3",
    ]


def test_backfill_that_was_off_by_its_interval_is_turned_on(tmp_path):
    path = tmp_path / "slurm.conf"
    path.write_text("SchedulerParameters=bf_interval=-1,bf_continue\n")
    site = read_slurm(path, ())
    after = site.slurm.model_copy(update={"scheduler": "backfill"})
    path.write_text("\n".join(lines(site.slurm, after, Written((), site.parameters))))
    assert read_slurm(path, ()).slurm == after


def test_parameters_are_merged():
    assert merged("", {"bf_interval": 3}) == "bf_interval=3"
    assert merged("a, b=2 ,bf_interval=9", {"bf_interval": 3}) == "a,b=2,bf_interval=3"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["v01"], "v01"),
        (["v01", "v02", "v03", "v7"], "v[7,01-03]"),
        (["login", "a1", "a2", "b9"], "a[1-2],b9,login"),
        (["a9", "a10"], "a[9,10]"),
    ],
)
def test_hosts_are_abbreviated_as_slurm_does(names, text):
    assert host_list(names) == text


@given(st.lists(st.from_regex(re.compile(r"[a-c]{1,2}[0-9]{1,4}"), fullmatch=True), unique=True))
def test_abbreviated_hosts_expand_to_the_same(names):
    assert sorted(hosts(host_list(names))) == sorted(names)


def test_nodes_filled_first_have_the_lowest_weight():
    assert node_lines([["v1", "v2"], ["a1"]]) == [
        "NodeName=v[1-2] Weight=1",
        "NodeName=a1 Weight=2",
    ]
