"""Policies compared on scenarios, for the experiments that are about the mean JCT."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from adlro.config import Scenario
from adlro.evaluate.compare import Watch, compare
from adlro.evaluate.comparison import Comparison
from adlro.evaluate.hindsight import mean_jct
from adlro.policies import registry
from adlro.workloads.synthetic import prepare


def compared(
    scenario: Scenario,
    policies: Sequence[str],
    seeds: range,
    *,
    with_hindsight: bool = False,
    watch: Watch = lambda *_: None,
) -> Comparison:
    """The policies on the scenario, with a line on stderr to tell that it is under way."""
    sys.stderr.write(f"{scenario.name}, load {scenario.load:g}: {len(seeds)} seeds\n")
    setting = prepare(scenario)
    chosen = [registry.load(name, setting.public()) for name in policies]
    reference = mean_jct if with_hindsight else None
    return compare(setting, chosen, seeds, watch=watch, hindsight=reference)


def percent(mean: float, ci95: tuple[float, float] | None) -> str:
    """A difference in percent with its interval, which may be lopsided; short where it is large."""
    digits = 1 if abs(mean) < 100 else 0
    text = f"{mean:+,.{digits}f} %"
    if ci95 is None:
        return text
    low, high = (f"{bound:+,.{digits}f}" for bound in ci95)
    return f"{text} ({low} to {high})"
