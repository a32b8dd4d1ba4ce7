"""The cost of a plan that may preempt, on states small enough to work out by hand."""

import numpy as np
import pytest

from adlro.model.state import RUNNING, WAITING, WHOLE
from adlro.model.view import View
from adlro.planning.active_jobs import ActiveJobs, keep_all
from adlro.planning.plan_cost import plan_cost
from tests.worlds import job, lay, nodes, records


def state(groups, jobs, pool, begun):
    """The active jobs and the view of a state in which each job runs on `pool` [A], -1 = waits."""
    layout, count, pool = lay(*groups), len(jobs), np.array(pool)
    table, seconds = records(jobs), np.array([spec["seconds"] for spec in jobs], float)
    no_queue, eligible = np.zeros(0, WAITING), np.zeros((0, len(groups)), np.bool_)
    cluster = (layout.pools, layout.nodes, layout.gpus)
    rows, zeros = np.arange(count), np.zeros(count, np.int64)
    view = View(
        0.0, table, seconds, no_queue, eligible, np.zeros(0, RUNNING), *cluster, count, rows
    )
    active = ActiveJobs(
        rows, np.where(pool >= 0, rows, -1), pool, np.ones(count), np.array(begun), zeros,
        np.zeros(count, np.bool_), table["gpus"] * (table["share"] / WHOLE), np.zeros(count),
        seconds, layout.pools["gpus"].astype(float),
    )  # fmt: skip
    return active, view


@pytest.mark.parametrize(
    ("pools", "cost"),
    [
        ([0, -1, -1], 100 + (100 + 20) + (120 + 50)),  # job 0 goes on
        ([-1, 0, -1], 20 + (20 + 50) + (70 + 10 + 100)),  # it goes on last, and restores
    ],
)
def test_the_jobs_that_wait_follow_by_length(pools, cost):
    jobs = [job(0, 100, checkpoint=10), job(0, 20, checkpoint=10), job(0, 50)]
    active, view = state([nodes()], jobs, [0, -1, -1], [True, False, False])
    assert plan_cost(np.array(pools), active, view) == cost


def test_a_waiting_job_takes_the_pool_where_it_completes_first():
    # Job 1 waits 30 s for the V100, or takes 60 s on the T4; the gang has to wait for both V100.
    jobs = [job(0, 30, 90), job(0, 20, 60), job(0, 40, np.inf, gpus=2)]
    active, view = state([nodes("V100", 2), nodes("T4")], jobs, [0, -1, -1], [False] * 3)
    assert plan_cost(np.array([0, -1, -1]), active, view) == 30 + 20 + (30 + 40)


def test_who_moves_restores_and_who_stays_does_not():
    jobs = [job(0, 30, 90, checkpoint=7)]
    active, view = state([nodes("V100"), nodes("T4")], jobs, [1], [True])
    costs = [plan_cost(np.array([pool]), active, view) for pool in (0, 1, -1)]
    assert costs == [37, 90, 37]


def test_a_job_that_waits_with_a_checkpoint_restores_it():
    active, view = state([nodes()], [job(0, 30, checkpoint=7)], [-1], [True])
    assert plan_cost(np.array([-1]), active, view) == 37


def test_a_plan_in_which_every_run_is_pinned_has_only_the_gpus_left():
    jobs = [job(0, 30, gpus=2), job(0, 30)]
    active, _ = state([nodes(gpus=3)], jobs, [0, -1], [True, False])
    kept = keep_all(active)
    assert kept.pinned.tolist() == [True, False]
    assert kept.room.tolist() == [1.0]
    assert not active.pinned.any()
