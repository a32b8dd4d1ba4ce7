"""The table of a comparison in HTML: every policy with its figures and their intervals."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from adlro.evaluate.comparison import Comparison, Row
from adlro.evaluate.report import facts
from adlro.evaluate.report.facts import BARS, Group, Scale


class Column(NamedTuple):
    """A metric as people call it."""

    heading: str
    about: str
    digits: int = 0
    factor: float = 1.0
    better: int = 0  # -1 = less is better, 1 = more is, 0 = neither
    is_time: bool = False  # seconds, shown in the page's unit
    dull: float | None = None  # left out where every policy has this value


METRICS = {
    "mean_jct_s": Column("mean JCT", "mean completion time: finish - arrival", 0, 1, -1, True),
    "p50_jct_s": Column("median JCT", "half of the jobs take less", 0, 1, -1, True),
    "p95_jct_s": Column("p95 JCT", "5 % of the jobs take longer", 0, 1, -1, True),
    "p99_jct_s": Column("p99 JCT", "1 % of the jobs take longer", 0, 1, -1, True),
    "weighted_jct_s": Column("weighted JCT", "mean JCT weighted by priority", 0, 1, -1, True),
    "mean_wait_s": Column("mean wait", "from arrival to the first start", 0, 1, -1, True),
    "longest_wait_s": Column(
        "longest wait", "of any job of a seed, until its first start", 0, 1, -1, True
    ),
    "bounded_slowdown": Column(
        "slowdown", "mean of max(1, JCT / max(finish - first start, 10 s))", 2, 1, -1
    ),
    "throughput_jobs_per_h": Column("jobs/h", "all jobs / makespan", 1, 1, 1),
    "gpu_utilisation": Column(
        "GPU use\u00a0%",
        "busy share of the time that GPUs were up; a run starts and ends empty, so this stays "
        "below the load",
        1, 100, 1,
    ),
    "mean_queue": Column("waiting jobs", "time average of jobs that wait", 1, 1, -1),
    "offered_load": Column(
        "offered load", "work that arrived in a second, as a share of the capacity", 3
    ),
    "restarts": Column(
        "restarts", "mean over jobs of how often one was preempted or lost to a failure", 2, 1, -1
    ),
    "lost_gpu_s": Column(
        "lost\u00a0GPU-h", "work done and thrown away", 1, 1 / 3600, -1, dull=0.0
    ),
    "killed_jobs": Column("killed", "jobs ended by their time limit", 1, 1, -1, dull=0.0),
    "fragmentation": Column(
        "left over\u00a0%", "share of GPU time left over beside slices", 1, 100, -1, dull=0.0
    ),
    "makespan_s": Column("makespan h", "last finish - first arrival", 2, 1 / 3600, -1),
    "cost": Column("cost", "busy GPU-hours, each at its model's price or worth", 1, 1, -1),
    "cost_per_job": Column("cost a job", "cost / jobs", 3, 1, -1),
    "energy_kwh": Column("energy\u00a0kWh", "TDP while busy, 15 % of it while idle", 1, 1, -1),
    "energy_per_job_kwh": Column("kWh a job", "energy / jobs", 3, 1, -1),
    "energy_delay": Column("energy × delay", "kWh × mean JCT in hours", 1, 1, -1),
    "jain_users": Column("Jain, users", "fairness over users; 1 = all served alike", 3, 1, 1),
    "jain_accounts": Column(
        "Jain, accounts", "fairness over accounts; 1 = all served alike", 3, 1, 1, dull=1.0
    ),
    "finish_time_fairness": Column(
        "finish-time fairness",
        "95th percentile of JCT / time alone on an equal share of the cluster; up to 1 nobody "
        "would rather have a share of their own",
        2, 1, -1,
    ),
    "gpu_imbalance": Column("GPU imbalance", "coefficient of variation of use over GPUs", 3),
    "model_imbalance": Column("model imbalance", "the same over GPU models", 3),
    "idle_gpu_s": Column("idle GPU-h", "time that GPUs were up with nothing on them", 1, 1 / 3600),
    "reward": Column("reward", "the paper's R a job: -(mean JCT + λ · idle GPU time / jobs)"),
    "hyperscore": Column("HyperScore", "the paper's score; squeezes most policies to 100", 2, 1, 1),
}  # fmt: skip

SHOWN = (
    "p99_jct_s", "longest_wait_s", "mean_wait_s", "throughput_jobs_per_h", "gpu_utilisation",
    "restarts", "lost_gpu_s", "killed_jobs", "fragmentation", "cost", "energy_kwh", "jain_users",
    "jain_accounts", "finish_time_fairness", "hyperscore",
)  # fmt: skip


class _Cell(NamedTuple):
    text: str
    order: float | None  # what it is sorted by; None = last
    is_best: bool = False


class _Part(NamedTuple):
    """A column of the table, ready to be written."""

    heading: str
    about: str
    cells: list[_Cell]


def columns_of(result: Comparison, keys: tuple[str, ...]) -> list[str]:
    """The metrics among the keys that this comparison has and that say something."""
    rows = result.policies
    return [
        key
        for key in keys
        if key in rows[0].metrics
        and any(row.metrics[key].mean != METRICS[key].dull for row in rows)
    ]


def heading(key: str, unit: Scale) -> str:
    """What people call a metric, with its unit."""
    column = METRICS[key]
    return f"{column.heading}\u00a0{unit.unit}" if column.is_time else column.heading


def text_of(row: Row, key: str, unit: Scale) -> str:
    """A metric with its interval."""
    column, figure = METRICS[key], row.metrics[key]
    if column.is_time:
        return facts.in_time(figure, unit)
    return facts.with_half(figure, column.digits, column.factor)


def _metric(rows: list[Row], key: str, unit: Scale) -> _Part:
    column = METRICS[key]
    values = [row.metrics[key].mean for row in rows]
    best = min(values) if column.better < 0 else max(values)
    marked = column.better != 0 and len(set(values)) > 1
    cells = [
        _Cell(text_of(row, key, unit), value, marked and value == best)
        for row, value in zip(rows, values, strict=True)
    ]
    return _Part(heading(key, unit), column.about, cells)


def _versus(rows: list[Row], rival: Row, heading: str, about: str) -> _Part:
    cells = []
    for row in rows:
        if row.name == rival.name:
            cells.append(_Cell("–", 0.0))
        else:
            gap = facts.gap(row, rival)
            cells.append(_Cell(str(gap), gap.mean))
    return _Part(heading, about, cells)


def _verdict(row: Row, best: Row) -> _Cell:
    if row.name == best.name:
        return _Cell("best", -1.0, is_best=True)
    gap = facts.gap(row, best)
    if gap.is_settled:
        return _Cell("yes", 0.0)
    if gap.seeds is None:
        return _Cell("no", None)
    return _Cell(f"no, by {facts.seeds(gap.seeds)} seeds", float(gap.seeds))


def _holm(row: Row, best: Row) -> _Cell:
    p = None if row.name == best.name else facts.gap(row, best).p
    return _Cell("–", None) if p is None else _Cell(facts.probability(p), p)


def _parts(result: Comparison, group: Group, unit: Scale) -> list[_Part]:
    rows, best = group.rows, group.best
    parts = [_metric(rows, "mean_jct_s", unit)]
    if len(rows) > 1:
        versus = "mean JCT, paired seed by seed, with its 95 % interval"
        parts += [
            _versus(rows, best, f"vs {best.name}", versus),
            _Part(
                "p\u00a0(Holm)",
                "Wilcoxon signed-rank test against the best, corrected for the number of rivals",
                [_holm(row, best) for row in rows],
            ),
            _Part(
                "settled",
                "whether the interval leaves 0 out and p < 0.05 where there is a p; else how many "
                "seeds would do, if the difference is as seen",
                [_verdict(row, best) for row in rows],
            ),
        ]
    by_name = {row.name: row for row in result.policies if row.name != best.name}
    for name in BARS:
        if name in by_name:
            rival = by_name[name]
            about = f"mean JCT against {rival.name}, paired seed by seed, with its 95 % interval"
            parts.append(_versus(rows, rival, f"vs {rival.name}", about))
    closed = [row.gap_closed for row in rows]
    if any(figure is not None for figure in closed):
        cells = [
            _Cell("–", None) if figure is None else _Cell(facts.with_half(figure, 0), figure.mean)
            for figure in closed
        ]
        about = "share of the way from min-min to the hindsight reference that knows the future"
        parts.append(_Part("gap closed\u00a0%", about, cells))
    parts += [_metric(rows, key, unit) for key in columns_of(result, SHOWN)]
    decision = [_Cell(f"{row.decision_us:,.1f}", row.decision_us) for row in rows]
    about = "CPU time of a run / calls of decide: the simulator's own work is in it"
    return [*parts, _Part("µs a decision", about, decision)]


def _td(cell: _Cell) -> str:
    order = "" if cell.order is None else f' data-order="{cell.order:.9g}"'
    text = escape(cell.text)
    return f"<td{order}>{f'<b>{text}</b>' if cell.is_best else text}</td>"


def _th(part: _Part) -> str:
    return (
        f'<th scope="col" title="{escape(part.about)}"><button type="button">'
        f"{escape(part.heading)}</button></th>"
    )


def _html(names: list[str], parts: list[_Part]) -> str:
    first = _Part("policy", "click a heading to sort", [])
    head = "".join(_th(part) for part in (first, *parts))
    lines = []
    for i, name in enumerate(names):
        cells = "".join(_td(part.cells[i]) for part in parts)
        mark = ' class="best"' if i == 0 else ""
        lines.append(f'<tr{mark}><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        f'<div class="wide"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def tables(result: Comparison) -> list[tuple[str, str]]:
    """Heading and HTML of the table of each group."""
    unit, made = facts.scale(result), []
    for group in facts.groups(result):
        title = (
            "Policies that may preempt" if group.is_preemptive else "Policies that never preempt"
        )
        names = [row.name for row in group.rows]
        made.append((title, _html(names, _parts(result, group, unit))))
    return made


def definitions(result: Comparison) -> str:
    """What each metric of the comparison means, as a list in HTML."""
    told = [
        f"<dt>{escape(METRICS[key].heading)} <code>{escape(key)}</code></dt>"
        f"<dd>{escape(METRICS[key].about)}</dd>"
        for key in result.policies[0].metrics
        if key in METRICS
    ]
    return f"<dl>{''.join(told)}</dl>"
