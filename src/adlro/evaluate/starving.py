"""Names the priority weights that starve an account."""

from __future__ import annotations

from collections.abc import Sequence

from adlro.evaluate import findings
from adlro.evaluate.durations import duration
from adlro.evaluate.findings import Finding
from adlro.evaluate.group_waits import Compared, GroupChange, wait_changes
from adlro.evaluate.history_halves import BySpeeds, Half, Halves
from adlro.evaluate.slurm_search import Candidate
from adlro.model.slurm import Slurm, TresWeights

_WEIGHTS = {
    "PriorityWeightAge": "weight_age",
    "PriorityWeightFairshare": "weight_fairshare",
    "PriorityWeightJobSize": "weight_job_size",
    "PriorityWeightPartition": "weight_partition",
    "PriorityWeightQOS": "weight_qos",
}


def zeroed(slurm: Slurm) -> dict[str, Slurm]:
    """Return, by the key of slurm.conf, the configuration with this weight alone set to 0.

    Only weights that have an effect are there; PriorityTier counts as one.
    """
    found: dict[str, Slurm] = {}
    if slurm.priority_type == "multifactor":
        for key, name in _WEIGHTS.items():
            if getattr(slurm, name) > 0:
                found[key] = slurm.model_copy(update={name: 0.0})
        if slurm.weight_tres != TresWeights():
            found["PriorityWeightTRES"] = slurm.model_copy(update={"weight_tres": TresWeights()})
    if len(set(slurm.partition_tiers.values()) | {1}) > 1:
        found["PriorityTier"] = slurm.model_copy(update={"partition_tiers": {}})
    return found


def compared(halves: Halves, half: Half, before: BySpeeds, after: BySpeeds) -> list[GroupChange]:
    """Return how waits change between two sets of runs of one half."""
    pairs = [Compared(halves.part(half, speeds), before[speeds], after[speeds]) for speeds in after]
    return wait_changes(halves.variants.history, pairs, half.windows)


def starved_accounts(halves: Halves, current: Candidate) -> list[Finding]:
    """Return the accounts that weights starve on the first half, each with the weight's name."""
    alone = zeroed(current.slurm)
    if not alone:
        return []
    flat = findings.without_weights(current.slurm)
    tried = [Candidate(slurm, current.order) for slurm in (current.slurm, flat, *alone.values())]
    now, without, *each = halves.runs(halves.first, tried)
    changes = compared(halves, halves.first, now, without)
    found = findings.starved_accounts(changes)
    if not found:
        return []
    by_weight = {
        key: compared(halves, halves.first, now, runs)
        for key, runs in zip(alone, each, strict=True)
    }
    return [named(one, changes, by_weight) for one in found]


def named(
    finding: Finding, changes: Sequence[GroupChange], by_weight: dict[str, list[GroupChange]]
) -> Finding:
    """Return a finding on a starved account with the weight that starves it, if one alone does.

    Args:
        finding: on one account.
        changes: of waits without any weight.
        by_weight: key of slurm.conf -> changes of waits without this weight alone.
    """
    all_gone = _of(changes, finding.name)
    relief = {key: _of(some, finding.name) for key, some in by_weight.items()}
    key = min(relief, key=lambda one: relief[one].after_s)
    saved = all_gone.before_s - relief[key].after_s
    if saved < 0.5 * (all_gone.before_s - all_gone.after_s):
        return finding
    text = (
        f"{key} starves account {finding.name}: its jobs wait {duration(all_gone.before_s)} on "
        f"average; without it {duration(relief[key].after_s)}, and in the order of submission "
        f"{duration(all_gone.after_s)}"
    )
    return finding.model_copy(update={"text": text})


def _of(changes: Sequence[GroupChange], account: str) -> GroupChange:
    return next(one for one in changes if (one.grouping, one.name) == ("account", account))
