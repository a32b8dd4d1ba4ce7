"""The experiment on public traces: fitting uses nothing of the second half."""

import numpy as np
import pytest

from adlro.errors import ConfigError
from adlro.policies import registry
from adlro.workloads.generate import generate
from experiments import common
from experiments.traces import catalogue, halves, run, train

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
    assert run.claimed(intervals) == said


def test_every_trace_is_split_inside_and_all_but_thetagpu_have_two_gpu_models():
    assert all(trace.begin_s < trace.split_s for trace in catalogue.TRACES)
    alone = [trace.name for trace in catalogue.TRACES if len(trace.nodes) == 1]
    assert alone == ["ThetaGPU"]
    assert train.TRACE.name == run.TRAINED


@pytest.mark.slow
def test_the_figures_are_as_expected(tmp_path):
    try:
        folder = common.shared()
    except ConfigError as exc:
        pytest.skip(str(exc))
    absent = [trace.file for trace in catalogue.TRACES if not (folder / trace.file).is_file()]
    if absent:
        pytest.skip(f"{folder}: has no {', '.join(absent)}")
    assert run.main(["--check", "--keep", str(tmp_path)]) == 0
