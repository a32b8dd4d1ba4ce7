"""Laws that hold in every schedule of the kernel, whatever a policy decides, read off its spans."""

from functools import cache
from itertools import pairwise
from math import floor, inf, isfinite

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate.compare import run_one
from adlro.model.state import FAILURE, FINISH, PREEMPTION, REPAIR, SPEED, WHOLE
from adlro.policies import registry
from adlro.sim import simulator
from adlro.sim.world import EmptyCluster
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests import worlds
from tests.looped import every
from tests.plain.cases import Quota, as_workload, random_case, undrained
from tests.plain.recorded import Scribe
from tests.worlds import from_case

EVERY_CASE = every("seed", range(2_000, 2_100), quick=30)


def play(case, seed):
    empty = EmptyCluster(case.pools, case.nodes, case.gpus)
    policy = Scribe(seed, case.whole, quotas=bool(case.quotas))
    return simulator.run(empty, as_workload(case), policy, seed, keep_spans=True)


@cache
def played(seed, drains=True):
    case = random_case(seed) if drains else undrained(random_case(seed))
    return case, play(case, seed)


def out_of_service(case, node, until):
    """When [(from, to)] a node is down."""
    down, since = [], None
    for event in case.events[(case.events["kind"] != SPEED) & (case.events["node"] == node)]:
        if event["kind"] == FAILURE and since is None:
            since = float(event["time"])
        elif event["kind"] == REPAIR and since is not None:
            down.append((since, float(event["time"])))
            since = None
    return down if since is None else [*down, (since, max(until, since))]


@EVERY_CASE
def test_no_gpu_or_node_ever_holds_more_than_it_has(seed):
    case, result = played(seed)
    spans = result.spans[result.spans["end"] > result.spans["start"]]
    jobs, node = case.jobs[spans["job"]], case.gpus["node"][spans["gpu"]]
    sliced = np.where(spans["share"] < WHOLE, jobs["gpu_memory"], 0)
    gpu_memory = case.gpus["free_memory"]
    assert_never_over(spans, spans["gpu"], spans["share"], np.full(len(case.gpus), WHOLE))
    assert_never_over(spans, spans["gpu"], sliced, gpu_memory)
    assert_never_over(spans, node, jobs["cores"], case.nodes["cores"])
    assert_never_over(spans, node, jobs["memory"], case.nodes["memory"])


def assert_never_over(spans, place, amount, most):
    """What is taken of each place adds up to no more than `most` [places] at any time."""
    time = np.concatenate([spans["start"], spans["end"]])
    change = np.concatenate([amount, -amount]).astype(np.int64)
    order = np.lexsort((change, time))  # at one time first give, then take
    taken = np.zeros(len(most), np.int64)
    for k in order:
        taken[place[k % len(spans)]] += change[k]
        assert taken[place[k % len(spans)]] <= most[place[k % len(spans)]]


@EVERY_CASE
def test_a_gpu_that_is_down_runs_nothing(seed):
    case, result = played(seed, drains=False)
    last = result.outcome["finish"].max()
    nodes = case.gpus["node"][result.spans["gpu"]]
    for n in range(len(case.nodes)):
        for low, high in out_of_service(case, n, last):
            own = result.spans[nodes == n]
            assert not ((own["start"] < high) & (own["end"] > low)).any()


@EVERY_CASE
def test_busy_and_idle_time_add_up_to_the_time_that_gpus_are_up(seed):
    case, result = played(seed, drains=False)
    first, last = case.jobs["arrival"][0], result.outcome["finish"].max()
    up = 0.0
    for n, node in enumerate(case.nodes):
        down = [(max(a, first), min(b, last)) for a, b in out_of_service(case, n, last)]
        up += (last - first - sum(max(b - a, 0) for a, b in down)) * node["gpus"]
    busy = ((result.spans["end"] - result.spans["start"]) * result.spans["share"] / WHOLE).sum()
    assert busy == pytest.approx(result.gpus["busy"].sum(), rel=1e-9, abs=1e-9)
    assert busy + result.totals["idle_seconds"] == pytest.approx(up, rel=1e-9, abs=1e-7)


@EVERY_CASE
def test_the_time_of_jobs_in_the_system_is_the_sum_of_their_times(seed):
    case, result = played(seed)
    times = (result.outcome["finish"] - case.jobs["arrival"]).sum()
    assert result.totals["job_seconds"] == pytest.approx(times, rel=1e-9, abs=1e-7)


def runs_of(case, result, j):
    """A job's runs in order: start, end, why, pool, nodes that it stands on."""
    spans = result.spans[result.spans["job"] == j]
    size = int(case.jobs["gpus"][j])
    order = np.lexsort((spans["end"], spans["start"]))
    groups = [spans[order[k : k + size]] for k in range(0, len(spans), size)]
    nodes = [np.unique(case.gpus["node"][group["gpu"]]) for group in groups]
    return [
        (group[0], int(case.nodes["pool"][on[0]]), len(on))
        for group, on in zip(groups, nodes, strict=True)
    ]


@EVERY_CASE
def test_a_gang_starts_and_ends_as_one_and_runs_after_each_other(seed):
    case, result = played(seed)
    for j in range(len(case.jobs)):
        runs = runs_of(case, result, j)
        assert result.outcome["restarts"][j] == len(runs) - 1
        assert [run["why"] == FINISH for run, _, _ in runs] == [False] * (len(runs) - 1) + [True]
        assert all(a["end"] <= b["start"] for (a, _, _), (b, _, _) in pairwise(runs))
        assert result.outcome["start"][j] == runs[0][0]["start"] >= case.jobs["arrival"][j]
        assert result.outcome["finish"][j] == runs[-1][0]["end"]


