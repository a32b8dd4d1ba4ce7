"""The tables of a comparison: one of preemptive policies, one of all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from adlro.config.scenario import Scenario
    from adlro.evaluate.comparison import Comparison, PolicyRow
    from adlro.evaluate.pooled import Pooled
    from adlro.evaluate.regression import Regressions
    from adlro.evaluate.rows import RecordedRow, Row
    from adlro.evaluate.stats import Estimate

Cell = Callable[["Row"], str]
_WIDTH = 104  # of lines of text
_SHORT = 20  # letters: names up to here stay whole on narrow terminals
_RECORDED = "recorded"  # name of the row of what happened
_MORE_WINDOWS = "a longer history has more, shorter windows (--jobs) make more of this one"
_SETTLE_BY = "n × (half width / difference)²"
_SETTLE_CAP = 100_000  # seeds: more are not counted out

_SHOWN = {  # metric -> heading, digits, scale
    "p99_jct_s": ("p99\nJCT s", 0, 1),
    "throughput_jobs_per_h": ("jobs/h", 1, 1),
    "gpu_utilisation": ("GPU\nuse %", 1, 100),
    "hyperscore": ("Hyper-\nScore", 2, 1),
    "restarts": ("re-\nstarts", 2, 1),
    "lost_gpu_s": ("lost\nGPU-h", 1, 1 / 3600),
    "fragmentation": ("left\nover %", 1, 100),
}
_QUIET = ("p99_jct_s", "throughput_jobs_per_h", "gpu_utilisation", "hyperscore")
_PREEMPTIVE = ("p99_jct_s", "gpu_utilisation", "restarts", "throughput_jobs_per_h")
_ROUGH = ("p99_jct_s", "gpu_utilisation", "restarts", "lost_gpu_s", "fragmentation")


def _cell(figure: Estimate, digits: int = 0, scale: float = 1.0) -> str:
    """Format a figure as its mean ± half the width of its 95 % interval."""
    text = f"{figure.mean * scale:,.{digits}f}"
    if figure.ci95 is None:
        return text
    return f"{text} ± {figure.half_width * scale:,.{digits}f}"


def _versus_cell(row: Row, best: str) -> str:
    if row.name == best:
        return "best"
    figure = row.jct_versus(best)
    if figure.ci95 is None:
        return f"{figure.mean:+,.1f}"
    digits = 1 if figure.half_width < 9.95 else 0
    low, high = figure.ci95
    return f"{figure.mean:+,.{digits}f} ({low:+,.{digits}f} to {high:+,.{digits}f})"


def _p_cell(row: Row, best: str) -> str:
    if row.name in (best, _RECORDED):
        return ""
    p = row.jct_versus(best).p_holm
    if p is None:
        return "-"
    return "< .001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def is_rough(scenario: Scenario) -> bool:
    """True if the scenario has events (failures, changes) or jobs that take slices of GPUs."""
    from adlro.workloads.events import is_quiet

    return not is_quiet(scenario) or any(min(t.gpu_share.drawn()) < 1 for t in scenario.types)


def _mean(row: Row, key: str) -> str:
    """Format a metric; empty if the record does not have it."""
    _, digits, scale = _SHOWN[key]
    if key not in row.metrics:
        return ""
    return f"{row.metrics[key].mean * scale:,.{digits}f}"


def _columns(
    rows: Sequence[PolicyRow], scenario: Scenario, recorded: RecordedRow | None
) -> dict[str, Cell]:
    """Return the headings of the table, each with the function that formats a policy's cell.

    The first row is the best policy; `recorded` is what happened, if known. The columns fit into
    110 characters: where the ratio to the lower bound and the gap to the look-ahead with foresight
    are known, they replace the last columns.
    """
    best = rows[0].name
    columns: dict[str, Cell] = {"mean JCT s": lambda row: _cell(row.metrics["mean_jct_s"])}
    if len(rows) > 1 or recorded is not None:
        columns[f"vs {best}, %"] = partial(_versus_cell, best=best)
        if any(row.jct_versus(best).p_holm is not None for row in rows[1:]):
            columns["p"] = partial(_p_cell, best=best)
    keys: Sequence[str] = _PREEMPTIVE if rows[0].is_preemptive else _QUIET
    if is_rough(scenario):
        keys = _ROUGH
    columns |= {_SHOWN[key][0]: partial(_mean, key=key) for key in keys}
    more: dict[str, Cell] = {}
    if any(row.times_lower_bound is not None for row in rows):
        times = {row.name: row.times_lower_bound for row in rows}
        more["× lower\nbound"] = partial(_reference_cell, known=times, digits=2)
    if any(row.gap_closed is not None for row in rows):
        closed = {row.name: row.gap_closed for row in rows}
        more["gap\nclosed %"] = partial(_reference_cell, known=closed, digits=0)
    return dict(list(columns.items())[: len(columns) - len(more)]) | more


def _reference_cell(row: Row, known: Mapping[str, Estimate | None], digits: int) -> str:
    if row.name not in known:
        return ""
    found = known[row.name]
    return "-" if found is None else _cell(found, digits)


def _checkpoints(scenario: Scenario) -> str:
    """Return a sentence about the cost of preemption, which is the same for every policy."""
    costs = {job_type.checkpoint_s for job_type in scenario.types}
    known = sorted(cost for cost in costs if cost is not None)
    if not known:
        return "No job can checkpoint: one that is stopped starts over."
    span = f"{known[0]:g}" if known[0] == known[-1] else f"{known[0]:g} to {known[-1]:g}"
    text = f"A job that is stopped pays {span} s of checkpoint, the same under every policy"
    return text + ("; some cannot, and start over." if None in costs else ".")


def _settle(result: Comparison, rows: Sequence[PolicyRow]) -> str:
    """Say how many seeds would tell the two best policies apart; empty if they already are."""
    from adlro.evaluate.stats import FEWEST_SEEDS

    best, rival = rows[0], rows[1]
    difference = rival.jct_versus(best.name)
    needed, seeds = difference.seeds_to_settle, result.seeds
    if difference.is_settled:
        return ""
    if difference.mean == 0:
        return "" if seeds == 1 else f"{rival.name} and {best.name} have the same mean JCT."
    if needed is None:
        return "" if result.windows is None else f"One window settles nothing; {_MORE_WINDOWS}."
    count = f"some {needed:,}" if needed <= _SETTLE_CAP else f"more than {_SETTLE_CAP:,}"
    is_few = seeds < FEWEST_SEEDS
    few, how = (f"{seeds} seeds are few; ", "") if is_few else ("", f" ({_SETTLE_BY})")
    text = (
        f"{rival.name} and {best.name} are not told apart: {few}if the difference seen is the true "
        f"one, that takes {count} seeds{how}."
    )
    if result.windows is None or needed <= result.windows:
        return text
    windows = f"{result.windows:,} window{'s' if result.windows > 1 else ''}"
    return f"{text} The history has {windows} of {result.jobs:,} jobs; {_MORE_WINDOWS}."


def _intervals(result: Comparison, rows: Sequence[PolicyRow]) -> str:
    """Return a caption that explains the intervals and p values."""
    from adlro.evaluate.significance import FEWEST_PAIRS
    from adlro.evaluate.stats import FEWEST_SEEDS, MOST_SEEDS

    seeds = result.seeds
    if seeds == 1:
        return "One seed: no intervals."
    if len(rows) == 1 and result.recorded is None:
        return "±: 95 % intervals over seeds."
    text = "± and (a to b): 95 % intervals over seeds"
    is_drawn = FEWEST_SEEDS <= seeds <= MOST_SEEDS
    how = "bootstrap-t" if is_drawn else "Student's t"
    text += f"; differences are paired seed by seed ({how})."
    best = rows[0].name
    if any(row.jct_versus(best).p_holm is not None for row in rows[1:]):
        text += f" p: Wilcoxon signed ranks against {best}, Holm-corrected"
        is_full = all(row.jct_versus(best).p_holm is not None for row in rows[1:])
        return text + ("." if is_full else "; -: too few seeds differ.")
    if len(rows) == 1:
        return text
    if seeds < FEWEST_PAIRS:
        return text + f" No p values from fewer than {FEWEST_PAIRS} seeds."
    return text + f" No p values: fewer than {FEWEST_PAIRS} seeds show a difference."


def _references(result: Comparison, rows: Sequence[PolicyRow]) -> list[str]:
    """Return lines on the look-ahead with foresight and the lower bound, if they are known."""
    lines = []
    if result.hindsight is not None:
        has_gap = any(row.gap_closed is not None for row in rows)
        below = [
            f"{row.name} {row.seeds_below_look_ahead:,}"
            for row in rows
            if row.seeds_below_look_ahead
        ]
        lines.append(
            f"Look-ahead with foresight (no policy, no bound): mean JCT {_cell(result.hindsight)} "
            "s."
            + (" Gap closed: 0 % = min-min, 100 % = the look-ahead." if has_gap else "")
            + (f" Seeds of {result.seeds:,} below it: {', '.join(below)}." if below else "")
        )
    is_preemptive = rows[0].is_preemptive
    bound = result.lower_bound_preemptive if is_preemptive else result.lower_bound
    if bound is not None:
        of = "any schedule" if is_preemptive else "any schedule without preemption"
        lines.append(f"Lower bound on the mean JCT of {of}: {_cell(bound)} s.")
    return lines


def _caption(result: Comparison, rows: Sequence[PolicyRow], scenario: Scenario) -> str:
    lines = [
        f"{_intervals(result, rows)} JCT = finish - arrival, all jobs run to the end.",
    ]
    lines += _references(result, rows)
    if result.recorded is not None:
        lines.append(
            "recorded: what happened to the same jobs, not simulated; simulated seeds begin with "
            "an empty cluster."
        )
    lines += result.jitter_notes()
    if rows[0].is_preemptive:
        lines.append(_checkpoints(scenario))
    if len(rows) > 1:
        lines.append(_settle(result, rows))
    return "\n".join(line for line in lines if line)


def _pooled_parts(result: Comparison) -> list[RenderableType]:
    """Return the table of ratios to the fixed rivals, pooled over the windows of a history."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    rows = [row for rows in result.tables() for row in rows if row.pooled]
    rivals = list(dict.fromkeys(rival for row in rows for rival in row.pooled))
    if not rivals or result.seeds == 1:
        return []
    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    table.add_column("pooled", overflow="fold")
    for rival in rivals:
        table.add_column(f"vs {rival}, %", justify="right")
        table.add_column("worst\nwindow", justify="right")
    for row in rows:
        cells = [_pooled_cells(row.pooled.get(rival)) for rival in rivals]
        table.add_row(row.name, *(cell for pair in cells for cell in pair))
    windows = max(found.windows for row in rows for found in row.pooled.values())
    return [
        f"Pooled over {windows:,} windows: geometric mean of the windows' ratios of mean JCT, "
        "every window alike, with the 95 % interval over windows.",
        table,
        "",
    ]


