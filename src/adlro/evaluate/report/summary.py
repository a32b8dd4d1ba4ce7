"""The summary of a comparison in sentences, with the same figures as the table."""

from __future__ import annotations

from html import escape

from adlro.evaluate.comparison import Comparison, PolicyRow
from adlro.evaluate.report import formatting
from adlro.evaluate.report.formatting import BASELINES, PolicyGroup, TimeUnit


def summary(result: Comparison) -> list[str]:
    """Return HTML sentences on the best policy, its lead (settled or not) and the longest waits.

    These are the conclusions; what they rest on is in the section on assumptions.
    """
    unit, parts = formatting.time_unit(result), formatting.groups(result)
    sentences = [_best(group, result, unit) for group in parts[:1]]
    if result.seeds == 1:
        sentences.append("There is only one seed: there are no intervals, and nothing is settled.")
    sentences += _rest(parts[0], result)
    for group in parts[1:]:
        sentences += [_best(group, result, unit), *_rest(group, result), *_across(parts[0], group)]
    return [*sentences, *_starvation(result, unit), *_happened(parts[0], result, unit)]


def _bold(row: PolicyRow) -> str:
    return f"<b>{escape(row.name)}</b>"


def _best(group: PolicyGroup, result: Comparison, unit: TimeUnit) -> str:
    best, count = group.best, len(group.rows)
    jct = f"{formatting.format_time(best.metrics['mean_jct_s'], unit)} {unit.unit}"
    kind = ""
    if count < len(result.policies):
        kind = " that may preempt" if group.is_preemptive else " that never preempt"
    if count > 1:
        return (
            f"{_bold(best)} has the shortest mean completion time (JCT, from arrival to end) of "
            f"the {count} policies{kind}: {jct}."
        )
    only = f", the only policy{kind}," if kind else ""
    return f"{_bold(best)}{only} has a mean completion time (JCT, from arrival to end) of {jct}."


def _rest(group: PolicyGroup, result: Comparison) -> list[str]:
    return [_lead(group, result), *_baselines(group)] if len(group.rows) > 1 else []


def _happened(group: PolicyGroup, result: Comparison, unit: TimeUnit) -> list[str]:
    """Return a sentence on what was recorded of the same jobs, if known."""
    row = result.recorded
    if row is None:
        return []
    jct = f"{formatting.format_time(row.metrics['mean_jct_s'], unit)} {unit.unit}"
    gap = formatting.percent_difference(group.best, row)
    return [
        f"What happened (not simulated): the same jobs had a mean completion time of {jct}; the "
        f"simulation of {_bold(group.best)} is {gap} against it."
    ]


def _lead(group: PolicyGroup, result: Comparison) -> str:
    best, second = group.rows[:2]
    gap, seeds = (
        formatting.percent_difference(second, best),
        formatting.plural(result.seeds, "seed"),
    )
    if gap.is_settled:
        text = f"Next comes {_bold(second)}, {gap}: {seeds} settle that it is slower"
        return (
            f"{text}, by the interval; for a test they are too few."
            if gap.p is None
            else text + "."
        )
    if gap.mean == 0:
        return f"{_bold(second)} is exactly as good over {seeds}."
    text = (
        f"Next comes {_bold(second)}, {gap}: {formatting.not_settled(result.seeds)} which is better"
    )
    if gap.seeds is not None:
        enough = formatting.format_seeds(gap.seeds)
        return f"{text}; {enough} seeds would, if the difference is as seen."
    return text + "."


def _baselines(group: PolicyGroup) -> list[str]:
    """Return a sentence on how far min-min and fcfs, unless second, are behind the best policy."""
    sentences = [
        f"{_bold(row)} takes {gap}" + ("" if gap.is_settled else " (not settled)")
        for row in group.rows[2:]
        if row.name in BASELINES
        for gap in (formatting.percent_difference(row, group.best),)
    ]
    return [" and ".join(sentences) + " against the best."] if sentences else []


def _across(never: PolicyGroup, may: PolicyGroup) -> list[str]:
    """Return a sentence that compares the best preemptive policy with min-min, if present."""
    for row in never.rows:
        if row.name == BASELINES[0]:
            gap = formatting.percent_difference(may.best, row)
            settled = "" if gap.is_settled else " (not settled)"
            return [f"{_bold(may.best)} against {_bold(row)}: {gap} mean JCT{settled}."]
    return []


def _starvation(result: Comparison, unit: TimeUnit) -> list[str]:
    def wait(row: PolicyRow) -> str:
        return f"{formatting.format_time(row.metrics['longest_wait_s'], unit)} {unit.unit}"

    best = formatting.ranked(result)[0]
    p99 = f"{formatting.format_time(best.metrics['p99_jct_s'], unit)} {unit.unit}"
    text = f"Under {_bold(best)} the unluckiest job of a seed waits {wait(best)} for its start"
    tail = f"1 % of jobs take longer than {p99}"
    if len(result.policies) == 1:
        return [f"{text}, and {tail}."]
    ranked = sorted(result.policies, key=lambda row: row.metrics["longest_wait_s"].mean)
    ends = [
        f"{word} is {_bold(row)} with {wait(row)}"
        for word, row in (("the shortest such wait", ranked[0]), ("the longest", ranked[-1]))
        if row.name != best.name
    ]
    return [f"{text} and {tail}; {', '.join(ends)}."] if ends else [f"{text} and {tail}."]
