"""Cluster descriptions (TOML), and the pool, node and GPU records built from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, PositiveFloat, model_validator

from adlro.errors import ConfigError
from adlro.model import gpu
from adlro.model.gpu import GpuModel
from adlro.model.record import Record
from adlro.model.state import GPU, NODE, POOL, WHOLE, Records, partition_bit

MB_PER_GB = 1024
_MAX_GPUS = 1_000_000
# The network and link for which NodeGroup.span_cost is 1.
_REFERENCE_NETWORK, _REFERENCE_LINK = 12.5, 300.0  # GB/s: 100 Gb/s network, NVLink 2


Name = Annotated[str, Field(min_length=1, max_length=80)]
GpuName = Name  # of the catalogue or of the cluster's [[gpu]] tables; known_gpu checks it
Host = Annotated[str, Field(min_length=1, max_length=255)]
Number = Annotated[int, Field(ge=1, le=1_000_000)]
Hours = Annotated[float, Field(ge=0, le=1e6)]  # after the first arrival


def _twice(names: Sequence[str]) -> str | None:
    """Return the first name that occurs a second time; None if all are different."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = _twice(names)
    if twice is not None:
        raise ValueError(f"{twice!r} is named twice; remove one")
    return names


_Distinct = AfterValidator(_distinct)
Partitions = Annotated[tuple[Name, ...], Field(min_length=1, max_length=1000), _Distinct]
Features = Annotated[tuple[Name, ...], Field(max_length=1000), _Distinct]


def host_of(node: str) -> str:
    """Return the name of the host that a node is, or is a part of: "a100@gpu07" is on "gpu07"."""
    return node.rpartition("@")[2]


