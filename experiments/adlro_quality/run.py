"""The learned policy against every bar set for it: three loads, and what it was not trained on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from bars import Bar
from common import Result, Table, parser, plus_minus, run
from kept import Shelf, fingerprint
from versus import against, by_name, compared, hindsight_against, in_hindsight, percent

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.evaluate.comparison import BASELINE, Comparison, Row
from adlro.evaluate.stats import Estimate
from adlro.policies import registry
from adlro.workloads.setting import prepare

FOLDER = Path(__file__).parent
CLAIMS = range(200_000, 200_500)  # kept for this table: nothing was trained or chosen on them
QUICK_SEEDS = range(100_000, 100_002)

LOADS = {0.6: Bar("<=", -4.4), 0.8: Bar("<=", -6.8), 0.95: Bar("<=", -8.1, aim=-10)}
PAPER = ("fcfs", "static-affinity")  # what the paper compares with, at the highest load
STRONG = (BASELINE, "drain-argmin", "allox")
QUICK = STRONG[:2]  # without allox, which takes longer than all others together
BETTER, NO_WORSE = Bar("<", 0), Bar("<=", 0)
GAP, COST = Bar(">=", 60, aim=75), Bar("<=", 10, unit="us")
LESS_JCT, MORE_JOBS = Bar("<=", -25), Bar(">=", 18)
UNSEEN = Bar("<=", -5, aim=-6)


class Case(NamedTuple):
    """A scenario, who is measured on it beside the learned policy, and the bar for that."""

    name: str
    scenario: Scenario
    rivals: tuple[str, ...] = QUICK
    bar: Bar = UNSEEN
    beside: str = BASELINE  # against whom
    with_hindsight: bool = False


def _mostly(scenario: Scenario, job_type: str) -> list[dict[str, object]]:
    """Its job types when 70 % of the jobs are of one, and the others share the rest evenly."""
    rest = 0.3 / (len(scenario.types) - 1)
    return [
        {**each.model_dump(), "share": 0.7 if each.name == job_type else rest}
        for each in scenario.types
    ]


def trained() -> list[Case]:
    """The paper's cluster at loads that training has seen, with other seeds."""
    paper = find_scenario("paper16")
    return [
        Case(
            f"paper16, load {load:g}", adjusted(paper, load=load), (*PAPER, *STRONG), bar,
            with_hindsight=True,
        )
        for load, bar in LOADS.items()
    ]  # fmt: skip


def unseen() -> list[Case]:
    """What lies outside of the family that was trained on (src/adlro/train/family.py)."""
    paper, hetero, surge, single, gavel = map(
        find_scenario, ("paper16", "hetero64", "paper16-surge", "paper16-single", "gavel16")
    )
    bursts = {"process": "bursty", "peak": 3.0, "share": 0.2}
    ml, simulation = _mostly(paper, "ml"), _mostly(paper, "simulation")
    noisy, wild = "noisy:0.5", "noisy:1.0"
    return [
        Case("bursty, load 0.8", adjusted(paper, load=0.8, arrivals=bursts)),
        Case("overload, load 4", adjusted(paper, load=4.0)),
        Case("estimates noisy:0.5, load 0.8", adjusted(paper, load=0.8, estimates=noisy)),
        Case("estimates noisy:1.0, load 0.95", adjusted(paper, load=0.95, estimates=wild)),
        Case("70 % ml, load 0.8", adjusted(paper, load=0.8, types=ml)),
        Case("70 % simulation, load 0.9", adjusted(paper, load=0.9, types=simulation)),
        Case("hetero64, load 1.5", adjusted(hetero, load=1.5)),
        Case("paper16-surge, load 0.8", adjusted(surge, load=0.8)),
        Case("paper16-single, load 0.95", adjusted(single, load=0.95), bar=NO_WORSE),
        Case("gavel16, load 0.9", adjusted(gavel, load=0.9), STRONG, BETTER, "allox"),
    ]


class Found(NamedTuple):
    """What came out of a case."""

    case: Case
    result: Comparison
    learned: str  # the learned policy's name

    @property
    def row(self) -> Row:
        """The learned policy's."""
        return by_name(self.result)[self.learned]

    @property
    def strongest(self) -> str:
        """The best of the others."""
        return min((r for r in self.result.policies if r.name != self.learned), key=_jct).name


def _jct(row: Row) -> float:
    return row.jct


class Claim(NamedTuple):
    """A bar and the figure that it is for."""

    what: str
    bar: Bar
    found: Estimate
    shown: str

    @property
    def line(self) -> list[str]:
        """Of a table."""
        return [self.what, str(self.bar), self.shown, self.bar.verdict(self.found)]


