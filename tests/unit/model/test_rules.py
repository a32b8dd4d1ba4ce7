"""Eligibility by quotas and ageing, computed by hand. A GPU is worth 1 unless stated otherwise."""

import numpy as np
import pytest

from adlro.errors import PolicyError
from adlro.model.feasibility import fits
from tests.worlds import (
    build,
    fails,
    is_repaired,
    job,
    migrate,
    nodes,
    play,
    preempt,
    quota,
    start,
)


class Told:
    """Gives scripted answers, then starts eligible jobs, the oldest first; records the masks."""

    name, params, memory = "told", np.zeros(0), 0

    def __init__(self, *answers):
        self.answers = list(answers)
        self.masks = []  # one a call: time, {waiting job: eligible pools}

    def decide(self, view, params, memory, out):
        jobs, pools, nodes, gpus = view.jobs, view.pools, view.nodes, view.gpus
        rows = zip(view.queue["job"].tolist(), view.eligible, strict=True)
        mask = {j: np.flatnonzero(may).tolist() for j, may in rows}
        self.masks.append((view.now, mask))
        answer = self.answers.pop(0) if self.answers else []
        if not answer:
            room = [(j, p) for j in mask for p in mask[j] if fits(jobs[j], pools[p], nodes, gpus)]
            answer = [start(j, p) for j, p in room[:1]]
        out[: len(answer)] = answer
        return len(answer)


def masks(world, *answers):
    """Masks that the policy saw, call by call."""
    policy = Told(*answers)
    play(world, policy)
    return policy.masks


def starts(world, policy="pair-sjf"):
    return play(world, policy).outcome["start"].tolist()


def test_without_rules_a_job_is_eligible_where_it_is_allowed():
    world = build([nodes(), nodes("T4")], [job(0, 5, 5, allowed=[1])])
    assert masks(world)[0] == (0, {0: [1]})


def test_a_cap_closes_every_pool_of_its_model_to_its_holder_alone():
    # Two pools of V100s, model 0, and one T4. Account 0 may hold two V100s: jobs 0 and 1 do, one on
    # each pool. Job 2 of the same account is left the T4, job 3 of another everything.
    three = [nodes("V100", 2), nodes("V100", 2, cores=99), nodes("T4")]
    jobs = [job(0, 9, 9), job(0, 9, 9), job(1, 9, 9), job(1, 9, 9, account=1)]
    world = build(three, jobs, quotas=[quota(account=0, caps=[(0, 2)])])
    assert masks(world, [start(0, 0), start(1, 1)])[2] == (1, {2: [2], 3: [0, 1, 2]})


def test_a_slice_counts_as_its_share_against_a_cap():
    # A cap of one GPU: two halves fill it, though five slices would fit the two GPUs.
    jobs = [job(0, length, share=500) for length in (4, 6, 2)]
    world = build([nodes("V100", 2)], jobs, quotas=[quota(account=0, caps=[(0, 1)])])
    assert starts(world, "fcfs") == [0, 0, 4]


def test_a_cap_of_nothing_closes_a_model():
    world = build([nodes(), nodes("T4")], [job(0, 1, 9)], quotas=[quota(account=0, caps=[(0, 0)])])
    assert masks(world)[0] == (0, {0: [1]})


def test_a_holder_that_may_not_borrow_stays_within_its_share():
    # Half of four GPUs: jobs 0 and 1 run, job 2 waits for the first to end.
    jobs = [job(0, 7), job(0, 5), job(0, 5)]
    half = quota(account=0, worth=2, borrow=False)
    assert starts(build([nodes("V100", 4)], jobs, quotas=[half]), "fcfs") == [0, 0, 5]


