"""The share of a learned policy's features that lie outside the range it was trained on.

The figures are of decisions that the policy really makes. After a timed run its jobs are played a
second time, with the same decisions, and the features of a sample of them are recorded
(policies/recording.py). A feature counts as outside in a decision if its value for at least one
option lies outside the training range of the policy's card (policies/loading/feature_ranges.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from adlro.errors import PolicyError
from adlro.features.start_kernel import FEATURES
from adlro.model import violations
from adlro.model.state import Mask
from adlro.policies import adlro, adlro_preemptive, paper_dqn
from adlro.policies.loading.feature_ranges import FeatureRanges
from adlro.policies.recording import (
    Recorded,
    read_records,
    record,
    recording_memory,
    recording_params,
)
from adlro.policies.registry import Policy
from adlro.sim.signature import compile_decide, compiled_run
from adlro.sim.world import EmptyCluster, decision_buffer, fresh_memory, open_world
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

MOST_DECISIONS = 200  # recorded of a run; of a longer one at least half of this
MOST_SEEDS = 20  # of a comparison that are played a second time
NO_RANGES = "unknown: this policy file has no ranges"
_NAMED = 3  # features that are named
_RARE = 0.005  # of the decisions: features that are outside in fewer are not named in a phrase
_IDLE = "not applicable: no job runs, so Min-Min's choice is made without the network"
_PROBLEMS = (  # other networks: why there is no figure
    (adlro_preemptive.decide, "unknown: the features of pairs of a job and a pool have no ranges"),
    (paper_dqn.decide, "not applicable: its input is a map of one cluster, not named features"),
)


class OutOfRange(BaseModel):
    """How many of a policy's features lie outside the training range in an average decision."""

    model_config = ConfigDict(frozen=True)

    features: int | None = None  # of the policy; None = there are no figures
    mean_outside: float | None = None  # features outside per decision
    share: float | None = None  # the same as a share of all features
    decisions: int = 0  # that the figures are of
    most: list[tuple[str, float]] = []  # features most often outside: name, share of decisions
    problem: str | None = None  # why there are no figures

    @property
    def words(self) -> str:
        """A phrase with the figures, or why there are none."""
        if self.mean_outside is None or self.share is None:
            return self.problem or ""
        text = (
            f"{self.mean_outside:.2g} of {self.features} features of an average decision "
            f"({100 * self.share:.2g} %)"
        )
        named = [f"{name} (in {100 * share:.0f} %)" for name, share in self.most if share >= _RARE]
        return f"{text}, most often {', '.join(named)}" if named else text

    def of(self, policy: str) -> str:
        """Return the figures of a policy on a history as a sentence among what is assumed."""
        if self.share is None:
            return f"outside of what {policy} was trained on: {self.words}"
        return (
            f"{100 * self.share:.2g} % of what {policy} looks at on this history lies outside of "
            f"what it was trained on: {self.words}"
        )


def compile_recording() -> None:
    """Compile, or load from the compile cache, the code that records decisions."""
    compiled_run()
    compile_decide(record)


def problem_of(policy: Policy) -> str | None:
    """Return why there are no figures for a learned policy; None = there are, or it has no network.

    Look-ahead policies count as policies without a network.
    """
    if policy.decide is adlro.decide:
        return NO_RANGES if policy.ranges is None else None
    return next((told for decide, told in _PROBLEMS if policy.decide is decide), None)


def is_recorded(policy: Policy) -> bool:
    """True if decisions of the policy can be compared with its training ranges."""
    return policy.decide is adlro.decide and policy.ranges is not None


def record_run(setting: Setting, workload: Workload, policy: Policy, seed: int) -> Recorded:
    """Run adlro on the jobs of a seed and record decisions at equal intervals.

    Args:
        setting: the prepared scenario.
        workload: its jobs.
        policy: one that decides by adlro's network.
        seed: of the jobs.

    Raises:
        PolicyError: the policy made an infeasible decision.
    """
    layout, own = setting.layout, policy.memory
    params = recording_params(policy.params, own)
    memory = fresh_memory(recording_memory(own, MOST_DECISIONS), seed)
    world = open_world(EmptyCluster(layout.pools, layout.nodes, layout.gpus), workload)
    compiled_run()(compile_decide(record), params, memory, decision_buffer(world), world)
    if world.totals[0]["fault"] != violations.NONE:
        raise PolicyError(f"policy {policy.name} {violations.message(world.totals[0])}")
    return read_records(memory, own)


def outside(
    features: NDArray[np.float32], is_option: Mask, ranges: FeatureRanges
) -> dict[str, Mask]:
    """Return, for each feature of a policy, which of the decisions [S] have it outside.

    Args:
        features: [S, C, len(FEATURES)] of up to C options of S decisions.
        is_option: [S, C] False = no such option.
        ranges: of the policy's features in training.
    """
    names = list(ranges.features)
    low, high = ranges.bounds(names)
    values = features[..., [FEATURES.index(name) for name in names]]
    is_inside = (values >= low) & (values <= high)
    is_outside: Mask = np.any(~is_inside & is_option[..., None], axis=1)
    return dict(zip(names, is_outside.T, strict=True))


