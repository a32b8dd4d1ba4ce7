"""The stored state of a training by `adlro` or `adlro-preemptive`, as arrays and JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adlro.nets.q_network import Network
from adlro.telemetry import normalise
from adlro.train.evaluation import Evaluation
from adlro.train.evolve import Search
from adlro.train.folder import Arrays


class Candidate(NamedTuple):
    """A network that was the best so far when it was evaluated, with its evaluation."""

    network: Network
    evaluation: Evaluation
    source: str  # "round 1", "generation 40"


class Checkpoint(NamedTuple):
    """All that is needed to continue a training."""

    networks: tuple[Network, ...] = ()  # fitted, one a round
    scores: tuple[float, ...] = ()  # of their evaluations, lower is better
    fitting: Arrays | None = None  # state of the fit under way
    search: Search | None = None  # state of the tuning
    candidates: tuple[Candidate, ...] = ()  # the latest best ones, the best last
    stale: int = 0  # evaluations in the tuning since the last new best
    states: int = 0  # labelled, in complete rounds
    episodes: int = 0  # played


_WEIGHTS = Network._fields[:7]  # features and weights
_COUNTS = ("stale", "states", "episodes")


def _pack(prefix: str, network: Network) -> Arrays:
    named: Arrays = {name: np.asarray(getattr(network, name)) for name in _WEIGHTS}
    named["caution"] = np.array(network.caution)
    if network.bounds is not None:
        named["bounds"] = network.bounds
    if network.norm is not None:
        named |= normalise.to_arrays(network.norm)
    return {f"{prefix}/{name}": value for name, value in named.items()}


def part(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names start with `prefix/`, with that start cut off their names."""
    start = f"{prefix}/"
    return {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}


def _unpack(prefix: str, arrays: Arrays) -> Network:
    own = part(prefix, arrays)
    norm = normalise.from_arrays(own) if normalise.MODELS in own else None
    bounds, caution = own.get("bounds"), float(own["caution"].item())
    features, *weights = (own[name] for name in _WEIGHTS)
    residual, first, first_bias, second, second_bias, last = weights
    return Network(
        tuple(features.tolist()), residual, first, first_bias, second, second_bias, last,
        norm, bounds, caution,
    )  # fmt: skip


def pack(checkpoint: Checkpoint) -> tuple[Arrays, dict[str, Any]]:
    """Convert a checkpoint to arrays and to values that JSON can hold."""
    arrays: Arrays = {}
    for i, network in enumerate(checkpoint.networks):
        arrays |= _pack(f"network{i}", network)
    for i, candidate in enumerate(checkpoint.candidates):
        arrays |= _pack(f"candidate{i}", candidate.network)
    for name, value in (checkpoint.fitting or {}).items():
        arrays[f"fitting/{name}"] = value
    if checkpoint.search is not None:
        for name, value in checkpoint.search._asdict().items():
            arrays[f"search/{name}"] = np.asarray(value)
    return arrays, {
        "scores": checkpoint.scores,
        "candidates": [
            [candidate.source, candidate.evaluation.model_dump(mode="json")]
            for candidate in checkpoint.candidates
        ],
        **{key: getattr(checkpoint, key) for key in _COUNTS},
    }


def unpack(arrays: Arrays, meta: dict[str, Any]) -> Checkpoint:
    """Rebuild the checkpoint from the result of `pack`."""
    search = None
    if "search/at" in arrays:
        found: dict[str, Any] = {**part("search", arrays)}
        search = Search(**{**found, "generation": int(found["generation"].item())})
    return Checkpoint(
        tuple(_unpack(f"network{i}", arrays) for i in range(len(meta["scores"]))),
        tuple(meta["scores"]),
        part("fitting", arrays) or None,
        search,
        tuple(
            Candidate(
                _unpack(f"candidate{i}", arrays), Evaluation.model_validate(evaluation), source
            )
            for i, (source, evaluation) in enumerate(meta["candidates"])
        ),
        *(meta[key] for key in _COUNTS),
    )
