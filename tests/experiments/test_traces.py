"""The experiment on public traces: fitting uses nothing of the second half."""

import numpy as np
import pytest

from adlro.errors import ConfigError
from adlro.evaluate.compare import compare, run_one
from adlro.policies import registry
from adlro.workloads.generate import generate
from adlro.workloads.jitter import Jitter, jittered
from experiments import common
from experiments.traces import catalogue, cell, halves, look, run, store, tables, train

SPLIT_S, END_S, EVERY_S = 2000, 4000, 10
TRACE = halves.Trace(
    "toy", "jobs.csv", 0.0, SPLIT_S, 40, {"V100 32GB": (2, 4, 64, 512), "K80": (2, 4, 64, 512)}, ""
)
HEAD = "id,submit_time,run_s,gpus\n"
TUNED = ("lp-sjf", "static-affinity-lp")  # they look at what jobs are like


def row(second, run_s, gpus):
    return f"j{second},{second},{run_s},{gpus}\n"


def half(first, last, seed):
    """One job every EVERY_S seconds from `first` on."""
    rng = np.random.default_rng(seed)
    return "".join(
        row(second, int(rng.integers(20, 300)), int(rng.choice([1, 2, 4])))
        for second in range(first, last, EVERY_S)
    )


def played(folder, first, second, speeds="measured-mix"):
    """The fit and the evaluated setting of a file with these halves."""
    path = folder / "jobs.csv"
    path.write_text(HEAD + first + second)
    fit = halves.fitted(TRACE, path, speeds)
    return fit, halves.measured(TRACE, path, speeds, fit)


FIRST, SECOND = half(0, SPLIT_S, 1), half(SPLIT_S, END_S, 2)
OTHER_FIRST, OTHER_SECOND = half(0, SPLIT_S, 3), half(SPLIT_S, END_S + 2000, 4)
LONGER_SECOND = SECOND + row(END_S, 9_999, 8)


@pytest.mark.parametrize("speeds", halves.SPEEDS)
@pytest.mark.parametrize("second", [OTHER_SECOND, LONGER_SECOND])
def test_the_fit_does_not_depend_on_the_second_half(tmp_path, speeds, second):
    before, _ = played(tmp_path, FIRST, SECOND, speeds)
    after, _ = played(tmp_path, FIRST, second, speeds)
    assert (after.stretch, after.requested_s) == (before.stretch, before.requested_s)
    assert after.setting.capacity_per_s == before.setting.capacity_per_s
    assert after.setting.type_shares.tobytes() == before.setting.type_shares.tobytes()
    assert generate(after.setting, 3).jobs.tobytes() == generate(before.setting, 3).jobs.tobytes()
    for name in TUNED:
        ready = [registry.load(name, fit.setting).params for fit in (before, after)]
        assert ready[0].tobytes() == ready[1].tobytes()


def test_the_fit_depends_on_the_first_half(tmp_path):
    before, _ = played(tmp_path, FIRST, SECOND)
    after, _ = played(tmp_path, OTHER_FIRST, SECOND)
    assert after.stretch != before.stretch


def test_the_windows_cover_the_second_half(tmp_path):
    _, setting = played(tmp_path, FIRST, SECOND, "none")
    assert halves.windows(setting) == 5  # 200 jobs by 40
    jobs = [generate(setting, seed) for seed in range(5)]
    runs = np.concatenate([one.seconds[:, 0] for one in jobs])
    assert runs.tolist() == [float(line.split(",")[2]) for line in SECOND.splitlines()]


def test_the_evaluated_jobs_do_not_depend_on_the_first_half(tmp_path):
    _, before = played(tmp_path, FIRST, SECOND)
    _, after = played(tmp_path, OTHER_FIRST, SECOND)
    for seed in range(halves.windows(before)):
        ours, theirs = generate(before, seed), generate(after, seed)
        assert ours.seconds.tobytes() == theirs.seconds.tobytes()
        assert ours.jobs["gpus"].tolist() == theirs.jobs["gpus"].tolist()


