"""Which GPU of a cluster a telemetry reading belongs to."""

import numpy as np
import pytest

from adlro.model.cluster import Cluster, NodeGroup, lay_out
from adlro.telemetry.attach import UNKNOWN, attach, gpu_name, model_of
from adlro.telemetry.check import check_cluster
from adlro.telemetry.sample import NAMES, WHOLE_GPU, Sample


def group(name, gpu="V100 32GB", gpus=2, **more):
    return NodeGroup(name=name, gpu=gpu, gpus=gpus, cores=8, memory_gb=64, **more)


def cluster(*groups):
    return lay_out(Cluster(nodes=groups))


def sample(*rows, values=1.0):
    """A sample of rows (host, number), (host, number, part) or (host, number, part, model)."""
    full = [(*row, *(WHOLE_GPU, "")[len(row) - 2 :]) for row in rows]
    host, gpu, part, model = zip(*full, strict=True) if full else ((), (), (), ())
    return Sample(
        host=host,
        gpu=np.array(gpu, np.int64),
        part=np.array(part, np.int64),
        model=model,
        values=np.full((len(rows), len(NAMES)), values),
        time=np.zeros(len(rows)),
        now=0.0,
    )


TWO = cluster(group("n", count=2))  # n-0 and n-1, two GPUs each


def gpus_of(readings, layout=TWO):
    return attach(readings, layout).gpus.tolist()


def test_host_and_number_name_the_gpu():
    found = attach(sample(("n-0", 0), ("n-0", 1), ("n-1", 0), ("n-1", 1)), TWO)
    assert found.gpus.tolist() == [0, 1, 2, 3]
    assert [len(part) for part in found[1:]] == [0, 0, 0]
    assert len(found.unattached) == 0


def test_gpus_are_indexed_as_in_the_layout_and_not_as_in_the_file():
    # b and d make one pool, so that they stand side by side in the layout.
    layout = cluster(group("b"), group("c", "T4"), group("d"))
    assert gpus_of(sample(("b", 1), ("c", 0), ("d", 0)), layout) == [1, 4, 2]


def test_gpus_without_a_row_are_missing():
    found = attach(sample(("n-0", 1), ("n-1", 0)), TWO)
    assert found.missing.tolist() == [0, 3]


def test_a_row_without_any_value_is_no_reading():
    found = attach(sample(("n-0", 0), values=np.nan), TWO)
    assert found.gpus.tolist() == [0]
    assert found.missing.tolist() == [0, 1, 2, 3]


def test_an_empty_sample_leaves_every_gpu_missing():
    assert attach(sample(), TWO).missing.tolist() == [0, 1, 2, 3]


def test_an_unknown_host_or_number_belongs_to_no_gpu():
    found = attach(sample(("login", 0), ("n-0", 0), ("n-0", 2)), TWO)
    assert found.gpus.tolist() == [UNKNOWN, 0, UNKNOWN]
    assert found.unattached.tolist() == [0, 2]


# Short names and full ones.


@pytest.mark.parametrize(
    ("host", "node"), [("n1.a.org", "n1"), ("n1", "n1.a.org"), ("n1.a.org", "n1.a.org")]
)
def test_a_short_name_stands_for_a_full_one(host, node):
    assert gpus_of(sample((host, 0)), cluster(group(node))) == [0]


@pytest.mark.parametrize(
    ("hosts", "nodes"),
    [
        (["n1.b.org"], ["n1.a.org"]),  # two domains
        (["n1"], ["n1.a.org", "n1.b.org"]),  # two nodes
        (["n1.a.org", "n1.b.org"], ["n1"]),  # two hosts
        (["10.0.0.1"], ["10"]),  # addresses have no short name
        (["10"], ["10.0.0.1"]),
    ],
)
def test_an_ambiguous_name_belongs_to_no_node(hosts, nodes):
    layout = cluster(*(group(node) for node in nodes))
    assert gpus_of(sample(*((host, 0) for host in hosts)), layout) == [UNKNOWN] * len(hosts)


def test_the_exact_name_goes_before_the_short_one():
    layout = cluster(group("n1"), group("n1.a.org"))
    assert gpus_of(sample(("n1", 0), ("n1.a.org", 0)), layout) == [0, 2]


def test_a_gpu_under_two_names_is_duplicated():
    found = attach(sample(("n1", 0), ("n1.a.org", 0), ("n1.a.org", 1)), cluster(group("n1")))
    assert found.gpus.tolist() == [0, 0, 1]
    assert found.duplicated.tolist() == [0]


