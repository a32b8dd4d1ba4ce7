"""Worth, entitlements and caps that follow from a scenario."""

import numpy as np
import pytest

from adlro.config.scenario import Scenario
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.scenario_files import refusal

NODE = {"cores": 8, "memory_gb": 64}
SCENARIO = {
    "name": "hand",
    "cluster": {
        "nodes": [
            {"name": "v", "gpu": "V100 32GB", "gpus": 4, **NODE},
            {"name": "t", "gpu": "T4", "gpus": 2, "count": 2, **NODE},
        ]
    },
    "types": [
        {"name": "x", "share": 0.75, "speed": {"V100": 1, "T4": 0.5}, "size": {"median_s": 9}},
        {"name": "y", "share": 0.25, "speed": {"V100": 1, "T4": 0.1}, "size": {"median_s": 9}},
    ],
    "jobs": 50,
    "users": 3,
    "accounts": ["a", "b"],
}


def made(**changes):
    return prepare(Scenario.model_validate({**SCENARIO, **changes}))


def test_a_gpu_is_worth_the_mean_speed_of_the_types_there():
    # T4: 0.75 x 0.5 + 0.25 x 0.1 = 0.4 of a V100
    setting = made()
    assert setting.pools["worth"] == pytest.approx([1, 0.4])
    assert setting.prices == pytest.approx([1, 0.4])


def test_a_price_list_takes_the_place_of_the_speeds():
    setting = made(prices={"T4": 0.5, "V100": 2.5})
    assert setting.pools["worth"] == pytest.approx([1, 0.2])
    assert setting.prices == pytest.approx([2.5, 0.5])


def test_without_the_reference_gpu_the_first_model_is_worth_1():
    nodes = [
        {"name": "t", "gpu": "T4", "gpus": 4, **NODE},
        {"name": "l", "gpu": "L4", "gpus": 4, **NODE},
    ]
    types = [{"name": "x", "share": 1, "kind": "ml", "size": {"median_s": 9}}]
    setting = made(cluster={"nodes": nodes}, types=types, prices={"T4": 0.5, "L4": 0.8})
    assert setting.pools["worth"] == pytest.approx([1, 1.6])


def test_a_share_is_of_the_worth_of_all_gpus():
    # 4 x 1 + 4 x 0.4 = 5.6
    entries = [{"account": "b", "share": 0.5, "borrow": False}, {"user": 2, "caps": {"T4": 3}}]
    workload = generate(made(quotas=entries), 0)
    assert workload.quotas["worth"].tolist() == pytest.approx([2.8, np.inf])
    assert workload.quotas["borrows"].tolist() == [0, 1]
    assert workload.caps.tolist() == [[-1, -1], [-1, 3]]
    jobs = workload.jobs
    assert (workload.holders[:, 0] == np.where(jobs["account"] == 1, 0, -1)).all()
    assert (workload.holders[:, 1] == np.where(jobs["user"] == 2, 1, -1)).all()
    assert set(jobs["user"]) == {0, 1, 2}


def test_each_user_has_a_quota_of_its_own():
    workload = generate(made(quotas=[{"users": "each", "share": 0.25}]), 0)
    assert workload.quotas["worth"].tolist() == pytest.approx([1.4, 1.4, 1.4])
    assert (workload.holders[:, 1] == workload.jobs["user"]).all()
    assert (workload.holders[:, 0] == -1).all()


def test_a_scenario_without_rules_has_none():
    workload = generate(made(), 0)
    assert len(workload.quotas) == len(workload.caps) == len(workload.ageing) == 0
    assert (workload.holders == -1).all()


def test_ageing_is_handed_on_in_seconds():
    assert generate(made(ageing_h=1.5), 0).ageing.tolist() == [5400]


def with_gangs(*gangs):
    p = [1 / len(gangs)] * len(gangs)
    return [{**SCENARIO["types"][0], "gpus": {"values": list(gangs), "p": p}}]


def test_a_job_that_caps_let_run_nowhere_is_refused_with_its_type_and_the_caps():
    caps = {"account": "a", "caps": {"V100": 2, "T4": 3}}
    said = refusal(lambda: made(types=with_gangs(1, 4), quotas=[caps]))
    assert said.startswith("scenario hand: types.x: a job of 4 GPUs could run nowhere")
    assert "account 'a' at most 2 V100 32GB, 3 T4" in said


def test_caps_of_an_account_and_of_a_user_are_refused_if_together_they_leave_no_pool():
    one, other = {"account": "a", "caps": {"V100": 2}}, {"users": "each", "caps": {"T4": 2}}
    made(types=with_gangs(4), quotas=[one])
    made(types=with_gangs(4), quotas=[other])
    said = refusal(lambda: made(types=with_gangs(4), quotas=[one, other]))
    assert "account 'a' at most 2 V100 32GB; each user at most 2 T4" in said


def test_a_slice_needs_only_its_share_of_a_cap():
    types = [{**SCENARIO["types"][0], "gpu_share": 0.5}]
    made(types=types, quotas=[{"account": "a", "caps": {"V100": 0, "T4": 1}}])
    refusal(lambda: made(types=types, quotas=[{"account": "a", "caps": {"V100": 0, "T4": 0}}]))
