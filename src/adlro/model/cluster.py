"""Cluster descriptions (TOML), and the pool, node and GPU records built from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, model_validator

from adlro.errors import ConfigError
from adlro.model import gpu
from adlro.model.gpu import GpuModel
from adlro.model.record import Record
from adlro.model.state import GPU, NODE, POOL, WHOLE, Records

MB_PER_GB = 1024
_MAX_GPUS = 1_000_000
# The network and link for which NodeGroup.span_cost is 1.
_REFERENCE_NETWORK, _REFERENCE_LINK = 12.5, 300.0  # GB/s: 100 Gb/s network, NVLink 2


Name = Annotated[str, Field(min_length=1, max_length=80)]
GpuName = Name  # of the catalogue or of the cluster's [[gpu]] tables; known_gpu checks it
Number = Annotated[int, Field(ge=1, le=1_000_000)]
Hours = Annotated[float, Field(ge=0, le=1e6)]  # after the first arrival


class NodeGroup(Record):
    """A group of identical nodes: one [[nodes]] table of a cluster file."""

    name: Name
    count: Number = 1
    gpu: GpuName
    gpus: Number
    cores: Number
    memory_gb: Annotated[float, Field(gt=0, le=1e6)]
    link_gb_s: PositiveFloat | None = None  # between the GPUs of a node; None = that of the model
    network_gb_s: PositiveFloat = _REFERENCE_NETWORK
    partition: Name = "main"
    joins_h: Hours = 0.0  # 0 = present from the beginning
    leaves_h: Hours | None = None  # None = never

    @model_validator(mode="after")
    def _joins_first(self) -> NodeGroup:
        if self.leaves_h is not None and self.leaves_h <= self.joins_h:
            raise ValueError(f"leaves_h {self.leaves_h:g} is not after joins_h {self.joins_h:g}")
        return self

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes: the name of the group, with a number if it has several nodes."""
        if self.count == 1:
            return (self.name,)
        return tuple(f"{self.name}-{i}" for i in range(self.count))

    def span_cost(self, model: GpuModel) -> float:
        """Return the extra time to move data over the network instead of the link within a node.

        Relative to the extra time with the reference network and link: 1 = the same, 0 = none.
        model: of the group's GPUs.
        """
        extra = 1 / self.network_gb_s - 1 / (self.link_gb_s or model.link_gb_s)
        return max(0.0, extra / (1 / _REFERENCE_NETWORK - 1 / _REFERENCE_LINK))

    def shape(self, model: GpuModel) -> tuple[object, ...]:
        """Return what all nodes of one pool share: partition, GPU model, sizes and span cost."""
        sizes = (self.gpus, self.cores, self.memory_gb)
        return (self.partition, model.name, *sizes, self.span_cost(model))


