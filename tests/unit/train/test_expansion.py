"""Expanded targets beside brute force: each choice forced in the plain simulator."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from adlro.errors import PolicyError
from adlro.evaluate.metrics import IDLE_POWER_SHARE
from adlro.features.start_kernel import FEATURES, PLAIN
from adlro.policies import registry
from adlro.sim import simulator
from adlro.train.expand_kernel import COSTS
from adlro.train.expansion import ExpansionSettings, expand, watts
from tests.looking import watched
from tests.looped import every
from tests.plain.cases import random_case
from tests.plain.policies import MinMin, PairSjf
from tests.plain.recorded import Recorder
from tests.plain.records import Decision
from tests.plain.simulator import PlainWorld
from tests.worlds import build, from_case, job, nodes

# Every state with a choice: large ones are labelled more rarely than the rate, but not by so much.
ALL = ExpansionSettings(horizon=60, rate=50, stray=0.0)
TWINS = {"min-min": MinMin, "pair-sjf": PairSjf}


def labels(world, plan=ALL, behave="min-min", base="min-min", seed=0, others=()):
    ready = [registry.load(name, world.setting) for name in (behave, base)]
    rng = np.random.default_rng(seed)
    return expand(world.setting, world.workload, *ready, plan, rng, others)


# By hand.


def by_hand(horizon=60):
    """A V100 and a T4. Job 0 holds the V100 until 4; job 1 (V100 2 s, T4 8 s) comes at 1.

    Min-Min lets it wait for the V100. Job 2 (V100 only, 2 s) comes at 3: so there are two states
    with a choice, at 1 and at 3, each to wait or to start job 1 on the T4.
    """
    jobs = [
        job(0, 4, 99, priority=0.5),
        job(1, 2, 8, priority=1.0),
        job(3, 2, 99, allowed=[0], priority=0.25),
    ]
    world = build([nodes("V100"), nodes("T4")], jobs)
    return world, labels(world, ALL._replace(horizon=horizon))


def test_every_state_with_a_choice_while_something_runs_is_expanded():
    _, found = by_hand()
    assert found.groups[:, :2].tolist() == [[2, 0], [2, 0]]
    assert found.features.shape == (4, len(FEATURES))


@pytest.mark.parametrize(
    ("horizon", "costs"),
    [
        # Wait: job 0 1-4, job 1 until 6, job 2 3-8: 3 + 5 + 5. Start: job 1 until 9, job 2 3-6.
        (60, [13, 14]),
        (0, [8, 11]),  # nobody knows of job 2
    ],
)
def test_the_cost_of_a_choice_is_the_time_that_jobs_are_in_the_system_from_then_on(horizon, costs):
    _, found = by_hand(horizon)
    assert found.costs[:2, COSTS.index("jct")].tolist() == costs


def test_the_other_costs_of_the_same():
    world, found = by_hand()
    cost = dict(zip(COSTS, found.costs[:2].T.tolist(), strict=True))
    assert cost["weighted_jct"] == [1.5 + 5 + 1.25, 1.5 + 8 + 0.75]
    assert cost["idle"] == [7, 3]  # the T4 1-8; the V100 6-9
    assert cost["span"] == [7, 8]  # until 8; until 9
    v100, t4 = (model.tdp_w for model in world.setting.layout.models)
    # Since time 0. Wait: the V100 is busy 0-8. Start: busy 0-6 of 9, the T4 1-9.
    idle = IDLE_POWER_SHARE
    expected = [8 * v100 + 8 * idle * t4, (6 + 3 * idle) * v100 + (8 + idle) * t4]
    assert cost["energy"] == pytest.approx(expected, rel=1e-12)


def test_tau_is_kept_in_microseconds():
    # At 1: job 1 2 s, job 0 4 s: the root of 8.
    _, found = by_hand()
    assert found.groups[0, 2] == int(8**0.5 * 1e6)


@pytest.mark.parametrize(("horizon", "jobs"), [(60, 3), (0, 2)])
def test_the_jobs_of_a_rollout_are_those_that_wait_run_or_come_within_the_horizon(horizon, jobs):
    # At 1 job 0 runs, job 1 waits and job 2 comes later; at 3 all three are there.
    assert by_hand(horizon)[1].groups[:, 3].tolist() == [jobs, 3]


def test_watts_are_those_of_each_pools_model():
    world, _ = by_hand()
    tdp = [model.tdp_w for model in world.setting.layout.models]
    assert watts(world.setting).tolist() == [[w, IDLE_POWER_SHARE * w] for w in tdp]


# Futures of other episodes.

FIRST = [job(0, 4, 99, priority=0.5), job(1, 2, 8, priority=1.0)]  # as in by_hand


def spliced(*future):
    """The world by_hand with another future."""
    return build([nodes("V100"), nodes("T4")], [*FIRST, *future])


def other(*jobs):
    """The jobs of another episode on the same cluster."""
    return build([nodes("V100"), nodes("T4")], list(jobs)).workload


def test_the_future_can_be_that_of_other_episodes_at_the_same_distances_and_costs_are_means():
    # In the state at 1 two of three jobs have come; the third of the others comes 3 s and 1 s
    # after their second: at 4 and at 2.
    a, b = job(12, 3, 5, priority=0.25), job(4, 6, 2, priority=0.75)
    others = [other(job(7, 1, 1), job(9, 1, 1), a), other(job(2, 1, 1), job(3, 1, 1), b)]
    world, _ = by_hand()
    found = labels(world, others=others)
    each = [
        labels(spliced({**a, "arrival": 4.0})).costs[:2],
        labels(spliced({**b, "arrival": 2.0})).costs[:2],
    ]
    assert each[0].tolist() != each[1].tolist()
    np.testing.assert_allclose(found.costs[:2], (each[0] + each[1]) / 2, rtol=1e-12)


def test_jobs_that_came_meanwhile_are_the_episodes_own_again_and_after_the_last_none_comes():
    # The second state, at 3, knows of job 2, not of what the first was tried on.
    world, alone = by_hand()
    found = labels(world, others=[other(job(0, 1, 1), job(1, 1, 1), job(2, 50, 50))])
    assert found.costs[:2].tolist() != alone.costs[:2].tolist()
    assert found.costs[2:].tolist() == alone.costs[2:].tolist()


# By brute force.


class Forced:
    """Plays what was recorded, then one choice, then a policy; notes how things stood before it."""

    def __init__(self, trace, choice, base):
        self.trace, self.choice, self.base = trace, choice, base
        self.calls, self.now, self.there, self.idle = 0, None, None, None

    def decide(self, world):
        self.calls += 1
        if self.calls <= len(self.trace):
            return self.trace[self.calls - 1]
        if self.calls > len(self.trace) + 1:
            return self.base.decide(world)
        self.now, self.idle = world.now, world.result.idle_seconds
        self.there = [*world.waiting, *world.runs]
        return [Decision("start", *self.choice)] if self.choice else []


def brute_force(case, trace, choice, arrived, horizon, base):
    """The five costs of a choice, in plain Python."""
    last = arrived + horizon
    cut = {name: getattr(case, name)[:last] for name in ("jobs", "est", "seconds", "allowed")}
    world = PlainWorld(case._replace(**cut))
    policy = Forced(trace, choice, base())
    result = world.play(policy)
    since = [policy.now if j < arrived else world.jobs[j].arrival for j in range(len(world.jobs))]
    counted = [*policy.there, *range(arrived, len(world.jobs))]
    jct = {j: result.finish[j] - since[j] for j in counted}
    priority = cut["jobs"]["priority"]
    draws = [tdp(world.pools[gpu.node.pool].model) for gpu in world.cluster.gpus]
    busy = zip(draws, result.busy, strict=True)
    return [
        sum(jct.values()),
        sum(priority[j] * jct[j] for j in jct),
        result.idle_seconds - policy.idle,
        world.now - policy.now,
        sum(w * (b + IDLE_POWER_SHARE * (world.now - b)) for w, b in busy),
    ]


def tdp(model):
    return 100.0 + 50 * model


def with_power(case):
    """A random case whose models have a TDP."""
    world = from_case(case)
    models = [
        SimpleNamespace(name=f"model{m}", power_w=tdp(m), peak_gb_s=900.0)
        for m in range(case.est.shape[1])
    ]
    layout = SimpleNamespace(pools=case.pools, nodes=case.nodes, gpus=case.gpus, models=models)
    return world._replace(setting=SimpleNamespace(**{**vars(world.setting), "layout": layout}))


class Visit(NamedTuple):
    """A state with a choice while something runs."""

    call: int  # of the policy
    arrived: int
    queue: list[int]
    effort: float  # of its rollouts

    @property
    def rarity(self) -> int:
        """Share of the usual states that is labelled of such, in thousandths."""
        return int(1000 * min(1.0, 100_000 / self.effort) ** 0.7)

    def tried(self, choices) -> list[int]:
        """All choices; in a large state every so many, Min-Min's and the cheapest to drain."""
        if self.effort <= 100_000:
            return list(range(choices.count))
        some = range(0, choices.count, max(choices.count // 4, 1))
        return sorted({*some, choices.planned, int(np.argmin(choices.costs))})


def visited(world, policy, seed):
    """Calls of a policy on its own: the trace, what it saw, and the visits."""
    watcher, seen = watched(policy, world)
    note, rows = watcher.look, []

    def look(view):
        note(view)
        if seen[-1].count and len(view.running):
            waiting, running = len(view.queue), len(view.running)
            effort = 32 * (waiting + running + 60) * (waiting + len(view.gpus))
            rows.append(Visit(len(seen) - 1, view.arrived, view.queue["job"].tolist(), effort))

    watcher.look = look
    recorder = Recorder(watcher)
    simulator.run(world.empty, world.workload, recorder, seed)
    return recorder.trace, seen, rows


def horizons(seeds):
    return [(seed, (60, 2, 0)[seed % 3]) for seed in seeds]


LONG = [pytest.param(*each, marks=pytest.mark.slow) for each in horizons(range(14, 40, 2))]


@pytest.mark.parametrize("base", TWINS)
@pytest.mark.parametrize(("seed", "horizon"), [*horizons(range(0, 14, 2)), *LONG])
def test_the_costs_are_those_of_brute_force(seed, horizon, base):
    case = random_case(seed)
    world = with_power(case)
    found = labels(world, ALL._replace(horizon=horizon), base=base)
    trace, seen, rows = visited(world, "min-min", seed)
    assert len(rows) == len(found.groups)
    at = 0
    for visit, group in zip(rows, found.groups, strict=True):
        choices = seen[visit.call]
        tried = visit.tried(choices)
        assert group[:2].tolist() == [len(tried), tried.index(choices.planned)]
        assert group[4] == visit.rarity
        for row in range(0, len(tried), 4):  # every fourth: plain Python takes its time
            i = tried[row]
            choice = (visit.queue[int(choices.places[i])], int(choices.pools[i])) if i else None
            before = trace[: visit.call]
            expected = brute_force(case, before, choice, visit.arrived, horizon, TWINS[base])
            np.testing.assert_allclose(found.costs[at + row], expected, rtol=1e-9, atol=1e-6)
        at += len(tried)
    assert at == len(found.costs)


@every("seed", range(10))
def test_trying_choices_leaves_the_episode_as_it_is(seed):
    # With no stray starts the states are those that the policy meets on its own.
    world = with_power(random_case(seed))
    found = labels(world, base="pair-sjf")
    _, seen, rows = visited(world, "min-min", seed)
    states = [(seen[visit.call], visit) for visit in rows]
    alone = [one.features[visit.tried(one)].astype(np.float32) for one, visit in states]
    expected = np.concatenate(alone) if alone else np.zeros((0, found.features.shape[1]))
    plain = len(PLAIN)  # the others are filled in for labels alone
    assert found.features[:, :plain].tolist() == expected[:, :plain].tolist()


# How often, and by what luck.


def busy_world():
    """Forty jobs of two kinds on three GPUs."""
    kinds = [job(0, 5, 9), job(0, 30, 12)]
    jobs = [{**kinds[j % 2], "arrival": 3.0 * j, "gpus": 1 + (j % 5 == 0)} for j in range(40)]
    return build([nodes("V100", 2), nodes("T4", 2)], jobs)


def same(a, b):
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def rows(found):
    return {(*x, *c) for x, c in zip(found.features.tolist(), found.costs.tolist(), strict=True)}


def test_one_seed_gives_the_same_labels_and_another_does_not():
    world, plan = busy_world(), ExpansionSettings(rate=0.5, stray=0.2)
    first = labels(world, plan, seed=1)
    assert len(first.groups) > 5
    assert same(first, labels(world, plan, seed=1))
    assert not same(first, labels(world, plan, seed=2))


def test_the_rate_is_the_share_of_the_states_that_are_expanded():
    world = busy_world()
    counts = [
        len(labels(world, ExpansionSettings(rate=rate, stray=0.0)).groups) for rate in (0, 0.5, 1.1)
    ]
    assert counts[0] == 0
    assert 0.2 * counts[2] < counts[1] < 0.8 * counts[2]


def test_stray_starts_lead_to_other_states():
    world = busy_world()
    straight = labels(world, ALL)
    stray = labels(world, ALL._replace(stray=0.5))
    assert straight.features.tolist() != stray.features.tolist()


def test_a_base_policy_that_draws_lots_draws_the_same_for_each_choice():
    # What was tried before does not matter: of half of the states the labels are the same.
    world = busy_world()
    first = labels(world, ALL, base="random")
    assert same(first, labels(world, ALL, base="random"))
    plain = labels(world, ALL._replace(rate=0.5), base="random", seed=3)
    assert len(plain.costs) > 10
    assert rows(plain) <= rows(first)


def test_a_policy_in_plain_python_is_refused():
    world = busy_world()
    ready = registry.load("min-min", world.setting)
    slow = ready._replace(name="mine", decide=lambda *_: 0)
    with pytest.raises(PolicyError, match=r"^policy mine is not compiled: it cannot make labels$"):
        expand(world.setting, world.workload, slow, ready, ALL, np.random.default_rng(0))
