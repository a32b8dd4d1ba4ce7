"""The second stage of `memory`: who is right gains weight, and nothing is learned too early."""

import numpy as np
import pytest

from adlro.estimates import blend_kernel, job_table
from adlro.estimates.blend import SavedBlend, restored, saved_blend
from adlro.estimates.blend_kernel import FORGETFUL, LAST, MEMORY
from adlro.estimates.job_fields import JobFields, alike_key, of_one
from adlro.estimates.memory import Memory

KEY = np.uint64(77)
NAN = np.nan
SPEEDS = np.zeros(1)


def asked_for(blend, base, key=KEY, asked=NAN, source=None):
    """The blend if the memory says `base`; with a source the job is submitted."""
    for k in (MEMORY, FORGETFUL):
        blend.experts[k] = base
    job = blend_kernel.Job(key, source or 0, asked, SPEEDS)
    return blend_kernel.blended(blend, job, 0, source is not None)


def learn(blend, log_s, key=KEY, source=99):
    blend_kernel.learn_blend(blend, blend_kernel.Job(key, source, NAN, SPEEDS), 0, log_s)


def judged():
    """A stage that may blend, with the first weights."""
    blend = blend_kernel.empty()
    blend.learned[:] = blend_kernel.ENOUGH
    return blend


def weights(blend, row=0):
    found = np.exp(blend.log_weights[row])
    return found / found.sum()


def test_without_alike_jobs_the_memory_alone_counts():
    blend = judged()
    learn(blend, 9.0, np.uint64(5))
    assert asked_for(blend, 3.0) == pytest.approx(3.0)


def test_the_first_blend_is_by_the_first_weights():
    blend = judged()
    learn(blend, 1.0)  # all statistics say 1, the memory's answers 3
    answers = sum(blend_kernel.FIRST_WEIGHTS[:2])
    assert asked_for(blend, 3.0) == pytest.approx(3 * answers + 1 * (1 - answers))


def test_nothing_is_blended_before_enough_ends_have_judged_the_experts():
    blend = blend_kernel.empty()
    learn(blend, 1.0)
    for i in range(int(blend_kernel.ENOUGH)):
        assert asked_for(blend, 3.0, source=i) == 3.0
        learn(blend, 1.0, source=i)
    assert asked_for(blend, 3.0) < 2.5


def test_experts_that_are_right_gain_weight():
    blend = blend_kernel.empty()
    for i in range(200):
        asked_for(blend, 3.0, source=i)
        learn(blend, 1.0 if i % 2 else 1.2, source=i)
    assert weights(blend)[MEMORY] < 0.1 < blend_kernel.FIRST_WEIGHTS[MEMORY]
    assert asked_for(blend, 3.0) == pytest.approx(1.1, abs=0.15)


def test_an_end_judges_what_was_said_at_the_submission():
    # Ten jobs at once: when they end one after the other, the last one has always just been seen.
    blend = blend_kernel.empty()
    learn(blend, 1.0)
    for i in range(10):
        asked_for(blend, 5.0, source=i)  # the truth; all statistics say 1
    for i in range(10):
        learn(blend, 5.0, source=i)
    assert blend.learned[0] == 10
    assert weights(blend)[LAST] < blend_kernel.FIRST_WEIGHTS[LAST]
    assert weights(blend)[MEMORY] > blend_kernel.FIRST_WEIGHTS[MEMORY]


def test_an_end_judges_once_and_by_its_own_submission():
    blend = blend_kernel.empty()
    learn(blend, 1.0)
    asked_for(blend, 5.0, source=1)
    learn(blend, 5.0, source=2)
    assert blend.learned[0] == 0
    for _ in range(3):
        learn(blend, 5.0, source=1)
    assert blend.learned[0] == 1


def test_ends_without_a_submission_teach_run_times_only():
    blend = blend_kernel.empty()
    before = blend.log_weights.copy()
    for _ in range(20):
        learn(blend, 2.0)
    np.testing.assert_array_equal(blend.log_weights, before)
    group = blend.groups[int(KEY)]
    assert (group["jobs"], group["mean"]) == (20, pytest.approx(2.0))


def test_a_question_that_is_no_submission_changes_nothing():
    blend = blend_kernel.empty()
    learn(blend, 2.0)
    before = saved_blend(blend)
    other = np.uint64(int(KEY) + blend_kernel.SLOTS)  # shares the slot
    assert asked_for(blend, 3.0, other) == pytest.approx(3.0)
    asked_for(blend, 3.0, KEY)
    assert saved_blend(blend) == before
    assert not blend.waiting["key"].any()