def test_use_counts_by_what_a_pool_is_worth():
    # The V100 is worth 2, the T4 1, the share 3.5. Job 0 holds a V100 (2): job 1 may have a T4
    # (2 + 1), not a second V100 (2 + 2).
    jobs = [job(0, 9, 9), job(1, 1, 5)]
    own = quota(account=0, worth=3.5, borrow=False)
    world = build([nodes("V100", 2), nodes("T4", 2)], jobs, quotas=[own])
    world.empty.pools["worth"][:] = [2, 1]
    assert masks(world, [start(0, 0)])[2] == (1, {1: [1]})


def test_a_share_that_is_used_up_to_the_last_digit_is_not_exceeded():
    # 0.1 + 0.1 + 0.1 is more than 0.3 in floating point.
    jobs = [job(0, 5, share=100) for _ in range(3)]
    own = quota(user=0, worth=0.3, borrow=False)
    assert starts(build([nodes("V100", 1)], jobs, quotas=[own]), "fcfs") == [0, 0, 0]


def test_a_holder_with_nothing_running_may_start_one_job_of_any_size():
    # Entitled to one GPU. Job 0 takes three; job 1, small as it is, has to wait for its end.
    jobs = [job(0, 5, gpus=3), job(0, 5)]
    own = quota(account=0, worth=1, borrow=False)
    assert starts(build([nodes("V100", 4)], jobs, quotas=[own]), "fcfs") == [0, 5]


ONE_EACH = [quota(account=0, worth=1), quota(account=1, worth=1)]


def test_a_holder_borrows_what_no_other_holder_waits_for():
    # Account 0 is entitled to one of two GPUs and holds both, for nobody else is there.
    assert starts(build([nodes("V100", 2)], [job(0, 5), job(0, 5)], quotas=ONE_EACH)) == [0, 0]


def test_no_holder_borrows_what_another_waits_for_within_its_share():
    # At 0 jobs 0 and 1 of account 0 run on both GPUs, one of them borrowed. At 1 job 2 of account 0
    # and the longer job 3 of account 1 wait; job 3 has nothing yet: it gets the GPU that is free at
    # 4, which the shortest job first would have given to job 2.
    jobs = [job(0, 4), job(0, 9), job(1, 1), job(1, 6, account=1)]
    world = build([nodes("V100", 2)], jobs, quotas=ONE_EACH)
    assert masks(world)[3] == (1, {2: [], 3: [0]})
    assert starts(world) == [0, 0, 9, 4]


def test_a_job_waits_for_its_own_only_where_it_is_allowed():
    # Job 2 of account 1 may use the T4 alone, where job 1 runs: the V100 stays open to borrowers.
    jobs = [job(0, 5, 5), job(0, 9, 9), job(1, 5, 5, account=1, allowed=[1]), job(2, 5, 5)]
    world = build([nodes("V100", 2), nodes("T4")], jobs, quotas=ONE_EACH)
    assert masks(world, [start(0, 0), start(1, 1)])[3] == (2, {2: [1], 3: [0]})


def test_a_job_without_a_share_blocks_no_borrowing_and_is_not_blocked():
    # Job 2 is of account 2, which has a cap and no share; job 3 of account 3, which has nothing.
    quotas = [*ONE_EACH, quota(account=2, caps=[(0, 2)])]
    jobs = [job(0, 5), job(0, 5), job(1, 5), job(1, 5, account=2), job(1, 5, account=3)]
    seen = masks(build([nodes("V100", 2)], jobs, quotas=quotas), [start(0), start(1)])
    assert seen[2] == (1, {2: [0], 3: [0], 4: [0]})


def test_a_job_that_is_capped_or_finds_too_few_gpus_up_blocks_no_borrowing():
    # Account 1 may hold no V100 (pool 0); of the two T4 nodes one is down, so its job 2 (two GPUs)
    # cannot use them either. At 1 account 0, with one GPU in use, may borrow on both pools.
    quotas = [quota(account=0, worth=1), quota(account=1, worth=2, caps=[(0, 1)])]
    jobs = [job(0, 5, 5), job(1, 5, 5), job(1, 5, 5, account=1, gpus=2)]
    events = [fails(0, 1), is_repaired(3, 1)]
    world = build([nodes("V100", 2), nodes("T4", 1, 2)], jobs, quotas=quotas, events=events)
    seen = masks(world, [start(0)])
    assert (1, {1: [0, 1], 2: [1]}) in seen


