"""What a learned policy looks at: by hand, and what may not matter."""

from functools import cache
from math import exp, log

import numpy as np
import pytest

from adlro.features.start_kernel import MOST_CHOICES, PLAIN
from adlro.sim import simulator
from tests.looking import column, look_at, pairs, seen_at, watched
from tests.looped import every
from tests.plain.cases import random_case
from tests.worlds import InPython, build, fails, from_case, is_repaired, job, nodes, play, quota

FAR = log(1001)  # 1000 tau, squeezed: as far as it goes


@cache
def worked():
    """Two pools of two GPUs, at 2. Job 0 holds a V100 from 0 to 8.

    Job 1 (both GPUs of a pool; V100 2 s, T4 16 s) waits since 1, job 2 (V100 4 s, T4 8 s) comes.
    tau = (2 * 4 * 8) ** (1 / 3) = 4. Free: one V100 and two T4s, the other V100 from 8 on. Min-Min
    plans job 2 on the V100 2-6, then job 1 on both 8-10.
    """
    groups = [nodes("V100", 2), nodes("T4", 2)]
    gang = job(1, 2, 16, gpus=2, priority=0.5)
    return seen_at(2, groups, [job(0, 8, 99), gang, job(2, 4, 8, priority=0.25)])


def test_the_choices_are_to_wait_and_the_feasible_pairs_with_the_shortest_first():
    assert pairs(worked(), queue=[1, 2]) == [(2, 0), (2, 1), (1, 1)]
    assert worked().seconds.tolist() == [0, 4, 8, 16]
    assert (worked().places[0], worked().pools[0]) == (-1, -1)


def test_times_are_measured_in_the_geometric_mean_of_the_estimates():
    assert worked().tau == pytest.approx(4, rel=1e-12)


def test_each_choice_has_its_drain_cost():
    # Wait until 8: job 1 8-10 (8 s from now), job 2 behind it 10-14 (12 s), for the T4 ends at 16.
    # Job 2 on the V100: 4 s, job 1 8-10: 8 s. On a T4: 8 + 8 s. Job 1 on the T4s: 16 s, job 2 4 s.
    assert worked().costs.tolist() == [20, 12, 16, 20]


def test_min_mins_choice_is_marked():
    assert worked().planned == 1
    assert column(worked(), "planned").tolist() == [0, 1, 0, 0]
    assert column(worked(), "wait").tolist() == [1, 0, 0, 0]


