"""The files of a learned policy: weights in NAME.npz and a card in NAME.json, without any code.

The content of both files, including their hashes, is checked before use: see docs/learned.md.
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
_FIRST, _LAST, _LAST_BYTES = b"PK\x03\x04", b"PK\x05\x06", 22  # of a zip file without comment
_TYPES = ("<f4", "<f8")
_COUNT_TYPES = ("<i8",)  # of the telemetry histograms
_LARGEST = 1e6  # of a weight, so that no sum of products overflows
_MOST_READINGS = 2**48  # in one bin, so that no sum of them overflows
_HEADER = re.compile(  # of a .npy file, version 1, as numpy writes it
    rb"\x93NUMPY\x01\x00..\{'descr': '([^']+)', 'fortran_order': False, "
    rb"'shape': (\([^()]*\)), \} *\n",
    re.DOTALL,
)
_BROKEN = (zipfile.BadZipFile, struct.error, EOFError, OSError, RuntimeError, ValueError)


class Learned(NamedTuple):
    """A learned policy whose files were read and checked: its network and its card."""

    network: Network | PaperNetwork
    card: AnyCard

    @property
    def params(self) -> Floats:
        """The weights as the params of the policy's decide, without the bounds of telemetry."""
        if isinstance(self.network, PaperNetwork):
            return paper_network.flat(self.network)
        return networks.flat(self.network, KNOWN[self.card.policy])

    def params_for(self, cluster: telemetry_ranges.Cluster) -> Floats:
        """Return the params of the policy's decide on a cluster.

        They include the bounds of telemetry readings if the network reads telemetry.
        """
        if isinstance(self.network, PaperNetwork):
            return self.params
        return telemetry_ranges.params_of(self.network, cluster, KNOWN[self.card.policy])


_NO_ARRAYS = ("features", "caution")  # fields of a network


class _Files(NamedTuple):
    """The paths of the two files of a learned policy."""

    weights: Path
    card: Path


def _files(path: Path) -> _Files:
    """Return the paths of both files of a learned policy, given either of them."""
    if path.suffix not in SUFFIXES:
        raise PolicyError(f"{path}: is not the name of a learned policy; it ends in .npz or .json")
    return _Files(*(path.with_suffix(suffix) for suffix in SUFFIXES))


def load(path: Path) -> Learned:
    """Read and check a learned policy, given the path of either of its two files.

    Raises:
        PolicyError: a file is missing or invalid; in that case nothing of it is used.
    """
    files = _files(path)
    partner = files.card if path == files.weights else files.weights
    content = {
        path: _content(path),
        partner: _content(partner, f"; {path} is of no use without it"),
    }
    return _checked(files, content[files.weights], content[files.card])


def shipped_file(name: str = "adlro") -> Path:
    """Return the path of the weights of a learned policy of the package."""
    return Path(str(resources.files("adlro") / "policies" / "shipped" / f"{name}.npz"))


@cache
def shipped(name: str = "adlro") -> Learned:
    """Return a learned policy of the package; its files are read once per process."""
    return load(shipped_file(name))


def _described(network: Network | PaperNetwork) -> dict[str, object]:
    """Return the part of a card that describes the network: policy, features and sizes."""
    if isinstance(network, PaperNetwork):
        layers = {"channels": network.channels, "hidden": list(network.hidden)}
        return {"policy": "paper-dqn", **network.sizes._asdict(), **layers}
    hidden = list(network.hidden)
    is_of_pairs = bool(network.features) and network.features[0] in PAIR_FEATURES
    policy = "adlro-preemptive" if is_of_pairs else "adlro"
    features = list(network.features)
    keys: dict[str, object] = {"policy": policy, "features": features, "hidden": hidden}
    if network.members > 1 or network.caution > 0.0:
        keys |= {"members": network.members, "caution": network.caution}
    if network.bounds is not None:
        keys["clamped"] = True
    return keys if network.norm is None else keys | {"telemetry": list(network.norm.models)}


def _arrays(network: Network | PaperNetwork) -> dict[str, NDArray[Any]]:
    if isinstance(network, PaperNetwork):
        return network.arrays
    named: dict[str, NDArray[Any]] = {
        name: value
        for name, value in network._asdict().items()
        if name not in _NO_ARRAYS and value is not None
    }
    if network.norm is not None:
        del named["norm"]
        named |= normalise.to_arrays(network.norm)
        del named[normalise.MODELS]  # the card names them
    return named