def test_both_halves_are_stretched_by_the_factor_of_the_first(tmp_path):
    fit, setting = played(tmp_path, FIRST, SECOND)
    assert fit.setting.scenario.load == halves.LOAD
    for one in (fit.setting, setting):
        between = np.diff(generate(one, 0).jobs["arrival"])
        assert between.tolist() == pytest.approx([EVERY_S * fit.stretch] * 39)


def test_training_sees_the_first_half_only(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(HEAD + FIRST + SECOND)
    wanted = train.scenario(TRACE._replace(window=40), path, "none")
    assert (wanted.history.from_s, wanted.history.to_s) == (0.0, SPLIT_S)


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        ([(-3, -1), (-2, -0.1), (-9, -5)], "shorter"),
        ([(3, 4), (0.1, 9), (1, 2)], "longer"),
        ([(-3, -1), (-2, 0.1), (-9, -5)], "nothing"),
        ([(-3, -1), (1, 2), (-9, -5)], "nothing"),
        ([(-3, -1), (-2, 0.0), (-9, -5)], "nothing"),
        ([(-3, -1), None, (-9, -5)], "nothing"),
    ],
)
def test_a_difference_is_claimed_only_where_all_assumptions_agree(intervals, said):
    assert tables.claimed(intervals) == said


def test_every_trace_is_split_inside_and_all_but_thetagpu_have_two_gpu_models():
    assert all(trace.begin_s < trace.split_s for trace in catalogue.TRACES)
    alone = [trace.name for trace in catalogue.TRACES if len(trace.nodes) == 1]
    assert alone == ["ThetaGPU"]
    assert train.TRACE.name == run.TRAINED


def test_every_third_window_is_for_tuning_and_never_for_claims():
    assert [halves.is_for_tuning(window) for window in range(6)] == [True, False, False] * 2
    logs = np.arange(7.0)
    assert tables.of_part(logs, "tuning").tolist() == [0, 3, 6]
    assert tables.of_part(logs, "claims").tolist() == [1, 2, 4, 5]


@pytest.fixture(scope="module")
def toy_cells(tmp_path_factory):
    """Cells of the toy trace under all assumptions."""
    folder = tmp_path_factory.mktemp("toy")
    path = folder / "jobs.csv"
    path.write_text(HEAD + FIRST + SECOND)
    way = cell.Way(folder, True, Jitter(2))
    names = ["min-min", "adlro", *tables.OTHERS]
    return {
        (speeds, estimates): cell.play(TRACE, path, (speeds, estimates), names, way)
        for speeds in halves.SPEEDS
        for estimates in halves.ESTIMATES
    }, (path, names, way)


def test_a_cell_has_means_over_repetitions_of_every_window(toy_cells):
    cells, (path, names, _) = toy_cells
    found = cells["none", "oracle"]
    assert set(found.policies) == set(names)
    fit = halves.fitted(TRACE, path, "none")
    setting = halves.measured(TRACE, path, "none", fit)
    policy = registry.load("min-min", fit.setting)
    plain = generate(setting, 1)
    jcts, by_gang = [], []
    for repeat in range(2):
        workload = jittered(plain, 0.01, 1, repeat)
        finish = run_one(setting, workload, policy, 1).outcome["finish"]
        jct = finish - workload.jobs["arrival"]
        jcts.append(jct.mean())
        by_gang.append(jct[workload.jobs["gpus"] == 1].mean())
    own = found.policies["min-min"]
    assert own.jct_s[1] == pytest.approx(np.mean(jcts))
    assert own.gang_jct_s[0][1] == pytest.approx(np.mean(by_gang))
    assert own.gang_jct_s[4] == [None] * 5  # nobody asks for more than 16


def test_a_stored_cell_is_used_again_only_if_nothing_changed(toy_cells, capsys):
    cells, (path, names, way) = toy_cells
    again = cell.play(TRACE, path, ("none", "oracle"), names, way)
    assert capsys.readouterr().err == ""
    assert again == cells["none", "oracle"]
    cell.play(TRACE, path, ("none", "oracle"), ["min-min"], way._replace(jitter=Jitter(3)))
    assert "5 windows x 3: min-min" in capsys.readouterr().err
    back = cell.play(TRACE, path, ("none", "oracle"), names, way)
    assert "5 windows x 2: min-min\n" in capsys.readouterr().err
    assert back == again


