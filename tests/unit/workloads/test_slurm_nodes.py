"""Slurm's lists of nodes, partitions and hosts."""

import json
from pathlib import Path

import pytest

from adlro.errors import TraceError
from adlro.workloads import inventory, slurm_nodes

CAPTURES = Path(__file__).parents[4] / "shared" / "slurm-captures"  # of a real Slurm 22.05


def node(**words):
    usual = {"NodeName": "n1", "CPUTot": "8", "RealMemory": "1024", "Partitions": "gpu"}
    return " ".join(f"{key}={value}" for key, value in {**usual, **words}.items()) + "\n"


def read(*lines, of_partition=()):
    return slurm_nodes.from_text("".join(lines), "nodes.txt", dict(of_partition))


@pytest.mark.parametrize(
    ("gres", "tres", "gpus"),
    [
        ("gpu:a100:4(S:0-1),gpu:v100:2", "", {"a100": 4, "v100": 2}),
        ("gpu:1g.5gb:7", "", {"1g.5gb": 7}),
        ("gpu:a100_3g.20gb:2,gpu:a100:1", "", {"a100_3g.20gb": 2, "a100": 1}),
        ("gpu:a100:4,mps:400,shard:a100:16", "", {"a100": 4}),
        ("gpu:a100:2(S:0,3),gpu:a100:2(S:1)", "", {"a100": 4}),
        ("gpu:tesla:no_consume:4", "", {"tesla": 4}),
        ("gpu:nvidia_a100-sxm4-80gb:8(S:0-7)", "", {"nvidia_a100-sxm4-80gb": 8}),
        ("gpu:3090:4", "", {"3090": 4}),
        ("gpu", "", {"gpu": 1}),
        ("gpu:t4", "", {"t4": 1}),
        ("gpu:0", "", {}),
        ("(null)", "cpu=8,mem=1G", {}),
        ("(null)", "cpu=8,gres/gpu=4,gres/gpu:a100=4", {"a100": 4}),
        ("gpu:4", "cpu=8,gres/gpu=4,gres/gpu:a100=4", {"a100": 4}),
        ("gpu:4(S:0-1)", "gres/gpu:a100=2,gres/gpu:v100=2,gres/gpu=4", {"a100": 2, "v100": 2}),
        ("gpu:4", "cpu=8,gres/gpu=4,gres/gpu:a100=2", {"gpu": 4}),  # the types do not add up
        ("gpu:v100:4", "gres/gpu=4,gres/gpu:a100=4", {"v100": 4}),
    ],
)
def test_gpus_are_counted_by_type(gres, tres, gpus):
    listed = read(node(Gres=gres, CfgTRES=tres))
    assert {one.gpu: one.gpus for one in listed.nodes if one.gpus} == gpus


@pytest.mark.parametrize(
    ("words", "cores"),
    [({"CPUEfctv": "6"}, 6), ({}, 8), ({"CPUEfctv": "0"}, 8)],
)
def test_cores_are_those_that_jobs_may_use(words, cores):
    assert read(node(**words)).nodes[0].cores == cores


@pytest.mark.parametrize(
    ("words", "features"),
    [
        ({"AvailableFeatures": "80g,ib", "ActiveFeatures": "80g"}, ("80g",)),
        ({"AvailableFeatures": "80g,ib"}, ("80g", "ib")),
        ({"AvailableFeatures": "(null)", "ActiveFeatures": "(null)"}, ()),
        ({}, ()),
    ],
)
def test_features_are_the_active_ones(words, features):
    assert read(node(**words)).nodes[0].features == features


@pytest.mark.parametrize(
    ("state", "draining", "down"),
    [
        ("IDLE", 0, 0),
        ("MIXED+DRAIN", 1, 0),
        ("ALLOCATED+DRAIN+RESERVED", 1, 0),
        ("DOWN*", 0, 1),
        ("DOWN*+DRAIN", 1, 1),
        ("IDLE+MAINT", 0, 1),
        ("IDLE+NOT_RESPONDING", 0, 1),
        ("IDLE+CLOUD+POWERED_DOWN", 0, 0),
        ("IDLE~", 0, 0),
    ],
)
def test_draining_and_down_nodes_are_kept_and_named(state, draining, down):
    listed = read(node(Gres="gpu:t4:1", State=state), node(NodeName="c1", State=state))
    assert len(listed.nodes) == 2
    assert [line[:22] for line in listed.notes] == (
        ["1 node draining now (n"] * draining + ["1 node down now (n1): "] * down
    )


