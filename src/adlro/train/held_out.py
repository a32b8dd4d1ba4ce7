"""The comparison on the held-out part of a history, and the rule by which a policy is shipped."""

from __future__ import annotations

from typing import NamedTuple

from adlro.evaluate.pooled import Pooled
from adlro.model.record import Record
from adlro.nets.q_network import Network
from adlro.train.episodes import MIN_MIN
from adlro.train.window_evaluation import WindowEvaluator

MOST_P99_PCT = 5.0  # by which the p99 JCT may be longer even if chance can explain it


def percent(figure: Pooled) -> str:
    """Format a difference with two decimals, as differences from the start are small."""
    if figure.ci95 is None:
        return f"{figure.mean_pct:+.2f} %"
    low, high = figure.ci95
    return f"{figure.mean_pct:+.2f} % ({low:+.2f} to {high:+.2f})"


class Tuned(Record):
    """How the tuned policy differs from the one that it started from, on the held-out jobs."""

    jct: Pooled
    p99: Pooled
    jct_vs_min_min: Pooled

    @property
    def is_faster(self) -> bool:
        """Whether the whole interval of the mean JCT is below 0."""
        return self.jct.ci95 is not None and self.jct.ci95[1] < 0

    @property
    def is_safe(self) -> bool:
        """Whether the p99 JCT is not worse: its interval reaches 0, its mean is within limits."""
        reaches = self.p99.ci95 is not None and self.p99.ci95[0] <= 0
        return reaches and self.p99.mean_pct <= MOST_P99_PCT


class HeldOut(Record):
    """Figures on the held-out part, by which the tuned policy is shipped or not.

    All are geometric means over windows, with Student's t interval.
    """

    jobs: int
    windows: int
    window_jobs: int
    repeats: int  # of each window, with jitter
    load: float
    start_vs_min_min: Pooled  # mean JCT of the policy that the tuning started from
    tuned: Tuned | None  # None = no network was better on the selection part

    @property
    def is_shipped(self) -> bool:
        """Whether the tuned policy takes the place of the one that it started from."""
        return self.tuned is not None and self.tuned.is_faster and self.tuned.is_safe

    @property
    def versus_min_min(self) -> Pooled:
        """Mean JCT against Min-Min of the policy that is shipped."""
        if self.tuned is None or not self.is_shipped:
            return self.start_vs_min_min
        return self.tuned.jct_vs_min_min

    @property
    def where(self) -> str:
        """A phrase that says on which jobs."""
        return (
            f"held out: the last {self.jobs:,} jobs, in {self.windows} windows of "
            f"{self.window_jobs:,}, each played {self.repeats} times"
        )

    @property
    def reason(self) -> str:
        """A phrase that says why the tuned policy is shipped, or why not."""
        if self.tuned is None:
            return "no tuned network was better on the selection windows without a longer p99 JCT"
        jct, p99 = f"mean JCT {percent(self.tuned.jct)}", f"p99 JCT {percent(self.tuned.p99)}"
        if not self.tuned.is_faster:
            return f"on the held-out jobs the tuned policy is not clearly better: {jct}"
        if not self.tuned.is_safe:
            return f"on the held-out jobs the p99 JCT of the tuned policy is longer: {p99}, {jct}"
        return f"on the held-out jobs {jct}, {p99}"


class Pair(NamedTuple):
    """The network that a tuning started from, and the best one that it found, if any."""

    start: Network
    tuned: Network | None


def compare(evaluator: WindowEvaluator, pair: Pair, jobs: int, runs: int) -> HeldOut:
    """Play the policies and Min-Min on all windows, each at least twice, and compare them.

    Args:
        evaluator: of the held-out part.
        pair: the two networks.
        jobs: number of held-out jobs.
        runs: number of runs of each policy, if that is more than two for each window.
    """
    count, tuned = max(runs, 2 * evaluator.windows), None
    if pair.tuned is not None:
        ratios = evaluator.ratios(pair.tuned, count, pair.start)
        usual = evaluator.ratios(pair.tuned, count, MIN_MIN).jct
        tuned = Tuned(jct=ratios.jct, p99=ratios.p99, jct_vs_min_min=usual)
    return HeldOut(
        jobs=jobs,
        windows=evaluator.windows,
        window_jobs=evaluator.setting.scenario.jobs,
        repeats=evaluator.repeats(count),
        load=evaluator.load,
        start_vs_min_min=evaluator.ratios(pair.start, count, MIN_MIN).jct,
        tuned=tuned,
    )