WORKED = {  # of: wait, job 2 on the V100, job 2 on a T4, job 1 on the T4s
    "drain": [2, 0, 1, 2],  # (20, 12, 16, 20 - 12) / 4
    "drain_log": [log(3), 0, log(2), log(3)],
    "drain_regret": [log(3), 0, log(2), log(3)],
    # GPUs are free again, from now, at: wait V100 8 + 12, T4 6 + 6; job 2 on the V100 8 + 8, 0;
    # on a T4 8 + 8, 0 + 8; job 1 on the T4s 4 + 6, 16 + 16. So 32, 16, 24, 42.
    "drain_busy": [log(5), 0, log(3), log(7.5)],
    "drain_wait": [log(3)] * 4,
    "drain_mean": [log(2.5)] * 4,  # 12 s for two jobs
    "seconds": [0, log(2), log(3), log(5)],
    "slowdown": [0, 0, log(2), log(8)],
    "is_fastest": [0, 1, 0, 0],
    "elsewhere": [0, log(2), -log(2), -log(3)],  # 10 - 6, 6 - 10, 10 - 18
    "plan_end": [0, log(2), log(2), log(3)],  # 6, 6, 10
    "plan_gain": [0, 0, -log(2), -log(3)],  # 6 - 6, 6 - 10, 10 - 18
    "plan_start": [0, 0, 0, log(2.5)],  # job 1 at 8
    "plan_rank": [0, 0, 0, 0.5],
    "plan_here": [0, 1, 0, 0],
    "over_shortest": [0, log(1.5), log(2.5), log(4.5)],  # than 2 s
    "gpus_log": [0, 0, 0, 1],
    "gpus_of_pool": [0, 0.5, 0.5, 1],
    "gpus_of_free": [0, 1 / 3, 1 / 3, 2 / 3],
    "left_free": [0, 0, 0.5, 0],
    "area": [0, log(2), log(3), log(9)],
    "spans": [0, 0, 0, 0],
    "waited": [0, 0, 0, log(1.25)],
    "priority": [0, 0.25, 0.25, 0.5],
    "blocked": [0, 0, log(2), log(2)],  # job 1 does not fit on the V100s anyway
    "blocked_seconds": [0, 0, log(5), log(3)],  # job 1: 16 s, job 2: 8 s
    "rivals": [0, 0.5, 0.5, 0.5],
    "rival_speed": [0, 1, 2 / 16, 4 / 8],
    "pool_pressure": [0, log(2.75), 0, 0],  # V100s: 2 * 2 + 4 + 6 left of job 0 = 14 s for 2 GPUs
    "pool_next": [0, log(2.5), FAR, FAR],
    "pressure": [log(1.875)] * 4,  # 14 s for 4 GPUs
    "next": [log(2.5)] * 4,
    "waiting": [log(3)] * 4,
    "free": [0.75] * 4,
    "choices": [log(4)] * 4,
    "asked": [log(1.75)] * 4,  # 3 GPUs of 4
    "widest": [1] * 4,
    "overdue": [0] * 4,
    "recent_load": [0] * 4,  # three arrivals tell nothing yet, see below
    "recent_gap": [0] * 4,
    "recent_scale": [0] * 4,
    "recent_spread": [0] * 4,
    "progress": [0.25] * 4,  # job 0 has run 2 s of 8
    "overdue_by": [0] * 4,
    "gpus_up": [2] * 4,
    "gpus_free": [2] * 4,  # 1 + 3 free ones
    "may_use": [0, 1, 1, 1],
    "plan_now": [log(2)] * 4,  # job 2 on the V100
    "pool_queue": [0, log(2), 0, 0],  # V100s: 2 * 2 + 4 s for 2 GPUs
    "queue": [log(1.5)] * 4,  # the same for 4 GPUs
}


@pytest.mark.parametrize("name", WORKED)
def test_every_feature_is_what_was_worked_out_by_hand(name):
    assert column(worked(), name) == pytest.approx(WORKED[name], abs=1e-12)


def test_no_feature_was_left_out():
    assert set(PLAIN) == {"wait", "planned", *WORKED}


def test_the_last_arrivals_tell_how_much_comes_how_often_and_how_long():
    # Nine jobs came at 0, 1 .. 8, each 2 s on a V100, 8 s on a T4, the last for 2 GPUs: at 8 that
    # is 10 V100s x 2 s over 8 s x 4 GPUs. The first eight are done or run; only the last waits.
    jobs = [job(float(t), 2, 8) for t in range(8)] + [job(8, 2, 8, gpus=2)]
    seen = seen_at(8, [nodes("V100", 3), nodes("T4", 1)], jobs)
    load, gap, scale = (column(seen, f"recent_{name}")[0] for name in ("load", "gap", "scale"))
    assert seen.tau == pytest.approx(2, rel=1e-12)  # job 7 runs, job 8 waits, 2 s each
    assert load == pytest.approx(log(20 / 32), rel=1e-12)
    assert gap == pytest.approx(log(1 + 8 / 9 / 2), rel=1e-12)
    assert scale == pytest.approx(0, abs=1e-12)
    assert column(seen, "recent_spread")[0] == pytest.approx(0, abs=1e-7)  # all alike


def test_the_last_arrivals_tell_how_much_run_times_differ():
    # Half of eight jobs take e times as long as the others, which is ± 0.5 around the mean log.
    jobs = [job(float(t), 2 * exp(t % 2)) for t in range(8)]
    seen = seen_at(7, [nodes("V100", 9)], jobs)
    assert column(seen, "recent_spread") == pytest.approx([0.5] * 2, rel=1e-9)
    # Half of them 4e6 times: a deviation of more than 5 counts as 5.
    jobs = [job(float(t), 4e6 ** (t % 2)) for t in range(8)]
    seen = seen_at(7, [nodes("V100", 9)], jobs)
    assert column(seen, "recent_spread").tolist() == [5, 5]


