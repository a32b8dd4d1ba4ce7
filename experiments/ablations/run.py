"""The training of `adlro` with one thing left out at a time: what each is worth."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from ablations.training import Workshop
from ablations.variants import TINY, TINY_TD, Variant, variants
from common import Result, Table
from comparison_cache import ComparisonCache
from trainings import (
    REFERENCE,
    Found,
    Row,
    Trained,
    command_line,
    figures_of,
    played,
    rows_of,
    with_cpu_s,
)

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.evaluate.comparison import BASELINE
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.train import weights
from adlro.workloads.setting import Setting

FOLDER = Path(__file__).parent
LOADS = (0.6, 0.8, 0.95)
SEEDS, UNSEEN_SEEDS, QUICK_SEEDS = range(500), range(100), range(2)
QUICK_JOBS = 40
RIVALS = (BASELINE, "drain-argmin", "adlro")
UNTUNED = "{}, not tuned"
NO_TUNING = "no fine-tuning"  # as it is called in the main table: the reference, not tuned


class Case(NamedTuple):
    """A scenario, and how much is asked of it."""

    name: str
    scenario: Scenario
    seeds: range
    untuned: frozenset[str] = frozenset()  # trainings that are measured before tuning, too


def cases(*, is_quick: bool) -> list[Case]:
    """The scenario of the training at three loads, then two that no training has seen."""
    paper, hetero = find_scenario("paper16"), find_scenario("hetero64")
    bursts = {"process": "bursty", "peak": 3.0, "share": 0.2}  # training knows peaks up to 2.5
    everyone = frozenset(one.name for one in variants())
    found = [
        Case(
            f"paper16, load {load:g}", adjusted(paper, load=load), SEEDS,
            everyone if load == paper.load else frozenset([REFERENCE]),
        )
        for load in LOADS
    ]  # fmt: skip
    bursty, large = adjusted(paper, load=0.8, arrivals=bursts), adjusted(hetero, load=1.5)
    found.append(Case("bursty, load 0.8", bursty, UNSEEN_SEEDS))
    found.append(Case("hetero64, load 1.5", large, UNSEEN_SEEDS))
    if is_quick:
        return [
            one._replace(scenario=adjusted(one.scenario, jobs=QUICK_JOBS), seeds=QUICK_SEEDS)
            for one in found
        ]
    return found


def _untuned(row: Row) -> Row:
    """The same before tuning."""
    return Row(row.shown, tuple(UNTUNED.format(name) for name in row.policies))


def measured(
    case: Case, trained: dict[Variant, Trained], shelf: ComparisonCache, threads: int
) -> Found:
    """All networks on the seeds of a case, or what is kept of that."""

    def policies(setting: Setting) -> list[Policy]:
        chosen = [registry.load(name, setting) for name in RIVALS]
        for one, networks in trained.items():
            chosen.append(_named(one.key, weights.policy(networks.tuned, setting)))
            if one.name in case.untuned:
                name = UNTUNED.format(one.key)
                chosen.append(_named(name, weights.policy(networks.fitted, setting)))
        return chosen

    return played(case, policies, shelf, threads)


def _named(name: str, policy: Policy) -> Policy:
    return policy._replace(name=name)


def _head(found: Sequence[Found]) -> list[str]:
    rivals = (BASELINE, REFERENCE)
    return ["training", *(f"{each.case.name}, vs {rival}" for rival in rivals for each in found)]


def _lines(found: Sequence[Found], rows: Sequence[Row], reference: Row) -> list[list[str]]:
    """Every row against Min-Min, then against the reference."""
    rivals = (Row(BASELINE, (BASELINE,)), reference)
    return [
        [row.shown, *(each.versus(row, rival) for rival in rivals for each in found)]
        for row in rows
    ]


def summed_up(known: Sequence[Found], new: Sequence[Found], trainings: Sequence[Variant]) -> Result:
    """The tables: tuned at the three loads, run by run, before tuning, on what is new."""
    rows = rows_of(trainings)
    reference = rows[0]
    others = [Row(f"*{name}*", (name,)) for name in RIVALS[1:]]
    no_tuning = _untuned(reference)._replace(shown=NO_TUNING)
    usual = [each for each in known if len(each.case.untuned) > 1]
    before = _lines(usual, [_untuned(row) for row in rows], _untuned(reference))
    unseen = _lines(new, [*rows, *others], reference)
    alone = [
        [row.shown, *(each.each_versus(row, BASELINE) for each in known)]
        for row in (*rows, no_tuning)
    ]
    more = [
        Table(
            f"Each run alone, percent vs {BASELINE}:",
            ["training", *(each.case.name for each in known)], alone, is_brief=False,
        ),
        Table("Before tuning, the reference too:", _head(usual), before, is_brief=False),
        Table("On scenarios that no training draws:", _head(new), unseen, is_brief=False),
    ]  # fmt: skip
    figures = figures_of((*known, *new))
    details = {each.case.name: each.result.model_dump() for each in (*known, *new)}
    seeds, fewer = (len(found[0].case.seeds) for found in (known, new))
    note = (
        f"Mean JCT, mean over the runs of a training, with 95 % intervals over {seeds} paired "
        f"seeds ({fewer} in the last table). The intervals know nothing of the chance in training "
        "itself: that is what the runs differ by."
    )
    lines = _lines(known, [*rows, no_tuning, *others], reference)
    return Result(_head(known), lines, figures, details, more=more, note=note)


def make(options: argparse.Namespace) -> Result:
    """All trainings, then all cases; each is kept as soon as it is there."""
    shelf = ComparisonCache(options.keep, options.resume)
    shelf.open()
    paper = find_scenario("paper16")
    scenario = adjusted(paper, jobs=QUICK_JOBS) if options.quick else paper
    trainings = variants(TINY, TINY_TD) if options.quick else variants()
    workshop = Workshop(options.keep, scenario, options.resume, options.threads)
    trained = {one: workshop.train(one) for one in trainings}
    found = [
        measured(case, trained, shelf, options.threads) for case in cases(is_quick=options.quick)
    ]
    result = summed_up(found[: len(LOADS)], found[len(LOADS) :], trainings)
    return with_cpu_s(result, trained)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit status."""
    return command_line(__doc__ or "", FOLDER, make, arguments)


if __name__ == "__main__":
    sys.exit(main())
