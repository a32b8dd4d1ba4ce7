"""Min-Min by priority, planned anew at each event."""

import pytest

from tests.worlds import build, job, nodes, play


def starts(*jobs, gpus=1):
    world = build([nodes("V100", gpus)], list(jobs))
    return play(world, "weighted-min-min").outcome["start"].tolist()


def test_an_important_job_goes_before_a_shorter_one():
    # 4 / sqrt(1) = 4 comes before 3 / sqrt(0.25) = 6. Min-Min would begin with job 1.
    assert starts(job(0, 4, priority=1), job(0, 3, priority=0.25)) == [0, 4]


def test_it_divides_by_the_root_of_the_priority():
    # 4 / sqrt(1) = 4 and 1.5 / sqrt(0.25) = 3; by the priority itself it would be 6, and job 0.
    assert starts(job(0, 4, priority=1), job(0, 1.5, priority=0.25)) == [1.5, 0]


@pytest.mark.parametrize(("other", "expected"), [(9, [9, 0]), (11, [0, 1])])
def test_a_job_without_priority_counts_as_one_of_a_hundredth(other, expected):
    # 1 / sqrt(0.01) = 10.
    assert starts(job(0, 1, priority=0), job(0, other, priority=1)) == expected


def test_an_important_gang_holds_its_place_in_the_plan():
    # Job 0 holds one of two GPUs until 3. At 1, job 1 (both, 4 s) would end at 7: 6 / sqrt(1) = 6;
    # job 2 (one, 2.5 s) at 3.5: 2.5 / sqrt(0.16) = 6.25. So job 1 holds both from 3 to 7, and job 2
    # waits until then though a GPU is free. With priority 0.25 it has 2.5 / 0.5 = 5 and starts.
    jobs = [job(0, 3, priority=1), job(1, 4, gpus=2, priority=1)]
    assert starts(*jobs, job(1, 2.5, priority=0.16), gpus=2) == [0, 3, 7]
    assert starts(*jobs, job(1, 2.5, priority=0.25), gpus=2) == [0, 3.5, 1]


def test_what_counts_is_the_time_until_completion_and_not_the_time_of_day():
    # 1.5 / 0.5 = 3 comes before 4 / 1; of 101.5 / 0.5 and 104 / 1 the second would be smaller.
    assert starts(job(100, 1.5, priority=0.25), job(100, 4, priority=1)) == [100, 101.5]


def test_of_equals_the_earlier_completion_and_then_the_older_job_goes_first():
    # 4 / sqrt(1) = 2 / sqrt(0.25): job 1 ends first. Of jobs 1 and 2 job 1 is older.
    jobs = [job(0, 4, priority=1), job(0, 2, priority=0.25), job(0, 2, priority=0.25)]
    assert starts(*jobs) == [4, 0, 2]
