"""Jobs as patterns: what makes two of them alike."""

import numpy as np
import pytest

from adlro.errors import ConfigError
from adlro.estimates import job_fields
from adlro.estimates.job_fields import SCHEMA, SPACE, JobFields, of_history, of_jobs, of_one
from adlro.features.hypervectors.encode_kernel import encode, similarity
from adlro.features.hypervectors.unbind_kernel import match_parts
from adlro.model.state import JOB
from tests.histories import history

ROLES = [role.name for role in SCHEMA.roles]


def encoded(filling):
    words = len(SPACE.binding)
    bits, known = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    encode(filling, SPACE, bits, known)
    return bits, known


def parts(one, other):
    """How well each role of a job is matched by another job's."""
    (bits, known), (pattern, _) = encoded(one), encoded(other)
    found = np.zeros(len(ROLES))
    match_parts(SPACE, bits, known, pattern, found)
    return dict(zip(ROLES, found.tolist(), strict=True))


def test_a_numbered_name_is_like_the_next_one():
    one = JobFields(name="train_17")
    found = parts(of_one(one), of_one(JobFields(name="Train-18")))
    assert found["name"] < 0.6
    # Of the parts train, 17 and 18 one of three is common.
    assert found["name parts"] == pytest.approx(1 / 3, abs=0.25)
    other = parts(of_one(one), of_one(JobFields(name="etl")))
    assert other["name parts"] < found["name parts"]
    assert parts(of_one(one), of_one(one))["name"] == 1


def test_what_a_job_does_not_say_is_missing_but_for_the_request():
    found = parts(of_one(JobFields(user="ann")), of_one(JobFields(user="ann")))
    assert found["user"] == 1
    # Not to say what is requested is a habit too: such jobs are alike.
    assert found["request"] == 1
    known = {name for name, match in found.items() if not np.isnan(match)}
    assert known == {"user", "request"}


def test_requests_are_near_by_doublings_and_equal_as_words():
    job = of_one(JobFields(requested_s=3600.0))
    doubled = parts(job, of_one(JobFields(requested_s=7200.0)))
    assert doubled["request"] < 0.6
    assert doubled["requested time"] == pytest.approx(0.75, abs=0.05)  # gone after 4 doublings
    far = parts(job, of_one(JobFields(requested_s=3600.0 * 16)))
    assert far["requested time"] < 0.35


def test_hours_are_near_across_midnight():
    late = of_one(JobFields(submit_s=23.5 * 3600))
    early = parts(late, of_one(JobFields(submit_s=(5 * 24 + 0.5) * 3600)))
    noon = parts(late, of_one(JobFields(submit_s=11.5 * 3600)))
    assert early["hour"] > 0.6
    assert noon["hour"] < 0.5


def test_the_shape_is_all_that_a_job_asks_for():
    job = JobFields(gpus=4.0, cores=16.0, memory_mb=1024.0)
    same = parts(of_one(job), of_one(job._replace(user="ann")))
    other = parts(of_one(job), of_one(job._replace(memory_mb=1025.0)))
    assert same["shape"] == 1
    assert other["shape"] < 0.6
    assert other["gpus"] == other["cores"] == 1


ROWS = """submit_time,run_s,requested_s,gpus,nodes,cores,memory_mb,user,account,queue,name,qos,\
priority
1735689600,60,100,1.5,1,4,2048,ann,lab,short,bert-1,high,100
1735693200,60,100,1.5,1,4,2048,ann,lab,short,bert-1,high,77777
1735689600,60,,,,,,,,,,,
"""


def test_a_job_of_a_history_fills_what_the_same_job_fills_alone(tmp_path):
    found = of_history(history(tmp_path, ROWS))
    fields = JobFields(
        user="ann", account="lab", queue="short", name="bert-1", qos="high", requested_s=100.0,
        gpus=1.5, nodes=1.0, cores=4.0, memory_mb=2048.0, submit_s=1735689600.0,
    )  # fmt: skip
    np.testing.assert_array_equal(found[0], of_one(fields))
    np.testing.assert_array_equal(found[2], of_one(JobFields(submit_s=1735689600.0)))


def test_a_recorded_priority_is_left_out(tmp_path):
    found = of_history(history(tmp_path, ROWS))
    differ = np.flatnonzero(found[0] != found[1])
    assert differ.tolist() == [job_fields.place(SCHEMA, "hour")]


def test_a_simulated_job_fills_by_its_numbers():
    jobs = np.zeros(2, JOB)
    jobs["gpus"], jobs["share"], jobs["cores"], jobs["memory"] = (2, 1), (1000, 500), 4, 1024
    jobs["requested"], jobs["user"], jobs["type"], jobs["priority"] = 300.0, (7, 3), (1, 0), 0.5
    jobs["arrival"] = 3600.0
    found = of_jobs(jobs)
    fields = JobFields(
        user="7", account="0", type="1", requested_s=300.0, gpus=2.0, cores=8.0, memory_mb=2048.0,
        gpu_memory_mb=0.0, priority=0.5, submit_s=3600.0,
    )  # fmt: skip
    np.testing.assert_array_equal(found[0], of_one(fields))
    half = fields._replace(user="3", type="0", gpus=0.5, cores=4.0, memory_mb=1024.0)
    np.testing.assert_array_equal(found[1], of_one(half))


def test_the_true_size_of_a_simulated_job_is_no_part_of_it():
    assert set(JobFields._fields).isdisjoint({"run_s", "seconds", "size", "limit"})
    jobs = np.zeros(1, JOB)
    jobs["gpus"] = 1
    other = jobs.copy()
    other["limit"], other["communication"], other["checkpoint"] = 99.0, 0.5, 9.0
    np.testing.assert_array_equal(of_jobs(jobs), of_jobs(other))


@pytest.mark.parametrize(("name", "value"), [("gpus", -1.0), ("requested_s", np.inf)])
def test_an_absurd_number_is_refused(name, value):
    with pytest.raises(ConfigError, match=f"{name} is"):
        of_one(JobFields()._replace(**{name: value}))


def test_unrelated_jobs_are_hardly_alike():
    one = of_one(JobFields(user="ann", queue="short", name="etl", requested_s=60.0, gpus=1.0))
    other = of_one(JobFields(user="bob", queue="long", name="lammps", requested_s=9e5, gpus=64.0))
    (bits, known), (pattern, _) = encoded(one), encoded(other)
    assert abs(similarity(bits, pattern, known)) < 0.2


def test_a_request_of_0_says_nothing_and_whole_numbers_are_numbers():
    np.testing.assert_array_equal(of_one(JobFields(requested_s=0.0)), of_one(JobFields()))
    whole, same = JobFields("", "", "", "", "", "", *range(8)), [float(n) for n in range(8)]
    np.testing.assert_array_equal(of_one(whole), of_one(JobFields("", "", "", "", "", "", *same)))
