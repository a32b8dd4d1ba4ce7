"""Gain and cost of the look-ahead: +lookahead on several base policies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from common import Result, parser, run
from comparison_cache import ComparisonCache, fingerprint
from versus import against, by_name, compared

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.evaluate.comparison import Comparison, PolicyRow
from adlro.policies import registry
from adlro.policies.lookahead import SUFFIX, split
from adlro.workloads.setting import prepare

FOLDER = Path(__file__).parent
QUICK_SEEDS = 2
SCENARIOS = ("load 0.6", "load 0.8", "load 0.95", "noisy:0.5, load 0.8")


class Group(NamedTuple):
    """Policies compared on the same seeds, including their base policies."""

    name: str
    seeds: int  # from 0 on
    scenarios: Sequence[str]
    policies: Sequence[str]


def _ahead(base: str) -> list[str]:
    """A base policy without and with looking ahead."""
    return [base, base + SUFFIX]


GROUPS = (
    Group(
        "drain", 200, SCENARIOS,
        [*_ahead("min-min"), "drain-argmin", *_ahead("pair-sjf"), *_ahead("fcfs")],
    ),
    Group("adlro", 200, SCENARIOS[:3], _ahead("adlro")),
)  # fmt: skip


def scenario_of(name: str) -> Scenario:
    """Return paper16 with the load and estimates that one of SCENARIOS names."""
    paper = find_scenario("paper16")
    estimates, _, load = name.rpartition("load ")
    if estimates:
        return adjusted(paper, load=float(load), estimates=estimates.rstrip(", "))
    return adjusted(paper, load=float(load))


def measure(group: Group, name: str, seeds: range, cache: ComparisonCache) -> Comparison:
    """Compare a group on a scenario, or load the result from the cache."""
    scenario = scenario_of(name)
    setting = prepare(scenario)
    mark = fingerprint(scenario, [registry.load(p, setting) for p in group.policies], seeds)
    label = f"{group.name}, {name}"
    return cache.get(label, mark, lambda: compared(scenario, group.policies, seeds, name=label))


def _base(name: str) -> str:
    """Return the policy that a policy is compared with."""
    return split(name)[0] if name != "drain-argmin" else "min-min"


def _ms(row: PolicyRow) -> float:
    """CPU milliseconds per decision with a feasible pair, including the simulator's own work."""
    return 1e-3 * row.decision_us * row.decisions / row.real_decisions


def _line(name: str, found: dict[str, Comparison], seeds: int) -> list[str]:
    """One line of the table."""
    cells, ms = [], 0.0
    for scenario in SCENARIOS:
        if scenario not in found:
            cells.append("")
            continue
        row = by_name(found[scenario])[name]
        cells.append(against(row, _base(name)))
        ms = _ms(row) if scenario == "load 0.95" else ms
    return [name, *cells, f"{ms:,.3f}", f"{seeds:,}"]


def make(options: argparse.Namespace) -> Result:
    """Run all groups, caching each result.

    Raises:
        ConfigError: --check or --expect with other than the published seeds.
    """
    if options.quick and (options.check or options.expect):
        raise ConfigError("--check and --expect are about all published seeds; leave out --quick")
    cache = ComparisonCache(options.keep, options.resume)
    cache.open()
    lines, figures, details = [], {}, {}
    for group in GROUPS:
        seeds = range(QUICK_SEEDS if options.quick else group.seeds)
        found = {name: measure(group, name, seeds, cache) for name in group.scenarios}
        lines += [_line(p, found, len(seeds)) for p in group.policies if _base(p) != p]
        for name, result in found.items():
            label = f"{group.name}, {name}"
            figures[label] = {f"{row.name}: mean JCT s": row.jct for row in result.policies}
            details[label] = result.model_dump()
    head = ("policy", *(f"vs its base, {name}" for name in SCENARIOS), "ms a decision", "seeds")
    return Result(head, lines, figures, details)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    own = parser(__doc__ or "", FOLDER)
    options = own.parse_args(arguments)
    return run(options, FOLDER, lambda: make(options))


if __name__ == "__main__":
    sys.exit(main())