def test_hosts_of_a_cluster_are_found_by_their_real_names():
    layout = cluster(group("volta", hosts=["gpu01", "gpu07.a.org"]), group("t", "T4", hosts=["t9"]))
    rows = sample(("gpu07", 1), ("t9.a.org", 0), ("gpu01", 0), ("volta-0", 0))
    assert gpus_of(rows, layout) == [3, 4, 0, UNKNOWN]
    assert gpu_name(3, layout) == "gpu07.a.org/1"
    assert check_cluster("c", rows, layout).missing == ("gpu01/1", "gpu07.a.org/0", "t9/1")


# Hosts that are split into a node for each model.

PARTS = cluster(group("v", hosts=["v100@g7"]), group("t", "T4", gpus=1, hosts=["t4@g7"]))


def test_the_model_of_a_reading_names_the_part_of_a_host():
    rows = sample(("g7", 0, WHOLE_GPU, "Tesla T4"), *(("g7", i, WHOLE_GPU, "V100") for i in (1, 2)))
    found = attach(rows, PARTS)
    assert found.gpus.tolist() == [2, 0, 1]
    assert not len(found.missing)
    assert gpu_name(0, PARTS) == "v100@g7/0"


@pytest.mark.parametrize("model", ["", "A100", "nonsense"])
def test_a_reading_of_a_split_host_without_its_model_belongs_to_no_gpu(model):
    rows = sample(("g7", 0, WHOLE_GPU, "T4"), ("g7", 1, WHOLE_GPU, model))
    assert gpus_of(rows, PARTS) == [2, UNKNOWN]


def test_parts_are_attached_only_if_their_gpus_are_as_many_as_the_cluster_says():
    rows = sample(*(("g7", i, WHOLE_GPU, "T4") for i in range(2)), ("g7", 2, WHOLE_GPU, "V100"))
    assert gpus_of(rows, PARTS) == [UNKNOWN] * 3


def test_a_host_may_have_whole_gpus_beside_slices():
    layout = cluster(group("a", "A100", gpus=1, hosts=["a@g"]), group("m", MIG, hosts=["m@g"]))
    rows = sample(("g", 0, 1, MIG), ("g", 1, WHOLE_GPU, "A100"), ("g", 0, 0, MIG))
    assert gpus_of(rows, layout) == [2, 0, 1]


# Slices.

MIG = "A100 40GB MIG 1g.5gb"


def test_slices_are_counted_by_gpu_and_part():
    rows = sample(("m", 0, 7), ("m", 0, 9), ("m", 1, 3))
    assert gpus_of(rows, cluster(group("m", MIG, gpus=3))) == [0, 1, 2]


def test_a_slice_too_few_leaves_open_which_one_it_is():
    found = attach(sample(("m", 0, 7), ("m", 1, 3)), cluster(group("m", MIG, gpus=3)))
    assert found.gpus.tolist() == [UNKNOWN, UNKNOWN]
    assert found.missing.tolist() == [0, 1, 2]


def test_a_slice_is_not_the_gpu_that_the_cluster_has_as_a_whole():
    assert gpus_of(sample(("n-0", 0, 1), ("n-0", 1))) == [UNKNOWN, 1]


def test_a_whole_gpu_is_no_slice():
    assert gpus_of(sample(("m", 0), ("m", 0, 1)), cluster(group("m", MIG, gpus=1))) == [UNKNOWN, 0]


# Models.


def test_models_are_compared_by_the_catalogue():
    rows = sample(
        ("n-0", 0, WHOLE_GPU, "Tesla V100-SXM2-32GB"),
        ("n-0", 1, WHOLE_GPU, "Tesla T4"),
        ("n-1", 0, WHOLE_GPU, "Voodoo 2"),
        ("n-1", 1),
        ("x", 0, WHOLE_GPU, "Tesla T4"),
    )
    assert attach(rows, TWO).other_model.tolist() == [1, 2]


def test_gpus_are_named_by_node_and_number():
    assert [gpu_name(g, TWO) for g in range(4)] == ["n-0/0", "n-0/1", "n-1/0", "n-1/1"]
    assert model_of(3, TWO).name == "V100 32GB"


def test_the_check_names_where_sample_and_cluster_disagree():
    rows = sample(("n-0", 0, WHOLE_GPU, "Tesla T4"), ("n-0.x", 0), ("n-1", 1), ("y", 3, 2))
    found = check_cluster("two", rows, TWO)
    assert found.missing == ("n-0/1", "n-1/0")
    assert found.duplicated == ("n-0/0",)
    assert found.unattached == ("y/3.2",)
    assert found.other_model == ("n-0/0 is 'Tesla T4', not 'V100 32GB'",)
    assert not found.is_complete
    assert check_cluster("one", sample(("n", 0)), cluster(group("n", gpus=1))).is_complete