def _pooled_cells(found: Pooled | None) -> tuple[str, str]:
    if found is None:
        return "", ""
    low, high = found.ci95 or (found.mean_pct, found.mean_pct)
    return f"{found.mean_pct:+,.1f} ({low:+,.1f} to {high:+,.1f})", f"{found.worst_pct:+,.0f}"


def _title(result: Comparison, rows: Sequence[PolicyRow], *, is_first: bool) -> str:
    seeds = f"{result.seeds:,} seed{'s' if result.seeds > 1 else ''}"
    kind = "preemptive policies" if rows[0].is_preemptive else ""
    if not is_first:
        return kind
    title = (
        f"{result.scenario} · load {result.load:g} · {result.jobs:,} jobs × {seeds} · "
        f"estimates {result.estimates} · measured: {result.measure}"
    )
    return f"{title} · {kind}" if kind else title


def _table(
    rows: Sequence[PolicyRow], columns: dict[str, Cell], recorded: RecordedRow | None
) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    is_short = max(len(row.name) for row in rows) <= _SHORT
    table.add_column("policy", overflow="fold", no_wrap=is_short)
    for heading in columns:
        table.add_column(heading, justify="right", overflow="fold")
    if recorded is not None:
        happened = [cell(recorded) for cell in columns.values()]
        table.add_row(recorded.name, *happened, style="italic", end_section=True)
    for row in rows:
        cells = [cell(row) for cell in columns.values()]
        table.add_row(row.name, *cells, style="bold" if row is rows[0] else None)
    return table


