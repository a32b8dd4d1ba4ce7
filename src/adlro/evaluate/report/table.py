"""The HTML table of a comparison: every policy with its metrics and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from adlro.evaluate.comparison import Comparison, PolicyRow
from adlro.evaluate.report import formatting
from adlro.evaluate.report.formatting import BASELINES, PolicyGroup, TimeUnit
from adlro.evaluate.rows import RECORDED, RecordedRow, Row


class MetricFormat(NamedTuple):
    """Heading, explanation and number format of a metric in the report."""

    heading: str
    about: str
    digits: int = 0
    factor: float = 1.0
    better: int = 0  # -1 = lower is better, 1 = higher is better, 0 = neither
    is_time: bool = False  # in seconds; shown in the page's unit
    hidden_at: float | None = None  # the column is left out if every policy has this value


METRICS = {
    "mean_jct_s": MetricFormat(
        "mean JCT", "mean completion time: finish - arrival", 0, 1, -1, True
    ),
    "p50_jct_s": MetricFormat("median JCT", "half of the jobs take less", 0, 1, -1, True),
    "p95_jct_s": MetricFormat("p95 JCT", "5 % of the jobs take longer", 0, 1, -1, True),
    "p99_jct_s": MetricFormat("p99 JCT", "1 % of the jobs take longer", 0, 1, -1, True),
    "weighted_jct_s": MetricFormat("weighted JCT", "mean JCT weighted by priority", 0, 1, -1, True),
    "mean_wait_s": MetricFormat("mean wait", "from arrival to the first start", 0, 1, -1, True),
    "longest_wait_s": MetricFormat(
        "longest wait", "of any job of a seed, until its first start", 0, 1, -1, True
    ),
    "bounded_slowdown": MetricFormat(
        "slowdown", "mean of max(1, JCT / max(finish - first start, 10 s))", 2, 1, -1
    ),
    "throughput_jobs_per_h": MetricFormat("jobs/h", "all jobs / makespan", 1, 1, 1),
    "gpu_utilisation": MetricFormat(
        "GPU use\u00a0%",
        "busy share of the time that GPUs were up; a run starts and ends empty, so this stays "
        "below the load",
        1, 100, 1,
    ),
    "mean_queue": MetricFormat("waiting jobs", "time average of the waiting jobs", 1, 1, -1),
    "offered_load": MetricFormat("offered load", "arriving work relative to the capacity", 3),
    "restarts": MetricFormat(
        "restarts", "preemptions and losses to failures per job", 2, 1, -1
    ),
    "lost_gpu_s": MetricFormat(
        "lost\u00a0GPU-h", "work done and lost", 1, 1 / 3600, -1, hidden_at=0.0
    ),
    "killed_jobs": MetricFormat(
        "killed", "jobs ended by their time limit", 1, 1, -1, hidden_at=0.0
    ),
    "fragmentation": MetricFormat(
        "left over\u00a0%", "share of GPU time left over beside slices", 1, 100, -1, hidden_at=0.0
    ),
    "makespan_s": MetricFormat("makespan h", "last finish - first arrival", 2, 1 / 3600, -1),
    "cost": MetricFormat("cost", "busy GPU-hours, each at its model's price or worth", 1, 1, -1),
    "cost_per_job": MetricFormat("cost per job", "cost / jobs", 3, 1, -1),
    "energy_kwh": MetricFormat(
        "energy\u00a0kWh", "TDP while busy, 15 % of it while idle", 1, 1, -1
    ),
    "energy_per_job_kwh": MetricFormat("kWh per job", "energy / jobs", 3, 1, -1),
    "energy_delay": MetricFormat("energy × delay", "kWh × mean JCT in hours", 1, 1, -1),
    "jain_users": MetricFormat(
        "Jain, users", "fairness over users; 1 = all served equally", 3, 1, 1
    ),
    "jain_accounts": MetricFormat(
        "Jain, accounts", "fairness over accounts; 1 = all served equally", 3, 1, 1, hidden_at=1.0
    ),
    "finish_time_fairness": MetricFormat(
        "finish-time fairness",
        "95th percentile of JCT / time alone on an equal share of the cluster; at most 1: nobody "
        "would be better off with a share of their own",
        2, 1, -1,
    ),
    "gpu_imbalance": MetricFormat("GPU imbalance", "coefficient of variation of use over GPUs", 3),
    "model_imbalance": MetricFormat("model imbalance", "the same over GPU models", 3),
    "idle_gpu_s": MetricFormat(
        "idle GPU-h", "time GPUs were up with nothing on them", 1, 1 / 3600
    ),
    "reward": MetricFormat(
        "reward", "the paper's R per job: -(mean JCT + λ · idle GPU time / jobs)"
    ),
    "hyperscore": MetricFormat(
        "HyperScore", "the paper's score; compresses most policies to about 100", 2, 1, 1
    ),
}  # fmt: skip

SHOWN = (
    "p99_jct_s", "longest_wait_s", "mean_wait_s", "throughput_jobs_per_h", "gpu_utilisation",
    "restarts", "lost_gpu_s", "killed_jobs", "fragmentation", "cost", "energy_kwh", "jain_users",
    "jain_accounts", "finish_time_fairness", "hyperscore",
)  # fmt: skip


class _Cell(NamedTuple):
    text: str
    order: float | None  # sort key; None = last
    is_best: bool = False


_NOTHING = _Cell("", None)  # what the record does not have


class _Column(NamedTuple):
    """A column of the table with its cells."""

    heading: str
    about: str
    cells: list[_Cell]


def columns_of(result: Comparison, keys: tuple[str, ...]) -> list[str]:
    """Return the given keys without metrics that are missing or `hidden_at` for all policies."""
    rows = result.policies
    return [
        key
        for key in keys
        if key in rows[0].metrics
        and any(row.metrics[key].mean != METRICS[key].hidden_at for row in rows)
    ]


def heading(key: str, unit: TimeUnit) -> str:
    """Return the heading of a metric, with its unit."""
    column = METRICS[key]
    return f"{column.heading}\u00a0{unit.unit}" if column.is_time else column.heading


def text_of(row: Row, key: str, unit: TimeUnit) -> str:
    """Return the text of a policy's metric with its interval."""
    column, figure = METRICS[key], row.metrics[key]
    if column.is_time:
        return formatting.format_time(figure, unit)
    return formatting.format_estimate(figure, column.digits, column.factor)


