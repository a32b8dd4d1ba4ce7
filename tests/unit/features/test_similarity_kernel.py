"""How alike jobs are: by hand, beside the counters of a sketch, and beyond the most jobs."""

import numpy as np
import pytest

from adlro.features.hypervectors.schema import space_of
from adlro.features.hypervectors.sketch_kernel import JOB_SCHEMA, add, job_pattern, share_alike
from adlro.features.similarity_kernel import LIKENESS, MOST_JOBS
from tests.looking import seen_closely_at
from tests.worlds import job, nodes, records

NO_RANGES = (0.0,) * 10  # of two models: nothing reads them here
GROUPS = [nodes("V100", 2), nodes("T4", 2)]
SPACE = space_of(JOB_SCHEMA)


def pattern(spec, tau):
    """Of a job as `job` writes it down."""
    bits, known = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
    seconds = min(spec["seconds"]) / tau
    job_pattern(records([spec])[0], seconds, SPACE, np.zeros(6, np.uint64), bits, known)
    return bits


def share(own, others, tau):
    """The share of jobs like one in a sketch of some."""
    sketch = np.zeros(JOB_SCHEMA.bits + 1, np.int64)
    for other in others:
        add(sketch, pattern(other, tau), 1)
    return share_alike(sketch, pattern(own, tau))


def test_a_job_beside_others_of_its_kind_is_wholly_alike():
    # Job 0 holds a V100 until 99; at 1 two more like it come, and one V100 and the T4s are free.
    jobs = [job(0, 99, 99), job(1, 99, 99), job(1, 99, 99)]
    seen = seen_closely_at(1, GROUPS, jobs, NO_RANGES)
    pairs = 4  # two jobs, two pools
    assert seen["alike_waiting"] == [0, *[1] * pairs]
    assert seen["alike_running"] == [0, *[1] * pairs]
    assert sorted(seen["alike_here"]) == [0, 0, 0, 1, 1]  # nothing runs on the T4s


def mixed():
    """Job 0 runs on a V100. At 1 three others wait: two long gangs of a type, one short job."""
    gang = {"gpus": 2, "type": 1, "priority": 0.9}
    return [job(0, 50, 99), job(1, 80, 90, **gang), job(1, 70, 90, **gang), job(1, 2, 4)]


def test_likeness_is_what_a_sketch_of_the_same_jobs_says():
    jobs = mixed()
    seen = seen_closely_at(1, GROUPS, jobs, NO_RANGES)
    tau = (50 * 80 * 70 * 2) ** 0.25
    waiting = jobs[1:]
    # The pairs by run time: job 3 on a V100 (2 s) and a T4 (4 s), then the gangs on both T4s.
    chosen = [jobs[3], jobs[3], jobs[1], jobs[2]]
    expected = [share(own, [other for other in waiting if other is not own], tau) for own in chosen]
    assert seen["alike_waiting"][1:] == pytest.approx(expected, abs=1e-12)
    running = [share(own, jobs[:1], tau) for own in chosen]
    assert seen["alike_running"][1:] == pytest.approx(running, abs=1e-12)
    assert seen["alike_here"][1:] == pytest.approx([running[0], 0, 0, 0], abs=1e-12)
    assert expected[2] > expected[0] + 0.2  # a gang beside a gang, the short job beside gangs


def test_the_queue_is_seen_the_same_by_every_choice():
    seen = seen_closely_at(1, GROUPS, mixed(), NO_RANGES)
    queue = [seen[name] for name in LIKENESS if name.startswith("queue_")]
    assert len(queue) == 8
    assert all(len(set(numbers)) == 1 for numbers in queue)
    assert len({numbers[0] for numbers in queue}) > 4


def test_the_queue_s_numbers_do_not_depend_on_its_order_but_on_who_waits():
    def queue(jobs):
        seen = seen_closely_at(1, GROUPS, jobs, NO_RANGES)
        return [seen[f"queue_{k}"][0] for k in range(8)]

    jobs = mixed()
    assert queue([jobs[0], *jobs[:0:-1]]) == pytest.approx(queue(jobs), abs=1e-12)
    assert queue([*jobs[:3], job(1, 2, 4, type=2)]) != pytest.approx(queue(jobs), abs=1e-3)


def test_to_wait_is_like_nothing():
    seen = seen_closely_at(1, GROUPS, mixed(), NO_RANGES)
    assert [seen[name][0] for name in ("alike_waiting", "alike_here", "alike_running")] == [0] * 3


def test_a_job_beyond_the_most_that_are_looked_at_still_has_its_likeness():
    # The shortest job comes last; those before it are all of another kind, and all the same.
    other = {"type": 1, "priority": 0.9}
    jobs = [job(0, 500, 999), *(job(1, 400, 999, **other) for _ in range(MOST_JOBS + 6))]
    jobs.append(job(1, 2, 999))
    seen = seen_closely_at(1, GROUPS, jobs, NO_RANGES)
    logs = np.log([500.0, *[400.0] * 30, 2.0])  # only so many are planned: tau is near this
    value = seen["alike_waiting"][1]
    assert value == pytest.approx(share(jobs[-1], jobs[1:2], np.exp(logs.mean())), abs=0.1)
    assert seen["alike_waiting"][2] == pytest.approx(1)  # of the oldest there is no other kind


def test_all_numbers_are_those_of_a_mean_similarity():
    seen = seen_closely_at(1, GROUPS, mixed(), NO_RANGES)
    assert all(-1 <= value <= 1 for name in LIKENESS for value in seen[name])


def test_what_the_names_mean_stays_as_it_is():
    # A network that was trained on other numbers would decide anyhow: a change needs new names.
    seen = seen_closely_at(1, GROUPS, mixed(), NO_RANGES)
    found = [seen[name][1] for name in LIKENESS]
    # Bits that agree minus bits that do not: of two others that wait, of one that runs twice, and
    # of three that wait beside eight directions.
    bits = [170 / 512, 184 / 256, 184 / 256, -14, 42, 2, 20, -18, -10, -52, 48]
    assert found == pytest.approx([*bits[:3], *(b / 768 for b in bits[3:])], abs=1e-12)
