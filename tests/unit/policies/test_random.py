"""Random starts, which are a function of the seed."""

import pytest

from tests.worlds import build, job, nodes, play

# Splitmix64's published numbers for the seed 1234567.
PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]
PAIRS = [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize(("seed", "first"), [(0, 0xE220A8397B1DCDAF), (1234567, PUBLISHED[0])])
def test_the_first_start_is_the_seeds_first_number_modulo_the_feasible_pairs(seed, first):
    # Two jobs, two GPUs: four pairs in queue order, then pool order. The other job takes the rest.
    world = build([nodes("V100"), nodes("T4")], [job(0, 5, 5), job(0, 5, 5)])
    started, pool = PAIRS[first % 4]
    assert play(world, "random", seed).outcome["pool"][started] == pool
    assert play(world, "random", seed).outcome["pool"][1 - started] == 1 - pool


def test_a_number_is_drawn_only_when_something_can_start():
    # Three pools of one GPU. Jobs 0-2 start one after the other on what is free (3, 2, 1 pairs);
    # job 3 comes at 3 to a full cluster and starts at 10 or later on the one free pool. Job 4
    # comes at 100 to an empty one: it gets the fifth number.
    pools = [nodes("V100"), nodes("T4"), nodes("A100")]
    times = (9, 9, 9)
    world = build(pools, [job(t, *times) for t in (0, 1, 2, 3, 100)])
    outcome = play(world, "random", 1234567).outcome
    free = [0, 1, 2]
    first = free.pop(PUBLISHED[0] % 3)
    second = free.pop(PUBLISHED[1] % 2)
    assert outcome["pool"].tolist() == [first, second, free[0], first, PUBLISHED[4] % 3]
    assert outcome["start"].tolist() == [0, 1, 2, 9, 100]


def test_the_seed_decides_everything():
    world = build([nodes("V100", 2), nodes("T4", 2)], [job(0, 5, 7)] * 12)
    runs = [play(world, "random", seed).outcome.tobytes() for seed in (7, 7, 8)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
