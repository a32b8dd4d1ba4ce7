"""Computes and formats the figures of a history for `adlro trace info`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adlro.model.history import History


def facts(history: History, gpus: int | None) -> dict[str, Any]:
    """Return all figures of `trace info`, by name."""
    import numpy as np

    from adlro.workloads import summary

    submit = history.submit_s[~np.isnan(history.submit_s)]
    header = history.header
    facts: dict[str, Any] = {
        "file": header.source,
        "format": header.format,
        "jobs": history.jobs,
        "first_submission": summary.date(history, submit.min() if len(submit) else np.nan),
        "last_submission": summary.date(history, submit.max() if len(submit) else np.nan),
        "span_days": float(np.ptp(submit)) / 86_400 if len(submit) else None,
    }
    unit, amount = summary.demand(history)
    for name, values in ((f"{unit}_asked", amount), ("run_s", history.run_s)):
        found = summary.spread(values)
        facts[name] = None if found is None else found._asdict()
    busy = summary.in_use(history)
    if busy is not None:
        size = summary.size_of(history, busy, gpus)
        facts["in_use"] = busy._asdict()
        facts["size"] = size._asdict()
        facts["load"] = busy.mean / size.amount if size.amount else None
    for name in ("user", "account", "queue", "gpu_model", "status"):
        facts[f"distinct_{name}"] = len(history.tables[name]) or None
    facts["missing"] = summary.missing(history)
    facts["defects"] = header.defects
    facts["notes"] = list(header.notes)
    return facts


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
    if "in_use" in found:
        busy, size = found["in_use"], found["size"]
        beginning = "" if busy["by"] == "start" else ", as if each job had started at once"
        mean = "unknown" if isnan(busy["mean"]) else f"{busy['mean']:,.1f}"
        load = found["load"]
        of = f"of {size['amount']:,.0f} {unit} ({size['origin']})"
        shown += [
            (f"{unit} in use", f"mean {mean}, peak {busy['peak']:,.0f}{beginning}"),
            ("load", "unknown" if load is None or isnan(load) else f"{load:.3f} {of}"),
        ]
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
