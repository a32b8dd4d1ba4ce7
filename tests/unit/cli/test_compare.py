"""Options of `adlro compare`, and its tables as they are printed."""

import io
import json

import click
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from adlro.cli import compare as command
from adlro.cli.comparison_table import shown
from adlro.config.files import find_scenario, scenario_of
from adlro.evaluate.compare import Until, compare
from adlro.policies import registry
from adlro.workloads.jitter import Jitter
from adlro.workloads.setting import prepare
from tests.commands import called
from tests.comparisons import STEADY, compared
from tests.recorded import setting, summarised

SCENARIO = find_scenario("paper16")


def printed(result, scenario=SCENARIO, *, with_regression=False):
    """The lines that a reader sees on a terminal of 110 columns."""
    console = Console(file=io.StringIO(), width=110)
    console.print(shown(result, scenario, with_regression=with_regression), highlight=False)
    return console.file.getvalue()


def as_one_line(text):
    return " ".join(text.split())


def noisy(seed, size, seeds=8):
    return np.random.default_rng(seed).normal(size, 0.1, seeds)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("3", range(3)),
        ("100:102", range(100, 102)),
        ("auto:1%", Until(1.0, 2000)),
        ("auto:0.25%:77", Until(0.25, 77)),
    ],
)
def test_seeds_are_a_number_a_range_or_auto(text, seeds):
    found = command._seeds(text)
    assert found[:2] == seeds[:2]
    assert type(found) is type(seeds)


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "3:3",
        "-1",
        "x",
        "auto",
        "auto:1",
        "auto:0%",
        "auto:0.0%",
        "auto:1%:1",
        "auto:-1%",
        "auto:1%:00",
        "auto:1%:01",
        "1000001",
        "99999999999999999999",
        "auto:1%:1000001",
        "9223372036854775808:9223372036854775809",
    ],
)
def test_other_seeds_are_refused_with_examples(text):
    with pytest.raises(click.BadParameter, match=r"100:200.*auto:1%:500"):
        command._seeds(text)


@pytest.mark.parametrize(("text", "jitter"), [("8", (8, 0.01)), ("2:0.5%", (2, 0.005))])
def test_jitter_is_a_number_of_repetitions_with_or_without_a_size(text, jitter):
    assert command._jitter(text) == pytest.approx(jitter)


@pytest.mark.parametrize("text", ["0", "1", "-8", "8:", "8:0%", "8:51%", "8:nan%", "1001", "x", ""])
def test_other_jitter_is_refused_with_an_example(text):
    with pytest.raises(click.BadParameter, match=r"such as 8:2%"):
        command._jitter(text)


def test_jitter_and_the_pooled_ratios_of_a_history_are_printed(tmp_path):
    played = setting(tmp_path)
    policies = [registry.load(name, played) for name in ("fcfs", "min-min", "drain-argmin")]
    result = compare(played, policies, range(2), jitter=Jitter(2))
    text = as_one_line(printed(result, played.scenario))
    assert "Each seed ran 2 times with estimates changed by about 1 %" in text
    assert "Pooled over 2 windows" in text
    assert "vs min-min, %" in text
    assert "vs drain-argmin, %" in text


def test_seeds_that_play_the_same_jobs_again_are_not_pooled(tmp_path):
    played = setting(tmp_path)
    policies = [registry.load(name, played) for name in ("fcfs", "min-min")]
    windows = compare(played, policies, range(1)).windows
    result = compare(played, policies, range(windows + 3))
    assert result.policies[0].pooled["min-min"].windows == windows
    assert f"Pooled over {windows} windows" in as_one_line(printed(result, played.scenario))
    beyond = compare(played, policies, range(windows, windows + 3))
    assert beyond.policies[0].pooled == {}
    assert "Pooled" not in printed(beyond, played.scenario)


