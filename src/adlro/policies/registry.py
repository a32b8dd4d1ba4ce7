"""Policies by name: every file of this folder with a `decide`, and any file of the user's own.

A user's file is Python with a `decide`, or what `adlro train` wrote: the weights of a network.
Behind any name `+lookahead` may stand (see lookahead.py).
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
from adlro.model.context import Context, Known, known
from adlro.model.state import Floats
from adlro.policies import lookahead
from adlro.policies.loading import learned, user_file
from adlro.sim.simulator import is_compiled

LEARNED = "adlro"  # the learned policy of the package that is played unless told otherwise
_SHIPPED = (
    LEARNED,
    "adlro-preemptive",
    "paper-dqn",
)  # decide by a network


class Policy(NamedTuple):
    """A policy made ready for a cluster; what sim.simulator.Player asks for."""

    name: str
    decide: Callable[..., int]
    params: Floats
    memory: int
    file: Path | None  # of a user's own code; None = ours
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


class _Found(NamedTuple):
    """A policy, not yet made ready."""

    name: str
    module: ModuleType
    file: Path | None  # of a user's own code
    learned: learned.Learned | None  # a user's own network


def weights_file(name: str) -> Path | None:
    """One of the two files of a learned policy, by its name or either file; None = not learned."""
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
    """What a policy's file says of it."""

    name: str
    text: str  # its docstring
    is_compiled: bool
    is_preemptive: bool
    params: str | None  # what it says of its parameters; None = it has none
    memory: str | None  # and of what it keeps from call to call
    refuses: str | None  # and of where it cannot run


def facts(name: str) -> Facts:
    """What can be said of a policy without a scenario.

    Raises:
        PolicyError: there is no such policy, or the user's file is wrong.
    """
    name, wish = lookahead.split(name)
    found = _find(name)
    module = found.module
    said = {
        part: inspect.getdoc(getattr(module, part)) or "yes" if hasattr(module, part) else None
        for part in ("params", "memory", "refuses")
    }
    compiled, preempts = is_compiled(module.decide), _is_preemptive(module, found.name)
    facts = Facts(found.name, inspect.getdoc(module) or "", compiled, preempts, **said)
    return facts if wish is None else _ahead(facts, wish, module)


def _ahead(base: Facts, wish: lookahead.LookaheadOptions, module: ModuleType) -> Facts:
    """What can be said of a policy that looks ahead."""
    _refuse_ahead(base.name, lookahead.refusal(module.decide, is_preemptive=base.is_preemptive))
    memory = f"{lookahead.MEMORY}; the base policy: {base.memory or 'none'}"
    text = f"{wish.in_words()}\n\nThe base policy: {base.text}\n\n{lookahead.__doc__}".strip()
    return base._replace(name=base.name + wish.suffix, text=text, is_compiled=False, memory=memory)


def _refuse_ahead(name: str, reason: str | None) -> None:
    if reason is not None:
        raise PolicyError(f"policy {name} cannot look ahead: {reason}")


def _ask(part: str, found: _Found, context: Known) -> Any:  # noqa: ANN401  a number or a phrase
    """What a policy says of a context, if it does; that of a file is told its weights."""
    function = getattr(found.module, part, None)
    weights = () if found.learned is None else (found.learned.params_for(context),)
    return function(context, *weights) if function is not None else None


def _reason(found: _Found, context: Known) -> str | None:
    reason: str | None = _ask("refuses", found, context)
    return reason


def refusal(name: str, context: Context) -> str | None:
    """Why a policy cannot run there, in a phrase; None = it can.

    Raises:
        PolicyError: there is no such policy, or the user's file is wrong.
    """
    name, wish = lookahead.split(name)
    found = _find(name)
    with user_file.mistakes(found.file):
        reason = _reason(found, known(context))
    if wish is None or reason is not None:
        return reason
    preempts = _is_preemptive(found.module, found.name)
    return lookahead.refusal(found.module.decide, is_preemptive=preempts)


def _is_preemptive(module: ModuleType, name: str) -> bool:
    said = getattr(module, "PREEMPTIVE", False)
    if not isinstance(said, bool):
        raise PolicyError(f"policy {name}: PREEMPTIVE must be True or False, not {said!r}")
    return said


def load(name: str, context: Context) -> Policy:
    """A policy by name, or from the user's file, made ready; with `+lookahead` behind it or not.

    Anything that ends in .npz or .json is a learned policy, by either of its two files; anything
    else with a slash or .py is code. The name of a file's policy is that of the file. Whatever else
    the context may be (a scenario's setting, say), a policy is told no more than `known` of it.

    Raises:
        PolicyError: there is no such policy, it cannot run there, or the user's file is wrong.
    """
    name, wish = lookahead.split(name)
    told = known(context)
    ready = _load(name, told)
    if wish is None:
        return ready
    reason = lookahead.refusal(ready.decide, is_preemptive=ready.is_preemptive)
    _refuse_ahead(ready.name, reason)
    ahead = lookahead.Lookahead(ready, wish, told)
    full = ready.name + wish.suffix
    return ready._replace(name=full, decide=ahead.decide, memory=ahead.memory)


def _load(name: str, context: Known) -> Policy:
    """A policy as it is, made ready."""
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
        return Policy(name, module.decide, ready, int(memory), file, line, preempts)
