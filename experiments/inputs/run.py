"""The training of `adlro` with telemetry and sketches of jobs as further inputs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from common import Result, Table
from comparison_cache import ComparisonCache
from inputs.variants import Variant, variants
from trainings import (
    TINY,
    Found,
    Row,
    Trained,
    Workshop,
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
DRIFT = FOLDER / "drift16.toml"  # that all are trained on
LOADS = (0.8, 0.95)
SOURCES = ("oracle", "memory")  # of the estimates
SEEDS, FEWER_SEEDS, QUICK_SEEDS = range(500), range(200), range(2)
QUICK_JOBS, ROUGH_JOBS = 40, 400  # instead of 1000: most of what happens there comes early
RIVALS = (BASELINE, "drain-argmin", "adlro")


class Case(NamedTuple):
    """A scenario, where its estimates come from, and how many seeds are played."""

    name: str
    source: str
    scenario: Scenario
    seeds: range


def cases(*, is_quick: bool) -> list[Case]:
    """All with telemetry: the scenario of the training, one without drift, and a rough one."""
    paper = adjusted(find_scenario("paper16"), telemetry=True)
    found = []
    for source in SOURCES:
        for scenario in (paper, find_scenario(str(DRIFT))):
            for load in LOADS:
                name = f"{scenario.name}, load {load:g}, {source}"
                changed = adjusted(scenario, load=load, estimates=source)
                seeds = SEEDS if scenario is paper else FEWER_SEEDS
                found.append(Case(name, source, changed, seeds))
        rough = adjusted(find_scenario("rough64"), jobs=ROUGH_JOBS, estimates=source)
        found.append(Case(f"rough64, {source}", source, rough, FEWER_SEEDS))
    if is_quick:
        return [
            one._replace(scenario=adjusted(one.scenario, jobs=QUICK_JOBS), seeds=QUICK_SEEDS)
            for one in found
        ]
    return found


def measured(
    case: Case, trained: dict[Variant, Trained], shelf: ComparisonCache, threads: int
) -> Found:
    """All networks on the seeds of a case, or what is kept of that."""

    def policies(setting: Setting) -> list[Policy]:
        chosen = [registry.load(name, setting) for name in RIVALS]
        for one, networks in trained.items():
            chosen.append(weights.policy(networks.tuned, setting)._replace(name=one.key))
        return chosen

    return played(case, policies, shelf, threads)


def _versus(found: Sequence[Found], rows: Sequence[Row], rival: Row) -> Table:
    head = [f"vs {rival.shown}", *(each.case.name for each in found)]
    lines = [[row.shown, *(each.versus(row, rival) for each in found)] for row in rows]
    caption = f"Against {rival.shown}, estimates: {found[0].case.source}"
    return Table(caption, head, lines, is_brief=False)


def _alone(found: Sequence[Found], rows: Sequence[Row], reference: Row) -> Table:
    head = ["training", *(each.case.name for each in found)]
    lines = [[row.shown, *(each.each_versus(row, reference) for each in found)] for row in rows]
    caption = "Each run alone, percent vs the reference's run of the same number:"
    return Table(caption, head, lines, is_brief=False)


def summed_up(found: Sequence[Found], trainings: Sequence[Variant]) -> Result:
    """The tables: against the reference, run by run, against Min-Min; each for both estimates."""
    rows = rows_of(trainings)
    reference, others = rows[0], [Row(f"*{name}*", (name,)) for name in RIVALS[1:]]
    baseline = Row(BASELINE, (BASELINE,))
    by_source = [[each for each in found if each.case.source == one] for one in SOURCES]
    first, *more = [_versus(part, [*rows[1:], *others], reference) for part in by_source]
    more += [_alone(part, rows[1:], reference) for part in by_source]
    more += [_versus(part, [*rows, *others], baseline) for part in by_source]
    note = (
        f"Mean JCT, mean over the runs of a training, with 95 % intervals over {len(SEEDS)} paired "
        f"seeds ({len(FEWER_SEEDS)} of drift16 and rough64). The intervals know nothing of the "
        "chance in training itself: that is what the runs differ by."
    )
    details = {each.case.name: each.result.model_dump() for each in found}
    return Result(first.head, first.lines, figures_of(found), details, more=more, note=note)


def make(options: argparse.Namespace) -> Result:
    """All trainings, then all cases; each is kept as soon as it is there."""
    shelf = ComparisonCache(options.keep, options.resume)
    shelf.open()
    drift = find_scenario(str(DRIFT))
    scenario = adjusted(drift, jobs=QUICK_JOBS) if options.quick else drift
    trainings = variants(TINY) if options.quick else variants()
    workshop = Workshop(options.keep, scenario, options.resume, options.threads)
    trained = {one: workshop.train(one) for one in trainings}
    found = [
        measured(case, trained, shelf, options.threads) for case in cases(is_quick=options.quick)
    ]
    result = summed_up(found, trainings)
    return with_cpu_s(result, trained)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit status."""
    return command_line(__doc__ or "", FOLDER, make, arguments)


if __name__ == "__main__":
    sys.exit(main())
