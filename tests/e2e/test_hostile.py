"""No hostile command line or file gets more out of a command than one line."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.e2e import hostile

QUICK = range(60)
ALL = range(3_000)
EVERY = 60  # one of so many also runs as a process of its own


def test_a_few_hostile_command_lines_are_answered_in_one_line():
    assert [problem for seed in QUICK for problem in hostile.problems(seed)] == []


@pytest.mark.slow
def test_thousands_of_hostile_command_lines_are_answered_in_one_line():
    context = multiprocessing.get_context("spawn")  # each with a simulator of its own
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        found = list(pool.map(hostile.problems, ALL, chunksize=20))
    assert [problem for problems in found for problem in problems] == []


@pytest.mark.slow
def test_hostile_command_lines_are_answered_by_real_processes_too():
    seeds = ALL[::EVERY]
    assert [p for seed in seeds for p in hostile.problems(seed, is_apart=True)] == []


def test_a_case_is_the_same_for_the_same_seed(tmp_path):
    for seed in QUICK:
        folders = [tmp_path / f"{seed}-{name}" for name in "ab"]
        for folder in folders:
            folder.mkdir()
        first, again = (hostile.make(seed, folder) for folder in folders)
        assert first == again
