"""The folder of a training: lock, plan, checkpoint, arrays and metrics."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from adlro import __version__
from adlro.errors import ConfigError, OutputError
from adlro.files import BROKEN, pack_arrays, read_bytes, unpack_arrays, write_bytes
from adlro.train.plan import H, TrainingPlan, difference
from adlro.train.tensorboard import EventFile

Arrays = dict[str, NDArray[Any]]

_OURS = re.compile(
    r"plan\.json|checkpoint\.npz|labels-\d+-\d+-\d+\.npz|part-\d+-\d+\.npz|metrics\.jsonl|lock|"
    r"events\.out\.tfevents\..*|\.adlro-[0-9a-f]+"
)
_META, _LOCK = "meta", "lock"
_MOST_BYTES = 1 << 33  # of a file that is read


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise OutputError(f"{path}: cannot be written: {exc.strerror}") from exc


class TrainingFolder:
    """Reads and writes the files of one training in its folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal_bytes = 0
        self._events: EventFile | None = None

    def clear(self) -> None:
        """Remove all files of the training except the lock, which the caller must hold."""
        for file in self.path.iterdir():
            if file.name != _LOCK:
                file.unlink()

    def _refuse_others(self) -> None:
        for file in self.path.iterdir():
            if not _OURS.fullmatch(file.name) or file.is_dir():
                raise ConfigError(
                    f"{self.path}: holds {file.name}, which is not of a training; "
                    "move it away or choose another --out"
                )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder, and lock it against other trainings while the context lasts.

        Raises:
            ConfigError: another training is at work there, or the folder holds other files.
            OutputError: the folder cannot be created.
        """
        try:
            self.path.mkdir(exist_ok=True)
            self._refuse_others()
            file = (self.path / _LOCK).open("w")
        except FileExistsError as exc:
            raise ConfigError(f"{self.path}: is no folder; choose another --out") from exc
        except OSError as exc:
            raise OutputError(f"{self.path}: cannot be written: {exc.strerror}") from exc
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise ConfigError(
                    f"{self.path}: another training is at work there; wait for it, "
                    "or choose another --out"
                ) from exc
            yield

    def plan(self, ours: TrainingPlan[H]) -> TrainingPlan[H] | None:
        """Return the stored plan if its request equals that of `ours`; None = no plan is stored.

        Raises:
            ConfigError: the stored plan is of another request or algorithm, or cannot be read.
        """
        file = self.path / "plan.json"
        if not file.exists():
            return None
        try:
            found = type(ours).model_validate_json(file.read_bytes())
        except ValidationError as exc:
            raise ConfigError(
                f"{file}: is not a plan of this algorithm and this adlro ({__version__}); "
                "say --fresh to train anew, or choose another --out"
            ) from exc
        other = difference(ours, found)
        if other is not None:
            raise ConfigError(
                f"{self.path}: was begun with {other}; ask for the same, say --fresh to train "
                "anew, or choose another --out"
            )
        return found

    def write_plan(self, plan: TrainingPlan[H]) -> None:
        """Store the plan."""
        write_bytes(self.path / "plan.json", plan.model_dump_json(indent=1).encode())

    def write_arrays(self, name: str, arrays: Arrays) -> None:
        """Store arrays in a file of this name, uncompressed."""
        write_bytes(self.path / name, pack_arrays(arrays, zipfile.ZIP_STORED))

    def read_arrays(self, name: str) -> Arrays:
        """Return the arrays that are stored in the file of this name.

        Raises:
            ConfigError: it cannot be read.
        """
        file = self.path / name
        try:
            return unpack_arrays(read_bytes(file, _MOST_BYTES), "a training")
        except BROKEN as exc:
            raise ConfigError(f"{file}: cannot be read; say --fresh to train anew") from exc

    def write_checkpoint(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        """Store a checkpoint in one file, together with the present length of metrics.jsonl."""
        text = json.dumps(meta | {"journal_bytes": self._journal_bytes})
        self.write_arrays("checkpoint.npz", arrays | {_META: np.frombuffer(text.encode(), "u1")})

    def checkpoint(self) -> tuple[Arrays, dict[str, Any]] | None:
        """Return the arrays and the JSON values of the latest checkpoint; None = there is none yet.

        Raises:
            ConfigError: it cannot be read.
        """
        if not (self.path / "checkpoint.npz").exists():
            return None
        arrays = self.read_arrays("checkpoint.npz")
        meta: dict[str, Any] = json.loads(arrays.pop(_META).tobytes())
        return arrays, meta

    def open_journal(self, length: int) -> None:
        """Cut metrics.jsonl to `length` bytes and begin a new TensorBoard file.

        The lines that are cut off came after the checkpoint and will be written again.
        """
        file = self.path / "metrics.jsonl"
        with _writing(file):
            if file.exists():
                os.truncate(file, min(length, file.stat().st_size))
            self._journal_bytes = length
            self._events = EventFile(self.path)

    def log(self, phase: str, step: int, values: dict[str, float]) -> None:
        """Append a line to metrics.jsonl and the same scalars to the TensorBoard file.

        Raises:
            OutputError: a file cannot be written.
        """
        line = json.dumps({"phase": phase, "step": step, **values}).encode() + b"\n"
        file = self.path / "metrics.jsonl"
        with _writing(file):
            with file.open("ab") as journal:
                journal.write(line)
            self._journal_bytes += len(line)
            if self._events is not None:
                self._events.write(step, {f"{phase}/{key}": value for key, value in values.items()})
