"""ADLRO: a scheduler for mixed GPU clusters that learns.

The public API is `__all__`; each function is imported when it is first used, so that importing the
package imports nothing else.
"""

TYPE_CHECKING = False  # as type checkers understand it: typing itself is not imported

if TYPE_CHECKING:
    from adlro.api import compare, load_policy, load_scenario, simulate
else:

    def __getattr__(name):  # noqa: ANN001, ANN202  type checkers see the import above
        """Import a function of the public API when it is first used."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module("adlro.api"), name)


__version__ = "0.1.0"
__all__ = ["__version__", "compare", "load_policy", "load_scenario", "simulate"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
