"""The kernel: schedules worked out by hand, laws of every schedule, and what stops a run."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from adlro.config import find_scenario
from adlro.errors import PolicyError
from adlro.model.state import MIGRATE, OUTCOME, PREEMPT, SPAN
from adlro.policies import registry
from adlro.sim import kernel, simulator
from adlro.sim.state import Empty, answers, clone, fresh
from adlro.workloads import synthetic
from tests.plain.cases import random_case
from tests.worlds import (
    Scripted,
    build,
    from_case,
    gpus_of,
    job,
    nodes,
    play,
    start,
    wake,
)

SEEDS = st.integers(0, 10**6)
NAMES = st.sampled_from(registry.names())
EVERY_CASE = settings(deadline=None, max_examples=60)


def random_world(seed):
    return from_case(random_case(seed))


class InPython:
    """A shipped policy called from Python, so that the kernel is driven from outside."""

    def __init__(self, name, world, look=lambda *view: None):
        compiled = registry.load(name, world.setting)
        self.name, self.params, self.memory = name, compiled.params, compiled.memory
        self.compiled, self.look = compiled.decide, look

    def decide(self, now, *view):
        self.look(now, *view)
        return self.compiled(now, *(unlocked(array) for array in view))


def unlocked(array):
    """A writable plain view, as the kernel hands out: for read-only ones numba compiles anew."""
    plain = array.view(np.ndarray)
    plain.flags.writeable = True
    return plain


def state_of(world, policy, seed=0):
    """A state before the first arrival, with an empty outcome and span log."""
    jobs = world.workload.jobs
    state = fresh(world.empty, len(jobs), max(policy.memory, 1), seed)
    state.world["now"] = jobs["arrival"][0]
    return state, np.zeros(len(jobs), OUTCOME), np.zeros(int(jobs["gpus"].sum()), SPAN)


def play_moments(world, policy, state, outcome, spans, most=10**9):
    """Up to `most` moments of the kernel, as simulator.run plays them."""
    jobs, est, allowed, seconds = world.workload
    out = answers(len(state.gpus))
    while most > 0 and kernel.advance(*state[:8], jobs, allowed, outcome, spans):
        started = 1
        while started > 0:
            now, *view = simulator.view(state, world.workload)
            own = (policy.params, state.memory, out)
            answered = policy.decide(now, *(unlocked(array) for array in view), *own)
            started = kernel.apply(answered, out, *state[:8], jobs, est, seconds, outcome)
        most -= 1


def photograph(state):
    return [array.tobytes() for array in state]


# Schedules worked out by hand.


def test_two_jobs_share_one_gpu_in_turn():
    # Job 0 runs 0-5. Job 1 comes at 1 and runs 5-8. In the system: 5 + 7 = 12 job-seconds.
    # Calls: two at 0 (start, nothing), one at 1, two at 5; at 8 all is over.
    result = play(build([nodes()], [job(0, 5), job(1, 3)]), "fcfs")
    assert result.outcome["start"].tolist() == [0, 5]
    assert result.outcome["finish"].tolist() == [5, 8]
    assert result.world["job_seconds"] == 12
    assert result.world["idle_seconds"] == 0
    assert result.world["decisions"] == 5
    assert result.world["real_decisions"] == 2  # those at 0 and at 5 with a job that could start
    assert result.world["events"] == 4  # two arrivals, two finishes


def test_the_clock_starts_at_the_first_arrival_and_idle_gpus_count_from_there():
    # 2 GPUs from 10 to 17: job 0 holds one for 2 s, job 1 (from 14) one for 3 s: 14 - 5 idle.
    result = play(build([nodes("V100", 2)], [job(10, 2), job(14, 3)]), "fcfs")
    assert result.outcome["finish"].tolist() == [12, 17]
    assert (result.world["idle_seconds"], result.world["job_seconds"]) == (9, 5)
    assert result.gpus["busy"].tolist() == [5, 0]  # the lowest free GPU is taken


def test_each_model_takes_its_own_seconds():
    # Pool 0 is full until 30, so job 1 starts on pool 1 and takes 7 s there.
    world = build([nodes("V100"), nodes("T4")], [job(0, 30, 99), job(1, 3, 7)])
    result = play(world, "fcfs")
    assert result.outcome["pool"].tolist() == [0, 1]
    assert result.outcome["finish"].tolist() == [30, 8]


@pytest.mark.parametrize(
    ("gpus", "finish", "spanned"),
    [(4, 10, 1), (5, 17.5, 2), (8, 17.5, 2)],  # 10 * (1 + 0.75 * 1) where it spans
)
def test_a_gang_pays_for_the_network_only_if_it_spans(gpus, finish, spanned):
    world = build([nodes("V100", 4, 2)], [job(0, 10, gpus=gpus, communication=0.75)])
    result = play(world, "fcfs")
    assert (result.outcome["finish"][0], result.outcome["nodes"][0]) == (finish, spanned)


def test_the_visible_end_of_a_run_is_its_estimate_with_the_same_factor():
    # Estimate 8 s on both nodes: expected at 2 + 8 * 1.5 = 14; it truly ends at 2 + 10 * 1.5 = 17,
    # when job 1 starts, expected at 18.
    seen = []
    jobs = [job(2, 10, est=(8,), gpus=8, communication=0.5), job(5, 1)]
    world = build([nodes("V100", 4, 2)], jobs)
    look = lambda *view: seen.extend(view[5]["expected"].tolist())  # noqa: E731
    result = play(world, InPython("fcfs", world, look))
    assert set(seen) == {14, 18}
    assert result.outcome["finish"][0] == 17


def test_a_limit_cuts_a_run_and_only_a_longer_one():
    # Job 0 would span and take 20 s, its limit is 15. Job 1 takes exactly its limit.
    jobs = [job(0, 10, gpus=8, communication=1, limit=15), job(0, 10, limit=10)]
    result = play(build([nodes("V100", 4, 2)], jobs), "fcfs")
    assert result.outcome["finish"].tolist() == [15, 25]
    assert result.outcome["killed"].tolist() == [1, 0]


def test_cores_and_memory_keep_a_job_waiting_until_they_are_given_back():
    # 4 GPUs, 4 cores, 10 GB. Job 0 takes two GPUs and all cores: job 1 waits until 5. Job 2 needs
    # neither; job 3 takes 6 GB from 1 to 8, so job 4 (5 GB) waits from 6 to 8.
    big = 1024
    jobs = [job(0, 5, gpus=2, cores=2), job(1, 9, cores=1), job(1, 20), job(1, 7, memory=6 * big)]
    world = build([nodes("V100", 4, cores=4, memory_gb=10)], [*jobs, job(6, 1, memory=5 * big)])
    assert play(world, "pair-sjf").outcome["start"].tolist() == [0, 5, 1, 1, 8]


def test_a_finish_makes_room_for_an_arrival_of_the_same_moment():
    result = play(build([nodes()], [job(0, 5), job(5, 1)]), "fcfs")
    assert result.outcome["start"].tolist() == [0, 5]
    assert result.world["decisions"] == 4  # two at 0, two at 5


def test_simultaneous_finishes_are_handled_by_job_id():
    # All three end at 9; they were started in the order 2, 0, 1.
    world = build([nodes("V100", 3)], [job(0, 9), job(0, 9), job(0, 9)])
    result = play(world, Scripted([start(2), start(0), start(1)]))
    assert result.outcome["finish"].tolist() == [9, 9, 9]
    assert result.spans["job"].tolist() == [0, 1, 2]
    assert result.spans["gpu"].tolist() == [1, 2, 0]


def test_a_run_of_no_length_ends_in_a_second_moment_of_the_same_time():
    # At 3: a call that starts job 0, one that starts nothing; the finish is a new moment with
    # a call for job 1, which arrived in the first.
    policy = Scripted([start(0)], [], [start(1)])
    result = play(build([nodes()], [job(3, 0), job(3, 2)]), policy)
    assert policy.asked_at == [3, 3, 3, 3]
    assert result.outcome["start"].tolist() == [3, 3]
    assert result.outcome["finish"].tolist() == [3, 5]


def test_decisions_of_one_answer_are_applied_in_order_and_asked_for_again():
    # Job 0 fills node 0, so that the second start of the same answer finds only node 1.
    policy = Scripted([start(0, node=0), start(1)], [])
    jobs = [job(0, 4, gpus=2), job(0, 6, gpus=2)]
    result = play(build([nodes("V100", 2, 2)], jobs), policy)
    assert [gpus_of(result, j) for j in range(2)] == [[0, 1], [2, 3]]
    assert policy.asked_at == [0, 0, 4]  # nothing is asked after the last finish at 6


def test_a_policy_is_asked_with_an_empty_queue_but_not_after_the_last_finish():
    sizes = []
    world = build([nodes()], [job(0, 2), job(5, 1)])
    play(world, InPython("fcfs", world, lambda *view: sizes.append((view[0], len(view[3])))))
    assert sizes == [(0, 1), (0, 0), (2, 0), (5, 1), (5, 0)]


def test_the_queue_is_sorted_by_age_whatever_was_taken_out_of_it():
    # Five jobs at 0; 1, 3 and 0 start at once, so 2 and 4 are left when 5 and 6 come at 1.
    queues = []

    class Watching(Scripted):
        def decide(self, now, *view):
            queues.append((now, view[2]["job"].tolist(), view[2]["since"].tolist()))
            return super().decide(now, *view)

    policy = Watching([start(1), start(3)], [start(0)], [], [start(5)], [], [start(6), start(2)])
    jobs = [job(0, 9)] * 5 + [job(1, 9)] * 2
    with pytest.raises(PolicyError, match="left 1 jobs waiting"):
        play(build([nodes("V100", 4)], jobs), policy)
    assert queues[:5] == [
        (0, [0, 1, 2, 3, 4], [0] * 5),
        (0, [0, 2, 4], [0] * 3),
        (0, [2, 4], [0] * 2),
        (1, [2, 4, 5, 6], [0, 0, 1, 1]),
        (1, [2, 4, 6], [0, 0, 1]),
    ]
    assert [queue for _, queue, _ in queues[5:]] == [[2, 4, 6], [4], [4], [4]]


# Timers.


def test_the_timer_keeps_the_earliest_wake_and_rings_once():
    # Of 3 and 2 only 2 is kept; asked again at 2, it rings at 5, and the job runs 5-6.
    policy = Scripted([wake(3), wake(2)], [wake(5)], [start(0)], [])
    result = play(build([nodes()], [job(0, 1)]), policy)
    assert policy.asked_at == [0, 2, 5, 5]
    assert result.outcome["finish"].tolist() == [6]


def test_a_later_wake_does_not_move_an_earlier_one_and_none_rings_again_unasked():
    # At 2 the timer is set to 9, and the wake for 12 does not move it; after 9 it is unset.
    policy = Scripted([wake(2)], [start(0), wake(9)], [wake(12)], [])
    play(build([nodes()], [job(0, 9000)]), policy)
    assert policy.asked_at == [0, 2, 2, 9]


def test_a_timer_rings_together_with_an_arrival_and_a_finish_in_one_moment():
    # At 4 job 0 ends, job 1 arrives and the timer rings: one moment, one call (and one more
    # after the start). Then the timer is unset: nothing is left but job 1's end.
    policy = Scripted([start(0), wake(4)], [], [start(1)], [])
    result = play(build([nodes()], [job(0, 4), job(4, 3)]), policy)
    assert policy.asked_at == [0, 0, 4, 4]
    assert result.outcome["start"].tolist() == [0, 4]
    assert result.world["events"] == 5  # two arrivals, two finishes, one timer


def test_a_timer_between_events_adds_a_call_and_changes_no_integral():
    jobs = [job(0, 10), job(6, 5)]
    plain = play(build([nodes("V100", 2)], jobs), Scripted([start(0)], [], [start(1)]))
    policy = Scripted([start(0), wake(3)], [], [wake(7)], [start(1)])
    timed = play(build([nodes("V100", 2)], jobs), policy)
    assert policy.asked_at == [0, 0, 3, 6, 6, 7, 10]
    assert timed.outcome.tobytes() == plain.outcome.tobytes()
    assert timed.world["job_seconds"] == plain.world["job_seconds"] == 15
    assert timed.world["idle_seconds"] == plain.world["idle_seconds"] == 7  # 2 * 11 - 15


def test_a_timer_that_is_still_set_at_the_end_does_not_prolong_the_run():
    result = play(build([nodes()], [job(0, 5)]), Scripted([start(0), wake(100)]))
    assert result.world["now"] == 5


# What stops a run.


def strained_world():
    """Pool 0: nodes 0, 1 with GPUs 0-3 and two cores each; pool 1: GPU 4; pool 2: GPU 5."""
    jobs = [
        job(0, 9, 9, 9, cores=1, allowed=[0, 2]),
        job(0, 9, 9, 9, gpus=4, cores=1, allowed=[0]),  # fits pool 0 only if that is empty
        job(0, 9, 9, 9, cores=2),  # fits a node of pool 0 only if that is empty
        job(0, 9, 9, 9),
        job(3, 9, 9, 9),
    ]
    return build([nodes("V100", 2, 2, cores=2), nodes("T4"), nodes("A100")], jobs)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([(7, 0, 0, -1, -1, 0)], "wrote a decision of unknown kind 7; known: 0 start, 3 wake"),
        ([(-1, 0, 0, -1, -1, 0)], "wrote a decision of unknown kind -1; known: 0 start, 3 wake"),
        ([(PREEMPT, 0, 0, -1, -1, 0)], "asked for 'preempt', which this simulator does not know"),
        ([(MIGRATE, 0, 0, -1, -1, 0)], "asked for 'migrate', which this simulator does not know"),
        ([start(7)], "asked to start job 7, which is not waiting"),
        ([start(-1)], "asked to start job -1, which is not waiting"),
        ([start(4)], "asked to start job 4, which is not waiting"),  # it comes at 3
        ([start(0), start(0)], "asked to start job 0, which is not waiting"),
        ([start(0, 3)], "asked to start job 0 on pool 3, but there is no such pool"),
        ([start(0, -1)], "asked to start job 0 on pool -1, but there is no such pool"),
        ([start(0, 1)], "asked to start job 0 on pool 1, where it is not eligible"),
        ([start(0), start(1)], "asked to start job 1 on pool 0, which has no room for it now"),
        ([start(0, node=0), start(2, node=0)], "asked to start job 2 on pool 0, on node or GPU 0"),
        ([start(0, gpu=1), start(3, gpu=1)], "asked to start job 3 on pool 0, on node or GPU 1"),
        ([start(0, node=2)], "asked to start job 0 on pool 0, on node or GPU 2"),
        ([start(0, 2, node=0)], "asked to start job 0 on pool 2, on node or GPU 0"),
        ([start(0, node=99)], "asked to start job 0 on pool 0, on node or GPU 99"),
        ([start(0, gpu=4)], "asked to start job 0 on pool 0, on node or GPU 4"),
        ([start(0, gpu=99)], "asked to start job 0 on pool 0, on node or GPU 99"),
        ([start(0, node=0, gpu=2)], "asked to start job 0 on pool 0, on node or GPU 2"),
        ([wake(0)], "asked to be woken at 0 s, which is not in the future"),
        ([wake(-1)], "asked to be woken at -1 s, which is not in the future"),
        ([wake(float("nan"))], "asked to be woken at nan s, which is not in the future"),
    ],
)
def test_an_infeasible_decision_stops_the_run_and_names_the_policy(answer, said):
    with pytest.raises(PolicyError) as caught:
        play(strained_world(), Scripted(answer))
    message = str(caught.value)
    assert message.startswith(f"policy scripted {said}")
    assert message.endswith(" (at 0 s)")
    assert message.splitlines() == [message]


@pytest.mark.parametrize(("at", "more"), [(3, 5), (9, 5)])
def test_a_job_that_runs_or_has_ended_cannot_start(at, more):
    # Job 0 runs 0-9; the policy is asked at 3 and at 9.
    jobs = [job(0, 9), job(3, 99), job(9, more)]
    policy = Scripted([start(0)], [], *([[start(0)]] if at == 3 else [[], [start(0)]]))
    with pytest.raises(PolicyError, match=rf"start job 0, which is not waiting \(at {at} s\)$"):
        play(build([nodes("V100", 3)], jobs), policy)


@pytest.mark.parametrize("count", [8, 1000, -1])
def test_more_answers_than_there_is_room_for_stop_the_run(count):
    class Boasting(Scripted):
        def decide(self, *view):
            return count

    said = rf"^policy scripted answered {count}, but 'out' holds at most 7 decisions \(at 0 s\)$"
    with pytest.raises(PolicyError, match=said):
        play(strained_world(), Boasting())


def test_there_is_room_for_one_start_a_gpu_and_a_wake():
    policy = Scripted([start(0), start(1), wake(1)])
    result = play(build([nodes("V100", 2)], [job(0, 5), job(0, 5)]), policy)
    assert result.outcome["start"].tolist() == [0, 0]
    assert policy.asked_at == [0, 0, 1]


@pytest.mark.parametrize("last", [[], [wake(float("inf"))]])
def test_a_policy_that_leaves_jobs_waiting_for_ever_stalls(last):
    # Job 0 runs 0-4, jobs 1 and 2 are never started; after 4 nothing can happen.
    policy = Scripted([start(0)], [], [], last)
    said = (
        r"^policy scripted left 2 jobs waiting \(the oldest is 1\) with nothing running \(at 4 s\)$"
    )
    with pytest.raises(PolicyError, match=said):
        play(build([nodes()], [job(0, 4), job(0, 4), job(2, 4)]), policy)


def test_a_policy_may_wait_as_long_as_jobs_are_to_come():
    result = play(
        build([nodes()], [job(0, 1), job(50, 1)]), Scripted([], [start(0)], [], [start(1)])
    )
    assert result.outcome["start"].tolist() == [50, 51]


class Rounds:
    """Asks to be woken every second, and starts jobs only when now is a multiple of a period."""

    name, memory = "rounds", 0

    def __init__(self, period):
        self.params = np.array([period])

    @staticmethod
    @njit(nogil=True)
    def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
        if now % params[0] == 0 and len(queue) > 0 and pools[0].free > 0:
            out[0].kind, out[0].job, out[0].pool = 0, queue[0].job, 0
            out[0].node = out[0].gpu = -1
            return 1
        out[0].kind, out[0].at = 3, now + 1.0
        return 1


def test_timers_without_end_while_nothing_else_can_happen_stop_the_run():
    said = r"^policy rounds asked for 100000 timers in a row and did nothing with them"
    with pytest.raises(PolicyError, match=said):
        play(build([nodes()], [job(1, 5)]), Rounds(1e9))


def test_a_start_begins_the_count_of_timers_anew():
    # Two jobs wait for the rounds of 60,000 s: 120,000 timers in all, but never 100,000 in a row.
    world = build([nodes()], [job(1, 5), job(1, 5)])
    assert play(world, Rounds(60_000.0)).outcome["start"].tolist() == [60_000, 120_000]


def test_a_finish_or_an_arrival_begins_the_count_of_timers_anew():
    # Rounds of 120,000 s: job 0 runs 0-60,000.5 and job 1 starts at 120,000, after 120,000 timers
    # with a finish in their middle; job 2 starts at 240,000, with an arrival in their middle.
    world = build([nodes()], [job(0, 60_000.5), job(0, 5), job(180_000, 5)])
    assert play(world, Rounds(120_000.0)).outcome["start"].tolist() == [0, 120_000, 240_000]


# Laws of every schedule.


@given(SEEDS, NAMES)
@EVERY_CASE
def test_every_job_runs_once_as_one_gang_where_it_may_for_its_time(seed, name):
    world = random_world(seed)
    jobs, _, allowed, seconds = world.workload
    result = play(world, name, seed)
    outcome, spans = result.outcome, result.spans[np.argsort(result.spans["job"], kind="stable")]
    of = spans["job"]
    np.testing.assert_array_equal(np.bincount(of, minlength=len(jobs)), jobs["gpus"])
    assert len(np.unique(spans[["job", "gpu"]])) == len(spans)
    np.testing.assert_array_equal(spans["start"], outcome["start"][of])
    np.testing.assert_array_equal(spans["end"], outcome["finish"][of])
    node = world.empty.gpus["node"][spans["gpu"]]
    np.testing.assert_array_equal(world.empty.nodes["pool"][node], outcome["pool"][of])
    each = np.arange(len(jobs))
    assert allowed[each, outcome["pool"]].all()
    stood_on = [len(set(node[of == j].tolist())) for j in each]
    np.testing.assert_array_equal(outcome["nodes"], stood_on)
    pool = world.empty.pools[outcome["pool"]]
    factor = np.where(outcome["nodes"] > 1, 1 + jobs["communication"] * pool["span_cost"], 1)
    length = seconds[each, pool["model"]] * factor
    np.testing.assert_array_equal(outcome["killed"], length > jobs["limit"])
    expected = outcome["start"] + np.minimum(length, jobs["limit"])
    np.testing.assert_allclose(outcome["finish"], expected, rtol=1e-12)
    assert (outcome["start"] >= jobs["arrival"]).all()


def peaks(spans, where, amount, count):
    """The most that is ever held at once of each of `count` things; ends go before starts."""
    time = np.concatenate([spans["end"], spans["start"]])
    change = np.concatenate([-amount, amount])
    place = np.concatenate([where, where])
    order = np.argsort(time, kind="stable")
    held = [np.cumsum(change[order][place[order] == k]) for k in range(count)]
    return np.array([max(h.max(initial=0), 0) for h in held])


@given(SEEDS, NAMES)
@EVERY_CASE
def test_nothing_is_ever_handed_out_twice(seed, name):
    world = random_world(seed)
    spans = play(world, name, seed).spans
    gpus, machines = world.empty.gpus, world.empty.nodes
    ones, node = np.ones(len(spans), int), gpus["node"][spans["gpu"]]
    need = world.workload.jobs[spans["job"]]
    assert (peaks(spans, spans["gpu"], ones, len(gpus)) <= 1).all()
    assert (peaks(spans, node, need["cores"], len(machines)) <= machines["cores"]).all()
    assert (peaks(spans, node, need["memory"], len(machines)) <= machines["memory"]).all()


@given(SEEDS, NAMES)
@EVERY_CASE
def test_the_integrals_equal_the_sums_over_jobs_and_gpus(seed, name):
    world = random_world(seed)
    arrival = world.workload.jobs["arrival"]
    result = play(world, name, seed)
    outcome = result.outcome
    times = (outcome["finish"] - arrival).sum()
    held = ((outcome["finish"] - outcome["start"]) * world.workload.jobs["gpus"]).sum()
    whole = len(world.empty.gpus) * (outcome["finish"].max() - arrival[0])
    by_gpu = np.bincount(
        result.spans["gpu"], result.spans["end"] - result.spans["start"], len(world.empty.gpus)
    )
    assert result.world["job_seconds"] == pytest.approx(times, rel=1e-9)
    assert result.world["idle_seconds"] == pytest.approx(whole - held, rel=1e-9, abs=1e-9 * whole)
    assert result.gpus["busy"] == pytest.approx(by_gpu, rel=1e-9)


@given(SEEDS, NAMES)
@EVERY_CASE
def test_the_cluster_is_empty_again_at_the_end(seed, name):
    world = random_world(seed)
    result = play(world, name, seed)
    end = result.world
    jobs = len(world.workload.jobs)
    assert (end["finished"], end["arrived"], end["waiting"], end["running"]) == (jobs, jobs, 0, 0)
    assert end["busy_gpus"] == 0
    assert end["events"] == 2 * jobs
    assert result.gpus["free"].tolist() == world.empty.gpus["free"].tolist()
    assert set(result.gpus["job"].tolist()) == {-1}


@given(SEEDS, NAMES)
@EVERY_CASE
def test_a_policy_called_from_python_plays_the_same_run(seed, name):
    world = random_world(seed)
    compiled, called = play(world, name, seed), play(world, InPython(name, world), seed)
    assert compiled.outcome.tobytes() == called.outcome.tobytes()
    assert compiled.spans.tobytes() == called.spans.tobytes()
    assert compiled.world.tobytes() == called.world.tobytes()
    assert compiled.gpus.tobytes() == called.gpus.tobytes()


@given(SEEDS, NAMES)
@settings(deadline=None, max_examples=30)
def test_a_policy_sees_only_jobs_that_have_arrived_and_a_true_picture_of_the_rest(seed, name):
    world = random_world(seed)
    jobs, est, allowed, _ = world.workload
    pictures = []

    def look(now, seen, estimates, queue, eligible, running, pools, machines, gpus, *own):
        arrived = int((jobs["arrival"] <= now).sum())
        known = sorted([*queue["job"].tolist(), *running["job"].tolist()])
        pictures.append(
            len(seen) == len(estimates) == arrived
            and seen.tobytes() == jobs[:arrived].tobytes()
            and estimates.tobytes() == est[:arrived].tobytes()
            and eligible.tobytes() == allowed[queue["job"]].tobytes()
            and known == sorted(set(known))
            and set(known) <= set(range(arrived))
            and pools["free"].sum() == machines["free"].sum() == (gpus["job"] < 0).sum()
            and len(gpus) - pools["free"].sum() == jobs["gpus"][running["job"]].sum()
        )

    result = play(world, InPython(name, world, look), seed)
    assert all(pictures)
    assert len(pictures) == result.world["decisions"]


class Nosy:
    """A compiled policy that boasts if it sees more jobs than wait, until three of them do."""

    name, memory, params = "nosy", 0, np.zeros(0)

    @staticmethod
    @njit(nogil=True)
    def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
        if len(queue) == 0 or pools[0].free == 0:
            return 0
        if queue[0].job == 0 and len(queue) < 3:
            return 0 if len(jobs) == len(est) == len(queue) else 99
        out[0].kind, out[0].job, out[0].pool = 0, queue[0].job, 0
        out[0].node = out[0].gpu = -1
        return 1


def test_a_compiled_policy_sees_only_jobs_that_have_arrived():
    result = play(build([nodes()], [job(0, 5), job(1, 5), job(2, 5)]), Nosy())
    assert result.outcome["start"].tolist() == [2, 7, 12]


@given(SEEDS, NAMES)
@settings(deadline=None, max_examples=30)
def test_a_real_decision_is_one_with_a_feasible_pair(seed, name):
    world = random_world(seed)
    real = []

    def look(now, seen, estimates, queue, eligible, running, pools, machines, *own):
        rooms = []
        for k, p in np.argwhere(eligible):
            need = seen[queue["job"][k]]
            own_nodes = machines[machines["pool"] == p]
            room = own_nodes["free"]
            if need["cores"] > 0:
                room = np.minimum(room, own_nodes["free_cores"] // need["cores"])
            if need["memory"] > 0:
                room = np.minimum(room, own_nodes["free_memory"] // need["memory"])
            rooms.append(room.sum() >= need["gpus"])
        real.append(any(rooms))

    play(world, InPython(name, world, look), seed)
    assert play(world, name, seed).world["real_decisions"] == sum(real)


# Same seed, same bytes, and independent copies.


def test_one_thread_and_two_give_equal_bytes():
    setting = synthetic.prepare(find_scenario("paper16"))
    empty = Empty(setting.layout.pools, setting.layout.nodes, setting.layout.gpus)
    policies = [registry.load(name, setting) for name in registry.names()]
    workloads = [synthetic.generate(setting, seed) for seed in range(6)]

    def fingerprint(task):
        seed, policy = task
        result = simulator.run(empty, workloads[seed], policy, seed, keep_spans=True)
        return [array.tobytes() for array in result]

    tasks = list(product(range(6), policies))
    alone = [fingerprint(task) for task in tasks]
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(fingerprint, tasks))
    assert together == alone


def test_a_run_leaves_the_workload_and_the_empty_cluster_as_they_were():
    world = random_world(3)
    before = [array.tobytes() for array in (*world.empty, *world.workload)]
    play(world, "min-min")
    assert [array.tobytes() for array in (*world.empty, *world.workload)] == before


@given(SEEDS, NAMES, st.integers(1, 60))
@settings(deadline=None, max_examples=40)
def test_a_clone_plays_on_to_the_same_end_and_leaves_the_original_alone(seed, name, moments):
    world = random_world(seed)
    policy = registry.load(name, world.setting)
    expected = play(world, policy, seed)
    state, outcome, spans = state_of(world, policy, seed)
    play_moments(world, policy, state, outcome, spans, moments)
    twin, twin_outcome, twin_spans = clone(state), outcome.copy(), spans.copy()
    before = photograph(state)
    play_moments(world, policy, twin, twin_outcome, twin_spans)
    assert photograph(state) == before
    assert twin_outcome.tobytes() == expected.outcome.tobytes()
    assert twin_spans.tolist() == expected.spans.tolist()
    assert twin.gpus.tobytes() == expected.gpus.tobytes()
    after = photograph(twin)
    play_moments(world, policy, state, outcome, spans)
    assert outcome.tobytes() == expected.outcome.tobytes()
    assert state.world["job_seconds"] == twin.world["job_seconds"] == expected.world["job_seconds"]
    assert photograph(twin) == after


def test_a_queue_that_slides_to_the_end_of_its_array_goes_back_to_the_front():
    # Four jobs every 4 s, each 1 s long, so that never more than four wait. Room for four jobs and
    # their slack is eight places: forty jobs slide past the end several times.
    world = build([nodes("V100")], [job(4 * (k // 4), 1) for k in range(40)])
    policy = registry.load("fcfs", world.setting)
    _, outcome, spans = state_of(world, policy)
    small = fresh(world.empty, 4, 1, 0)
    play_moments(world, policy, small, outcome, spans)
    assert len(small.queue) == 8
    assert outcome["start"].tolist() == list(range(40))
