"""Policies on the windows for tuning: what may be looked at while a policy is being built.

    python experiments/traces/look.py mine.npz other.npz --estimates memory,request

The windows for claims are not run. Each window is played twice with jitter, under every assumption
on speeds, beside `min-min` and `drain-argmin`. It is much faster than run.py: minutes a policy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import shared
from traces.catalogue import TRACES
from traces.halves import ESTIMATES, SPEEDS, Trace, fitted, is_for_tuning, measured, windows

from adlro.errors import AdlroError, ConfigError
from adlro.evaluate.compare import compare
from adlro.evaluate.pooled import RIVALS, pool
from adlro.model.state import Floats
from adlro.policies import registry
from adlro.workloads.jitter import Jitter

REPEATS = 2


def ratios(
    trace: Trace, file: Path, estimates: str, names: Sequence[str]
) -> dict[str, dict[str, Floats]]:
    """Return policy -> rival -> log ratio [W] of mean JCTs in the windows for tuning.

    They are means over the assumptions on speeds.
    """
    sums: dict[str, dict[str, Floats]] = {}
    for speeds in SPEEDS:
        fit = fitted(trace, file, speeds)
        setting = measured(trace, file, speeds, fit, estimates)
        seeds = [window for window in range(windows(setting)) if is_for_tuning(window)]
        policies = [registry.load(name, fit.setting) for name in names]
        found = compare(setting, policies, seeds, jitter=Jitter(REPEATS)).policies
        logs = {row.name: np.log(row.per_seed["mean_jct_s"]) for row in found}
        for name, own in logs.items():
            of_rivals = sums.setdefault(name, {})
            for rival in RIVALS:
                of_rivals[rival] = of_rivals.get(rival, 0.0) + (own - logs[rival]) / len(SPEEDS)
    return sums


def line(policy: str, found: Mapping[str, Mapping[str, Mapping[str, Floats]]]) -> str:
    """Return a line about a policy; found: trace -> policy -> rival -> log ratios."""
    by_rival = {
        rival: np.concatenate([own[policy][rival] for own in found.values()]) for rival in RIVALS
    }
    worst = np.exp(np.maximum(*by_rival.values()).max())
    pooled = "; ".join(f"vs {rival} {pool(logs)}" for rival, logs in by_rival.items())
    traces = ", ".join(
        f"{trace} {100 * np.expm1(own[policy][RIVALS[1]].mean()):+.1f}"
        for trace, own in found.items()
    )
    return (
        f"{policy}: {pooled}; worst window {worst:.2f} of the better one; "
        f"by trace vs {RIVALS[1]}, %: {traces}\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("policies", nargs="+", metavar="POLICY", help="a name, or a .npz file")
    options.add_argument(
        "--estimates", default=",".join(ESTIMATES), metavar="NAMES", help="commas between"
    )
    given = options.parse_args(arguments)
    wanted = given.estimates.split(",")
    try:
        for estimates in wanted:
            if estimates not in ESTIMATES:
                known = ", ".join(ESTIMATES)
                raise ConfigError(f"--estimates: no {estimates!r}; there are {known}")
        for estimates in wanted:
            names = [*RIVALS, *(name for name in given.policies if name not in RIVALS)]
            found = {}
            for trace in TRACES:
                sys.stderr.write(f"{estimates}: {trace.name}\n")
                found[trace.name] = ratios(trace, shared() / trace.file, estimates, names)
            for policy in next(iter(found.values())):
                if policy not in RIVALS:
                    sys.stdout.write(f"{estimates}: {line(policy, found)}")
    except AdlroError as exc:
        sys.stderr.write(f"look.py: {exc}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
