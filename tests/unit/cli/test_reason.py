"""What tipped a decision, in words: small worlds where the reason is known."""

import numpy as np
import pytest

from adlro.cli.reason import Names, named, seconds, sentences
from adlro.evaluate.explanation import explain
from tests.explained import FAST_AND_SLOW, TWO, WAITS, by_drain, found
from tests.worlds import build, job, nodes

NAMES = Names(["V100", "T4"], ["train", "serve"])


def option_of(decision, j, p=None):
    wanted = [
        i for i, option in enumerate(decision.options)
        if option.job == j and p in (None, option.pool)
    ]  # fmt: skip
    return wanted[0]


def why(decision, rival=None):
    """The sentences; rival = job and pool that Min-Min is made to choose."""
    if rival is not None:
        decision = decision._replace(planned=option_of(decision, *rival))
    return sentences(explain(decision), NAMES)


def test_it_waits_for_the_faster_gpu():
    # 40 s of waiting and 100 s on the V100, or 310 s on the T4 now: 3.1 times, and 170 s sooner.
    assert why(found(build(FAST_AND_SLOW, WAITS), "drain-argmin", decision=2)) == [
        "Rather than start job 1 (train, 1 GPU) on T4, the next best:",
        "Waits 40 s for V100: job 1 runs 3.1\N{MULTIPLICATION SIGN} faster there (100 s) than on "
        "the free T4 (310 s) and ends 170 s sooner.",
        "For the one planned job it saves 170 s, if no more came.",
    ]


def test_it_waits_to_leave_room_for_a_gang():
    # Job 0 holds one of two GPUs until 4. At 1: job 2 (100 s) now, and job 1 (both, 1 s) starts at
    # 101: 100 + 101 s. Waiting: job 1 at 4-5, job 2 until 105: 4 + 104 s.
    world = build(TWO, [job(0, 4), job(1, 1, gpus=2, type=1), job(1, 100)])
    assert why(found(world, "drain-argmin", at=1.0)) == [
        "Rather than start job 2 (train, 1 GPU) on V100, the next best:",
        "Leaves V100 to job 1 (serve, 2 GPUs): by the plan it starts in 3.0 s on V100 (1.0 s); if "
        "job 2 (100 s) started now, in 100 s on V100 (1.0 s).",
        "In return, job 2 ends 4.0 s later; for the 2 planned jobs together it saves 93 s, if no "
        "more came.",
    ]


# One of two GPUs is busy until 50, and at 1 wait job 1 (900 s), job 2 (30 s) and the gangs 3 (40 s)
# and 4 (45 s). Job 2 now: until 31; then, from 50 on, job 3 until 90, job 4 until 135, job 1 until
# 1035: 30 + 89 + 134 + 1034 = 1287 s. Job 1 now: until 901; job 2 50-80, job 3 901-941, job 4
# 941-986: 900 + 79 + 940 + 985 = 2904 s.
QUEUE = [job(0, 50), job(1, 900), job(1, 30), job(1, 40, gpus=2), job(1, 45, gpus=2)]


def test_it_starts_the_short_job_before_the_long_one():
    assert why(found(build(TWO, QUEUE), "drain-argmin", at=1.0), (1,)) == [
        "Rather than start job 1 (train, 1 GPU) on V100, Min-Min's choice:",
        "Starts job 2 (30 s) before job 1 (900 s): behind that 3 jobs would start later, "
        "job 3 (train, 2 GPUs) in 900 s instead of in 49 s.",
        "In return, job 1 ends 134 s later; for the 4 planned jobs together it saves 1,617 s, if "
        "no more came.",
    ]


def test_a_long_job_before_a_short_one_is_not_said_to_be_shorter():
    decision = found(build(TWO, QUEUE), "drain-argmin", at=1.0)
    long = decision._replace(chosen=option_of(decision, 1), planned=option_of(decision, 2))
    assert sentences(explain(long), NAMES)[1:] == [
        "Starts job 1 on V100 at once (900 s): after job 2 on V100 it would start in 134 s on V100 "
        "(900 s) and end 134 s later.",
        "Job 3 ends 851 s later; for the 4 planned jobs together it costs 1,617 s, if no more "
        "came.",
    ]


def test_it_takes_the_faster_of_two_free_gpus():
    assert why(found(build(FAST_AND_SLOW, [job(0, 100, 310)]), "drain-argmin", decision=1)) == [
        "Rather than start job 0 (train, 1 GPU) on T4, the next best:",
        "Puts job 0 on V100: 3.1\N{MULTIPLICATION SIGN} faster there (100 s) than on T4 (310 s).",
        "For the one planned job it saves 210 s, if no more came.",
    ]


