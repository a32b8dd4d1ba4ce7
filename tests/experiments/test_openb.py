"""Reading Alibaba's openb trace, and drawing pods from it."""

import gzip

import numpy as np
import pytest
from openb_placement import openb

from adlro.errors import TraceError
from tests.openb_files import NODES, PODS, trace, write

GOOD_NODES = ["b,16000,999,2,T4", "a,8000,500,1,V100"]
GOOD_PODS = ["p0,1000,10,1,500,", "p1,2000,10,2,1000,T4|V100", "p2,1000,10,1,500,"]


def said(folder, nodes=GOOD_NODES, pods=GOOD_PODS, heads=(NODES, PODS)):
    """Error message of a bad file, without the folder's name."""
    with pytest.raises(TraceError) as caught:
        openb.read(*write(folder, nodes, pods, heads))
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{folder}/")


def test_nodes_are_read_in_the_order_of_their_names(tmp_path):
    found = trace(tmp_path, GOOD_NODES, GOOD_PODS)
    assert found.names == ("a", "b")
    assert found.models == ("T4", "V100")
    fields = ["cores", "free_cores", "memory", "free_memory", "gpus", "free", "first_gpu", "pool"]
    assert found.nodes[fields].tolist() == [
        (8000, 8000, 500, 500, 1, 1, 0, 1),
        (16000, 16000, 999, 999, 2, 2, 1, 0),
    ]
    assert found.gpus["node"].tolist() == [0, 1, 1]
    assert found.gpus["free"].tolist() == [1000] * 3


def test_pods_with_the_same_request_share_a_spec(tmp_path):
    found = trace(tmp_path, GOOD_NODES, [*GOOD_PODS, "p3,1000,10,0,0,", "p4,1,1,1,100,V100"])
    assert found.pods.tolist() == [0, 3, 0, 2, 1]
    assert found.specs[["pools", "gpus", "share", "cores", "memory"]].tolist() == [
        (0b11, 1, 500, 1000, 10),
        (0b10, 1, 100, 1, 1),
        (0b11, 0, 0, 1000, 10),
        (0b11, 2, 1000, 2000, 10),
    ]


def test_a_list_without_models_and_a_compressed_one_are_read_too(tmp_path):
    paths = write(tmp_path, GOOD_NODES, ["p0,1000,10,1,500"], (NODES, PODS[: PODS.rindex(",")]))
    packed = tmp_path / "pods.csv.gz"
    packed.write_bytes(gzip.compress(paths[1].read_bytes()))
    assert openb.read(paths[0], packed).specs["pools"].tolist() == [0b11]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("c,8k,500,1,T4", "cpu_milli must be a whole number from 0 to 2147483647, not '8k'"),
        ("c,-1,500,1,T4", "cpu_milli must be a whole number from 0 to 2147483647, not '-1'"),
        ("c,1,,1,T4", "memory_mib must be a whole number from 0 to 2147483647, not ''"),
        ("c,1,2147483648,1,T4", "memory_mib must be a whole number from 0 to 2147483647, not"),
        (f"c,1,{9 * '9' * 999},1,T4", "memory_mib must be a whole number from 0 to"),
        ("c,1,1,65,T4", "gpu must be a whole number from 0 to 64, not '65'"),
        ("c,1,1,1", "expected 5 fields, got 4"),
        ("c,1,1,2,", "node 'c' has 2 GPUs but no model"),
        ("a,1,1,1,T4", "there is a node 'a' already"),
    ],
)
def test_a_bad_node_is_named_by_file_line_and_value(tmp_path, row, message):
    assert said(tmp_path, [*GOOD_NODES, row]).startswith(f"nodes.csv:4: {message}")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("p,1.5,1,1,500,", "cpu_milli must be a whole number from 0 to 2147483647, not '1.5'"),
        ("p,1,1,1,1001,", "gpu_milli must be a whole number from 0 to 1000, not '1001'"),
        ("p,1,1,x,1000,", "num_gpu must be a whole number from 0 to 64, not 'x'"),
        ("p,1,1,2,500,", "2 GPUs with gpu_milli 500; a pod has no GPU (0), a part of one"),
        ("p,1,1,0,500,", "0 GPUs with gpu_milli 500;"),
        ("p,1,1,1,0,", "1 GPUs with gpu_milli 0;"),
        ("p,1,1,1,500,H100", "gpu_spec names 'H100', a model that no node has"),
        ("p,1,1,1,500,T4|", "gpu_spec names '', a model that no node has"),
        ("p,1,1,1,500,,", "expected 6 fields, got 7"),
    ],
)
def test_a_bad_pod_is_named_by_file_line_and_value(tmp_path, row, message):
    nodes = [*GOOD_NODES, "cpu,1,1,0,"]
    assert said(tmp_path, nodes, [*GOOD_PODS, row]).startswith(f"pods.csv:5: {message}")