def _claim(found: Found, rival: str, bar: Bar, metric: str = "mean_jct") -> Claim:
    """About a difference to a rival."""
    names = {"mean_jct": "mean JCT", "p99_jct": "p99 JCT", "throughput_jobs_per_h": "throughput"}
    difference = found.row.versus[rival][f"{metric}_pct"]
    shown = percent(difference.mean, difference.ci95)
    return Claim(f"{found.case.name}: {names[metric]} vs {rival}", bar, difference, shown)


def _real_us(row: Row) -> float:
    """CPU time for a decision that had a feasible pair, the simulator's own work included."""
    return row.decision_us * row.decisions / row.real_decisions


def _gap_cell(row: Row, learned: str) -> str:
    """Share of the gap to hindsight, with its interval for the learned policy."""
    gap = row.gap_closed
    if gap is None:
        return ""
    if gap.ci95 is None or row.name != learned:
        return f"{gap.mean:,.0f} %"
    return f"{gap.mean:,.0f} % ({gap.ci95[0]:,.0f} to {gap.ci95[1]:,.0f})"


def _claims_at_load(found: Found) -> list[Claim]:
    name, row = found.case.name, found.row
    us = Estimate(mean=_real_us(row), sd=None, ci95=None)
    claims = [
        _claim(found, BASELINE, found.case.bar),
        _claim(found, found.strongest, BETTER),
        _claim(found, BASELINE, NO_WORSE, "p99_jct"),
        Claim(f"{name}: a real decision", COST, us, f"{us.mean:.1f} us"),
    ]
    if row.gap_closed:
        shown = _gap_cell(row, found.learned)
        claims.append(Claim(f"{name}: gap to hindsight closed", GAP, row.gap_closed, shown))
    return claims


def _claims_on_paper(found: Found) -> list[Claim]:
    """Against the paper's own baselines."""
    return [
        claim
        for rival in PAPER
        for claim in (
            _claim(found, rival, LESS_JCT),
            _claim(found, rival, MORE_JOBS, "throughput_jobs_per_h"),
        )
    ]


def _loads_table(found: Sequence[Found]) -> tuple[list[str], list[list[str]]]:
    """Head and lines: one policy a line, best first at the highest load, then hindsight."""
    loads = [f"{each.result.load:g}" for each in found]
    head = [
        "policy", *(f"mean JCT s at {load}" for load in loads),
        *(f"vs {BASELINE} at {load}" for load in loads),
        *(f"gap closed at {load}" for load in loads),
    ]  # fmt: skip
    lines = []
    for name in (row.name for row in sorted(found[-1].result.policies, key=_jct)):
        rows = [by_name(each.result)[name] for each in found]
        jct = [row.metrics["mean_jct_s"] for row in rows]
        lines.append([
            name, *(plus_minus(each.mean, each.ci95, 0) for each in jct),
            *(against(row, BASELINE) for row in rows),
            *(_gap_cell(row, found[0].learned) for row in rows),
        ])  # fmt: skip
    best = [in_hindsight(each.result) for each in found]
    lines.append([
        "*hindsight (no policy)*", *(plus_minus(each.mean, each.ci95, 0) for each in best),
        *(hindsight_against(each.result, BASELINE) for each in found), *["100 %"] * len(found),
    ])  # fmt: skip
    return head, lines


def _details_table(found: Sequence[Found]) -> Table:
    """Load by load what the first table has no room for."""
    learned = found[0].learned
    head = (
        "load", "policy", f"{learned}: mean JCT vs it", "p99 JCT s", f"p99 vs {BASELINE}", "jobs/h",
        "us a real decision",
    )  # fmt: skip
    lines = [
        [
            f"{each.result.load:g}", row.name, against(each.row, row.name),
            f"{row.metrics['p99_jct_s'].mean:,.0f}", against(row, BASELINE, "p99_jct_pct"),
            f"{row.metrics['throughput_jobs_per_h'].mean:.1f}", f"{_real_us(row):,.1f}",
        ]
        for each in found
        for row in sorted(each.result.policies, key=_jct)
    ]  # fmt: skip
    return Table("The same runs in more detail:", head, lines, is_brief=False)


def _unseen_table(found: Sequence[Found]) -> Table:
    """One scenario a line."""
    learned = found[0].learned
    others = [name for name in STRONG if name != BASELINE]
    head = (
        "scenario", f"{BASELINE}: mean JCT s", *(f"{name} vs {BASELINE}" for name in others),
        f"{learned} vs {BASELINE}", f"{learned}: p99 vs {BASELINE}", "bar", "verdict",
    )  # fmt: skip
    lines = []
    for each in found:
        rows, case = by_name(each.result), each.case
        bar = str(case.bar) if case.beside == BASELINE else f"{case.bar} vs {case.beside}"
        lines.append([
            case.name, f"{rows[BASELINE].jct:,.0f}",
            *(against(rows[name], BASELINE) if name in rows else "" for name in others),
            against(each.row, BASELINE), against(each.row, BASELINE, "p99_jct_pct"),
            bar, case.bar.verdict(each.row.jct_versus(case.beside)),
        ])  # fmt: skip
    return Table("Never trained on:", head, lines, is_brief=True)


