"""Reader of Alibaba's openb trace of 2023: the nodes of a GPU cluster and the pods submitted to it.

Two CSV files (github.com/alibaba/clusterdata, cluster-trace-gpu-v2023; Weng et al., USENIX ATC
2023). Cores are in thousandths. Times are ignored, because placement does not need them.
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
_SPEC = "gpu_spec"  # optional column
_MOST_GPUS = 64  # per node or pod
_MOST_MODELS = 63  # bits of POD.pools
_LARGEST, _DIGITS = 2**31 - 1, 10
COVERED = 0.95  # share of the pods that the typical demands cover, as published


class Trace(NamedTuple):
    """An empty cluster, and the pods by their specification."""

    models: tuple[str, ...]  # [M] indexed by NODE.pool
    names: tuple[str, ...]  # [N] node names, ascending
    nodes: Records  # [N] NODE
    gpus: Records  # [G] GPU
    specs: Records  # [S] POD, most frequent first
    pods: NDArray[np.int64]  # [A] the spec of each pod


class _Line(NamedTuple):
    """One row of a file, with its position for error messages."""

    at: str  # file and line
    fields: dict[str, str]

    def integer(self, column: str, most: int = _LARGEST) -> int:
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
    """Yield the rows of a CSV file with the numbers of their last lines."""
    reader = csv.reader(io.StringIO(_text(path), newline=""))
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as exc:
        raise TraceError(f"{path}:{reader.line_num}: {exc}") from exc


def _lines(path: Path, columns: tuple[str, ...]) -> Iterator[_Line]:
    """Yield the rows of a CSV file that must have at least these columns."""
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
    """Return models, node names and NODE records, sorted by name."""
    rows: dict[str, tuple[int, int, int, str]] = {}
    for line in _lines(path, _NODE_COLUMNS):
        name, model = line.fields["sn"], line.fields["model"]
        gpus = line.integer("gpu", _MOST_GPUS)
        if name in rows:
            raise TraceError(f"{line.at}: there is a node {name!r} already")
        if gpus > 0 and not model:
            raise TraceError(f"{line.at}: node {name!r} has {gpus} GPUs but no model")
        rows[name] = (line.integer("cpu_milli"), line.integer("memory_mib"), gpus, model)
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
    """Bit mask of the models that a pod may use; all if it names none."""
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
    """Return the checked fields of POD."""
    gpus, share = line.integer("num_gpu", _MOST_GPUS), line.integer("gpu_milli", WHOLE)
    if (gpus == 0) != (share == 0) or (gpus > 1 and share < WHOLE):
        raise TraceError(
            f"{line.at}: {gpus} GPUs with gpu_milli {share}; a pod has no GPU (0), a part of one "
            f"(1 to {WHOLE}) or several whole ones ({WHOLE})"
        )
    cores, memory = line.integer("cpu_milli"), line.integer("memory_mib")
    return (_pools(line, models), gpus, share, cores, memory)


def read(nodes: Path, pods: Path) -> Trace:
    """Read the cluster and the pods from two files, plain or .gz.

    Raises:
        TraceError: a file cannot be read, or a line violates the format.
    """
    models, names, machines = _nodes(nodes)
    requests = [_pod(line, models) for line in _lines(pods, _POD_COLUMNS)]
    count: dict[tuple[int, ...], int] = {}
    for pod in requests:
        count[pod] = count.get(pod, 0) + 1
    ranked = sorted(count, key=lambda pod: (-count[pod], pod))
    index = {pod: s for s, pod in enumerate(ranked)}
    specs, pods_by_spec = (
        np.array(ranked, POD),
        np.array([index[pod] for pod in requests], np.int64),
    )
    if not specs["gpus"].any():
        raise TraceError(f"{pods}: no pod asks for a GPU")
    return Trace(models, names, machines, _gpus(machines), specs, pods_by_spec)


def typical(trace: Trace, covered: float = COVERED) -> Records:
    """Return DEMAND [K], the most frequent specs that together cover a share of the pods.

    Memory is ignored, as published. A spec without a GPU has no allowed pool, because fragments of
    GPUs are of no use to it. Cores per GPU are rounded up.
    """
    names = ["pools", "gpus", "share", "cores"]
    kinds, of = np.unique(trace.specs[names], return_inverse=True)
    count = np.bincount(of[trace.pods], minlength=len(kinds))
    order = np.lexsort((np.arange(len(kinds)), -count))
    enough = int(np.searchsorted(np.cumsum(count[order]), covered * len(trace.pods))) + 1
    frequent = order[:enough]
    demands = np.zeros(len(frequent), DEMAND)
    for name in names:
        demands[name] = kinds[name][frequent]
    demands["cores"] = -(-demands["cores"] // np.maximum(demands["gpus"], 1))
    demands["pools"][demands["gpus"] == 0] = 0
    demands["weight"] = count[frequent] / count[frequent].sum()
    return demands


def draw(trace: Trace, demand: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw pods in random order until they request `demand` times all GPUs; returns their specs.

    Each pod of the trace is used once, then pods are drawn with replacement. If the trace requests
    more than is wanted, only a part of it is used.
    """
    wanted = demand * WHOLE * len(trace.gpus)
    size = (trace.specs["gpus"].astype(np.int64) * trace.specs["share"])[trace.pods]
    drawn = rng.permutation(len(trace.pods))
    while size[drawn].sum() < wanted:
        drawn = np.append(drawn, rng.integers(len(trace.pods), size=len(trace.pods)))
    enough = int(np.searchsorted(np.cumsum(size[drawn]), wanted)) + 1
    arriving: NDArray[np.int64] = trace.pods[rng.permutation(drawn[:enough])]
    return arriving
