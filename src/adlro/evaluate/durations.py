"""Times as people read them: minutes, hours or days instead of seconds."""

from __future__ import annotations

from typing import NamedTuple

_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0


class _Unit(NamedTuple):
    name: str
    seconds: float
    digits: int  # behind the point

    def text(self, seconds: float) -> str:
        """Return a time in this unit: "3.4 h"."""
        return f"{seconds / self.seconds:.{self.digits}f} {self.name}"

    def hides(self, seconds: float) -> bool:
        """True if a time that is not 0 would be printed as 0."""
        return seconds != 0 and float(self.text(seconds).split()[0]) == 0


def _unit(size: float) -> _Unit:
    if size < 1.5 * _MINUTE:
        return _Unit("s", 1.0, 0)
    if size < 1.5 * _HOUR:
        return _Unit("min", _MINUTE, 0)
    return _Unit("h", _HOUR, 1) if size < 3 * _DAY else _Unit("days", _DAY, 1)


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it: "40 s", "12 min", "3.4 h", "5.2 days"."""
    return _unit(abs(seconds)).text(seconds)


def durations(*seconds: float) -> list[str]:
    """Return times to be compared in the unit of the longest: "1.1 h", "1.8 h".

    Where one of them is too short for that unit, each has its own.
    """
    unit = _unit(max(map(abs, seconds)))
    if any(unit.hides(one) for one in seconds):
        return [duration(one) for one in seconds]
    return [unit.text(one) for one in seconds]


def _signed(seconds: float, size: str) -> str:
    return size if float(size.split()[0]) == 0 else f"{'+' if seconds > 0 else '-'}{size}"


def change(seconds: float) -> str:
    """Return a difference of times with its sign: "+12 min", "-3.4 h"."""
    return _signed(seconds, duration(abs(seconds)))


def changes(*seconds: float) -> list[str]:
    """Return differences of times with their signs in one unit, as `durations` does."""
    sizes = durations(*map(abs, seconds))
    return [_signed(one, size) for one, size in zip(seconds, sizes, strict=True)]


def hours(seconds: float) -> str:
    """Return a time in hours, for a column of hours: "0.05", "3.41", "41.2", "1,204"."""
    found = seconds / _HOUR
    size = abs(found)
    return f"{found:,.2f}" if size < 10 else f"{found:,.1f}" if size < 100 else f"{found:,.0f}"