def test_only_the_last_32_arrivals_count():
    # Of 40 jobs, one a second, the first 8 are long ones.
    jobs = [job(float(t), 50 if t < 8 else 1) for t in range(40)]
    seen = seen_at(39, [nodes("V100", 12)], jobs)
    assert column(seen, "recent_load")[0] == pytest.approx(log(32 / (31 * 12)), rel=1e-12)


def test_a_gang_that_would_span_nodes_runs_longer_by_its_penalty():
    # Two nodes of one GPU; the plan knows nothing of it, the pair does.
    world = [nodes("V100", 1, 2)], [job(0, 8, gpus=2, communication=0.5)]
    seen = seen_at(0, *world)
    penalty = 1 + 0.5 * build(*world).empty.pools["span_cost"][0]
    assert penalty > 1.01
    assert seen.seconds[1] == pytest.approx(8 * penalty, rel=1e-12)
    assert column(seen, "spans")[1] == pytest.approx(penalty - 1, rel=1e-9)
    assert column(seen, "slowdown")[1] == pytest.approx(log(penalty), rel=1e-9)
    assert column(seen, "is_fastest")[1] == 1


def test_runs_that_have_outlived_their_estimate_are_counted():
    # At 5 job 0 should have ended at 1: it is expected at 5 + 1. Job 1 is not late. Job 2: 1 s.
    jobs = [job(0, 9, est=[1]), job(0, 9), job(5, 1)]
    seen = seen_at(5, [nodes("V100", 3)], jobs)
    assert column(seen, "overdue").tolist() == [0.5, 0.5]
    assert seen.tau == pytest.approx(9 ** (1 / 3), rel=1e-12)
    assert column(seen, "next")[0] == pytest.approx(log(1 + 1 / seen.tau), rel=1e-12)
    # Job 0 has run 5 times its estimate, which counts as twice, job 1 5 of 9 s.
    assert column(seen, "progress").tolist() == pytest.approx([(2 + 5 / 9) / 2] * 2, rel=1e-12)
    assert column(seen, "overdue_by").tolist() == pytest.approx([log(5)] * 2, rel=1e-12)


def test_by_how_much_runs_are_late_is_a_mean_of_logs_each_at_most_1000():
    # At 9: 9 and 3 times the estimate, and one of 0 that is 1000 times late at most.
    jobs = [job(0, 99, est=[1]), job(0, 99, est=[3]), job(0, 99, est=[0]), job(9, 1)]
    seen = seen_at(9, [nodes("V100", 4)], jobs)
    assert column(seen, "overdue").tolist() == [1, 1]
    expected = (log(9) + log(3) + log(1000)) / 3
    assert column(seen, "overdue_by").tolist() == pytest.approx([expected] * 2, rel=1e-12)
    assert column(seen, "progress").tolist() == [2, 2]


def test_hundreds_of_late_runs_overflow_nothing():
    # A run is 500 times late; the product of 200 of these is beyond all floats.
    jobs = [job(0, 9999, est=[1]) for _ in range(200)]
    seen = seen_at(500, [nodes("V100", 201)], [*jobs, job(500, 1)])
    assert column(seen, "overdue_by")[0] == pytest.approx(log(500), rel=1e-12)


def test_with_nothing_running_waiting_is_as_far_as_it_goes():
    # tau = 5: to wait costs 1000 * 5 + 5 s instead of 5.
    seen = seen_at(0, [nodes("V100")], [job(0, 5)])
    assert seen.costs == pytest.approx([5005, 5], rel=1e-12)
    assert column(seen, "drain").tolist() == pytest.approx([1000, 0])
    assert column(seen, "next").tolist() == pytest.approx([FAR, FAR])


