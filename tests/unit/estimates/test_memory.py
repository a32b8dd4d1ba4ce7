"""The estimator `memory`: nothing leaks, and small examples by hand."""

import numpy as np
import pytest

from adlro.estimates import job_fields, job_table, memory
from adlro.estimates.estimator import Settings, ends_only
from adlro.estimates.job_fields import JobFields, of_one
from adlro.estimates.job_table import with_events
from adlro.estimates.memory import Memory

HOUR = 3600.0


def followed(fields, submit, end, run, learned=None):
    """Predictions of jobs with these fields, and their table."""
    submit, end, run = (np.array(values, np.float64) for values in (submit, end, run))
    fillings = np.array([of_one(job) for job in fields])
    asked = np.array([job.requested_s for job in fields])
    jobs = job_table.table(fillings, asked, job_table.event_order(submit, end, run))
    return (learned or Memory()).follow(jobs), jobs


def seconds(found):
    return np.exp(found.log_s[:, 0])


def a_past(count, **fields):
    """So many jobs with the same fields, one after the other, of 1, 2, 3 … minutes."""
    jobs = [JobFields(**fields)] * count
    submit = np.arange(count) * HOUR
    run = 60.0 * np.arange(1, count + 1)
    return jobs, submit, submit + run, run


def random_past(rng, count):
    fields = [
        JobFields(
            user=str(rng.integers(5)), queue=str(rng.integers(2)), gpus=float(rng.integers(1, 5)),
            requested_s=float(rng.integers(1, 9)) * HOUR if rng.random() < 0.8 else np.nan,
        )
        for _ in range(count)
    ]  # fmt: skip
    submit = np.sort(rng.integers(0, 50 * count, count)).astype(np.float64)
    run = np.exp(rng.normal(6, 2, count))
    return fields, submit, submit + rng.integers(0, 300, count) + run, run


@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_ends_after_the_submission_matters(seed):
    rng = np.random.default_rng(seed)
    fields, submit, end, run = random_past(rng, 300)
    before, _ = followed(fields, submit, end, run)
    now = submit[rng.integers(50, 300)]
    later = end > now
    changed = np.where(later, run * 1000, run)
    put_off = np.where(later, end + 1e6 * rng.random(300), end)
    after, _ = followed(fields, submit, put_off, changed)
    known = submit <= now
    assert later[known].sum() > 1
    np.testing.assert_array_equal(after.log_s[known], before.log_s[known])
    np.testing.assert_array_equal(after.confidence[known], before.confidence[known])
    np.testing.assert_array_equal(after.log_quantiles[known], before.log_quantiles[known])
    assert (after.log_s[~known] != before.log_s[~known]).any()


def test_what_ends_at_the_moment_of_a_submission_is_known():
    twins = [JobFields(user="ann")] * 2
    found, _ = followed(twins, [0, 100], [100, 200], [70, 70])
    np.testing.assert_allclose(seconds(found), [np.nan, 70])
    found, _ = followed(twins, [0, 100], [100.001, 200], [70, 70])
    assert np.isnan(seconds(found)).all()


def test_an_empty_memory_says_the_request():
    found, _ = followed([JobFields(requested_s=900.0)], [0], [10], [10])
    np.testing.assert_allclose(seconds(found), [900])
    assert found.confidence[0] == pytest.approx(0.23, abs=0.02)  # a cold start: a low prior


def test_what_is_like_nothing_known_is_the_request_and_without_one_the_median():
    jobs, submit, end, run = a_past(3, user="ann", queue="a", name="x", gpus=1.0, requested_s=HOUR)
    stranger = JobFields(user="bob", queue="b", name="y", gpus=64.0, requested_s=9e6)
    silent = JobFields(user="bob", queue="b", name="y", gpus=64.0)
    found, _ = followed(
        [*jobs, stranger, silent], [*submit, 1e5, 1e5], [*end, 2e5, 2e5], [*run, 1, 1]
    )
    np.testing.assert_allclose(seconds(found)[3], 9e6)
    # 60, 120 and 180 s have ended: the median is 120, to a bin.
    np.testing.assert_allclose(np.log(seconds(found)[4]), np.log(120), atol=0.04)


def test_the_users_own_jobs_count_most_and_the_latest_of_them():
    jobs, submit, end, run = a_past(12, user="ann")
    others = [JobFields(user="bob")] * 12
    fields = [*jobs, *others, JobFields(user="ann")]
    found, _ = followed(
        fields, [*submit, *submit, 1e6], [*end, *(submit + 9000), 2e6], [*run, *[9000] * 12, 1]
    )
    # Of ann's 1 to 12 minutes the later ones weigh more: above their plain median of 6.5.
    assert 6.5 * 60 < seconds(found)[-1] < 12 * 60


def test_an_estimate_follows_the_request():
    # Jobs that use a tenth of what they request: the next one, who requests twice that, as well.
    jobs = [JobFields(user="ann", requested_s=1000.0)] * 5
    fields = [*jobs, JobFields(user="ann", requested_s=2000.0)]
    submit = np.arange(6) * HOUR
    found, _ = followed(fields, submit, submit + 100, [100.0] * 6)
    np.testing.assert_allclose(seconds(found)[1:5], 100)
    np.testing.assert_allclose(seconds(found)[5], 200)


