"""Parsers shared by the readers of Slurm's outputs: amounts, resources, durations, job states."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from adlro.model.history import History

_UNITS_MB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)")
_DURATION = re.compile(r"(?:(\d{1,6})-)?(\d{1,6}(?::\d{2}){0,2})(?:\.\d{1,6})?")
_STATUS = {
    "node_fail": "node failed",
    "out_of_memory": "out of memory",
    "boot_fail": "node failed",
    "deadline": "timeout",
}
NUMBERED = (  # as the accounting database numbers them
    "pending",
    "running",
    "suspended",
    "completed",
    "cancelled",
    "failed",
    "timeout",
    "node failed",
    "preempted",
    "node failed",
    "timeout",
    "out of memory",
)
UNDER_WAY = ("pending", "running", "suspended", "requeued", "resizing")  # no run time yet
UNLIMITED = ("", "UNLIMITED", "Partition_Limit", "INFINITE")
_COUNTED = ("cpu", "mem", "node", "gres/gpu")  # of a list of resources
_TYPED = "gres/gpu:"
_UNTRACKED = (
    "no job names gres/gpu, which Slurm records only where AccountingStorageTRES has it: how many "
    "GPUs jobs had is taken as unknown"
)


class Resources(NamedTuple):
    """Resources of a whole job, requested or allocated; nan and "" = unknown."""

    gpus: float = math.nan
    gpu_model: str = ""
    cores: float = math.nan
    memory_mb: float = math.nan
    nodes: float = math.nan
    gpu_types: tuple[str, ...] = ()

    def over(self, other: Resources) -> Resources:
        """Return these resources with unknown fields taken from `other`."""
        return Resources(
            other.gpus if math.isnan(self.gpus) else self.gpus,
            self.gpu_model or other.gpu_model,
            other.cores if math.isnan(self.cores) else self.cores,
            other.memory_mb if math.isnan(self.memory_mb) else self.memory_mb,
            other.nodes if math.isnan(self.nodes) else self.nodes,
            self.gpu_types or other.gpu_types,
        )


def amount_mb(text: str) -> float | None:
    """Return the MB of an amount such as "16000M" or "62.5G"; None = the text is not an amount.

    A bare number counts as MB.
    """
    found = _AMOUNT.fullmatch(text.strip().rstrip("cn"))
    return float(found[1]) * _UNITS_MB[found[2]] if found else None


def duration_s(text: str) -> float | None:
    """Return the seconds of "1-02:03:04", "02:03:04" or "03:04"; None = the text is not a duration.

    A bare number is minutes.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found:
        return None
    parts = [int(part) for part in found[2].split(":")]
    if found[1]:  # days-hours[:minutes[:seconds]]
        parts += [0] * (3 - len(parts))
    elif len(parts) == 1:  # minutes
        parts += [0]
    seconds = 0
    for part in parts:
        seconds = 60 * seconds + part
    return float(int(found[1] or 0) * 86_400 + seconds)


def status(text: str) -> str:
    """Return a job state of Slurm in the words of histories: "CANCELLED by 1" is "cancelled"."""
    whole = text.strip().lower()
    if whole in NUMBERED:  # already in those words: "out of memory"
        return whole
    word = whole.split(" ")[0].rstrip("+")
    return _STATUS.get(word, word)


def resources(text: str) -> Resources | None:
    """Parse resources such as "cpu=2,gres/gpu:volta=1,gres/gpu=1,mem=500M,node=1"; None = invalid.

    Kinds of resources other than these are ignored, whatever their value: Slurm writes
    energy=18446744073709551614 for "not known".
    """
    amounts: dict[str, float] = {}
    for part in filter(None, text.strip().split(",")):
        key, equals, value = part.partition("=")
        if equals and key not in _COUNTED and not key.startswith(_TYPED):
            continue
        amount = amount_mb(value)
        if amount is None:
            return None
        amounts[key] = amounts.get(key, 0.0) + amount if key.startswith(_TYPED) else amount
    models = {key.removeprefix(_TYPED): n for key, n in amounts.items() if key.startswith(_TYPED)}
    gpus = 0.0 if "cpu" in amounts else math.nan  # a list that names the cores would name GPUs
    return Resources(
        gpus=amounts.get("gres/gpu", sum(models.values()) if models else gpus),
        gpu_model=next(iter(models)) if len(models) == 1 else "",
        cores=amounts.get("cpu", math.nan),
        memory_mb=amounts.get("mem", math.nan),
        nodes=amounts.get("node", math.nan),
        gpu_types=tuple(models),
    )


def unless_untracked(history: History) -> History:
    """Return the history with GPU counts set to unknown if no job of it has a GPU.

    Where Slurm does not track GPUs, all jobs seem to have 0. A note in the header explains the
    change.
    """
    if (history.gpus > 0).any() or not (history.gpus == 0).any():
        return history
    header = history.header
    defects = {kind: n for kind, n in header.defects.items() if kind != "asks for no GPU"}
    update = {"defects": defects, "notes": (*header.notes, _UNTRACKED)}
    return history._replace(
        header=header.model_copy(update=update), gpus=np.full_like(history.gpus, -1)
    )


def numbered(text: str) -> Resources | None:
    """Parse resources such as "1=20,2=8500,1002=2"; None = the text is not such a list.

    The keys are the numbers of resources in Slurm's accounting database: 1 cores, 2 memory in MB, 4
    nodes, 1001 or 1002 GPUs.
    """
    known: dict[int, float] = {}
    for part in filter(None, text.strip().split(",")):
        key, _, value = part.partition("=")
        if not (key.isascii() and key.isdigit() and value.isascii() and value.isdigit()):
            return None
        known[int(key)] = float(value)
    return Resources(
        gpus=known.get(1001, known.get(1002, 0.0 if known else math.nan)),
        cores=known.get(1, math.nan),
        memory_mb=known.get(2, math.nan),
        nodes=known.get(4, math.nan),
    )
