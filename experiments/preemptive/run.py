"""The learned policy that may preempt, against Hetero-SRPT and against adlro, which never does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from common import Result, parser, plus_minus, run
from versus import against, by_name, compared

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.evaluate.comparison import PolicyRow

FOLDER = Path(__file__).parent
CLAIMS = range(200_000, 200_500)  # nothing was trained or chosen on them
QUICK_SEEDS = range(100_000, 100_002)
OURS, RIVAL, PATIENT = "adlro-preemptive", "hetero-srpt", "adlro"
HEAD = (
    "where", "seeds", "policy", "mean JCT h", f"vs {RIVAL}", f"vs {PATIENT}", "p99 JCT h",
    "restarts a job",
)  # fmt: skip


class Case(NamedTuple):
    """Where the three are compared."""

    name: str
    scenario: Scenario
    seeds: int  # of the claims


def _with_restarts(scenario: Scenario, seconds: float) -> Scenario:
    """The same where every restart takes so long."""
    types = [{**each.model_dump(), "checkpoint_s": seconds} for each in scenario.types]
    return adjusted(scenario, types=types)


def _on_one_gpu(scenario: Scenario) -> Scenario:
    """The same on the first node of its cluster with one GPU."""
    node = scenario.cluster.nodes[0].model_copy(update={"count": 1, "gpus": 1})
    return adjusted(scenario, cluster={"name": "one-gpu", "nodes": [node.model_dump()]})


def cases() -> list[Case]:
    """Where it was trained, with dearer restarts, on one GPU, with gangs, and with single GPUs."""
    gavel, paper = find_scenario("gavel16"), find_scenario("paper16")
    single = find_scenario("paper16-single")
    one = _on_one_gpu(_with_restarts(adjusted(gavel, load=0.9), 0.0))
    return [
        Case("gavel16, load 0.9", adjusted(gavel, load=0.9), 500),
        Case("gavel16, restarts of 10 min", _with_restarts(adjusted(gavel, load=0.9), 600.0), 20),
        Case("gavel16, restarts of 30 min", _with_restarts(adjusted(gavel, load=0.9), 1800.0), 20),
        Case("one GPU, no restart cost, load 0.9", one, 30),
        Case("paper16, load 0.8", adjusted(paper, load=0.8), 30),
        Case("paper16, load 0.95", adjusted(paper, load=0.95), 30),
        Case("paper16-single, load 0.8", adjusted(single, load=0.8), 30),
        Case("paper16-single, load 0.95", adjusted(single, load=0.95), 30),
    ]


def _line(case: Case, seeds: int, row: PolicyRow) -> list[str]:
    jct = row.metrics["mean_jct_s"]
    hours = None if jct.ci95 is None else (jct.ci95[0] / 3600, jct.ci95[1] / 3600)
    return [
        case.name,
        str(seeds),
        row.name,
        plus_minus(jct.mean / 3600, hours, 3),
        against(row, RIVAL),
        against(row, PATIENT),
        f"{row.metrics['p99_jct_s'].mean / 3600:,.1f}",
        f"{row.metrics['restarts'].mean:.1f}",
    ]


def make(seeds: int | None, *, is_quick: bool) -> Result:
    """Three lines a case; `seeds` instead of each case's own number."""
    lines, figures, details = [], {}, {}
    for case in cases():
        drawn = QUICK_SEEDS if is_quick else CLAIMS[: seeds or case.seeds]
        found = compared(case.scenario, (RIVAL, PATIENT, OURS), drawn, name=case.name)
        rows = by_name(found)
        lines += [_line(case, len(drawn), rows[name]) for name in (OURS, RIVAL, PATIENT)]
        ours = rows[OURS]
        figures[case.name] = {
            f"JCT over {name}'s": 1 + ours.jct_versus(name).mean / 100 for name in (RIVAL, PATIENT)
        }
        details[case.name] = found.model_dump()
    return Result(HEAD, lines, figures, details)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    options = parser(__doc__ or "")
    options.add_argument(
        "--seeds",
        type=int,
        choices=range(2, len(CLAIMS) + 1),
        metavar="N",
        help="in every case, 2 to 500",
    )
    given = options.parse_args(arguments)
    return run(given, FOLDER, lambda: make(given.seeds, is_quick=given.quick))


if __name__ == "__main__":
    sys.exit(main())
