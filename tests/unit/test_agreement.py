"""The compiled kernel and the plain simulator must tell the same story, to 1e-9."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from adlro.model.state import EVENT_KINDS, WHOLE
from adlro.policies import registry
from adlro.sim import simulator
from adlro.sim.world import EmptyCluster
from tests.plain.cases import as_workload, random_case
from tests.plain.learned import NET, Audit, as_params
from tests.plain.policies import TIRESIAS
from tests.plain.recorded import Played, Recorder, Scribe
from tests.plain.registry import make
from tests.plain.script import Replay
from tests.plain.simulator import PlainWorld
from tests.plain.simulator import run as run_plain
from tests.worlds import ANYWHERE, called, from_case

CASES = 400
BLOCK = 20  # cases in one test, so that two processes share them evenly
QUICK = range(10, 16)  # blocks of make test, which hold all that is rare; the others: make slow


def blocks(quick):
    every = range(CASES // BLOCK)
    marks = {block: () if block in quick else pytest.mark.slow for block in every}
    return pytest.mark.parametrize("block", [pytest.param(b, marks=marks[b]) for b in every])


BLOCKS = blocks(QUICK)
RARE = (
    "4 kinds at once",
    "failure in restoring",
    "failure in saving",
    "failure just as a save begins",
    "failure just as a save is complete",
    "failure of one node of several",
    "failure after a save",
    "failure of a node that is down",
    "planned failure in saving",
    "planned failure of one node of several",
    "preemption in restoring",
    "preemption in saving",
    "preempt",
    "migrate",
    "drain under a run",
    "failure of a draining node",
    "event between two cycles",
)
SOLVED = 10  # of so many cases, one is played by the policies that call a solver
HASTY = {  # for cases much shorter than real ones
    "tiresias": TIRESIAS,
    "sia": (3.0, -0.5, 1.1),
    "adlro": as_params(NET),  # all features count, and by chance
    **dict.fromkeys(
        (
            "gavel-max-sum",
            "gavel-max-min",
            "gavel-max-min-blind",
            "gavel-ftf",
            "gavel-makespan",
        ),
        (5.0,),
    ),
}
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def seeds(block):
    return range(block * BLOCK, (block + 1) * BLOCK)


def as_context(case):
    """What a policy is made ready from."""
    return from_case(case).setting


def run_kernel(case, policy, seed):
    empty = EmptyCluster(case.pools, case.nodes, case.gpus)
    return simulator.run(empty, as_workload(case), policy, seed, keep_spans=True)


def assert_same(kernel, plain, about):
    __tracebackhide__ = True
    outcome, totals = kernel.outcome, kernel.totals
    assert totals["decisions"] == plain.decisions, about
    assert totals["preemptions"] == plain.preemptions, about
    for name in ("start", "finish", "lost"):
        np.testing.assert_allclose(outcome[name], getattr(plain, name), **CLOSE, err_msg=about)
    for name in ("pool", "nodes", "restarts", "killed"):
        np.testing.assert_array_equal(outcome[name], getattr(plain, name), err_msg=about)
    for name in ("job_seconds", "wait_seconds", "idle_seconds", "stranded_seconds"):
        ours = getattr(plain, name)
        np.testing.assert_allclose(totals[name], ours, rtol=1e-9, atol=1e-7, err_msg=about)
    np.testing.assert_allclose(kernel.gpus["busy"], plain.busy, **CLOSE, err_msg=about)
    assert_same_spans(kernel.spans, plain.spans, about)


def assert_same_spans(kernel, plain, about):
    __tracebackhide__ = True
    names = ("job", "gpu", "share", "why", "start", "end")
    order = ("why", "end", "start", "gpu", "job")
    assert len(kernel) == len(plain), about
    ours = np.array(
        [tuple(getattr(span, name) for name in names) for span in plain],
        [(name, kernel.dtype[name]) for name in names],
    )
    ours = ours[np.lexsort([ours[name] for name in order])]
    theirs = kernel[np.lexsort([kernel[name] for name in order])]
    for name in names:
        np.testing.assert_allclose(theirs[name], ours[name], **CLOSE, err_msg=f"{about}: {name}")


def recorded(case, policy, seed):
    """A compiled policy's run, and its decisions."""
    kernel = run_kernel(case, policy, seed)
    recorder = Recorder(policy._replace(decide=called(policy.decide)))
    again = run_kernel(case, recorder, seed)
    assert again.outcome.tobytes() == kernel.outcome.tobytes()
    return kernel, recorder.trace