def test_a_job_must_satisfy_the_quota_of_its_account_and_that_of_its_user():
    # User 0 may use one GPU and account 0 two. Jobs 0 (user 0) and 1 (user 1) run: job 2 exceeds
    # both, job 3 (user 2) the account's, job 4 (user 0, another account) the user's.
    quotas = [quota(account=0, worth=2, borrow=False), quota(user=0, worth=1, borrow=False)]
    jobs = [job(0, 4, user=0), job(0, 6, user=1), *(job(1, 5, user=u) for u in (0, 2, 0, 2))]
    jobs[4]["account"] = jobs[5]["account"] = 1
    seen = masks(build([nodes("V100", 4)], jobs, quotas=quotas), [start(0), start(1)])
    assert seen[2] == (1, {2: [], 3: [], 4: [], 5: [0]})
    assert seen[4] == (4, {2: [0], 3: [0], 4: [0]})


def test_a_user_of_the_same_account_blocks_a_borrowing_user():
    # Each user is entitled to one GPU. User 0 holds one and would borrow; user 1 has none yet.
    quotas = [quota(account=0, worth=2), quota(user=0, worth=1), quota(user=1, worth=1)]
    jobs = [job(0, 5), job(1, 5), job(1, 5, user=1)]
    seen = masks(build([nodes("V100", 2)], jobs, quotas=quotas), [start(0)])
    assert seen[2] == (1, {1: [], 2: [0]})


def test_two_starts_of_one_answer_may_not_exceed_a_cap_together():
    quotas = [quota(account=0, caps=[(0, 1)])]
    world = build([nodes("V100", 2)], [job(0, 5), job(0, 5)], quotas=quotas)
    with pytest.raises(PolicyError, match=r"job 1 on pool 0, which starts before it .* quota"):
        play(world, Told([start(0), start(1)]))


def test_two_starts_of_one_answer_may_not_exceed_a_share_that_does_not_borrow():
    quotas = [quota(account=0, worth=1, borrow=False)]
    world = build([nodes("V100", 2)], [job(0, 5), job(0, 5)], quotas=quotas)
    with pytest.raises(PolicyError, match=r"job 1 on pool 0, which starts before it .* quota"):
        play(world, Told([start(0), start(1)]))


def test_an_answer_is_applied_under_the_mask_that_the_policy_saw():
    # Account 0 borrows the second GPU (job 2) from account 1, whose job 1 is stopped for it by the
    # same answer. Once job 1 waits it is within its share, but the answer was given before that.
    jobs = [job(0, 9), job(0, 9, account=1), job(1, 2)]
    world = build([nodes("V100", 2)], jobs, quotas=ONE_EACH)
    policy = Told([start(0), start(1)], [], [preempt(1), start(2)])
    assert play(world, policy).outcome["start"].tolist() == [0, 0, 1]


def test_a_job_preempted_by_an_answer_gets_its_mask_row_at_that_moment():
    # Account 0 may hold one V100, which job 0 has. At 1 job 1, on the T4, moves to a V100: refused.
    jobs = [job(0, 9, 9), job(0, 9, 9)]
    world = build([nodes("V100", 2), nodes("T4")], jobs, quotas=[quota(account=0, caps=[(0, 1)])])
    with pytest.raises(PolicyError, match="job 1 on pool 0, where it is not eligible"):
        play(world, Told([start(0, 0), start(1, 1)], [migrate(1, 0)]))


# Ageing.