def test_of_all_those_that_cannot_run_the_scenario_are_left_out_with_a_note(monkeypatch):
    reasons = {"sjf": "it has gangs"}
    monkeypatch.setattr(registry, "names", lambda: ["fcfs", "sjf"])
    monkeypatch.setattr(registry, "refusal", lambda name, _: reasons.get(name))
    chosen = command._chosen("all", prepare(SCENARIO))
    assert [policy.name for policy in chosen.policies] == ["fcfs"]
    assert chosen.notes == ["sjf is left out: it cannot run paper16: it has gangs"]


def test_the_best_comes_first_and_the_others_with_interval_and_p():
    text = printed(compared({"b": STEADY * noisy(0, 1.3), "a": STEADY}))
    lines = [line for line in text.splitlines() if line.startswith(("  a ", "  b "))]
    assert lines[0].split()[:5] == ["a", "112", "±", "17", "best"]
    assert "p: Wilcoxon signed ranks against a, Holm-corrected. JCT" in as_one_line(text)
    assert ".008" in lines[1]


def test_an_interval_is_as_precise_as_it_is_narrow():
    for size, digits in ((1.3, 1), (130.0, 0)):
        result = compared({"a": STEADY, "b": STEADY * size * (1 + (noisy(1, 0) / 3))})
        found = result.policies[1].jct_versus("a")
        low, high = found.ci95
        assert (found.half_width < 9.95) == (digits == 1)
        cell = f" {found.mean:+,.{digits}f} ({low:+,.{digits}f} to {high:+,.{digits}f}) "
        assert cell in printed(result)


def test_a_question_that_is_open_says_how_many_seeds_it_takes():
    text = as_one_line(printed(compared({"a": STEADY, "b": STEADY * noisy(3, 1.01)})))
    found = compared({"a": STEADY, "b": STEADY * noisy(3, 1.01)})
    best, rival = found.tables()[0]
    needed = rival.jct_versus(best.name).seeds_to_settle
    assert f"{rival.name} and {best.name} are not told apart" in text
    assert f"that takes some {needed:,} seeds (n " in text


def test_more_seeds_than_anyone_runs_are_not_counted_out():
    other = np.add(STEADY, [5, -5, 5, -5, 5, -5, 5, -5 + 1e-3])
    text = as_one_line(printed(compared({"a": STEADY, "b": other})))
    assert "that takes more than 100,000 seeds" in text


def test_few_seeds_are_said_to_be_few():
    text = as_one_line(printed(compared({"a": STEADY[:3], "b": STEADY[:3] * [1.2, 1, 0.9]})))
    assert "(Student's t). No p values from fewer than 6 seeds." in text
    assert "are not told apart: 3 seeds are few; if the difference seen is the true one" in text


def test_one_seed_has_no_intervals():
    text = printed(compared({"a": STEADY[:1], "b": 2 * STEADY[:1]}))
    assert "One seed: no intervals." in text
    assert "±" not in text
    assert "+100.0" in text


def test_equal_policies_are_said_to_be_equal():
    text = as_one_line(printed(compared({"a": STEADY, "b": STEADY})))
    assert "b and a have the same mean JCT." in text
    assert "No p values: fewer than 6 seeds show a difference." in text


def test_a_missing_p_among_others_is_explained():
    text = as_one_line(printed(compared({"a": STEADY, "b": STEADY, "c": 1.1 * STEADY})))
    assert "Holm-corrected; -: too few seeds differ." in text


def test_those_that_preempt_come_with_the_price_of_it():
    jcts = {"a": STEADY, "p": STEADY / 2, "q": STEADY / 3}
    text = printed(compared(jcts, preemptive=("p", "q")))
    first, second = text.split("preemptive policies\n")
    assert "vs q, %" in second
    assert "vs" not in first
    assert "A job that is stopped pays 30 s of checkpoint" in second
    assert "checkpoint" not in first
    alone = printed(compared({"p": STEADY}, preemptive=("p",)))
    assert alone.splitlines()[0].endswith("· preemptive policies")


def test_a_scenario_without_checkpoints_says_so():
    kinds = [t.model_copy(update={"checkpoint_s": None}) for t in SCENARIO.types]
    bare = SCENARIO.model_copy(update={"types": tuple(kinds)})
    text = printed(compared({"p": STEADY}, preemptive=("p",)), bare)
    assert "No job can checkpoint: one that is stopped starts over." in text


