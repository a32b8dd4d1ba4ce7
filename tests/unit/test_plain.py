"""The plain simulator in time: moments, decisions, and laws that hold in any schedule."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from adlro.model.state import FINISH, WHOLE
from tests.looped import every
from tests.plain import simulator
from tests.plain.cases import random_case
from tests.plain.policies import Fcfs
from tests.plain.records import Decision, InfeasibleError, StalledError
from tests.plain.registry import MAKERS, make
from tests.plain.script import Replay
from tests.plain.simulator import PlainWorld, run
from tests.plain.small import build, job, migrate, pool, preempt, start, wake


def test_two_jobs_share_one_gpu_in_turn():
    # Job 0 runs 0-5. Job 1 comes at 1 and runs 5-8. Times in the system: 5 + 7.
    # Calls: two at 0 (start, nothing), one at 1, two at 5; at 8 all is over.
    result = run(build([pool()], [job(0, 5), job(1, 3)]), Fcfs())
    assert (result.start, result.finish) == ([0, 5], [5, 8])
    assert (result.job_seconds, result.idle_seconds, result.decisions) == (12, 0, 5)


def test_idle_gpus_count_from_the_first_arrival_to_the_last_finish():
    # 2 GPUs from 10 to 17: job 0 holds one for 2 s, job 1 (from 14) one for 3 s: 14 - 5 idle.
    result = run(build([pool(gpus=2)], [job(10, 2), job(14, 3)]), Fcfs())
    assert (result.finish, result.idle_seconds, result.job_seconds) == ([12, 17], 9, 5)


def test_a_finish_makes_room_for_an_arrival_at_the_same_moment():
    result = run(build([pool()], [job(0, 5), job(5, 1)]), Fcfs())
    assert (result.start, result.decisions) == ([0, 5], 4)


def test_the_timer_keeps_the_earliest_wake_and_rings_once():
    # Of 3 and 2 only 2 is kept; asked again at 2, it rings at 5.
    trace = [[wake(3), wake(2)], [wake(5)], [start(0)], []]
    result = run(build([pool()], [job(0, 1)]), Replay(trace))
    assert (result.start, result.finish, result.decisions) == ([5], [6], 4)


def test_a_start_with_a_wake_is_asked_again_in_the_same_moment():
    result = run(build([pool()], [job(0, 9)]), Replay([[start(0), wake(4)], [], []]))
    assert result.decisions == 3


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (start(7), "no job 7"),
        (start(1), "job 1 is not waiting"),
        (start(0, 5), "no pool 5"),
        (start(0, 1), "not eligible on pool 1"),
        (start(0, 2), "no room on pool 2"),
        (start(0, 0, node=9), "no node 9"),
        (start(0, 0, node=1), "node 1 is not in pool 0"),
        (start(0, 0, node=0, gpu=1), "GPU 1 is not on node 0"),
        (start(0, 0, gpu=99), "no GPU 99"),
        (wake(0), "wake at 0 is not after 0"),
        (preempt(0), "job 0 is not running"),
        (migrate(0), "job 0 is not running"),
        (Decision("cancel", 0), "kind 'cancel'"),
    ],
)
def test_an_infeasible_decision_stops_the_run_and_names_the_policy(decision, message):
    jobs = [job(0, 9, allowed=[0, 2]), job(3, 9)]
    world = build([pool(), pool(), pool(gpus=0)], jobs)
    with pytest.raises(InfeasibleError, match=f"^Replay at 0.*: .*{message}"):
        run(world, Replay([[decision], []]))


def test_one_job_cannot_start_twice_in_one_answer():
    with pytest.raises(InfeasibleError, match="job 0 is not waiting"):
        run(build([pool(1, 2)], [job(0, 9)]), Replay([[start(0), start(0)]]))


def test_a_policy_that_never_starts_anything_stalls():
    with pytest.raises(StalledError, match=r"jobs \[0\] wait at 0"):
        run(build([pool()], [job(0, 9)]), Replay([[]]))


def test_a_policy_that_only_sets_timers_stalls_too(monkeypatch):
    monkeypatch.setattr(simulator, "MAX_RINGS", 1000)

    class Sleeper:
        def decide(self, world):
            return [wake(world.now + 1)]

    with pytest.raises(StalledError, match="1000 timers in a row"):
        run(build([pool()], [job(0, 9)]), Sleeper())


def test_a_policy_that_never_stops_changing_its_mind_is_stopped(monkeypatch):
    monkeypatch.setattr(simulator, "MAX_CALLS", 1000)

    class Fickle:
        def decide(self, world):
            return [preempt(0)] if world.running else [start(0)]

    with pytest.raises(StalledError, match="more than 1000 times at 0"):
        run(build([pool()], [job(0, 9)]), Fickle())


@cache
def played(seed, name):
    case = random_case(seed)
    return case, run(PlainWorld(case), make(name, case, seed))


EVERY_CASE = every("seed", range(10))
EVERY_POLICY = pytest.mark.parametrize("name", MAKERS)


@EVERY_CASE
@EVERY_POLICY
def test_nothing_is_ever_handed_out_twice(seed, name):
    case, result = played(seed, name)
    share, memory = np.full(len(case.gpus), WHOLE), case.gpus["free_memory"].copy()
    cores, host = case.nodes["cores"].copy(), case.nodes["memory"].copy()
    ends = [(span.end, 0, span) for span in result.spans if span.end > span.start]
    starts = [(span.start, 1, span) for span in result.spans if span.end > span.start]
    for _, starting, span in sorted(ends + starts):
        sign, job, node = (-1 if starting else 1), case.jobs[span.job], case.gpus["node"][span.gpu]
        share[span.gpu] += sign * span.share
        memory[span.gpu] += sign * int(job["gpu_memory"]) * (span.share < WHOLE)
        cores[node] += sign * int(job["cores"])
        host[node] += sign * int(job["memory"])
        assert min(share[span.gpu], memory[span.gpu], cores[node], host[node]) >= 0


@EVERY_CASE
@EVERY_POLICY
def test_every_job_ends_once_where_it_may_and_waits_for_its_arrival(seed, name):
    case, result = played(seed, name)
    ended = [span for span in result.spans if span.why == FINISH]
    assert len(ended) == case.jobs["gpus"].sum()
    for j, asked in enumerate(case.jobs):
        own = [span for span in result.spans if span.job == j]
        runs = {(span.start, span.end, span.why) for span in own}
        stands_on = set(case.gpus["node"][list(result.gpus[j])].tolist())
        assert case.allowed[j, result.pool[j]]
        assert set(case.nodes["pool"][list(stands_on)].tolist()) == {result.pool[j]}
        assert (len(result.gpus[j]), len(stands_on)) == (asked["gpus"], result.nodes[j])
        assert result.restarts[j] == len(own) / asked["gpus"] - 1
        assert asked["arrival"] <= result.start[j] == min(span.start for span in own)
        assert all(end - start <= asked["limit"] + 1e-9 for start, end, _ in runs)


@EVERY_CASE
def test_a_replayed_script_gives_exactly_the_same_result(seed):
    case, result = played(seed, "script")
    assert run(PlainWorld(case), Replay(result.trace)) == result


@EVERY_CASE
def test_a_world_can_be_played_again(seed):
    case, result = played(seed, "min-min")
    world = PlainWorld(case)
    run(world, make("script", case, seed))
    assert run(world, make("min-min", case)) == result