def summarise(found: Sequence[dict[str, Mask]]) -> OutOfRange:
    """Return the figures over all decisions of several runs, each as returned by `outside`."""
    decisions = sum(len(next(iter(run.values()))) for run in found)
    names = list(found[0]) if found else []
    if decisions == 0:
        problem = "unknown: the network was not asked, as no job could start beside another"
        return OutOfRange(features=len(names) or None, problem=problem)
    shares = {name: sum(int(run[name].sum()) for run in found) / decisions for name in names}
    mean = sum(shares.values())
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return OutOfRange(
        features=len(names),
        mean_outside=mean,
        share=mean / len(names),
        decisions=decisions,
        most=[(name, share) for name, share in ranked[:_NAMED] if share > 0],
    )


class FeatureOutside(NamedTuple):
    """A feature of one decision whose value for some option is outside the training range."""

    feature: str
    value: float  # of the option that is farthest outside
    low: float  # of the training range
    high: float
    options: int  # of the decision, whose value is outside


class DecisionOutOfRange(NamedTuple):
    """The features of one decision that are outside the training range, farthest first."""

    features: int | None  # of the policy; None = there are no figures
    values: list[FeatureOutside]
    problem: str | None  # why there are no figures

    @property
    def share(self) -> float | None:
        """The share of the policy's features that are outside."""
        return len(self.values) / self.features if self.features else None


def decision_outside(
    policy: Policy, features: NDArray[np.float64], is_idle: bool
) -> DecisionOutOfRange | None:
    """Return what is outside the training range in one decision; None = it is not learned.

    Args:
        policy: the policy that made it.
        features: [C, len(FEATURES)] of its C options.
        is_idle: no job is running.
    """
    problem = problem_of(policy)
    if problem is None and is_recorded(policy) and is_idle:
        problem = _IDLE
    if problem is not None:
        return DecisionOutOfRange(None, [], problem)
    if policy.ranges is None or not is_recorded(policy):
        return None
    names, found = list(policy.ranges.features), []
    low, high = policy.ranges.bounds(names)
    values = features[:, [FEATURES.index(name) for name in names]].astype(np.float32)
    beyond = np.maximum(low - values, values - high)
    widths = np.maximum(high - low, np.float32(1e-6))
    for f in np.argsort(-(beyond / widths).max(axis=0), kind="stable"):
        if beyond[:, f].max() > 0:
            value = float(values[beyond[:, f].argmax(), f])
            count = int((beyond[:, f] > 0).sum())
            found.append(FeatureOutside(names[f], value, float(low[f]), float(high[f]), count))
    return DecisionOutOfRange(len(names), found, None)


class Measured(NamedTuple):
    """A run of a policy whose decisions are compared with its training range."""

    setting: Setting
    policy: Policy
    seed: int


def measure(runs: Iterable[Measured]) -> OutOfRange | None:
    """Return the figures of one policy over several runs, perhaps of several settings.

    None = it is not learned.

    Raises:
        PolicyError: the policy made an infeasible decision.
    """
    found: list[dict[str, Mask]] = []
    for setting, policy, seed in runs:
        if policy.ranges is None or not is_recorded(policy):
            problem = problem_of(policy)
            return None if problem is None else OutOfRange(problem=problem)
        run = record_run(setting, generate(setting, seed), policy, seed)
        found.append(outside(run.features, run.is_option, policy.ranges))
    return summarise(found)


class _Key(NamedTuple):
    policy: str
    seed: int


class OutOfRangeTally:
    """Collects from any thread what lies outside the training range in the runs of a setting."""

    def __init__(self, setting: Setting, seeds: Iterable[int]) -> None:
        """seeds: those to play a second time."""
        self._setting, self._seeds = setting, frozenset(seeds)
        self._found: dict[_Key, dict[str, Mask]] = {}
        self._lock = threading.Lock()

    def watch(self, policy: Policy, seed: int, workload: Workload) -> None:
        """Play a run a second time and record its decisions, if it is the first of its seed."""
        key = _Key(policy.name, seed)
        if policy.ranges is None or not is_recorded(policy) or seed not in self._seeds:
            return
        with self._lock:
            if key in self._found:
                return
        run = record_run(self._setting, workload, policy, seed)
        with self._lock:
            self._found[key] = outside(run.features, run.is_option, policy.ranges)

    def figures(self, policy: Policy, seeds: Iterable[int]) -> OutOfRange | None:
        """Return the figures of a policy on some seeds; None = it is not learned."""
        problem = problem_of(policy)
        if problem is not None or not is_recorded(policy):
            return None if problem is None else OutOfRange(problem=problem)
        keys = [_Key(policy.name, seed) for seed in seeds]
        return summarise([self._found[key] for key in keys if key in self._found])
