"""Where a training stands: all of it goes into one checkpoint file and comes back the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adlro.nets.q_network import Network
from adlro.telemetry import normalise
from adlro.train.evolve import Search
from adlro.train.selection import Look
from adlro.train.store import Arrays


class Kept(NamedTuple):
    """A network that was the best when it was looked at."""

    network: Network
    look: Look
    source: str  # "round 1", "generation 40"


class Standing(NamedTuple):
    """After so much of a training."""

    networks: tuple[Network, ...] = ()  # fitted, one a round
    scores: tuple[float, ...] = ()  # their looks', lower is better
    fitting: Arrays | None = None  # the fit under way
    search: Search | None = None  # the tuning
    kept: tuple[Kept, ...] = ()  # the last few best, the best last
    stale: int = 0  # looks in the tuning since the best
    states: int = 0  # labelled, in rounds that are complete
    episodes: int = 0  # played
    cpu_s: float = 0.0


_WEIGHTS = Network._fields[:-1]  # all but what was learned about telemetry


def _pack(prefix: str, network: Network) -> Arrays:
    named: Arrays = {name: np.asarray(getattr(network, name)) for name in _WEIGHTS}
    if network.norm is not None:
        named |= normalise.to_arrays(network.norm)
    return {f"{prefix}/{name}": value for name, value in named.items()}


def _unpack(prefix: str, arrays: Arrays) -> Network:
    features, *weights = (arrays[f"{prefix}/{name}"] for name in _WEIGHTS)
    own = {
        name.removeprefix(f"{prefix}/"): value
        for name, value in arrays.items()
        if name.startswith(f"{prefix}/")
    }
    norm = normalise.from_arrays(own) if normalise.MODELS in own else None
    return Network(tuple(features.tolist()), *weights)._replace(norm=norm)


def pack(standing: Standing) -> tuple[Arrays, dict[str, Any]]:
    """As arrays and JSON."""
    arrays: Arrays = {}
    for i, network in enumerate(standing.networks):
        arrays |= _pack(f"network{i}", network)
    for i, kept in enumerate(standing.kept):
        arrays |= _pack(f"kept{i}", kept.network)
    for name, value in (standing.fitting or {}).items():
        arrays[f"fitting/{name}"] = value
    if standing.search is not None:
        for name, value in standing.search._asdict().items():
            arrays[f"search/{name}"] = np.asarray(value)
    return arrays, {
        "scores": standing.scores,
        "kept": [[kept.source, kept.look.model_dump(mode="json")] for kept in standing.kept],
        **{key: getattr(standing, key) for key in ("stale", "states", "episodes", "cpu_s")},
    }


def unpack(arrays: Arrays, meta: dict[str, Any]) -> Standing:
    """The reverse of `pack`."""
    fitting = {
        name.removeprefix("fitting/"): value
        for name, value in arrays.items()
        if name.startswith("fitting/")
    }
    search = None
    if "search/at" in arrays:
        start, scale, at, mean, square, average, generation = (
            arrays[f"search/{name}"] for name in Search._fields
        )
        search = Search(start, scale, at, mean, square, average, int(generation))
    return Standing(
        tuple(_unpack(f"network{i}", arrays) for i in range(len(meta["scores"]))),
        tuple(meta["scores"]),
        fitting or None,
        search,
        tuple(
            Kept(_unpack(f"kept{i}", arrays), Look.model_validate(look), source)
            for i, (source, look) in enumerate(meta["kept"])
        ),
        *(meta[key] for key in ("stale", "states", "episodes", "cpu_s")),
    )