def _note(claims: Sequence[Claim], seeds: range, learned: str) -> str:
    """Which seeds and policy, and how many bars are met."""
    met = sum(claim.bar.is_met(claim.found) for claim in claims)
    missed = [f"{c.what}: {c.shown}, wanted {c.bar}" for c in claims if not c.bar.is_met(c.found)]
    tail = f" Missed: {'; '.join(missed)}." if missed else ""
    where = f"Policy `{learned}`, seeds {seeds[0]:,} to {seeds[-1]:,}, the same for all."
    return f"{where} {met} of {len(claims)} bars are met.{tail}"


def summed_up(known: Sequence[Found], new: Sequence[Found], seeds: range) -> Result:
    """The tables of what was found at the loads of the paper's cluster, and elsewhere."""
    on_paper = _claims_on_paper(known[-1])
    claims = [claim for each in known for claim in _claims_at_load(each)]
    claims += [_claim(each, each.case.beside, each.case.bar) for each in new] + on_paper
    heading = ("bar", "wanted", "found", "verdict")
    head, lines = _loads_table(known)
    figures = {}
    for each in (*known, *new):
        figures[each.case.name] = {f"{r.name}: mean JCT s": r.jct for r in each.result.policies}
        if each.result.hindsight:
            figures[each.case.name]["hindsight: mean JCT s"] = each.result.hindsight.mean
    learned = known[0].learned
    paper = "Against the paper's own baselines:"
    more = [
        _details_table(known),
        _unseen_table(new),
        Table(paper, heading, [claim.line for claim in on_paper], is_brief=True),
        Table("Every bar:", heading, [claim.line for claim in claims], is_brief=False),
    ]
    details = {
        "bars": [{**c._asdict(), "bar": str(c.bar), "found": c.found.model_dump()} for c in claims],
        "comparisons": {each.case.name: each.result.model_dump() for each in (*known, *new)},
    }
    return Result(head, lines, figures, details, more=more, note=_note(claims, seeds, learned))


def measured(case: Case, policy: str, seeds: range, shelf: Shelf) -> Found:
    """Run a case, or take what is kept of it."""
    setting, names = prepare(case.scenario), (*case.rivals, policy)
    chosen = [registry.load(name, setting) for name in names]
    mark = fingerprint(case.scenario, chosen, seeds, case.with_hindsight)

    def compare() -> Comparison:
        return compared(
            case.scenario, names, seeds, with_hindsight=case.with_hindsight, name=case.name
        )

    return Found(case, shelf.get(case.name, mark, compare), chosen[-1].name)


def _seeds(options: argparse.Namespace) -> range:
    """Which seeds are meant.

    Raises:
        ConfigError: there is none, or a check is wanted of other seeds than the published ones.
    """
    if options.seeds is not None:
        first, count = options.seeds
        if first < 0 or count < 1:
            raise ConfigError(f"--seeds {first} {count}: say FIRST >= 0 and COUNT >= 1")
        seeds = range(first, first + count)
    else:
        seeds = QUICK_SEEDS if options.quick else CLAIMS
    published = seeds == CLAIMS and options.policy == "adlro"
    if (options.check or options.expect) and not published:
        raise ConfigError(
            "--check and --expect are about the shipped policy on all published seeds; "
            "leave out --quick, --seeds and --policy"
        )
    return seeds


def make(options: argparse.Namespace) -> Result:
    """All cases, each kept as soon as it is there."""
    seeds, shelf = _seeds(options), Shelf(options.keep, options.resume)
    shelf.open()
    known, new = (
        [measured(case, options.policy, seeds, shelf) for case in cases]
        for cases in (trained(), unseen())
    )
    return summed_up(known, new, seeds)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit status."""
    own = parser(__doc__ or "", FOLDER)
    own.add_argument(
        "--policy", default="adlro", metavar="FILE",
        help="another learned policy (.npz), or a policy by name",
    )  # fmt: skip
    own.add_argument("--seeds", type=int, nargs=2, metavar=("FIRST", "COUNT"))
    options = own.parse_args(arguments)
    return run(options, FOLDER, lambda: make(options))


if __name__ == "__main__":
    sys.exit(main())
