"""What a learned policy looks at on random clusters, beside the plain twin and Min-Min itself."""

import numpy as np
import pytest

from adlro.features.start_kernel import PLAIN
from adlro.policies import registry
from adlro.sim import simulator
from tests.looking import column, pairs, watched
from tests.looped import every
from tests.plain.cases import crowded, random_case
from tests.plain.learned import NET, Learned
from tests.plain.recorded import Recorder
from tests.plain.simulator import PlainWorld
from tests.plain.simulator import run as run_plain
from tests.worlds import from_case


class Compare:
    """Plays decisions recorded in the kernel and compares what was seen there with the twin."""

    def __init__(self, trace, seen, twin):
        self.trace, self.seen, self.twin = iter(trace), iter(seen), twin

    def decide(self, world):
        seen, looked = next(self.seen), self.twin.look(world)
        assert (seen.count > 0) == (looked is not None)
        if looked:
            assert pairs(seen, list(world.waiting)) == looked.choices[1:]
            assert seen.planned == looked.planned
            np.testing.assert_allclose(seen.tau, looked.tau, rtol=1e-9)
            np.testing.assert_allclose(seen.costs, looked.costs, rtol=1e-9)
            for name in PLAIN:
                ours = [x[name] for x in looked.features]
                np.testing.assert_allclose(column(seen, name), ours, atol=1e-8, err_msg=name)
        return next(self.trace)


@every("seed", range(60), quick=9)
def test_choices_costs_and_features_are_those_of_the_plain_twin(seed):
    case = random_case(seed)
    world = from_case(case)
    policy, seen = watched(("min-min", "sjf", "random")[seed % 3], world)
    recorder = Recorder(policy)
    simulator.run(world.empty, world.workload, recorder, seed)
    run_plain(PlainWorld(case), Compare(recorder.trace, seen, Learned(case, NET)))


def marked_and_made(case, seed):
    """What was marked as Min-Min's and what it did: (job, pool) or None, at each real decision."""
    world = from_case(case)
    policy, seen = watched("min-min", world)
    queues = []
    recorder = Recorder(policy)

    def decide(view, *own):
        queues.append(view.queue["job"].tolist())
        return recorder.decide(view, *own)

    ready = registry.load("min-min", world.setting)._replace(decide=decide)
    simulator.run(world.empty, world.workload, ready, seed)
    marked = [
        pairs(c, q)[c.planned - 1] if c.planned else None
        for c, q in zip(seen, queues, strict=True)
        if c.count
    ]
    made = [
        (a[0].job, a[0].pool) if a else None
        for a, c in zip(recorder.trace, seen, strict=True)
        if c.count
    ]
    return marked, made, seen


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(b, marks=pytest.mark.slow) for b in range(1, 10))]
)
def test_what_is_marked_is_what_min_min_does(block):
    states = 0
    for seed in range(block * 20, block * 20 + 20):
        case = random_case(seed)
        for jobs in (case, crowded(case)):
            marked, made, _ = marked_and_made(jobs, seed)
            assert marked == made, seed
            states += len(made)
    assert states > 500


@every("seed", range(0, 200, 10), quick=8)
def test_no_feature_is_ever_infinite_or_no_number(seed):
    # From a millisecond to 30 years, with estimates of 0 here and there (but for jobs that may be
    # cut short: the share of work left is counted by the estimate).
    case, rng = random_case(seed), np.random.default_rng(seed)
    stretch = 10 ** rng.uniform(-4, 8, len(case.est))[:, None]
    est = case.est * stretch * ((rng.random(case.est.shape) > 0.1) | (len(case.events) > 0))
    case = case._replace(est=est, seconds=case.seconds * stretch)
    for jobs in (case, crowded(case)):
        _, _, seen = marked_and_made(jobs, seed)
        for choices in seen:
            assert np.isfinite(choices.features).all()
            assert np.isfinite(choices.costs).all()
            assert np.abs(choices.features).max(initial=0) <= 1000
