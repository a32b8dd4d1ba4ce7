"""The retrieval benchmark measures only implementations that find the right job."""

import sys

import numpy as np
import pytest

from bench import hypervectors, measure
from bench.hypervectors import PATTERNS, check, jobs, ours


def test_all_jobs_are_distinct():
    assert len(np.unique(jobs(), axis=0)) == PATTERNS


def test_our_memory_finds_learned_jobs_and_the_nearest_to_a_similar_one():
    find = ours()
    check(find)
    near = jobs()[4321]
    near[3] += 1
    near[7] = (near[7] + 1) % hypervectors.LEVELS
    assert find(near) == 4321


def test_retrieval_that_finds_another_job_is_not_measured():
    with pytest.raises(ValueError, match="asked for job 0, found 17"):
        check(lambda job: 17)


def test_without_torchhd_only_ours_is_measured(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchhd", None)
    (only,) = hypervectors.retrieval(1)
    assert only.unit == "us"
    assert 1 < only.value < 10_000
    assert only.bar == "< 100"
    assert "torch-hd" not in measure.report([], measure.QUICK).packages


@pytest.mark.slow
def test_torchhd_finds_the_same_jobs_and_the_faster_of_its_models_counts():
    _, beside = hypervectors.retrieval(1)
    assert beside.name == "hypervectors / torchhd"
    assert beside.ours > beside.theirs > 0
    assert beside.bar == ">= 20"
