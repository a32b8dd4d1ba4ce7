"""GPU utilisation of similar ended jobs, as a field of newly submitted ones; compiled.

Similar are jobs of the same user with the same name and type. A submitted job gets the mean of what
was measured of those that have ended, never its own.
"""

from __future__ import annotations

import math

import numpy as np

from adlro.compiled import njit, wide
from adlro.estimates.job_fields import NAME_FILLER, TYPE_FILLER, USER_FILLER, UTILISATION_ROLE
from adlro.features.hypervectors.encode_kernel import level_of, mixed
from adlro.features.hypervectors.schema import Space, Words
from adlro.model.state import Records, Row

USES = 4096  # groups of similar jobs that are told apart
_LATEST = 20.0  # jobs after which older ones lose weight

USE = np.dtype(
    [
        ("key", "u8"),  # of the user, name and type; 0 = none
        ("mean", "f8"),  # 0 to 1
        ("jobs", "f8"),  # at most _LATEST
    ],
    align=True,
)


@njit
def _group(filling: Words) -> np.uint64:
    """Return the key of a job's group; 0 if neither its name nor its type is known."""
    name, kind = filling[NAME_FILLER], filling[TYPE_FILLER]
    if name == 0 and kind == 0:
        return np.uint64(0)
    return max(mixed(mixed(filling[USER_FILLER] ^ name, 1) ^ kind, 2), np.uint64(1))


@njit
def _use_of(uses: Records, group: np.uint64) -> Row:
    return uses[int(wide(group) & (len(uses) - 1))]


@njit
def fill_utilisation(uses: Records, space: Space, filling: Words) -> None:
    """Write the level of the mean utilisation of similar ended jobs; missing if none is known."""
    group = _group(filling)
    use = _use_of(uses, group)
    if group != 0 and use.key == group:
        role = space.roles[UTILISATION_ROLE]
        filling[role.filler] = level_of(role, use.mean)


@njit
def learn_utilisation(uses: Records, filling: Words, utilisation: float) -> None:
    """Learn the mean GPU utilisation of an ended job, 0 to 1; nan = not measured."""
    group = _group(filling)
    if group == 0 or math.isnan(utilisation):
        return
    use = _use_of(uses, group)
    if use.key != group:  # a group that shares the place is forgotten
        use.key, use.mean, use.jobs = group, 0.0, 0.0
    use.jobs = min(use.jobs + 1.0, _LATEST)
    use.mean += (utilisation - use.mean) / use.jobs