def test_an_aged_gang_gets_its_pool_although_short_jobs_keep_coming():
    # Every other second until 38 a job of 3 s takes the GPU that is free by then: the gang of two
    # that comes at 1 would wait for the end of the last, at 41. At 7, when the run of 4-7 ends, it
    # has waited for more than 5 s: that of 6-9 is the last to begin before it.
    short = [job(2 * i, 3) for i in range(20)]
    jobs = sorted([*short, job(1, 4, gpus=2)], key=lambda one: one["arrival"])
    pool = [nodes("V100", 2)]
    assert starts(build(pool, jobs))[1] == 41
    assert starts(build(pool, jobs, ageing=5))[1] == 9


def test_an_aged_job_is_eligible_on_its_claim_alone_and_closes_it_to_later_jobs():
    # Both pools are busy until 9. At 6 jobs 2 and 3 have waited for more than 3 s, job 4 has not.
    # Job 2 claims the T4 (est 4 < 5). There is one claim at a time: job 3 only loses the T4.
    jobs = [job(0, 9, 9), job(0, 9, 9), job(1, 5, 4), job(2, 5, 4), job(6, 1, 1)]
    world = build([nodes(), nodes("T4")], jobs, ageing=3)
    seen = dict(masks(world, [start(0, 0), start(1, 1)]))
    assert seen[2] == {2: [0, 1], 3: [0, 1]}
    assert seen[6] == {2: [1], 3: [0], 4: [0]}


def test_of_aged_jobs_on_equal_pools_the_first_claims_the_lower_one():
    jobs = [job(0, 9), job(0, 9), job(1, 5), job(6, 1)]
    world = build([nodes(), nodes(cores=99)], jobs, ageing=3)
    assert dict(masks(world, [start(0, 0), start(1, 1)]))[6] == {2: [0], 3: [1]}


def test_waiting_just_as_long_as_the_limit_is_not_aged():
    jobs = [job(0, 9), job(1, 5), job(4, 1)]
    assert dict(masks(build([nodes()], jobs, ageing=3)))[4] == {1: [0], 2: [0]}
    assert dict(masks(build([nodes()], jobs, ageing=2.9)))[4] == {1: [0], 2: []}


def test_an_aged_job_claims_no_pool_with_too_few_gpus_up():
    # The faster T4s have a node down until 20: the gang of two claims the V100s.
    jobs = [job(0, 9, 9, gpus=2, allowed=[0]), job(1, 5, 4, gpus=2), job(6, 1, 1)]
    events = [fails(0, 1), is_repaired(20, 1)]
    world = build([nodes("V100", 2), nodes("T4", 1, 2)], jobs, ageing=3, events=events)
    assert (6, {1: [0], 2: [1]}) in masks(world, [start(0, 0)])


def test_an_aged_job_without_a_pool_to_claim_keeps_its_mask():
    # One pool, its second node down: the gang of two cannot claim it, and holds nobody up.
    jobs = [job(0, 9), job(1, 5, gpus=2), job(6, 1)]
    events = [fails(0, 1), is_repaired(20, 1)]
    world = build([nodes("V100", 1, 2)], jobs, ageing=3, events=events)
    assert dict(masks(world, [start(0)]))[6] == {1: [0], 2: [0]}


def test_a_claim_does_not_bind_an_older_job_that_waits_again():
    # Job 0 is lost at 8 and waits anew, not aged; job 1, aged, has claimed the only pool. Were that
    # closed to job 0, the first of the queue, fcfs would stand still for ever.
    jobs = [job(0, 9), job(1, 5)]
    events = [fails(8, 0), is_repaired(8.5, 0)]
    world = build([nodes()], jobs, ageing=3, events=events)
    seen = dict(masks(world))
    assert seen[8] == {0: [0], 1: [0]}
    assert starts(world, "fcfs")[1] == 8.5 + 9


