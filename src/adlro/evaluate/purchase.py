"""GPUs to buy or to switch off: options as an operator writes them, and the clusters they give."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import ValidationError

from adlro.errors import ConfigError, suggestion
from adlro.model import gpu
from adlro.model.cluster import Cluster, NodeGroup
from adlro.model.record import one_line

_LARGEST_NODE = 8  # GPUs of a new node; larger nodes are rare
_MOST_GPUS = 100_000  # of one part of an option
_LISTED = 4  # names in a sentence
_PART = re.compile(r"(?:(?P<count>[-+\d.,]+)\s*[x*]\s*)?(?P<name>.*)", re.IGNORECASE)


class Part(NamedTuple):
    """GPUs of one model, as an operator writes them."""

    number: int | None  # of GPUs; None = not said
    name: str

    def __str__(self) -> str:
        """Return it as it is written: 4xH200."""
        return self.name if self.number is None else f"{self.number}x{self.name}"


class Money(NamedTuple):
    """What GPUs cost, and what may be spent, in any currency."""

    prices: Mapping[str, float]  # of one GPU, by the name of its model
    budget: float | None = None


class Alternative(NamedTuple):
    """A cluster to compare with the one that there is."""

    name: str
    cluster: Cluster
    price: float | None  # None = not known
    new: tuple[str, ...] = ()  # names of its groups of new nodes
    notes: tuple[str, ...] = ()  # what is new or gone, and assumed of it

    @property
    def gpus(self) -> int:
        """Number of GPUs of the cluster."""
        return gpus_of(self.cluster.nodes)


def gpus_of(groups: Iterable[NodeGroup]) -> int:
    """Return the number of GPUs of groups of nodes."""
    return sum(group.gpus * group.count for group in groups)


def parse(option: str, text: str) -> tuple[Part, ...]:
    """Parse the text of --add or --remove, such as "4xH200+8xL40S"; models are not checked.

    Raises:
        ConfigError: it is not of that form, or a number of GPUs is not in 1 to 100,000.
    """
    parts = []
    for piece in text.split("+"):
        found = _PART.fullmatch(piece.strip())
        name = found["name"].strip() if found else ""
        count = found["count"] if found else None
        if not name or (count is not None and not (count.isascii() and count.isdigit())):
            raise ConfigError(
                f"{option} {text!r}: write NUMBERxMODEL, e.g. 4xH200 or 4xH200+8xL40S"
            )
        number = None if count is None else int(count[:9])
        if number is not None and not 1 <= number <= _MOST_GPUS:
            raise ConfigError(
                f"{option} {text!r}: {count} GPUs; a number from 1 to {_MOST_GPUS:,} is needed"
            )
        parts.append(Part(number, name))
    return tuple(parts)


def amount(option: str, text: str) -> float:
    """Parse an amount of money above 0; commas and underscores between digits are skipped.

    Raises:
        ConfigError: it is no such number.
    """
    try:
        found = float(text.replace(",", "").replace("_", ""))
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found > 0):
        raise ConfigError(f"{option} {text!r}: an amount above 0 is needed, e.g. 32000")
    return found


def money(prices: Mapping[str, str], budget: str | None, cluster: Cluster) -> Money:
    """Return prices and budget as given on the command line.

    Raises:
        ConfigError: a model is unknown, an amount is not above 0, or a budget has no prices.
    """
    found: dict[str, float] = {}
    for name, text in prices.items():
        model = _model("--price", name, cluster)
        found[model.name] = amount(f"--price {name}=", text)
    if budget is None:
        return Money(found)
    if not found:
        raise ConfigError("--budget needs the price of a GPU: --price H200=32000")
    return Money(found, amount("--budget", budget))


def _model(option: str, name: str, cluster: Cluster) -> gpu.GpuModel:
    try:
        return cluster.model_of(name)
    except ConfigError as exc:
        raise ConfigError(f"{option}: {exc}") from exc


class _Bought(NamedTuple):
    """GPUs of one model to buy."""

    model: gpu.GpuModel
    number: int
    name: str  # as written


def _bought(text: str, cluster: Cluster, money: Money) -> tuple[_Bought, ...]:
    """Return the GPUs that the text of --add asks for; () = the budget does not suffice.

    A model without a number is bought for what the budget leaves beside the other parts.

    Raises:
        ConfigError: the text is wrong, a model is unknown, or a price is missing.
    """
    parts = parse("--add", text)
    models = [_model("--add", part.name, cluster) for part in parts]
    open_ = [i for i, part in enumerate(parts) if part.number is None]
    if open_ and (money.budget is None or len(open_) > 1):
        raise ConfigError(
            f"--add {text!r}: say how many {parts[open_[-1]].name}, e.g. 4x{parts[open_[-1]].name}"
            + (", or give --budget and --price" if money.budget is None else "")
        )
    counts = [part.number or 0 for part in parts]
    if money.budget is not None:
        for model, part in zip(models, parts, strict=True):
            if model.name not in money.prices:
                raise ConfigError(f"--add {text!r}: --budget needs --price '{part.name}=…' too")
        each = [money.prices[model.name] for model in models]
        left = money.budget - sum(c * price for c, price in zip(counts, each, strict=True))
        for i in open_:
            counts[i] = min(int(left // each[i]), _MOST_GPUS)
        if left < 0 or any(counts[i] < 1 for i in open_):
            return ()
    merged: dict[str, _Bought] = {}
    for model, count, part in zip(models, counts, parts, strict=True):
        before = merged.get(model.name)
        merged[model.name] = _Bought(model, count + (before.number if before else 0), part.name)
    return tuple(merged.values())


class _Shape(NamedTuple):
    """What new nodes are like."""

    gpus: int  # of a node
    cores: float  # for each GPU
    memory_gb: float  # for each GPU
    network_gb_s: float
    features: tuple[str, ...]
    partitions: tuple[str, ...]


def _median(cluster: Cluster, figures: Sequence[float]) -> float:
    """Return the median over all GPUs of a figure of each group of nodes."""
    weights = [group.gpus * group.count for group in cluster.nodes]
    return float(np.median(np.repeat(figures, weights)))


def _shape(cluster: Cluster, partitions: Sequence[str]) -> _Shape:
    """Return what new nodes are like; partitions: () = all of the cluster's.

    Raises:
        ConfigError: there is no such partition.
    """
    nodes = cluster.nodes
    there = tuple(dict.fromkeys(name for group in nodes for name in group.partitions))
    for name in partitions:
        if name not in there:
            raise ConfigError(f"--partition {name!r}: no such partition; {suggestion(name, there)}")
    shared = set.intersection(*(set(group.features) for group in nodes))
    return _Shape(
        min(_LARGEST_NODE, max(group.gpus for group in nodes)),
        _median(cluster, [group.cores / group.gpus for group in nodes]),
        _median(cluster, [group.memory_gb / group.gpus for group in nodes]),
        _median(cluster, [group.network_gb_s for group in nodes]),
        tuple(name for name in nodes[0].features if name in shared),
        tuple(dict.fromkeys(partitions)) or there,
    )


def unused_name(wanted: str, groups: Sequence[NodeGroup]) -> str:
    """Return a name for a group of nodes that no group, node or numbered node has."""
    taken = {name for group in groups for name in (group.name, *group.node_names)}
    names = (wanted[:60], *(f"{wanted[:60]} #{i}" for i in range(2, len(taken) + 3)))
    return next(
        name
        for name in names
        if not any(one == name or one.startswith(f"{name}-") for one in taken)
    )


def _new_groups(cluster: Cluster, bought: _Bought, shape: _Shape) -> list[NodeGroup]:
    """Return full nodes, and one node with what is left."""
    model, types = bought.model, [""]
    types += [one.gpu_type for one in cluster.nodes if cluster.model_of(one.gpu) == model]
    groups: list[NodeGroup] = []
    full, rest = divmod(bought.number, shape.gpus)
    for count, gpus in ((full, shape.gpus), (1, rest)):
        if not count or not gpus:
            continue
        group = NodeGroup(
            name=unused_name(f"new {model.name}", [*cluster.nodes, *groups]),
            count=count,
            gpu=model.name,
            gpu_type=types[-1],
            gpus=gpus,
            cores=max(1, round(shape.cores * gpus)),
            memory_gb=max(1.0, round(shape.memory_gb * gpus, 1)),
            network_gb_s=shape.network_gb_s,
            partitions=shape.partitions,
            features=shape.features,
        )
        groups.append(group)
    return groups


def _some(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def _described(group: NodeGroup) -> str:
    nodes = "1 node" if group.count == 1 else f"{group.count:,} nodes"
    size = f"{group.gpus} GPUs, {group.cores} cores and {group.memory_gb:g} GB"
    return f"{nodes} of {size}"


def with_nodes(cluster: Cluster, nodes: Sequence[NodeGroup]) -> Cluster:
    """Return a cluster with other nodes.

    Raises:
        ConfigError: the nodes make no cluster.
    """
    try:
        return Cluster(name=cluster.name, about=cluster.about, gpu=cluster.gpu, nodes=tuple(nodes))
    except ValidationError as exc:
        raise ConfigError(one_line(exc)) from exc


def addition(
    text: str, cluster: Cluster, money: Money, partitions: Sequence[str] = ()
) -> Alternative | None:
    """Return the cluster with the GPUs that the text of --add asks for; None = above the budget.

    Args:
        text: such as "4xH200+8xL40S".
        cluster: that there is.
        money: prices, and the budget if there is one.
        partitions: of the new nodes; () = all.

    Raises:
        ConfigError: the text is wrong, a model or partition is unknown, or a price is missing.
    """
    bought, shape = _bought(text, cluster, money), _shape(cluster, partitions)
    if not bought:
        return None
    groups: list[NodeGroup] = []
    for one in bought:
        so_far = cluster.model_copy(update={"nodes": (*cluster.nodes, *groups)})
        groups += _new_groups(so_far, one, shape)
    name = "add " + "+".join(f"{one.number}x{one.name}" for one in bought)
    known = all(one.model.name in money.prices for one in bought)
    price = sum(one.number * money.prices[one.model.name] for one in bought) if known else None
    where = f"partition{'s' if len(shape.partitions) > 1 else ''} {_some(shape.partitions)}"
    notes = [
        f"{name}: {', '.join(f'{group.gpu} on {_described(group)}' for group in groups)} (cores "
        f"and memory by the cluster's median for a GPU), in the {where}, last in the order in "
        "which Slurm fills nodes"
    ]
    new = with_nodes(cluster, (*cluster.nodes, *groups))
    return Alternative(name, new, price, tuple(group.name for group in groups), tuple(notes))


def _matching(text: str, name: str, cluster: Cluster, nodes: Sequence[NodeGroup]) -> list[int]:
    """Return the groups of nodes whose GPUs are called so: by their Slurm type, else by model.

    Raises:
        ConfigError: there are none.
    """
    typed = [i for i, one in enumerate(nodes) if one.gpu_type.casefold() == name.casefold()]
    models = [cluster.model_of(one.gpu) for one in nodes]
    meant = gpu.among(name, models)
    found = typed or [i for i, model in enumerate(models) if model in meant]
    if not found:
        known = (n for one, m in zip(nodes, models, strict=True) for n in (one.gpu_type, m.name))
        there = dict.fromkeys(filter(None, known))
        raise ConfigError(
            f"--remove {text!r}: no node has GPUs called {name!r}; {suggestion(name, there)}"
        )
    return found


def _less(group: NodeGroup, nodes: int) -> tuple[NodeGroup | None, tuple[str, ...]]:
    """Take the last nodes of a group; return what stays (None = nothing), and their names."""
    gone = group.node_names[group.count - nodes :]
    if nodes == group.count:
        return None, gone
    hosts = group.hosts[: group.count - nodes]
    return group.model_copy(update={"count": group.count - nodes, "hosts": hosts}), gone


def _fewer_gpus(group: NodeGroup, gone: int, nodes: Sequence[NodeGroup]) -> list[NodeGroup]:
    """Take GPUs out of the last node of a group, whose cores and memory stay."""
    if group.count == 1:
        return [group.model_copy(update={"gpus": group.gpus - gone})]
    stays, names = _less(group, 1)
    assert stays is not None
    own = {"hosts": names if group.hosts else (), "count": 1, "gpus": group.gpus - gone}
    name = unused_name(f"{group.name} with fewer GPUs", nodes)
    return [stays, group.model_copy(update={**own, "name": name})]


def _removed(text: str, part: Part, cluster: Cluster) -> tuple[Cluster, str]:
    """Return the cluster without some GPUs, whole nodes first, and what was taken."""
    nodes: list[NodeGroup | None] = list(cluster.nodes)
    found = _matching(text, part.name, cluster, cluster.nodes)
    there = gpus_of(cluster.nodes[i] for i in found)
    left = there if part.number is None else part.number
    if left > there:
        raise ConfigError(f"--remove {text!r}: there are only {there:,} GPUs of {part.name}")
    taken: list[str] = []
    for i in reversed(found):
        group = cluster.nodes[i]
        whole = min(group.count, left // group.gpus)
        if whole:
            nodes[i], names = _less(group, whole)
            left -= whole * group.gpus
            model = cluster.model_of(group.gpu).name
            taken.append(f"{whole * group.gpus} {model} with their nodes ({_some(names)})")
    last = next((i for i in reversed(found) if nodes[i] is not None), -1)
    group_ = nodes[last]
    if left and group_ is not None:
        taken.append(
            f"{left} of the {group_.gpus} GPUs of {group_.node_names[-1]}, whose cores and memory "
            "stay"
        )
        nodes[last : last + 1] = _fewer_gpus(group_, left, cluster.nodes)
    rest = [group for group in nodes if group is not None]
    if not rest:
        raise ConfigError(f"--remove {text!r}: that is every GPU of the cluster")
    return with_nodes(cluster, rest), ", ".join(taken)


def removal(text: str, cluster: Cluster, money: Money) -> Alternative:
    """Return the cluster without the GPUs that the text of --remove names.

    text: such as "v100" (all of them) or "8xV100" (so many, whole nodes first).

    Raises:
        ConfigError: the text is wrong, or there are not as many.
    """
    parts, taken, rest = parse("--remove", text), [], cluster
    for part in parts:
        rest, what = _removed(text, part, rest)
        taken.append(what)
    name = "remove " + "+".join(map(str, parts))
    price = 0.0 if money.prices else None
    return Alternative(name, rest, price, (), (f"{name}: takes {', '.join(taken)}",))
