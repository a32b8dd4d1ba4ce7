"""The learned policy that may preempt, against Hetero-SRPT and against adlro, which never does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from common import Result, parser, plus_minus, run
from versus import against, by_name, compared

from adlro.config import Scenario, adjusted, find_scenario
from adlro.evaluate.comparison import Row

FOLDER = Path(__file__).parent
CLAIMS = range(200_000, 200_500)  # nothing was trained or chosen on them
QUICK_SEEDS = range(100_000, 100_002)
SEEDS = 100
OURS, RIVAL, PATIENT = "adlro-preemptive", "hetero-srpt", "adlro"
HEAD = (
    "where", "policy", "mean JCT h", f"vs {RIVAL}", f"vs {PATIENT}", "p99 JCT h", "restarts a job",
)  # fmt: skip


class Case(NamedTuple):
    """Where the three are compared."""

    name: str
    scenario: Scenario


def _with_restarts(scenario: Scenario, seconds: float) -> Scenario:
    """The same where every restart takes so long."""
    types = [{**each.model_dump(), "checkpoint_s": seconds} for each in scenario.types]
    return adjusted(scenario, types=types)


def cases() -> list[Case]:
    """Where it was trained, at another load, with dearer restarts, and with gangs."""
    gavel, paper = find_scenario("gavel16"), find_scenario("paper16")
    return [
        Case("gavel16, load 0.9", adjusted(gavel, load=0.9)),
        Case("gavel16, load 0.7", adjusted(gavel, load=0.7)),
        Case("gavel16, restarts of 10 min", _with_restarts(adjusted(gavel, load=0.9), 600.0)),
        Case("gavel16, restarts of 30 min", _with_restarts(adjusted(gavel, load=0.9), 1800.0)),
        Case("paper16, load 0.8", adjusted(paper, load=0.8)),
        Case("paper16, load 0.95", adjusted(paper, load=0.95)),
    ]


def _line(case: Case, row: Row) -> list[str]:
    jct = row.metrics["mean_jct_s"]
    hours = None if jct.ci95 is None else (jct.ci95[0] / 3600, jct.ci95[1] / 3600)
    return [
        case.name,
        row.name,
        plus_minus(jct.mean / 3600, hours),
        against(row, RIVAL),
        against(row, PATIENT),
        f"{row.metrics['p99_jct_s'].mean / 3600:,.1f}",
        f"{row.metrics['restarts'].mean:.1f}",
    ]


def make(seeds: range) -> Result:
    """Three lines a case."""
    lines, figures, details = [], {}, {}
    for case in cases():
        found = compared(case.scenario, (RIVAL, PATIENT, OURS), seeds, name=case.name)
        rows = by_name(found)
        lines += [_line(case, rows[name]) for name in (OURS, RIVAL, PATIENT)]
        ours = rows[OURS]
        figures[case.name] = {
            f"JCT over {name}'s": 1 + ours.jct_versus(name).mean / 100 for name in (RIVAL, PATIENT)
        }
        details[case.name] = found.model_dump()
    return Result(HEAD, lines, figures, details, note=f"{len(seeds)} seeds.")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    options = parser(__doc__ or "")
    options.add_argument("--seeds", type=int, default=SEEDS, help="how many, at most 500")
    given = options.parse_args(arguments)
    seeds = QUICK_SEEDS if given.quick else CLAIMS[: given.seeds]
    return run(given, FOLDER, lambda: make(seeds))


if __name__ == "__main__":
    sys.exit(main())
