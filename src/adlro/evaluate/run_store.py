"""Finished runs on disk, so that work that was stopped goes on where it ended.

A run is stored under a hash of all that it depends on: the source of ADLRO, the scenario, the
content of its history, the policy and the part of the history. Files are .npz without objects.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adlro.errors import OutputError
from adlro.evaluate.metrics import Metrics
from adlro.files import BROKEN, pack_arrays, read_bytes, unpack_arrays, write_bytes
from adlro.model.state import Floats
from adlro.policies import lookahead
from adlro.workloads.generate import jobs_of
from adlro.workloads.setting import Setting

_KEPT = 8  # folders of other histories to keep, the most recently used ones
_MOST_BYTES = 1 << 30  # of a file
_FOLDER = "adlro-runs"


class StoredRun(NamedTuple):
    """One policy's run of K jobs; times are nan for runs that requeued jobs lost."""

    wait_s: Floats  # [K] from a job's arrival to its start
    jct_s: Floats  # [K] from a job's arrival to its end
    metrics: Metrics  # of the measured jobs


@functools.cache
def _source() -> bytes:
    """Return a hash over all modules of ADLRO and the policies that come with it."""
    home, digest = Path(__file__).parent.parent, hashlib.blake2b(digest_size=16)
    for path in sorted(home.rglob("*")):
        if path.suffix in (".py", ".npz", ".toml", ".json"):
            digest.update(str(path.relative_to(home)).encode() + b"\0" + path.read_bytes())
    return digest.digest()


@functools.lru_cache(maxsize=32)
def _content(path: Path, _: tuple[int, int]) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def _file_digest(path: Path) -> bytes:
    """Return a hash of the content of a file; b"" if it cannot be read."""
    try:
        found = path.stat()
        return _content(path, (found.st_mtime_ns, found.st_size))
    except OSError:
        return b""


def _files_of(policy: str) -> list[Path]:
    """Return the files of a policy; a learned one has two, whichever is named."""
    path = Path(lookahead.split(policy)[0])
    learned = (".npz", ".json")
    return [path.with_suffix(end) for end in learned] if path.suffix in learned else [path]


def run_key(setting: Setting, policy: str, seed: int) -> str:
    """Return the hash of all that one run depends on.

    policy: its name, or the path of its file.
    """
    scenario = setting.scenario
    assert scenario.history is not None
    assert setting.played is not None
    digest = hashlib.blake2b(digest_size=16)
    window = jobs_of(setting, seed)
    for part in (
        _source(),
        scenario.model_dump_json().encode(),
        _file_digest(Path(scenario.history.file)),
        setting.played.rows.tobytes(),
        window.sizes.tobytes(),
        window.est.tobytes(),
        policy.encode(),
        *map(_file_digest, _files_of(policy)),
        f"{seed} {setting.played.stride}".encode(),
    ):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def default_folder() -> Path:
    """Return the folder of stored runs, below $ADLRO_CACHE_DIR, $XDG_CACHE_HOME or ~/.cache.

    Raises:
        RuntimeError: no variable says it, and the user has no home.
    """
    chosen = os.environ.get("ADLRO_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return (Path(chosen) if chosen else Path("~/.cache").expanduser()) / _FOLDER


class RunStore:
    """The finished runs of one history; it forgets those of the histories least recently used."""

    def __init__(self, history: Path, folder: Path | None = None) -> None:
        """Open the runs of a history; folder: of all histories, None = the user's cache."""
        self.is_usable = True  # False = runs cannot be stored
        try:
            base = default_folder() if folder is None else folder
        except RuntimeError:
            self.is_usable, base = False, Path(os.devnull)
        name = hashlib.blake2b(_file_digest(history), digest_size=8).hexdigest()
        self._folder = base / name
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._folder.touch()
            others = sorted(base.iterdir(), key=lambda path: -path.stat().st_mtime)
            for old in others[_KEPT:]:
                shutil.rmtree(old, ignore_errors=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.npz"

    def get(self, key: str) -> StoredRun | None:
        """Return a stored run; None = there is none, or its file is damaged."""
        try:
            data = read_bytes(self._path(key), _MOST_BYTES)
            found = unpack_arrays(data, "a run", ("wait_s", "jct_s", "metrics"))
        except (OSError, *BROKEN):
            return None
        wait, jct, metrics = found["wait_s"], found["jct_s"], found["metrics"]
        if any(one.dtype != np.float64 or one.ndim != 1 for one in found.values()):
            return None
        if len(wait) != len(jct) or len(metrics) != len(Metrics._fields):
            return None
        return StoredRun(wait, jct, Metrics(*metrics.tolist()))

    def put(self, key: str, run: StoredRun) -> None:
        """Store a run; where the folder cannot be written, later calls do nothing."""
        if not self.is_usable:
            return
        arrays = {
            "wait_s": run.wait_s,
            "jct_s": run.jct_s,
            "metrics": np.array(run.metrics, np.float64),
        }
        try:
            write_bytes(self._path(key), pack_arrays(arrays))
        except OutputError:
            self.is_usable = False
