"""The summary of a comparison in plain sentences, each with figures that stand in the table."""

from __future__ import annotations

from html import escape

from adlro.evaluate.comparison import Comparison, Row
from adlro.evaluate.report import facts
from adlro.evaluate.report.facts import BARS, Group, Scale


def summary(result: Comparison) -> list[str]:
    """Sentences in HTML: who is best, by how much, whether that is settled, who waits longest."""
    unit, parts = facts.scale(result), facts.groups(result)
    told = [_best(group, result, unit) for group in parts[:1]]
    if result.seeds == 1:
        told.append("It is one seed only: there are no intervals, and nothing is settled.")
    told += _rest(parts[0], result)
    for group in parts[1:]:
        told += [_best(group, result, unit), *_rest(group, result), *_across(parts[0], group)]
    told += _starvation(result, unit)
    return [*told, *(_sentence(escape(note)) for note in result.notes)]


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _bold(row: Row) -> str:
    return f"<b>{escape(row.name)}</b>"


def _best(group: Group, result: Comparison, unit: Scale) -> str:
    best, count = group.best, len(group.rows)
    jct = f"{facts.in_time(best.metrics['mean_jct_s'], unit)} {unit.unit}"
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


def _rest(group: Group, result: Comparison) -> list[str]:
    return [_lead(group, result), *_bars(group)] if len(group.rows) > 1 else []


def _lead(group: Group, result: Comparison) -> str:
    best, second = group.rows[:2]
    gap, seeds = facts.gap(second, best), facts.plural(result.seeds, "seed")
    if gap.is_settled:
        text = f"Next comes {_bold(second)}, {gap}: {seeds} settle that it is slower"
        return (
            f"{text}, by the interval; for a test they are too few."
            if gap.p is None
            else text + "."
        )
    if gap.mean == 0:
        return f"{_bold(second)} is exactly as good over {seeds}."
    text = f"Next comes {_bold(second)}, {gap}: {facts.settle(result.seeds)} which is better"
    if gap.seeds is not None:
        return f"{text}; {facts.seeds(gap.seeds)} seeds would, if the difference is as seen."
    return text + "."


def _bars(group: Group) -> list[str]:
    """How far behind the best the policies are that everyone knows."""
    told = [
        f"{_bold(row)} takes {gap}" + ("" if gap.is_settled else " (not settled)")
        for row in group.rows[2:]
        if row.name in BARS
        for gap in (facts.gap(row, group.best),)
    ]
    return [" and ".join(told) + " against the best."] if told else []


def _across(never: Group, may: Group) -> list[str]:
    """The best that may preempt against min-min, which the table has a column for."""
    for row in never.rows:
        if row.name == BARS[0]:
            gap = facts.gap(may.best, row)
            settled = "" if gap.is_settled else " (not settled)"
            return [f"{_bold(may.best)} against {_bold(row)}: {gap} mean JCT{settled}."]
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
