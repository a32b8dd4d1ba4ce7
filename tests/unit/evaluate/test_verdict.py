"""The verdict: answers for all combinations of intervals, and sentences on assessments by hand."""

import itertools

import pytest

from adlro.evaluate.assess import Assessment, Cell, EstimatorChoice, PolicyFigures, Pooled
from adlro.evaluate.calibration import Calibration, Means
from adlro.evaluate.group_waits import GroupChange
from adlro.evaluate.stats import Estimate
from adlro.evaluate.verdict import answer_of, percent, verdict


def settled(mean, half=1.0):
    return Estimate(mean=mean, sd=1.0, ci95=(mean - half, mean + half))


SHORTER, LONGER, OPEN = settled(-5.0), settled(5.0), settled(-0.5)
ALONE = Estimate(mean=-5.0, sd=None, ci95=None)


def expected(gains, pooled):
    """The table of docs/assess.md."""
    if all(one is SHORTER for one in gains):
        return "gain"
    if all(one is LONGER for one in gains):
        return "loss"
    if SHORTER in gains and LONGER in gains:
        return "depends"
    if pooled is SHORTER and LONGER not in gains:
        return "likely gain"
    if pooled is LONGER and SHORTER not in gains:
        return "likely loss"
    return "open"


def test_the_answer_follows_the_table_for_all_combinations():
    kinds = (SHORTER, LONGER, OPEN)
    seen = set()
    for gains in itertools.product(kinds, repeat=3):
        for pooled in kinds:
            answer = answer_of(list(gains), pooled)
            assert answer == expected(gains, pooled), (gains, pooled)
            seen.add(answer)
    assert seen == {"gain", "loss", "depends", "likely gain", "likely loss", "open"}


def test_one_window_settles_nothing():
    assert answer_of([ALONE, ALONE], ALONE) == "open"


def test_percent_has_its_interval_where_there_is_one():
    assert percent(settled(-12.34, 2)) == "-12.3 % (-14.3 to -10.3)"
    assert percent(ALONE) == "-5.0 %"


def figures(name, versus):
    return PolicyFigures(
        name=name, mean_jct_s=settled(9_000), mean_wait_s=settled(100), p99_jct_s=settled(9),
        gpu_utilisation=settled(0.5), versus_today_pct=versus,
    )  # fmt: skip


def cell(speeds, source, versus):
    rows = [figures("slurm", None), figures("adlro", versus)]
    return Cell(speeds=speeds, estimates=source, is_reference=source == "oracle", policies=rows)


def pooled(name, today, ours, wait=6_480.0, **more):
    return Pooled(
        name=name, mean_jct_s=12_000, mean_wait_s=wait, versus_today_pct=today,
        versus_ours_pct=ours, versus_recorded_pct=None, **{"p99_jct_s": 50_000} | more,
    )  # fmt: skip


def change(name, mean, half=None, jobs=10):
    ci = None if half is None else (mean - half, mean + half)
    return GroupChange(
        grouping="account", name=name, jobs=jobs, before_s=600, after_s=600 + mean,
        change_s=Estimate(mean=mean, sd=None, ci95=ci), longer_in=1, assumptions=2,
    )  # fmt: skip


def calibration(is_close, reasons=()):
    means = Means(recorded=4_080, simulated=6_480, difference_pct=58.8)
    return Calibration(
        policy="slurm", jobs=7, wait_s=means, jct_s=means, rank_correlation=0.5, partitions=[],
        within_pct=58.8, is_close=is_close, reasons=list(reasons),
    )  # fmt: skip


def assessed(**more):
    usual = {
        "history": "my jobs.txt", "cluster": "c", "gpus": 4, "jobs": 400, "days": 20.0,
        "load": 0.7, "windows": 8, "window_jobs": 60, "lead_in_jobs": 100, "runs": 1,
        "estimator": EstimatorChoice(name="memory", errors={"memory": 0.1}),
        "cells": [
            cell("none", "request", SHORTER),
            cell("none", "oracle", settled(-50)),
            cell("gavel-types", "memory", settled(-8.0)),
        ],
        "pooled": [
            pooled("adlro", settled(-6.5), None, wait=4_080.0),
            pooled("min-min", settled(-3.0), settled(2.0)),
            pooled("slurm", None, settled(7.0)),
        ],
        "recorded": None, "calibration": None, "changes": [], "findings": [],
        "assumptions": [], "notes": [],
    }  # fmt: skip
    return Assessment(**usual | more)


def told(*words, **more):
    """The only sentence that begins with these words."""
    found = verdict(assessed(**more), " --cluster c.toml", " --cluster c.toml --unfit drop")
    [sentence] = [one for one in found.sentences if one.startswith(words)]
    return sentence


def test_the_headline_says_what_is_gained_against_what_in_one_unit():
    assert told("ADLRO would", calibration=calibration(is_close=True)) == (
        "ADLRO would shorten the mean completion time under every assumption: 3.3 h instead of "
        "3.3 h, -6.5 % (-7.5 to -5.5), against your scheduler today (its twin, policy slurm); mean "
        "wait 1.1 h instead of 1.8 h."
    )