def _regression(found: Regressions) -> list[RenderableType]:
    """Return the lines and the table that show the regression of mean JCT over all runs."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    pooled = found.pooled
    if pooled.problem is not None:
        return [f"Regression of mean JCT: {pooled.problem}"]
    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    table.add_column("term")
    for heading in ("seconds a unit", "95 % interval", "standardised"):
        table.add_column(heading, justify="right")
    for term in pooled.coefficients:
        beta = "" if term.standardised is None else f"{term.standardised:+.3f}"
        low, high = term.ci95
        table.add_row(term.name, f"{term.value:,.1f}", f"{low:,.1f} to {high:,.1f}", beta)
    return [
        f"mean JCT in seconds by least squares · {pooled.n:,} runs · R² {pooled.r2:.3f}",
        table,
        f"Intervals {pooled.intervals}. Standardised: standard deviations of mean JCT for one of "
        "the term. Mean JCT and mean queue are tied by Little's law: this is a fit, not a cause.",
    ]


def shown(result: Comparison, scenario: Scenario, *, with_regression: bool) -> RenderableType:
    """Return everything that `adlro compare` prints: titles, tables, captions and notes."""
    from rich.console import Group
    from rich.constrain import Constrain

    from adlro.cli import calibration_table

    parts: list[RenderableType] = []
    for i, rows in enumerate(result.tables()):
        parts.append(_title(result, rows, is_first=i == 0))
        happened = result.recorded
        parts.append(_table(rows, _columns(rows, scenario, happened), happened))
        parts.extend((_caption(result, rows, scenario), ""))
    parts.extend(_pooled_parts(result))
    if with_regression:
        parts.extend((*_regression(result.regression), ""))
    if result.calibration is not None:
        parts.extend((*calibration_table.shown(result.calibration), ""))
    parts.extend(result.range_notes())
    parts.extend(f"Note: {note}" for note in result.notes)
    return Group(*(Constrain(part, _WIDTH if isinstance(part, str) else None) for part in parts))
