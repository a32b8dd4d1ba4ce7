"""Like parametrize, but many values in one test: a pytest item can cost more than its check."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable

import pytest


def every(
    name: str, values: Iterable[object], *, quick: int | None = None
) -> Callable[[Callable[..., None]], object]:
    """Run the test with each value of this argument in turn; a failure names the value.

    Args:
        name: the argument.
        values: its values.
        quick: number of values that `make test` uses; `make slow` uses the others.
    """
    listed = list(values)
    parts = {"quick": listed[:quick], "others": [] if quick is None else listed[quick:]}
    assert parts["quick"]
    assert quick is None or parts["others"]

    def decorate(test: Callable[..., None]) -> object:
        @functools.wraps(test)
        def looped(part: str = "quick", **others: object) -> None:
            for value in parts[part]:
                try:
                    test(**{name: value}, **others)
                except BaseException as exc:
                    exc.add_note(f"{name} = {value!r}")
                    raise

        rest = [p for p in inspect.signature(test).parameters.values() if p.name != name]
        if quick is None:
            looped.__signature__ = inspect.Signature(rest)
            return looped
        part = inspect.Parameter("part", inspect.Parameter.KEYWORD_ONLY)
        looped.__signature__ = inspect.Signature([*rest, part])
        both = ["quick", pytest.param("others", marks=pytest.mark.slow)]
        return pytest.mark.parametrize("part", both)(looped)

    return decorate
