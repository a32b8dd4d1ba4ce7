"""`adlro compare`: compares policies on the same jobs."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from adlro.cli import completion
from adlro.cli.options import (
    FILE,
    PRINTED,
    changed_scenario,
    check_json_file,
    hand_out,
    say,
    say_if_slow,
    scenario_options,
)
from adlro.cli.reporting import Reporter, check_places

if TYPE_CHECKING:
    from rich.progress import Progress

    from adlro.config.scenario import Scenario
    from adlro.evaluate.compare import Comparison, Until, Watch, Width
    from adlro.policies.registry import Policy
    from adlro.sim.simulator import RunResult
    from adlro.workloads.jitter import Jitter
    from adlro.workloads.setting import Setting
    from adlro.workloads.workload import Workload


_SEEDS = 20  # by default
_MOST_SEEDS = 1_000_000
_MOST_REPEATS, _MOST_JITTER_PCT = 1_000, 50  # of --jitter
_LAST_SEED = 2**63 - 1  # as for `adlro simulate --seed`


def _wrong_seeds(text: str) -> click.BadParameter:
    return click.BadParameter(
        f"{text!r} is not a number of seeds above 0, nor a range such as 100:200, nor auto:1% or "
        f"auto:1%:500 (± 1 point, at most 500 seeds); {_MOST_SEEDS:,} seeds at most",
        param_hint="--seeds",
    )


def _seeds(text: str | None) -> range | Until | None:
    """Parse --seeds: N means seeds 0 to N - 1, and A:B means seeds A to B - 1.

    auto:W%[:MOST] means as many seeds as make the intervals narrow enough, at most MOST.
    """
    if text is None:
        return None
    if text.startswith("auto"):
        from adlro.evaluate.compare import Until

        found = re.fullmatch(r"auto:(\d+(?:\.\d+)?)%(?::(\d+))?", text)
        until = Until(float(found[1])) if found else Until(0.0)
        if found and found[2]:
            until = until._replace(most=int(found[2]))
        if until.points <= 0 or not 2 <= until.most <= _MOST_SEEDS:
            raise _wrong_seeds(text)
        return until
    found = re.fullmatch(r"(?:(\d+):)?(\d+)", text)
    first, end = (int(found[1] or 0), int(found[2])) if found else (0, 0)
    if not 0 < end - first <= _MOST_SEEDS or end - 1 > _LAST_SEED:
        raise _wrong_seeds(text)
    return range(first, end)


def _jitter(text: str | None) -> Jitter | None:
    """Parse --jitter: N repetitions with 1 % jitter, or N:P% with P percent."""
    if text is None:
        return None
    from adlro.workloads.jitter import Jitter

    found = re.fullmatch(r"(\d{1,5})(?::(\d+(?:\.\d+)?)%)?", text)
    repeats = int(found[1]) if found else 0
    percent = float(found[2] or 1) if found else 0.0
    if not (2 <= repeats <= _MOST_REPEATS and 0 < percent <= _MOST_JITTER_PCT):
        raise click.BadParameter(
            f"{text!r} is not a number of repetitions from 2 to {_MOST_REPEATS:,}, such as 8, nor "
            f"one with a jitter above 0 and up to {_MOST_JITTER_PCT}%, such as 8:2%",
            param_hint="--jitter",
        )
    return Jitter(repeats, percent / 100)


class _Chosen(NamedTuple):
    """The policies to compare, and a note for each policy that was left out."""

    policies: list[Policy]
    notes: list[str]


def _chosen(text: str, setting: Setting) -> _Chosen:
    """Load the policies that --policies names; `all` = those that can run the scenario."""
    from adlro.policies import registry

    notes: list[str] = []
    names = [name.strip() for name in text.split(",") if name.strip()]
    if text == "all":
        names = registry.names()
        reasons = {name: registry.refusal(name, setting) for name in names}
        names = [name for name in names if reasons[name] is None]
        notes = [
            f"{name} is left out: it cannot run {setting.scenario.name}: {reason}"
            for name, reason in reasons.items()
            if reason is not None
        ]
    policies = [registry.load(name, setting) for name in dict.fromkeys(names)]
    if not policies:
        raise click.BadParameter("name at least one policy", param_hint="--policies")
    return _Chosen(policies, notes)


def _progress(*, is_open: bool) -> Progress:
    """Return a progress bar on stderr, which is shown only if that is a terminal.

    `is_open` = the number of seeds is not known yet: the width of the intervals is shown instead of
    the remaining time.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    last = TextColumn("{task.fields[width]}", markup=False) if is_open else TimeRemainingColumn()
    columns = (TextColumn("comparing"), BarColumn(), MofNCompleteColumn(), last)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


class _Way(NamedTuple):
    """How to compare: seeds, threads, whether with the references, and the jitter."""

    seeds: range | Until | None  # None = the default number
    threads: int
    with_references: bool
    jitter: Jitter | None = None

    def seeds_of(self, setting: Setting) -> range | Until:
        """Return the requested seeds; by default 20, or fewer if a history does not have as many.

        In a history, each seed is another window of consecutive jobs.
        """
        from adlro.workloads.replay import windows

        if self.seeds is not None:
            return self.seeds
        played = setting.played
        there = _SEEDS if played is None else windows(played, setting.scenario.jobs)
        return range(min(_SEEDS, there))