def audited(case, world, policy, seed):
    """Both runs of a policy whose choices may hang on the last bit of a sum.

    Its decisions in the kernel are played in the plain simulator, where its twin looks at each.
    """
    kernel, trace = recorded(case, policy, seed)
    return kernel, run_plain(world, Audit(trace, make(policy.name, case, seed)))


@blocks(QUICK[2:3])  # every policy takes half a second a case
def test_every_policy_gives_the_same_schedule_in_both_simulators(block, policy_names):
    for seed in seeds(block):
        case = random_case(seed)
        world = PlainWorld(case)
        for name in policy_names:
            policy = registry.load(name, as_context(case))
            if name in HASTY:
                policy = policy._replace(params=np.array(HASTY[name]))
            if name == "adlro":
                kernel, plain = audited(case, world, policy, seed)
            elif name == "adlro-preemptive":  # its parts have their twins in their own tests
                kernel, trace = recorded(case, policy, seed)
                plain = run_plain(world, Replay(trace))
            elif simulator.is_compiled(policy.decide):
                kernel = run_kernel(case, policy, seed)
                plain = run_plain(world, make(name, case, seed))
            elif seed % SOLVED == 0:
                recorder = Recorder(policy)
                kernel = run_kernel(case, recorder, seed)
                plain = run_plain(world, Replay(recorder.trace))
            else:
                continue
            assert_same(kernel, plain, f"case {seed}, {name}")


@pytest.fixture(scope="module")
def policy_names():
    """Every policy of the registry: a new one that is compiled needs its plain twin.

    Those in Python are recorded, and what they decided is played in the plain simulator.
    """
    return ANYWHERE


@BLOCKS
def test_random_decisions_recorded_in_the_plain_simulator_replay_in_the_kernel(block):
    for seed in seeds(block):
        case = random_case(seed)
        plain = run_plain(PlainWorld(case), make("script", case, seed))
        assert_same(run_kernel(case, Played(plain.trace), seed), plain, f"case {seed}")


@BLOCKS
def test_random_decisions_recorded_in_the_kernel_replay_in_the_plain_simulator(block):
    for seed in seeds(block):
        case = random_case(seed)
        scribe = Scribe(seed, case.whole, quotas=bool(case.quotas))
        kernel = run_kernel(case, scribe, seed)
        assert_same(kernel, run_plain(PlainWorld(case), Replay(scribe.trace)), f"case {seed}")


def test_the_cases_hold_what_is_rare():
    seen = Counter()
    for seed in range(QUICK.start * BLOCK, QUICK.stop * BLOCK):
        case = random_case(seed)
        world = PlainWorld(case)
        for name in ("script", "fcfs"):
            seen += run_plain(world, make(name, case, seed)).seen
    at_once = [f"{a} with {b}" for a, b in combinations(sorted(EVENT_KINDS), 2)]
    assert {what: seen[what] for what in (*at_once, *RARE) if seen[what] < 5} == {}


def test_the_cases_mix_all_that_a_scenario_may_have():
    cases = [random_case(seed) for seed in range(200)]
    has = {
        "slices": [(case.jobs["share"] < WHOLE).any() for case in cases],
        "saves": [np.isfinite(case.jobs["interval"]).any() for case in cases],
        "events": [len(case.events) > 0 for case in cases],
        "neighbours": [(case.colocation != 1).any() for case in cases],
        "fgd": [case.demands["gpus"].any() for case in cases],
        "in order": [len(case.demands) == 1 and not case.demands["gpus"].any() for case in cases],
        "nothing": [
            len(case.events) == 0 and (case.jobs["share"] == WHOLE).all() for case in cases
        ],
        "whole seconds": [case.whole for case in cases],
        "quotas": [len(case.quotas) > 0 for case in cases],
        "ageing": [case.ageing is not None for case in cases],
        "cycles": [case.tick is not None for case in cases],
        "start delays": [case.jobs["start_delay"].any() for case in cases],
        "gangs on one node": [
            (case.jobs["one_node"] & (case.jobs["gpus"] > 1)).any() for case in cases
        ],
    }
    assert {name: sum(found) >= 40 for name, found in has.items()} == dict.fromkeys(has, True)
    assert max(case.pools["nodes"].max() for case in cases) > 16
