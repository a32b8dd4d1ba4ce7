"""The baseline simulators do the same work as the kernel, and figures state what was measured."""

import io
import re
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from pydantic import ValidationError
from rich.console import Console

from adlro.config.files import find_scenario
from adlro.errors import OutputError, PolicyError
from adlro.policies import registry
from adlro.sim import simulator
from adlro.sim.world import EmptyCluster
from adlro.workloads.formats.registry import read
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from bench import (
    baseline_simulators,
    clock,
    clone,
    importing,
    learning,
    measure,
    million,
    plain,
    round_trip,
    size,
    with_simpy,
)
from bench.__main__ import _table, command
from bench.figure import Bar, Figure, figure, ratio
from bench.fixture import fixture_of
from bench.measure import Effort, Report
from bench.size import TimeBudget
from bench.world import take_pools, take_tasks
from tests.looped import every

TINY = Effort(
    seeds=1,
    repeats=1,
    clones=10,
    runs=4,
    warm_starts=1,
    help_rounds=1,
    sizes=(100, 200),
    imported=500,
    budget=TimeBudget(repeats=1, longest_s=0.01),
    learning=learning.TrainingSteps(ours=512, theirs=40),
)
SCENARIOS = ("paper16", "paper16-single", "paper16-surge")


def both(scenario, policy, seed, run):
    """Return the kernel's result and a baseline simulator's schedule of the same jobs."""
    setting = prepare(find_scenario(scenario))
    empty = EmptyCluster(setting.layout.pools, setting.layout.nodes, setting.layout.gpus)
    workload = generate(setting, seed)
    ours = simulator.run(empty, workload, registry.load(policy, setting), seed)
    return ours, run(take_tasks(workload, empty), take_pools(empty))


def assert_same(ours, theirs):
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(ours.outcome["start"], theirs.start, **close)
    np.testing.assert_allclose(ours.outcome["finish"], theirs.finish, **close)
    np.testing.assert_array_equal(ours.outcome["pool"], theirs.pool)
    np.testing.assert_array_equal(ours.outcome["nodes"], theirs.nodes)
    np.testing.assert_allclose(ours.gpus["busy"], theirs.busy, **close)
    np.testing.assert_allclose(ours.totals["job_seconds"], theirs.job_seconds, **close)
    np.testing.assert_allclose(ours.totals["idle_seconds"], theirs.idle_seconds, **close)
    for key in ("events", "decisions", "real_decisions"):
        assert ours.totals[key] == getattr(theirs, key)


@every("seed", range(5))
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("policy", plain.POLICIES)
def test_the_heapq_simulator_gives_the_kernels_schedule_and_totals(policy, scenario, seed):
    choose = plain.POLICIES[policy]
    assert_same(*both(scenario, policy, seed, lambda t, p: plain.run(t, p, choose)))


@every("seed", range(5))
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_simpy_simulator_gives_the_kernels_schedule_and_totals(scenario, seed):
    assert_same(*both(scenario, "fcfs", seed, with_simpy.run))


def test_the_heapq_simulator_releases_everything_it_allocated():
    setting = prepare(find_scenario("paper16"))
    empty = EmptyCluster(setting.layout.pools, setting.layout.nodes, setting.layout.gpus)
    pools = take_pools(empty)
    plain.run(take_tasks(generate(setting, 0), empty), pools, plain.fcfs)
    assert pools == take_pools(empty)


def test_the_heapq_simulator_refuses_a_start_that_does_not_fit():
    def always_the_first_option(now, tasks, queue, running, pools):
        return (queue[0], tasks[queue[0]].options[0]) if queue else None

    with pytest.raises(PolicyError, match="no room"):
        both("paper16", "fcfs", 0, lambda t, p: plain.run(t, p, always_the_first_option))


def test_the_heapq_simulator_refuses_to_start_a_job_that_is_not_waiting():
    def the_last_job(now, tasks, queue, running, pools):
        return len(tasks) - 1, tasks[-1].options[0]

    with pytest.raises(PolicyError, match="not waiting"):
        both("paper16", "fcfs", 0, lambda t, p: plain.run(t, p, the_last_job))


def test_speeds_of_simulators_that_disagree_are_not_compared():
    ours, theirs = both("paper16", "fcfs", 0, with_simpy.run)
    with pytest.raises(ValueError, match="disagree on the finish"):
        baseline_simulators.check_same(
            ours, theirs._replace(finish=[f * (1 + 1e-6) for f in theirs.finish])
        )


@pytest.mark.parametrize(
    ("bar", "value", "holds", "text"),
    [
        (Bar(">=", 3e6), 3e6, True, ">= 3,000,000"),
        (Bar(">=", 20), 19.9, False, ">= 20"),
        (Bar("<", 0.5), 0.5, False, "< 0.5"),
        (Bar("<", 5), 4.9, True, "< 5"),
    ],
)
def test_a_bar_is_met_or_missed(bar, value, holds, text):
    assert figure("x", value, "s", bar) == Figure(
        name="x", value=value, unit="s", bar=text, holds=holds
    )


