"""Clusters from lists of nodes."""

import pytest

from adlro.config.files import cluster_of, load_cluster
from adlro.config.to_toml import to_toml
from adlro.errors import ConfigError, TraceError
from adlro.model.cluster import host_of
from adlro.workloads import inventory, slurm_nodes
from tests.histories import write

BLOCKS = """NodeName=v1 Arch=x86_64 CoresPerSocket=8
   CPUAlloc=2 CPUEfctv=30 CPUTot=32 CPULoad=1.71
   AvailableFeatures=sxm2,32g
   Gres=gpu:v100:4(S:0-1)
   OS=Linux 6.1 #1 SMP Gres=nonsense
   RealMemory=65536 AllocMem=200 State=MIXED ThreadsPerCore=1
   Partitions=gpu,debug

NodeName=v2 Arch=x86_64 CPUTot=32 Gres=gpu:v100:4 RealMemory=65536 State=DOWN*+DRAIN Partitions=gpu

NodeName=a1 CPUTot=64 Gres=gpu:t4:8,craynetwork:4 RealMemory=1024000 State=IDLE Partitions=big

NodeName=c1 CPUTot=64 Gres=(null) RealMemory=128000 State=IDLE Partitions=cpu
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"


def made(listed, **wanted):
    return inventory.as_cluster(listed, inventory.Request(**wanted))


def groups(listed, names=()):
    return made(listed, models=dict(names)).tables["nodes"]


@pytest.mark.parametrize("text", [BLOCKS, BLOCKS.replace("\n   ", " ").replace("\n\n", "\n")])
def test_scontrol_is_read_in_blocks_and_in_lines(tmp_path, text):
    listed = inventory.read(write(tmp_path, text), {})
    assert groups(listed) == [
        {
            "name": "v", "hosts": ["v1"], "gpu": "V100 32GB", "gpu_type": "v100", "gpus": 4,
            "cores": 30, "memory_gb": 64.0, "partitions": ["gpu", "debug"],
            "features": ["sxm2", "32g"],
        },
        {
            "name": "v.2", "hosts": ["v2"], "gpu": "V100 32GB", "gpu_type": "v100", "gpus": 4,
            "cores": 32, "memory_gb": 64.0, "partition": "gpu",
        },
        {
            "name": "a", "hosts": ["a1"], "gpu": "T4", "gpu_type": "t4", "gpus": 8,
            "cores": 64, "memory_gb": 1000.0, "partition": "big",
        },
    ]  # fmt: skip
    assert made(listed).lines == [
        "gpu:v100 on 1 node → V100 32GB (features sxm2, 32g)",
        "gpu:v100 on 1 node → V100 32GB (or V100 16GB, V100 PCIe 32GB, V100 PCIe 16GB: --gpu "
        "'v100=MODEL')",
        "gpu:t4 on 1 node → T4",
        "1 node without GPUs left out",
        "1 node draining now (v2): running jobs end and none starts; kept as if in service, take "
        "those that stay away out of `hosts`",
        "1 node down now (v2): nothing runs there; kept as if in service, take those that stay "
        "away out of `hosts`",
    ]
    cluster_of(made(listed).tables, "test")


def test_unknown_gpus_are_listed_with_their_number_and_can_be_named(tmp_path):
    rows = "n1,64000,262144,8,G2\nn2,64000,262144,8,G2\nn3,32000,131072,2,G3\nn4,8000,1024,0,\n"
    listed = inventory.read(write(tmp_path, NODES + rows), {})
    with pytest.raises(ConfigError, match=r"does not know 'G2' \(16 GPUs\), 'G3' \(2 GPUs\)"):
        groups(listed)
    found = groups(listed, {"G2": "A10", "G3": "A100"})
    assert [(one["hosts"], one["gpu"], one["cores"], one["memory_gb"]) for one in found] == [
        (["n1", "n2"], "A10", 64, 256.0),
        (["n3"], "A100 40GB", 32, 128.0),
    ]


def test_groups_with_the_same_stem_have_different_names(tmp_path):
    rows = "node-1,1000,1024,1,T4\nnode-2,2000,1024,1,T4\n"
    found = groups(inventory.read(write(tmp_path, NODES + rows), {}))
    assert [one["name"] for one in found] == ["node", "node.2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NodeName=n1 CPUTot=many RealMemory=5 Gres=gpu:4\n", "CPUTot must be a whole number"),
        ("NodeName= CPUTot=4 RealMemory=5 Gres=gpu:4\n", "a node has no name"),
        (
            "NodeName=n1 CPUTot=4 RealMemory=5 Gres=gpu:a:b:4\n",
            "Gres has 'gpu:a:b:4', which is not",
        ),
        (
            "NodeName=n1 CPUTot=4 RealMemory=5 Gres=gpu::4\n",
            "Gres has 'gpu::4', which is not gpu:TYPE",
        ),
        ("{", "is not valid JSON"),
        ('{"nodes": 1}', "has no list 'nodes'; is this `scontrol show node --json`"),
        ('{"nodes": []}', "there is no node in it"),
        ('{"nodes": [{"name": "n1", "cpus": "x"}]}', "node 'n1': CPUTot must be a whole number"),
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
    said = "1 node without memory in the list: memory_gb = 1 is written, correct it"
    assert listed.notes == [said]
    slurm = "NodeName=a1 CPUTot=0 Gres=gpu:T4:2 RealMemory=1024 State=IDLE Partitions=(null)\n"
    listed = inventory.read(write(tmp_path, slurm), {})
    assert listed.notes == [
        "1 node in no partition (a1): 'main' is written, correct it there",
        said.replace("memory_gb", "cores").replace("memory", "cores"),
    ]
    assert groups(listed)[0]["partition"] == "main"


def test_a_node_that_is_listed_twice_is_refused(tmp_path):
    listed = inventory.read(write(tmp_path, NODES + "a,4000,1024,2,T4\na,4000,1024,2,T4\n"), {})
    with pytest.raises(ConfigError, match="node 'a' is in the list more than once"):
        groups(listed)


NODE = "NodeName={} CPUTot={} RealMemory=8192 Gres={} State={} Partitions=gpu\n"


def listed_of(*lines, of_partition=()):
    return inventory.from_slurm("".join(lines), "nodes.txt", dict(of_partition))


def test_a_node_with_several_types_of_gpu_is_split_and_its_parts_add_up():
    text = NODE.format("n7", 31, "gpu:a100:2(S:0-1),gpu:v100:1,gpu:t4:4(S:0,3),mps:400", "IDLE")
    listed = listed_of(text)
    assert [(n.name, n.gpu, n.gpus, n.cores) for n in listed.nodes] == [
        ("a100@n7", "a100", 2, 8),
        ("v100@n7", "v100", 1, 5),
        ("t4@n7", "t4", 4, 18),
    ]
    assert sum(n.memory_gb for n in listed.nodes) == pytest.approx(8)
    assert listed.notes == [
        "1 node with several types of GPU (n7): split into one node for each type, TYPE@HOST, with "
        "cores and memory in proportion to its GPUs"
    ]
    cluster = cluster_of(made(listed).tables, "test")
    assert [group.node_names for group in cluster.nodes] == [("a100@n7",), ("v100@n7",), ("t4@n7",)]
    assert {host_of(name) for group in cluster.nodes for name in group.node_names} == {"n7"}


def test_nodes_that_only_differ_in_a_feature_are_one_group_if_it_is_not_kept(tmp_path):
    lines = [
        NODE.format(f"n{i}", 8, "gpu:t4:1", "IDLE").rstrip() + f" ActiveFeatures=ib,rack{i}\n"
        for i in range(3)
    ]
    found = made(listed_of(*lines))
    assert len(found.tables["nodes"]) == 3
    assert found.lines[-1].startswith("features make 3 groups of nodes out of 1, and no gang spans")
    [group] = made(listed_of(*lines), features=["ib"]).tables["nodes"]
    assert (group["hosts"], group["features"]) == (["n0", "n1", "n2"], ["ib"])
    [group] = made(listed_of(*lines), features=[]).tables["nodes"]
    assert "features" not in group
    with pytest.raises(ConfigError, match="--features: no node has 'rack'; did you mean 'rack"):
        made(listed_of(*lines), features=["rack"])


def test_a_group_is_not_called_like_a_host_of_another():
    text = NODE.format("gpu1", 8, "gpu:t4:1", "IDLE") + NODE.format("gpu2", 8, "gpu:t4:1", "IDLE")
    text += NODE.format("gpu", 8, "gpu:v100:1", "IDLE")
    found = made(listed_of(text)).tables
    assert [one["name"] for one in found["nodes"]] == ["gpu.2", "gpu"]
    cluster_of(found, "test")


def test_features_decide_between_models_that_share_a_name():
    lines = [
        NODE.format(name, 8, "gpu:a100:4", "IDLE").rstrip() + f" ActiveFeatures={features}\n"
        for name, features in (("a1", "ib,a100_80g,sxm4"), ("a2", "40g,sxm4"), ("a3", "40g,sxm4"))
    ]
    found = made(listed_of(*lines), features=[])
    assert found.lines == [
        "gpu:a100 on 1 node → A100 80GB (features a100_80g, sxm4)",
        "gpu:a100 on 2 nodes → A100 40GB (features 40g, sxm4)",
    ]
    assert [(one["gpu"], one["gpu_type"]) for one in found.tables["nodes"]] == [
        ("A100 80GB", "a100"),
        ("A100 40GB", "a100"),
    ]
    found = made(listed_of(*lines), models={"a100": "A100 80GB"}, features=[])
    assert found.lines == ["gpu:a100 on 3 nodes → A100 80GB (--gpu)"]


def test_a_name_that_was_given_is_marked_in_the_lines():
    found = made(listed_of(NODE.format("n1", 8, "gpu:2", "IDLE")), models={"gpu": "T4"})
    assert found.lines == ["gpu on 1 node → T4 (--gpu)"]
    assert "gpu_type" not in found.tables["nodes"][0]


def test_a_hundred_thousand_hosts_are_written_and_read_again(tmp_path):
    name = "a-host-with-a-rather-long-name-{}.example.org".format
    nodes = [slurm_nodes.Node(name(i), "t4", 1, 8, 64.0) for i in range(10**5)]
    out = tmp_path / "cluster.toml"
    out.write_text(to_toml(made(slurm_nodes.NodeList(nodes, [])).tables))
    [group] = load_cluster(out).nodes
    assert group.count == len(group.hosts) == 10**5
