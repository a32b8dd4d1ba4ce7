"""Reads a Slurm configuration into the table [slurm] of a scenario.

The file is the output of `scontrol show config`, best followed by that of `scontrol show partition`
(`scontrol show config > FILE; scontrol show partition >> FILE`), or a slurm.conf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from adlro.config.files import read_text, validated
from adlro.errors import ConfigError
from adlro.model.slurm import Slurm

_UNSET = ("", "(null)", "N/A", "none")
WEIGHTS = {
    "PriorityWeightAge": "weight_age",
    "PriorityWeightFairShare": "weight_fairshare",
    "PriorityWeightJobSize": "weight_job_size",
    "PriorityWeightPartition": "weight_partition",
    "PriorityWeightQOS": "weight_qos",
}
PARAMETERS = {  # of SchedulerParameters
    "default_queue_depth": "default_queue_depth",
    "sched_interval": "sched_interval_s",
    "bf_interval": "bf_interval_s",
    "bf_resolution": "bf_resolution_s",
    "bf_window": "bf_window_min",
    "bf_max_job_test": "bf_max_job_test",
    "bf_max_job_user": "bf_max_job_user",
}
_TRES = {"cpu": "cpu", "mem": "mem", "gres/gpu": "gpu"}
_PLUGINS = {  # key -> its plugins that the policy plays
    "SchedulerType": ("sched/backfill", "sched/builtin"),
    "PriorityType": ("priority/basic", "priority/multifactor"),
}
_IGNORED = {"PriorityWeightAssoc": ("0",), "PriorityFlags": (), "PreemptType": ("preempt/none",)}
_TIME = re.compile(r"(?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,6}))?(?::(\d{1,6}))?")
_WORD = re.compile(r"(?<!\S)(\w+)=(\S*)")


class SlurmConfig(NamedTuple):
    """What a configuration says: the settings, and the names of those that have no effect here."""

    slurm: Slurm
    ignored: tuple[str, ...]
    parameters: str = ""  # SchedulerParameters as written
    highest_factor: int = 1  # largest PriorityJobFactor, of which the settings have shares


class _Entry(NamedTuple):
    """A value of the file."""

    where: str  # file and line
    key: str
    value: str

    def error(self, expected: str) -> ConfigError:
        """Return the error that the value is not what was expected."""
        return ConfigError(f"{self.where}: {self.key}: expected {expected}, got {self.value!r}")

    def number(self) -> int:
        """Return the value as a whole number."""
        if not re.fullmatch(r"-?\d{1,12}", self.value):
            raise self.error("a whole number")
        return int(self.value)

    def seconds(self) -> float:
        """Return the value, a time such as 7-00:00:00, in seconds; without a colon: minutes."""
        found = _TIME.fullmatch(self.value)
        if found is None:
            raise self.error("a time such as 7-00:00:00")
        days, *rest = [None if part is None else int(part) for part in found.groups()]
        parts = [part for part in rest if part is not None]
        if days is None and len(parts) < 3:  # minutes, or minutes:seconds
            parts = [0, *parts]
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return (days or 0) * 86_400.0 + hours * 3600 + minutes * 60 + seconds

    def pairs(self) -> Iterator[_Entry]:
        """Return the entries of a list NAME=VALUE,NAME=VALUE."""
        for part in self.value.split(","):
            name, _, value = part.strip().partition("=")
            yield _Entry(self.where, name, value)


class _File(NamedTuple):
    """The entries of a file by key in lower case, and those of each partition."""

    entries: dict[str, _Entry]
    partitions: dict[str, dict[str, _Entry]]

    def find(self, key: str) -> _Entry | None:
        """Return the entry of a key; None if it is not there or not set."""
        entry = self.entries.get(key.lower())
        return None if entry is None or entry.value in _UNSET else entry


def _parse(text: str, path: Path) -> _File:
    file, defaults = _File({}, {}), dict[str, _Entry]()
    block: dict[str, _Entry] | None = None  # of the partition whose lines follow
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line)
        key, mark, value = (part.strip() for part in line.partition("="))
        if not mark:
            continue
        where = f"{path}:{number}"
        is_partition = key.lower() == "partitionname"
        if is_partition or (block is not None and line[:1].isspace()):
            words = {k.lower(): _Entry(where, k, v) for k, v in _WORD.findall(line)}
            if is_partition:
                name = words["partitionname"].value if words else ""
                is_default = name.upper() == "DEFAULT"
                block = defaults if is_default else file.partitions.setdefault(name, {**defaults})
            assert block is not None
            block.update(words)
        else:
            block = None
            file.entries[key.lower()] = _Entry(where, key, value)
    return file


def _plugin(file: _File, key: str) -> str | None:
    """Return the name of a plugin without its kind, such as backfill; None = not set."""
    entry = file.find(key)
    if entry is None:
        return None
    if entry.value not in _PLUGINS[key]:
        raise entry.error(f"{' or '.join(_PLUGINS[key])}, which the policy slurm plays")
    return entry.value.partition("/")[2]


def _priority(file: _File) -> dict[str, Any]:
    """Return the keys of the table [slurm] that say in which order jobs are taken."""
    table: dict[str, Any] = {}
    for key, name in WEIGHTS.items():
        entry = file.find(key)
        if entry is not None:
            table[name] = entry.number()
    plugin, age, small = (
        _plugin(file, "PriorityType"),
        file.find("PriorityMaxAge"),
        file.find("PriorityFavorSmall"),
    )
    if plugin is not None:
        table["priority_type"] = plugin
    if age is not None:
        table["max_age_s"] = age.seconds()
    if small is not None:
        if small.value.lower() not in ("yes", "no"):
            raise small.error("Yes or No")
        table["favor_small"] = small.value.lower() == "yes"
    return table


def _tres_weights(file: _File, ignored: list[str]) -> dict[str, int]:
    entry, weights = file.find("PriorityWeightTRES"), {}
    for pair in entry.pairs() if entry is not None else ():
        if pair.key.lower() in _TRES:
            weights[_TRES[pair.key.lower()]] = pair.number()
        else:
            ignored.append(f"PriorityWeightTRES {pair.key}")
    return weights


def _scheduling(file: _File, ignored: list[str]) -> dict[str, Any]:
    """Return the keys of the table [slurm] that say when jobs are looked at, and how many."""
    table: dict[str, Any] = {}
    plugin, entry = _plugin(file, "SchedulerType"), file.find("SchedulerParameters")
    if plugin is not None:
        table["scheduler"] = plugin
    for pair in entry.pairs() if entry is not None else ():
        name = pair.key.lower()
        if name not in PARAMETERS:
            ignored.append(pair.key)
        elif pair.number() == -1 and name == "bf_interval":  # Slurm: never
            table["scheduler"] = "builtin"
        else:
            table[PARAMETERS[name]] = pair.number()
    return table


def _of_partitions(file: _File, known: Iterable[str]) -> tuple[dict[str, Any], int]:
    """Return factors and tiers of the known partitions, as far as they are not Slurm's default.

    The second result is the largest factor of all partitions.
    """
    numbers = {
        key: {name: block[key.lower()].number() for name, block in file.partitions.items()
              if key.lower() in block}
        for key in ("PriorityJobFactor", "PriorityTier")
    }  # fmt: skip
    factors, tiers = numbers["PriorityJobFactor"], numbers["PriorityTier"]
    if factors:  # Slurm's default is 1
        factors = dict.fromkeys(file.partitions, 1) | factors
    highest = max(factors.values(), default=0)
    known = set(known)
    table = {
        "partition_factors": {
            name: factor / highest
            for name, factor in factors.items()
            if name in known and 0 <= factor < highest
        },
        "partition_tiers": {n: t for n, t in tiers.items() if n in known and t != 1},
    }
    return table, max(highest, 1)


def read_slurm(path: Path, partitions: Iterable[str]) -> SlurmConfig:
    """Read a Slurm configuration; only the named partitions are taken from it.

    Raises:
        ConfigError: the file cannot be read, is no Slurm configuration, or has a wrong value.
    """
    file = _parse(read_text(path), path)
    if not any(file.find(key) for key in (*_PLUGINS, "SchedulerParameters")):
        raise ConfigError(
            f"{path}: no line 'SchedulerType = …'; name the output of `scontrol show config`, or a "
            "slurm.conf"
        )
    ignored: list[str] = []
    by_partition, highest = _of_partitions(file, partitions)
    table = _priority(file) | _scheduling(file, ignored) | by_partition
    table["weight_tres"] = _tres_weights(file, ignored)
    for key, harmless in _IGNORED.items():
        entry = file.find(key)
        if entry is not None and entry.value not in harmless:
            ignored.append(key)
    entry = file.find("SchedulerParameters")
    parameters = "" if entry is None else entry.value
    return SlurmConfig(validated(Slurm, table, str(path)), tuple(ignored), parameters, highest)
