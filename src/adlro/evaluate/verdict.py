"""The verdict of an assessment in plain words: what is gained, how sure, who loses, what next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict

from adlro.evaluate.assess import OURS, TODAY, Assessment, Cell, Pooled
from adlro.evaluate.durations import change, duration, durations
from adlro.evaluate.stats import Estimate
from adlro.evaluate.variants import SPEED_WORDS

Answer = Literal["gain", "likely gain", "open", "depends", "likely loss", "loss"]
_SHORT_DAYS = 3.0  # a history that is shorter knows no weekend
_FEW_WINDOWS = 6
_P99 = 1.05  # a longer tail than that is said


class NextCommand(BaseModel):
    """A command to go on with, and what it is for."""

    model_config = ConfigDict(frozen=True)

    command: str
    purpose: str


class Verdict(BaseModel):
    """What an operator can conclude from an assessment."""

    model_config = ConfigDict(frozen=True)

    answer: Answer
    sentences: list[str]
    next: list[NextCommand]


def _gains(found: Assessment) -> list[tuple[Cell, Estimate]]:
    """Return the change of mean JCT from today to ours under each assumption."""
    pairs = []
    for cell in found.cells:
        row = cell.row(OURS)
        if not cell.is_reference and row is not None and row.versus_today_pct is not None:
            pairs.append((cell, row.versus_today_pct))
    return pairs


def answer_of(gains: list[Estimate], pooled: Estimate) -> Answer:
    """Return the answer that the changes of mean JCT in percent give.

    Args:
        gains: one for each assumption.
        pooled: over all assumptions.
    """
    shorter = sum(one.is_settled and one.mean < 0 for one in gains)
    longer = sum(one.is_settled and one.mean > 0 for one in gains)
    if shorter == len(gains):
        return "gain"
    if longer == len(gains):
        return "loss"
    if shorter and longer:
        return "depends"
    if pooled.is_settled and pooled.mean < 0 and not longer:
        return "likely gain"
    if pooled.is_settled and pooled.mean > 0 and not shorter:
        return "likely loss"
    return "open"


def percent(one: Estimate) -> str:
    """Return a change in percent with its interval: "-12.3 % (-15.0 to -9.4)"."""
    text = f"{one.mean:+.1f} %"
    return text if one.ci95 is None else f"{text} ({one.ci95[0]:+.1f} to {one.ci95[1]:+.1f})"


def _assumption(cell: Cell) -> str:
    return f"{SPEED_WORDS[cell.speeds]}, estimates by {cell.estimates}"


# What is said of today's scheduler cannot be sure if its twin is not known to be like it.
_CAUTIOUS: dict[Answer, Answer] = {"gain": "likely gain", "loss": "likely loss"}
_HEADLINES: dict[Answer, str] = {
    "gain": "ADLRO would shorten the mean completion time under every assumption",
    "likely gain": "ADLRO would probably shorten the mean completion time",
    "open": "Nothing is settled: ADLRO's mean completion time may be shorter or longer",
    "depends": "It depends on what is assumed: ADLRO is better under some assumptions, worse under "
    "others",
    "likely loss": "ADLRO would probably lengthen the mean completion time",
    "loss": "ADLRO would lengthen the mean completion time under every assumption",
}


def _headline(answer: Answer, ours: Pooled, today: Pooled) -> str:
    assert ours.versus_today_pct is not None
    jct, jct_today = durations(ours.mean_jct_s, today.mean_jct_s)
    wait, wait_today = durations(ours.mean_wait_s, today.mean_wait_s)
    return (
        f"{_HEADLINES[answer]}: {jct} instead of {jct_today}, {percent(ours.versus_today_pct)}, "
        f"against your scheduler today (its twin, policy {TODAY}); mean wait {wait} instead of "
        f"{wait_today}."
    )


def _how_sure(found: Assessment, gains: list[tuple[Cell, Estimate]]) -> str:
    shorter = sum(one.is_settled and one.mean < 0 for _, one in gains)
    longer = sum(one.is_settled and one.mean > 0 for _, one in gains)
    low, high = min(gains, key=lambda p: p[1].mean), max(gains, key=lambda p: p[1].mean)
    told = f"the 95 % interval is on the side of a gain under {shorter} of {len(gains)} assumptions"
    if longer:
        told += f" and on the side of a loss under {longer}"
    return (
        f"How sure: {found.windows} windows of {found.window_jobs:,} jobs; {told}; from "
        f"{low[1].mean:+.1f} % ({_assumption(low[0])}) to {high[1].mean:+.1f} % "
        f"({_assumption(high[0])})."
    )


def _rival(found: Assessment) -> str:
    """Say how the strongest rival of ours does."""
    rival = next(row for row in found.pooled if row.name not in (OURS, TODAY))
    assert rival.versus_today_pct is not None
    assert rival.versus_ours_pct is not None
    against = rival.versus_ours_pct
    if not against.is_settled:
        told = "which of the two is better is not settled"
    else:
        told = "ADLRO is better" if against.mean > 0 else f"{rival.name} is better than ADLRO here"
    return (
        f"The strongest rival is {rival.name}: {percent(rival.versus_today_pct)} against your "
        f"scheduler; against ADLRO {percent(against)}: {told}."
    )


def _tail(ours: Pooled, today: Pooled) -> str:
    if ours.p99_jct_s > _P99 * today.p99_jct_s:
        text = "The slowest jobs get slower"
    elif today.p99_jct_s > _P99 * ours.p99_jct_s:
        text = "The slowest jobs get faster"
    else:
        text = "The slowest jobs stay about as slow"
    p99, p99_today = durations(ours.p99_jct_s, today.p99_jct_s)
    return f"{text}: 1 % of the jobs take longer than {p99}, instead of {p99_today}."


def _losers(found: Assessment) -> str:
    losers = found.losers
    if not losers:
        return "Who would wait longer: no account, partition or gang size, on average."
    sure = [one for one in losers if one.change_s.is_settled]
    named = ", ".join(
        f"{one.label} ({change(one.change_s.mean)}, {one.jobs:,} jobs)" for one in losers[:3]
    )
    more = f" and {len(losers) - 3} more" if len(losers) > 3 else ""
    settled = f"the interval of {len(sure) or 'none'} of them is above 0"
    return f"Who would wait longer: {named}{more}; {settled}."


def _against_record(found: Assessment) -> Iterator[str]:
    """Yield how ours compares with what happened."""
    ours = found.pooled_row(OURS)
    if found.recorded is None or ours.versus_recorded_pct is None:
        return
    yield (
        f"Against what was recorded, {duration(found.recorded['mean_jct_s'].mean)}, a simulation "
        f"against a record: {percent(ours.versus_recorded_pct)}."
    )


def _truth(found: Assessment) -> Iterator[str]:
    """Yield how well the twin reproduces the record, and what that means."""
    if found.calibration is None:
        yield (
            "How true: the history has no recorded starts, so nobody can say how well the twin "
            "reproduces your scheduler; believe the differences between policies, not the hours."
        )
        return
    yield f"How true: {found.calibration.headline()}"
    if not found.calibration.is_close:
        reasons = "; ".join(found.calibration.reasons)
        yield (
            "As the twin does not reproduce your record, the gain against your real scheduler may "
            f"be another one{'; likely reasons: ' if reasons else ''}{reasons}."
        )


def _warnings(found: Assessment) -> Iterator[str]:
    if found.days < _SHORT_DAYS:
        yield (
            f"WARNING: the history spans {found.days:.1f} days: it knows no week; bring some weeks."
        )
    if found.windows < _FEW_WINDOWS:
        yield f"WARNING: {found.windows} windows are few; intervals are wide, and barely reliable."
    if found.load > 1:
        yield (
            f"WARNING: overload (load {found.load:.2f}): the queue grows to the end of the file, "
            "so waits measure its length."
        )


def _next(
    found: Assessment, answer: Answer, options: str, calibrated: str | None
) -> Iterator[NextCommand]:
    history = shlex.quote(found.history)
    if found.calibration is not None and not found.calibration.is_close and calibrated is not None:
        yield NextCommand(
            command=f"adlro trace calibrate {history}{calibrated}", purpose="why the twin is off"
        )
    files = f"{history}{options}"
    yield NextCommand(
        command=f"adlro tune {files}", purpose="the best slurm.conf without installing anything"
    )
    is_gain = answer in ("gain", "likely gain")
    yield NextCommand(
        command=f"adlro plan {files} --add 4xH100",
        purpose="what that gain is worth in GPUs" if is_gain else "what more GPUs would give",
    )


def verdict(found: Assessment, options: str = "", calibrated: str | None = None) -> Verdict:
    """Return the verdict of an assessment.

    Args:
        found: the assessment.
        options: of the command, to be repeated in the next ones.
        calibrated: those for `adlro trace calibrate`; None = it cannot read the history.
    """
    gains = _gains(found)
    ours, today = found.pooled_row(OURS), found.pooled_row(TODAY)
    assert ours.versus_today_pct is not None
    answer = answer_of([one for _, one in gains], ours.versus_today_pct)
    if found.calibration is None or not found.calibration.is_close:
        answer = _CAUTIOUS.get(answer, answer)
    sentences = [
        _headline(answer, ours, today),
        _how_sure(found, gains),
        _rival(found),
        _tail(ours, today),
        _losers(found),
        *_against_record(found),
        *_truth(found),
        *_warnings(found),
    ]
    return Verdict(
        answer=answer, sentences=sentences, next=list(_next(found, answer, options, calibrated))
    )
