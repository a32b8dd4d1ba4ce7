"""Which pools recorded jobs may use, and what is said where constraints cannot be applied."""

import numpy as np
import pytest

from adlro.config.files import load_scenario
from adlro.config.history import Recorded
from adlro.errors import ConfigError
from adlro.model.cluster import Cluster, lay_out
from adlro.workloads.assumptions import Assumptions
from adlro.workloads.constraints import allowed_pools, meets, parsed, partition_bits
from adlro.workloads.setting import prepare
from tests.histories import history

# Four pools: volta (gpu, lab), turing (lab), a100-80 (gpu), another turing (big).
NODES = (
    {"gpu": "V100 32GB", "gpu_type": "volta", "partitions": ["gpu", "lab"], "features": ["ib"]},
    {"gpu": "T4", "gpu_type": "turing", "partitions": ["lab"], "features": ["eth", "new"]},
    {"gpu": "A100 80GB", "partitions": ["gpu"], "features": ["ib", "new"]},
    {"gpu": "T4", "gpu_type": "turing", "partitions": ["big"]},
)
PLAIN = ({"gpu": "V100 32GB"}, {"gpu": "T4"})
SIZES = {"gpus": 4, "cores": 16, "memory_gb": 64}


def layout_of(nodes=NODES):
    groups = [{"name": f"n{i}", **SIZES, **node} for i, node in enumerate(nodes)]
    return lay_out(Cluster.model_validate({"nodes": groups}))


def applied(folder, text, nodes=NODES, **recorded):
    """The pools that the jobs of such a CSV file may use as 0 and 1, and the sentences."""
    found = history(folder, text)
    assumed = Assumptions(found.jobs)
    wanted = Recorded(file="jobs.txt", **recorded)
    allowed = allowed_pools(found, wanted, np.arange(found.jobs), layout_of(nodes), assumed)
    return ["".join("01"[int(may)] for may in row) for row in allowed], assumed.sentences


PARTITIONS = "id,submit,partition,partitions\na,1,gpu,\nb,2,lab,\nc,3,gpu,gpu|big\n"


def test_a_job_may_use_the_pools_of_all_its_partitions(tmp_path):
    pools, said = applied(tmp_path, PARTITIONS)
    assert pools == ["1010", "1100", "1011"]
    assert said == ["all jobs: no requested GPU type is recorded: any type"]


def test_a_job_without_a_partition_may_use_any_and_is_counted(tmp_path):
    pools, said = applied(tmp_path, f"{PARTITIONS}d,4,,\n")
    assert pools[3] == "1111"
    assert "1 of 4 jobs: no partition is recorded: any partition" in said
    pools, said = applied(tmp_path, "id,submit\na,1\nb,2\n")
    assert (pools, said[0]) == (["1111"] * 2, "all jobs: no partition is recorded: any partition")


def test_jobs_of_a_partition_without_nodes_are_left_out_and_named(tmp_path):
    pools, said = applied(tmp_path, f"{PARTITIONS}d,4,cpu,\ne,5,cpu,cpu|old\nf,6,gpu,gpu|gone\n")
    assert pools[3:] == ["0000", "0000", "1010"]
    assert (
        "2 of 6 jobs: left out: submitted to a partition that no node is in, 'cpu', 'old' (the "
        "first: job 'd')" in said
    )
    with pytest.raises(ConfigError) as error:
        applied(tmp_path, f"{PARTITIONS}d,4,cpu,\n", strict=True)
    assert str(error.value) == (
        "jobs.txt: 1 of 4 jobs: submitted to a partition that no node is in, 'cpu' (the first: job "
        "'d'); correct the cluster file, or leave --strict away"
    )


def test_partitions_are_not_applied_if_the_cluster_names_none_or_on_request(tmp_path):
    pools, said = applied(tmp_path, PARTITIONS, PLAIN)
    assert pools == ["11"] * 3
    assert said[0] == "all jobs: partition not applied: the cluster file names none"
    pools, said = applied(tmp_path, PARTITIONS, partitions="ignore")
    assert pools == ["1111"] * 3
    assert said[0] == "all jobs: partition not applied, as the scenario says"


def test_the_cluster_of_another_history_is_refused(tmp_path):
    text = "id,submit,partition\n" + "".join(f"{i},{i},p{i}\n" for i in range(7))
    with pytest.raises(ConfigError) as error:
        applied(tmp_path, text)
    assert str(error.value) == (
        "jobs.txt: its jobs were submitted to 'p0', 'p1', 'p2', 'p3', 'p4' and 2 more, but the "
        "partitions of the cluster are 'big', 'gpu', 'lab': is this the cluster of another history?"
        " Correct partitions in the cluster file, or say partitions = 'ignore' (--partitions "
        "ignore)"
    )
    assert applied(tmp_path, text, partitions="ignore")[0] == ["1111"] * 7


