"""A learned policy on disk: weights in NAME.npz, its card in NAME.json; numbers, never code.

What a file holds is checked before it is used, and again by hash: see docs/learned.md.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import struct
import zipfile
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro import __version__
from adlro.errors import PolicyError, TelemetryError
from adlro.features.pair_kernel import PAIR_FEATURES
from adlro.features.start_kernel import FEATURES
from adlro.files import pack_arrays, write_bytes
from adlro.model.state import Floats
from adlro.nets import paper_network
from adlro.nets import q_network as networks
from adlro.nets.paper_network import PaperNetwork
from adlro.nets.q_network import Network
from adlro.policies.loading import telemetry_ranges
from adlro.policies.loading.card import AnyCard, Card, Provenance, parse, shortened, write
from adlro.telemetry import normalise

SUFFIXES = (".npz", ".json")
KNOWN = {"adlro": FEATURES, "adlro-preemptive": PAIR_FEATURES}  # features by policy

_MOST_MIB = {".npz": 64, ".json": 1}
_FIRST, _LAST, _LAST_BYTES = b"PK\x03\x04", b"PK\x05\x06", 22  # of a zip file with no comment
_TYPES = ("<f4", "<f8")
_COUNT_TYPES = ("<i8",)  # of what was learned about telemetry
_LARGEST = 1e6  # of a weight: so no sum of products overflows, and every choice has a cost
_MOST_READINGS = 2**48  # in one bin: so no sum of them overflows
_HEADER = re.compile(  # of a .npy file, version 1, as numpy writes it
    rb"\x93NUMPY\x01\x00..\{'descr': '([^']+)', 'fortran_order': False, "
    rb"'shape': (\([^()]*\)), \} *\n",
    re.DOTALL,
)
_BROKEN = (zipfile.BadZipFile, struct.error, EOFError, OSError, RuntimeError, ValueError)


class Learned(NamedTuple):
    """A learned policy, read and checked."""

    network: Network | PaperNetwork
    card: AnyCard

    @property
    def params(self) -> Floats:
        """The weights as the policy's decide is handed them."""
        if isinstance(self.network, PaperNetwork):
            return paper_network.flat(self.network)
        return networks.flat(self.network, KNOWN[self.card.policy])

    def params_for(self, cluster: telemetry_ranges.Cluster) -> Floats:
        """All that the policy's decide is handed on a cluster."""
        if isinstance(self.network, PaperNetwork):
            return self.params
        return telemetry_ranges.made_ready(self.network, cluster, KNOWN[self.card.policy])


_APART = ("features", "norm")  # of a network: no arrays


class _Files(NamedTuple):
    """Where the two files of a policy are."""

    weights: Path
    card: Path


def _files(path: Path) -> _Files:
    """Both files, by the name of either."""
    if path.suffix not in SUFFIXES:
        raise PolicyError(f"{path}: is not the name of a learned policy; it ends in .npz or .json")
    return _Files(*(path.with_suffix(suffix) for suffix in SUFFIXES))


def load(path: Path) -> Learned:
    """Read a policy by either of its files.

    Raises:
        PolicyError: a file is absent, or does not hold what it must; nothing of it is used then.
    """
    files = _files(path)
    partner = files.card if path == files.weights else files.weights
    content = {
        path: _content(path),
        partner: _content(partner, f"; {path} is of no use without it"),
    }
    return _checked(files, content[files.weights], content[files.card])


def shipped_file(name: str = "adlro") -> Path:
    """The weights of a policy that come with the package."""
    return Path(str(resources.files("adlro") / "policies" / "shipped" / f"{name}.npz"))


@cache
def shipped(name: str = "adlro") -> Learned:
    """A learned policy that comes with the package; read once a process."""
    return load(shipped_file(name))


def _told(network: Network | PaperNetwork) -> dict[str, object]:
    """What a card says of a network."""
    if isinstance(network, PaperNetwork):
        told = {"channels": network.channels, "hidden": list(network.hidden)}
        return {"policy": "paper-dqn", **network.sizes._asdict(), **told}
    hidden = [len(network.first_bias), len(network.second_bias)]
    is_of_pairs = bool(network.features) and network.features[0] in PAIR_FEATURES
    policy = "adlro-preemptive" if is_of_pairs else "adlro"
    told = {"policy": policy, "features": list(network.features), "hidden": hidden}
    return told if network.norm is None else told | {"telemetry": list(network.norm.models)}


def _arrays(network: Network | PaperNetwork) -> dict[str, NDArray[Any]]:
    if isinstance(network, PaperNetwork):
        return network.arrays
    named: dict[str, NDArray[Any]] = {
        name: value for name, value in network._asdict().items() if name not in _APART
    }
    if network.norm is not None:
        named |= normalise.to_arrays(network.norm)
        del named[normalise.MODELS]  # the card names them
    return named


def save(path: Path, network: Network | PaperNetwork, origin: Provenance) -> AnyCard:
    """Write both files, or neither; the same weights and origin make the same bytes.

    Args:
        path: of either file.
        network: of float32 or float64, which is kept; of at least one unit a layer.
        origin: what is told of it. The rest of the card follows from the network.

    Returns:
        The card as it was written.

    Raises:
        PolicyError: the network is none that `load` would take.
        OutputError: the files cannot be written.
    """
    files = _files(path)
    weights = pack_arrays(_arrays(network), zipfile.ZIP_STORED)
    told, digest = _told(network), hashlib.sha256(weights).hexdigest()
    text = write(origin, version=__version__, **told, sha256_weights=digest).encode()
    card = _checked(files, weights, text).card
    _replace(files, weights, text)
    return card