def _compare(setting: Setting, policies: list[Policy], way: _Way, collect: Watch) -> Comparison:
    from adlro.evaluate import references
    from adlro.evaluate.compare import Until, compare

    seeds = way.seeds_of(setting)
    is_open = isinstance(seeds, Until)
    with _progress(is_open=is_open) as progress:
        most = seeds.most if isinstance(seeds, Until) else len(seeds)
        repeats = 1 if way.jitter is None else way.jitter.repeats
        task = progress.add_task("", total=len(policies) * most * repeats, width="")

        def watch(policy: Policy, seed: int, workload: Workload, result: RunResult) -> None:
            collect(policy, seed, workload, result)
            progress.advance(task)

        def tell(_: int, width: Width) -> None:
            text = f"{width.policy} ± {width.half:.3g}, wanted ± {width.wanted:.3g}"
            progress.update(task, width=text)

        if isinstance(seeds, Until):
            seeds = seeds._replace(tell=tell)
        return compare(
            setting,
            policies,
            seeds,
            threads=way.threads,
            watch=watch,
            references=references.play if way.with_references else None,
            jitter=way.jitter,
        )


def _play(
    scenario: Scenario, policies: str, way: _Way, reporter: Reporter
) -> tuple[Comparison, bool]:
    """Run the comparison; return it, and whether it is complete (False after Ctrl-C)."""
    from adlro.errors import printable
    from adlro.evaluate.compare import Stopped
    from adlro.evaluate.out_of_range import compile_recording, is_recorded
    from adlro.sim.simulator import warm_up
    from adlro.workloads.setting import prepare

    setting = prepare(scenario)
    chosen = _chosen(policies, setting)
    for note in chosen.notes:
        say(note, err=True)
    with say_if_slow():
        warm_up(chosen.policies)
        if any(map(is_recorded, chosen.policies)):
            compile_recording()
    is_whole, collect = True, reporter.watch(setting, chosen.policies)
    try:
        result = _compare(setting, chosen.policies, way, collect)
    except Stopped as stopped:
        result, is_whole = stopped.result, False
    command = printable(shlex.join(["adlro", *sys.argv[1:]]))
    told = {"command": command, "notes": [*chosen.notes, *result.notes]}
    return result.model_copy(update=told), is_whole


@click.command("compare")
@scenario_options
@click.option(
    "--policies",
    default="all",
    shell_complete=completion.policies,
    show_default=True,
    help="Names with commas between (see 'adlro policy list'); ./mine.py is a policy of your own, "
    "./trained.npz one that was learned.",
)
@click.option(
    "--seeds",
    show_default=f"{_SEEDS}, or all that a history has",
    help="N, or a range A:B (B not included), or auto:1%: until differences are known to ± 1 "
    "percentage point (or a tenth of themselves), 2,000 seeds at most; auto:1%:500 = 500 at most.",
)
@click.option(
    "--jitter",
    metavar="N[:P%]",
    help="Run each seed N times with estimates changed by about 1 % (or P %) at random, and "
    "average: a single run of a busy window is partly chance.",
)
@click.option(
    "--hindsight",
    is_flag=True,
    help="Also play a look-ahead with foresight, which knows what is to come (no policy, no "
    "bound), and tell what share of the gap from min-min to it each policy closes; also a lower "
    "bound on the mean JCT of any schedule.",
)
@click.option(
    "--threads",
    default=lambda: os.cpu_count() or 1,
    show_default="one a core",
    type=click.IntRange(1, 256),
)
@click.option(
    "--regression", is_flag=True, help="Also explain mean JCT by utilisation, load and queue."
)
@click.option("--json", "json_file", type=FILE, help="Also write all figures here; - = print them.")
@click.option(
    "--report",
    type=FILE,
    metavar="DIR",
    help="Write a page with tables and charts: DIR/report.html.",
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="The page has codes in place of the history's job ids and names, users, accounts, "
    "partitions and nodes.",
)
def command(
    scenario: str,
    load: float | None,
    estimates: str | None,
    jobs: int | None,
    ageing: float | None,
    slurm_config: Path | None,
    policies: str,
    seeds: str | None,
    jitter: str | None,
    threads: int,
    hindsight: bool,
    regression: bool,
    json_file: Path | None,
    report: Path | None,
    anonymous: bool,
) -> None:
    """Run policies on the same jobs and print the tables, best first.

    SCENARIO is a name (see 'adlro scenario list') or a TOML file of your own. Ctrl-C prints what is
    complete.
    """
    from adlro.cli.comparison_table import shown

    way = _Way(_seeds(seeds), threads, hindsight, _jitter(jitter))
    check_json_file(json_file)
    check_places(json_file, report, anonymous=anonymous)
    reporter = Reporter(report, anonymous=anonymous)
    wanted = changed_scenario(scenario, load, estimates, jobs, ageing, slurm_config)
    with contextlib.redirect_stdout(sys.stderr):  # a policy that prints must not spoil the JSON
        result, is_whole = _play(wanted, policies, way, reporter)
    tables = shown(result, wanted, with_regression=regression)
    hand_out(tables, result.model_dump_json(indent=2), json_file)
    if is_whole:
        reporter.write(result, quiet=json_file == PRINTED)
    else:
        reporter.leave_out()
        sys.stdout.flush()
        raise KeyboardInterrupt
