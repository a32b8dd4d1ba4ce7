"""The compiled kernel and the plain simulator must tell the same story, to 1e-9."""

from types import SimpleNamespace

import numpy as np
import pytest

from adlro.model.room import capacity, fits
from adlro.model.state import START, WAKE
from adlro.policies import registry
from adlro.sim import simulator
from adlro.sim.state import Empty
from adlro.workloads.workload import Workload
from tests.plain import policies as plain_policies
from tests.plain.cases import random_case
from tests.plain.simulator import Decision, PlainWorld
from tests.plain.simulator import run as run_plain

CASES = 1000
BLOCK = 50  # cases in one test, so that two processes share them evenly


def as_setting(case):
    """What a policy's params and memory ask of a scenario."""
    shares = np.zeros((len(case.affinity), len(case.pools)))
    for job_type, pools in enumerate(case.pools_of_type):
        shares[job_type, list(pools)] = 1.0
    layout = SimpleNamespace(gpus=case.gpus)
    return SimpleNamespace(
        affinity=case.affinity, pools=case.pools, type_shares=shares, layout=layout
    )


def run_kernel(case, policy, seed):
    workload = Workload(case.jobs, case.est, case.allowed, case.seconds)
    empty = Empty(case.pools, case.nodes, case.gpus)
    return simulator.run(empty, workload, policy, seed, keep_spans=True)


def assert_same(kernel, plain, case):
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(kernel.outcome["start"], plain.start, **close)
    np.testing.assert_allclose(kernel.outcome["finish"], plain.finish, **close)
    np.testing.assert_array_equal(kernel.outcome["pool"], plain.pool)
    np.testing.assert_array_equal(kernel.outcome["nodes"], plain.nodes)
    np.testing.assert_array_equal(kernel.outcome["killed"], plain.killed)
    np.testing.assert_allclose(kernel.world["job_seconds"], plain.job_seconds, **close)
    np.testing.assert_allclose(kernel.world["idle_seconds"], plain.idle_seconds, **close)
    assert kernel.world["decisions"] == plain.decisions
    spans = kernel.spans[np.lexsort((kernel.spans["gpu"], kernel.spans["job"]))]
    expected = [(j, g) for j in range(len(case.jobs)) for g in plain.gpus[j]]
    assert list(zip(spans["job"], spans["gpu"], strict=True)) == expected


@pytest.mark.parametrize("block", range(CASES // BLOCK))
def test_every_policy_gives_the_same_schedule_in_both_simulators(block, policy_names):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        case = random_case(seed)
        world = PlainWorld.from_arrays(*case[:6])
        for name in policy_names:
            kernel = run_kernel(case, registry.load(name, as_setting(case)), seed)
            assert_same(kernel, run_plain(world, plain_policies.make(name, case, seed)), case)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(CASES // BLOCK, 10 * CASES // BLOCK))
def test_every_policy_gives_the_same_schedule_in_many_more_cases(block, policy_names):
    test_every_policy_gives_the_same_schedule_in_both_simulators(block, policy_names)


@pytest.fixture(scope="module")
def policy_names():
    """Every policy of the registry: a new one needs its plain twin."""
    return registry.names()


def write(answer, out):
    for i, decision in enumerate(answer):
        kind = START if decision.kind == "start" else WAKE
        out[i] = (kind, decision.job, decision.pool, decision.node, decision.gpu, decision.at)
    return len(answer)


class Played:
    """A Python policy for the kernel that plays back decisions recorded in the plain simulator."""

    name, params, memory = "played", np.zeros(0), 0

    def __init__(self, trace):
        self.answers = iter(trace)

    def decide(self, *view):
        return write(next(self.answers), view[-1])


@pytest.mark.parametrize("block", range(CASES // BLOCK))
def test_random_decisions_recorded_in_the_plain_simulator_replay_in_the_kernel(block):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        case = random_case(seed)
        world = PlainWorld.from_arrays(*case[:6])
        plain = run_plain(world, plain_policies.make("script", case, seed))
        assert_same(run_kernel(case, Played(plain.trace), seed), plain, case)


class Scribe:
    """A Python policy for the kernel that makes random feasible decisions and writes them down."""

    name, params, memory = "scribe", np.zeros(0), 0

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.trace = []

    def decide(self, now, jobs, est, queue, eligible, running, pools, nodes, gpus, *rest):
        answer = []
        pairs = [
            (int(queue[q].job), p)
            for q, p in zip(*np.nonzero(eligible), strict=True)
            if fits(jobs[queue[q].job], pools[p], nodes)
        ]
        if pairs and (len(running) == 0 or self.rng.random() < 0.6):
            job, p = pairs[self.rng.integers(len(pairs))]
            first = pools[p].first_node
            room = [
                n for n in range(first, first + pools[p].nodes) if capacity(jobs[job], nodes[n])
            ]
            node = int(self.rng.choice(room)) if self.rng.random() < 0.4 else -1
            answer.append(Decision("start", job, int(p), node, -1, 0.0))
        if self.rng.random() < 0.3:
            soon = [run.expected for run in running if run.expected > now]
            at = float(self.rng.choice([*soon, now + 1.0, now + 7.5]))
            answer.append(Decision("wake", at=at))
        self.trace.append(answer)
        return write(answer, rest[-1])


@pytest.mark.parametrize("block", range(CASES // BLOCK))
def test_random_decisions_recorded_in_the_kernel_replay_in_the_plain_simulator(block):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        case, scribe = random_case(seed), Scribe(seed)
        kernel = run_kernel(case, scribe, seed)
        world = PlainWorld.from_arrays(*case[:6])
        assert_same(kernel, run_plain(world, plain_policies.Replay(scribe.trace)), case)
