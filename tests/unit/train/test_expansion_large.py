"""Large states are labelled more rarely, with fewer choices and a single future."""

import numpy as np
import pytest

from adlro.features.start_kernel import CHOICES, DRAIN_REGRET, MOST_CHOICES, PLANNED, WAIT, WAITING
from adlro.policies import registry
from adlro.train.expansion import ExpansionSettings, expand
from tests.worlds import build, job, nodes

ALL = ExpansionSettings(horizon=60, rate=1e3, stray=0.0)  # every state, however large
# The effort of the first state is 32 * (waiting + 1 run + 60) * (waiting + 3 GPUs):
# 32 * 91 * 33 = 96,096 with 30 waiting jobs, and 32 * 92 * 34 = 100,096 with 31.
SMALL, LARGE = 30, 31


def crowd(waiting, last=40.0, after=2.0):
    """At 1, while job 0 holds one of three GPUs, jobs of 20 s, 21 s .. come, and then one more."""
    jobs = [job(0, 500, 900), *(job(1, 20 + k, 30 + k) for k in range(waiting))]
    return build([nodes("V100", 1), nodes("T4", 2)], [*jobs, job(after, last, last)])


def labels(world, plan=ALL, seed=0, others=()):
    ready = registry.load("min-min", world.setting)
    rng = np.random.default_rng(seed)
    return expand(world.setting, world.workload, ready, ready, plan, rng, others)


def states(found):
    """Features and JCT costs of each state."""
    ends = found.groups[:, 0].cumsum()
    parts = (np.split(table, ends[:-1]) for table in (found.features, found.costs[:, 0]))
    return list(zip(*parts, strict=True))


def test_a_state_at_the_threshold_has_all_its_choices_and_one_beyond_it_a_few():
    counts = {}
    for waiting in (SMALL, LARGE):
        found = labels(crowd(waiting))
        features, _ = states(found)[0]
        assert features[0, WAITING] == np.float32(np.log(1 + waiting))
        assert features[0, CHOICES] == np.float32(np.log(MOST_CHOICES))  # there would be so many
        counts[waiting] = found.groups[0, 0]
    assert counts[SMALL] == MOST_CHOICES
    assert 4 <= counts[LARGE] <= 7


def test_a_large_state_always_has_waiting_min_mins_choice_and_the_cheapest():
    rng, large, differ = np.random.default_rng(0), 0, 0
    for _ in range(5):
        jobs = [job(0, 50, 70)]
        for arrival in np.sort(rng.uniform(1, 5, 60)):
            gpus = int(rng.choice([1, 1, 2, 3]))
            jobs.append(job(arrival, *(10 ** rng.uniform(0, 2, 2)), gpus=gpus))
        found = labels(build([nodes("V100", 4), nodes("T4", 4)], jobs), ALL._replace(horizon=0))
        for (features, _), group in zip(states(found), found.groups, strict=True):
            assert features[:, WAIT].tolist() == [1] + [0] * (group[0] - 1)
            assert features[:, PLANNED].tolist() == np.eye(group[0])[group[1]].tolist()
            assert features[:, DRAIN_REGRET].min() == 0
            offered = round(np.exp(features[0, CHOICES]))
            if group[0] < offered:
                large += 1
                assert group[0] <= 8
                differ += features[group[1], DRAIN_REGRET] > 0
    assert large > 50
    assert differ > 5  # the cheapest is not always Min-Min's choice


def cost(choice, seconds):
    """Time in the system from 1 on, if this job starts then (None = none before 500).

    Min-Min serves the others by length on two GPUs; job 0 runs from 0 to 500 elsewhere.
    """
    rest, free, total = sorted(seconds), [500.0, 500.0], 499.0
    if choice is not None:
        rest.remove(choice)
        free, total = [1.0, 1.0 + choice], total + choice
    for each in rest:
        end = min(free) + each
        free = [max(free), end]
        total += end - 1
    return total


@pytest.mark.parametrize(("waiting", "tried"), [(SMALL, range(15)), (LARGE, [0, 3, 7, 11])])
def test_the_choices_that_are_tried_cost_what_they_would_by_hand(waiting, tried):
    # Of a large state: every fourth choice from waiting on, and Min-Min's, the cheapest, too.
    seconds = [30.0 + k for k in range(waiting)]
    jobs = [job(0, 500, 900), *(job(1, 99, each, allowed=[1]) for each in seconds)]
    world = build([nodes("V100", 1), nodes("T4", 2)], jobs)
    features, costs = states(labels(world))[0]
    assert len(costs) == 1 + len(tried)
    expected = [cost(None, seconds), *(cost(seconds[k], seconds) for k in tried)]
    np.testing.assert_allclose(costs, expected, rtol=1e-12)
    assert features[1, [PLANNED, DRAIN_REGRET]].tolist() == [1, 0]


def test_what_comes_after_a_large_state_is_a_single_future():
    # The last job comes 1 s after the others in one future, and lasts 5 s or 90 s in the others.
    for waiting in (SMALL, LARGE):
        world = crowd(waiting)
        one, other = (crowd(waiting, last).workload for last in (5.0, 90.0))
        both = labels(world, others=[one, other])
        first, second = (labels(world, others=[each]) for each in (one, other))
        (_, costs), (_, of_first), (_, of_second) = (states(x)[0] for x in (both, first, second))
        assert of_first.tolist() != of_second.tolist()
        expected = of_first if waiting == LARGE else (of_first + of_second) / 2
        np.testing.assert_allclose(costs, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("waiting", "share"),
    # Efforts of 32 * 91 * 32 = 93,184, 32 * 121 * 62 = 240,064 and 32 * 181 * 122 = 706,624; of
    # those above 100,000 a share of (100,000 / effort) ** 0.7.
    [(30, 1.0), (60, 0.542), (120, 0.254)],
)
def test_the_larger_a_state_the_more_rarely_it_is_labelled(waiting, share):
    # Only in the first state a choice is made while something runs: the others may use the T4 only.
    jobs = [job(0, 5, 9), *(job(1, 99, 20 + k, allowed=[1]) for k in range(waiting))]
    world, plan = build([nodes("V100"), nodes("T4")], jobs), ALL._replace(horizon=0, rate=1.0)
    found = [labels(world, plan, seed).groups for seed in range(40)]
    assert {len(groups) for groups in found} <= {0, 1}
    rarities = np.concatenate(found)[:, 4]
    assert rarities.tolist() == pytest.approx([1000 * share] * len(rarities), abs=1)
    off = 3 * (share * (1 - share) / 40) ** 0.5
    assert len(rarities) / 40 == pytest.approx(share, abs=off)


def test_a_larger_rate_makes_up_for_it():
    # 0.542 of twice the states.
    jobs = [job(0, 5, 9), *(job(1, 99, 20 + k, allowed=[1]) for k in range(60))]
    world, plan = build([nodes("V100"), nodes("T4")], jobs), ALL._replace(horizon=0, rate=2.0)
    assert all(len(labels(world, plan, seed).groups) == 1 for seed in range(20))
