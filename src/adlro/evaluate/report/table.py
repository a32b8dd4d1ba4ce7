"""The HTML table of a comparison: every policy with its metrics and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from adlro.evaluate.comparison import Comparison, PolicyRow
from adlro.evaluate.pooled import RIVALS
from adlro.evaluate.report import formatting, html_table
from adlro.evaluate.report.formatting import BASELINES, PolicyGroup, TimeUnit
from adlro.evaluate.report.frame import details
from adlro.evaluate.report.html_table import NOTHING, Cell, Column
from adlro.evaluate.rows import RecordedRow, Row
from adlro.evaluate.stats import Estimate


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

_MAIN = ("mean_wait_s", "p99_jct_s", "longest_wait_s", "throughput_jobs_per_h", "gpu_utilisation")
_FURTHER = (
    "p50_jct_s", "p95_jct_s", "mean_queue", "makespan_s", "restarts", "lost_gpu_s", "killed_jobs",
    "fragmentation", "cost", "energy_kwh",
)  # fmt: skip
_RESEARCH = (
    "bounded_slowdown", "jain_users", "jain_accounts", "finish_time_fairness", "gpu_imbalance",
    "energy_delay", "hyperscore",
)  # fmt: skip


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


def _metric(rows: Sequence[Row], key: str, unit: TimeUnit) -> Column:
    """Return the column of a metric; the best policy is marked."""
    column = METRICS[key]
    values = [row.metrics[key].mean for row in rows if isinstance(row, PolicyRow)]
    best = min(values) if column.better < 0 else max(values)
    marked = column.better != 0 and len(set(values)) > 1
    cells = []
    for row in rows:
        if key not in row.metrics:
            cells.append(NOTHING)
            continue
        value = row.metrics[key].mean
        is_best = marked and value == best and isinstance(row, PolicyRow)
        cells.append(Cell(text_of(row, key, unit), value, is_best))
    return Column(heading(key, unit), column.about, cells)


def _versus(rows: Sequence[Row], rival: Row, heading: str, about: str) -> Column:
    cells = []
    for row in rows:
        if row.name == rival.name:
            cells.append(Cell("–", 0.0))
        else:
            gap = formatting.percent_difference(row, rival)
            cells.append(Cell(str(gap), gap.mean))
    return Column(heading, about, cells)


def _verdict(row: Row, best: PolicyRow) -> Cell:
    if isinstance(row, RecordedRow):
        return NOTHING
    if row.name == best.name:
        return Cell("best", -1.0, is_best=True)
    gap = formatting.percent_difference(row, best)
    if gap.is_settled:
        return Cell("yes", 0.0)
    if gap.seeds is None:
        return Cell("no", None)
    return Cell(f"no, by {formatting.format_seeds(gap.seeds)} seeds", float(gap.seeds))


def _holm(row: Row, best: PolicyRow) -> Cell:
    if isinstance(row, RecordedRow):
        return NOTHING
    p = None if row.name == best.name else formatting.percent_difference(row, best).p
    return Cell("–", None) if p is None else Cell(formatting.format_p(p), p)


def _rows(result: Comparison, group: PolicyGroup) -> list[Row]:
    """Return the rows of a group's table: what happened, if known, and the policies."""
    return [*([result.recorded] if result.recorded else []), *group.rows]


def _columns(result: Comparison, group: PolicyGroup, unit: TimeUnit) -> list[Column]:
    """Return the columns that matter most, few enough to fit on a screen."""
    best, rows = group.best, _rows(result, group)
    columns = [_metric(rows, "mean_jct_s", unit)]
    if len(group.rows) > 1:
        versus = "mean JCT, paired seed by seed, with its 95 % interval"
        columns += [
            _versus(rows, best, f"vs {best.name}", versus),
            Column(
                "settled",
                "whether the interval excludes 0 and p < 0.05, where there is a p; otherwise how "
                "many seeds would be enough if the observed difference is the true one",
                [_verdict(row, best) for row in rows],
            ),
        ]
    if result.recorded is not None:
        columns.append(_against(rows, result.recorded))
    return columns + [_metric(rows, key, unit) for key in columns_of(result, _MAIN)]


def _against(rows: Sequence[Row], rival: Row) -> Column:
    about = f"mean JCT against {rival.name}, paired seed by seed, with its 95 % interval"
    return _versus(rows, rival, f"vs {rival.name}", about)


def _further(result: Comparison, group: PolicyGroup, unit: TimeUnit) -> list[Column]:
    rows, best = _rows(result, group), group.best
    rivals = {row.name: row for row in result.policies if row.name != best.name}
    columns = [_against(rows, rivals[name]) for name in BASELINES if name in rivals]
    columns += _pooled_columns(rows)
    return columns + [_metric(rows, key, unit) for key in columns_of(result, _FURTHER)]


