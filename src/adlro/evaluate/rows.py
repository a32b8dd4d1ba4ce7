"""Rows of a comparison's table: metrics over all seeds, and paired differences to other rows."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from adlro.evaluate.out_of_range import OutOfRange
from adlro.evaluate.pooled import Pooled
from adlro.evaluate.significance import PairedTest
from adlro.evaluate.stats import Estimate, seeds_to_settle

RECORDED = "recorded"  # name of the row that was not simulated


class JctDifference(Estimate):
    """A difference in mean JCT in percent, with p values and effect sizes; None = undefined."""

    p_wilcoxon: float | None  # two-sided Wilcoxon signed-rank test
    p_holm: float | None  # Holm-corrected over all rivals of the table's best policy
    dz: float | None  # Cohen's dz
    rank_biserial: float | None  # matched-pairs rank-biserial correlation
    seeds_to_settle: int | None  # see stats.seeds_to_settle


def tested(plain: Estimate, test: PairedTest, p_holm: float | None, seeds: int) -> JctDifference:
    """Return a difference in mean JCT over so many seeds, together with its test."""
    return JctDifference(
        mean=plain.mean,
        sd=plain.sd,
        ci95=plain.ci95,
        p_wilcoxon=test.p_wilcoxon,
        p_holm=p_holm,
        dz=test.dz,
        rank_biserial=test.rank_biserial,
        seeds_to_settle=seeds_to_settle(plain, seeds),
    )


Differences = dict[str, JctDifference | Estimate]  # METRIC_pct -> difference


class Row(BaseModel):
    """Figures over all seeds, of a policy or of what was recorded."""

    model_config = ConfigDict(frozen=True)

    name: str
    metrics: dict[str, Estimate]
    per_seed: dict[str, list[float]]  # some of the metrics, in the order of the seeds
    versus: dict[str, Differences]  # rival -> METRIC_pct -> difference

    @property
    def jct(self) -> float:
        """Mean JCT in seconds over all seeds."""
        return self.metrics["mean_jct_s"].mean

    def jct_versus(self, rival: str) -> JctDifference:
        """Return the percent by which this row's mean JCT exceeds the rival's."""
        found = self.versus[rival]["mean_jct_pct"]
        if not isinstance(found, JctDifference):
            raise TypeError(f"{rival}: mean_jct_pct without its tests")
        return found


class PolicyRow(Row):
    """The figures of one policy over all seeds."""

    is_preemptive: bool  # declared, or observed to preempt
    pooled: dict[str, Pooled] = {}  # rival -> pooled over windows; of a history only
    jitter_sd_pct: float | None = None  # sd of a seed's mean JCT by jitter alone, mean over seeds
    gap_closed: Estimate | None = None  # percent of the gap from min-min to the look-ahead
    seeds_below_look_ahead: int | None = None  # on which its mean JCT is below the look-ahead's
    times_lower_bound: Estimate | None = None  # mean JCT / the lower bound that holds for it
    decision_us: float  # CPU time per call of decide, including the simulator's own work
    decisions: int  # calls of decide over all seeds
    real_decisions: int  # calls with at least one feasible pair (job, pool)
    out_of_range: OutOfRange | None = None  # of a learned policy's features; None = not learned


class RecordedRow(Row):
    """What happened to the same jobs on the cluster that the history is from: not simulated."""

    is_simulated: bool = False
    jobs: int  # measured jobs of all seeds
    without_start: int  # of them, those without a recorded start or end, which are not counted
    early: int  # of them, those recorded as started before they could: their wait counts as 0
