"""Codes of the violations that stop a run before its end, and the error message of each."""

from __future__ import annotations

from adlro.model.state import DECISION_KINDS, Records

(
    NONE,
    TOO_MANY,
    UNKNOWN_KIND,
    NOT_RUNNING,
    TOO_YOUNG,
    NOT_WAITING,
    NO_SUCH_POOL,
    NOT_ELIGIBLE,
    NO_ROOM,
    NO_ROOM_THERE,
    WAKE_IN_THE_PAST,
    STALLED,
    ENDLESS_WAKES,
    ENDLESS_ANSWERS,
    OVER_QUOTA,
) = range(15)


def message(totals: Records) -> str:
    """Error message for the violation that stopped a run, from its TOTALS record."""
    fault, job, pool = (int(totals[key]) for key in ("fault", "fault_job", "fault_pool"))
    value, now = float(totals["fault_value"]), float(totals["now"])
    kind = DECISION_KINDS[int(value)] if fault in (NOT_RUNNING, TOO_YOUNG) else ""
    known = ", ".join(f"{k} {name}" for k, name in enumerate(DECISION_KINDS))
    start = f"asked to start job {job} on pool {pool}, "
    what = {
        TOO_MANY: f"answered {value:.0f}, but 'out' holds at most {job} decisions",
        UNKNOWN_KIND: f"wrote a decision of unknown kind {value:.0f}; known: {known}",
        NOT_RUNNING: f"asked to {kind} job {job}, which is not running",
        TOO_YOUNG: f"asked to {kind} job {job} before its least run time was over",
        NOT_WAITING: f"asked to start job {job}, which is not waiting",
        NO_SUCH_POOL: start + "but there is no such pool",
        NOT_ELIGIBLE: start + "where it is not eligible",
        NO_ROOM: start + "which has no room for it now",
        NO_ROOM_THERE: start + f"on node or GPU {value:.0f}, which is elsewhere or has no room",
        WAKE_IN_THE_PAST: f"asked to be woken at {value:g} s, which is not in the future",
        STALLED: f"left {value:.0f} jobs waiting (the oldest is {job}) with nothing running",
        ENDLESS_WAKES: f"asked for {value:.0f} timers in a row and finished nothing between them",
        OVER_QUOTA: start + "which starts before it in the answer left no quota for",
        ENDLESS_ANSWERS: f"went on deciding after {value:,.0f} answers in one moment",
    }[fault]
    return f"{what} (at {now:g} s)"