def _metric(rows: Sequence[Row], key: str, unit: TimeUnit) -> _Column:
    """Return the column of a metric; the best policy is marked."""
    column = METRICS[key]
    values = [row.metrics[key].mean for row in rows if isinstance(row, PolicyRow)]
    best = min(values) if column.better < 0 else max(values)
    marked = column.better != 0 and len(set(values)) > 1
    cells = []
    for row in rows:
        if key not in row.metrics:
            cells.append(_NOTHING)
            continue
        value = row.metrics[key].mean
        is_best = marked and value == best and isinstance(row, PolicyRow)
        cells.append(_Cell(text_of(row, key, unit), value, is_best))
    return _Column(heading(key, unit), column.about, cells)


def _versus(rows: Sequence[Row], rival: Row, heading: str, about: str) -> _Column:
    cells = []
    for row in rows:
        if row.name == rival.name:
            cells.append(_Cell("–", 0.0))
        else:
            gap = formatting.percent_difference(row, rival)
            cells.append(_Cell(str(gap), gap.mean))
    return _Column(heading, about, cells)


def _verdict(row: Row, best: PolicyRow) -> _Cell:
    if isinstance(row, RecordedRow):
        return _NOTHING
    if row.name == best.name:
        return _Cell("best", -1.0, is_best=True)
    gap = formatting.percent_difference(row, best)
    if gap.is_settled:
        return _Cell("yes", 0.0)
    if gap.seeds is None:
        return _Cell("no", None)
    return _Cell(f"no, by {formatting.format_seeds(gap.seeds)} seeds", float(gap.seeds))


def _holm(row: Row, best: PolicyRow) -> _Cell:
    if isinstance(row, RecordedRow):
        return _NOTHING
    p = None if row.name == best.name else formatting.percent_difference(row, best).p
    return _Cell("–", None) if p is None else _Cell(formatting.format_p(p), p)


