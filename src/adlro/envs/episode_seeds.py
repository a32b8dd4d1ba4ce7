"""Determines the seed of each episode of an environment: given by the user, or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adlro.errors import ConfigError

_FIRST, _END = 1_000_000, 2**31  # range of drawn seeds; published figures use seeds below
_MOST = 2**62


def checked(seed: Any) -> int:  # noqa: ANN401  checked here
    """Check a seed given by the user and return it as an int.

    Raises:
        ConfigError: the seed is not a whole number, or is out of range.
    """
    is_whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not (is_whole and 0 <= seed <= _MOST):
        raise ConfigError(f"seed: a whole number from 0 to 2**62 is needed, not {seed!r}")
    return int(seed)


def first_seeds(seed: object, count: int) -> NDArray[np.int64]:
    """Return the seeds of the first episodes of `count` copies.

    These are n, n + 1, ... if `seed` is a number n, or the entries of `seed` if it is a sequence.

    Raises:
        ConfigError: the sequence has another length than `count`, or an entry is not a seed.
    """
    if not isinstance(seed, Sequence | np.ndarray):
        return checked(seed) + np.arange(count)
    given = seed.tolist() if isinstance(seed, np.ndarray) else list(seed)
    if not isinstance(given, list) or len(given) != count:
        raise ConfigError(f"seed: {count} whole numbers are needed, not {seed!r}")
    return np.array([checked(one) for one in given], np.int64)


class EpisodeSeeds:
    """Seed of each episode: the given seeds for the first episodes, drawn seeds for the others.

    Seeds are drawn, not counted up from the given ones: otherwise environments with neighbouring
    seeds would play the same episodes.
    """

    def __init__(self, given: ArrayLike, rng: np.random.Generator) -> None:
        self._known, self._rng = np.array(given, np.int64), rng

    def of(self, episodes: ArrayLike) -> NDArray[np.int64]:
        """Return the seeds of episodes, numbered from 0; an episode always has the same seed."""
        wanted = np.asarray(episodes)
        missing = int(wanted.max()) + 1 - len(self._known)
        if missing > 0:
            more = self._rng.integers(_FIRST, _END, max(missing, len(self._known)))
            self._known = np.concatenate([self._known, more])
        return np.asarray(self._known[wanted])
