"""Comparison of policies on a scenario, for the experiments on mean JCT."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from adlro.config.scenario import Scenario
from adlro.evaluate import references
from adlro.evaluate.compare import Watch, compare
from adlro.evaluate.comparison import Comparison, PolicyRow
from adlro.evaluate.stats import Estimate
from adlro.policies import registry
from adlro.sim import simulator
from adlro.workloads.setting import prepare

LOOK_AHEAD = "*look-ahead with foresight (no policy, no bound)*"  # its line in tables


def heuristics() -> list[str]:
    """All shipped policies except the learned ones, which have tables of their own."""
    return [name for name in registry.names() if registry.weights_file(name) is None]


def compared(
    scenario: Scenario,
    policies: Sequence[str],
    seeds: range,
    *,
    with_references: bool = False,
    watch: Watch = lambda *_: None,
    name: str | None = None,
) -> Comparison:
    """Compare policies on a scenario, announcing it on stderr."""
    label = name or f"{scenario.name}, load {scenario.load:g}"
    sys.stderr.write(f"{label}: {len(seeds)} seeds\n")
    setting = prepare(scenario)
    chosen = [registry.load(name, setting) for name in policies]
    simulator.warm_up(chosen)  # keeps compiling out of the decision times
    wanted = references.play if with_references else None
    return compare(setting, chosen, seeds, watch=watch, references=wanted)


def percent(mean: float, ci95: tuple[float, float] | None) -> str:
    """A difference in percent with its interval, without decimals if it is large."""
    digits = 1 if abs(mean) < 100 else 0
    text = f"{mean:+,.{digits}f} %"
    if ci95 is None:
        return text
    low, high = (f"{bound:+,.{digits}f}" for bound in ci95)
    return f"{text} ({low} to {high})"


def against(row: PolicyRow, rival: str, metric: str = "mean_jct_pct") -> str:
    """Percent by which a policy's metric exceeds a rival's; "-" for the rival itself."""
    if row.name == rival:
        return "-"
    found = row.versus[rival][metric]
    return percent(found.mean, found.ci95)


def by_name(found: Comparison) -> dict[str, PolicyRow]:
    """The rows of a comparison by policy name."""
    return {row.name: row for row in found.policies}


def look_ahead(found: Comparison) -> Estimate:
    """Mean JCT in seconds of the look-ahead with foresight, which is no policy and no bound.

    Raises:
        ValueError: the comparison has none.
    """
    if found.hindsight is None:
        raise ValueError(f"{found.scenario}: compared without references")
    return found.hindsight


def look_ahead_against(found: Comparison, rival: str) -> str:
    """Percent by which the look-ahead's mean JCT exceeds a policy's; without interval."""
    return percent(100 * (look_ahead(found).mean / by_name(found)[rival].jct - 1), None)