def _rows(result: Comparison, group: PolicyGroup) -> list[Row]:
    """Return the rows of a group's table: what happened, if known, and the policies."""
    return [*([result.recorded] if result.recorded else []), *group.rows]


def _columns(result: Comparison, group: PolicyGroup, unit: TimeUnit) -> list[_Column]:
    happened, best = result.recorded, group.best
    rows = _rows(result, group)
    columns = [_metric(rows, "mean_jct_s", unit)]
    if len(group.rows) > 1:
        versus = "mean JCT, paired seed by seed, with its 95 % interval"
        columns += [
            _versus(rows, best, f"vs {best.name}", versus),
            _Column(
                "p\u00a0(Holm)",
                "Wilcoxon signed-rank test against the best, corrected for the number of rivals",
                [_holm(row, best) for row in rows],
            ),
            _Column(
                "settled",
                "whether the interval excludes 0 and p < 0.05, where there is a p; otherwise how "
                "many seeds would be enough if the observed difference is the true one",
                [_verdict(row, best) for row in rows],
            ),
        ]
    by_name: dict[str, Row] = {r.name: r for r in result.policies if r.name != best.name}
    if happened is not None:
        by_name[happened.name] = happened
    for name in (RECORDED, *BASELINES):
        if name in by_name:
            rival = by_name[name]
            about = f"mean JCT against {rival.name}, paired seed by seed, with its 95 % interval"
            columns.append(_versus(rows, rival, f"vs {rival.name}", about))
    closed = [row.gap_closed if isinstance(row, PolicyRow) else None for row in rows]
    if any(figure is not None for figure in closed):
        cells = [
            _Cell("–", None)
            if figure is None
            else _Cell(formatting.format_estimate(figure, 0), figure.mean)
            for figure in closed
        ]
        about = (
            "share of the gap between min-min and the hindsight reference, which knows the future"
        )
        columns.append(_Column("gap closed\u00a0%", about, cells))
    columns += [_metric(rows, key, unit) for key in columns_of(result, SHOWN)]
    decision = [
        _Cell(f"{row.decision_us:,.1f}", row.decision_us)
        if isinstance(row, PolicyRow)
        else _NOTHING
        for row in rows
    ]
    about = "CPU time of a run / calls of decide, including the simulator's own work"
    return [*columns, _Column("µs per decision", about, decision)]


def _td(cell: _Cell) -> str:
    order = "" if cell.order is None else f' data-order="{cell.order:.9g}"'
    text = escape(cell.text)
    return f"<td{order}>{f'<b>{text}</b>' if cell.is_best else text}</td>"


def _th(column: _Column) -> str:
    return (
        f'<th scope="col" title="{escape(column.about)}"><button type="button">'
        f"{escape(column.heading)}</button></th>"
    )


def _html(rows: list[Row], best: PolicyRow, columns: list[_Column]) -> str:
    first = _Column("policy", "click a heading to sort", [])
    head = "".join(_th(column) for column in (first, *columns))
    lines = []
    for i, row in enumerate(rows):
        cells = "".join(_td(column.cells[i]) for column in columns)
        mark = ' class="best"' if row is best else ""
        about = "" if isinstance(row, PolicyRow) else " (what happened, not simulated)"
        lines.append(f'<tr{mark}><th scope="row">{escape(row.name)}{about}</th>{cells}</tr>')
    return (
        f'<div class="wide"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def tables(result: Comparison) -> list[tuple[str, str]]:
    """Return heading and HTML table of each group of policies (preemptive or not)."""
    unit, made = formatting.time_unit(result), []
    for group in formatting.groups(result):
        title = (
            "Policies that may preempt" if group.is_preemptive else "Policies that never preempt"
        )
        rows = _rows(result, group)
        made.append((title, _html(rows, group.best, _columns(result, group, unit))))
    return made


def definitions(result: Comparison) -> str:
    """Return an HTML list with the meaning of each metric."""
    items = [
        f"<dt>{escape(METRICS[key].heading)} <code>{escape(key)}</code></dt>"
        f"<dd>{escape(METRICS[key].about)}</dd>"
        for key in result.policies[0].metrics
        if key in METRICS
    ]
    return f"<dl>{''.join(items)}</dl>"
