"""Policies by name: every file of this folder with a `decide`, and any file of the user's own."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

import adlro.policies
from adlro.errors import PolicyError, suggestion
from adlro.model.state import Floats
from adlro.policies import own
from adlro.workloads.synthetic import Setting


class Policy(NamedTuple):
    """A policy made ready for a scenario; what sim.simulator.Player asks for."""

    name: str
    decide: Callable[..., int]
    params: Floats
    memory: int
    file: Path | None  # of a user's own policy; None = ours
    line: int  # where its decide stands in that file
    is_preemptive: bool  # as its file says: PREEMPTIVE = True


def _module(name: str) -> ModuleType | None:
    full = f"{adlro.policies.__name__}.{name.replace('-', '_')}"
    if not re.fullmatch(r"[a-z0-9-]+", name) or importlib.util.find_spec(full) is None:
        return None
    module = importlib.import_module(full)
    return module if hasattr(module, "decide") else None


def names() -> list[str]:
    """Every policy that comes with the package."""
    files = (info.name.replace("_", "-") for info in pkgutil.iter_modules(adlro.policies.__path__))
    return sorted(name for name in files if _module(name))


def about(name: str) -> str:
    """The first sentence of a policy's docstring."""
    module = _module(name)
    text = " ".join(((module and module.__doc__) or "").split())
    return text.split(". ")[0].rstrip(".")


def _find(name: str) -> tuple[str, ModuleType, Path | None]:
    """A policy's short name, its module, and its file if it is the user's own."""
    if "/" in name or name.endswith(".py"):
        path = Path(name)
        return path.stem, own.load(path), path
    module = _module(name)
    if module is None:
        raise PolicyError(f"unknown policy {name!r}; {suggestion(name, names())}")
    return name, module, None


def _reason(module: ModuleType, setting: Setting) -> str | None:
    reason: str | None = module.refuses(setting) if hasattr(module, "refuses") else None
    return reason


def refusal(name: str, setting: Setting) -> str | None:
    """Why a policy cannot run a scenario, in a phrase; None = it can.

    Raises:
        PolicyError: there is no such policy, or the user's file is wrong.
    """
    _, module, file = _find(name)
    with own.mistakes(file):
        return _reason(module, setting)


def _is_preemptive(module: ModuleType, name: str) -> bool:
    said = getattr(module, "PREEMPTIVE", False)
    if not isinstance(said, bool):
        raise PolicyError(f"policy {name}: PREEMPTIVE must be True or False, not {said!r}")
    return said


def load(name: str, setting: Setting) -> Policy:
    """A policy by name, or from the user's file (anything with a slash or .py), made ready.

    Raises:
        PolicyError: there is no such policy, it cannot run this scenario, or the user's file is
            wrong.
    """
    name, module, file = _find(name)
    with own.mistakes(file):
        reason = _reason(module, setting)
        if reason is not None:
            raise PolicyError(f"policy {name} cannot run {setting.scenario.name}: {reason}")
        params = module.params(setting) if hasattr(module, "params") else np.zeros(0)
        memory = module.memory(setting) if hasattr(module, "memory") else 0
        ready = np.ascontiguousarray(params, dtype=np.float64).ravel()
        line, preempts = own.first_line(module.decide), _is_preemptive(module, name)
        return Policy(name, module.decide, ready, int(memory), file, line, preempts)
