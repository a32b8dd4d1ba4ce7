"""Policies by name: every file of this folder with a `decide`, and any file of the user's own."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

import adlro.policies
from adlro.errors import PolicyError, suggestion
from adlro.model.state import Floats
from adlro.workloads.synthetic import Setting


class Policy(NamedTuple):
    """A policy made ready for a scenario."""

    name: str
    about: str
    decide: Callable[..., int]
    params: Floats
    memory: int


def _modules() -> dict[str, ModuleType]:
    folder = adlro.policies
    found = {}
    for info in pkgutil.iter_modules(folder.__path__):
        module = importlib.import_module(f"{folder.__name__}.{info.name}")
        if hasattr(module, "decide"):
            found[info.name.replace("_", "-")] = module
    return found


def names() -> list[str]:
    """Every policy that comes with the package."""
    return sorted(_modules())