def test_a_slice_that_fits_beside_another_ends_elsewhere_without_waiting_for_the_gpu():
    # Job 0 has half of the V100 until 100 and job 1 half of the T4 until 51. Job 2 (half a GPU)
    # takes 10 s on the one and 12 s on the other: 2 s more.
    groups = [nodes("V100"), nodes("T4")]
    halves = [job(0, 100, 100, share=500), job(0, 50, 50, share=500, allowed=[1])]
    seen = seen_at(1, groups, [*halves, job(1, 10, 12, share=500)], "fcfs")
    assert pairs(seen, queue=[2]) == [(2, 0), (2, 1)]
    assert column(seen, "elsewhere")[1] == pytest.approx(log(1 + 2 / seen.tau), rel=1e-12)
    assert column(seen, "left_free")[1] == -1  # a GPU is asked for where none is free


def test_only_so_many_of_the_shortest_pairs_are_choices():
    seen = seen_at(0, [nodes("V100", 8)], [job(0, 50 - j) for j in range(30)])
    assert seen.count == MOST_CHOICES
    assert seen.seconds.tolist() == [0, *range(21, 36)]


def test_min_mins_choice_is_there_even_if_15_others_are_shorter():
    # Jobs 2-21 take 1 s on the V100, busy until 1, and 100 s on the T4: Min-Min lets them all wait
    # for the V100 and gives the T4 to job 1, 200 s there (and nowhere else).
    short = [job(0, 1, 100) for _ in range(20)]
    jobs = [job(0, 1, 999), job(0, 999, 200, allowed=[1]), *short]
    world, found = build([nodes("V100"), nodes("T4")], jobs), []
    policy = InPython("min-min", world, lambda view: found.append(look_at(view)))
    simulator.run(world.empty, world.workload, policy)
    assert (found[0].planned, found[0].seconds[1]) == (1, 1)  # job 0
    assert found[1].count == MOST_CHOICES
    assert found[1].planned == MOST_CHOICES - 1
    assert found[1].seconds[-1] == 200
    assert found[1].seconds[-2] == 100


def test_nothing_to_choose_is_no_choice():
    world, found = build([nodes("V100")], [job(0, 5), job(1, 5)]), []
    policy = InPython("min-min", world, lambda view: found.append((view.now, look_at(view).count)))
    simulator.run(world.empty, world.workload, policy)
    # At 0 and 5 a job starts, then none is left to; at 1 there is no room.
    assert found == [(0, 2), (0, 0), (1, 0), (5, 2), (5, 0)]


def test_a_pool_that_is_down_is_no_choice_and_divides_nothing():
    # The only V100 fails at 1 and is back at 50; at 2 job 1 comes and has the T4 alone.
    groups, jobs = [nodes("T4", 2), nodes("V100")], [job(0, 30, 99), job(2, 10, 4)]
    seen = seen_at(2, groups, jobs, events=[fails(1, 1), is_repaired(50, 1)])
    assert pairs(seen, queue=[1]) == [(1, 0)]
    assert column(seen, "elsewhere")[1] == pytest.approx(FAR)
    assert column(seen, "may_use")[1] == 1  # of those that are up
    assert column(seen, "free")[1] == 0.5
    assert np.isfinite(seen.features).all()


def test_a_quota_takes_pairs_away():
    # The account may have one V100 and has it: only the T4 is left for job 1.
    groups, limited = [nodes("V100", 2), nodes("T4")], [quota(account=0, caps=[(0, 1)])]
    seen = seen_at(1, groups, [job(0, 9, 9), job(1, 5, 8)], "fcfs", quotas=limited)
    assert pairs(seen, queue=[1]) == [(1, 1)]
    assert column(seen, "is_fastest")[1] == 1  # of the pools where it may run


# What may not matter.


def plain_case(seed):
    """A case of whole jobs, nothing running late: times can be scaled."""
    case = random_case(seed)
    return case._replace(
        events=case.events[:0],
        est=case.seconds.copy(),
        ageing=None,
        tick=None,
        demands=case.demands[:0],
    )


def all_seen(world, seed, policy="min-min"):
    watcher, seen = watched(policy, world)
    simulator.run(world.empty, world.workload, watcher, seed)
    return seen


