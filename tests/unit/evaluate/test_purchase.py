"""Options of `adlro plan` as they are written, and the clusters that they give."""

import pytest

from adlro.errors import ConfigError
from adlro.evaluate.purchase import Money, Part, addition, amount, money, parse, removal
from adlro.model.cluster import Cluster

FREE = Money({})


def group(name, gpu, gpus=4, **more):
    given = {"name": name, "gpu": gpu, "gpus": gpus, "cores": 10 * gpus, "memory_gb": 100 * gpus}
    return given | {"partitions": ["main"]} | more


@pytest.fixture
def cluster():
    """16 A100 on nodes of 8, 12 V100 on nodes of 4, in two partitions."""
    a100 = group("a", "A100 40GB", 8, hosts=["a1", "a2"], gpu_type="a100", features=["ib", "hbm"])
    v100 = group("v", "V100", count=3, gpu_type="volta", partitions=["main", "long"])
    return Cluster.model_validate({"nodes": [a100, v100 | {"features": ["ib"]}]})


def test_options_are_parsed_by_number_and_model():
    assert parse("--add", "4xH200+ 8 x L40S") == (Part(4, "H200"), Part(8, "L40S"))
    assert parse("--remove", "v100") == (Part(None, "v100"),)
    assert parse("--add", "2x1g.10gb") == (Part(2, "1g.10gb"),)


@pytest.mark.parametrize(
    "text", ["", "4x", "4xH200+", "-4xH200", "4.5xH200", "0xH100", "999999xT4"]
)
def test_malformed_options_are_refused(text):
    with pytest.raises(ConfigError, match="--add"):
        parse("--add", text)


@pytest.mark.parametrize("text", ["-5", "0", "nan", "inf", "much"])
def test_money_is_an_amount_above_0(text):
    with pytest.raises(ConfigError, match="above 0"):
        amount("--budget", text)


def test_new_nodes_are_like_those_of_the_cluster(cluster):
    found = addition("12xH200", cluster, FREE)
    new = [one for one in found.cluster.nodes if one.name in found.new]
    assert [(one.count, one.gpus, one.cores, one.memory_gb) for one in new] == [
        (1, 8, 80, 800),
        (1, 4, 40, 400),
    ]
    assert {one.partitions for one in new} == {("main", "long")}
    assert {one.features for one in new} == {("ib",)}  # those that all nodes have
    assert (found.gpus, found.price, found.name) == (40, None, "add 12xH200")


def test_new_nodes_of_a_model_that_is_there_are_asked_for_like_it(cluster):
    types = [one.gpu_type for one in addition("8xA100", cluster, FREE).cluster.nodes]
    assert types == ["a100", "volta", "a100"]
    assert addition("8xL4", cluster, FREE).cluster.nodes[-1].gpu_type == ""


def test_new_nodes_may_be_in_one_partition(cluster):
    assert addition("8xL4", cluster, FREE, ["long"]).cluster.nodes[-1].partitions == ("long",)
    with pytest.raises(ConfigError, match="'lnog': no such partition; did you mean 'long'"):
        addition("8xL4", cluster, FREE, ["lnog"])


def test_a_budget_buys_whole_gpus(cluster):
    prices = money({"h200": "30,000", "L40S": "8000"}, "100000", cluster)
    assert addition("H200", cluster, prices).name == "add 3xH200"
    both = addition("2xL40S+H200", cluster, prices)
    assert (both.name, both.price) == ("add 2xL40S+2xH200", 76_000)  # 84,000 are left for H200
    assert addition("3xH200+1xL40S", cluster, prices).price == 98_000
    assert addition("4xH200", cluster, prices) is None
    assert addition("12xL40S+H200", cluster, prices) is None  # 4,000 are left


@pytest.mark.parametrize(
    ("text", "budget", "why"),
    [
        ("H200", None, "say how many H200, e.g. 4xH200, or give --budget"),
        ("H200+L40S", "1e6", "say how many L40S"),
        ("4xL4", "1e6", "--price 'L4="),
        ("4xH2000", None, "unknown GPU model 'H2000': did you mean"),
    ],
)
def test_what_cannot_be_bought_is_said(cluster, text, budget, why):
    with pytest.raises(ConfigError, match=why):
        addition(text, cluster, money({"H200": "1", "L40S": "1"}, budget, cluster))


def test_prices_are_checked(cluster):
    for prices, budget, why in (
        ({"H2000": "5"}, None, "--price: unknown GPU model 'H2000'"),
        ({"H200": "-5"}, None, "--price H200= '-5'"),
        ({}, "5", "--budget needs the price"),
    ):
        with pytest.raises(ConfigError, match=why):
            money(prices, budget, cluster)


def counts(found):
    return [(one.name, one.count, one.gpus) for one in found.cluster.nodes]


@pytest.mark.parametrize("text", ["volta", "V100", "v100 32GB", "12xVolta"])
def test_all_gpus_of_a_type_or_model_can_be_removed(cluster, text):
    assert counts(removal(text, cluster, FREE)) == [("a", 2, 8)]


def test_whole_nodes_go_first_and_what_was_taken_is_said(cluster):
    found = removal("6xvolta", cluster, FREE)
    assert counts(found) == [("a", 2, 8), ("v", 1, 4), ("v with fewer GPUs", 1, 2)]
    assert found.gpus == 16 + 12 - 6
    assert "4 V100 32GB with their nodes (v-2), 2 of the 4 GPUs of v-1" in found.notes[0]
    hosts = removal("8xa100", cluster, FREE).cluster.nodes[0].hosts
    assert hosts == ("a1",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("13xV100", "there are only 12 GPUs of V100"),
        ("a100+volta", "every GPU of the cluster"),
        ("a10", "no node has GPUs called 'a10'; did you mean 'a100'"),
        ("0xV100", "0 GPUs"),
    ],
)
def test_what_cannot_be_removed_is_said(cluster, text, why):
    with pytest.raises(ConfigError, match=why):
        removal(text, cluster, FREE)
