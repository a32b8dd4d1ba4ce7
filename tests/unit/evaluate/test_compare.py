import pytest

from adlro.config import adjusted, find_scenario
from adlro.errors import PolicyError
from adlro.evaluate.compare import Comparison, compare, run_one
from adlro.policies import registry
from adlro.workloads.synthetic import generate, prepare


@pytest.fixture(scope="module")
def setting():
    return prepare(adjusted(find_scenario("paper16"), jobs=60))


def _figures(result: Comparison) -> dict[str, object]:
    """All but the speed of the machine."""
    data = result.model_dump()
    for row in data["policies"]:
        del row["decision_us"]
    return data


def test_one_and_two_threads_give_the_same_figures(setting):
    policies = [registry.load(name, setting) for name in ("fcfs", "random", "min-min")]
    one = compare(setting, policies, range(6), threads=1)
    two = compare(setting, policies, range(6), threads=2)
    assert _figures(one) == _figures(two)


def test_every_policy_is_compared_with_every_other_on_the_same_jobs(setting):
    policies = [registry.load(name, setting) for name in ("fcfs", "sjf", "min-min")]
    result = compare(setting, policies, range(4))
    rows = {row.name: row for row in result.policies}
    assert set(rows["sjf"].versus) == {"fcfs", "min-min"}
    means = {name: row.metrics["mean_jct_s"].mean for name, row in rows.items()}
    versus = rows["fcfs"].versus["min-min"]["mean_jct_pct"]
    assert versus.mean == pytest.approx(100 * (means["fcfs"] / means["min-min"] - 1))
    assert rows["fcfs"].decisions >= rows["fcfs"].real_decisions > 0


def test_every_metric_has_a_paired_interval(setting):
    policies = [registry.load(name, setting) for name in ("fcfs", "min-min")]
    rows = compare(setting, policies, range(3)).policies
    versus = rows[0].versus["min-min"]
    assert {"p99_jct_pct", "gpu_utilisation_pct", "energy_kwh_pct", "hyperscore_pct"} <= set(versus)
    assert versus["p99_jct_pct"].ci95 is not None


def test_two_policies_of_one_name_are_refused(setting):
    twin = registry.load("fcfs", setting)
    with pytest.raises(PolicyError, match="two policies are called 'fcfs'; rename a file"):
        compare(setting, [twin, twin], range(1))


CHEATS = {
    "the jobs": 'jobs["gpus"] = 1',
    "one job": "jobs[queue[0].job].gpus = 1",
    "an estimate": "est[queue[0].job, 0] = 1.0",
    "the cluster": "pools[0].free = 99",
}


@pytest.mark.parametrize("what", CHEATS)
@pytest.mark.parametrize("decorator", ["", "@njit\n"])
def test_a_policy_that_writes_to_the_world_is_refused_and_harms_nobody(
    setting, tmp_path, what, decorator
):
    path = tmp_path / "cheat.py"
    path.write_text(
        "from adlro.compiled import njit\nfrom adlro.model.room import fits, start\n\n\n"
        f"{decorator}def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, "
        "params, memory, out):\n"
        "    if len(queue) == 0:\n        return 0\n"
        f"    {CHEATS[what]}\n"
        "    for p in range(len(pools)):\n"
        "        if eligible[0, p] and fits(jobs[queue[0].job], pools[p], nodes, gpus):\n"
        "            return start(out, queue[0].job, p)\n"
        "    return 0\n"
    )
    workload = generate(setting, 0)
    before = workload.jobs.copy()
    with pytest.raises(PolicyError, match=rf"^{path}:\d+: "):
        run_one(setting, workload, registry.load(str(path), setting), 0)
    assert (workload.jobs == before).all()


def test_progress_is_told_after_each_run(setting):
    ticks = []
    policies = [registry.load(name, setting) for name in ("fcfs", "sjf")]
    compare(setting, policies, range(3), watch=lambda *_: ticks.append(1))
    assert len(ticks) == 6


def test_fcfs_and_static_affinity_are_ten_to_fifteen_times_min_min_on_paper16():
    full = prepare(find_scenario("paper16"))
    names = ("fcfs", "static-affinity", "min-min")
    result = compare(full, [registry.load(name, full) for name in names], range(100))
    jct = [row.metrics["mean_jct_s"].mean for row in result.policies]
    assert 10 < jct[0] / jct[2] < 15
    assert 10 < jct[1] / jct[2] < 15


OWN = """from adlro.model.room import smallest_feasible, start


def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    q, p = smallest_feasible(jobs, est, queue, eligible, pools, nodes, gpus)
    return start(out, queue[q].job, p) if q >= 0 else 0
"""


def test_a_policy_of_ones_own_meets_the_same_rough_weather(tmp_path):
    rough = prepare(adjusted(find_scenario("rough64"), jobs=80))
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    workload = generate(rough, 1)
    before = [array.tobytes() for array in workload]
    own, shipped = (
        run_one(rough, workload, registry.load(name, rough), 1, keep_spans=True)
        for name in (str(path), "pair-sjf")
    )
    assert (own.outcome == shipped.outcome).all()
    assert (own.spans == shipped.spans).all()
    assert [array.tobytes() for array in workload] == before
