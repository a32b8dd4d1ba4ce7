"""Runs of the simulator: schedules computed by hand, timers, views, and reproducibility."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from adlro.config.files import adjusted, find_scenario
from adlro.errors import PolicyError
from adlro.model.state import WHOLE
from adlro.policies import registry
from adlro.sim import simulator
from adlro.sim.world import EmptyCluster
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.worlds import (
    ANYWHERE,
    InPython,
    Restless,
    Scripted,
    build,
    gpus_of,
    job,
    nodes,
    play,
    random_world,
    start,
    wake,
)

SEEDS = st.integers(0, 10**6)
NAMES = st.sampled_from([*ANYWHERE, Restless.name])
EVERY_CASE = settings(deadline=None, max_examples=60)


def test_two_jobs_share_one_gpu_in_turn():
    # Job 0 runs 0-5. Job 1 comes at 1 and runs 5-8. In the system: 5 + 7 = 12 job-seconds.
    # Calls: two at 0 (start, nothing), one at 1, two at 5; at 8 all is over.
    result = play(build([nodes()], [job(0, 5), job(1, 3)]), "fcfs")
    assert result.outcome["start"].tolist() == [0, 5]
    assert result.outcome["finish"].tolist() == [5, 8]
    assert result.totals["job_seconds"] == 12
    assert result.totals["idle_seconds"] == 0
    assert result.totals["decisions"] == 5
    assert result.totals["real_decisions"] == 2  # those at 0 and at 5 with a job that could start
    assert result.totals["events"] == 4  # two arrivals, two finishes


def test_the_clock_starts_at_the_first_arrival_and_idle_gpus_count_from_there():
    # 2 GPUs from 10 to 17: job 0 holds one for 2 s, job 1 (from 14) one for 3 s: 14 - 5 idle.
    result = play(build([nodes("V100", 2)], [job(10, 2), job(14, 3)]), "fcfs")
    assert result.outcome["finish"].tolist() == [12, 17]
    assert (result.totals["idle_seconds"], result.totals["job_seconds"]) == (9, 5)
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

    def look(view):
        seen.extend(view.running["expected"].tolist())

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
    assert result.totals["decisions"] == 4  # two at 0, two at 5


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


def test_decisions_of_one_answer_are_applied_in_order_and_the_policy_is_called_again():
    # Job 0 fills node 0, so that the second start of the same answer finds only node 1.
    policy = Scripted([start(0, node=0), start(1)], [])
    jobs = [job(0, 4, gpus=2), job(0, 6, gpus=2)]
    result = play(build([nodes("V100", 2, 2)], jobs), policy)
    assert [gpus_of(result, j) for j in range(2)] == [[0, 1], [2, 3]]
    assert policy.asked_at == [0, 0, 4]  # nothing is asked after the last finish at 6


def test_a_policy_is_asked_with_an_empty_queue_but_not_after_the_last_finish():
    sizes = []
    world = build([nodes()], [job(0, 2), job(5, 1)])
    play(world, InPython("fcfs", world, lambda view: sizes.append((view.now, len(view.queue)))))
    assert sizes == [(0, 1), (0, 0), (2, 0), (5, 1), (5, 0)]


def test_the_queue_is_sorted_by_age_whatever_was_taken_out_of_it():
    # Five jobs at 0; 1, 3 and 0 start at once, so 2 and 4 are left when 5 and 6 come at 1.
    queues = []

    class Watching(Scripted):
        def decide(self, view, *own):
            queue = view.queue
            queues.append((view.now, queue["job"].tolist(), queue["since"].tolist()))
            return super().decide(view, *own)

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
    assert result.totals["events"] == 5  # two arrivals, two finishes, one timer


def test_a_timer_between_events_adds_a_call_and_changes_no_integral():
    jobs = [job(0, 10), job(6, 5)]
    plain = play(build([nodes("V100", 2)], jobs), Scripted([start(0)], [], [start(1)]))
    policy = Scripted([start(0), wake(3)], [], [wake(7)], [start(1)])
    timed = play(build([nodes("V100", 2)], jobs), policy)
    assert policy.asked_at == [0, 0, 3, 6, 6, 7, 10]
    assert timed.outcome.tobytes() == plain.outcome.tobytes()
    assert timed.totals["job_seconds"] == plain.totals["job_seconds"] == 15
    assert timed.totals["idle_seconds"] == plain.totals["idle_seconds"] == 7  # 2 * 11 - 15


def test_a_timer_that_is_still_set_at_the_end_does_not_prolong_the_run():
    result = play(build([nodes()], [job(0, 5)]), Scripted([start(0), wake(100)]))
    assert result.totals["now"] == 5


@given(SEEDS, NAMES)
@EVERY_CASE
def test_a_policy_called_from_python_gives_the_same_run(seed, name):
    world = random_world(seed)
    compiled, called = play(world, name, seed), play(world, InPython(name, world), seed)
    assert compiled.outcome.tobytes() == called.outcome.tobytes()
    assert compiled.spans.tobytes() == called.spans.tobytes()
    assert compiled.totals.tobytes() == called.totals.tobytes()
    assert compiled.gpus.tobytes() == called.gpus.tobytes()


@given(SEEDS, NAMES)
@settings(deadline=None, max_examples=30)
def test_a_policy_sees_only_jobs_that_have_arrived_and_the_true_state_of_the_cluster(seed, name):
    world = random_world(seed, drains=False)
    jobs, est, allowed, *_ = world.workload
    is_free = len(world.workload.quotas) == len(world.workload.ageing) == 0
    pictures = []

    def look(view):
        now, seen, estimates, queue, eligible, running, pools, machines, gpus, *_ = view
        arrived = int((jobs["arrival"] <= now).sum())
        known = sorted([*queue["job"].tolist(), *running["job"].tolist()])
        pictures.append(
            len(seen) == len(estimates) == view.arrived == arrived
            and view.recent.tolist() == list(range(max(arrived - 128, 0), arrived))
            and seen.tobytes() == jobs[:arrived].tobytes()
            and estimates.tobytes() == est[:arrived].tobytes()
            and (eligible <= allowed[queue["job"]]).all()
            and (eligible.tobytes() == allowed[queue["job"]].tobytes() or not is_free)
            and known == sorted(set(known))
            and set(known) <= set(range(arrived))
            and pools["free"].sum() == machines["free"].sum() == (gpus["free"] == WHOLE).sum()
            and (WHOLE - gpus["free"])[machines["up"][gpus["node"]] == 1].sum()
            == (jobs["gpus"] * jobs["share"])[running["job"]].sum()
        )

    result = play(world, InPython(name, world, look), seed)
    assert all(pictures)
    assert len(pictures) == result.totals["decisions"]


class Nosy:
    """A compiled policy that reports when its view holds more jobs than wait."""

    name, memory, params = "nosy", 0, np.zeros(0)

    @staticmethod
    @njit(nogil=True)
    def decide(view, params, memory, out):
        jobs, est, queue = view.jobs, view.est, view.queue
        if len(queue) == 0 or view.pools[0].free == 0:
            return 0
        if queue[0].job == 0 and len(queue) < 3:
            return 0 if len(jobs) == len(est) == view.arrived == len(queue) else 99
        out[0].kind, out[0].job, out[0].pool = 0, queue[0].job, 0
        out[0].node = out[0].gpu = -1
        return 1


def test_a_compiled_policy_sees_only_jobs_that_have_arrived():
    result = play(build([nodes()], [job(0, 5), job(1, 5), job(2, 5)]), Nosy())
    assert result.outcome["start"].tolist() == [2, 7, 12]


def room_of(need, p, machines, gpus):
    """Number of GPUs of a job that fit on a pool, by the rules of docs/simulator.md."""
    room = machines["free"].copy()
    if need["share"] < WHOLE:
        able = (gpus["free"] >= need["share"]) & (gpus["free_memory"] >= need["gpu_memory"])
        room = np.minimum(np.bincount(gpus["node"][able], minlength=len(machines)), 1)
    for name in ("cores", "memory"):
        if need[name] > 0:
            room = np.minimum(room, machines[f"free_{name}"] // need[name])
    rooms = (room * machines["up"])[machines["pool"] == p]
    return rooms.max() if need["one_node"] else rooms.sum()


@given(SEEDS, NAMES)
@settings(deadline=None, max_examples=30)
def test_a_real_decision_is_one_with_a_feasible_pair(seed, name):
    world = random_world(seed)
    real = []

    def look(view):
        machines, gpus, pairs = view.nodes, view.gpus, np.argwhere(view.eligible)
        jobs = [view.jobs[view.queue["job"][k]] for k, _ in pairs]
        rooms = [room_of(need, p, machines, gpus) for need, (_, p) in zip(jobs, pairs, strict=True)]
        real.append(any(r >= need["gpus"] for r, need in zip(rooms, jobs, strict=True)))

    play(world, InPython(name, world, look), seed)
    assert play(world, name, seed).totals["real_decisions"] == sum(real)


def test_one_thread_and_two_give_exactly_the_same():
    setting = prepare(adjusted(find_scenario("paper16"), jobs=60))
    empty = EmptyCluster(setting.layout.pools, setting.layout.nodes, setting.layout.gpus)
    policies = [registry.load(name, setting) for name in registry.names()]
    workloads = [generate(setting, seed) for seed in range(4)]

    def fingerprint(task):
        seed, policy = task
        result = simulator.run(empty, workloads[seed], policy, seed, keep_spans=True)
        return [array.tolist() for array in result]  # all but the padding between fields

    slow = [policy for policy in policies if not simulator.is_compiled(policy.decide)]
    tasks = [task for task in product(range(4), policies) if task[0] == 0 or task[1] not in slow]
    alone = [fingerprint(task) for task in tasks]
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(fingerprint, tasks))
    assert together == alone


def test_a_run_leaves_the_workload_and_the_empty_cluster_as_they_were():
    world = random_world(3)
    before = [array.tobytes() for array in (*world.empty, *world.workload)]
    play(world, "min-min")
    assert [array.tobytes() for array in (*world.empty, *world.workload)] == before


def test_a_compiled_policy_that_fails_late_is_called_once_more_and_not_replayed(monkeypatch):
    """Only the failed call is repeated in Python, where the traceback has its line."""

    @njit(boundscheck=True)
    def decide(view, params, memory, out):
        if view.arrived == 60:
            return view.queue[len(view.queue)].job
        return 0

    def refused(*_):
        raise AssertionError("the run was played again in Python")

    monkeypatch.setattr(simulator, "_run_in_python", refused)
    world = build([nodes()], [job(float(i), 5) for i in range(80)])
    with pytest.raises(IndexError) as caught:
        play(world, _Compiled(decide))
    frames = [entry.frame.code.name for entry in caught.traceback]
    assert "decide" in frames


class _Compiled:
    """A compiled decide as the simulator asks for it."""

    name, params, memory = "own", np.zeros(0), 0

    def __init__(self, decide):
        self.decide = decide
