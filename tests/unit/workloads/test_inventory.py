"""Clusters from lists of nodes."""

import pytest

from adlro.config.files import cluster_of
from adlro.errors import ConfigError, TraceError
from adlro.workloads import inventory
from tests.histories import write

BLOCKS = """NodeName=v1 Arch=x86_64 CoresPerSocket=8
   CPUAlloc=2 CPUTot=32 CPULoad=1.71
   AvailableFeatures=volta
   Gres=gpu:v100:4(S:0-1)
   OS=Linux 6.1 #1 SMP Gres=nonsense
   RealMemory=65536 AllocMem=200 State=MIXED ThreadsPerCore=1
   Partitions=gpu,debug

NodeName=v2 Arch=x86_64 CPUTot=32 Gres=gpu:v100:4 RealMemory=65536 State=DOWN*+DRAIN Partitions=gpu

NodeName=a1 CPUTot=64 Gres=gpu:a100:8,craynetwork:4 RealMemory=1024000 State=IDLE Partitions=big

NodeName=c1 CPUTot=64 Gres=(null) RealMemory=128000 State=IDLE Partitions=cpu
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"


def groups(listed, names=()):
    return inventory.as_cluster(listed, dict(names), "mine")["nodes"]


@pytest.mark.parametrize("text", [BLOCKS, BLOCKS.replace("\n   ", " ").replace("\n\n", "\n")])
def test_scontrol_is_read_in_blocks_and_in_lines(tmp_path, text):
    listed = inventory.read(write(tmp_path, text), {})
    assert groups(listed) == [
        {
            "name": "v", "count": 2, "gpu": "V100 32GB", "gpus": 4, "cores": 32,
            "memory_gb": 64.0, "partition": "gpu",
        },
        {
            "name": "a", "count": 1, "gpu": "A100 40GB", "gpus": 8, "cores": 64,
            "memory_gb": 1000.0, "partition": "big",
        },
    ]  # fmt: skip
    assert listed.notes == [
        "1 nodes are in several partitions: the first is taken",
        "1 nodes are down, drained or failing now: they are listed all the same",
    ]
    cluster_of(inventory.as_cluster(listed, {}, "mine"), "test")


def test_partitions_come_from_scontrol_show_partition_too():
    text = "PartitionName=gpu Default=YES\n   Nodes=r1,v[01-03,7]x State=UP\n"
    text += "PartitionName=all Nodes=r1\n"
    found = inventory.partitions(text)
    assert found == dict.fromkeys(["r1", "v01x", "v02x", "v03x", "v7x"], "gpu")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a1", ["a1"]),
        ("a[1-3],b", ["a1", "a2", "a3", "b"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("r[1-2]n[1,3]", ["r1n1", "r1n3", "r2n1", "r2n3"]),
        ("", []),
    ],
)
def test_lists_of_hosts_are_expanded(text, names):
    assert inventory.hosts(text) == names


@pytest.mark.parametrize("text", ["a[x]", "a[1-999999999]", "a[1-]", "a[1-9999]b[1-9999]"])
def test_a_list_that_is_none_is_refused(text):
    with pytest.raises(TraceError):
        inventory.hosts(text)


def test_unknown_gpus_are_listed_with_their_number_and_can_be_named(tmp_path):
    rows = "n1,64000,262144,8,G2\nn2,64000,262144,8,G2\nn3,32000,131072,2,G3\nn4,8000,1024,0,\n"
    listed = inventory.read(write(tmp_path, NODES + rows), {})
    with pytest.raises(ConfigError, match=r"does not know 'G2' \(16 GPUs\), 'G3' \(2 GPUs\)"):
        groups(listed)
    found = groups(listed, {"G2": "A10", "G3": "A100"})
    assert [(one["count"], one["gpu"], one["cores"], one["memory_gb"]) for one in found] == [
        (2, "A10", 64, 256.0),
        (1, "A100 40GB", 32, 128.0),
    ]


def test_groups_with_the_same_stem_have_different_names(tmp_path):
    rows = "node-1,1000,1024,1,T4\nnode-2,2000,1024,1,T4\n"
    found = groups(inventory.read(write(tmp_path, NODES + rows), {}))
    assert [one["name"] for one in found] == ["node", "node.2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NodeName=n1 CPUTot=many RealMemory=5 Gres=gpu:4\n", "CPUTot must be a whole number"),
        ("NodeName=n1 CPUTot=4 RealMemory=5 Gres=gpu:t4:1,gpu:a10:1\n", "GPUs of several types"),
        (NODES + "n1,1000,1024,x,T4\n", ":2: gpu must be a number, not 'x'"),
        (NODES + "n1,1000,1024,,T4\n", ":2: the number of GPUs or cores, or the memory, is empty"),
        (NODES + "n1,1000,1024\n", ":2: expected 5 fields, got 3"),
        ("hello\n", "is no list of nodes that is known"),
    ],
)
def test_a_list_that_is_wrong_is_refused_in_a_line(tmp_path, text, said):
    with pytest.raises(TraceError, match=said):
        inventory.read(write(tmp_path, text), {})


def test_a_cluster_without_gpus_is_refused(tmp_path):
    listed = inventory.read(write(tmp_path, NODES + "n,1000,1024,0,\n"), {})
    with pytest.raises(ConfigError, match="no node of the list has a GPU"):
        groups(listed)


def test_gpus_without_a_type_are_named_by_the_user(tmp_path):
    text = "NodeName=n1 CPUTot=4 RealMemory=5000 Gres=gpu:2 State=IDLE\n"
    listed = inventory.read(write(tmp_path, text), {})
    assert groups(listed, {"gpu": "T4"})[0]["gpu"] == "T4"


def test_what_a_list_does_not_say_is_said_when_it_is_filled(tmp_path):
    text = "node_name,gpu_model,gpu_capacity_num,cpu_num\nn1,T4,2,32\nc1,,0,32\n"
    listed = inventory.read(write(tmp_path, text), {})
    assert groups(listed)[0]["memory_gb"] == 1.0
    said = "1 nodes have no memory in the list: memory_gb = 1 is written, correct it there"
    assert listed.notes == [said]
    slurm = "NodeName=a1 CPUTot=0 Gres=gpu:T4:2 RealMemory=1024 State=IDLE Partitions=(null)\n"
    listed = inventory.read(write(tmp_path, slurm), {})
    assert listed.notes == [said.replace("memory_gb", "cores").replace("memory", "cores")]
    assert groups(listed)[0]["partition"] == "main"


def test_a_node_that_is_listed_twice_is_refused(tmp_path):
    listed = inventory.read(write(tmp_path, NODES + "a,4000,1024,2,T4\na,4000,1024,2,T4\n"), {})
    with pytest.raises(ConfigError, match="node 'a' is in the list more than once"):
        groups(listed)