@pytest.mark.parametrize("factor", [2.0**-10, 2.0**12])
@every("seed", range(0, 60, 3), quick=8)
def test_seconds_or_days_make_no_difference(seed, factor):
    # By powers of 2, so that no tie is broken by rounding.
    case = plain_case(seed)
    jobs = case.jobs.copy()
    for name in ("arrival", "limit", "checkpoint", "interval", "least_run", "start_delay"):
        jobs[name] = np.where(jobs[name] > 0, jobs[name] * factor, jobs[name])
    colocation = np.ones_like(case.colocation)
    one = case._replace(colocation=colocation)
    other = one._replace(jobs=jobs, est=case.est * factor, seconds=case.seconds * factor)
    ours, theirs = (all_seen(from_case(c), seed) for c in (one, other))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.count, a.planned) == (b.count, b.planned)
        np.testing.assert_allclose(a.features, b.features, atol=1e-9)
        np.testing.assert_allclose(a.tau * factor, b.tau, rtol=1e-9)


def shuffled(view, order):
    """A view with its queue in another order."""
    return view._replace(queue=view.queue[order], eligible=view.eligible[order])


@every("seed", range(0, 60, 3), quick=8)
def test_the_order_of_the_queue_makes_no_difference(seed):
    # Of real numbers, so that there are no ties; fewer jobs than a plan holds.
    case = random_case(2 * seed + 1)
    rng = np.random.default_rng(seed)
    case = case._replace(est=case.est * rng.uniform(0.9, 1.1, case.est.shape))
    world, compared = from_case(case), 0

    def note(view):
        nonlocal compared
        order = rng.permutation(len(view.queue))
        ours, theirs = look_at(view), look_at(shuffled(view, order))
        if ours.count == 0 or (np.diff(np.sort(ours.seconds)) < 1e-9).any():
            return
        jobs, moved = view.queue["job"], view.queue["job"][order]
        assert pairs(ours, jobs.tolist()) == pairs(theirs, moved.tolist())
        np.testing.assert_allclose(ours.features, theirs.features, atol=1e-8)
        compared += 1

    simulator.run(world.empty, world.workload, InPython("min-min", world, note), seed)
    assert compared > 0 or len(case.jobs) < 8


def test_a_pool_that_nobody_may_use_changes_only_what_counts_its_gpus():
    groups = [nodes("V100", 2), nodes("T4", 2)]
    gang = {"gpus": 2, "allowed": [0, 1]}
    jobs = [job(0, 8, 99, 1, allowed=[0, 1]), job(1, 2, 16, 1, **gang)]
    jobs = [*jobs, job(2, 4, 8, 1, allowed=[0, 1], priority=0.25)]
    more = seen_at(2, [*groups, nodes("A100", 4)], jobs)
    assert pairs(more, queue=[1, 2]) == pairs(worked(), queue=[1, 2])
    assert more.costs.tolist() == worked().costs.tolist()
    changed = {
        # To wait takes the free GPUs until 8, of each pool as many as are asked for: 3 * 6 s more.
        "drain_busy": [log(9.5), 0, log(3), log(7.5)],
        "gpus_of_free": [0, 1 / 7, 1 / 7, 2 / 7],  # 7 free
        "pressure": [log(1 + 14 / 8 / 4)] * 4,  # 14 s for 8 GPUs
        "free": [7 / 8] * 4,
        "asked": [log(1 + 3 / 8)] * 4,
        "priority": [0, 0.25, 0.25, 0],
        "gpus_up": [3] * 4,
        "gpus_free": [3] * 4,
        "may_use": [0, 0.5, 0.5, 0.5],
        "queue": [log(1.25)] * 4,  # 8 s for 8 GPUs
    }
    for name in WORKED:
        expected = changed.get(name, WORKED[name])
        assert column(more, name) == pytest.approx(expected, abs=1e-12), name


def test_looking_changes_nothing():
    world = from_case(random_case(7))
    alone = play(world, "min-min", 7)
    watcher, seen = watched("min-min", world)
    beside = simulator.run(world.empty, world.workload, watcher, 7)
    assert len(seen) >= 10
    assert alone.outcome.tobytes() == beside.outcome.tobytes()
