"""Finds the GPU model that a name means, as people, Slurm, nvidia-smi and rocm-smi write it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from adlro.errors import ConfigError
from adlro.model.gpu_catalogue import GpuModel, catalogue, models

_BRANDS = ("nvidia", "amd", "intel", "habana", "tesla", "geforce", "radeon", "instinct")
_MIG = re.compile(
    r"(?P<parent>.*?)[\W_]*(?:mig)?[\W_]*(?:\dc[\W_])?(?P<compute>[1-8])g[\W_]?(?P<memory>\d+)gb"
    r"(?:[\W_]*me(?:\.all)?|[\W_]*gfx)?"
)
_UNNAMED = frozenset({"", "gpu"})  # in front of a MIG profile: no model
# Where a node's feature tells the memory of its GPUs: 80g, a100_40gb, gpu80, gpu_mem:32, v100-16.
_FEATURE_GB = re.compile(
    r"(?<![\d.])(\d+)gi?b?(?![a-z0-9])|(?:gpu|mem|vram|hbm)[a-z_:=-]*(\d+)|[avhpl]\d+s?[_-](\d+)"
)
_FORMS = ("sxm", "pcie", "nvl")
_NVLINK = re.compile(r"nvl(?:ink|\d)")  # of a node: not the form NVL of a GPU


class Identified(NamedTuple):
    """The model that a name means, and the others that it may mean just as well."""

    model: GpuModel
    others: tuple[GpuModel, ...]  # () = there is no doubt


@lru_cache(maxsize=4096)
def _fold(name: str) -> str:
    """Return a name for comparison: lower case, without punctuation and brand; 80g = 80gb."""
    letters = "".join(filter(str.isalnum, name.casefold()))
    for brand in _BRANDS:
        if letters != brand:
            letters = letters.removeprefix(brand)
    return re.sub(r"(?<=\d)g(ib)?$", "gb", letters)


def _names(gpu: GpuModel) -> Iterable[str]:
    return map(_fold, (gpu.name, *gpu.aliases))


@cache
def _index() -> dict[str, tuple[GpuModel, ...]]:
    """Return the models that each folded name may mean; the first is the default."""
    index = {name: (gpu,) for gpu in models() for name in _names(gpu)}
    by_name = {gpu.name: gpu for gpu in models()}
    shared = {
        _fold(entry.name): tuple(by_name[name] for name in entry.models)
        for entry in catalogue().shared
    }
    return index | shared


@cache
def _slices() -> dict[str, tuple[GpuModel, ...]]:
    """Return the slices with each MIG profile, such as "1g.10gb"."""
    found: dict[str, list[GpuModel]] = {}
    for gpu in models():
        if gpu.parent is not None:
            found.setdefault(gpu.name.rpartition(" ")[2], []).append(gpu)
    return {profile: tuple(slices) for profile, slices in found.items()}


@cache
def _dies() -> dict[str, GpuModel]:
    """Return the model of one die of each board that has several."""
    return {gpu.board: gpu for gpu in models() if gpu.board is not None}


@lru_cache(maxsize=4096)
def meant_by(name: str) -> tuple[GpuModel, ...]:
    """Return every model of the catalogue that a name may mean, the default first; () = none.

    The name of a board may also mean one of its dies. A MIG profile may come with its GPU
    ("a100_3g.20gb") or alone ("1g.10gb").
    """
    found = _index().get(_fold(name), ())
    found += tuple(_dies()[gpu.name] for gpu in found if gpu.name in _dies())
    profile = None if found else _MIG.fullmatch(name.casefold().strip())
    if profile is None:
        return found
    slices = _slices().get(f"{profile['compute']}g.{profile['memory']}gb", ())
    if _fold(profile["parent"]) in _UNNAMED:
        return slices
    parents = {gpu.name for gpu in _index().get(_fold(profile["parent"]), ())}
    return tuple(part for part in slices if part.parent in parents)


def _lookup(name: str, own: Iterable[GpuModel]) -> GpuModel | None:
    for gpu in own:
        if _fold(name) in _names(gpu):
            return gpu
    return next(iter(meant_by(name)), None)


def is_name_of(name: str, gpu: GpuModel) -> bool:
    """Return whether a name means this model, of the catalogue or of a cluster file."""
    return _lookup(name, (gpu,)) == gpu


def among(name: str, here: Sequence[GpuModel]) -> tuple[GpuModel, ...]:
    """Return those models of a cluster, `here`, that a job which asks for `name` may run on.

    A name shared by several models means all of them: Slurm compares names only.
    """
    meant = meant_by(name)
    return tuple(gpu for gpu in here if gpu in meant or _fold(name) in _names(gpu))


def find(name: str, own: Sequence[GpuModel] = ()) -> GpuModel:
    """Find a model by name or alias; ignores case, punctuation and brands such as "NVIDIA".

    Args:
        name: as people or tools write it. A name shared by several models means the default one.
        own: models that a cluster file defines; they are looked at first.

    Raises:
        ConfigError: there is no such model; the message names close ones.
    """
    gpu = _lookup(name, own)
    if gpu is None:
        raise ConfigError(f"unknown GPU model {name!r}: {_suggestion(name, own)}")
    return gpu


def _suggestion(name: str, own: Sequence[GpuModel]) -> str:
    index = {key: found[0] for key, found in _index().items()}
    index |= {key: gpu for gpu in own for key in _names(gpu)}
    near = difflib.get_close_matches(_fold(name), index, n=len(index), cutoff=0.5)
    names = list(dict.fromkeys(repr(index[key].name) for key in near))[:3]
    if not names:
        return f"none of the {len(models())} models in the catalogue is spelt like that"
    return f"did you mean {' or '.join(names)}?"


def identify(name: str, features: Iterable[str] = (), own: Sequence[GpuModel] = ()) -> Identified:
    """Find the model of a node's GPUs by their name in Slurm and the features of the node.

    Slurm counts dies: the name of a board with several means one die. Features such as "80g",
    "a100_40gb", "gpu32", "sxm4" or "h100" decide between models that share a name.

    Args:
        name: type of the node's GRES, such as "a100" or "1g.10gb".
        features: of the node.
        own: models that a cluster file defines.

    Raises:
        ConfigError: there is no such model; the message names close ones.
    """
    first = find(name, own)
    if first in own:
        return Identified(first, ())
    found = tuple(dict.fromkeys(_dies().get(gpu.name, gpu) for gpu in meant_by(name)))
    words = [feature.casefold() for feature in features]
    scores = [sum(_evidence(word, gpu) for word in words) for gpu in found]
    best = [gpu for gpu, score in zip(found, scores, strict=True) if score == max(scores)]
    return Identified(best[0], tuple(best[1:]))


def _evidence(feature: str, gpu: GpuModel) -> int:
    """Return how strongly a node's feature speaks for a model: 0 = not at all."""
    whole = gpu if gpu.parent is None else find(gpu.parent)
    form = next((form for form in _FORMS if form in whole.name.casefold()), "sxm")
    sizes = {float(size) for found in _FEATURE_GB.findall(feature) for size in found if size}
    return (
        8 * (whole in meant_by(feature))
        + 4 * (whole.memory_gb in sizes)
        + 2 * (form in _NVLINK.sub("", feature))
        + (whole.architecture or "-").casefold().startswith(feature)
    )
