"""The experiment on quantiles of predicted run times."""

import numpy as np
import pytest
from traces.cell import Cell  # as run.py imports them
from traces.store import PolicyFigures

from adlro.errors import ConfigError
from experiments import common
from experiments.risk import run


def cells(**best):
    """Cells of six windows in which each policy is shortest with the quantile given for it."""

    def figures(policy, quantile):
        jct = 100 * (1 + abs(quantile - best[policy.replace("-", "_")]))
        return PolicyFigures(
            fingerprint="", jct_s=[jct] * 6, p99_s=[jct] * 6, gang_jct_s=[],
            jitter_sd_pct=[1.0] * 6, gpu_utilisation=[0.5] * 6, mean_wait_s=[1.0] * 6, outside=None,
        )  # fmt: skip

    return {
        q: Cell(
            stretch=1.0, load=0.9, assumptions=[],
            policies={policy: figures(policy, q) for policy in run.POLICIES},
        )
        for q in run.QUANTILES
    }  # fmt: skip


def test_the_best_quantile_is_that_of_the_windows_for_tuning():
    found = cells(min_min=0.2, drain_argmin=0.5, adlro=0.9)
    assert [run.best_quantile([found], policy) for policy in run.POLICIES] == [0.2, 0.5, 0.9]
    spoilt = found[0.9].policies["adlro"].model_copy(update={"jct_s": [900.0, 1, 1, 900.0, 1, 1]})
    found[0.9].policies["adlro"] = spoilt  # good on the windows for claims only
    assert run.best_quantile([found], "adlro") == 0.8


def test_the_median_is_the_plain_estimate_and_others_are_named_by_their_quantile():
    assert [run.estimates(q) for q in (0.5, 0.8)] == ["memory", "memory:0.8"]


def test_a_line_has_the_change_against_the_median_for_every_quantile():
    line = run._lines({"toy": cells(min_min=0.5, drain_argmin=0.5, adlro=0.5)})[0]
    assert line[:2] == ["min-min", "claims"]
    assert line[2 + run.QUANTILES.index(0.5)] == "-"
    change = 100 * abs(0.9 - 0.5)
    assert line[2 + run.QUANTILES.index(0.9)].startswith(f"{change:+.1f} %")
    assert np.isclose(float(line[-2]), 0.5)


@pytest.mark.slow
def test_the_figures_of_small_traces_are_as_expected(tmp_path):
    try:
        folder = common.shared()
    except ConfigError as exc:
        pytest.skip(str(exc))
    traces = [trace for trace in run.TRACES if trace.name in run.QUICK]
    absent = [trace.file for trace in traces if not (folder / trace.file).is_file()]
    if absent:
        pytest.skip(f"{folder}: has no {', '.join(absent)}")
    result = run.make(traces, run.Way(tmp_path, False, run.Jitter(run.REPEATS)))
    expected = common.load_expected(run.FOLDER / "expected.json")
    names = tuple(f"{trace.name}," for trace in traces)
    wanted = [figure for figure in expected.figures if figure.row.startswith(names)]
    assert len(wanted) == len(traces) * len(run.QUANTILES) * len(run.POLICIES)
    assert common.misses(result.figures, expected.model_copy(update={"figures": wanted})) == []