def test_partitions_of_a_job_are_bits_for_policies(tmp_path):
    found = history(tmp_path, f"{PARTITIONS}d,4,cpu,\ne,5,,\n")
    # In the order of the cluster file: gpu, lab, big.
    assert partition_bits(found, np.arange(5), layout_of()).tolist() == [1, 2, 5, 0, 0]


def typed(names):
    return "id,submit,allowed\n" + "".join(f"{k},{k},{name}\n" for k, name in enumerate(names))


def test_a_type_is_found_by_the_clusters_own_name_the_model_or_a_shared_name(tmp_path):
    names = ["volta", "TURING", "v100", "a100", "A100 80GB", "tesla_t4", "volta|a100", ""]
    pools, _ = applied(tmp_path, typed(names), partitions="ignore")
    assert pools == ["1000", "0101", "1000", "0010", "0010", "0101", "1010", "1111"]


def test_a_name_of_one_model_does_not_mean_its_relatives(tmp_path):
    pools, said = applied(tmp_path, typed(["A100 40GB", "volta"]))
    assert pools == ["0000", "1000"]
    assert "that no node has, 'A100 40GB'" in " ".join(said)


def test_the_operator_says_what_a_name_means(tmp_path):
    names = {"big": "A100 80GB", "turing": "T4"}
    assert applied(tmp_path, typed(["big", "turing"]), gpu_names=names)[0] == ["0010", "0101"]


def test_jobs_of_a_type_that_no_node_has_are_left_out_and_named(tmp_path):
    pools, said = applied(tmp_path, typed(["h100", "volta", "h100|volta", "b200"]))
    assert pools == ["0000", "1000", "1000", "0000"]
    why = "they ask for a GPU type that no node has, 'b200', 'h100'; say what it is with --gpu if "
    why += "it is another name of one (the first: job '0')"
    assert f"2 of 4 jobs: left out: {why}" in said
    with pytest.raises(ConfigError) as error:
        applied(tmp_path, typed(["h100", "volta", "b200"]), strict=True)
    assert str(error.value).startswith(f"jobs.txt: 2 of 3 jobs: {why}; correct the cluster file")
    assert "\n" not in str(error.value)


def test_a_type_may_be_ignored(tmp_path):
    pools, said = applied(tmp_path, typed(["h100", "volta", ""]), gpu_types="ignore")
    assert pools == ["1111"] * 3
    assert "2 of 3 jobs: GPU type not applied, as the scenario says" in said


def test_a_type_that_a_job_ran_on_counts_only_on_request(tmp_path):
    text = "id,submit,allowed,gpu_model\na,1,volta,turing\nb,2,,turing\nc,3,,h100\nd,4,,\n"
    assert applied(tmp_path, text)[0] == ["1000", "1111", "1111", "1111"]
    pools, said = applied(tmp_path, text, gpu_types="allocated")
    assert pools == ["1000", "0101", "1111", "1111"]
    assert "1 of 4 jobs: GPU type that it ran on taken as requested" in said
    assert "2 of 4 jobs: neither requested nor used GPU type is known: any type" in said


def featured(texts):
    return "id;submit;features\n" + "".join(f"{k};{k};{text}\n" for k, text in enumerate(texts))


def test_features_bind_jobs_to_the_nodes_that_have_them(tmp_path):
    texts = ["ib", "ib&new", "eth|ib", "[ib|eth]", "", "new&(ib|eth)"]
    pools, _ = applied(tmp_path, featured(texts))
    assert pools == ["1010", "0010", "1110", "1110", "1111", "0110"]


def test_features_that_no_node_has_or_that_are_not_understood_are_said(tmp_path):
    pools, said = applied(tmp_path, featured(["hdr", "ib&eth", "ib*2&eth*2", "ib"]))
    assert pools == ["0000", "0000", "1111", "1010"]
    assert "1 of 4 jobs: features not applied: written in a way that is not known" in said
    text = "left out: they ask for features that no node has, 'hdr', 'ib&eth' (the first: job '0')"
    assert f"2 of 4 jobs: {text}" in said
    pools, said = applied(tmp_path, featured(["ib", ""]), PLAIN)
    assert pools == ["11"] * 2
    assert "1 of 2 jobs: features not applied: the cluster file names none" in said


@pytest.mark.parametrize(
    ("text", "has", "is_met"),
    [
        ("a", "a", True),
        ("a,b", "a", False),  # , is & in older versions
        ("a,b", "ab", True),
        ("a&b|c", "c", True),
        ("(a|b)&c", "b", False),
        ("(a|b)&c", "bc", True),
        (" a & b ", "ab", True),
        ("[a|(b&c)]", "bc", True),
    ],
)
def test_a_constraint_is_read_as_slurm_writes_it(text, has, is_met):
    assert meets(text, set(has)) is is_met


@pytest.mark.parametrize(
    "text", ["", "&a", "a&", "a|", "(a", "a)", "a b", "()", "a*2", "a!", "(" * 900, "a&" * 999]
)
def test_a_constraint_that_is_not_understood_is_none(text):
    assert parsed(text) is None
    assert not meets(text, {"a"})


