"""Find and load policies by name: the files of this folder with a `decide`, or a user's file.

A user's file is Python code with a `decide`, or the weights of a network from `adlro train`. Any
name may be followed by `+lookahead` (see lookahead.py).
"""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import adlro.policies
from adlro.errors import PolicyError, printable, suggestion
from adlro.model.context import Context, ContextCopy, copy_context
from adlro.model.state import Floats
from adlro.policies import lookahead
from adlro.policies.loading import learned, user_file
from adlro.policies.loading.feature_ranges import FeatureRanges
from adlro.sim.simulator import is_compiled

LEARNED = "adlro"  # the default policy
_SHIPPED = (LEARNED, "adlro-preemptive", "paper-dqn")  # decide by a network


class Policy(NamedTuple):
    """A policy loaded for one cluster: its decide with parameters, and where its code is.

    It has the attributes of sim.simulator.Player.
    """

    name: str
    decide: Callable[..., int]
    params: Floats
    memory: int
    file: Path | None  # of the user's code; None = a policy of the package
    line: int  # of its decide in that file
    is_preemptive: bool  # its file has PREEMPTIVE = True
    ranges: FeatureRanges | None = None  # of a network's features in training; None = not known


def _module(name: str) -> ModuleType | None:
    full = f"{adlro.policies.__name__}.{name.replace('-', '_')}"
    if not re.fullmatch(r"[a-z0-9-]+", name) or importlib.util.find_spec(full) is None:
        return None
    module = importlib.import_module(full)
    return module if hasattr(module, "decide") else None


def names() -> list[str]:
    """Return the names of all policies of the package, sorted."""
    files = (info.name.replace("_", "-") for info in pkgutil.iter_modules(adlro.policies.__path__))
    return sorted(name for name in files if _module(name))


def about(name: str) -> str:
    """Return the first sentence of a policy's docstring, without its full stop."""
    module = _module(name)
    text = " ".join(((module and module.__doc__) or "").split())
    return text.split(". ")[0].rstrip(".")


class _Found(NamedTuple):
    """A policy before it is loaded for a cluster: its module, and the user's file or network."""

    name: str
    module: ModuleType
    file: Path | None  # of the user's code
    learned: learned.Learned | None  # the user's network


def weights_file(name: str) -> Path | None:
    """Return the path of a learned policy's file, or None if the policy is not learned.

    Args:
        name: the name of a policy of the package, or the path of its .npz or .json file, which is
            returned as it is.
    """
    if name.endswith(learned.SUFFIXES):
        return Path(name)
    return learned.shipped_file(name) if name in _SHIPPED else None


def _find(name: str) -> _Found:
    if name.endswith(learned.SUFFIXES):
        path = Path(name)
        policy = learned.load(path)
        return _Found(printable(path.stem), _known(policy.card.policy), None, policy)
    if "/" in name or name.endswith(".py"):
        path = Path(name)
        return _Found(printable(path.stem), user_file.load(path), path, None)
    return _Found(name, _known(name), None, None)


def _known(name: str) -> ModuleType:
    module = _module(name)
    if module is None:
        raise PolicyError(f"unknown policy {name!r}; {suggestion(name, names())}")
    return module


class Facts(NamedTuple):
    """What `adlro policy show` prints of a policy, taken from its file."""

    name: str
    text: str  # its docstring
    is_compiled: bool
    is_preemptive: bool
    params: str | None  # docstring of its parameters; None = it has none
    memory: str | None  # docstring of its memory
    refuses: str | None  # docstring of the clusters it refuses


def facts(name: str) -> Facts:
    """Return the facts of a policy by its name; no scenario is needed.

    Raises:
        PolicyError: there is no such policy, or the user's file is wrong.
    """
    name, looks_ahead = lookahead.split(name)
    found = _find(name)
    module = found.module
    docs = {
        part: inspect.getdoc(getattr(module, part)) or "yes" if hasattr(module, part) else None
        for part in ("params", "memory", "refuses")
    }
    compiled, preempts = is_compiled(module.decide), _is_preemptive(module, found.name)
    facts = Facts(found.name, inspect.getdoc(module) or "", compiled, preempts, **docs)
    return _ahead(facts, module) if looks_ahead else facts


