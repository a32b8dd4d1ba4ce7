import threading

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.errors import PolicyError
from adlro.evaluate import compare as module
from adlro.evaluate.compare import Comparison, Stopped, Until, compare, run_one
from adlro.evaluate.metrics import measure
from adlro.evaluate.references import SeedReferences
from adlro.evaluate.stats import estimate, gap_closed, ratio
from adlro.model.feasibility import smallest_feasible, start
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.workloads.generate import generate
from adlro.workloads.jitter import Jitter, jittered
from adlro.workloads.setting import prepare
from tests.comparisons import STEADY, compared


@pytest.fixture(scope="module")
def setting():
    return prepare(adjusted(find_scenario("paper16"), jobs=60))


def _figures(result: Comparison) -> dict[str, object]:
    """The comparison without figures that depend on the machine's speed."""
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


def test_with_jitter_the_figures_are_means_over_repetitions(setting):
    policy = registry.load("min-min", setting)
    result = compare(setting, [policy], range(2), jitter=Jitter(3, 0.5))
    workloads = [jittered(generate(setting, 1), 0.5, 1, repeat) for repeat in range(3)]
    runs = [run_one(setting, workload, policy, 1) for workload in workloads]
    jcts = [measure(setting, w, r).mean_jct_s for w, r in zip(workloads, runs, strict=True)]
    assert len(set(jcts)) > 1
    assert result.policies[0].per_seed["mean_jct_s"][1] == pytest.approx(np.mean(jcts))
    assert result.policies[0].jitter_sd_pct > 0
    assert (result.jitter.repeats, result.jitter.sigma) == (3, 0.5)


def test_without_jitter_nothing_is_repeated_and_nothing_said(setting):
    result = compare(setting, [registry.load("fcfs", setting)], range(2))
    assert result.jitter is None
    assert result.policies[0].jitter_sd_pct is None
    assert result.policies[0].pooled == {}


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
def test_a_policy_that_modifies_the_world_is_refused_and_affects_no_other(
    setting, tmp_path, what, decorator
):
    path = tmp_path / "cheat.py"
    path.write_text(
        "from adlro.compiled import njit\nfrom adlro.model.feasibility import fits, start\n\n\n"
        f"{decorator}def decide(view, params, memory, out):\n"
        "    jobs, est, queue, pools = view.jobs, view.est, view.queue, view.pools\n"
        "    if len(queue) == 0:\n        return 0\n"
        f"    {CHEATS[what]}\n"
        "    for p in range(len(pools)):\n"
        "        job = jobs[queue[0].job]\n"
        "        if view.eligible[0, p] and fits(job, pools[p], view.nodes, view.gpus):\n"
        "            return start(out, queue[0].job, p)\n"
        "    return 0\n"
    )
    workload = generate(setting, 0)
    before = workload.jobs.copy()
    with pytest.raises(PolicyError, match=rf"^{path}:\d+: "):
        run_one(setting, workload, registry.load(str(path), setting), 0)
    assert (workload.jobs == before).all()


def test_progress_is_reported_after_each_run(setting):
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


OWN = """from adlro.model.feasibility import smallest_feasible, start


def decide(view, params, memory, out):
    q, p = smallest_feasible(view)
    return start(out, view.queue[q].job, p) if q >= 0 else 0
"""


def test_a_user_policy_sees_the_same_failures_and_changes(tmp_path):
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


COUNTING = """from adlro.model.feasibility import smallest_feasible, start

calls = []


def decide(view, params, memory, out):
    if not calls or calls[-1] != memory[0]:
        calls.append(memory[0])
    q, p = smallest_feasible(view)
    return start(out, view.queue[q].job, p) if q >= 0 else 0
"""


def _own(folder, setting, text=COUNTING, name="mine"):
    path = folder / f"{name}.py"
    path.write_text(text)
    return registry.load(str(path), setting)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_users_python_file_runs_its_seeds_one_after_the_other(setting, tmp_path, threads):
    policies = [_own(tmp_path, setting), registry.load("fcfs", setting)]
    result = compare(setting, policies, range(8), threads=threads)
    assert policies[0].decide.__globals__["calls"] == list(range(8))
    assert [row.name for row in result.policies] == ["mine", "fcfs"]
    shipped = compare(setting, [registry.load("pair-sjf", setting)], range(8))
    assert result.policies[0].per_seed == shipped.policies[0].per_seed


def _waiting_for(event, name="ours", file=None):
    """A pair-sjf in plain Python that waits for the event; a user's policy if it has a file."""

    def decide(view, params, memory, out):
        assert event.wait(20)
        q, p = smallest_feasible(view)
        return start(out, view.queue[q].job, p) if q >= 0 else 0

    return Policy(name, decide, np.zeros(0), 0, file, 1, False)


