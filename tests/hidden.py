"""Check that nothing reachable from a policy's arguments reveals the hidden truth."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np

from adlro.config.scenario import Scenario
from adlro.model.context import copy_context
from adlro.workloads.setting import Setting

TRUTH = ("played", "failures", "changes", "colocation", "readings", "scenario", "setting")
_PARTS = ("func", "args", "keywords", "base", "__self__", "__closure__", "cell_contents")
_DEPTH = 12


def _inside(value) -> Iterator:
    """Objects that an object refers to: items, attributes, bound objects and closures."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    for name in _PARTS:
        yield getattr(value, name, None)
    yield from getattr(value, "__dict__", {}).values()


def reached(value) -> list:
    """All objects reachable from one, except classes, modules and their contents."""
    seen, fresh = {}, [value]
    for _ in range(_DEPTH):
        found = [one for one in fresh if not (inspect.isclass(one) or inspect.ismodule(one))]
        fresh = []
        for one in found:
            if id(one) not in seen:
                seen[id(one)] = one
                fresh += _inside(one)
    return list(seen.values())


def assert_hides_the_truth(setting: Setting) -> None:
    """Assert that a policy's context does not lead to future jobs or true speeds."""
    context = copy_context(setting)
    assert not [name for name in TRUTH if hasattr(context, name)]
    scenario = setting.scenario
    truth = [setting.played, setting.colocation, setting.readings]
    truth += [scenario.failures, scenario.changes, scenario.colocation]
    if setting.played is not None:
        truth += [part for part in setting.played if isinstance(part, np.ndarray)]
    hidden = {id(part) for part in truth if isinstance(part, np.ndarray) or part}
    for one in reached(context):
        assert not isinstance(one, Setting | Scenario)
        assert id(one) not in hidden, one
