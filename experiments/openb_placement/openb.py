"""Alibaba's openb trace of 2023: the nodes of a GPU cluster, and the pods that were sent to it.

Two CSV files (github.com/alibaba/clusterdata, cluster-trace-gpu-v2023; Weng et al., USENIX ATC
2023). Cores are counted in thousandths. Times are not read: placement is all that this is for.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.errors import TraceError
from adlro.model.state import DEMAND, GPU, NODE, POD, WHOLE, Records

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_SPEC = "gpu_spec"  # not every list of pods has it
_MOST_GPUS = 64  # of a node or a pod
_MOST_MODELS = 63  # bits of POD.pools
_LARGEST, _DIGITS = 2**31 - 1, 10
COVERED = 0.95  # share of the pods that placement looks ahead to, as published


class Trace(NamedTuple):
    """An empty cluster, and pods by what they ask for."""

    models: tuple[str, ...]  # [M] a pool of NODE.pool each
    names: tuple[str, ...]  # [N] of the nodes, in rising order
    nodes: Records  # [N] NODE
    gpus: Records  # [G] GPU
    specs: Records  # [S] POD, the most frequent first
    pods: NDArray[np.int64]  # [A] the spec of each pod


class _Line(NamedTuple):
    """One row of a file, with the place to blame."""

    at: str  # file and line
    fields: dict[str, str]

    def whole(self, column: str, most: int = _LARGEST) -> int:
        text = self.fields[column]
        digits = text.isascii() and text.isdigit() and len(text) <= _DIGITS
        if not digits or int(text) > most:
            raise TraceError(
                f"{self.at}: {column} must be a whole number from 0 to {most}, not {text!r}"
            )
        return int(text)


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as exc:
        raise TraceError(f"{path}: cannot be read: {exc}") from exc


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file and the lines that they end on."""
    reader = csv.reader(io.StringIO(_text(path), newline=""))
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as exc:
        raise TraceError(f"{path}:{reader.line_num}: {exc}") from exc


def _lines(path: Path, columns: tuple[str, ...]) -> Iterator[_Line]:
    """The rows of a CSV file that has at least these columns."""
    rows = _rows(path)
    _, head = next(rows, (1, []))
    missing = [column for column in columns if column not in head]
    if missing:
        raise TraceError(f"{path}:1: there is no column {missing[0]!r}; is this an openb file?")
    empty = True
    for number, row in rows:
        at = f"{path}:{number}"
        if len(row) != len(head):
            raise TraceError(f"{at}: expected {len(head)} fields, got {len(row)}")
        empty = False
        yield _Line(at, dict(zip(head, row, strict=True)))
    if empty:
        raise TraceError(f"{path}: there are no rows below the names of the columns")


def _nodes(path: Path) -> tuple[tuple[str, ...], tuple[str, ...], Records]:
    """Models, names and NODE records, by name."""
    rows: dict[str, tuple[int, int, int, str]] = {}
    for line in _lines(path, _NODE_COLUMNS):
        name, model = line.fields["sn"], line.fields["model"]
        gpus = line.whole("gpu", _MOST_GPUS)
        if name in rows:
            raise TraceError(f"{line.at}: there is a node {name!r} already")
        if gpus > 0 and not model:
            raise TraceError(f"{line.at}: node {name!r} has {gpus} GPUs but no model")
        rows[name] = (line.whole("cpu_milli"), line.whole("memory_mib"), gpus, model)
    names = tuple(sorted(rows))
    models = tuple(sorted({model for *_, model in rows.values()}))
    if len(models) > _MOST_MODELS:
        raise TraceError(
            f"{path}: {len(models)} GPU models; at most {_MOST_MODELS} can be told apart"
        )
    nodes = np.zeros(len(names), NODE)
    for node, name in zip(nodes, names, strict=True):
        node["cores"], node["memory"], node["gpus"], model = rows[name]
        node["pool"] = models.index(model)
    if not nodes["gpus"].any():
        raise TraceError(f"{path}: no node has a GPU")
    nodes["free"], nodes["up"] = nodes["gpus"], 1
    nodes["free_cores"], nodes["free_memory"] = nodes["cores"], nodes["memory"]
    nodes["first_gpu"] = np.cumsum(nodes["gpus"]) - nodes["gpus"]
    return models, names, nodes


