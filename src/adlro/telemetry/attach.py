"""Finds the GPU of a cluster for each row of a telemetry sample, by host name and GPU number.

Dimensions: R rows of the sample, G GPUs of the cluster, N nodes.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from adlro.model.cluster import Layout, host_of
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
    because otherwise it is unknown which one is missing. A host that is split into several nodes,
    one for each model ("a100@gpu07"), must name the models of its GPUs; those of one model are then
    counted like slices.
    """
    gpus = np.full(len(sample.host), UNKNOWN, np.int64)
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, host in enumerate(sample.host):
        rows_of[host].append(row)
    for host, nodes in _nodes_of(rows_of, cluster.node_names).items():
        for node in nodes:
            record, model, is_part = cluster.nodes[node], _model(node, cluster), len(nodes) > 1
            own = [r for r in rows_of[host] if not is_part or is_name_of(sample.model[r], model)]
            rows = np.array(own, np.int64)
            places = _places(
                rows, sample, int(record["gpus"]), _Kind(model.parent is not None, is_part)
            )
            gpus[rows] = np.where(places == UNKNOWN, UNKNOWN, record["first_gpu"] + places)
    has_value = ~np.isnan(sample.values).all(axis=1)
    counts = np.bincount(gpus[gpus != UNKNOWN], minlength=len(cluster.gpus))
    read = np.bincount(gpus[(gpus != UNKNOWN) & has_value], minlength=len(cluster.gpus))
    other = [
        row
        for row in np.flatnonzero(gpus != UNKNOWN)
        if sample.model[row]
        and not is_name_of(sample.model[row], model_of(int(gpus[row]), cluster))
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


class _Kind(NamedTuple):
    """What a node of the cluster is."""

    is_sliced: bool  # its GPUs are slices of GPUs
    is_part: bool  # of a host that has other GPUs too


def _places(rows: Counts, sample: Sample, count: int, kind: _Kind) -> Counts:
    """Return for each row of a node of `count` GPUs the GPU's index on the node, or UNKNOWN."""
    numbers, parts = sample.gpu[rows], sample.part[rows]
    if not kind.is_sliced and not kind.is_part:
        return np.where((parts == WHOLE_GPU) & (numbers < count), numbers, UNKNOWN)
    places = np.full(len(rows), UNKNOWN, np.int64)
    mine = np.flatnonzero((parts != WHOLE_GPU) == kind.is_sliced)
    if len(mine) == count:
        order = np.lexsort((parts[mine], numbers[mine]))
        places[mine[order]] = np.arange(count)
    return places


def _short(name: str) -> str:
    """Return a host name without its domain; an IP address is returned whole."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.partition(".")[0]
    return name


def _nodes_of(hosts: Collection[str], node_names: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of each host's nodes, by host; hosts without a node are left out."""
    exact: dict[str, list[int]] = defaultdict(list)
    for node, name in enumerate(node_names):
        exact[host_of(name)].append(node)
    by_short: dict[str, list[str]] = defaultdict(list)
    for name in exact:
        by_short[_short(name)].append(name)
    found = {host: exact[host] for host in hosts if host in exact}
    rest = [host for host in hosts if host not in found]
    rivals = Counter(map(_short, rest))
    for host in rest:
        short = _short(host)
        names = by_short.get(short, [])
        if len(names) == 1 and rivals[short] == 1 and short in (host, names[0]):
            found[host] = exact[names[0]]  # two different domains are two different hosts
    return found
