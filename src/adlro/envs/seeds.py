"""Which seed each episode of an environment plays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adlro.errors import ConfigError

_FIRST, _END = 1_000_000, 2**31  # between which seeds are drawn: tables and claims use those below
_MOST = 2**62


def checked(seed: Any) -> int:  # noqa: ANN401  whatever it may be
    """A seed that somebody asked for.

    Raises:
        ConfigError: it is no whole number, or out of range.
    """
    is_whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not (is_whole and 0 <= seed <= _MOST):
        raise ConfigError(f"seed: a whole number from 0 to 2**62 is needed, not {seed!r}")
    return int(seed)


def of_copies(seed: object, count: int) -> NDArray[np.int64]:
    """The first seeds of so many copies: n, n + 1, ... or, of a list or an array, one each.

    Raises:
        ConfigError: there are more or fewer of them, or one is no seed.
    """
    if not isinstance(seed, Sequence | np.ndarray):
        return checked(seed) + np.arange(count)
    given = seed.tolist() if isinstance(seed, np.ndarray) else list(seed)
    if not isinstance(given, list) or len(given) != count:
        raise ConfigError(f"seed: {count} whole numbers are needed, not {seed!r}")
    return np.array([checked(one) for one in given], np.int64)


class Seeds:
    """Those asked for, then others that are drawn as episodes get to them.

    Not the next numbers: environments that were given neighbours would play the same episodes.
    """

    def __init__(self, asked: ArrayLike, rng: np.random.Generator) -> None:
        self._known, self._rng = np.array(asked, np.int64), rng

    def of(self, episodes: ArrayLike) -> NDArray[np.int64]:
        """The seeds of episodes, counted from 0 on; the same whenever they are asked for."""
        wanted = np.asarray(episodes)
        missing = int(wanted.max()) + 1 - len(self._known)
        if missing > 0:
            more = self._rng.integers(_FIRST, _END, max(missing, len(self._known)))
            self._known = np.concatenate([self._known, more])
        return np.asarray(self._known[wanted])
