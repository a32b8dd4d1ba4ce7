"""Looking ahead: what copies are made of, and when a policy's answer is replaced."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit

from adlro.config.files import adjusted, find_scenario
from adlro.errors import PolicyError
from adlro.evaluate.compare import compare, run_one
from adlro.model.feasibility import fits
from adlro.model.feasibility import start as start_at
from adlro.model.state import START, WAKE
from adlro.policies import lookahead, registry
from adlro.policies.lookahead_kernel import best_gain
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.worlds import build, fails, is_repaired, job, nodes, play

TWO = [nodes("V100"), nodes("T4")]


def ahead(base, world):
    """A policy that looks ahead, given by its name or as an object."""
    if isinstance(base, str):
        return registry.load(f"{base}+lookahead", world.setting)
    wrapped = lookahead.Lookahead(base, world.setting)
    return SimpleNamespace(
        name="x", decide=wrapped.decide, params=base.params, memory=wrapped.memory
    )


def finish(base, groups, jobs, **more):
    world = build(groups, jobs, **more)
    return play(world, ahead(base, world)).outcome["finish"].tolist()


# By hand.


def test_the_answer_is_replaced_where_another_start_saves_time():
    # First come, first served: 10 + 11 = 21. The short one first: 1 + 11 = 12.
    assert finish("fcfs", [nodes()], [job(0, 10), job(0, 1)]) == [11, 1]


def test_the_answer_stands_where_it_is_the_best():
    # 1 + 11 = 12; the long one first: 10 + 11 = 21.
    assert finish("fcfs", [nodes()], [job(0, 1), job(0, 10)]) == [1, 11]


def test_the_answer_stands_where_another_is_as_good():
    assert finish("fcfs", [nodes()], [job(0, 5), job(0, 5)]) == [5, 10]


def test_to_wait_is_a_choice_too():
    # Job 1 comes at 1. On the T4: until 9, together with job 0 1 + 8. On the V100 from 2 on: until
    # 4, 1 + 3.
    assert finish("fcfs", TWO, [job(0, 2, 99), job(1, 2, 8)]) == [2, 4]


def test_it_never_waits_where_nothing_runs():
    # The V100 is down from 1 to 3, and no copy knows of its repair. At 2 job 0 starts on the T4.
    events = [fails(1, 0), is_repaired(3, 0)]
    assert finish("fcfs", TWO, [job(2, 2, 8)], events=events) == [10]


def test_a_start_replaces_waiting_too():
    # At 1 the oldest that waits, job 1, needs both V100s, and strictly in order job 2 stands behind
    # it: until 10, 30 and 31, 9 + 29 + 30. Job 2 at once: until 10, 30 and 2, 9 + 29 + 1.
    jobs = [job(0, 10), job(1, 20, gpus=2), job(1, 1)]
    assert finish("fcfs", [nodes(gpus=2)], jobs) == [10, 30, 2]


def test_the_policy_plays_on_after_the_choice():
    # Three at 0: in order 10 + 14 + 15 = 39. Tried first, then in order again: job 1 4 + 14 + 15,
    # job 2 1 + 11 + 15 = 27, the best. Then job 1 is tried before job 0 once more.
    assert finish("fcfs", [nodes()], [job(0, 10), job(0, 4), job(0, 1)]) == [15, 5, 1]


def test_a_job_that_comes_later_is_not_known_in_the_drain():
    # As in the first test, but the short one is not there yet.
    assert finish("fcfs", [nodes()], [job(0, 10), job(0.5, 1)]) == [10, 11]


def test_estimates_are_what_copies_go_by():
    # True: 10 and 1. By the estimates it is the other way round.
    jobs = [job(0, 10, est=(1,)), job(0, 1, est=(10,))]
    assert finish("fcfs", [nodes()], jobs) == [10, 11]


def test_an_overdue_job_ends_in_a_copy_when_it_is_expected_to():
    # Job 0 holds the V100 and was expected at 1; at 20, of that age, it is expected 2 s later. Job
    # 1 (V100 3 s, T4 4 s) would end at 22 + 3 = 25 on the V100 and at 24 on the T4: it starts.
    late = [job(0, 40, 99, est=(1, 99)), job(20, 3, 4)]
    assert finish("fcfs", TWO, late) == [40, 24]
    # At 10 it is expected 1 s later: job 1 would end at 11 + 3 = 14 on the V100 and at 18 on the
    # T4: it waits. Job 0 ends at 10.5.
    soon = [job(0, 10.5, 99, est=(1, 99)), job(10, 3, 8)]
    assert finish("fcfs", TWO, soon) == [10.5, 13.5]


def test_jobs_that_must_wait_for_a_repair_keep_nobody_from_looking_ahead():
    # The V100 is down from 1 to 100, and job 0 can run nowhere else. Strictly in order all wait for
    # it; the others start on the T4, the short one first: 3-4, 4-14.
    jobs = [job(2, 5, 5, type=1, allowed=[0]), job(3, 9, 10), job(3, 9, 1)]
    events = [fails(1, 0), is_repaired(100, 0)]
    assert finish("fcfs", TWO, jobs, events=events) == [105, 14, 4]


def test_a_job_that_has_run_before_has_as_much_left_as_is_said():
    # Job 0 is saved half-way when its node is taken away, 5 to 6. Then 5 s of it are left: first,
    # 5 + 12 = 17; after job 1, 7 + 12 = 19. If all of it were left: 10 + 17 and 7 + 17.
    jobs = [job(0, 10, checkpoint=0), job(5, 7)]
    events = [fails(5, 0, planned=True), is_repaired(6, 0)]
    assert finish("fcfs", [nodes()], jobs, events=events) == [11, 18]


# Who decides in the copies.


def policy(decide):
    """A compiled policy named as its function: a word of memory beside the seed, no parameters."""
    return SimpleNamespace(
        name=decide.__name__,
        decide=njit(nogil=True)(decide),
        memory=2,
        params=np.zeros(0),
        is_preemptive=False,
    )


@njit(nogil=True)
def start_queued(view, out, position, pool):
    """Start the job at a position of the queue as soon as pool 0 has a free GPU."""
    if len(view.queue) == 0 or view.pools[0].free == 0:
        return 0
    return start_at(out, view.queue[position].job, pool)


@policy
def patient(view, params, memory, out):
    """Starts job 0 and asks to be woken at 12; until then it starts nothing else."""
    queue, now = view.queue, view.now
    if len(queue) == 0 or (memory[1] > 0 and now < 12):
        return 0
    out[0].kind, out[0].job, out[0].pool = START, queue[0].job, 0
    if memory[1] > 0:
        return 1
    memory[1] = 1
    out[1].kind, out[1].at = WAKE, 12.0
    return 2


def test_a_timer_that_the_policy_has_set_goes_off_in_copies():
    # At 5 the V100 is taken until 10, and the policy would start job 1 there at 12: until 14; on
    # the T4 it would last until 45. Without the timer the policy would never start it in the
    # copies, and the T4 would look better. At 10 the V100 is free: at once is better than at 12.
    jobs = [job(0, 10, 99), job(5, 2, 40)]
    assert play(build(TWO, jobs), patient).outcome["finish"].tolist() == [10, 14]
    assert finish(patient, TWO, jobs) == [10, 12]


@policy
def rash(view, params, memory, out):
    """In order, and after 100 s on a pool that is not there."""
    return start_queued(view, out, 0, 0 if view.now < 100 else 7)


def test_what_a_policy_may_not_do_it_may_not_do_in_a_copy():
    said = (
        "looking ahead, rash asked to start job 1 on pool 7, but there is no such pool (at 200 s)"
    )
    with pytest.raises(PolicyError, match=re.escape(said)):
        finish(rash, [nodes()], [job(0, 200), job(0, 300)])


@policy
def failing(view, params, memory, out):
    """In order, and after 100 s it raises."""
    if view.now >= 100:
        raise ValueError("too late")
    return start_queued(view, out, 0, 0)


def test_what_a_policy_raises_in_a_copy_is_raised_with_its_line():
    with pytest.raises(ValueError, match=r"^too late$") as caught:
        finish(failing, [nodes()], [job(0, 200), job(0, 300)])
    assert (str(caught.traceback[-1].path), caught.traceback[-1].name) == (__file__, "failing")


@policy
def polling(view, params, memory, out):
    """Strictly in order; as long as somebody waits it asks every second."""
    queue, pools = view.queue, view.pools
    if len(queue) == 0:
        return 0
    for p in range(len(pools)):
        job = view.jobs[queue[0].job]
        if view.eligible[0, p] and fits(job, pools[p], view.nodes, view.gpus):
            return start_at(out, queue[0].job, p)
    out[0].kind, out[0].at = WAKE, view.now + 1
    return 1


def test_timers_that_go_on_for_ever_in_a_copy_are_as_waiting_for_ever():
    # As in the test with a repair above: in the copies the V100 stays down, and job 0 waits.
    jobs = [job(2, 5, 5, type=1, allowed=[0]), job(3, 9, 10), job(3, 9, 1)]
    events = [fails(1, 0), is_repaired(100, 0)]
    assert finish(polling, TWO, jobs, events=events) == [105, 14, 4]


@policy
def lucky(view, params, memory, out):
    """Notes its seed in the only place there is: which of two jobs it starts first."""
    return start_queued(view, out, -1 if memory[0] == 3 else 0, 0)


@pytest.mark.parametrize(("seed", "expected"), [(0, [5, 10]), (3, [10, 5])])
def test_the_policy_finds_the_runs_seed_in_its_memory(seed, expected):
    world = build([nodes()], [job(0, 5), job(0, 5)])
    outcome = play(world, ahead(lucky, world), seed).outcome
    assert outcome["finish"].tolist() == expected


# The margin.


@pytest.mark.parametrize(
    ("count", "margin", "chosen"), [(3, 1e-6, 1), (1, 1e-6, 0), (3, 2.5, 1), (1, 2.5, -1)]
)
def test_the_largest_gain_above_the_margin_is_taken(count, margin, chosen):
    assert best_gain(count, margin, np.array([2.0, 3.0, -1.0])) == chosen


def test_a_gain_of_the_margin_is_none_and_of_equal_gains_the_first_is_taken():
    assert best_gain(2, 1.0, np.array([1.0, 0.5])) == -1
    assert best_gain(2, 1.0, np.array([2.0, 2.0])) == 0


# Copies and the truth.


SETTING = prepare(adjusted(find_scenario("paper16"), load=0.95, jobs=80))
AHEAD = "min-min+lookahead"


def played(workload, policy=AHEAD, seed=0):
    ready = registry.load(policy, SETTING)
    return run_one(SETTING, workload, ready, seed).outcome


def test_future_arrivals_change_nothing_before_they_arrive():
    workload = generate(SETTING, 0)
    half = len(workload.jobs) // 2
    moment = workload.jobs["arrival"][half]
    jobs, est = workload.jobs.copy(), workload.est.copy()
    jobs["arrival"][half:] += 1 + np.arange(len(jobs) - half)
    jobs["gpus"][half:] = 1
    est[half:] *= 7
    changed = workload._replace(jobs=jobs, est=est, seconds=est)
    one, other = played(workload), played(changed)
    before = one["start"] < moment
    assert before.sum() > 20
    assert (other[before]["start"] == one[before]["start"]).all()
    assert (other[before]["pool"] == one[before]["pool"]).all()
    assert (one["finish"] != other["finish"]).any()


def test_true_run_times_change_nothing_before_a_job_ends():
    workload = generate(SETTING, 1)
    one = played(workload)
    moment = float(np.median(one["finish"]))
    seconds = workload.seconds.copy()
    seconds[one["finish"] > moment] *= 1.5
    other = played(workload._replace(seconds=seconds))
    before = one["start"] < moment
    assert (one["finish"][before] > moment).any()
    assert (other[before]["start"] == one[before]["start"]).all()
    assert (other[before]["pool"] == one[before]["pool"]).all()


# Randomness and threads.


def test_looking_ahead_draws_no_random_numbers():
    workload = generate(SETTING, 0)
    first = played(workload, AHEAD, 5)
    assert (played(workload, AHEAD, 6) == first).all()
    assert (played(workload, AHEAD + ":1:0", 5) == first).all()
    assert (played(workload, "min-min", 5) != first).any()


def test_threads_do_not_meet():
    policies = [registry.load(name, SETTING) for name in (AHEAD, "fcfs+lookahead")]
    one, two = (compare(SETTING, policies, range(6), threads=n) for n in (1, 2))
    assert [row.jct for row in one.policies] == [row.jct for row in two.policies]
