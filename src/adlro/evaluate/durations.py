"""Times as people read them: minutes, hours or days instead of seconds."""

from __future__ import annotations

_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it: "40 s", "12 min", "3.4 h", "5.2 days"."""
    size = abs(seconds)
    if size < 1.5 * _MINUTE:
        return f"{seconds:.0f} s"
    if size < 1.5 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    if size < 3 * _DAY:
        return f"{seconds / _HOUR:.1f} h"
    return f"{seconds / _DAY:.1f} days"


def change(seconds: float) -> str:
    """Return a difference of times with its sign: "+12 min", "-3.4 h"."""
    text = duration(abs(seconds))
    return text if text == "0 s" else f"{'+' if seconds > 0 else '-'}{text}"


def hours(seconds: float) -> str:
    """Return a time in hours, for a column of hours: "0.05", "3.41", "41.2", "1,204"."""
    found = seconds / _HOUR
    size = abs(found)
    return f"{found:,.2f}" if size < 10 else f"{found:,.1f}" if size < 100 else f"{found:,.0f}"