def _ahead(base: Facts, module: ModuleType) -> Facts:
    """Return the facts of a policy with `+lookahead`, from those of the policy without it."""
    _refuse_ahead(base.name, lookahead.refusal(module.decide, is_preemptive=base.is_preemptive))
    memory = f"{lookahead.MEMORY}; the base policy: {base.memory or 'none'}"
    text = f"{lookahead.SUMMARY}\n\nThe base policy: {base.text}\n\n{lookahead.__doc__}".strip()
    name = base.name + lookahead.SUFFIX
    return base._replace(name=name, text=text, is_compiled=False, memory=memory)


def _refuse_ahead(name: str, reason: str | None) -> None:
    if reason is not None:
        raise PolicyError(f"policy {name} cannot look ahead: {reason}")


def _ask(part: str, found: _Found, context: ContextCopy) -> Any:  # noqa: ANN401  a number or a phrase
    """Call a policy's optional function `part` for a context; None if the policy lacks it.

    If the policy is a user's network, its weights are passed as the second argument.
    """
    function = getattr(found.module, part, None)
    weights = () if found.learned is None else (found.learned.params_for(context),)
    return function(context, *weights) if function is not None else None


def _reason(found: _Found, context: ContextCopy) -> str | None:
    reason: str | None = _ask("refuses", found, context)
    return reason


def refusal(name: str, context: Context) -> str | None:
    """Return the reason, as a phrase, why a policy cannot run on a cluster; None = it can.

    Raises:
        PolicyError: there is no such policy, or the user's file is wrong.
    """
    name, looks_ahead = lookahead.split(name)
    found = _find(name)
    with user_file.mistakes(found.file):
        reason = _reason(found, copy_context(context))
    if reason is not None or not looks_ahead:
        return reason
    preempts = _is_preemptive(found.module, found.name)
    return lookahead.refusal(found.module.decide, is_preemptive=preempts)


def _is_preemptive(module: ModuleType, name: str) -> bool:
    value = getattr(module, "PREEMPTIVE", False)
    if not isinstance(value, bool):
        raise PolicyError(f"policy {name}: PREEMPTIVE must be True or False, not {value!r}")
    return value


def load(name: str, context: Context) -> Policy:
    """Load a policy for a cluster, by its name or the path of a user's file.

    The name may end in `+lookahead`. A name that ends in .npz or .json is one of the two files of a
    learned policy; any other name that has a slash or ends in .py is a file of code. A policy from
    a file is named after the file. Policies get only the fields of `copy_context`, even if the
    context (such as a scenario's setting) has more.

    Raises:
        PolicyError: there is no such policy, it cannot run there, or the user's file is wrong.
    """
    name, looks_ahead = lookahead.split(name)
    fields = copy_context(context)
    ready = _load(name, fields)
    if not looks_ahead:
        return ready
    reason = lookahead.refusal(ready.decide, is_preemptive=ready.is_preemptive)
    _refuse_ahead(ready.name, reason)
    ahead = lookahead.Lookahead(ready, fields)
    full = ready.name + lookahead.SUFFIX
    return ready._replace(name=full, decide=ahead.decide, memory=ahead.memory)


def _load(name: str, context: ContextCopy) -> Policy:
    """Load a policy for a cluster by a name without `+lookahead`."""
    found = _find(name)
    name, module, file, _ = found
    with user_file.mistakes(file):
        reason = _reason(found, context)
        if reason is not None:
            raise PolicyError(f"policy {name} cannot run {context.name}: {reason}")
        params = _ask("params", found, context)
        memory = _ask("memory", found, context) or 0
        ready = np.ascontiguousarray(params if params is not None else (), np.float64).ravel()
        line, preempts = user_file.first_line(module.decide), _is_preemptive(module, name)
        ranges = _ranges(found)
        return Policy(name, module.decide, ready, int(memory), file, line, preempts, ranges)


def _ranges(found: _Found) -> FeatureRanges | None:
    if found.learned is not None:
        return found.learned.card.ranges
    return learned.shipped(found.name).card.ranges if found.name in _SHIPPED else None