def test_jobs_whose_constraints_no_node_meets_together_are_left_out_once(tmp_path):
    text = "id,submit,partition,allowed,features\na,1,big,volta,\nb,2,gpu,volta,new\nc,3,gpu,,new\n"
    pools, said = applied(tmp_path, text)
    assert pools == ["0000", "0000", "0010"]
    why = "no node is in their partitions and also has the GPU type and features they ask for"
    assert said == [f"2 of 3 jobs: left out: {why} (the first: job 'a')"]
    with pytest.raises(ConfigError, match=f"2 of 3 jobs: {why}"):
        applied(tmp_path, text, strict=True)


def test_jobs_without_ids_are_named_by_their_place(tmp_path):
    said = applied(tmp_path, "submit,run_s,allowed\n1,2,volta\n3,4,h100\n")[1]
    assert "(the first: job number 2 of the file)" in " ".join(said)


CLUSTER = """
[cluster]
[[cluster.nodes]]
name = "volta"
count = 2
gpu = "V100"
gpus = 4
cores = 16
memory_gb = 64
partition = "gpu"
[[cluster.nodes]]
name = "tee"
gpu = "T4"
gpus = 8
cores = 16
memory_gb = 64
partition = "lab"
"""


def played(folder, text, history_keys="", jobs=1):
    (folder / "jobs.csv").write_text(text)
    head = f'jobs = {jobs}\nusers = 5\n[history]\nfile = "jobs.csv"\n{history_keys}\n'
    (folder / "mine.toml").write_text(head + CLUSTER)
    return prepare(load_scenario(folder / "mine.toml"))


GANGS = "id,submit,run_s,gpus,one_node,partition\na,0,9,8,0,gpu\nb,1,9,4,1,gpu\nc,2,9,8,,gpu\n"


def test_a_gang_asked_for_on_one_node_stays_there(tmp_path):
    setting = played(tmp_path, f"{GANGS}d,3,9,1,1,gpu\n")
    assert setting.played.jobs["one_node"].tolist() == [0, 1, 0, 0]
    text = "gang that may span nodes: whether it needs one is not known"
    assert f"1 of 4 jobs: {text}" in setting.filled


def test_a_gang_on_one_node_that_is_larger_than_its_nodes_fits_nowhere(tmp_path):
    text = f"{GANGS}d,3,9,8,1,gpu\ne,4,9,8,1,lab\n"
    with pytest.raises(ConfigError) as error:
        played(tmp_path, text)
    assert "1 of 5 jobs of the history fit no pool of the cluster that they may use" in str(
        error.value
    )
    assert "(the first: 8 GPUs on one node with 1 cores" in str(error.value)
    setting = played(tmp_path, text, 'unfit = "drop"')
    assert setting.played.rows.tolist() == [0, 1, 2, 4]
    assert "left out: 1 jobs fit no pool that they may use, even empty" in setting.filled


def test_jobs_arrive_when_they_become_eligible(tmp_path):
    text = (
        "id,submit,eligible,run_s,gpus,partition\na,0,50,9,1,gpu\nb,10,10,9,1,gpu\nc,20,,9,1,gpu\n"
    )
    setting = played(tmp_path, text)
    assert setting.played.rows.tolist() == [1, 2, 0]
    assert setting.played.jobs["arrival"].tolist() == [0, 10, 40]
    why = "held, dependent or with a begin time: waits from when it became eligible"
    assert f"1 of 3 jobs: {why}" in setting.filled


def test_a_history_without_any_constraint_says_so_and_plays(tmp_path):
    setting = played(tmp_path, "id,submit,run_s,gpus\na,0,9,2\nb,1,9,1\n")
    assert setting.played.allowed.all()
    for sentence in (
        "all jobs: no partition is recorded: any partition",
        "all jobs: no requested GPU type is recorded: any type",
        "all jobs: eligible as soon as it was submitted: nothing else is recorded",
        "1 of 2 jobs: gang that may span nodes: whether it needs one is not known",
    ):
        assert sentence in setting.filled


def test_jobs_left_out_by_constraints_do_not_count_as_unfit(tmp_path):
    setting = played(tmp_path, f"{GANGS}d,3,9,1,0,cpu\n")
    assert setting.played.rows.tolist() == [0, 1, 2]
    assert any("1 of 4 jobs: left out: submitted to" in text for text in setting.filled)


def test_a_history_of_which_no_job_can_run_is_refused(tmp_path):
    text = "id,submit,run_s,gpus,allowed,partition\na,0,9,1,h100,gpu\nb,1,9,1,b200,lab\n"
    with pytest.raises(ConfigError) as error:
        played(tmp_path, text)
    assert "no job of" in str(error.value)
    assert "all jobs: left out: they ask for a GPU type that no node has" in str(error.value)
    assert "\n" not in str(error.value)
