"""The learned policy against its bars, beside the policy shipped before: loads, other scenarios."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from bars import Bar
from common import Result, Table, parser, plus_minus, run
from comparison_cache import ComparisonCache, fingerprint
from versus import LOOK_AHEAD, against, by_name, compared, look_ahead, look_ahead_against, percent

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.evaluate.comparison import BASELINE, Comparison, PolicyRow
from adlro.evaluate.stats import Estimate
from adlro.policies import registry
from adlro.policies.loading import learned
from adlro.workloads.setting import prepare

FOLDER = Path(__file__).parent
CLAIMS = range(201_000, 201_500)  # reserved for this table: never used for training or selection
QUICK_SEEDS = range(100_000, 100_002)

BEFORE = "before"  # the policy of 2026-11-16, FOLDER/before.npz
FORMER = str(FOLDER / f"{BEFORE}.npz")
LOADS = {
    0.6: Bar("<=", -4.4, aim=-5.5), 0.8: Bar("<=", -6.8, aim=-8.5), 0.95: Bar("<=", -8.1, aim=-10.5)
}  # fmt: skip
PAPER = ("fcfs", "static-affinity")  # what the paper compares with, at the highest load
STRONG = (BASELINE, "drain-argmin", "allox")
QUICK = STRONG[:2]  # without allox, which takes longer than all others together
BETTER, NO_WORSE, AS_BEFORE = Bar("<", 0), Bar("<=", 0), Bar("<=", 0.3)
GAP, COST = Bar(">=", 60, aim=75), Bar("<=", 10, unit="us")
LESS_JCT, MORE_JOBS = Bar("<=", -25), Bar(">=", 18)
UNSEEN = Bar("<=", -5, aim=-6)


class Case(NamedTuple):
    """A scenario, the rivals of the learned policy on it, and the bar it must meet."""

    name: str
    scenario: Scenario
    rivals: tuple[str, ...] = QUICK
    bar: Bar = UNSEEN
    beside: str = BASELINE  # the rival that the bar refers to
    with_references: bool = False
    seeds: int = len(CLAIMS)  # at most


def _mostly(scenario: Scenario, job_type: str) -> list[dict[str, object]]:
    """Return the job types with 70 % of one; the others share the rest evenly."""
    rest = 0.3 / (len(scenario.types) - 1)
    return [
        {**each.model_dump(), "share": 0.7 if each.name == job_type else rest}
        for each in scenario.types
    ]


def learned_before() -> learned.Learned:
    """Return the policy that was shipped before."""
    return learned.load(Path(FORMER))


def _times(scenario: Scenario, factor: int) -> dict[str, object]:
    """Return the scenario's cluster with `factor` times as many nodes of each kind."""
    cluster = scenario.cluster.model_dump()
    for group in cluster["nodes"]:
        group["count"] *= factor
    return cluster


def trained() -> list[Case]:
    """The paper's cluster at loads seen in training, with other seeds."""
    paper = find_scenario("paper16")
    return [
        Case(
            f"paper16, load {load:g}", adjusted(paper, load=load), (*PAPER, *STRONG), bar,
            with_references=True,
        )
        for load, bar in LOADS.items()
    ]  # fmt: skip


def unseen() -> list[Case]:
    """Other scenarios than the one that the training is about."""
    paper, hetero, surge, single, gavel = map(
        find_scenario, ("paper16", "hetero64", "paper16-surge", "paper16-single", "gavel16")
    )
    bursts = {"process": "bursty", "peak": 3.0, "share": 0.2}
    ml, simulation = _mostly(paper, "ml"), _mostly(paper, "simulation")
    noisy, wild = "noisy:0.5", "noisy:1.0"
    calm = [
        Case(f"paper16, load {load:g}", adjusted(paper, load=load), bar=NO_WORSE)
        for load in (0.3, 0.4, 0.5)
    ]
    large = {"load": 1.5, "jobs": 3_000, "cluster": _times(hetero, 16)}
    return [
        *calm,
        Case("bursty, load 0.8", adjusted(paper, load=0.8, arrivals=bursts)),
        Case("overload, load 4", adjusted(paper, load=4.0), bar=AS_BEFORE, beside=BEFORE),
        Case("estimates noisy:0.5, load 0.8", adjusted(paper, load=0.8, estimates=noisy)),
        Case("estimates noisy:1.0, load 0.95", adjusted(paper, load=0.95, estimates=wild)),
        Case("70 % ml, load 0.8", adjusted(paper, load=0.8, types=ml)),
        Case("70 % simulation, load 0.9", adjusted(paper, load=0.9, types=simulation)),
        Case("hetero64, load 1.5", adjusted(hetero, load=1.5), bar=Bar("<=", -23)),
        Case(
            "hetero64 x 16, load 1.5",
            adjusted(hetero, **large),
            bar=NO_WORSE,
            beside="drain-argmin",
            seeds=24,
        ),
        Case("paper16-surge, load 0.8", adjusted(surge, load=0.8), bar=AS_BEFORE, beside=BEFORE),
        Case("paper16-single, load 0.95", adjusted(single, load=0.95), bar=NO_WORSE),
        Case("gavel16, load 0.9", adjusted(gavel, load=0.9), STRONG, BETTER, "allox"),
    ]


