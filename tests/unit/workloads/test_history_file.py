"""The GPU models that jobs of a history ran on."""

import pytest

from adlro.config.history import Recorded
from adlro.model.cluster import Cluster
from adlro.workloads import history_file
from adlro.workloads.formats.registry import read
from tests.histories import write

GROUP = {"gpus": 4, "cores": 8, "memory_gb": 64}
CLUSTER = Cluster(
    nodes=[
        {"name": "a", "gpu": "A100 80GB", "gpu_type": "a100", "hosts": ["a1", "a2"], **GROUP},
        {"name": "b", "gpu": "A100 40GB", "gpu_type": "a100", "hosts": ["b1"], **GROUP},
        {"name": "m", "gpu": "MI250 die", "gpu_type": "mi250", "hosts": ["m1"], **GROUP},
        {"name": "p", "gpu": "T4", "gpu_type": "t4", "hosts": ["t4@x1"], **GROUP},
        {"name": "q", "gpu": "A10", "gpu_type": "a10", "hosts": ["a10@x1"], **GROUP},
    ]
)


def models(tmp_path, cluster, *jobs, **recorded):
    """The model of each job, given as (type, hosts)."""
    head = "JobIDRaw|Submit|ElapsedRaw|AllocTRES|NodeList\n"
    rows = [
        f"{i}|2026-03-02T10:00:00|60|cpu=1,gres/gpu{':' + kind if kind else ''}=1,node=1|{hosts}\n"
        for i, (kind, hosts) in enumerate(jobs)
    ]
    path = write(tmp_path, head + "".join(rows), "jobs.txt")
    found = history_file.ran_on(read(path), Recorded(file=str(path), **recorded), cluster)
    names = [model.name for model in found.models]
    return [names[code] if code >= 0 else None for code in found.of_job]


@pytest.mark.parametrize(
    ("kind", "hosts", "model"),
    [
        ("a100", "a1", "A100 80GB"),
        ("a100", "a[1-2]", "A100 80GB"),
        ("a100", "b1", "A100 40GB"),
        ("A100", "b1", "A100 40GB"),
        ("a100", "a1,b1", "A100 80GB"),  # of both; the first counts
        ("a100", "elsewhere", "A100 80GB"),
        ("a100", "a[x]", "A100 80GB"),
        ("mi250", "", "MI250 die"),  # the board's name, but the cluster's own type
        ("mi250", "a1", "MI250 die"),
        ("v100", "a1", "V100 32GB"),  # no type of the cluster
        ("", "m1", "MI250 die"),
        ("", "a1,b1", None),
        ("", "x1", None),  # a host with two models
        ("t4", "x1", "T4"),
        ("", "", None),
        ("nonsense", "a1", None),
    ],
)
def test_the_type_and_the_hosts_of_a_job_say_its_model(tmp_path, kind, hosts, model):
    assert models(tmp_path, CLUSTER, (kind, hosts)) == [model]


def test_every_job_has_its_own_model(tmp_path):
    jobs = [("a100", "b1"), ("", "m1"), ("", ""), ("a100", "a2"), ("a100", "b1")]
    found = models(tmp_path, CLUSTER, *jobs)
    assert found == ["A100 40GB", "MI250 die", None, "A100 80GB", "A100 40GB"]


def test_names_that_the_scenario_gives_go_first(tmp_path):
    given = {"a100": "H100", "odd": "T4"}
    found = models(tmp_path, CLUSTER, ("a100", "b1"), ("odd", ""), gpu_names=given)
    assert found == ["H100", "T4"]


def test_without_hosts_and_types_in_the_cluster_the_catalogue_decides(tmp_path):
    plain = Cluster(nodes=[{"name": "a1", "gpu": "A100 80GB", **GROUP}])
    assert models(tmp_path, plain, ("a100", "a1"), ("", "a1")) == ["A100 40GB", None]