def _content(path: Path, loss: str = "") -> bytes:
    """All of a file, but never more than it may have."""
    most = _MOST_MIB[path.suffix]
    try:
        if not path.is_file():
            raise PolicyError(f"{path}: there is no such file{loss}")
        with path.open("rb") as file:
            data = file.read(most * 2**20 + 1)
    except OSError as exc:
        raise PolicyError(f"{path}: cannot be read: {exc.strerror}") from exc
    if len(data) > most * 2**20:
        raise PolicyError(
            f"{path}: has more than {most} MiB, the most that is read; is it the right file?"
        )
    return data


def _checked(files: _Files, weights: bytes, text: bytes) -> Learned:
    """What two files hold, if it is all as it must be."""
    card = parse(text, files.card)
    if isinstance(card, Card):
        _refuse_unknown(card, files.card)
    if not (weights.startswith(_FIRST) and weights[-_LAST_BYTES:].startswith(_LAST)):
        raise PolicyError(f"{files.weights}: is not an .npz file, or is cut short; take it anew")
    if hashlib.sha256(weights).hexdigest() != card.sha256_weights:
        raise PolicyError(
            f"{files.weights}: is not what {files.card} describes (sha256 differs): changed, or "
            "mixed up; take both files anew from one place"
        )
    try:
        arrays = _unpacked(weights, card.shapes)
    except _ContentError as exc:
        raise PolicyError(f"{files.weights}: {exc}; train anew, or name another file") from exc
    if isinstance(card, Card):
        norm = None if card.telemetry is None else _norm(card.telemetry, arrays, files)
        return Learned(Network(card.features, **arrays, norm=norm), card)
    return Learned(PaperNetwork(card.sizes, card.channels, card.hidden, arrays), card)


def _refuse_unknown(card: Card, path: Path) -> None:
    for name in card.features:
        if name not in KNOWN[card.policy]:
            raise PolicyError(
                f"{path}: unknown feature {shortened(name)}; adlro {card.version} wrote it: "
                f"update yours ({__version__}), or train anew"
            )


def _norm(
    models: tuple[str, ...], arrays: dict[str, NDArray[Any]], files: _Files
) -> normalise.Norm:
    """What was learned about telemetry; its arrays are taken out."""
    state = {name: arrays.pop(name) for name in normalise.COUNTS}
    try:
        return normalise.from_arrays({normalise.MODELS: np.array(models, "U"), **state})
    except TelemetryError as exc:
        raise PolicyError(f"{files.card}: telemetry: {exc}") from exc


class _ContentError(Exception):
    """What is wrong inside an .npz file, in a phrase."""


def _unpacked(weights: bytes, shapes: dict[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(io.BytesIO(weights)) as archive:
            _refuse_others(archive.infolist(), shapes, len(weights))
            data = {name: archive.read(f"{name}.npy") for name in shapes}
    except _BROKEN as exc:
        raise _ContentError("its arrays cannot be read") from exc
    return {name: _array(name, data[name], shape) for name, shape in shapes.items()}


def _refuse_others(
    entries: list[zipfile.ZipInfo], shapes: dict[str, tuple[int, ...]], most: int
) -> None:
    """Raise unless the entries are the arrays, once each, and no larger than `most` bytes."""
    found, wanted = [entry.filename for entry in entries], [f"{name}.npy" for name in shapes]
    for name in wanted:
        if found.count(name) != 1:
            raise _ContentError(f"{name!r} is in it {found.count(name)} times, not once")
    for name in found:
        if name not in wanted:
            raise _ContentError(f"{shortened(name)} is in it and no array of a policy")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise _ContentError("its arrays are compressed, which adlro never does")
    if sum(entry.file_size for entry in entries) > most:
        raise _ContentError("its arrays claim to be larger than the file")


def _array(name: str, data: bytes, shape: tuple[int, ...]) -> NDArray[Any]:
    """One array from the bytes of a .npy file. Nothing in it is evaluated."""
    is_count = name in normalise.COUNTS
    header = _HEADER.match(data)
    if header is None:
        raise _ContentError(f"{name!r} is not a plain array")
    kind, said = (shortened(part.decode("latin-1"))[1:-1] for part in header.groups())
    if kind == "|O":
        raise _ContentError(f"{name!r} holds Python objects, which are never loaded")
    if kind not in (_COUNT_TYPES if is_count else _TYPES):
        wanted = "int64 (<i8)" if is_count else "float32 or float64 (<f4, <f8)"
        raise _ContentError(f"{name!r} is of type {kind}, not {wanted}")
    if said != str(shape):
        raise _ContentError(f"{name!r} has shape {said}; by the card it is {shape}")
    if len(data) - header.end() != math.prod(shape) * np.dtype(kind).itemsize:
        raise _ContentError(f"{name!r} is longer or shorter than its shape")
    array = np.frombuffer(data, kind, offset=header.end()).reshape(shape)
    if is_count:
        if not ((array >= 0) & (array <= _MOST_READINGS)).all():
            raise _ContentError(f"{name!r} holds a count below 0 or beyond {_MOST_READINGS:,}")
        return array.astype(np.int64)
    if not (np.abs(array) <= _LARGEST).all():
        raise _ContentError(f"{name!r} holds nan, inf or a number beyond ±{_LARGEST:g}")
    return array.astype(np.float64)


def _replace(files: _Files, weights: bytes, text: bytes) -> None:
    """Put both files in place; if the second cannot be, the first is as it was before."""
    former = files.weights.read_bytes() if files.weights.is_file() else None
    write_bytes(files.weights, weights)
    try:
        write_bytes(files.card, text)
    except BaseException:
        if former is None:
            files.weights.unlink()
        else:
            write_bytes(files.weights, former)
        raise