class CaseResult(NamedTuple):
    """The comparison of a case."""

    case: Case
    result: Comparison
    learned: str  # the learned policy's name

    @property
    def row(self) -> PolicyRow:
        """The row of the learned policy."""
        return by_name(self.result)[self.learned]

    @property
    def strongest(self) -> str:
        """Name of the best other policy."""
        own = (self.learned, BEFORE)
        return min((r for r in self.result.policies if r.name not in own), key=_jct).name


def _jct(row: PolicyRow) -> float:
    return row.jct


class Claim(NamedTuple):
    """A bar and the figure it applies to."""

    what: str
    bar: Bar
    found: Estimate
    shown: str

    @property
    def line(self) -> list[str]:
        """A line of the table."""
        return [self.what, str(self.bar), self.shown, self.bar.verdict(self.found)]


def _claim(found: CaseResult, rival: str, bar: Bar, metric: str = "mean_jct") -> Claim:
    """Build the claim about a difference to a rival."""
    names = {"mean_jct": "mean JCT", "p99_jct": "p99 JCT", "throughput_jobs_per_h": "throughput"}
    difference = found.row.versus[rival][f"{metric}_pct"]
    shown = percent(difference.mean, difference.ci95)
    return Claim(f"{found.case.name}: {names[metric]} vs {rival}", bar, difference, shown)


def _real_us(row: PolicyRow) -> float:
    """CPU microseconds per decision with a feasible pair, including the simulator's own work."""
    return row.decision_us * row.decisions / row.real_decisions


def _gap_cell(row: PolicyRow, learned: str) -> str:
    """Share of the gap to the look-ahead that is closed; with interval for the learned policy."""
    gap = row.gap_closed
    if gap is None:
        return ""
    if gap.ci95 is None or row.name != learned:
        return f"{gap.mean:,.0f} %"
    return f"{gap.mean:,.0f} % ({gap.ci95[0]:,.0f} to {gap.ci95[1]:,.0f})"


def _claims_at_load(found: CaseResult) -> list[Claim]:
    name, row = found.case.name, found.row
    us = Estimate(mean=_real_us(row), sd=None, ci95=None)
    claims = [
        _claim(found, BEFORE, AS_BEFORE),
        _claim(found, BASELINE, found.case.bar),
        _claim(found, found.strongest, BETTER),
        _claim(found, BASELINE, NO_WORSE, "p99_jct"),
        Claim(f"{name}: a real decision", COST, us, f"{us.mean:.1f} us"),
    ]
    if row.gap_closed:
        shown = _gap_cell(row, found.learned)
        claims.append(
            Claim(f"{name}: gap to a look-ahead with foresight closed", GAP, row.gap_closed, shown)
        )
    return claims


def _claims_on_paper(found: CaseResult) -> list[Claim]:
    """Claims against the paper's own baselines."""
    return [
        claim
        for rival in PAPER
        for claim in (
            _claim(found, rival, LESS_JCT),
            _claim(found, rival, MORE_JOBS, "throughput_jobs_per_h"),
        )
    ]


