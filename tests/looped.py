"""Many values in one test: as parametrize, where an item of pytest costs more than its check."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable


def every(name: str, values: Iterable[object]) -> Callable[[Callable[..., None]], object]:
    """Run the test with each value of this argument in turn; a failure names the value."""
    listed = list(values)
    assert listed

    def decorate(test: Callable[..., None]) -> object:
        @functools.wraps(test)
        def looped(**others: object) -> None:
            for value in listed:
                try:
                    test(**{name: value}, **others)
                except BaseException as exc:
                    exc.add_note(f"{name} = {value!r}")
                    raise

        rest = [p for p in inspect.signature(test).parameters.values() if p.name != name]
        looped.__signature__ = inspect.Signature(rest)
        return looped

    return decorate