def test_a_regression_without_an_answer_says_why():
    text = printed(compared({"a": STEADY[:3]}), with_regression=True)
    assert "Regression of mean JCT: 3 seeds are too few for 4 coefficients" in text
    assert "Regression" not in printed(compared({"a": STEADY[:3]}))


def test_notes_are_printed_below():
    noted = compared({"a": STEADY}).model_copy(update={"notes": ["mind the gap"]})
    assert printed(noted).rstrip().endswith("Note: mind the gap")


def test_the_gap_to_the_look_ahead_has_a_column_where_it_is_known():
    result = compared({"a": STEADY})
    closed = result.policies[0].model_copy(
        update={"gap_closed": result.policies[0].metrics["restarts"]}
    )
    known = result.policies[0].metrics["mean_jct_s"].model_copy(update={"mean": 77.0})
    with_gap = printed(result.model_copy(update={"policies": [closed], "hindsight": known}))
    assert "closed %" in with_gap
    told = "Look-ahead with foresight (no policy, no bound): mean JCT 77 ± 17 s."
    assert f"{told} Gap closed: 0 % = min-min, 100 % = the look-ahead." in as_one_line(with_gap)
    without = printed(result.model_copy(update={"hindsight": known}))
    assert told in as_one_line(without)
    assert "Gap closed" not in without
    assert "closed %" not in printed(result)


def test_the_lower_bound_and_the_ratio_to_it_are_printed_with_the_policies_it_holds_for():
    jcts = {"a": 2 * STEADY, "b": 3 * STEADY, "min-min": 4 * STEADY}
    found = printed(compared(jcts, ("b",), look_ahead=2.5 * STEADY))
    first, second = found.split("preemptive policies")
    assert "any schedule without preemption: 141 ± 21 s" in as_one_line(first)  # 1.25 x 112.5
    assert "1.60" in first  # 2 / 1.25
    assert "Lower bound on the mean JCT of any schedule: 70 ± 10 s" in as_one_line(second)
    assert "4.80" in second  # 3 / 0.625
    assert "Seeds of 8 below it: a 8." in as_one_line(first)
    assert "below it" not in second


def test_hindsight_writes_the_look_ahead_and_the_bounds_of_every_seed(tmp_path):
    done = called(
        "compare", "paper16", "--policies", "min-min", "--seeds", "2", "--jobs", "20",
        "--hindsight", "--json", str(tmp_path / "found.json"),
    )  # fmt: skip
    assert done.returncode == 0
    found = json.loads((tmp_path / "found.json").read_text())
    (row,) = found["policies"]
    jcts = (
        found["lower_bound_preemptive"]["per_seed"],
        found["lower_bound"]["per_seed"],
        found["hindsight"]["per_seed"],
    )
    for free, once, ahead in zip(*jcts, strict=True):
        assert 0 < free <= once <= ahead
    assert all(b <= jct for b, jct in zip(jcts[1], row["per_seed"]["mean_jct_s"], strict=True))
    assert row["times_lower_bound"]["mean"] >= 1
    assert "no policy, no bound" in done.stdout


LONG = {"static-affinity-lp": 15 * STEADY, "drain-argmin": STEADY, "weighted-min-min": 9 * STEADY}


def test_names_stay_whole_on_a_narrow_terminal():
    console = Console(file=io.StringIO(), width=80)
    console.print(shown(compared(LONG), SCENARIO, with_regression=False))
    assert all(f"  {name} " in console.file.getvalue() for name in LONG)