def test_a_twin_that_is_off_or_cannot_be_checked_makes_the_answer_cautious():
    answers = [
        verdict(assessed(calibration=known)).answer
        for known in (calibration(is_close=True), calibration(is_close=False), None)
    ]
    assert answers == ["gain", "likely gain", "likely gain"]


def test_how_sure_counts_assumptions_without_the_reference():
    assert told("How sure") == (
        "How sure: 8 windows of 60 jobs; the 95 % interval is on the side of a gain under 2 of 2 "
        "assumptions; from -8.0 % (Gavel's types, estimates by memory) to -5.0 % (all GPUs alike, "
        "estimates by request)."
    )
    both = [cell("none", "request", SHORTER), cell("none", "memory", LONGER)]
    assert "a gain under 1 of 2 assumptions and on the side of a loss under 1;" in told(
        "How sure", cells=both
    )
    assert verdict(assessed(cells=both)).answer == "depends"


@pytest.mark.parametrize(
    ("against", "said"),
    [
        (settled(2.0), "against ADLRO +2.0 % (+1.0 to +3.0): ADLRO is better."),
        (settled(-2.0), "against ADLRO -2.0 % (-3.0 to -1.0): min-min is better than ADLRO here."),
        (settled(0.5), "+0.5 % (-0.5 to +1.5): which of the two is better is not settled."),
    ],
)
def test_the_strongest_rival_is_named_even_if_it_is_better(against, said):
    rows = assessed().pooled
    rows[1] = rows[1].model_copy(update={"versus_ours_pct": against})
    assert told("The strongest rival is min-min", pooled=rows).endswith(said)


@pytest.mark.parametrize(
    ("ours", "said"), [(52_600, "get slower"), (47_500, "get faster"), (51_000, "stay about")]
)
def test_the_tail_is_told_whatever_the_mean_does(ours, said):
    rows = [pooled("adlro", SHORTER, None, p99_jct_s=ours), *assessed().pooled[1:]]
    assert said in told("The slowest jobs", pooled=rows)


def test_losers_are_named_and_those_beyond_chance_counted():
    changes = [
        change("a", 600, 60), change("b", 300, 400), change("c", 120), change("d", 60, 30),
        change("e", -50, 10),
    ]  # fmt: skip
    assert told("Who would wait longer", changes=changes) == (
        "Who would wait longer: account a (+10 min, 10 jobs), account b (+5 min, 10 jobs), account "
        "c (+2 min, 10 jobs) and 1 more; the interval of 2 of them is above 0."
    )
    assert "the interval of none of them is above 0" in told(
        "Who would wait longer", changes=changes[1:3]
    )
    assert told("Who would wait longer", changes=changes[4:]) == (
        "Who would wait longer: no account, partition or gang size, on average."
    )


def test_what_the_twin_is_worth_is_always_said():
    assert "no recorded starts" in told("How true")
    close = told("How true", calibration=calibration(is_close=True))
    assert "1.1 h recorded, 1.8 h simulated" in close
    words = "As the twin does not reproduce your record"
    off = told(words, calibration=calibration(False, ["a queue", "a limit"]))
    assert off.endswith("may be another one; likely reasons: a queue; a limit.")
    assert told(words, calibration=calibration(False)).endswith("may be another one.")


def test_the_record_is_told_apart_from_the_twin():
    rows = assessed().pooled
    rows[0] = rows[0].model_copy(update={"versus_recorded_pct": settled(-2.0)})
    said = told("Against what was recorded", pooled=rows, recorded={"mean_jct_s": settled(12_240)})
    assert said == (
        "Against what was recorded, 3.4 h, a simulation against a record: -2.0 % (-3.0 to -1.0)."
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"days": 1.0}, "spans 1.0 days"),
        ({"windows": 5}, "5 windows are few"),
        ({"load": 1.2}, "1.20"),
    ],
)
def test_warnings_are_given_where_they_hold(more, said):
    assert said in told("WARNING", **more)
    assert [one for one in verdict(assessed()).sentences if one.startswith("WARNING")] == []


def commands(**more):
    found = verdict(assessed(**more), " --cluster c.toml", " --cluster c.toml --unfit drop")
    return [(one.command, one.purpose) for one in found.next]


def test_the_next_commands_can_be_pasted():
    files = "'my jobs.txt' --cluster c.toml"
    assert commands() == [
        (f"adlro tune {files}", "the best slurm.conf without installing anything"),
        (f"adlro plan {files} --add 4xH100", "what that gain is worth in GPUs"),
    ]
    off = commands(calibration=calibration(False))
    assert off[0] == (f"adlro trace calibrate {files} --unfit drop", "why the twin is off")
    assert commands(calibration=calibration(is_close=True)) == commands()
    loss = commands(cells=[cell("none", "request", LONGER)])
    assert loss[-1][1] == "what more GPUs would give"
    alone = verdict(assessed(calibration=calibration(False)))  # it cannot read the history
    assert "calibrate" not in alone.next[0].command
