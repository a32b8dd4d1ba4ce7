"""Choices of a state and their features for tests: `describe_choices` called from Python."""

from __future__ import annotations

import numpy as np

from adlro.features.explanation_kernel import write_choices
from adlro.features.start_kernel import (
    EVERYTHING,
    FEATURES,
    MOST_CHOICES,
    Choices,
    describe_choices,
    scratch_size,
)
from tests.worlds import InPython, Scheduled, build, play, unlocked


def look_at(view) -> Choices:
    """Return the choices of a state, with arrays [C] and [C, F] of their own.

    Compiled code without reference counts returns the whole scratch, so it is sliced again here.
    """
    scratch = np.zeros(scratch_size(len(view.gpus), len(view.pools)))
    count, planned, tau, *_ = describe_choices(unlocked(view), scratch)
    width, most = len(FEATURES), MOST_CHOICES
    features = scratch[: most * width].reshape(most, width)[:count].copy()
    columns = scratch[most * width :][: 4 * most].reshape(4, most)[:, :count].copy()
    return Choices(count, planned, tau, *columns, features)


def seen_at(time, groups, jobs, policy=None, **more) -> Choices:
    """Return the first view at a time under a policy; None = first come, first served on pool 0."""
    world, seen = build(groups, jobs, **more), []

    def note(view):
        if view.now == time:
            seen.append(look_at(view))

    play(world, InPython(policy, world, note) if policy else Scheduled({}, note))
    return seen[0]


def watched(policy, world):
    """Return a compiled policy callable from Python, and the list of views of its calls."""
    seen = []
    return InPython(policy, world, lambda view: seen.append(look_at(view))), seen


def column(choices, name) -> np.ndarray:
    """One feature of each choice."""
    return choices.features[:, FEATURES.index(name)]


def pairs(choices, queue) -> list:
    """(job, pool) of every choice except waiting; queue: the waiting jobs in order."""
    places, pools = choices.places[1:].astype(int), choices.pools[1:].astype(int)
    return [(queue[q], int(p)) for q, p in zip(places, pools, strict=True)]


def look_closely(ranges, view) -> dict[str, list[float]]:
    """All features of a state's choices by name, including the optional ones."""
    scratch = np.full(scratch_size(len(view.gpus), len(view.pools)), np.nan)
    table, features = np.zeros((MOST_CHOICES, 4)), np.zeros((MOST_CHOICES, len(FEATURES)))
    wanted = np.array(ranges, np.float64)
    count, _, _ = write_choices(unlocked(view), EVERYTHING, wanted, scratch, table, features)
    return {name: features[:count, f].tolist() for f, name in enumerate(FEATURES)}


def seen_closely_at(time, groups, jobs, ranges, **more) -> dict[str, list[float]]:
    """The same for the first view at a time under first come, first served on pool 0."""
    seen = []

    def note(view):
        if view.now == time:
            seen.append(look_closely(ranges, view))

    play(build(groups, jobs, **more), Scheduled({}, note))
    return seen[0]