def test_a_file_without_the_right_columns_or_rows_is_refused(tmp_path):
    heads = (NODES, "name,cpu_milli,memory_mib,num_gpu")
    assert said(tmp_path, heads=heads) == (
        "pods.csv:1: there is no column 'gpu_milli'; is this an openb file?"
    )
    assert said(tmp_path, nodes=[]) == "nodes.csv: there are no rows below the names of the columns"
    assert said(tmp_path, nodes=["a,1,1,0,"]) == "nodes.csv: no node has a GPU"
    assert said(tmp_path, pods=["p,1,1,0,0,"]) == "pods.csv: no pod asks for a GPU"


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    nodes, pods = write(tmp_path, GOOD_NODES, GOOD_PODS)
    torn = tmp_path / "torn.csv.gz"
    torn.write_bytes(gzip.compress(b"name\n" * 99)[:-9])
    (tmp_path / "latin.csv").write_bytes(b"na\xefve\n")
    spoilt = tmp_path / "spoilt.csv.gz"
    spoilt.write_bytes(gzip.compress(b"name\n")[:10] + b"\xff" * 20)
    for path in (tmp_path / "absent.csv", tmp_path, torn, tmp_path / "latin.csv", spoilt):
        with pytest.raises(TraceError, match="cannot be read: "):
            openb.read(nodes, path)
    with pytest.raises(TraceError, match="cannot be read: "):
        openb.read(tmp_path / "absent.csv", pods)


def test_a_field_without_an_end_is_named_by_its_line(tmp_path):
    endless = "x" * 200_000
    assert said(tmp_path, pods=[*GOOD_PODS, f"{endless},1,1,1,500,"]) == (
        "pods.csv:5: field larger than field limit (131072)"
    )


def test_more_models_than_a_mask_has_bits_are_refused(tmp_path):
    nodes = [f"n{i:02},1,1,1,M{i}" for i in range(64)]
    assert said(tmp_path, nodes) == "nodes.csv: 64 GPU models; at most 63 can be told apart"
    assert len(trace(tmp_path, nodes[:63], GOOD_PODS[:1]).models) == 63


def test_typical_pods_are_the_most_frequent_that_make_up_95_percent(tmp_path):
    # 60 + 30 + 5 of 100 are 95 %; the last five are left out. Pods that differ in memory alone are
    # of one kind. Five cores for two GPUs are three for each.
    pods = [
        *["p,1000,1,1,500,"] * 35,
        *["p,1000,2,1,500,"] * 25,
        *["p,4000,1,0,0,T4"] * 30,
        *["p,5,1,2,1000,V100"] * 5,
        *["p,7,1,1,900,"] * 4,
        "p,9,1,1,900,",
    ]
    found = trace(tmp_path, GOOD_NODES, pods)
    names = ["pools", "gpus", "share", "cores", "memory"]
    kinds = openb.typical(found)
    assert kinds[names].tolist() == [(3, 1, 500, 1000, 0), (0, 0, 0, 4000, 0), (2, 2, 1000, 3, 0)]
    assert kinds["weight"] == pytest.approx([60 / 95, 30 / 95, 5 / 95])
    assert len(openb.typical(found, 0.951)) == 4
    assert openb.typical(found, 1.0)["weight"] == pytest.approx([0.6, 0.3, 0.05, 0.04, 0.01])


def test_each_pod_is_drawn_once_and_then_with_replacement_up_to_the_demand(tmp_path):
    # Three GPUs, the list asks for 0.5 + 2 + 0.5. For 4 times as many, 12, nine more are needed.
    found = trace(tmp_path, GOOD_NODES, GOOD_PODS)
    for seed in range(20):
        coming = openb.draw(found, 4.0, np.random.default_rng(seed))
        asked = (found.specs["gpus"] * found.specs["share"])[coming]
        assert 12_000 <= asked.sum() < 12_000 + asked.max()
        assert np.bincount(coming)[0] >= 2
        assert np.bincount(coming)[1] >= 1


def test_of_a_long_list_only_a_part_is_drawn(tmp_path):
    found = trace(tmp_path, GOOD_NODES, [*GOOD_PODS] * 10)
    coming = openb.draw(found, 1.0, np.random.default_rng(0))
    asked = (found.specs["gpus"] * found.specs["share"])[coming]
    assert 3_000 <= asked.sum() < 5_000


def test_the_order_is_shuffled_and_a_function_of_the_seed(tmp_path):
    found = trace(tmp_path, GOOD_NODES, [*["p,1,1,1,100,"] * 50, *["p,2,1,1,100,"] * 50])
    drawn = [openb.draw(found, 5.0, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    assert sum(drawn[0][:50]) not in (0, 50)