def _gpus(nodes: Records) -> Records:
    gpus = np.zeros(nodes["gpus"].sum(), GPU)
    gpus["node"] = np.repeat(np.arange(len(nodes)), nodes["gpus"])
    gpus["free"], gpus["job"], gpus["next"], gpus["slice"] = WHOLE, -1, -1, -1
    return gpus


def _pools(line: _Line, models: tuple[str, ...]) -> int:
    """A bit for each model that a pod may use; all of them if it does not say."""
    wanted = line.fields.get(_SPEC, "")
    if not wanted:
        return (1 << len(models)) - 1
    bits = 0
    for model in wanted.split("|"):
        if not model or model not in models:
            raise TraceError(f"{line.at}: {_SPEC} names {model!r}, a model that no node has")
        bits |= 1 << models.index(model)
    return bits


def _pod(line: _Line, models: tuple[str, ...]) -> tuple[int, ...]:
    """All fields of POD, checked."""
    gpus, share = line.whole("num_gpu", _MOST_GPUS), line.whole("gpu_milli", WHOLE)
    if (gpus == 0) != (share == 0) or (gpus > 1 and share < WHOLE):
        raise TraceError(
            f"{line.at}: {gpus} GPUs with gpu_milli {share}; a pod has no GPU (0), a part of one "
            f"(1 to {WHOLE}) or several whole ones ({WHOLE})"
        )
    cores, memory = line.whole("cpu_milli"), line.whole("memory_mib")
    return (_pools(line, models), gpus, share, cores, memory)


def read(nodes: Path, pods: Path) -> Trace:
    """The cluster and the pods of two files, plain or .gz.

    Raises:
        TraceError: a file cannot be read, or a line does not hold what the format promises.
    """
    models, names, machines = _nodes(nodes)
    asked = [_pod(line, models) for line in _lines(pods, _POD_COLUMNS)]
    count: dict[tuple[int, ...], int] = {}
    for pod in asked:
        count[pod] = count.get(pod, 0) + 1
    ranked = sorted(count, key=lambda pod: (-count[pod], pod))
    place = {pod: s for s, pod in enumerate(ranked)}
    specs, coming = np.array(ranked, POD), np.array([place[pod] for pod in asked], np.int64)
    if not specs["gpus"].any():
        raise TraceError(f"{pods}: no pod asks for a GPU")
    return Trace(models, names, machines, _gpus(machines), specs, coming)


def typical(trace: Trace, covered: float = COVERED) -> Records:
    """DEMAND [K]: the most frequent specs that together are such a share of the pods.

    Memory plays no part, as published. A spec without a GPU may run nowhere: whatever is left is of
    no use to it. Cores for each GPU are rounded up where a pod's do not divide evenly.
    """
    names = ["pools", "gpus", "share", "cores"]
    kinds, of = np.unique(trace.specs[names], return_inverse=True)
    count = np.bincount(of[trace.pods], minlength=len(kinds))
    order = np.lexsort((np.arange(len(kinds)), -count))
    enough = int(np.searchsorted(np.cumsum(count[order]), covered * len(trace.pods))) + 1
    kept = order[:enough]
    demands = np.zeros(len(kept), DEMAND)
    for name in names:
        demands[name] = kinds[name][kept]
    demands["cores"] = -(-demands["cores"] // np.maximum(demands["gpus"], 1))
    demands["pools"][demands["gpus"] == 0] = 0
    demands["weight"] = count[kept] / count[kept].sum()
    return demands


def draw(trace: Trace, demand: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Specs of the pods that come, shuffled, until they ask for `demand` times all GPUs.

    Each pod of the trace comes once, then pods drawn with replacement (if the trace asks for more
    than is wanted: a part of it).
    """
    wanted = demand * WHOLE * len(trace.gpus)
    size = (trace.specs["gpus"].astype(np.int64) * trace.specs["share"])[trace.pods]
    drawn = rng.permutation(len(trace.pods))
    while size[drawn].sum() < wanted:
        drawn = np.append(drawn, rng.integers(len(trace.pods), size=len(trace.pods)))
    enough = int(np.searchsorted(np.cumsum(size[drawn]), wanted)) + 1
    coming: NDArray[np.int64] = trace.pods[rng.permutation(drawn[:enough])]
    return coming
