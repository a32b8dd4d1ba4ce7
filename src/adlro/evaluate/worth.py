"""What a policy is worth in GPUs: how many more today's scheduler would need to do as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from adlro.evaluate.purchase import gpus_of, unused_name, with_nodes
from adlro.evaluate.stats import FEW_RESAMPLES, Bootstrap
from adlro.model.cluster import Cluster, NodeGroup
from adlro.model.state import Floats

_STEPS = 7  # sizes to try, each twice the one before


class Worth(BaseModel):
    """GPUs by which today's scheduler would have to grow to reach the mean JCT of a policy."""

    model_config = ConfigDict(frozen=True)

    policy: str
    today: str  # the scheduler that it is compared with
    model: str  # of the GPUs that are added
    gpus: float | None  # 0 = the policy is no better; None = more than `most`
    ci95: tuple[float, float | None]  # windows as the unit; None = more than `most`
    most: int  # GPUs that were tried
    text: str  # a sentence


class Steps(NamedTuple):
    """Clusters with ever more nodes of one kind."""

    model: str
    clusters: tuple[Cluster, ...]
    gpus: tuple[int, ...]  # that each has more


def steps(cluster: Cluster) -> Steps:
    """Return clusters with 1, 2, 4 ... more nodes of the most numerous GPU model.

    They are like the largest group with that model. The last is at least twice as large as the
    cluster, or has 64 times the first step's nodes.
    """
    by_model: dict[str, int] = {}
    for group in cluster.nodes:
        name = cluster.model_of(group.gpu).name
        by_model[name] = by_model.get(name, 0) + gpus_of([group])
    model = max(by_model, key=lambda name: by_model[name])
    own = [group for group in cluster.nodes if cluster.model_of(group.gpu).name == model]
    like = max(own, key=lambda group: gpus_of([group]))
    total = gpus_of(cluster.nodes)
    first = max(1, round(total / like.gpus / 2 ** (_STEPS - 1)))
    counts = [first * 2**k for k in range(_STEPS)]
    enough = next((k for k, count in enumerate(counts) if count * like.gpus >= total), _STEPS - 1)
    counts = counts[: enough + 1]
    clusters = tuple(with_nodes(cluster, _more(cluster, like, count)) for count in counts)
    return Steps(model, clusters, tuple(count * like.gpus for count in counts))


def _more(cluster: Cluster, like: NodeGroup, count: int) -> list[NodeGroup]:
    name = unused_name(f"more {like.name}", cluster.nodes)
    own = {"name": name, "count": count, "hosts": (), "joins_h": 0.0, "leaves_h": None}
    return [*cluster.nodes, like.model_copy(update=own)]


def crossing(gpus: Sequence[int], curve: Floats, target: Floats) -> Floats:
    """Return at how many GPUs each curve comes down to its target [B]; inf = it does not.

    Args:
        gpus: [K] numbers of GPUs, the first is 0.
        curve: [K, B] mean JCTs with so many more GPUs; made non-increasing here.
        target: [B] mean JCT to reach. 0 is returned if it is not below that with 0 GPUs.
    """
    falling = np.minimum.accumulate(curve, axis=0)
    found = np.full(curve.shape[1], np.inf)
    for k in range(len(gpus) - 1, 0, -1):
        high, low = falling[k - 1], falling[k]
        inside = (low <= target) & (target < high)
        share = (high - target)[inside] / (high - low)[inside]
        found[inside] = gpus[k - 1] + share * (gpus[k] - gpus[k - 1])
    found[target >= falling[0]] = 0.0
    return found


class Measured(NamedTuple):
    """Mean JCTs by window under each assumption on speeds: S assumptions, K sizes, W windows."""

    gpus: tuple[int, ...]  # [K] additional GPUs, the first is 0
    today: Floats  # [S, K, W] of today's scheduler
    policy: Floats  # [S, W] of the policy, without additional GPUs

    def _relative(self, resamples: Bootstrap | None) -> tuple[Floats, Floats]:
        """Return the curve [K, B] and the target [B], relative to today without more GPUs.

        Means over all assumptions; B resamples of the windows, None = all windows once.
        """
        count, sizes, windows = self.today.shape
        both = np.concatenate((self.today, self.policy[:, None]), axis=1)
        rows = both.reshape(-1, windows)
        means = rows.mean(axis=1)[:, None] if resamples is None else resamples.means(rows)
        means = means.reshape(count, sizes + 1, -1)
        relative = (means / means[:, :1]).mean(axis=0)
        return relative[:-1], relative[-1]

    def mean(self) -> float:
        """Return the number of GPUs; inf = more than were tried."""
        return float(crossing(self.gpus, *self._relative(None))[0])

    def interval(self) -> tuple[float, float]:
        """Return the 95 % percentile interval over resamples of the windows."""
        resamples = Bootstrap(self.today.shape[2], FEW_RESAMPLES)
        found = np.sort(crossing(self.gpus, *self._relative(resamples)))
        last = len(found) - 1
        return float(found[round(0.025 * last)]), float(found[round(0.975 * last)])

    @property
    def is_reached(self) -> bool:
        """True if more GPUs would not tell more."""
        return bool(np.isfinite(self.mean()) and np.isfinite(self.interval()[1]))


def _number(gpus: float) -> str:
    return f"{gpus:.1f}" if 0 < gpus < 0.95 else f"{gpus:,.0f}"


def worth(policy: str, today: str, model: str, measured: Measured) -> Worth:
    """Return what a policy is worth."""
    mean, (low, high), most = measured.mean(), measured.interval(), measured.gpus[-1]
    upper = _number(high) if np.isfinite(high) else f"more than {most:,}"
    range_ = f"({_number(low)} to {upper})"
    if mean == 0:
        text = f"{policy} is worth no additional GPU: its mean JCT is not below that of {today}"
    elif not np.isfinite(mean):
        text = (
            f"On your jobs {policy} is worth more than {most:,} {model} GPUs: with so many "
            f"more, {today} is still slower"
        )
    else:
        text = (
            f"On your jobs {policy} is worth about {_number(mean)} {model} GPUs {range_}: so many "
            f"more would {today} need for the same mean JCT"
        )
    return Worth(
        policy=policy,
        today=today,
        model=model,
        gpus=mean if np.isfinite(mean) else None,
        ci95=(low if np.isfinite(low) else float(most), high if np.isfinite(high) else None),
        most=most,
        text=text,
    )
