"""The lines of slurm.conf in which one Slurm configuration differs from another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from adlro.config.slurm import PARAMETERS, WEIGHTS
from adlro.model.slurm import Slurm, TresWeights

Value = int | str
_NUMBERED = re.compile(r"(.*?)(\d{1,9})")


class Change(BaseModel):
    """A key of slurm.conf that gets another value."""

    model_config = ConfigDict(frozen=True)

    key: str
    before: Value = Field(serialization_alias="from")
    after: Value = Field(serialization_alias="to")


class Written(NamedTuple):
    """What the site's own configuration says beyond the record `Slurm`."""

    partitions: Sequence[str]  # of the cluster
    parameters: str = ""  # SchedulerParameters as written
    highest_factor: int = 1  # largest PriorityJobFactor


def _time(seconds: float) -> str:
    """Return a time as Slurm writes it: days-hours:minutes:seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours // 24}-{hours % 24:02}:{minutes:02}:{rest:02}"


def _tres(weights: TresWeights) -> str:
    return f"cpu={weights.cpu:.0f},mem={weights.mem:.0f},gres/gpu={weights.gpu:.0f}"


def _general(slurm: Slurm) -> dict[str, Value]:
    """Return the values of the keys that have a line of their own."""
    table: dict[str, Value] = {"PriorityType": f"priority/{slurm.priority_type}"}
    table |= {key: round(getattr(slurm, name)) for key, name in WEIGHTS.items()}
    table["PriorityWeightTRES"] = _tres(slurm.weight_tres)
    table["PriorityMaxAge"] = _time(slurm.max_age_s)
    table["PriorityFavorSmall"] = "Yes" if slurm.favor_small else "No"
    table["SchedulerType"] = f"sched/{slurm.scheduler}"
    return table


def _parameters(slurm: Slurm) -> dict[str, Value]:
    return {key: round(getattr(slurm, name)) for key, name in PARAMETERS.items()}


def _of_partitions(slurm: Slurm, written: Written) -> dict[tuple[str, str], Value]:
    """Return factor and tier by (partition, key)."""
    table: dict[tuple[str, str], Value] = {}
    for name in written.partitions:
        share = slurm.partition_factors.get(name, 1.0)
        table[name, "PriorityJobFactor"] = round(share * written.highest_factor)
        table[name, "PriorityTier"] = slurm.partition_tiers.get(name, 1)
    return table


def changes(before: Slurm, after: Slurm, written: Written) -> list[Change]:
    """Return the keys that differ, with both values."""
    found = [
        Change(key=key, before=old[key], after=value)
        for old, new in (
            (_general(before), _general(after)),
            (_parameters(before), _parameters(after)),
        )
        for key, value in new.items()
        if value != old[key]
    ]
    old_parts, new_parts = _of_partitions(before, written), _of_partitions(after, written)
    return found + [
        Change(key=f"PartitionName={name} {key}", before=old_parts[name, key], after=value)
        for (name, key), value in new_parts.items()
        if value != old_parts[name, key]
    ]


def merged(parameters: str, values: Mapping[str, Value]) -> str:
    """Return SchedulerParameters with these values set, and everything else as it was."""
    kept = [part.strip() for part in parameters.split(",") if part.strip()]
    kept = [part for part in kept if part.partition("=")[0].lower() not in values]
    return ",".join([*kept, *(f"{key}={value}" for key, value in values.items())])


def lines(before: Slurm, after: Slurm, written: Written) -> list[str]:
    """Return the lines of slurm.conf that turn one configuration into the other.

    Lines of partitions are fragments, to be added to the lines that are there.
    """
    old, new = _general(before), _general(after)
    differing = {key: value for key, value in new.items() if value != old[key]}
    if any(key.startswith("PriorityWeight") for key in differing):
        differing = {"PriorityType": new["PriorityType"]} | differing  # weights need it
    found = [f"{key}={value}" for key, value in differing.items()]
    was, becomes = _parameters(before), _parameters(after)
    values = {key: value for key, value in becomes.items() if value != was[key]}
    if before.scheduler == "builtin" != after.scheduler:  # it may have been by bf_interval=-1
        values["bf_interval"] = becomes["bf_interval"]
    if values:
        found.append(f"SchedulerParameters={merged(written.parameters, values)}")
    was_part, part = _of_partitions(before, written), _of_partitions(after, written)
    for name, keys in groupby(part, key=lambda pair: pair[0]):
        words = [f"{key[1]}={part[key]}" for key in keys if part[key] != was_part[key]]
        if words:
            found.append(" ".join([f"PartitionName={name}", *words]))
    return found


def host_list(names: Iterable[str]) -> str:
    """Return host names as Slurm abbreviates them: "v[01-02,7],login"."""
    numbers: dict[str, list[str]] = {}  # prefix -> digits
    plain: list[str] = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        if found is None:
            plain.append(name)
        else:
            numbers.setdefault(found[1], []).append(found[2])
    return ",".join([*(_bracketed(prefix, own) for prefix, own in numbers.items()), *plain])


def _bracketed(prefix: str, digits: Sequence[str]) -> str:
    if len(digits) == 1:
        return prefix + digits[0]
    spans: list[list[str]] = []
    for text in sorted(digits, key=lambda one: (len(one), int(one))):
        last = spans[-1][-1] if spans else ""
        if last and len(last) == len(text) and int(text) == int(last) + 1:
            spans[-1].append(text)
        else:
            spans.append([text])
    joined = (span[0] if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)
    return f"{prefix}[{','.join(joined)}]"


def node_lines(in_order: Iterable[Sequence[str]]) -> list[str]:
    """Return fragments that make Slurm fill these groups of hosts in this order.

    Slurm prefers the nodes of the lowest weight.
    """
    return [
        f"NodeName={host_list(hosts)} Weight={number}" for number, hosts in enumerate(in_order, 1)
    ]