def test_other_policies_do_not_wait_for_a_users_python_file(setting, tmp_path):
    seen, all_seen = [], threading.Event()
    policies = [_waiting_for(all_seen, file=tmp_path / "slow.py"), registry.load("fcfs", setting)]

    def watch(policy, seed, *_):
        if policy.name == "fcfs":
            seen.append(seed)
        if len(seen) == 5:
            all_seen.set()

    compare(setting, policies, range(5), threads=2, watch=watch)
    assert sorted(seen) == list(range(5))


def test_shipped_python_policies_run_in_several_threads(setting):
    both = threading.Barrier(2, timeout=20)
    met = set()

    class Together:
        def wait(self, _):
            if threading.get_ident() not in met:
                met.add(threading.get_ident())
                both.wait()
            return True

    compare(setting, [_waiting_for(Together())], range(2), threads=2)
    assert len(met) == 2


def test_an_error_of_a_shipped_policy_names_it(setting):
    def decide(*_):
        raise PolicyError("the LP has no solution")

    policy = Policy("lp-price", decide, np.zeros(0), 0, None, 1, False)
    with pytest.raises(PolicyError, match=r"^policy lp-price: the LP has no solution$"):
        compare(setting, [policy], range(1))
    lazy = Policy("lazy", lambda *_: 0, np.zeros(0), 0, None, 1, False)
    with pytest.raises(PolicyError, match=r"^policy lazy left 60 jobs waiting"):
        compare(setting, [lazy], range(1))


def test_references_are_asked_once_per_seed_and_policies_are_compared_with_them(setting):
    names = ("fcfs", "min-min", "sjf")
    policies = [registry.load(name, setting) for name in names]
    asked = []

    def references(known, workload, seed):
        asked.append(seed)
        assert known is setting
        look_ahead = float(len(workload.jobs) + seed)  # 60 and more: below any mean JCT here
        return SeedReferences(look_ahead, 50.0 + seed, 40.0 + seed)

    result = compare(setting, policies, range(6), references=references)
    jct = {row.name: np.array(row.per_seed["mean_jct_s"]) for row in result.policies}
    plan = np.arange(60.0, 66.0)
    assert sorted(asked) == list(range(6))
    found = (result.hindsight, result.lower_bound, result.lower_bound_preemptive)
    for reference, values in zip(found, (plan, plan - 10, plan - 20), strict=True):
        assert reference.per_seed == values.tolist()
        assert reference.model_dump(exclude={"per_seed"}) == estimate(values).model_dump()
    for row in result.policies:
        assert row.gap_closed == gap_closed(jct[row.name], jct["min-min"], plan)
        assert row.times_lower_bound == ratio(jct[row.name], plan - 10)
        assert row.seeds_below_look_ahead == 0


def test_the_seeds_on_which_a_policy_is_below_the_look_ahead_are_counted():
    row, rival = compared({"a": STEADY, "b": 2 * STEADY}, look_ahead=[110.0] * 8).policies
    assert (row.seeds_below_look_ahead, rival.seeds_below_look_ahead) == (4, 0)  # 100 90 95 105


def test_policies_that_preempt_are_compared_with_the_bound_that_holds_for_them():
    quiet, stops = compared({"a": STEADY, "b": STEADY}, ("b",), look_ahead=STEADY).policies
    assert quiet.times_lower_bound.mean == pytest.approx(2)
    assert stops.times_lower_bound.mean == pytest.approx(4)


def test_without_references_there_is_nothing_to_compare_with(setting):
    result = compare(setting, [registry.load("min-min", setting)], range(2))
    assert result.hindsight is result.lower_bound is result.lower_bound_preemptive is None
    row = result.policies[0]
    assert row.gap_closed is row.seeds_below_look_ahead is row.times_lower_bound is None


def test_an_undefined_gap_becomes_a_note(setting):
    fcfs, min_min = (registry.load(name, setting) for name in ("fcfs", "min-min"))
    alone = compare(setting, [fcfs], range(2), references=lambda *_: SeedReferences(1.0, 1.0, 1.0))
    assert alone.notes == [
        "Without min-min in the table there is no gap to the look-ahead with foresight."
    ]
    none = compare(
        setting, [min_min], range(2), references=lambda *_: SeedReferences(1e9, 1.0, 1.0)
    )
    assert none.notes == [
        "The look-ahead with foresight is no better than min-min here: there is no gap to close."
    ]
    assert alone.policies[0].gap_closed is none.policies[0].gap_closed is None


def _pair(setting):
    return [registry.load(name, setting) for name in ("pair-sjf", "sjf")]


def test_auto_goes_on_in_batches_until_the_interval_is_narrow(setting):
    looks = []
    until = Until(1.0, 90, lambda seeds, width: looks.append((seeds, width)))
    result = compare(setting, _pair(setting), until)
    counts = [seeds for seeds, _ in looks]
    assert counts == [20, 30, 45, 68, 90][: len(counts)]
    assert result.seeds == counts[-1]
    by_name = {row.name: row for row in result.policies}
    worse, best = sorted(by_name, key=lambda name: -by_name[name].jct)
    shown = by_name[worse].jct_versus(best)
    assert looks[-1][1].policy == worse
    assert looks[-1][1].half == pytest.approx(shown.half_width)
    assert [width.is_narrow for _, width in looks[:-1]] == [False] * (len(looks) - 1)


