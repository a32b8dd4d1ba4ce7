"""Finds the GPU of a cluster for each row of a telemetry sample, by host name and GPU number.

Dimensions: R rows of the sample, G GPUs of the cluster, N nodes.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from adlro.model.cluster import Layout
from adlro.model.gpu import GpuModel, is_name_of
from adlro.model.state import Counts
from adlro.telemetry.sample import WHOLE_GPU, Sample

UNKNOWN = -1  # a row that belongs to no GPU of the cluster


class Attachment(NamedTuple):
    """The GPU of each row of a sample, and where the sample and the cluster disagree."""

    gpus: Counts  # [R] index of the cluster's GPU, or UNKNOWN
    missing: Counts  # indices of the GPUs without any reading, ascending
    duplicated: Counts  # indices of the GPUs with more than one row, ascending
    other_model: Counts  # attached rows of a model other than the cluster's, ascending

    @property
    def unattached(self) -> Counts:
        """The rows that belong to no GPU of the cluster, ascending."""
        return np.flatnonzero(self.gpus == UNKNOWN)


def attach(sample: Sample, cluster: Layout) -> Attachment:
    """Find the GPU of the cluster that each row of a sample belongs to.

    The host must be the name of a node. A short name and a fully qualified one match if only one
    node and only one host of the sample have that short name. On a node of whole GPUs the number
    of a GPU on its host is its index on the node. On a node of slices (MIG) the host's slices are
    counted by GPU and part; they are attached only if there are as many as the cluster says,
    because otherwise it is unknown which one is missing.
    """
    gpus = np.full(len(sample.host), UNKNOWN, np.int64)
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, host in enumerate(sample.host):
        rows_of[host].append(row)
    for host, node in _nodes_of(rows_of, cluster.node_names).items():
        record = cluster.nodes[node]
        rows = np.array(rows_of[host], np.int64)
        places = _places(rows, sample, int(record["gpus"]), _model(node, cluster).parent)
        gpus[rows] = np.where(places == UNKNOWN, UNKNOWN, record["first_gpu"] + places)
    has_value = ~np.isnan(sample.values).all(axis=1)
    counts = np.bincount(gpus[gpus != UNKNOWN], minlength=len(cluster.gpus))
    read = np.bincount(gpus[(gpus != UNKNOWN) & has_value], minlength=len(cluster.gpus))
    other = [
        row
        for row in np.flatnonzero(gpus != UNKNOWN)
        if _is_other(sample.model[row], model_of(int(gpus[row]), cluster))
    ]
    return Attachment(
        gpus, np.flatnonzero(read == 0), np.flatnonzero(counts > 1), np.array(other, np.int64)
    )


def gpu_name(gpu: int, cluster: Layout) -> str:
    """Return the name of a GPU of the cluster, as node/number."""
    node = int(cluster.gpus["node"][gpu])
    return f"{cluster.node_names[node]}/{gpu - int(cluster.nodes['first_gpu'][node])}"


def model_of(gpu: int, cluster: Layout) -> GpuModel:
    """Return the model of a GPU according to the cluster."""
    return _model(int(cluster.gpus["node"][gpu]), cluster)


def _model(node: int, cluster: Layout) -> GpuModel:
    return cluster.models[int(cluster.pools["model"][cluster.nodes["pool"][node]])]


def _is_other(name: str, model: GpuModel) -> bool:
    """True if a reading names a model (`name` is not empty) other than `model`."""
    return bool(name) and not is_name_of(name, model)


def _places(rows: Counts, sample: Sample, count: int, parent: str | None) -> Counts:
    """Return for each row of a host the GPU's index on its node, or UNKNOWN.

    The node has `count` GPUs; `parent` is the model that they are slices of, or None for whole
    GPUs.
    """
    numbers, parts = sample.gpu[rows], sample.part[rows]
    if parent is None:
        return np.where((parts == WHOLE_GPU) & (numbers < count), numbers, UNKNOWN)
    places = np.full(len(rows), UNKNOWN, np.int64)
    slices = np.flatnonzero(parts != WHOLE_GPU)
    if len(slices) == count:
        order = np.lexsort((parts[slices], numbers[slices]))
        places[slices[order]] = np.arange(count)
    return places


def _short(name: str) -> str:
    """Return a host name without its domain; an IP address is returned whole."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.partition(".")[0]
    return name


def _nodes_of(hosts: Collection[str], node_names: Sequence[str]) -> dict[str, int]:
    """Return the index of each host's node, by host; hosts without a node are left out."""
    exact = {name: node for node, name in enumerate(node_names)}
    by_short: dict[str, list[int]] = defaultdict(list)
    for name, node in exact.items():
        by_short[_short(name)].append(node)
    found = {host: exact[host] for host in hosts if host in exact}
    rest = [host for host in hosts if host not in found]
    rivals = Counter(map(_short, rest))
    for host in rest:
        short = _short(host)
        nodes = by_short.get(short, [])
        if len(nodes) == 1 and rivals[short] == 1 and short in (host, node_names[nodes[0]]):
            found[host] = nodes[0]  # two different domains are two different hosts
    return found
