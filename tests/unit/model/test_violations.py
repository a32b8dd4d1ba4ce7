"""Violations that stop a run, and their one-line messages."""

import numpy as np
import pytest
from numba import njit

from adlro.errors import PolicyError
from adlro.sim import kernel
from tests.worlds import Scripted, build, job, migrate, nodes, play, preempt, start, wake

KINDS = "known: 0 start, 1 preempt, 2 migrate, 3 wake"


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
        ([(7, 0, 0, -1, -1, 0)], f"wrote a decision of unknown kind 7; {KINDS}"),
        ([(-1, 0, 0, -1, -1, 0)], f"wrote a decision of unknown kind -1; {KINDS}"),
        ([(4, 0, 0, -1, -1, 0)], f"wrote a decision of unknown kind 4; {KINDS}"),
        ([preempt(0)], "asked to preempt job 0, which is not running"),
        ([preempt(-1)], "asked to preempt job -1, which is not running"),
        ([preempt(4)], "asked to preempt job 4, which is not running"),  # it comes at 3
        ([preempt(99)], "asked to preempt job 99, which is not running"),
        ([start(0), preempt(0), preempt(0)], "asked to preempt job 0, which is not running"),
        ([migrate(0)], "asked to migrate job 0, which is not running"),
        ([start(0), migrate(0, 9)], "asked to start job 0 on pool 9, but there is no such pool"),
        ([start(0), migrate(0, 1)], "asked to start job 0 on pool 1, where it is not eligible"),
        ([start(0), start(3, 2), migrate(0, 2)], "asked to start job 0 on pool 2, which has no"),
        ([start(0), migrate(0, 0, 2)], "asked to start job 0 on pool 0, on node or GPU 2"),
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
        ([start(0, node=-2)], "asked to start job 0 on pool 0, on node or GPU -2"),
        ([start(0, gpu=-2)], "asked to start job 0 on pool 0, on node or GPU -2"),
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


@pytest.mark.parametrize("count", [27, 1000, -1])  # at most 5 jobs run: stop, start, 16 more
def test_more_answers_than_there_is_room_for_stop_the_run(count):
    class Boasting(Scripted):
        def decide(self, view, params, memory, out):
            return count

    said = rf"^policy scripted answered {count}, but 'out' holds at most 26 decisions \(at 0 s\)$"
    with pytest.raises(PolicyError, match=said):
        play(strained_world(), Boasting())


def test_the_buffer_holds_a_preemption_and_a_start_of_every_run_and_some_more():
    # Room for 2 * 2 + 16 decisions: four of them start and stop, the others wake.
    most = [start(0), preempt(0), start(1), start(0), *[wake(1)] * 16]
    policy = Scripted(most)
    result = play(build([nodes("V100", 2)], [job(0, 5), job(0, 5)]), policy)
    assert result.outcome["start"].tolist() == [0, 0]
    assert policy.asked_at == [0, 0, 1]


@pytest.mark.parametrize(
    ("decision", "least", "said"),
    [
        (preempt(0), 10, "asked to preempt job 0 before its least run time was over"),
        (migrate(0), 10, "asked to migrate job 0 before its least run time was over"),
        (preempt(0), 4 + 2e-9, "asked to preempt job 0 before its least run time was over"),
    ],
)
def test_a_run_that_is_too_young_may_not_be_preempted(decision, least, said):
    policy = Scripted([start(0), wake(4)], [], [decision])
    with pytest.raises(PolicyError) as caught:
        play(build([nodes()], [job(0, 20, least_run=least)]), policy)
    assert str(caught.value) == f"policy scripted {said} (at 4 s)"


@pytest.mark.parametrize("least", [0, 4, 4 + 0.5e-9])
def test_a_run_may_be_preempted_after_its_minimum_run_time(least):
    policy = Scripted([start(0), wake(4)], [], [preempt(0)], [start(0)])
    result = play(build([nodes()], [job(0, 20, least_run=least)]), policy)
    assert result.outcome["finish"].tolist() == [24]


