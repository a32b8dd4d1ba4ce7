"""Effect of quotas on three accounts: bursty load on 64 mixed GPUs, with and without borrowing."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import Result, main, plus_minus
from versus import compared

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.policies.registry import Policy
from adlro.sim.simulator import RunResult
from adlro.workloads.workload import Workload

SEEDS, QUICK_SEEDS = range(50), range(3)
BRIEF = ("easy-backfill", "drain-argmin")
POLICIES = ("easy-backfill", "multifactor", "min-min", "drain-argmin", "tiresias")


def _rules(scenario: Scenario) -> dict[str, Scenario]:
    """Return the scenario without quotas, with hard quotas, and as shipped: with borrowing."""
    hard = [quota.model_copy(update={"borrow": False}).model_dump() for quota in scenario.quotas]
    return {
        "none": adjusted(scenario, quotas=()),
        "hard": adjusted(scenario, quotas=hard),
        "borrowing": scenario,
    }


class _ByAccount:
    """Mean JCT of each account's jobs on each seed, by policy."""

    def __init__(self, accounts: int) -> None:
        self._accounts = accounts
        self.jct: dict[str, list[list[float]]] = defaultdict(list)

    def watch(self, policy: Policy, seed: int, workload: Workload, result: RunResult) -> None:
        del seed
        jct = result.outcome["finish"] - workload.jobs["arrival"]
        of = workload.jobs["account"]
        self.jct[policy.name].append([jct[of == a].mean() for a in range(self._accounts)])

    def mean(self, policy: str) -> list[float]:
        return [float(mean) for mean in np.mean(self.jct[policy], axis=0)]


def make(quick: bool) -> Result:
    """Make the table: each policy under the three kinds of quotas."""
    scenario = find_scenario("quotas64")
    lines: dict[tuple[str, str], list[str]] = {}
    figures, details = {}, []
    for rules, changed in _rules(scenario).items():
        by_account = _ByAccount(len(scenario.accounts))
        seeds = QUICK_SEEDS if quick else SEEDS
        found = compared(changed, POLICIES, seeds, watch=by_account.watch)
        details.append(found.model_dump())
        for row in found.policies:
            jct, metrics = row.metrics["mean_jct_s"], row.metrics
            accounts = by_account.mean(row.name)
            lines[row.name, rules] = [
                row.name, rules, plus_minus(jct.mean, jct.ci95, 0),
                *(f"{mean:,.0f}" for mean in accounts), f"{metrics['jain_accounts'].mean:.3f}",
                f"{metrics['longest_wait_s'].mean / 3600:.1f}",
                f"{metrics['gpu_utilisation'].mean * 100:.1f}",
            ]  # fmt: skip
            named = dict(zip(scenario.accounts, accounts, strict=True))
            figures[f"{row.name}, {rules}"] = {"mean_jct_s": jct.mean, **named}
    head = (
        "policy", "quotas", "mean JCT s", *scenario.accounts, "Jain over accounts",
        "longest wait h", "GPU use %",
    )  # fmt: skip
    kinds = list(_rules(scenario))
    table = [lines[name, rules] for name in POLICIES for rules in kinds]
    return Result(head, table, figures, details, BRIEF)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", Path(__file__).parent, make))