def test_many_names_are_cut_short():
    lines = [node(NodeName=f"n{i}", Gres="gpu:1", State="DOWN") for i in range(30)]
    [line] = read(*lines).notes
    assert line.startswith("30 nodes down now (n0, n1, n2, n3, n4, n5, n6, n7 and 22 more): ")


def test_the_partitions_of_a_node_are_its_own_and_those_that_list_it():
    text = "PartitionName=long Default=YES\n   Nodes=n1,v[01-02]x State=UP\n"
    text += "PartitionName=gpu Nodes=n1\nPartitionName=empty Nodes=(null)\n"
    found = slurm_nodes.partitions(text)
    assert found == {"long": ["n1", "v01x", "v02x"], "gpu": ["n1"], "empty": []}
    listed = read(node(), node(NodeName="n2", Partitions="(null)"), of_partition=found)
    assert [one.partitions for one in listed.nodes] == [("gpu", "long"), ("main",)]
    assert listed.notes == [
        "partition 'long' names 2 hosts that the list lacks: v01x, v02x",
        "partition 'empty' has no node of the list: its jobs fit nowhere",
    ]


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
    assert slurm_nodes.hosts(text) == names


@pytest.mark.parametrize("text", ["a[x]", "a[1-999999999]", "a[1-]", "a[1-9999]b[1-9999]"])
def test_a_list_that_is_none_is_refused(text):
    with pytest.raises(TraceError):
        slurm_nodes.hosts(text)


@pytest.mark.parametrize("text", ["", "nothing", "PartitionName=x Nodes=(null)\n"])
def test_partitions_without_nodes_are_refused(text):
    with pytest.raises(TraceError, match="there is no partition with nodes"):
        slurm_nodes.partitions(text)


def test_json_says_the_same_as_text():
    words = {"Gres": "gpu:4", "CfgTRES": "gres/gpu:t4=4", "State": "IDLE+DRAIN", "CPUEfctv": "6"}
    words |= {"ActiveFeatures": "ib,x", "Partitions": "gpu,long"}
    old = {
        "name": "n1", "cpus": 8, "effective_cpus": 6, "real_memory": 1024, "gres": "gpu:4",
        "tres": "gres/gpu:t4=4", "active_features": "ib,x", "features": "ib,x,y",
        "partitions": ["gpu", "long"], "state": "idle", "state_flags": ["DRAIN"],
    }  # fmt: skip
    new = old | {"active_features": ["ib", "x"], "state": ["IDLE", "DRAIN"], "state_flags": None}
    new |= {"real_memory": {"set": True, "infinite": False, "number": 1024}}
    for entry in (old, new):
        found = slurm_nodes.from_json(json.dumps({"nodes": [entry]}), "nodes.json", {})
        assert found == read(node(**words))


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="../shared/slurm-captures is not here")
@pytest.mark.parametrize(
    "name",
    [
        "scontrol_show_node_oneliner.txt",
        "scontrol_show_node_detail_oneliner.txt",
        "sinfo.json",
        "rest_v0.0.38_nodes.json",
    ],
)
def test_what_a_real_slurm_printed_is_read(name):
    partitions = slurm_nodes.partitions((CAPTURES / "scontrol_show_partition.txt").read_text())
    listed = inventory.read(CAPTURES / name, partitions)
    assert listed.notes == []
    assert listed.nodes == [
        slurm_nodes.Node(name, gpu, 4, 16, 15.625, ("gpu",), (gpu,))
        for name, gpu in (("r1", "radeon"), ("t1", "turing"), ("v1", "volta"), ("v2", "volta"))
    ]