def test_a_ratio_carries_both_sides():
    assert ratio("x", 30.0, 4.0, "x") == Figure(name="x", value=7.5, unit="x", ours=30, theirs=4)


def test_a_figure_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        figure("x", 1.0, "s").value = 2.0


def test_setups_alternate_and_the_shortest_time_counts():
    order, ticks = [], iter([0, 5, 5, 6, 10, 12, 20, 24])

    def side(name):
        return lambda: lambda: order.append(name)

    assert clock.best_times([side("a"), side("b")], 2, lambda: next(ticks)) == [2, 1]
    assert order == ["a", "b", "a", "b"]


def test_the_error_of_a_failed_program_includes_its_output():
    with pytest.raises(RuntimeError, match=r"status 1.*oops"):
        clock.program([sys.executable, "-c", "import sys; sys.exit('oops')"], {})


def test_cloned_states_have_the_same_queue_length_for_any_number_of_jobs():
    few, many = clone.mid_run(400), clone.mid_run(4000)
    assert few.totals["waiting"] == many.totals["waiting"] == clone.WAITING
    assert few.totals["events"] >= 400
    assert many.totals["events"] >= 4000


def check_figures(figures):
    """Check any figures: names are unique, ratios match their sides, JSON loses nothing."""
    names = [each.name for each in figures]
    assert len(set(names)) == len(names)
    small = ("waiting", "exponent")  # may be nothing on small clusters
    assert all(each.value > 0 for each in figures if not each.name.endswith(small))
    ratios = [each for each in figures if each.ours is not None]
    assert [each.value for each in ratios] == [each.ours / each.theirs for each in ratios]
    assert {"fcfs, kernel / heapq", "fcfs, kernel / simpy"} <= {each.name for each in ratios}
    report = measure.report(figures, TINY)
    assert Report.model_validate_json(report.model_dump_json()) == report
    return ratios


def test_the_quick_steps_run_from_end_to_end():
    # Without those that compile kernels of their own: these run in the slow test below.
    quick = re.compile(r"fcfs: (speed|beside \w+)|telemetry|import: csv|adlro: a decision")
    steps = [step for step in measure.in_process(TINY) if quick.fullmatch(step.about)]
    assert len(steps) == 6
    check_figures([each for step in steps for each in step.measure()])


@pytest.mark.slow
def test_all_steps_in_this_process_run_from_end_to_end():
    figures = [each for step in measure.in_process(TINY) for each in step.measure()]
    ratios = check_figures(figures)
    assert sum(each.name.startswith("min-min, 200 GPUs / 100") for each in ratios) == 1
    real = {each.name: each.bar for each in figures if each.name.endswith("a real decision")}
    assert real == {
        "drain-argmin, load 0.8: a real decision": "< 6",
        "adlro, load 0.95: a real decision": "< 10",
    }
    training = {each.name: each.bar for each in figures if each.name.startswith("paper-dqn, MLP")}
    assert training == {"paper-dqn, MLP / stable-baselines3": ">= 20"}


@pytest.mark.parametrize(("gpus", "there"), [(100, 92), (1_000, 996), (10_000, 10_000)])
def test_a_cluster_of_each_size_has_every_pool_of_datacenter(gpus, there):
    whole = prepare(find_scenario("datacenter")).layout
    layout = prepare(size.sized(gpus, 50)).layout
    assert len(layout.gpus) == there
    assert layout.pool_names == whole.pool_names
    assert layout.pools["node_gpus"].tolist() == whole.pools["node_gpus"].tolist()


def test_every_size_has_the_same_jobs_except_for_arrival_times():
    small, large = (generate(prepare(size.sized(gpus, 300)), 0) for gpus in (100, 1_000))
    for key in set(small.jobs.dtype.names) - {"arrival"}:
        np.testing.assert_array_equal(small.jobs[key], large.jobs[key])
    assert small.jobs["arrival"][-1] > 5 * large.jobs["arrival"][-1]
    assert small.jobs["gpus"].max() == 16


def test_a_policy_is_measured_on_all_jobs_unless_it_is_slow():
    on = fixture_of(size.sized(100, 640))
    fast = size.policy_cost(on, "fcfs", TimeBudget(repeats=1, longest_s=60.0))
    slow = size.policy_cost(on, "fcfs", TimeBudget(repeats=1, longest_s=0.0))
    assert (fast.gpus, fast.jobs, slow.jobs) == (92, 640, 10)
    assert fast.decision_us > 0


def test_growth_can_meet_its_bar_only_if_all_jobs_were_run():
    short, long = (
        size.growth("fcfs", (100, 200), TimeBudget(repeats=1, longest_s=limit))[-2:]
        for limit in (0.0, 60.0)
    )
    assert [each.name.endswith(("at least", "exponent")) for each in short] == [True, True]
    assert {each.holds for each in short} <= {None, False}
    assert [each.name for each in long] == [
        "fcfs, 200 GPUs / 100",
        "fcfs, 200 GPUs / 100: exponent",
    ]
    assert [each.bar for each in long] == ["< 2", "< 1"]