def _loads_table(found: Sequence[CaseResult]) -> tuple[list[str], list[list[str]]]:
    """Head and lines, one per policy: best first at the highest load, then the look-ahead."""
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
    best = [look_ahead(each.result) for each in found]
    lines.append([
        LOOK_AHEAD, *(plus_minus(each.mean, each.ci95, 0) for each in best),
        *(look_ahead_against(each.result, BASELINE) for each in found), *["100 %"] * len(found),
    ])  # fmt: skip
    return head, lines


def _details_table(found: Sequence[CaseResult]) -> Table:
    """Further figures of each load."""
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


def _unseen_table(found: Sequence[CaseResult]) -> Table:
    """Table of the other scenarios, one per line."""
    learned = found[0].learned
    others = [*(name for name in STRONG if name != BASELINE), BEFORE]
    head = (
        "scenario", "seeds", f"{BASELINE}: mean JCT s",
        *(f"{name} vs {BASELINE}" for name in others), f"{learned} vs {BASELINE}",
        f"{learned} vs {BEFORE}", f"{learned}: p99 vs {BASELINE}", "bar", "verdict",
    )  # fmt: skip
    lines = []
    for each in found:
        rows, case = by_name(each.result), each.case
        bar = str(case.bar) if case.beside == BASELINE else f"{case.bar} vs {case.beside}"
        lines.append([
            case.name, str(len(each.row.per_seed["mean_jct_s"])), f"{rows[BASELINE].jct:,.0f}",
            *(against(rows[name], BASELINE) if name in rows else "" for name in others),
            against(each.row, BASELINE), against(each.row, BEFORE),
            against(each.row, BASELINE, "p99_jct_pct"),
            bar, case.bar.verdict(each.row.jct_versus(case.beside)),
        ])  # fmt: skip
    return Table("Other scenarios:", head, lines, is_brief=True)


def _note(claims: Sequence[Claim], seeds: range, learned: str) -> str:
    """State the policy, the seeds and how many bars are met."""
    met = sum(claim.bar.is_met(claim.found) for claim in claims)
    missed = [f"{c.what}: {c.shown}, wanted {c.bar}" for c in claims if not c.bar.is_met(c.found)]
    tail = f" Missed: {'; '.join(missed)}." if missed else ""
    where = f"Policy `{learned}`, seeds {seeds[0]:,} to {seeds[-1]:,}, the same for all."
    return f"{where} {met} of {len(claims)} bars are met.{tail}"


def summarise(known: Sequence[CaseResult], new: Sequence[CaseResult], seeds: range) -> Result:
    """Make the tables from the cases on the paper's cluster and the other cases."""
    on_paper = _claims_on_paper(known[-1])
    claims = [claim for each in known for claim in _claims_at_load(each)]
    claims += [_claim(each, each.case.beside, each.case.bar) for each in new] + on_paper
    heading = ("bar", "wanted", "found", "verdict")
    head, lines = _loads_table(known)
    figures = {}
    for each in (*known, *new):
        figures[each.case.name] = {f"{r.name}: mean JCT s": r.jct for r in each.result.policies}
        if each.result.hindsight:
            figures[each.case.name]["look-ahead with foresight: mean JCT s"] = (
                each.result.hindsight.mean
            )
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


def measure(case: Case, policy: str, seeds: range, cache: ComparisonCache) -> CaseResult:
    """Compare the policies of a case, or load the result from the cache."""
    setting, names, seeds = (
        prepare(case.scenario),
        (*case.rivals, FORMER, policy),
        seeds[: case.seeds],
    )
    chosen = [registry.load(name, setting) for name in names]
    mark = fingerprint(case.scenario, chosen, seeds, case.with_references)

    def compare() -> Comparison:
        return compared(
            case.scenario, names, seeds, with_references=case.with_references, name=case.name
        )

    return CaseResult(case, cache.get(case.name, mark, compare), chosen[-1].name)


def _seeds(options: argparse.Namespace) -> range:
    """Return the seeds that the options ask for.

    Raises:
        ConfigError: there is none, or --check or --expect with other than the published seeds.
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
    """Run all cases, caching each result."""
    seeds, cache = _seeds(options), ComparisonCache(options.keep, options.resume)
    cache.open()
    known, new = (
        [measure(case, options.policy, seeds, cache) for case in cases]
        for cases in (trained(), unseen())
    )
    return summarise(known, new, seeds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
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
