"""What the plan and the queue tell a learned policy, by hand."""

from math import log

import numpy as np
import pytest

from adlro.planning.drain import MAX_PLANNED
from tests.looking import column, pairs, seen_at
from tests.worlds import job, nodes


def test_all_jobs_that_the_plan_starts_now_are_counted_however_their_ends_are_rounded():
    # Two of three GPUs are free for three jobs. A start in the plan is a difference of an end and
    # a run time, which often is not exactly the time that it is where run times are longer.
    rng, is_off = np.random.default_rng(0), 0
    for _ in range(12):
        now, seconds = rng.uniform(1, 2), rng.uniform(1000, 9000, 3)
        jobs = [job(0, 1e6), *(job(now, s) for s in seconds)]
        seen = seen_at(now, [nodes("V100", 3)], jobs)
        assert column(seen, "plan_now").tolist() == [log(3)] * seen.count
        is_off += (now + np.sort(seconds)[:2] - np.sort(seconds)[:2] > now).any()
    assert is_off > 3


def test_a_job_that_the_plan_starts_soon_is_not_counted():
    # Job 0 ends a microsecond after now.
    seen = seen_at(1000, [nodes("V100", 2)], [job(0, 1000.000001), job(1000, 5), job(1000, 7)])
    assert column(seen, "plan_now").tolist() == [log(2)] * seen.count


def test_all_waiting_jobs_are_in_the_queue_and_only_the_planned_ones_in_the_pressure():
    # Job 0 holds the V100 until 1001. At 1, 60 jobs wait that take 10 s there and 30 s on the T4,
    # and 50 that take 40 s on the T4 and may not run elsewhere: more than a plan holds.
    either = [job(1, 10, 30) for _ in range(60)]
    bound = [job(1, 999, 40, allowed=[1]) for _ in range(50)]
    assert len(either) + len(bound) > MAX_PLANNED
    jobs = [job(0, 1001, 9999, allowed=[0]), *either, *bound]
    seen = seen_at(1, [nodes("V100"), nodes("T4")], jobs, "min-min")
    assert {pool for _, pool in pairs(seen, queue=list(range(1, 111)))} == {1}
    # V100: 600 s of the jobs that are faster there; T4: 50 x 40 s; two GPUs.
    assert column(seen, "queue")[0] == pytest.approx(log(1 + 2600 / 2 / seen.tau), rel=1e-12)
    of_pool = column(seen, "pool_queue")
    assert of_pool[0] == 0
    assert of_pool[1:] == pytest.approx(log(1 + 2000 / seen.tau), rel=1e-12)
    # The 40 shortest are planned, all of them faster on the V100: nothing for the T4.
    assert column(seen, "pool_pressure")[1] == 0
    pressure = log(1 + (40 * 10 + 1000) / 2 / seen.tau)
    assert column(seen, "pressure")[0] == pytest.approx(pressure, rel=1e-12)


def test_a_job_may_use_the_gpus_of_the_pools_that_it_may_run_on():
    # Job 0 may run anywhere, job 1 on the two V100s alone, job 2 is too wide for them.
    jobs = [job(0, 4, 8), job(0, 5, 9, allowed=[0]), job(0, 6, 10, gpus=3)]
    seen = seen_at(0, [nodes("V100", 2), nodes("T4", 6)], jobs, "min-min")
    found = dict(zip(pairs(seen, queue=[0, 1, 2]), column(seen, "may_use")[1:], strict=True))
    assert found == {(0, 0): 1, (0, 1): 1, (1, 0): 0.25, (2, 1): 0.75}