def test_waiting_is_a_time_average_over_the_arrival_period():
    on = fixture_of(size.sized(100, 500))
    jobs = on.workloads[0].jobs
    start = simulator.run(on.empty, on.workloads[0], on.policy("fcfs")).outcome["start"]
    times = np.linspace(jobs["arrival"][0], jobs["arrival"][-1], 20_001)
    arrived = np.searchsorted(jobs["arrival"], times, side="right")
    begun = np.searchsorted(np.sort(start), times, side="right")
    cost = size.policy_cost(on, "fcfs", TimeBudget(repeats=1, longest_s=60.0))
    assert cost.waiting == pytest.approx((arrived - begun).mean(), rel=0.01)


def test_many_jobs_are_run_in_a_process_of_their_own():
    figures = {each.name: each for each in million.in_own_process("fcfs", 500)}
    what = "fcfs, 500 jobs x 10,000 GPUs"
    assert list(figures) == [f"{what}: {row}" for row in ("run", "drawing the jobs", "peak memory")]
    assert figures[f"{what}: run"].bar == "< 60"
    assert 0.05 < figures[f"{what}: peak memory"].value < 4


def test_the_error_of_a_failed_process_includes_its_output():
    with pytest.raises(RuntimeError, match=r"(?s)status 1.*unknown policy 'nothing'"):
        million.in_own_process("nothing", 10)


def test_a_million_jobs_are_left_out_of_a_quick_measurement():
    named = {full: measure.steps(TINY._replace(million=full)) for full in (False, True)}
    more = [step.about for step in named[True] if "million" in step.about]
    assert more == ["fcfs: a million jobs", "pair-sjf: a million jobs"]
    assert len(named[False]) == len(named[True]) - 2
    assert (Effort().million, measure.QUICK.million) == (True, False)


def test_a_round_of_telemetry_is_read_completely():
    sample = round_trip.read(*round_trip.answers(20))
    assert sample.host == ("node0000",) * 8 + ("node0001",) * 8 + ("node0002",) * 4
    np.testing.assert_array_equal(
        sample.values[19], [0.84, *[np.nan] * 2, 0.506252, 68, 218.751, np.nan]
    )
    assert sample.notes == ()
    assert sample.age.tolist() == pytest.approx([3.0] * 20, abs=0.002)
    (figure,) = round_trip.parsing(20, 1)
    assert (figure.unit, figure.bar) == ("ms", "< 50")


@pytest.mark.parametrize("name", importing.FORMATS)
def test_the_benchmark_writes_complete_histories_in_each_format(tmp_path, name):
    path = tmp_path / "jobs.txt"
    importing.write(path, importing.FORMATS[name], 200)
    found = read(path)
    assert (found.header.format, found.jobs) == (name, 200)
    assert not np.isnan(found.run_s + found.requested_s + found.start_s).any()
    assert found.header.defects == {}


@pytest.mark.slow
def test_importing_is_compared_with_pandas_if_installed():
    alone, beside = importing.speed("csv", 50, 1)
    assert (alone.bar, beside.theirs is not None) == (">= 200,000", True)


def test_importing_is_measured_alone_without_pandas(monkeypatch):
    monkeypatch.setattr(importing, "has_pandas", lambda: False)
    assert [one.name for one in importing.speed("csv", 50, 1)] == ["import of csv"]


def test_without_simpy_its_rows_are_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "simpy", None)
    assert not any("simpy" in step.about for step in measure.in_process(TINY))
    assert "simpy" not in measure.report([], TINY).packages


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path):
    result = CliRunner().invoke(command, ["--json", str(tmp_path / "nowhere" / "bench.json")])
    assert isinstance(result.exception, OutputError)


@pytest.mark.parametrize("width", [120, 100])
def test_names_and_figures_stay_on_one_line_however_long_a_unit_is(width):
    unit = f"x, of {learning._UNIT}"
    names = ("paper-dqn, MLP / stable-baselines3", "adlro --help / import numpy", "fcfs: run")
    rows = [ratio(name, 1234567.0, 12345.0, unit, Bar(">=", 2e5)) for name in names]
    console = Console(width=width, file=io.StringIO())
    console.print(_table(rows))
    for name in names:
        line = rf"^  {re.escape(name)} +100 +\S.* 1,234,567 +12,345 +>= 200,000 +misses *$"
        assert re.search(line, console.file.getvalue(), re.MULTILINE)


@pytest.mark.slow
def test_the_command_prints_a_table_and_writes_all_figures(tmp_path):
    file = tmp_path / "bench.json"
    result = CliRunner().invoke(command, ["--quick", "--json", str(file)])
    assert result.exit_code == 0
    assert "adlro --help / import numpy" in result.stdout
    report = Report.model_validate_json(file.read_text())
    assert report.figures[-1].bar == "< 0.5"
