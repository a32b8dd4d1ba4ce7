"""The experiment on inputs: what is trained, on what it is measured, and what its tables say."""

import functools

import pytest

pytest.importorskip("torch")

from adlro.features.start_kernel import FEATURES, KINDS, PLAIN
from adlro.train import episode_seeds
from experiments.inputs import run, variants
from tests import toys
from tests.comparisons import STEADY, compared


def test_trainings_differ_in_what_the_network_looks_at_and_in_nothing_else():
    found = variants.variants()
    assert [one.key for one in found[:4]] == [
        "reference, run 1", "telemetry, run 1", "sketches, run 1", "both, run 1",
    ]  # fmt: skip
    assert [one.run for one in found] == [1] * 4 + [2] * 4
    looks = [one.recipe.fit.features for one in found[:4]]
    assert looks[0] == PLAIN
    assert looks[1] == (*PLAIN, *KINDS["telemetry"])
    assert looks[2] == (*PLAIN, *KINDS["sketches"])
    assert looks[3] == FEATURES
    bare = [one.recipe.model_copy(update={"fit": found[0].recipe.fit}) for one in found]
    assert all(recipe == found[0].recipe for recipe in bare)


def test_all_but_the_reference_take_its_labels():
    assert [one.shares_labels for one in variants.variants()[:4]] == [False, True, True, True]


def test_every_case_has_telemetry_and_is_played_with_both_kinds_of_estimates():
    cases = run.cases(is_quick=False)
    assert all(case.scenario.telemetry for case in cases)
    names = {case.name.removesuffix(f", {case.source}") for case in cases}
    assert names == {
        "paper16, load 0.8", "paper16, load 0.95", "drift16, load 0.8", "drift16, load 0.95",
        "rough64",
    }  # fmt: skip
    for source in ("oracle", "memory"):
        own = [case for case in cases if case.source == source]
        assert [len(case.seeds) for case in own] == [500, 500, 200, 200, 200]
        assert {case.scenario.estimates.source for case in own} == {source}


def test_no_seed_of_a_case_is_one_of_training_or_selection():
    for case in run.cases(is_quick=False):
        assert case.seeds[-1] < min(episode_seeds.SELECTION[0], 10_000)


SHARES = {  # mean JCT on each seed, as a share of min-min's
    "min-min": 1.0, "drain-argmin": 0.96, "adlro": 0.9, "reference, run 1": 0.94,
    "reference, run 2": 0.96, "other, run 1": 0.893, "other, run 2": 0.9984,
}  # fmt: skip


@functools.cache
def summed_up():
    rows = compared({name: share * STEADY for name, share in SHARES.items()})
    names = [(name, k) for k in (1, 2) for name in ("reference", "other")]
    trainings = [variants.Variant(name, k, toys.tiny(), False) for name, k in names]
    found = [run.Found(case, rows) for case in run.cases(is_quick=False)]
    return run.summed_up(found, trainings)


def test_the_main_table_is_about_the_reference():
    lines = {line[0]: line[1:] for line in summed_up().table}
    assert list(lines) == ["other", "*drain-argmin*", "*adlro*"]
    # The means of two runs: 0.9457 / 0.95 - 1 = -0.45 %; 0.9 / 0.95 - 1 = -5.3 %.
    assert lines["other"] == ["-0.5 % (-0.5 to -0.5)"] * 5
    assert lines["*adlro*"] == ["-5.3 % (-5.3 to -5.3)"] * 5
    assert all("oracle" in name for name in summed_up().head[1:])


def test_runs_are_compared_with_the_reference_s_run_of_the_same_number():
    memory, alone, *_ = summed_up().more
    assert all("memory" in name for name in memory.head[1:])
    # 0.893 / 0.94 - 1 = -5.0 %, 0.9984 / 0.96 - 1 = +4.0 %
    assert alone.lines == [["other", *["-5.0, +4.0"] * 5]]


def test_the_last_tables_are_about_min_min():
    by_oracle = summed_up().more[3]
    lines = {line[0]: line[1:] for line in by_oracle.lines}
    assert list(lines) == ["reference", "other", "*drain-argmin*", "*adlro*"]
    assert lines["reference"] == ["-5.0 % (-5.0 to -5.0)"] * 5


def test_every_policy_of_every_case_is_among_the_figures():
    figures = summed_up().figures
    assert len(figures) == 10
    assert figures["rough64, memory"]["other, run 1: mean JCT s"] == pytest.approx(
        0.893 * STEADY.mean()
    )
