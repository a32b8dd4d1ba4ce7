"""Computes and formats the figures of a history for `adlro trace info`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.model.history import History
    from adlro.workloads.recorded import Distribution, Group, Summary

_MOST_GROUPS = 8  # rows of a table; the rest is summed up
_HEADINGS = {
    "partition": "partition",
    "account": "account",
    "gpu_type": "ran on",
    "gang": "gang size",
}


class Info(NamedTuple):
    """What `trace info` shows of a history."""

    facts: dict[str, Any]  # all figures, by name
    recorded: Summary


def info(history: History, gpus: int | None) -> Info:
    """Return all figures of `trace info`; gpus: size of the cluster, None = as the history says."""
    import numpy as np

    from adlro.workloads import recorded, summary

    jobs = history.without_lost()
    submit = jobs.submit_s[~np.isnan(jobs.submit_s)]
    header = history.header
    facts: dict[str, Any] = {
        "file": header.source,
        "format": header.format,
        "jobs": jobs.jobs,
        "lost_runs": history.rows - jobs.rows,
        "first_submission": summary.date(history, submit.min() if len(submit) else np.nan),
        "last_submission": summary.date(history, submit.max() if len(submit) else np.nan),
        "span_days": float(np.ptp(submit)) / 86_400 if len(submit) else None,
    }
    unit, amount = summary.demand(jobs)
    for name, values in ((f"{unit}_asked", amount), ("run_s", jobs.run_s)):
        found = summary.spread(values)
        facts[name] = None if found is None else found._asdict()
    busy, total = summary.in_use(history), 0.0
    if busy is not None:
        size = summary.size_of(history, busy, gpus)
        facts["in_use"] = busy._asdict()
        facts["size"] = size._asdict()
        facts["load"] = busy.mean / size.amount if size.amount else None
        total = size.amount
    happened = recorded.summarise(history, total)
    facts["recorded"] = {
        **_group_facts(happened.whole),
        "early_jobs": happened.early,
        "jobs_without_gpus": happened.without_gpus,
        "by": {key: [_group_facts(one) for one in happened.by[key]] for key in happened.by},
    }
    for name in ("user", "account", "queue", "gpu_model", "status"):
        facts[f"distinct_{name}"] = len(history.tables[name]) or None
    facts["missing"] = summary.missing(jobs)
    facts["defects"] = header.defects
    facts["notes"] = list(header.notes)
    return Info(facts, happened)


def _group_facts(group: Group) -> dict[str, Any]:
    def facts_of(found: Distribution | None) -> dict[str, Any] | None:
        return None if found is None else found._asdict()

    return group._asdict() | {"wait_s": facts_of(group.wait_s), "jct_s": facts_of(group.jct_s)}


def _number(value: float) -> str:
    """Format a number: whole from 1,000 on, else with four significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _spread_text(found: dict[str, float] | None) -> str:
    if found is None:
        return "unknown"
    names = (("median", "median"), ("mean", "mean"), ("p95", "95 %"), ("most", "most"))
    return ", ".join(f"{label} {_number(found[key])}" for key, label in names)


def lines(found: dict[str, Any], history: History) -> list[tuple[str, str]]:
    """Return the label and the text of each line of `trace info`."""
    from math import isnan

    from adlro.workloads import summary

    unit, _ = summary.demand(history)
    span = found["span_days"]
    shown = [
        ("file", f"{found['file']} ({found['format']})"),
        ("jobs", f"{found['jobs']:,}"),
        ("submitted", f"{found['first_submission']} to {found['last_submission']}"),
        ("span", "unknown" if span is None else f"{span:,.1f} days"),
        (f"{unit} asked", _spread_text(found[f"{unit}_asked"])),
        ("run time, s", _spread_text(found["run_s"])),
    ]
    if found["lost_runs"]:
        text = f"{found['lost_runs']:,} earlier runs of requeued jobs: they count as use of GPUs"
        shown.append(("lost runs", text))
    if "in_use" in found:
        busy, size = found["in_use"], found["size"]
        beginning = "" if busy["by"] == "start" else ", as if each job had started at once"
        mean = "unknown" if isnan(busy["mean"]) else f"{busy['mean']:,.1f}"
        load = found["load"]
        of = f"of {size['amount']:,.0f} {unit} ({size['origin']})"
        if load is not None and load > 1:
            of += "; " + summary.OVERLOAD
        shown += [
            (f"{unit} in use", f"mean {mean}, peak {busy['peak']:,.0f}{beginning}"),
            ("load", "unknown" if load is None or isnan(load) else f"{load:.3f} {of}"),
        ]
    shown += [("recorded", _recorded_text(found["recorded"]))]
    counted = [
        f"{count:,} {name}{'s' if count > 1 else ''}"
        for name in ("user", "account", "queue")
        if (count := found[f"distinct_{name}"])
    ]
    shown += [("told apart", ", ".join(counted) or "no users, accounts or queues")]
    gone = [
        name if count == history.jobs else f"{name} ({count:,})"
        for name, count in found["missing"].items()
    ]
    shown += [("missing", ", ".join(gone) or "nothing")]
    defects = [f"{kind}: {count:,}" for kind, count in found["defects"].items()]
    shown += [("defects", "; ".join(defects) or "none found")]
    shown += [("note", note) for note in found["notes"]]
    return shown


def _recorded_text(found: dict[str, Any]) -> str:
    """Return what is said of the recorded waits, and of jobs that have none."""
    told = found["jobs"] - found["without_start"]
    if not told:
        return "unknown: no job has a recorded start and end"
    mean_wait, mean_jct = found["wait_s"]["mean"], found["jct_s"]["mean"]
    text = f"mean wait {_number(mean_wait)} s, mean JCT {_number(mean_jct)} s over {told:,} jobs"
    if found["without_start"]:
        text += f"; {found['without_start']:,} without a recorded start are not counted"
    if found["early_jobs"]:
        text += f"; {found['early_jobs']:,} started before they could: their wait counts as 0"
    return text


def recorded_tables(happened: Summary) -> list[Table]:
    """Return a table of recorded waits and completion times for each grouping of the jobs.

    The groups with the most GPU-hours are shown, the others are summed up. There is no table where
    no job has a recorded start.
    """
    from adlro.workloads import recorded

    if happened.whole.wait_s is None:
        return []
    tables = []
    for key, groups in happened.by.items():
        shown, rest = groups[:_MOST_GROUPS], groups[_MOST_GROUPS:]
        if len(rest) == 1:
            shown, rest = groups, []
        if rest:
            shown = [*shown, recorded.merged(rest, f"{len(rest):,} others")]
        tables.append(_recorded_table(_HEADINGS[key], shown))
    return tables


def _recorded_table(heading: str, groups: list[Group]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.errors import printable

    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    table.add_column(heading, overflow="fold")
    columns = ("jobs", "GPU-h", "use %", "mean\nwait s", "p50", "p99", "mean\nJCT s", "p50", "p99")
    for name in columns:
        table.add_column(name, justify="right")
    for group in groups:
        use = "" if group.use is None else f"{100 * group.use:.1f}"
        cells = (f"{group.jobs:,}", _number(group.gpu_hours), use)
        times = (*_time_cells(group.wait_s), *_time_cells(group.jct_s))
        table.add_row(printable(group.name), *cells, *times)
    return table


def _time_cells(found: Distribution | None) -> tuple[str, str, str]:
    if found is None:
        return ("", "", "")
    mean, p50, p99 = ("" if value is None else _number(value) for value in found)
    return (mean, p50, p99)