def test_no_estimate_is_above_the_request_where_jobs_keep_to_it():
    jobs = [JobFields(user="ann")] * 30  # 900 s, and nothing said of a request
    kept = [JobFields(user="bob", requested_s=1000.0)] * 20
    asks = JobFields(user="ann", requested_s=100.0)
    submit = np.arange(51) * HOUR
    for over, bound in ((0, 100), (1, 900)):  # 1 of 20 is more than one in a hundred
        run = np.array([900.0] * 30 + [1100.0] * over + [950.0] * (20 - over) + [1.0])
        found, _ = followed([*jobs, *kept, asks], submit, submit + run, run)
        np.testing.assert_allclose(seconds(found)[-1], bound, rtol=1e-9)


def test_a_few_jobs_do_not_make_a_request_a_bound():
    jobs = [JobFields(user="ann")] * 30
    kept = [JobFields(user="bob", requested_s=1000.0)] * 19
    asks = JobFields(user="ann", requested_s=100.0)
    submit = np.arange(50) * HOUR
    run = np.array([900.0] * 30 + [950.0] * 19 + [1.0])
    found, _ = followed([*jobs, *kept, asks], submit, submit + run, run)
    np.testing.assert_allclose(seconds(found)[-1], 900)


def test_the_way_is_the_same_in_one_go_and_in_stretches(monkeypatch):
    past = random_past(np.random.default_rng(9), 80)
    whole, jobs = followed(*past)
    monkeypatch.setattr(memory, "_STRETCH", 7)
    reported = []
    pieces = Memory().follow(jobs, reported.append)
    np.testing.assert_array_equal(pieces.log_s, whole.log_s)
    assert reported[:2] == [7, 14]
    assert reported[-1] == len(jobs.order)


def test_a_copy_goes_its_own_way():
    jobs, submit, end, run = a_past(3, user="ann", requested_s=HOUR)
    first = Memory()
    followed(jobs, submit, end, run, first)
    other = first.copy()
    assert other.state.facts[0]["asked"] == 3
    one = followed(jobs, submit + 1e6, end + 1e6, run * 9, other)[0]
    two = followed(jobs, submit + 1e6, end + 1e6, run * 9, first.copy())[0]
    np.testing.assert_array_equal(one.log_s, two.log_s)
    assert first.state.facts[0]["asked"] == 3
    assert first.state.memory.head[0]["learned"] == 3


def test_an_explanation_says_the_estimate_its_sources_and_what_matched():
    fields = [JobFields(user="ann", queue="a")] * 3 + [JobFields(user="bob", queue="b")] * 3
    fields += [JobFields(user="ann", queue="b")]
    submit = np.arange(7) * HOUR
    run = np.array([50.0, 50, 50, 700, 700, 700, 1])
    found, jobs = followed(fields, submit, submit + run, run)
    # The last one's end has been learned by now, so its own explanation would name it: ask before.
    before = Memory()
    before.follow(ends_only(with_events(jobs, np.arange(len(jobs.order)) < len(jobs.order) - 1)))
    why = before.explain(jobs, 6)
    np.testing.assert_allclose(why.seconds, seconds(found)[6])
    assert 0 < why.confidence < 1
    assert {one.source for one in why.sources} <= {0, 1, 2, 3, 4, 5}
    assert len(why.sources) == 5
    shares = [one.share for one in why.sources]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1 + 1e-9
    # The user's own jobs are the likest: the same user, another queue.
    assert why.sources[0].source in (0, 1, 2)
    np.testing.assert_allclose(why.sources[0].seconds, 50)
    assert why.matched == "same user, request; other queue"
    # 50 s is the estimate; bob's three jobs took 14 times as long and have the rest of the shares.
    own = sum(one.share for one in why.sources if one.seconds < 60)
    np.testing.assert_allclose(why.spread, (1 - own) * np.log(14), rtol=1e-6)


def test_an_explanation_by_an_empty_memory_has_no_sources():
    nothing = job_table.event_order(np.zeros(1), np.full(1, np.nan), np.full(1, np.nan))
    jobs = job_table.table(of_one(JobFields(requested_s=60.0))[None], np.array([60.0]), nothing)
    why = Memory().explain(jobs, 0)
    assert why.seconds == pytest.approx(60.0)
    assert np.isnan(why.spread)
    assert (why.sources, why.matched) == ((), "")


def learned_speeds(both):
    """Jobs of 100 s on model A, and, if `both`, some of the same that took 300 s on B."""
    count = 60
    fields = [JobFields(user="ann", name=f"n{i % 5}") for i in range(count)]
    model = np.arange(count) % 2 if both else np.zeros(count, np.int64)
    run = np.where(model == 1, 300.0, 100.0)
    submit = np.arange(count) * HOUR
    events = job_table.event_order(submit, submit + run, run)
    jobs = job_table.table(np.array([of_one(f) for f in fields]), np.full(count, np.nan), events)
    prior = np.array([[0.0, np.log(0.5)]])  # assumed: B is half as fast
    jobs = jobs._replace(model=model, prior=prior)
    return Memory(Settings(("A", "B"))).follow(jobs)


def test_other_models_go_by_what_was_assumed_until_it_is_known():
    np.testing.assert_allclose(np.exp(learned_speeds(both=False).log_s[-1]), [100, 200])


def test_other_models_go_by_the_speeds_that_were_learned():
    found = np.exp(learned_speeds(both=True).log_s[-1])
    assert found[1] / found[0] == pytest.approx(3, rel=0.01)
    np.testing.assert_allclose(found, [100, 300], rtol=0.02)  # the first ones count as assumed


def test_weights_are_those_of_the_documents():
    assert job_fields.SCHEMA.bits == 1024
    assert [role.weight for role in job_fields.SCHEMA.roles if role.name == "user"] == [4.0]