def test_a_claim_is_made_where_quotas_leave_a_pool_open():
    # Account 0 may hold no T4, the faster one.
    jobs = [job(0, 9, 9, account=1, allowed=[0]), job(1, 5, 4), job(6, 1, 1, account=1)]
    quotas = [quota(account=0, caps=[(1, 0)])]
    world = build([nodes(), nodes("T4")], jobs, ageing=3, quotas=quotas)
    assert (6, {1: [0], 2: [1]}) in masks(world, [start(0, 0)])


FOUR = [nodes("V100", 4)]


def test_an_aged_job_that_is_too_large_for_its_share_holds_back_its_own_holder():
    # Account 0 is entitled to two of four GPUs, and job 0 holds one of them until 20. Job 1, of
    # three, is within only when nothing of its account runs; short jobs keep coming and would run
    # beside job 0. After 5 s of waiting it closes the pool to those of its account, not to job 9.
    short = [job(2 * i, 3) for i in range(1, 8)]
    jobs = [job(0, 20), job(1, 5, gpus=3), *short, job(16, 1, account=1)]
    own = quota(account=0, worth=2, borrow=False)
    seen = dict(masks(build(FOUR, jobs, quotas=[own], ageing=5)))
    assert seen[6][1] == []
    assert seen[8] == {1: [], 4: [], 5: []}
    assert starts(build(FOUR, jobs, quotas=[own], ageing=5))[1] == 20
    assert starts(build(FOUR, jobs, quotas=[own], ageing=5))[9] == 16


def test_an_aged_job_under_a_full_cap_holds_back_its_own_holder():
    # A cap of two: jobs 0 and 1 use it in turns that overlap, and the gang of two never fits.
    # At 8 it has waited for more than 5 s: job 4 does not start, and the run of 6-10 is the last.
    jobs = [job(0, 4), job(1, 2, gpus=2), *(job(2 * i, 4) for i in range(1, 8))]
    capped = quota(account=0, caps=[(0, 2)])
    assert starts(build(FOUR, jobs, quotas=[capped]))[1] == 18
    assert starts(build(FOUR, jobs, quotas=[capped], ageing=5))[1] == 10


def test_an_aged_job_that_is_within_its_share_on_a_pool_holds_back_no_other():
    # Account 0 is entitled to 2 and uses a T4 (1). Job 2 would be beyond on the V100 (1 + 2), and
    # within on the T4s (1 + 1), which are full: at 6, aged, it claims them. Job 3 may have the L4.
    jobs = [job(0, 9, 9, 9), job(0, 9, 9, 9, account=1), job(1, 4, 5, 9, allowed=[0, 1])]
    own = quota(account=0, worth=2, borrow=False)
    groups = [nodes("V100"), nodes("T4", 2), nodes("L4")]
    world = build(groups, [*jobs, job(6, 4, 5, 9)], ageing=3, quotas=[own])
    world.empty.pools["worth"][:] = [2, 1, 0.5]
    assert (6, {2: [1], 3: [2]}) in masks(world, [start(0, 1), start(1, 1)])


def test_a_job_may_always_migrate_within_its_pool_but_not_to_a_claimed_one():
    # Job 0 is on one V100 and job 2 on a T4 when, at 5, the gang of two, job 1, is aged and has
    # claimed the V100s. Job 0 may move to the other V100, job 2 may not come there.
    jobs = [job(0, 9, 9), job(0.5, 4, 9, gpus=2, allowed=[0]), job(1, 9, 9), job(5, 1, 1)]
    world = build([nodes("V100", 2), nodes("T4", 2)], jobs, ageing=3)
    until_5 = [[start(0, 0, gpu=0)], [], [], [start(2, 1)], []]
    moved = play(world, Told(*until_5, [migrate(0, 0, gpu=1)]))
    assert moved.outcome["restarts"].tolist() == [1, 0, 0, 0]
    with pytest.raises(PolicyError, match="job 2 on pool 0, where it is not eligible"):
        play(world, Told(*until_5, [migrate(2, 0)]))