def save(path: Path, network: Network | PaperNetwork, origin: Provenance) -> AnyCard:
    """Write both files of a learned policy, or neither.

    The same weights and the same origin give the same bytes.

    Args:
        path: the path of either file.
        network: weights of float32 or float64, written as they are; at least one unit per layer.
        origin: the provenance of the network. The rest of the card follows from the network.

    Returns:
        The card as it was written.

    Raises:
        PolicyError: `load` would refuse the network.
        OutputError: the files cannot be written.
    """
    files = _files(path)
    weights = pack_arrays(_arrays(network), zipfile.ZIP_STORED)
    keys, digest = _described(network), hashlib.sha256(weights).hexdigest()
    text = write(origin, version=__version__, **keys, sha256_weights=digest).encode()
    card = _checked(files, weights, text).card
    _replace(files, weights, text)
    return card


def _content(path: Path, loss: str = "") -> bytes:
    """Return the content of a file, which may have at most _MOST_MIB.

    loss: appended to the message if the file is missing.
    """
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
    """Return the policy in the contents of its two files, after all checks."""
    card = parse(text, files.card)
    if isinstance(card, Card):
        _refuse_unknown(card, files.card)
    if not (weights.startswith(_FIRST) and weights[-_LAST_BYTES:].startswith(_LAST)):
        raise PolicyError(f"{files.weights}: is not an .npz file, or is cut short; take it anew")
    if hashlib.sha256(weights).hexdigest() != card.sha256_weights:
        raise PolicyError(
            f"{files.weights}: is not what {files.card} describes (sha256 differs): changed, or "
            "mixed up; copy both files again from one place"
        )
    try:
        arrays = _unpacked(weights, card.shapes)
    except _ContentError as exc:
        raise PolicyError(f"{files.weights}: {exc}; train again, or name another file") from exc
    if isinstance(card, Card):
        norm = None if card.telemetry is None else _norm(card.telemetry, arrays, files)
        network = Network(card.features, **arrays, norm=norm, caution=card.caution)
        return Learned(network, card)
    return Learned(PaperNetwork(card.sizes, card.channels, card.hidden, arrays), card)


def _refuse_unknown(card: Card, path: Path) -> None:
    for name in card.features:
        if name not in KNOWN[card.policy]:
            raise PolicyError(
                f"{path}: unknown feature {shortened(name)}; adlro {card.version} wrote it: "
                f"update yours ({__version__}), or train again"
            )


def _norm(
    models: tuple[str, ...], arrays: dict[str, NDArray[Any]], files: _Files
) -> normalise.Norm:
    """Return the telemetry histograms of the GPU models; moves their arrays out of `arrays`."""
    state = {name: arrays.pop(name) for name in normalise.COUNTS}
    try:
        return normalise.from_arrays({normalise.MODELS: np.array(models, "U"), **state})
    except TelemetryError as exc:
        raise PolicyError(f"{files.card}: telemetry: {exc}") from exc


class _ContentError(Exception):
    """Raised for invalid content of an .npz file; the message is a phrase."""


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
    """Raise unless the zip entries are exactly the expected arrays, `most` bytes or less in all."""
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
    """Return the array in the bytes of a .npy file, after checks; nothing in it is evaluated."""
    is_count = name in normalise.COUNTS
    header = _HEADER.match(data)
    if header is None:
        raise _ContentError(f"{name!r} is not a plain array")
    kind, written = (shortened(part.decode("latin-1"))[1:-1] for part in header.groups())
    if kind == "|O":
        raise _ContentError(f"{name!r} holds Python objects, which are never loaded")
    if kind not in (_COUNT_TYPES if is_count else _TYPES):
        wanted = "int64 (<i8)" if is_count else "float32 or float64 (<f4, <f8)"
        raise _ContentError(f"{name!r} is of type {kind}, not {wanted}")
    if written != str(shape):
        raise _ContentError(f"{name!r} has shape {written}; by the card it is {shape}")
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
    """Write both files; if writing the card fails, restore the former weights file."""
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
