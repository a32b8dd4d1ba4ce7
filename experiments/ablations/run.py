"""The training of `adlro` with one thing left out at a time: what each is worth."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from ablations.training import Trained, Workshop
from ablations.variants import AGAIN, BUDGET, REFERENCE, TINY, TINY_TD, Variant, variants
from common import ROOT, Result, Table, parser, run
from kept import Shelf, fingerprint
from versus import by_name, percent

from adlro.config import Scenario, adjusted, find_scenario
from adlro.errors import ConfigError
from adlro.evaluate.compare import compare
from adlro.evaluate.comparison import BASELINE, Comparison
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.train import weights
from adlro.workloads.synthetic import prepare

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
    with_untuned: bool


def cases(*, is_quick: bool) -> list[Case]:
    """The scenario of the training at three loads, then two that no training has seen."""
    paper, hetero = find_scenario("paper16"), find_scenario("hetero64")
    bursts = {"process": "bursty", "peak": 3.0, "share": 0.2}  # training knows peaks up to 2.5
    found = [
        Case(f"paper16, load {load:g}", adjusted(paper, load=load), SEEDS, with_untuned=True)
        for load in LOADS
    ]
    bursty, large = adjusted(paper, load=0.8, arrivals=bursts), adjusted(hetero, load=1.5)
    found += [
        Case("bursty, load 0.8", bursty, UNSEEN_SEEDS, with_untuned=False),
        Case("hetero64, load 1.5", large, UNSEEN_SEEDS, with_untuned=False),
    ]
    if is_quick:
        return [
            one._replace(scenario=adjusted(one.scenario, jobs=QUICK_JOBS), seeds=QUICK_SEEDS)
            for one in found
        ]
    return found


class Found(NamedTuple):
    """What came out of a case."""

    case: Case
    result: Comparison

    def versus(self, name: str, rival: str) -> str:
        """By how much a policy's mean JCT is above a rival's; "-" beside itself."""
        if name == rival:
            return "-"
        found = by_name(self.result)[name].jct_versus(rival)
        return percent(found.mean, found.ci95)


def measured(case: Case, trained: dict[str, Trained], shelf: Shelf, threads: int) -> Found:
    """All networks on the seeds of a case, or what is kept of that."""
    setting = prepare(case.scenario)
    policies = [registry.load(name, setting.public()) for name in RIVALS]
    for name, one in trained.items():
        policies.append(_named(name, weights.policy(one.tuned, setting)))
        if case.with_untuned:
            policies.append(_named(UNTUNED.format(name), weights.policy(one.fitted, setting)))
    mark = fingerprint(case.scenario, policies, case.seeds)

    def play() -> Comparison:
        sys.stderr.write(f"{case.name}: {len(policies)} policies, {len(case.seeds)} seeds\n")
        simulator.warm_up(policies)
        return compare(setting, policies, case.seeds, threads=threads)

    return Found(case, shelf.get(case.name, mark, play))


def _named(name: str, policy: Policy) -> Policy:
    return policy._replace(name=name)


def _lines(found: Sequence[Found], names: dict[str, str], reference: str) -> list[list[str]]:
    """One line a policy, shown under the name given for it: against Min-Min, then the reference."""
    return [
        [shown]
        + [each.versus(name, BASELINE) for each in found]
        + [each.versus(name, reference) for each in found]
        for name, shown in names.items()
    ]


def _head(found: Sequence[Found], reference: str) -> list[str]:
    labels = [each.case.name for each in found]
    rivals = (BASELINE, reference)
    return ["training", *(f"{label}, vs {rival}" for rival in rivals for label in labels)]


def summed_up(known: Sequence[Found], new: Sequence[Found], names: Sequence[str]) -> Result:
    """The tables: tuned at the three loads, before tuning, on what is new; names are trainings'."""
    untuned = UNTUNED.format(REFERENCE)
    main = {name: name for name in names} | {untuned: NO_TUNING}
    others = {name: f"*{name}*" for name in RIVALS[1:]}
    before = {UNTUNED.format(name): name for name in names}
    figures = {
        each.case.name: {f"{row.name}: mean JCT s": row.jct for row in each.result.policies}
        for each in (*known, *new)
    }
    more = [
        Table(
            "Before tuning (the reference here is the reference before tuning):",
            _head(known, REFERENCE), _lines(known, before, untuned), is_brief=False,
        ),
        Table(
            "On two scenarios outside of what any training draws:",
            _head(new, REFERENCE), _lines(new, {n: n for n in names} | others, REFERENCE),
            is_brief=False,
        ),
    ]  # fmt: skip
    details = {each.case.name: each.result.model_dump() for each in (*known, *new)}
    lines = _lines(known, main | others, REFERENCE)
    note = (
        f"Mean JCT, 95 % intervals over {len(known[0].case.seeds)} paired seeds "
        f"({len(new[0].case.seeds)} in the last table). {AGAIN[0].capitalize()} and "
        f"{AGAIN[1].removeprefix('reference, ')}: the same training with other seeds."
    )
    return Result(_head(known, REFERENCE), lines, figures, details, more=more, note=note)


def make(options: argparse.Namespace) -> Result:
    """All trainings, then all cases; each is kept as soon as it is there."""
    if options.quick and (options.check or options.expect):
        raise ConfigError("--check and --expect are about the whole experiment; leave out --quick")
    shelf = Shelf(options.keep, options.resume)
    shelf.open()
    paper = find_scenario("paper16")
    scenario = adjusted(paper, jobs=QUICK_JOBS) if options.quick else paper
    chosen = variants(TINY, TINY_TD) if options.quick else variants(BUDGET)
    workshop = Workshop(options.keep, scenario, options.resume, options.threads)
    trained = {one.name: _train(workshop, one) for one in chosen}
    found = [
        measured(case, trained, shelf, options.threads) for case in cases(is_quick=options.quick)
    ]
    result = summed_up(found[: len(LOADS)], found[len(LOADS) :], list(trained))
    spent = {name: one.cpu_s for name, one in trained.items()}
    return result._replace(details={"cpu_s": spent, "comparisons": result.details})


def _train(workshop: Workshop, variant: Variant) -> Trained:
    found = workshop.train(variant)
    sys.stderr.write(f"{variant.name}: trained, {found.cpu_s:,.0f} CPU-s\n")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit status."""
    own = parser(__doc__ or "")
    own.add_argument(
        "--keep", type=Path, default=ROOT / "out" / FOLDER.name, metavar="FOLDER",
        help="where trainings and results are written as they come",
    )  # fmt: skip
    own.add_argument("--resume", action="store_true", help="go on with what is there already")
    own.add_argument("--threads", type=int, default=2, help="results do not depend on it")
    options = own.parse_args(arguments)
    return run(options, FOLDER, lambda: make(options))


if __name__ == "__main__":
    sys.exit(main())
