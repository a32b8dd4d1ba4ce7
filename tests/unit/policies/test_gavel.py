"""The four Gavel policies: what their linear programs say, and rounds that keep to it."""

from types import SimpleNamespace

import numpy as np
import pytest

from adlro.errors import PolicyError
from adlro.planning import allocation
from adlro.planning.active_jobs import HEAD, SHARED
from tests.worlds import build, job, made_ready, nodes, play, play_moments, state_of

ONE = [nodes()]
TWO = [nodes("V100"), nodes("T4")]
ALL = ("gavel-max-sum", "gavel-max-min", "gavel-ftf", "gavel-makespan")
FOREVER = 1e5

# At 400 job 0 has run half of its 800 s on the V100, and job 1 comes. With a the share of job 0 on
# the V100 their speeds, relative to the V100, are 0.5 + 0.5 a and 1 - 0.75 a (all GPUs in use).
# - The sum 1.5 - 0.25 a is largest at a = 0.
# - Max-min: the V100 and the T4 shared out evenly give 0.75 and 0.625, and (0.5 + 0.5 a) / 0.75 =
#   (1 - 0.75 a) / 0.625 at a = 0.5.
# - Makespan: 400 / (0.5 + 0.5 a) against 40 / (1 - 0.75 a): a = 1 is best for the longer one.
# - FTF: job 0 alone would have half of the time on each GPU: its first half took 400 / 0.75 in
#   isolation, the second takes 400 / 0.75: (400 + 400 / (0.5 + 0.5 a)) / 1066.7. Job 1: 0.625 /
#   (1 - 0.75 a). Both are 0.906 at a = 0.413.
BEST = dict(zip(ALL, (0.0, 0.5, 0.413, 1.0), strict=True))


def two_jobs(*order):
    """The world of the comment above; its pools in this order."""
    jobs = [(0, (800.0, 1600.0)), (400, (40.0, 160.0))]
    return build(
        [TWO[p] for p in order],
        [job(at, *(seconds[p] for p in order), checkpoint=0) for at, seconds in jobs],
    )


def solved(name, world, moments):
    """Time shares [J, P] that stand in the policy's memory after so many moments."""
    policy = made_ready(name, world)
    state, memory = state_of(world, policy)
    play_moments(policy, state, memory, moments)
    pools = len(world.empty.pools)
    rows = memory[HEAD:].reshape(len(world.workload.jobs), -1)
    return rows[:, pools + SHARED : 2 * pools + SHARED]


@pytest.mark.parametrize("name", ALL)
def test_each_objective_shares_the_gpus_in_its_own_way(name):
    a = BEST[name]
    found = solved(name, two_jobs(0, 1), 2)
    np.testing.assert_allclose(found, [[a, 1 - a], [1 - a, a]], atol=0.01)


@pytest.mark.parametrize("name", ALL)
def test_the_shares_follow_the_gpus_whatever_their_names_and_order(name):
    found, swapped = solved(name, two_jobs(0, 1), 2), solved(name, two_jobs(1, 0), 2)
    np.testing.assert_allclose(swapped, found[:, ::-1], atol=1e-6)


def test_the_sum_is_the_largest_there_is_not_that_of_a_greedy_walk():
    # Both are at their best on the V100, job 0 is older. Job 0 there: 1 + 0.1; job 1: 0.9 + 1.
    world = build(TWO, [job(0, 90, 100), job(0, 10, 100)])
    assert play(world, "gavel-max-sum").outcome["pool"].tolist() == [1, 0]


def served_until(result, job, gpu, end):
    own = result.spans[(result.spans["job"] == job) & (result.spans["gpu"] == gpu)]
    return float((np.minimum(own["end"], end) - np.minimum(own["start"], end)).sum())


@pytest.mark.parametrize(
    ("seconds", "parts"), [((1, 3), (0.25, 0.75)), ((1, 1, 2), (0.25, 0.25, 0.5))]
)
def test_shares_are_kept_to_within_one_round(seconds, parts):
    # Makespan on one GPU: each gets time by its work.
    jobs = [job(0, FOREVER * length, checkpoint=0) for length in seconds]
    result = play(build(ONE, jobs), "gavel-makespan")
    had = [served_until(result, j, 0, 20 * 360) for j in range(len(jobs))]
    np.testing.assert_allclose(had, [part * 20 * 360 for part in parts], atol=360)


