"""The summary of a comparison in plain sentences, each with figures that stand in the table."""

from __future__ import annotations

from html import escape

from adlro.evaluate.compare import Comparison, Row
from adlro.evaluate.report import facts
from adlro.evaluate.report.facts import BARS, Group, Scale


def summary(result: Comparison) -> list[str]:
    """Sentences in HTML: who is best, by how much, whether that is settled, who waits longest."""
    unit, parts = facts.scale(result), facts.groups(result)
    told = [sentence for group in parts for sentence in _of_group(group, result, unit)]
    if len(parts) == 2:
        told += _across(parts[0], parts[1])
    told += _starvation(result, unit)
    return [*told, *(_sentence(escape(note)) for note in result.notes)]


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _bold(row: Row) -> str:
    return f"<b>{escape(row.name)}</b>"


def _of_group(group: Group, result: Comparison, unit: Scale) -> list[str]:
    best, others = group.best, group.rows[1:]
    jct = f"{facts.in_time(best.metrics['mean_jct_s'], unit)} {unit.unit}"
    kind = "that may preempt" if group.is_preemptive else "that never preempt"
    if not others:
        start = f"{_bold(best)} is the only one of the policies {kind}" + (
            ": its" if len(result.policies) > 1 else ", alone here: its"
        )
        told = [f"{start} mean completion time (JCT, from arrival to end) is {jct}."]
    else:
        told = [
            f"{_bold(best)} has the shortest mean completion time (JCT, from arrival to end) of "
            f"the {facts.plural(len(group.rows), 'policy').replace('policys', 'policies')} {kind}: "
            f"{jct}.",
            _lead(group, result),
            *_bars(group, result),
        ]
    if result.seeds == 1 and group is not None and not group.is_preemptive:
        told.append("It is one seed only: there are no intervals, and nothing is settled.")
    return told


def _lead(group: Group, result: Comparison) -> str:
    best, second = group.rows[:2]
    gap, seeds = facts.gap(second, best), facts.plural(result.seeds, "seed")
    if gap.is_settled:
        return f"The next, {_bold(second)}, is at {gap} of it: settled by {seeds}."
    if gap.mean == 0:
        return f"{_bold(second)} is exactly as good over {seeds}."
    text = f"The next, {_bold(second)}, is at {gap}: {seeds} do not settle which is better"
    if gap.seeds is not None:
        return f"{text}; about {gap.seeds:,} would, if the difference is as seen."
    return text + "."


def _bars(group: Group, result: Comparison) -> list[str]:
    """How far behind the best the policies are that everyone knows."""
    told = [
        f"{_bold(row)} is at {gap}" + ("" if gap.is_settled else " (not settled)")
        for row in group.rows[2:]
        if row.name in BARS
        for gap in (facts.gap(row, group.best),)
    ]
    return [", ".join(told) + " of the best's mean JCT."] if told else []


def _across(never: Group, may: Group) -> list[str]:
    """The best that may preempt against min-min, which the table has a column for."""
    for row in never.rows:
        if row.name == BARS[0]:
            gap = facts.gap(may.best, row)
            settled = "" if gap.is_settled else ", which is not settled"
            return [f"Against {_bold(row)} the best that may preempt is at {gap}{settled}."]
    return []


def _starvation(result: Comparison, unit: Scale) -> list[str]:
    def wait(row: Row) -> str:
        return f"{facts.in_time(row.metrics['longest_wait_s'], unit)} {unit.unit}"

    best = facts.best_first(result)[0]
    p99 = f"{facts.in_time(best.metrics['p99_jct_s'], unit)} {unit.unit}"
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