class Undecided:
    """A compiled policy that starts and preempts the oldest job for ever."""

    name, memory, params = "undecided", 0, np.zeros(0)

    @staticmethod
    @njit(nogil=True)
    def decide(view, params, memory, out):
        out[0].kind = 0 if len(view.queue) > 0 else 1
        out[0].job = out[0].pool = 0
        out[0].node = out[0].gpu = -1
        return 1


class UndecidedInPython(Scripted):
    """The same policy, called from Python."""

    name = "undecided"

    def decide(self, view, params, memory, out):
        out[0] = start(0) if len(view.queue) > 0 else preempt(0)
        return 1


def test_a_hundred_thousand_answers_in_one_moment_stop_the_run():
    said = r"^policy undecided went on deciding after 100,000 answers in one moment \(at 7 s\)$"
    with pytest.raises(PolicyError, match=said):
        play(build([nodes()], [job(7, 5)]), Undecided())


def test_a_hundred_thousand_answers_of_a_plain_python_policy_stop_the_run(monkeypatch):
    monkeypatch.setattr(kernel, "MAX_CALLS", 3_000)
    said = r"^policy undecided went on deciding after 3,000 answers in one moment \(at 7 s\)$"
    with pytest.raises(PolicyError, match=said):
        play(build([nodes()], [job(7, 5)]), UndecidedInPython())


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
    """Wakes every second; starts jobs at the ends of rounds, on the pool of that round."""

    name, memory = "rounds", 0

    def __init__(self, period):
        self.params = np.array([period])

    @staticmethod
    @njit(nogil=True)
    def decide(view, params, memory, out):
        now, queue, pools = view.now, view.queue, view.pools
        p = min(int(now // params[0]), len(pools) - 1)
        if now % params[0] == 0 and len(queue) > 0 and pools[p].free > 0:
            out[0].kind, out[0].job, out[0].pool = 0, queue[0].job, p
            out[0].node = out[0].gpu = -1
            return 1
        out[0].kind, out[0].at = 3, now + 1.0
        return 1


def test_timers_without_end_while_nothing_else_can_happen_stop_the_run():
    said = r"^policy rounds asked for 100000 timers in a row and finished nothing"
    with pytest.raises(PolicyError, match=said):
        play(build([nodes()], [job(1, 5)]), Rounds(1e9))


class Mover:
    """Migrates the running job at every timer, so that it never finishes."""

    name, params, memory = "mover", np.zeros(0), 0

    @staticmethod
    @njit(nogil=True)
    def decide(view, params, memory, out):
        now, queue, running = view.now, view.queue, view.running
        out[0].pool = 0
        out[0].node = out[0].gpu = -1
        if len(queue) > 0:
            out[0].kind, out[0].job = 0, queue[0].job
            return 1
        out[1].kind, out[1].at = 3, now + 1.0
        if len(running) == 0 or running[0].start == now:
            out[0].kind, out[0].at = 3, now + 1.0
            return 1
        out[0].kind, out[0].job = 2, running[0].job
        return 2


def test_moving_a_job_for_ever_stops_the_run():
    # Restoring takes 2 s and the next move comes after 1: no work is ever done.
    said = r"^policy mover asked for 100000 timers in a row and finished nothing"
    with pytest.raises(PolicyError, match=said):
        play(build([nodes()], [job(0, 5, checkpoint=2)]), Mover())


def test_a_finish_or_an_arrival_resets_the_count_of_timers():
    # Rounds of 120,000 s: job 0 runs 0-60,000.5 and job 1 starts at 120,000, after 120,000 timers
    # with a finish in their middle; job 2 starts at 240,000, with an arrival in their middle.
    world = build([nodes()], [job(0, 60_000.5), job(0, 5), job(180_000, 5)])
    assert play(world, Rounds(120_000.0)).outcome["start"].tolist() == [0, 120_000, 240_000]