def test_two_jobs_swap_gpus_from_round_to_round():
    # Max-min gives each half of its time on each GPU, as in the comment above.
    long = [job(0, FOREVER, 2 * FOREVER, checkpoint=0), job(0, FOREVER, 4 * FOREVER, checkpoint=0)]
    result = play(build(TWO, long), "gavel-max-min")
    had = [[served_until(result, j, gpu, 20 * 360) for gpu in range(2)] for j in range(2)]
    np.testing.assert_allclose(had, np.full((2, 2), 10 * 360), atol=360)
    assert (result.outcome["restarts"] > 0).all()


@pytest.mark.parametrize("name", ["gavel-max-min", "gavel-ftf", "gavel-makespan"])
def test_they_preempt_where_first_come_first_served_would_not(name):
    world = build(ONE, [job(0, 9000, checkpoint=1), job(500, 9000, checkpoint=1)])
    assert play(world, name).outcome["restarts"].sum() > 0
    assert play(world, "fcfs").outcome["restarts"].sum() == 0


def test_of_equals_who_has_been_served_least_goes_first():
    # Job 1 comes when job 0 has had 400 s; a round is due. When job 1 is done job 0 goes on.
    world = build(ONE, [job(0, 900, checkpoint=0), job(400, 100, checkpoint=0)])
    outcome = play(world, "gavel-max-sum").outcome
    assert outcome["start"].tolist() == [0, 400]
    assert outcome["finish"].tolist() == [1000, 500]


def test_between_rounds_nobody_is_stopped_but_who_fits_starts():
    # The round at 0 is over; the next is due at 360. Job 1 fits the T4 at once; job 2 must wait.
    jobs = [job(0, 900, 9000, checkpoint=0), job(10, 900, 1800, checkpoint=0), job(20, 50, 5000)]
    outcome = play(build(TWO, jobs), "gavel-max-sum").outcome
    assert outcome["start"].tolist() == [0, 10, 360]
    assert outcome["pool"][2] == 0


@pytest.mark.parametrize("name", ALL)
def test_it_sets_no_timer_when_no_round_could_change_anything(name):
    # 200 days at two jobs, each on its own best GPU.
    days = 200 * 24 * 3600
    world = build(TWO, [job(0, days, 2 * days, allowed=[0]), job(10, days, days, allowed=[1])])
    assert play(world, name).totals["decisions"] < 12


@pytest.mark.parametrize("name", ALL)
def test_what_cannot_checkpoint_keeps_its_gpu(name):
    world = build(ONE, [job(0, 5000), job(10, 50, checkpoint=0)])
    assert play(world, name).outcome["start"].tolist() == [0, 5000]


@pytest.mark.parametrize("name", ALL)
def test_slices_count_as_their_share(name):
    # Max-sum gives 1, 0.4 and 1 of the time: jobs 0 and 2 go first, and leave too little for job 1.
    jobs = [job(0, 100, share=500), job(0, 100, share=500), job(0, 100, share=300)]
    starts = [0, 100, 0] if name == "gavel-max-sum" else [0, 0, 100]
    assert play(build(ONE, jobs), name).outcome["start"].tolist() == starts


@pytest.mark.parametrize("name", ALL)
def test_a_gang_that_the_rest_leaves_no_room_for_does_not_hold_up_the_others(name):
    # Job 0 cannot be stopped: the gang cannot start before 500. Job 2 can, and does.
    jobs = [job(0, 500), job(10, 50, checkpoint=0, gpus=2), job(10, 50, checkpoint=0)]
    outcome = play(build([nodes(gpus=2)], jobs), name).outcome
    assert outcome["start"].tolist() == [0, 500, 10]


@pytest.mark.parametrize("name", ALL)
def test_a_program_that_is_not_solved_stops_the_run_in_one_line(name, monkeypatch):
    failed = SimpleNamespace(status=1, message="Time limit\n reached.", x=None)
    monkeypatch.setattr(allocation, "milp", lambda *_, **__: failed)
    said = f"^policy {name} at 7 s: its linear program was not solved: Time limit reached.$"
    with pytest.raises(PolicyError, match=said):
        play(build(ONE, [job(7, 5)]), name)


@pytest.mark.parametrize("name", ALL)
def test_their_rounds_last_six_minutes(name):
    assert made_ready(name, build(ONE, [job(0, 1)])).params.tolist() == [360]


def test_who_is_nearly_done_is_not_left_out_by_finish_time_fairness():
    # In the round at 360 job 0 has a millisecond left of 360 s and the others a million seconds:
    # speeds in proportion to the work left would give it a share that is 0 but for rounding.
    jobs = [job(0, 360.001), job(1, FOREVER), job(2, FOREVER)]
    world = build(ONE, [{**one, "checkpoint": 1} for one in jobs])
    assert play(world, "gavel-ftf").outcome["finish"][0] == pytest.approx(360.001)