def test_auto_says_that_width_not_sign_chose_the_number(setting):
    wide = compare(setting, _pair(setting), Until(1000.0))
    assert wide.seeds == 20
    assert wide.notes == [
        "The number of seeds was chosen by the width of the intervals, not by their sign "
        "(± 1000 points, or a tenth of the difference)."
    ]


def test_auto_says_when_it_stopped_at_its_limit(setting):
    result = compare(setting, _pair(setting), Until(1e-9, 25))
    assert result.seeds == 25
    assert "at the limit of 25 seeds" in result.notes[0]
    assert "not by their sign" in result.notes[0]


def test_a_difference_is_narrow_enough_at_a_tenth_of_itself(setting):
    # fcfs and min-min are far apart: + 1 point would take many more seeds
    policies = [registry.load(name, setting) for name in ("fcfs", "min-min")]
    width = []
    compare(setting, policies, Until(1e-9, 20, lambda _, found: width.append(found)))
    assert width[0].policy == "fcfs"
    result = compare(setting, policies, range(20))
    assert width[0].wanted == pytest.approx(result.policies[0].jct_versus("min-min").mean / 10)


def test_auto_with_a_single_policy_uses_its_mean(setting):
    width = []
    until = Until(1e-9, 20, lambda _, found: width.append(found))
    result = compare(setting, [registry.load("sjf", setting)], until)
    figure = result.policies[0].metrics["mean_jct_s"]
    assert width[0].half == pytest.approx(100 * figure.half_width / figure.mean)
    assert f"sjf was known to ± {width[0].half:.2g} % of its mean, not to" in result.notes[0]


def press_ctrl_c(monkeypatch, after):
    """Simulate Ctrl-C after this many complete seeds."""
    real = module._Workers.play

    def play(crew, seeds, done):
        real(crew, seeds[:after], done)
        raise KeyboardInterrupt

    monkeypatch.setattr(module._Workers, "play", play)


def test_ctrl_c_gives_the_comparison_of_the_seeds_that_are_complete(setting, monkeypatch):
    whole = compare(setting, _pair(setting), range(3, 6))
    press_ctrl_c(monkeypatch, after=3)
    with pytest.raises(Stopped) as caught:
        compare(setting, _pair(setting), range(3, 100))
    result = caught.value.result
    assert (result.seeds, result.first_seed) == (3, 3)
    assert result.policies[0].per_seed == whole.policies[0].per_seed
    assert result.notes == ["Stopped by Ctrl-C: these are the first 3 of 97 seeds."]


def test_ctrl_c_with_fewer_than_two_seeds_is_an_ordinary_interrupt(setting, monkeypatch):
    press_ctrl_c(monkeypatch, after=1)
    with pytest.raises(KeyboardInterrupt) as caught:
        compare(setting, _pair(setting), range(100))
    assert not isinstance(caught.value, Stopped)


PREEMPTS_ONCE = """from adlro.model.feasibility import smallest_feasible, start
from adlro.model.state import PREEMPT


def memory(context):
    return 2


def decide(view, params, memory, out):
    if len(view.running) == 2 and memory[1] == 0 and memory[0] == 1:
        memory[1] = 1
        out[0].kind, out[0].job = PREEMPT, view.running[0].job
        return 1
    q, p = smallest_feasible(view)
    return start(out, view.queue[q].job, p) if q >= 0 else 0
"""


def test_a_policy_that_preempts_without_declaring_it_is_listed_as_preemptive(setting, tmp_path):
    policies = [registry.load("fcfs", setting), _own(tmp_path, setting, PREEMPTS_ONCE)]
    result = compare(setting, policies, range(3))  # it does so on seed 1 alone
    assert [row.is_preemptive for row in result.policies] == [False, True]
    assert result.notes == [
        "mine stops running jobs without saying so (PREEMPTIVE = True); it is listed with the "
        "preemptive policies."
    ]
    assert [[row.name for row in rows] for rows in result.tables()] == [["fcfs"], ["mine"]]


def test_a_policy_that_declares_preemption_needs_no_note(setting, tmp_path):
    text = "PREEMPTIVE = True\n" + PREEMPTS_ONCE
    result = compare(setting, [_own(tmp_path, setting, text)], range(1))
    assert result.policies[0].is_preemptive
    assert result.notes == []


def test_failures_are_not_preemptions():
    rough = prepare(adjusted(find_scenario("rough64"), jobs=120))
    result = compare(rough, [registry.load("min-min", rough)], range(4))
    assert result.policies[0].metrics["restarts"].mean > 0
    assert not result.policies[0].is_preemptive