class NodeGroup(Record):
    """A group of identical nodes: one [[nodes]] table of a cluster file."""

    name: Name
    count: Number = 1
    hosts: Annotated[tuple[Host, ...], _Distinct] = ()  # () = NAME-0, NAME-1 ...
    gpu: GpuName
    gpu_type: Annotated[str, Field(max_length=80)] = ""  # as jobs ask for it; "" = by the model
    gpus: Number
    cores: Number
    memory_gb: Annotated[float, Field(gt=0, le=1e6)]
    link_gb_s: PositiveFloat | None = None  # between the GPUs of a node; None = that of the model
    network_gb_s: PositiveFloat = _REFERENCE_NETWORK
    partitions: Partitions = ("main",)
    features: Features = ()  # jobs may ask for nodes that have them
    joins_h: Hours = 0.0  # 0 = present from the beginning
    leaves_h: Hours | None = None  # None = never

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:  # noqa: ANN401  whatever the file holds
        """Accept `partition` for a single partition, and `hosts` without `count`."""
        if not isinstance(data, dict):
            return data
        full = dict(data)
        if "partition" in full:
            if "partitions" in full:
                raise ValueError("partition and partitions are both given; keep one of them")
            full["partitions"] = [full.pop("partition")]
        if full.get("hosts") and isinstance(full["hosts"], list | tuple):
            full.setdefault("count", len(full["hosts"]))
        return full

    @model_validator(mode="after")
    def _one_host_each(self) -> NodeGroup:
        if self.hosts and len(self.hosts) != self.count:
            raise ValueError(
                f"count is {self.count:,}, but hosts has {len(self.hosts):,} names; correct one or "
                "leave count out"
            )
        return self

    @model_validator(mode="after")
    def _joins_first(self) -> NodeGroup:
        if self.leaves_h is not None and self.leaves_h <= self.joins_h:
            raise ValueError(f"leaves_h {self.leaves_h:g} is not after joins_h {self.joins_h:g}")
        return self

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes: of the hosts if known, else of the group, numbered if several."""
        if self.hosts:
            return self.hosts
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
        """Return what all nodes of one pool share: what jobs may ask for, GPU model and sizes."""
        asked = (frozenset(self.partitions), frozenset(self.features), self.gpu_type.casefold())
        sizes = (self.gpus, self.cores, self.memory_gb)
        return (*asked, model.name, *sizes, self.span_cost(model))


class Cluster(Record):
    """A cluster as described by a cluster file (TOML): its GPU models and its groups of nodes."""

    name: Name = "cluster"
    about: str = ""
    gpu: tuple[GpuModel, ...] = ()  # models that are not in the catalogue
    nodes: Annotated[tuple[NodeGroup, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _sound(self) -> Cluster:
        twice = _twice([group.name for group in self.nodes])
        if twice is not None:
            raise ValueError(f"two groups of nodes are called {twice!r}")
        if sum(group.count * group.gpus for group in self.nodes) > _MAX_GPUS:
            raise ValueError(f"nodes: more than {_MAX_GPUS:,} GPUs in all")
        if all(group.leaves_h is not None for group in self.nodes):
            raise ValueError("nodes: all of them leave; at least one group must stay (no leaves_h)")
        _refuse_ambiguous(self.nodes)
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


def _refuse_ambiguous(groups: Iterable[NodeGroup]) -> None:
    """Raise ValueError if two nodes have one name, or a group that of a node of another group."""
    called = {group.name for group in groups}
    owners: dict[str, str] = {}  # name of a node -> name of its group
    for group in groups:
        for name in group.node_names:
            if name in called and name != group.name:
                raise ValueError(
                    f"nodes: a node of group {group.name!r} is called {name!r}, and so is another "
                    "group; rename one"
                )
            if name in owners:
                raise ValueError(
                    f"nodes: groups {owners[name]!r} and {group.name!r} both have a node {name!r}; "
                    "every node has its own name"
                )
            owners[name] = group.name


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
    partitions: tuple[str, ...]  # all of them, in file order
    pool_names: tuple[str, ...]  # [P]
    pool_partitions: tuple[frozenset[str], ...]  # [P] the partitions that all its nodes are in
    pool_features: tuple[frozenset[str], ...]  # [P] the features that all its nodes have
    pool_types: tuple[str, ...]  # [P] the type of GPU as jobs ask for it; "" = by the model
    node_names: tuple[str, ...]  # [N]
    pools: Records  # [P]
    nodes: Records  # [N]
    gpus: Records  # [G]
    groups: tuple[NodeGroup, ...]  # [N] the group that each node belongs to
    lasting: NDArray[np.int64]  # [P] number of nodes that never leave


def _pool_names(first: Iterable[NodeGroup], models: Iterable[GpuModel]) -> tuple[str, ...]:
    """Return the names [P] of pools: model and partitions; numbered from the second equal one on.

    Args:
        first: [P] the first group of nodes of each pool.
        models: [P] the model of its GPUs.
    """
    names: list[str] = []
    count: dict[str, int] = {}
    for group, model in zip(first, models, strict=True):
        name = f"{model.name} ({', '.join(group.partitions)})"
        count[name] = count.get(name, 0) + 1
        names.append(f"{name} #{count[name]}" if count[name] > 1 else name)
    return tuple(names)


def _node_records(groups: Sequence[NodeGroup], pool: Sequence[int]) -> Records:
    """Return the records [N] of the nodes of groups; pool[i] is the pool of groups[i]."""
    counts = [group.count for group in groups]
    nodes = np.zeros(sum(counts), NODE)
    nodes["pool"] = np.repeat(pool, counts)
    nodes["gpus"] = np.repeat([group.gpus for group in groups], counts)
    nodes["cores"] = np.repeat([group.cores for group in groups], counts)
    nodes["memory"] = np.repeat([round(group.memory_gb * MB_PER_GB) for group in groups], counts)
    nodes["first_gpu"] = np.cumsum(nodes["gpus"]) - nodes["gpus"]
    nodes["free"], nodes["up"] = nodes["gpus"], 1
    nodes["free_cores"], nodes["free_memory"] = nodes["cores"], nodes["memory"]
    return nodes


def lay_out(cluster: Cluster) -> Layout:
    """Build the pool, node and GPU records of an empty cluster, and their names.

    Pools, nodes and GPUs are numbered in file order; the nodes of a pool have consecutive numbers.
    """
    model_of = {group.name: cluster.model_of(group.gpu) for group in cluster.nodes}
    shape_of = {group.name: group.shape(model_of[group.name]) for group in cluster.nodes}
    first: dict[tuple[object, ...], NodeGroup] = {}  # shape -> the first group of its pool
    for group in cluster.nodes:
        first.setdefault(shape_of[group.name], group)
    number = {shape: p for p, shape in enumerate(first)}
    pool_of = {name: number[shape] for name, shape in shape_of.items()}
    groups = sorted(cluster.nodes, key=lambda group: pool_of[group.name])
    models = tuple(dict.fromkeys(model_of.values()))
    partitions = tuple(dict.fromkeys(name for group in cluster.nodes for name in group.partitions))
    nodes = _node_records(groups, [pool_of[group.name] for group in groups])
    pools = np.zeros(len(first), POOL)
    for pool, group in zip(pools, first.values(), strict=True):
        model = model_of[group.name]
        pool["model"] = models.index(model)
        pool["partitions"] = sum({partition_bit(partitions.index(one)) for one in group.partitions})
        pool["node_gpus"], pool["gpu_memory"] = group.gpus, round(model.memory_gb * MB_PER_GB)
        pool["span_cost"], pool["worth"] = group.span_cost(model), 1.0
    pools["nodes"] = np.bincount(nodes["pool"])
    pools["first_node"] = np.cumsum(pools["nodes"]) - pools["nodes"]
    pools["gpus"] = pools["free"] = pools["size"] = pools["nodes"] * pools["node_gpus"]
    pools["first_gpu"] = np.cumsum(pools["gpus"]) - pools["gpus"]
    gpus = np.zeros(nodes["gpus"].sum(), GPU)
    gpus["node"] = np.repeat(np.arange(len(nodes)), nodes["gpus"])
    gpus["free"], gpus["job"], gpus["next"], gpus["slice"] = WHOLE, -1, -1, -1
    gpus["free_memory"] = pools["gpu_memory"][nodes["pool"][gpus["node"]]]
    owners = tuple(group for group in groups for _ in range(group.count))
    stays = [group.leaves_h is None for group in owners]
    return Layout(
        models,
        partitions,
        _pool_names(first.values(), [model_of[group.name] for group in first.values()]),
        tuple(frozenset(group.partitions) for group in first.values()),
        tuple(frozenset(group.features) for group in first.values()),
        tuple(group.gpu_type for group in first.values()),
        tuple(name for group in groups for name in group.node_names),
        pools,
        nodes,
        gpus,
        owners,
        np.bincount(nodes["pool"][stays], minlength=len(pools)),
    )
