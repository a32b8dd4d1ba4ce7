"""Reads scenario and cluster files (TOML) into frozen records; errors name the wrong key."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from adlro.config.history import SPEEDS, UNUSED
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError, printable, suggestion
from adlro.files import read_bytes
from adlro.model.cluster import Cluster
from adlro.model.record import Record, one_line

R = TypeVar("R", bound=Record)


_MOST_BYTES = 16 << 20  # of a file: a cluster may name 100,000 hosts


def read_text(path: Path) -> str:
    """Return the content of a text file.

    Raises:
        ConfigError: the file cannot be read, or is not text.
    """
    try:
        return read_bytes(path, _MOST_BYTES).decode()
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path}: is not text (byte {exc.start} is not UTF-8)") from exc
    except ValueError as exc:  # a null character in the path
        raise ConfigError(f"{path}: cannot be read: {exc}") from exc


def _read(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        ConfigError: the file cannot be read, or is not TOML.
    """
    return _parse(read_text(path), path)


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{path}: is not valid TOML: {exc}") from exc
    except RecursionError as exc:
        raise ConfigError(f"{path}: brackets are nested too deeply; remove some") from exc
    except ValueError as exc:  # from int, where Python refuses to read on
        raise ConfigError(f"{path}: a number has thousands of digits; write fewer") from exc


def validated(record: type[R], data: dict[str, Any], where: str) -> R:
    """Return a record made from parsed data; error messages begin with `where`.

    Raises:
        ConfigError: a key is missing, unknown or of the wrong type.
    """
    try:
        return record.model_validate(data)
    except ValidationError as exc:
        raise ConfigError(f"{where}: {one_line(exc)}") from exc
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc


def load_cluster(path: Path) -> Cluster:
    """Read and check a cluster file.

    Raises:
        ConfigError: the file is not TOML, or a key is missing, unknown or of the wrong type.
    """
    return validated(Cluster, _read(path), str(path))


def cluster_of(data: dict[str, Any], where: str) -> Cluster:
    """Return the cluster that parsed tables describe, checked like a cluster file.

    Error messages begin with `where`.

    Raises:
        ConfigError: a key is missing, unknown or of the wrong type.
    """
    return validated(Cluster, data, where)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario's tables with changes applied; job types of the same name are merged."""
    both = {**base, **changes}
    theirs = changes.get("types")
    if isinstance(theirs, list) and all(isinstance(entry, dict) for entry in theirs):
        named = {entry["name"]: entry for entry in base["types"]}
        for entry in theirs:
            name = str(entry.get("name"))
            named[name] = {**named.get(name, {}), **entry}
        both["types"] = list(named.values())
    return both


def _with_base(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a scenario file's tables, merged into those of its `base` (a shipped scenario)."""
    base = data.pop("base", None)
    if base is None:
        return data
    known = shipped()
    if not isinstance(base, str) or base not in known or known[base] == path:
        raise ConfigError(
            f"{path}: base: unknown scenario {base!r}; {suggestion(str(base), known)}"
        )
    return _merged(_read_scenario(known[base]), data)


def _read_scenario(path: Path) -> dict[str, Any]:
    return _with_base(_read(path), path)


def _expand_history(data: dict[str, Any], folder: Path) -> None:
    """Complete the tables of a scenario that replays a history, in place.

    Makes the path of the history relative to `folder`, that of the scenario's file, and adds
    estimates (`memory`) and job types if there are none. Types from a shipped scenario keep only
    name, share, kind and speeds.
    """
    recorded = data.get("history")
    if isinstance(recorded, str):
        recorded = data["history"] = {"file": recorded}
    if not isinstance(recorded, dict) or not isinstance(recorded.get("file"), str):
        return
    recorded["file"] = str(folder / recorded["file"])
    data.setdefault("estimates", "memory")  # a real scheduler does not know run times in advance
    if "types" in data:
        recorded.setdefault("speeds", "own")
        return
    assumed = recorded.setdefault("speeds", "none")
    origin = SPEEDS.get(assumed) if isinstance(assumed, str) else None
    if origin is not None:
        given = _read_scenario(shipped()[origin])["types"]
        keys = ("name", "share", "kind", "speed")
        data["types"] = [
            {"kind": "ml", "size": UNUSED, **{k: entry[k] for k in keys if k in entry}}
            for entry in given
        ]
    else:
        alike = dict.fromkeys(_gpu_names(data.get("cluster")), 1.0)
        data["types"] = [{"name": "job", "share": 1, "size": UNUSED, "speed": alike}]


def _gpu_names(cluster: object) -> list[str]:
    """Return the GPU models named in a cluster's tables; malformed tables are skipped."""
    groups = cluster.get("nodes") if isinstance(cluster, dict) else None
    tables = [g for g in groups if isinstance(g, dict)] if isinstance(groups, list | tuple) else []
    return [table["gpu"] for table in tables if isinstance(table.get("gpu"), str)]


def load_scenario(path: Path) -> Scenario:
    """Read and check a scenario file; `cluster = "FILE"` is relative to its folder.

    Raises:
        ConfigError: the file is not TOML, or a key is missing, unknown or of the wrong type.
    """
    return scenario_of(_read_scenario(path), path)


def scenario_of(data: dict[str, Any], path: Path) -> Scenario:
    """Return the scenario that parsed tables describe, as if they were read from `path`.

    Raises:
        ConfigError: a key is missing, unknown or of the wrong type.
    """
    data = {"name": printable(path.stem), **data}
    if isinstance(data.get("cluster"), str):
        data["cluster"] = load_cluster(path.parent / data["cluster"]).model_dump()
    if isinstance(data.get("history"), dict):
        data["history"] = {**data["history"]}
    _expand_history(data, path.parent)
    return validated(Scenario, data, str(path))


def shipped() -> dict[str, Path]:
    """Return the scenarios that come with the package: name -> file."""
    folder = Path(str(resources.files("adlro") / "scenarios"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_scenario(name: str) -> Scenario:
    """Load a shipped scenario by name, or a user's file by path (with a slash or .toml).

    Raises:
        ConfigError: there is no such scenario, or its file is wrong.
    """
    if "/" in name or name.endswith(".toml"):
        return load_scenario(Path(name))
    known = shipped()
    if name not in known:
        raise ConfigError(f"unknown scenario {name!r}; {suggestion(name, known)}")
    return load_scenario(known[name])


def find_cluster(name: str) -> Cluster:
    """Load a cluster from a cluster file, or the cluster of a scenario.

    `name` is the path of either file (with a slash or .toml), or the name of a shipped scenario.

    Raises:
        ConfigError: there is no such file or scenario, or the file is wrong.
    """
    if "/" in name or name.endswith(".toml"):
        path = Path(name)
        data = _read(path)
        if "nodes" in data:
            return validated(Cluster, data, name)
        return scenario_of(_with_base(data, path), path).cluster
    return find_scenario(name).cluster


def adjusted(scenario: Scenario, **changes: object) -> Scenario:
    """Return a scenario with some keys replaced (None = unchanged), checked like a file.

    Raises:
        ConfigError: a value is out of range.
    """
    data = scenario.model_dump()
    data.update({key: value for key, value in changes.items() if value is not None})
    try:
        return Scenario.model_validate(data)
    except ValidationError as exc:
        raise ConfigError("--" + one_line(exc).replace("ageing_h", "ageing", 1)) from exc
