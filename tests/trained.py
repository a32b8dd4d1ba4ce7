"""Small learned policies for tests: a network, its origin, and files made to order."""

from __future__ import annotations

import datetime
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from adlro.errors import PolicyError
from adlro.nets.q_network import Network
from adlro.policies.loading import card, learned
from adlro.policies.loading.card import Budget, Figure, Provenance, Seeds
from adlro.telemetry import normalise

NAMES = ("drain", "seconds", "wait", "priority", "waited")  # not in the order of FEATURES
ORIGIN = Provenance(
    name="toy",
    about="five features, two small layers",
    objective="mean JCT",
    family="paper16, load 0.5 to 1.1",
    budget=Budget(cpu_s=90.0, labelled_states=1200, episodes=34),
    seeds=Seeds(first=1_000_000, last=1_000_500),
    selection=(
        Figure(scenario="paper16", load=0.8, mean_jct_pct=-6.5, ci95=(-7.25, -5.75)),
        Figure(
            scenario="paper16",
            load=0.95,
            mean_jct_pct=-8.0,
            ci95=(-9.5, -6.5),
            seeds=Seeds(first=500, last=599),
        ),
    ),
    date=datetime.date(2026, 11, 16),
)


def network(features=NAMES, units=(4, 3), dtype=np.float64, seed=0) -> Network:
    """Random weights."""
    rng, (first, second) = np.random.default_rng(seed), units
    shapes = ((2,), (len(features), first), (first,), (first, second), (second,), (second,))
    return Network(tuple(features), *(rng.normal(size=shape).astype(dtype) for shape in shapes))


def together(*networks, caution=0.0) -> Network:
    """One network whose members these are; features, residual and bounds are those of the first."""
    arrays = {
        name: np.concatenate([getattr(one, name) for one in networks], int(name == "first"))
        for name in ("first", "first_bias", "second", "second_bias", "last")
    }
    return networks[0]._replace(**arrays, caution=caution)


METERS = ("drain", "meters_heat", "meters_drive")
NORM = normalise.observe(
    normalise.empty(),
    ["T4", "V100", "T4"],
    np.array([[1, np.nan, np.nan, 0.5, degrees, 60.0, np.nan] for degrees in (40, 60, 999)]),
)  # three readings; 999 degrees are none


def with_meters(**wanted) -> Network:
    """One that reads telemetry, of which it has seen a little."""
    return network(METERS, **wanted)._replace(norm=NORM)


def saved(folder: Path, name: str = "toy.npz", **wanted) -> Path:
    """A policy as training leaves it; returns its .npz file."""
    path = folder / name
    learned.save(path, network(**wanted), ORIGIN)
    return path


def forged(folder: Path, weights: bytes, **changes) -> Path:
    """Files whose hashes are right, whatever they hold."""
    keys = {
        "version": "0.1.0",
        "features": list(NAMES),
        "hidden": [4, 3],
        "sha256_weights": hashlib.sha256(weights).hexdigest(),
    }
    path = folder / "forged.npz"
    path.write_bytes(weights)
    path.with_suffix(".json").write_text(card.write(ORIGIN, **(keys | changes)))
    return path


def arrays(**changes) -> dict[str, np.ndarray]:
    """The arrays of `network()` by name; those set to None are left out."""
    named = {name: getattr(network(), name) for name in Network._fields[1:7]}
    return {key: value for key, value in (named | changes).items() if value is not None}


def zipped(named: dict[str, np.ndarray], **options) -> bytes:
    """An .npz file of any arrays, objects included."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", **options) as archive:
        for name, value in named.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, value, version=(1, 0))
            archive.writestr(f"{name}.npy", entry.getvalue())
    return result.getvalue()


def refused(path: Path) -> str:
    """What `load` says of a policy: one line, with the suffix of its file in place of the name."""
    with pytest.raises(PolicyError) as caught:
        learned.load(path)
    said = str(caught.value)
    file, _, rest = said.partition(": ")
    assert Path(file) in (path.with_suffix(".npz"), path.with_suffix(".json"))
    assert "\n" not in said
    assert len(rest) < 300 + len(str(path))
    return f"{Path(file).suffix}: {rest}"
