"""Cluster layout: pools, nodes and GPUs numbered in file order; checks of cluster files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from adlro.config.files import find_scenario, load_cluster
from adlro.config.to_toml import to_toml
from adlro.errors import ConfigError
from adlro.model.cluster import Cluster, NodeGroup, host_of, lay_out
from adlro.model.state import WHOLE
from tests.worlds import build as build_world
from tests.worlds import job, lay, nodes, play


def shipped(name):
    return lay_out(find_scenario(name).cluster)


GROUPS = st.lists(
    st.fixed_dictionaries(
        {
            "gpu": st.sampled_from(["V100", "T4", "Tesla T4", "A100"]),
            "gpus": st.sampled_from([1, 4]),
            "count": st.integers(1, 3),
            "cores": st.sampled_from([8, 32]),
            "memory_gb": st.sampled_from([64, 64.0, 100.5]),
            "network_gb_s": st.sampled_from([12.5, 50]),
            "partition": st.sampled_from(["main", "spare"]),
        }
    ),
    min_size=1,
    max_size=8,
)


def test_the_papers_cluster_has_three_pools_in_file_order():
    layout = shipped("paper16")
    assert [model.name for model in layout.models] == ["V100 32GB", "RTX 6000", "Radeon Pro VII"]
    assert layout.pools["model"].tolist() == [0, 1, 2]
    assert layout.pools["nodes"].tolist() == [2, 1, 1]
    assert layout.pools["gpus"].tolist() == [8, 4, 4]
    assert layout.pools["node_gpus"].tolist() == [4, 4, 4]
    assert layout.pools["first_node"].tolist() == [0, 2, 3]
    assert layout.pools["first_gpu"].tolist() == [0, 8, 12]
    assert layout.pools["gpu_memory"].tolist() == [32 * 1024, 24 * 1024, 16 * 1024]


def test_the_papers_cluster_has_four_nodes_of_four_gpus():
    layout = shipped("paper16")
    assert layout.nodes["pool"].tolist() == [0, 0, 1, 2]
    assert layout.nodes["gpus"].tolist() == [4, 4, 4, 4]
    assert layout.nodes["first_gpu"].tolist() == [0, 4, 8, 12]
    assert layout.nodes["cores"].tolist() == [40, 40, 32, 32]
    assert layout.nodes["memory"].tolist() == [262144, 262144, 196608, 196608]  # 256, 192 GB
    assert layout.gpus["node"].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4


def test_a_cluster_is_laid_out_empty_and_in_service():
    layout = shipped("paper16")
    assert layout.pools["free"].tolist() == [8, 4, 4]
    assert layout.nodes["free"].tolist() == [4, 4, 4, 4]
    assert layout.nodes["free_cores"].tolist() == layout.nodes["cores"].tolist()
    assert layout.nodes["free_memory"].tolist() == layout.nodes["memory"].tolist()
    assert layout.nodes["up"].tolist() == [1, 1, 1, 1]
    assert set(layout.gpus["free"].tolist()) == {WHOLE}
    assert set(layout.gpus["job"].tolist()) == set(layout.gpus["next"].tolist()) == {-1}
    assert set(layout.gpus["slice"].tolist()) == {-1}
    assert set(layout.pools["sliced"].tolist()) == {0}
    assert layout.gpus["free_memory"].tolist() == [32768] * 8 + [24576] * 4 + [16384] * 4
    assert set(layout.gpus["busy"].tolist()) == {0.0}


def test_the_papers_cluster_has_names_for_models_pools_and_nodes():
    layout = shipped("paper16")
    assert layout.partitions == ("main",)
    assert layout.pool_names == ("V100 32GB (main)", "RTX 6000 (main)", "Radeon Pro VII (main)")
    assert layout.node_names == ("volta-0", "volta-1", "turing", "radeon")


def test_a_gang_that_spans_the_papers_volta_nodes_takes_exactly_1_15_times_as_long():
    [volta] = [group for group in find_scenario("paper16").cluster.nodes if group.name == "volta"]
    world = build_world([volta.model_dump()], [job(0, 100, gpus=8, communication=0.15)])
    result = play(world, "fcfs")
    assert shipped("paper16").pools["span_cost"][0] == 1.0
    assert (result.outcome["nodes"][0], result.outcome["finish"][0]) == (2, 100 * 1.15)


@pytest.mark.parametrize(
    ("link_gb_s", "network_gb_s", "cost"),
    [
        (300, 12.5, 1),  # the reference pair
        (300, 25, (1 / 25 - 1 / 300) / (1 / 12.5 - 1 / 300)),  # 11 / 23
        (None, 12.5, 1),  # the V100's own NVLink
        (50, 50, 0),
        (50, 100, 0),  # a network that is faster than the link costs nothing
    ],
)
def test_spanning_costs_the_difference_between_network_and_link(link_gb_s, network_gb_s, cost):
    layout = lay(nodes(link_gb_s=link_gb_s, network_gb_s=network_gb_s))
    assert layout.pools["span_cost"][0] == pytest.approx(cost, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "gpus"), [("paper16", 16), ("hetero64", 64), ("datacenter", 10_000)]
)
def test_a_shipped_cluster_has_as_many_gpus_as_it_says(name, gpus):
    layout = shipped(name)
    assert len(layout.gpus) == layout.pools["gpus"].sum() == layout.nodes["gpus"].sum() == gpus


@given(GROUPS)
@settings(deadline=None, max_examples=60)
def test_nodes_of_a_pool_and_their_gpus_are_contiguous(groups):
    layout = lay(*groups)
    pools, machines, gpus = layout.pools, layout.nodes, layout.gpus
    np.testing.assert_array_equal(
        machines["pool"], np.repeat(np.arange(len(pools)), pools["nodes"])
    )
    np.testing.assert_array_equal(
        gpus["node"], np.repeat(np.arange(len(machines)), machines["gpus"])
    )
    np.testing.assert_array_equal(pools["first_node"], np.cumsum(pools["nodes"]) - pools["nodes"])
    np.testing.assert_array_equal(pools["first_gpu"], machines["first_gpu"][pools["first_node"]])
    np.testing.assert_array_equal(
        machines["first_gpu"], np.cumsum(machines["gpus"]) - machines["gpus"]
    )
    np.testing.assert_array_equal(pools["gpus"], pools["nodes"] * pools["node_gpus"])


@given(GROUPS)
@settings(deadline=None, max_examples=60)
def test_a_pool_is_all_nodes_of_one_shape_in_one_partition_and_no_others(groups):
    layout = lay(*groups)
    expected = {}
    for group in groups:
        model = "T4" if "T4" in group["gpu"] else group["gpu"]
        shape = (model, *(group[key] for key in ("gpus", "cores", "network_gb_s", "partition")))
        shape += (round(group["memory_gb"] * 1024),)
        expected[shape] = expected.get(shape, 0) + group["count"]
    assert layout.pools["nodes"].tolist() == list(expected.values())


def test_two_groups_of_the_same_shape_are_one_pool_whatever_stands_between_them():
    layout = lay(
        nodes("T4", 4, name="first"),
        nodes("V100", 2, name="other"),
        nodes("Tesla T4", 4, 2, name="second"),
    )
    assert layout.pools["nodes"].tolist() == [3, 1]
    assert layout.pools["gpus"].tolist() == [12, 2]
    assert layout.node_names == ("first", "second-0", "second-1", "other")
    assert layout.nodes["pool"].tolist() == [0, 0, 0, 1]
    assert layout.pools["model"].tolist() == [0, 1]


@pytest.mark.parametrize(
    "difference",
    [
        {"gpus": 2},
        {"cores": 5},
        {"memory_gb": 5},
        {"network_gb_s": 50},
        {"partition": "spare"},
        {"partitions": ["main", "spare"]},
        {"features": ["80g"]},
        {"gpu_type": "volta"},
    ],
)
def test_groups_that_differ_in_shape_or_in_what_jobs_ask_for_are_two_pools(difference):
    layout = lay(nodes(), nodes(**difference))
    assert len(layout.pools) == 2
    assert len(layout.models) == 1
    assert layout.pools["model"].tolist() == [0, 0]


def test_no_two_pools_have_the_same_name():
    layout = lay(nodes(cores=8), nodes(cores=16))
    assert len(set(layout.pool_names)) == 2


def test_partitions_are_numbered_in_file_order_and_name_the_pools():
    layout = lay(nodes("V100", partition="west"), nodes("T4", partition="east"), nodes("T4"))
    assert layout.partitions == ("west", "east", "main")
    assert layout.pools["partitions"].tolist() == [0b1, 0b10, 0b100]
    assert layout.pool_names == ("V100 32GB (west)", "T4 (east)", "T4 (main)")


def test_a_pool_has_a_set_of_partitions_and_of_features():
    layout = lay(
        nodes("V100", 2, partitions=["gpu", "long"], features=["ib", "80g"], gpu_type="volta"),
        nodes("T4", partition="gpu"),
        nodes("V100", 2, partitions=["long", "gpu"], features=["80g", "ib"], gpu_type="Volta"),
    )
    assert layout.partitions == ("gpu", "long")
    assert layout.pool_partitions == (frozenset({"gpu", "long"}), frozenset({"gpu"}))
    assert layout.pool_features == (frozenset({"80g", "ib"}), frozenset())
    assert layout.pool_types == ("volta", "")
    assert layout.pools["partitions"].tolist() == [0b11, 0b1]
    assert layout.pool_names == ("V100 32GB (gpu, long)", "T4 (gpu)")
    assert layout.pools["nodes"].tolist() == [2, 1]


def test_nodes_are_called_like_their_hosts():
    layout = lay(nodes("V100", hosts=["gpu01", "gpu03"], count=2), {"name": "t", **HOSTS})
    assert layout.node_names == ("gpu01", "gpu03", "t1", "t2", "t3")
    assert layout.pools["nodes"].tolist() == [2, 3]


HOSTS = {"gpu": "T4", "gpus": 1, "cores": 1, "memory_gb": 1, "hosts": ["t1", "t2", "t3"]}


def test_a_cluster_that_is_written_is_read_as_it_was(tmp_path):
    group = {"name": "t", **HOSTS, "partitions": ["a", "b"], "features": ["x"], "gpu_type": "t4"}
    cluster = Cluster(nodes=[group, {**HOSTS, "name": "u", "hosts": ["u"], "partition": "c"}])
    path = tmp_path / "cluster.toml"
    path.write_text(to_toml(cluster.model_dump(exclude_none=True)))
    assert load_cluster(path) == cluster
    assert Cluster.model_validate(cluster.model_dump()) == cluster


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"count": 2}, "nodes.0: count is 2, but hosts has 3 names; correct one or leave count"),
        ({"hosts": ["a", "b", "a"]}, "nodes.0.hosts: 'a' is named twice; remove one"),
        ({"hosts": ["a", ""]}, "nodes.0.hosts.1: string should have at least 1 character"),
        ({"hosts": "t[1-3]"}, "nodes.0.hosts: should be a list"),
        ({"partitions": []}, "nodes.0.partitions: tuple should have at least 1 item"),
        ({"partitions": ["a", "a"]}, "nodes.0.partitions: 'a' is named twice; remove one"),
        ({"partitions": "a"}, "nodes.0.partitions: should be a list"),
        ({"partition": 3}, "nodes.0.partitions.0: input should be a valid string, not 3"),
        ({"partition": "a", "partitions": ["a"]}, "partition and partitions are both given; keep"),
        ({"features": ["x", "x"]}, "nodes.0.features: 'x' is named twice; remove one"),
    ],
)
def test_a_group_that_contradicts_itself_is_refused_in_a_line(tmp_path, change, said):
    path = tmp_path / "cluster.toml"
    path.write_text(to_toml({"nodes": [{"name": "t", **HOSTS, **change}]}))
    with pytest.raises(ConfigError) as caught:
        load_cluster(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"hosts": ["x", "t2"]}, "nodes: groups 't' and 'u' both have a node 't2'; every node"),
        ({"name": "t2", "hosts": ["x"]}, "a node of group 't' is called 't2', and so is another"),
        ({"name": "v", "hosts": ["t"]}, "a node of group 'v' is called 't', and so is another"),
    ],
)
def test_a_host_is_in_one_group_only(other, said):
    with pytest.raises(ValidationError, match=said):
        Cluster(nodes=[{"name": "t", **HOSTS}, {"name": "u", **HOSTS, **other}])


def test_a_host_may_be_called_like_a_numbered_node_only_once():
    with pytest.raises(ValidationError, match="groups 'a' and 'u' both have a node 'a-1'"):
        lay(nodes("T4", count=2, name="a"), nodes("T4", name="u", hosts=["a-1"]))


@pytest.mark.parametrize(
    ("node", "host"), [("n7", "n7"), ("a100@n7", "n7"), ("1g.5gb@n7.org", "n7.org"), ("::1", "::1")]
)
def test_a_part_of_a_host_knows_its_host(node, host):
    assert host_of(node) == host


def test_two_groups_of_one_name_are_refused():
    group = NodeGroup(name="n", gpu="T4", gpus=1, cores=1, memory_gb=1)
    with pytest.raises(ValidationError, match="two groups of nodes are called 'n'"):
        Cluster(nodes=[group, group])


@pytest.mark.parametrize("count", [1, 3])
def test_a_group_called_like_a_node_of_another_is_refused(count):
    said = "nodes: a node of group 'a' is called 'a-1', and so is another group; rename one"
    with pytest.raises(ValidationError, match=said):
        lay(nodes("T4", count=count, name="a-1"), nodes("T4", count=2, name="a"))


@pytest.mark.parametrize("name", ["a-2", "a-01", "a-old", "-1", "b-1"])
def test_a_name_that_only_looks_like_that_of_a_node_is_allowed(name):
    layout = lay(nodes("T4", count=2, name="a"), nodes("T4", name=name))
    assert layout.node_names == ("a-0", "a-1", name)


@pytest.mark.parametrize("demand", [{"memory_gb": 1e9}, {"cores": 10**10}])
def test_a_node_larger_than_can_be_counted_is_refused_in_words(demand):
    with pytest.raises((ConfigError, ValidationError)):
        lay(nodes(**demand))


def test_a_node_knows_its_group_and_a_pool_the_nodes_that_stay():
    layout = lay(
        nodes("T4", 4, 2, name="old", leaves_h=5),
        nodes("V100", 2, name="other", leaves_h=1),
        nodes("T4", 4, 3, name="new", joins_h=1),
    )
    assert [group.name for group in layout.groups] == ["old"] * 2 + ["new"] * 3 + ["other"]
    assert layout.pools["nodes"].tolist() == [5, 1]
    assert layout.lasting.tolist() == [3, 0]


def test_joining_and_leaving_times_do_not_split_a_pool():
    assert len(lay(nodes(), nodes(joins_h=1), nodes(leaves_h=9)).pools) == 1


@pytest.mark.parametrize(("joins", "leaves"), [(5, 4), (5, 5), (0, 0)])
def test_a_group_must_join_before_it_leaves(joins, leaves):
    with pytest.raises(ValidationError, match=f"leaves_h {leaves} is not after joins_h {joins}"):
        lay(nodes(), nodes(joins_h=joins, leaves_h=leaves))


def test_some_nodes_must_stay():
    with pytest.raises(ValidationError, match="nodes: all of them leave; at least one group must"):
        lay(nodes(leaves_h=5), nodes(joins_h=1, leaves_h=50))