def working_seconds(job, saved, elapsed):
    """How long a run has worked so far, and until its last complete save (None: none)."""
    elapsed -= job["checkpoint"] if saved else 0
    if elapsed <= 0:
        return 0.0, None
    if job["checkpoint"] < 0 or not isfinite(job["interval"]):
        return elapsed, None
    rounds = floor((elapsed + 1e-9) / (job["interval"] + job["checkpoint"]))
    part = elapsed - rounds * (job["interval"] + job["checkpoint"])
    worked = rounds * job["interval"] + min(max(part, 0), job["interval"])
    return worked, rounds * job["interval"] if rounds else None


def follow(case, result, j):
    """Replay one job's runs by the checkpoint rule: what is left at the end, and what was lost."""
    job, undone, saved, lost = case.jobs[j], 1.0, False, 0.0
    for run, pool, nodes in runs_of(case, result, j):
        home = case.pools[pool]
        factor = 1 + job["communication"] * home["span_cost"] if nodes > 1 else 1
        work = case.seconds[j, home["model"]]
        delayed = max(run["end"] - run["start"] - job["start_delay"], 0.0)
        worked, kept = working_seconds(job, saved, delayed)
        todo = work * undone - worked / factor
        if run["why"] == FINISH:
            return todo, lost, run["end"] - run["start"]
        if job["checkpoint"] < 0:
            lost += work - todo
            undone = 1.0
        elif run["why"] == PREEMPTION:
            undone, saved = todo / work, True
        else:
            at_save = work * undone - (kept or 0.0) / factor
            lost += at_save - todo
            undone, saved = at_save / work, saved or kept is not None
    return inf, lost, inf


@EVERY_CASE
def test_work_is_conserved_across_preemption_and_failure(seed):
    # Without neighbours and speed changes all that slows a run is its span.
    case = random_case(seed)
    events = case.events[case.events["kind"] != SPEED]
    case = case._replace(events=events, colocation=np.ones_like(case.colocation))
    result = play(case, seed)
    for j, outcome in enumerate(result.outcome):
        todo, lost, length = follow(case, result, j)
        assert outcome["lost"] == pytest.approx(lost, rel=1e-9, abs=1e-8)
        if outcome["killed"]:
            assert todo > 0
            assert length == pytest.approx(case.jobs["limit"][j], rel=1e-9)
        else:
            assert todo == pytest.approx(0, abs=1e-8)


LIMITED = every("seed", [s for s in range(2_000, 2_120) if random_case(s).quotas])
POLICIES = ("scribe", "restless", "min-min", "tiresias", "random")


def runs_under(case, quota, spans):
    """Spans of the jobs that a quota is for; a run of no length holds nothing."""
    jobs = case.jobs[spans["job"]]
    own = (jobs["account"] == quota.account) | (jobs["user"] == quota.user)
    return spans[own & (spans["end"] > spans["start"])]


@LIMITED
@pytest.mark.parametrize("policy", POLICIES)
def test_no_quota_is_ever_exceeded(seed, policy):
    case = random_case(seed)
    world = from_case(case)
    ready = Scribe(seed, case.whole, quotas=True) if policy == "scribe" else policy
    spans = worlds.play(world, ready, seed).spans
    total = float((case.pools["size"] * case.pools["worth"]).sum())
    for quota in case.quotas:
        own = runs_under(case, quota, spans)
        pools = case.nodes["pool"][case.gpus["node"][own["gpu"]]]
        models = case.pools["model"][pools]
        for model, most in quota.caps:
            taken = np.where(models == model, own["share"], 0)
            assert_never_over(own, np.zeros(len(own), int), taken, np.array([most * WHOLE]))
        if quota.borrow or quota.share is None:
            continue
        for now in np.unique(own["start"]):
            held = (own["start"] <= now) & (now < own["end"])
            use = float((own["share"] / WHOLE * case.pools["worth"][pools])[held].sum())
            alone = len(np.unique(own["job"][held])) == 1
            assert alone or use <= quota.share * total * (1 + 1e-8)


@every("seed", range(2_000, 2_020))
@pytest.mark.parametrize("policy", ["fcfs", "min-min", "static-affinity", "tiresias"])
def test_quotas_that_limit_nothing_and_endless_patience_change_nothing(seed, policy):
    free = random_case(seed)._replace(quotas=(), ageing=None)
    plenty = 2 * int(free.pools["size"].sum())  # all that runs and any one job
    caps = tuple((m, plenty) for m in range(free.est.shape[1]))
    loose = (Quota(0, None, 1.0, caps, True), Quota(None, 1, None, caps, True))
    bound = free._replace(quotas=loose, ageing=1e9)
    one, other = (worlds.play(from_case(case), policy, seed).outcome for case in (free, bound))
    assert (one == other).all()


@pytest.mark.parametrize(("policy", "limit_h"), [("pair-sjf", 2), ("max-min", 2)])
def test_ageing_shortens_the_longest_wait(policy, limit_h):
    waits = []
    for ageing in (0, limit_h):
        setting = prepare(adjusted(find_scenario("paper16"), load=0.95, ageing_h=ageing, jobs=200))
        workload = generate(setting, 1)
        outcome = run_one(setting, workload, registry.load(policy, setting), 1).outcome
        waits.append(float((outcome["start"] - workload.jobs["arrival"]).max()))
    assert waits[1] < 0.8 * waits[0]