def test_it_takes_the_slower_gpu_to_leave_the_faster_to_another():
    # Job 0 on the V100: 2 s, and job 1 behind it 2-12: 2 + 12 s. On the T4: 3 s, and job 1 now on
    # the V100: 3 + 10 s.
    world = build(FAST_AND_SLOW, [job(0, 2, 3), job(0, 10, 18)])
    assert why(found(world, "drain-argmin", decision=1), (0, 0))[1:] == [
        "Starts job 0 on T4, which helps job 1 (train, 1 GPU) most: by the plan that one starts "
        "now on V100 (10 s) instead of in 2.0 s on V100 (10 s).",
        "In return, job 0 ends 1.0 s later; for the 2 planned jobs together it saves 1.0 s, if no "
        "more came.",
    ]


def test_a_shorter_job_on_another_pool_does_not_go_before_a_longer_one():
    # Job 1 on the T4 (18 s) makes job 2 (T4 only, 5 s) wait for it: 2 + 18 + 23 s. With job 0 on
    # the V100 first, job 2 has the T4 now and job 1 the V100 from 2 on: 2 + 12 + 5 s.
    world = build(FAST_AND_SLOW, [job(0, 2, 3), job(0, 10, 18), job(0, 99, 5, allowed=[1])])
    decision = found(world, "drain-argmin", decision=1)
    decision = decision._replace(chosen=option_of(decision, 0, 0))
    assert why(decision, (1, 1))[1:] == [
        "Starts job 0 on V100, which helps job 2 (train, 1 GPU) most: by the plan that one starts "
        "now on T4 (5.0 s) instead of in 18 s on T4 (5.0 s).",
        "For the 3 planned jobs together it saves 24 s, if no more came.",
    ]


def test_it_starts_at_once_what_would_lose_by_waiting():
    # Job 0 holds the V100 until 40: job 1 there 40-140, or now on the T4 for 120 s.
    world = build(FAST_AND_SLOW, [job(0, 40, 999), job(0, 100, 120)])
    assert why(found(world, "drain-argmin", decision=2))[1:] == [
        "Starts job 1 on T4 at once (120 s): after a wait it would start in 40 s on V100 (100 s) "
        "and end 20 s later.",
        "For the one planned job it saves 20 s, if no more came.",
    ]


def test_a_gang_that_would_span_nodes_waits_for_one_node():
    # Two nodes of two GPUs; jobs 0 and 1 hold one each until 10 and 99. Job 2 (two GPUs) would span
    # and take half as long again and more.
    groups = [nodes("V100", 2, 2, cores=3)]
    jobs = [job(0, 10, cores=2), job(0, 99, cores=2), job(1, 50, gpus=2, communication=1.0)]
    world = build(groups, jobs)
    spans = 50 * (1 + world.empty.pools["span_cost"][0])
    assert spans > 59
    assert why(found(world, "drain-argmin", at=1.0))[1] == (
        f"Waits: started now, job 2 would span nodes of V100 and take {seconds(spans)} instead of "
        "50 s; by the plan it starts in 9.0 s."
    )


def test_what_helps_nobody_is_said_to():
    world = build(FAST_AND_SLOW, WAITS)
    decision = found(world, "drain-argmin", decision=2)
    start = decision._replace(chosen=option_of(decision, 1), planned=option_of(decision, -1))
    assert sentences(explain(start), NAMES) == [
        "Rather than wait, Min-Min's choice:",
        "Starts job 1 on T4: by the plan no job that waits now ends sooner for it.",
        "Job 1 ends 170 s later; for the one planned job it costs 170 s, if no more came.",
    ]


def test_the_networks_prediction_is_told_with_what_moved_it():
    world = build(FAST_AND_SLOW, WAITS)
    assert why(found(world, by_drain(world), decision=2))[3] == (
        "The network predicts that the other would cost 170 s more; for it spoke drain cost "
        "(100 %)."
    )


def test_a_prediction_against_the_plan_counts_on_jobs_to_come():
    world = build(FAST_AND_SLOW, WAITS)
    decision = found(world, by_drain(world), decision=2)
    dearer = [option._replace(cost_s=-option.cost_s) for option in decision.options]
    start = decision._replace(options=tuple(dearer), chosen=1, planned=0)
    assert why(start)[3].startswith(
        "The network predicts that the other would cost 170 s more, with the jobs yet to come; "
        "against it drain cost (100 %)"
    )


def test_without_another_option_there_is_nothing_to_say():
    only = found(build([nodes("V100")], [job(0, 5)]), "drain-argmin", decision=1)
    assert why(only) == ["There was nothing else to do."]


def test_a_slice_is_named_by_its_part_of_a_gpu():
    only = found(build([nodes("V100")], [job(0, 5, share=250)]), "drain-argmin", decision=1)
    assert named(only.options[0], only, NAMES) == "start job 0 (train, 0.25 GPU) on V100"


@pytest.mark.parametrize(
    ("value", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (12345.6, "12,346 s")]
)
def test_times_have_tenths_only_if_they_are_short(value, text):
    assert seconds(np.float64(value)) == text