class Cluster(Record):
    """A cluster as described by a cluster file (TOML): its GPU models and its groups of nodes."""

    name: Name = "cluster"
    about: str = ""
    gpu: tuple[GpuModel, ...] = ()  # models that are not in the catalogue
    nodes: Annotated[tuple[NodeGroup, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _sound(self) -> Cluster:
        seen: dict[str, NodeGroup] = {}
        for group in self.nodes:
            if group.name in seen:
                raise ValueError(f"two groups of nodes are called {group.name!r}")
            seen[group.name] = group
        if sum(group.count * group.gpus for group in self.nodes) > _MAX_GPUS:
            raise ValueError(f"nodes: more than {_MAX_GPUS:,} GPUs in all")
        if all(group.leaves_h is not None for group in self.nodes):
            raise ValueError("nodes: all of them leave; at least one group must stay (no leaves_h)")
        for name in seen:  # the part after the last dash could be the number of a node
            other = seen.get(name.rpartition("-")[0])
            if other is not None and name in other.node_names:
                raise ValueError(
                    f"nodes: a node of group {other.name!r} is called {name!r}, and so is another "
                    "group; rename one"
                )
        return self

    @model_validator(mode="after")
    def _gpus_known(self) -> Cluster:
        for i, own in enumerate(self.gpu):
            _refuse_own(f"gpu.{i}", own, self.gpu[:i])
        for i, group in enumerate(self.nodes):
            known_gpu(f"nodes.{i}.gpu", group.gpu, self.gpu)
        return self

    def model_of(self, name: str) -> GpuModel:
        """Return the GPU model of a name, of this cluster or of the catalogue.

        Raises:
            ConfigError: there is no such model.
        """
        return gpu.find(name, self.gpu)


def known_gpu(key: str, name: str, own: Sequence[GpuModel]) -> GpuModel:
    """Return the GPU model of a name, of the catalogue or of `own`.

    Raises:
        ValueError: there is no such model; the message begins with `key`.
    """
    try:
        return gpu.find(name, own)
    except ConfigError as exc:
        raise ValueError(f"{key}: {exc}") from exc


def _refuse_own(key: str, own: GpuModel, before: Sequence[GpuModel]) -> None:
    """Raise ValueError if a [[gpu]] table is of a known model, or contradicts its own name."""
    for name in (own.name, *own.aliases):
        for known in gpu.meant_by(name)[:1]:
            raise ValueError(
                f"{key}: {name!r} is a name of the catalogue's {known.name!r} with "
                f"{known.memory_gb:g} GB; choose another name or remove this table"
            )
        if any(gpu.is_name_of(name, other) for other in before):
            raise ValueError(f"{key}: two GPU models are called {name!r}; rename one")
    said = re.search(r"(\d+)\s*gi?b\b", own.name, re.IGNORECASE)
    if said and float(said[1]) != own.memory_gb:
        raise ValueError(
            f"{key}.memory_gb: {own.name!r} says {said[1]} GB, not {own.memory_gb:g}; correct one"
        )
    for field in ("parent", "board"):
        if getattr(own, field) is not None:
            raise ValueError(f"{key}.{field}: only models of the catalogue have one; remove it")
    if own.tensor_like is not None:
        known_gpu(f"{key}.tensor_like", own.tensor_like, ())


class Layout(NamedTuple):
    """Records of an empty cluster, and the names of its models, partitions, pools and nodes."""

    models: tuple[GpuModel, ...]  # [M], in file order
    partitions: tuple[str, ...]
    pool_names: tuple[str, ...]  # [P]
    node_names: tuple[str, ...]  # [N]
    pools: Records  # [P]
    nodes: Records  # [N]
    gpus: Records  # [G]
    groups: tuple[NodeGroup, ...]  # [N] the group that each node belongs to
    lasting: NDArray[np.int64]  # [P] number of nodes that never leave


def _unique(values: Iterator[object]) -> list[object]:
    return list(dict.fromkeys(values))


def _pool_names(
    pools: Records, models: tuple[GpuModel, ...], partitions: tuple[str, ...]
) -> tuple[str, ...]:
    """Names [P] of pools: model and partition; with a number from the second equal name on."""
    names: list[str] = []
    count: dict[str, int] = {}
    for pool in pools:
        name = f"{models[pool['model']].name} ({partitions[pool['partition']]})"
        count[name] = count.get(name, 0) + 1
        names.append(f"{name} #{count[name]}" if count[name] > 1 else name)
    return tuple(names)


def lay_out(cluster: Cluster) -> Layout:
    """Build the pool, node and GPU records of an empty cluster, and their names.

    Pools, nodes and GPUs are numbered in file order; the nodes of a pool have consecutive numbers.
    """
    model_of = {group.name: cluster.model_of(group.gpu) for group in cluster.nodes}
    shape_of = {group.name: group.shape(model_of[group.name]) for group in cluster.nodes}
    shapes = _unique(iter(shape_of.values()))
    groups = sorted(cluster.nodes, key=lambda group: shapes.index(shape_of[group.name]))
    models = tuple(dict.fromkeys(model_of.values()))
    partitions = tuple(dict.fromkeys(group.partition for group in cluster.nodes))
    pools = np.zeros(len(shapes), POOL)
    nodes = np.zeros(sum(group.count for group in groups), NODE)
    gpus = np.zeros(sum(group.count * group.gpus for group in groups), GPU)
    pools["first_node"] = -1
    n = g = 0
    for group in groups:
        p = shapes.index(shape_of[group.name])
        pool, model = pools[p], model_of[group.name]
        if pool["first_node"] < 0:
            pool["first_node"], pool["first_gpu"] = n, g
        pool["model"], pool["partition"] = models.index(model), partitions.index(group.partition)
        pool["nodes"] += group.count
        pool["gpus"] += group.count * group.gpus
        pool["node_gpus"], pool["gpu_memory"] = group.gpus, round(model.memory_gb * MB_PER_GB)
        pool["span_cost"], pool["worth"] = group.span_cost(model), 1.0
        for _ in range(group.count):
            nodes[n]["pool"], nodes[n]["first_gpu"], nodes[n]["gpus"] = p, g, group.gpus
            nodes[n]["cores"], nodes[n]["memory"] = group.cores, round(group.memory_gb * MB_PER_GB)
            gpus["node"][g : g + group.gpus] = n
            n, g = n + 1, g + group.gpus
    pools["free"] = pools["size"] = pools["gpus"]
    nodes["free"], nodes["up"] = nodes["gpus"], 1
    nodes["free_cores"], nodes["free_memory"] = nodes["cores"], nodes["memory"]
    gpus["free"], gpus["job"], gpus["next"], gpus["slice"] = WHOLE, -1, -1, -1
    gpus["free_memory"] = pools["gpu_memory"][nodes["pool"][gpus["node"]]]
    names = _pool_names(pools, models, partitions)
    node_names = tuple(name for group in groups for name in group.node_names)
    owners = tuple(group for group in groups for _ in range(group.count))
    stays = [group.leaves_h is None for group in owners]
    lasting = np.bincount(nodes["pool"][stays], minlength=len(pools))
    return Layout(models, partitions, names, node_names, pools, nodes, gpus, owners, lasting)