def test_a_result_depends_on_the_code_of_decisions_and_not_on_that_of_estimates():
    modules = store._modules_of("adlro")
    assert {"adlro.planning.drain", "adlro.features.start_kernel", "adlro.sim.kernel"} <= {*modules}
    assert not any(name.startswith("adlro.estimates") for name in modules)
    assert "adlro.planning.drain" not in store._modules_of("min-min")
    assert store._modules_of("trained-none") == modules


def test_every_table_keeps_windows_for_tuning_and_for_claims_apart(toy_cells):
    cells, _ = toy_cells
    found = {"toy": cells}
    shown = tables.further_tables([TRACE], found)
    whole = ("What was played", "What is assumed")  # facts of a trace: no figure of a policy
    assert sum(table.caption.startswith(whole) for table in shown) == 2
    for table in shown:
        if not table.caption.startswith(whole):
            assert table.head[0] == "part"
            assert {line[0] for line in table.lines} == {"claims", "tuning"}
    lines = tables.against(found, "adlro", "min-min", "jct_s")
    assert [line[:3] for line in lines] == [
        ["claims", "toy", "3"],
        ["claims", "**pooled**", "3"],
        ["tuning", "toy", "2"],
        ["tuning", "**pooled**", "2"],
    ]


def test_a_pooled_figure_is_the_mean_over_windows_and_assumptions_on_speeds(toy_cells):
    cells, _ = toy_cells
    by_speeds = [cells[s, "memory"].log_ratios("adlro", "min-min") for s in halves.SPEEDS]
    wanted = 100 * np.expm1(np.mean(by_speeds, axis=0)[[1, 2, 4]].mean())
    line = tables.against({"toy": cells}, "adlro", "min-min", "jct_s")[0]
    assert line[4].startswith(f"{wanted:+.1f} %")


def test_an_unknown_trace_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"no trace 'Phily'; there are Philly, Helios Venus"):
        run.chosen("Phily")


CHEAP = "openb,ITP 02,ThetaGPU"  # the others take an hour


@pytest.mark.slow
def test_the_figures_of_the_smaller_traces_are_as_expected(tmp_path):
    try:
        folder = common.shared()
    except ConfigError as exc:
        pytest.skip(str(exc))
    traces = run.chosen(CHEAP)
    absent = [trace.file for trace in traces if not (folder / trace.file).is_file()]
    if absent:
        pytest.skip(f"{folder}: has no {', '.join(absent)}")
    result = run.make(traces, cell.Way(tmp_path, False, Jitter(run.REPEATS)))
    expected = common.load_expected(run.FOLDER / "expected.json")
    names = tuple(f"{trace.name}," for trace in traces)
    wanted = [figure for figure in expected.figures if figure.row.startswith(names)]
    assert len(wanted) == 27 * len(run.POLICIES)
    assert common.misses(result.figures, expected.model_copy(update={"figures": wanted})) == []


def test_only_windows_for_tuning_are_looked_at(tmp_path, monkeypatch):
    path = tmp_path / "jobs.csv"
    path.write_text(HEAD + FIRST + OTHER_SECOND)
    seen = []

    def watched(setting, policies, seeds, jitter):
        seen.extend(seeds)
        return compare(setting, policies, seeds, jitter=jitter)

    monkeypatch.setattr(look, "compare", watched)
    found = look.ratios(TRACE, path, "oracle", ["min-min", "drain-argmin", "fcfs"])
    assert set(seen) == {0, 3, 6, 9}
    assert found["min-min"]["min-min"].tolist() == [0, 0, 0, 0]
    assert found["fcfs"]["drain-argmin"] == pytest.approx(
        found["fcfs"]["min-min"] - found["drain-argmin"]["min-min"]
    )
    said = look.line("fcfs", {"toy": found})
    worst = np.exp(max(found["fcfs"]["min-min"].max(), found["fcfs"]["drain-argmin"].max()))
    assert f"worst window {worst:.2f} of the better one" in said