def _pooled_columns(rows: Sequence[Row]) -> list[Column]:
    """Return the ratios to the fixed rivals, pooled over the windows of a history, if any."""
    pooled = [row.pooled if isinstance(row, PolicyRow) else {} for row in rows]
    columns = []
    for rival in RIVALS:
        found = [own.get(rival) for own in pooled]
        if not any(found):
            continue
        about = (
            f"mean JCT against {rival}: geometric mean of the windows' ratios, every window alike, "
            "with the 95 % interval over windows"
        )
        shown = [NOTHING if one is None else Cell(str(one), one.mean_pct) for one in found]
        worst = [
            NOTHING if one is None else Cell(f"{one.worst_pct:+.0f} %", one.worst_pct)
            for one in found
        ]
        columns.append(Column(f"pooled vs {rival}", about, shown))
        columns.append(Column("worst window", f"mean JCT against {rival}", worst))
    return columns


def _reference_column(
    heading: str, about: str, found: Sequence[Estimate | None], digits: int
) -> list[Column]:
    """Return a column of figures against a reference; none if all are unknown."""
    if all(figure is None for figure in found):
        return []
    cells = [
        Cell("–", None)
        if figure is None
        else Cell(formatting.format_estimate(figure, digits), figure.mean)
        for figure in found
    ]
    return [Column(heading, about, cells)]


def _against_references(rows: Sequence[Row]) -> list[Column]:
    closed = [row.gap_closed if isinstance(row, PolicyRow) else None for row in rows]
    times = [row.times_lower_bound if isinstance(row, PolicyRow) else None for row in rows]
    gap = "share of the gap between min-min and a look-ahead with foresight, which is no bound"
    bound = "mean JCT / a lower bound on the mean JCT of any schedule of the same jobs"
    return [
        *_reference_column("gap closed\u00a0%", gap, closed, 0),
        *_reference_column("×\u00a0lower bound", bound, times, 2),
    ]


def _decision(row: Row) -> Cell:
    if not isinstance(row, PolicyRow):
        return NOTHING
    return Cell(f"{row.decision_us:,.1f}", row.decision_us)


def _for_research(result: Comparison, group: PolicyGroup, unit: TimeUnit) -> list[Column]:
    rows = _rows(result, group)
    test = "Wilcoxon signed-rank test against the best, corrected for the number of rivals"
    cpu = "CPU time of a run / calls of decide, including the simulator's own work"
    tested = [Column("p\u00a0(Holm)", test, [_holm(row, group.best) for row in rows])]
    return [
        *(tested if len(group.rows) > 1 else []),
        *_against_references(rows),
        *(_metric(rows, key, unit) for key in columns_of(result, _RESEARCH)),
        Column("µs per decision", cpu, [_decision(row) for row in rows]),
    ]


def _html(result: Comparison, group: PolicyGroup, columns: list[Column]) -> str:
    names = [
        html_table.Row(
            row.name
            if isinstance(row, PolicyRow)
            else f"{row.name} (what happened, not simulated)",
            row is group.best,
        )
        for row in _rows(result, group)
    ]
    return html_table.render("policy", names, columns)


def _title(group: PolicyGroup) -> str:
    return "Policies that may preempt" if group.is_preemptive else "Policies that never preempt"


def tables(result: Comparison) -> list[tuple[str, str]]:
    """Return heading and HTML of each group of policies (preemptive or not).

    The HTML has a table with the columns that matter most, and further ones that are folded away.
    """
    unit, made = formatting.time_unit(result), []
    for group in formatting.groups(result):
        further = _html(result, group, _further(result, group, unit))
        text = _html(result, group, _columns(result, group, unit))
        made.append((_title(group), text + details("More columns", further)))
    return made


def research_tables(result: Comparison) -> list[tuple[str, str]]:
    """Return heading and HTML table of each group of policies, with metrics for researchers."""
    unit = formatting.time_unit(result)
    return [
        (_title(group), _html(result, group, _for_research(result, group, unit)))
        for group in formatting.groups(result)
    ]


def definitions(result: Comparison) -> str:
    """Return an HTML list with the meaning of each metric."""
    items = [
        f"<dt>{escape(METRICS[key].heading)} <code>{escape(key)}</code></dt>"
        f"<dd>{escape(METRICS[key].about)}</dd>"
        for key in result.policies[0].metrics
        if key in METRICS
    ]
    return f"<dl>{''.join(items)}</dl>"