@pytest.mark.parametrize("scenario", ["paper16", "rough64"])
@pytest.mark.parametrize("preemptive", [(), tuple(LONG)])
def test_tables_of_long_names_fit_into_110_columns(scenario, preemptive):
    figures = {name: jct * 10 * noisy(i, 1) for i, (name, jct) in enumerate(LONG.items())}
    result = compared(figures, preemptive=preemptive)
    console = Console(file=io.StringIO(), width=200)
    console.print(shown(result, find_scenario(scenario), with_regression=True), highlight=False)
    text = console.file.getvalue()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 110
    assert ("starts" in text) == (scenario == "rough64" or preemptive != ())
    assert ("jobs/h" in text) == (scenario == "paper16")


def recorded(folder, jobs=2):
    """Five jobs of a history: two windows of two."""
    rows = "".join(f"{100 * job},60,1\n" for job in range(5))
    (folder / "jobs.csv").write_text(f"submit_time,run_s,gpus\n{rows}")
    cluster = SCENARIO.cluster.model_dump()
    tables = {"history": "jobs.csv", "jobs": jobs, "cluster": cluster}
    return prepare(scenario_of(tables, folder / "mine.toml"))


def test_without_a_word_there_are_20_seeds_but_no_jobs_of_a_history_twice(tmp_path):
    usual = command._Way(None, 1, False)
    assert usual.seeds_of(prepare(SCENARIO)) == range(20)
    assert usual.seeds_of(recorded(tmp_path)) == range(2)
    assert usual.seeds_of(recorded(tmp_path, jobs=5)) == range(1)
    assert command._Way(range(7), 1, False).seeds_of(recorded(tmp_path)) == range(7)


@pytest.mark.parametrize(("seeds", "is_told"), [(2, False), (3, True)])
def test_seeds_of_a_history_are_explained_and_those_that_repeat_jobs_are_told(
    tmp_path, seeds, is_told
):
    setting = recorded(tmp_path)
    notes = compare(setting, [registry.load("fcfs", setting)], range(seeds)).notes
    assert "each seed is 2 jobs of the history in a row: it has seeds 0 to 1" in notes
    again = [note for note in notes if note.startswith("seeds from 2 on play jobs of the history")]
    assert len(again) == is_told


@pytest.mark.parametrize("scenario", ["paper16", "rough64"])
def test_policies_are_compared_on_estimates_of_the_memory(scenario):
    arguments = ["--estimates", "memory", "--jobs", "30", "--seeds", "2", "--policies", "sjf,fcfs"]
    result = CliRunner().invoke(command.command, [scenario, *arguments])
    assert result.exit_code == 0, result.output
    assert "estimates memory" in result.output


def test_what_happened_comes_first_without_what_a_record_does_not_have(tmp_path):
    ready = setting(tmp_path)
    text = printed(summarised(ready, {"a": 107.5, "b": 215.0}), ready.scenario)
    lines = [line for line in text.splitlines() if line.startswith(("  recorded ", "  a ", "  b "))]
    assert lines[0].split()[:3] == ["recorded", "235", "±"]
    assert "+119" in lines[0]  # 235 / 107.5
    assert lines[1].split()[0] == "a"
    assert "best" in lines[1]
    assert "recorded: what happened to the same jobs, not simulated" in as_one_line(text)


def test_one_window_settles_nothing_and_two_say_how_many_would(tmp_path):
    one = setting(tmp_path, jobs=8)
    text = as_one_line(printed(summarised(one, {"a": 1.0, "b": 2.0}, seeds=1), one.scenario))
    assert "One window settles nothing; a longer history has more" in text
    two = setting(tmp_path)
    result = summarised(two, {"a": 1.0, "b": 2.0})
    figures = result.policies[1].versus["a"]
    open_ = figures["mean_jct_pct"].model_copy(
        update={"mean": 1.0, "sd": 10.0, "ci95": (-9.0, 11.0), "seeds_to_settle": 155}
    )
    figures["mean_jct_pct"] = open_
    text = as_one_line(printed(result, two.scenario))
    assert "that takes some 155 seeds. The history has 2 windows of 4 jobs" in text


def test_an_anonymous_page_needs_a_page():
    done = called("compare", "paper16", "--policies", "fcfs", "--seeds", "1", "--anonymous")
    assert done.returncode == 2
    assert "--report" in done.stderr