def test_a_group_whose_slot_is_taken_starts_again():
    blend = judged()
    learn(blend, 2.0)
    other = np.uint64(int(KEY) + blend_kernel.SLOTS)
    learn(blend, 8.0, other)
    assert asked_for(blend, 3.0, KEY) == pytest.approx(3.0)


def test_the_request_bounds_the_blend_unless_the_memory_is_above_it():
    blend = judged()
    learn(blend, 9.0)
    assert asked_for(blend, 3.0, asked=3.5) == 3.5
    assert 4.0 < asked_for(blend, 4.0) < 9.0
    assert asked_for(blend, 5.0, asked=3.5) == 5.0


def test_no_weight_vanishes_for_good():
    blend = blend_kernel.empty()
    for i in range(20_000):
        asked_for(blend, 9.0, source=i)
        learn(blend, 1.0, source=i)
    row = blend.log_weights[0]
    assert row.max() - row.min() == pytest.approx(8.0)
    assert np.isfinite(blend.log_weights).all()


def test_what_was_saved_goes_on_as_before():
    blend = blend_kernel.empty()
    for i in range(30):
        asked_for(blend, 3.0, np.uint64(i % 4 + 1), source=i)
        learn(blend, float(i % 7), np.uint64(i % 4 + 1), i)
    saved = SavedBlend.model_validate_json(saved_blend(blend).model_dump_json())
    again = restored(saved)
    for one in (blend, again):
        learn(one, 4.0, np.uint64(2))
    assert asked_for(again, 3.0, np.uint64(2)) == asked_for(blend, 3.0, np.uint64(2))
    assert saved_blend(again) == saved_blend(blend)


def test_jobs_are_alike_on_one_gpu_model_only():
    blend, speeds = blend_kernel.empty(2), np.array([0.0, 1.0])
    blend.learned[:] = blend_kernel.ENOUGH
    job = blend_kernel.Job(KEY, 5, NAN, speeds)
    blend_kernel.learn_blend(blend, job, 0, 1.0)
    blend.experts[[MEMORY, FORGETFUL]] = 3.0
    assert blend_kernel.blended(blend, job, 1, False) == pytest.approx(3.0)
    assert blend_kernel.blended(blend, job, 0, False) < 2.5
    blend_kernel.learn_blend(blend, job, 1, 2.0)
    assert blend.everyone[0]["mean"] == pytest.approx(2.0)  # 1, and 2 at assumed speed 1


def test_what_was_said_of_a_job_can_be_dropped():
    blend = judged()
    learn(blend, 1.0)
    asked_for(blend, 3.0, source=4)
    blend_kernel.forget_opinion(blend, 4, 0)
    before = blend.log_weights.copy()
    learn(blend, 9.0, source=4)
    np.testing.assert_array_equal(blend.log_weights, before)


def test_keys_are_equal_if_words_request_and_size_are():
    job = JobFields(user="ann", queue="a", name="x", requested_s=60.0, gpus=2.0, submit_s=5.0)
    others = [
        job._replace(submit_s=9000.0), job._replace(user="bob"), job._replace(queue="b"),
        job._replace(name="y"), job._replace(requested_s=61.0), job._replace(gpus=3.0),
        job._replace(account="z"),
    ]  # fmt: skip
    keys = np.array([alike_key(of_one(one)) for one in (job, *others)])
    assert (keys == keys[0]).tolist() == [True, True, *[False] * 6]
    assert (keys > 0).all()


def test_the_memory_with_it_follows_the_mean_where_run_times_scatter():
    # The same job again and again, 10, 100 or 1,000 s by chance: nothing is better than 100 s.
    rng = np.random.default_rng(2)
    run = rng.choice([10.0, 100.0, 1000.0], 600)
    submit = np.arange(600) * 2000.0
    fillings = np.array([of_one(JobFields(user="ann", gpus=1.0))] * 600)
    events = job_table.event_order(submit, submit + run, run)
    jobs = job_table.table(fillings, np.full(600, NAN), events)
    memory = Memory()
    found = memory.follow(jobs).log_s[300:, 0]
    assert np.abs(found - np.log(100.0)).mean() < 0.5  # the last run is 1.54 off on average
    assert memory.state.blend.learned[0] > 500
