"""Draws the Gantt chart of a schedule (jobs on GPUs over time) as one offline HTML file."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from adlro.evaluate.report.naming import Colouring, Naming, by_type
from adlro.evaluate.report.runs import lanes
from adlro.evaluate.report.schedule import HOUR, Limits, Schedule, select
from adlro.model.state import FAILURE, FINISH, PREEMPTION, WHOLE, Floats, Mask, Records
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b")
_OTHERS = "#9a9a9a"
_INK = "#707070"  # visible on white and on black
_LABEL = 0.15  # share of the width that a label takes up
_ROW = 0.84  # share of a row's height that its bars fill
_ENDS = {FINISH: "finished", PREEMPTION: "preempted", FAILURE: "lost to a failure"}


class _Bars(NamedTuple):
    """Where the bars of S spans are drawn, and their hover texts."""

    middle: Floats  # [S] on the y axis
    height: Floats  # [S]
    texts: NDArray[np.object_]  # [S]


def _gpu_names(chart: Schedule, nodes: list[str]) -> list[str]:
    """Return the escaped names of the GPUs with a row: node/GPU (model)."""
    layout, names = chart.layout, []
    for g in chart.gpus:
        n = layout.gpus["node"][g]
        model = layout.models[layout.pools["model"][layout.nodes["pool"][n]]].name
        place = g - layout.nodes["first_gpu"][n]
        names.append(f"{nodes[n]}/{place} ({html.escape(model)})")
    return names


def _size(job: Records) -> str:
    if job["share"] < WHOLE:
        return f"{job['share'] / WHOLE:g} of a GPU"
    return f"{job['gpus']} GPU{'s' if job['gpus'] > 1 else ''}"


def _brief_texts(chart: Schedule, naming: Naming) -> NDArray[np.object_]:
    """Return a short hover text for each span [S]: job, its facts, size, wait and run time."""
    texts = []
    for span, waited in zip(chart.spans, chart.runs.waited, strict=True):
        named, size = naming.job(span["job"]), _size(chart.jobs[span["job"]])
        between = "<br>" if naming.is_recorded else " · "
        texts.append(
            f"{named.title}{between}{named.facts} · {size}<br>waited {naming.duration(waited)}, "
            f"ran {naming.duration(span['end'] - span['start'])}"
        )
    return np.array(texts, object)


def _texts(chart: Schedule, naming: Naming, names: list[str]) -> NDArray[np.object_]:
    """Return the hover text of each span [S]."""
    if chart.is_brief:
        return _brief_texts(chart, naming)
    texts, duration = [], naming.duration
    for i, span in enumerate(chart.spans):
        j, number = span["job"], int(chart.runs.number[i])
        job, outcome, named = chart.jobs[j], chart.outcome[j], naming.job(j)
        arrived = duration(job["arrival"] - chart.first)
        begun = "since its last run" if number else f"from {arrived}"
        lines = [
            f"<b>{named.title}</b> · {named.facts} · {_size(job)}",
            f"waited {duration(chart.runs.waited[i])} {begun}, "
            f"ran {duration(span['end'] - span['start'])}",
        ]
        if outcome["restarts"]:
            lines.append(f"run {number + 1} of {outcome['restarts'] + 1}")
        if chart.runs.restoring[i] > 0:
            restoring = duration(chart.runs.restoring[i])
            lines[-1] += f", the first {restoring} restoring a checkpoint"
        ended = "killed by its limit" if _is_killed(span, outcome) else _ENDS[int(span["why"])]
        lines.append(f"{ended} at {chart.hours(span['end']):,.3f} h")
        user = "" if naming.is_recorded else f" · user {job['user']}"
        lines.append(f"priority {job['priority']:.2f}{user}")
        lines.append(names[chart.rows(span["gpu"])])
        texts.append("<br>".join(lines))
    return np.array(texts, object)


def _is_killed(span: Records, outcome: Records) -> bool:
    return bool(outcome["killed"] and span["why"] == FINISH)


def _lighter(colour: str) -> str:
    """Mix a colour with two thirds of white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{(part + 2 * 255) // 3:02x}" for part in parts)


def _add_runs(figure: go.Figure, chart: Schedule, naming: Naming, names: list[str]) -> None:
    """Add a bar for each span in the colours of all colourings, and marks where runs were cut.

    With several colourings, all traces of one have its choice as `meta`; the hover texts, which
    are the same for all, belong to bars on top that are not seen.
    """
    spans = chart.spans
    low, height = lanes(spans)
    middle = chart.rows(spans["gpu"]) + _ROW * (low + height / 2 - 0.5)
    bars = _Bars(middle, _ROW * height, _texts(chart, naming, names))
    is_only = len(naming.colourings) == 1
    for colouring in naming.colourings:
        hover = {} if is_only else {"hoverinfo": "skip", "meta": colouring.choice}
        _add_coloured(figure, chart, colouring, bars, hover)
    if not is_only:
        whole = np.ones(len(spans), np.bool_)
        look = {"opacity": 0, "showlegend": False, "name": "runs"}
        _add_bars(figure, chart, bars, whole, {**look, **_hover(bars, whole)})
    for why, label, marker in (
        (PREEMPTION, "preempted", {"symbol": "line-ns", "line": {"width": 3, "color": _INK}}),
        (FAILURE, "lost to a failure", {"symbol": "x", "color": "#d00000"}),
    ):
        own = spans["why"] == why
        ends = chart.hours(spans["end"][own])
        _add_marks(figure, label, ends, middle[own], bars.texts[own], marker)


def _add_coloured(
    figure: go.Figure,
    chart: Schedule,
    colouring: Colouring,
    bars: _Bars,
    hover: Mapping[str, object],
) -> None:
    """Add the bars in the colours of one colouring; hatched if the run was cut short.

    hover: attributes of the traces in place of their hover texts.
    """
    group, is_cut = colouring.of_job[chart.spans["job"]], chart.spans["why"] != FINISH
    last = len(colouring.names) - 1
    for k, name in enumerate(colouring.names):
        colour = _COLOURS[k % len(_COLOURS)]
        if colouring.has_others and k == last:
            colour = _OTHERS
        pattern = {"shape": "/", "fgcolor": colour, "bgcolor": _lighter(colour), "size": 5}
        for own, marker in (
            ((group == k) & ~is_cut, {"color": colour}),
            ((group == k) & is_cut, {"color": colour, "pattern": pattern}),
        ):
            if "pattern" in marker and not own.any():
                continue
            look = {
                "name": name,
                "legendgroup": f"{colouring.choice} {k}",
                "showlegend": "pattern" not in marker,
                "marker": {**marker, "line": {"color": "white", "width": 0.5}},
            }
            _add_bars(figure, chart, bars, own, {**look, **(hover or _hover(bars, own))})


def _hover(bars: _Bars, own: Mask) -> dict[str, object]:
    return {"customdata": bars.texts[own], "hovertemplate": "%{customdata}<extra></extra>"}


def _add_bars(
    figure: go.Figure, chart: Schedule, bars: _Bars, own: Mask, look: Mapping[str, object]
) -> None:
    """Add one trace with the bars of the spans in the mask `own` [S]."""
    spans = chart.spans[own]
    figure.add_bar(
        orientation="h",
        base=chart.hours(spans["start"]),
        x=(spans["end"] - spans["start"]) / HOUR,
        y=bars.middle[own],
        width=bars.height[own],
        **look,
    )


def _add_marks(
    figure: go.Figure,
    name: str,
    x: Floats,
    y: Floats,
    texts: NDArray[np.object_],
    marker: Mapping[str, object],
) -> None:
    """Add small symbols with a legend entry, unless there is nothing to mark."""
    if len(x) > 0:
        figure.add_scatter(
            name=name,
            x=x,
            y=y,
            mode="markers",
            marker={"size": 8, "line": {"width": 0.5, "color": "white"}, **marker},
            customdata=texts,
            hovertemplate="%{customdata}<extra></extra>",
        )


def _add_downtime(figure: go.Figure, chart: Schedule, named: list[str]) -> None:
    """Add a grey bar over all GPUs of a node while it is down."""
    down, nodes = chart.down, chart.layout.nodes
    if len(down.node) == 0:
        return
    texts = [
        f"<b>{named[n]} down</b> ({'planned' if planned else 'failure'})"
        f"<br>{chart.hours(start):,.3f} h to {chart.hours(end):,.3f} h"
        for n, start, end, planned in zip(*down, strict=True)
    ]
    figure.add_bar(
        name="node down",
        orientation="h",
        base=chart.hours(down.start),
        x=(down.end - down.start) / HOUR,
        y=chart.rows(nodes["first_gpu"][down.node]) + (nodes["gpus"][down.node] - 1) / 2,
        width=nodes["gpus"][down.node].astype(np.float64),
        customdata=np.array(texts, object),
        hovertemplate="%{customdata}<extra></extra>",
        marker={"color": "#d4d4d4", "line": {"color": "#a0a0a0", "width": 0.5}},
    )


def _add_speed_changes(figure: go.Figure, chart: Schedule, names: list[str]) -> None:
    """Mark each change of a GPU's speed: triangle down = slower than before, up = faster."""
    changes = chart.changes[chart.changes["gpu"] >= 0]
    before: dict[int, float] = {}
    slower, texts = np.zeros(len(changes), np.bool_), []
    x = chart.hours(np.maximum(changes["time"], chart.first))
    for i, change in enumerate(changes):
        g, speed = int(change["gpu"]), float(change["value"])
        slower[i] = speed < before.get(g, 1.0)
        before[g] = speed
        heat = f", {change['heat']:+g} °C" if change["heat"] else ""
        texts.append(
            f"<b>{names[chart.rows(change['gpu'])]}</b><br>speed {speed:g}{heat} from {x[i]:,.3f} h"
        )
    y, shown = chart.rows(changes["gpu"]).astype(np.float64), np.array(texts, object)
    for own, label, symbol in (
        (slower, "GPU slower", "triangle-down"),
        (~slower, "GPU faster", "triangle-up"),
    ):
        look = {"symbol": symbol, "color": "#ffd400", "line": {"width": 1, "color": _INK}}
        _add_marks(figure, label, x[own], y[own], shown[own], look)


def _add_updates(figure: go.Figure, chart: Schedule) -> None:
    """Add a dotted line at each time when a job type changes its speed on a GPU model."""
    updates = chart.changes[chart.changes["gpu"] < 0]
    if len(updates) == 0:
        return
    hours = chart.hours(np.maximum(updates["time"], chart.first))
    models = [html.escape(chart.layout.models[m].name) for m in updates["model"]]
    texts = [
        f"{chart.types[update['type']]} on {model}: speed {update['value']:g}"
        for update, model in zip(updates, models, strict=True)
    ]
    bottom = len(chart.gpus) - 0.5
    figure.add_scatter(
        name="type on a model changes speed",
        x=np.column_stack((hours, hours, np.full(len(hours), np.nan))).ravel(),
        y=np.tile([-0.5, bottom, np.nan], len(hours)),
        customdata=np.repeat(np.array(texts, object), 3),
        hovertemplate="%{customdata}<extra></extra>",
        mode="lines",
        line={"dash": "dot", "color": _INK, "width": 1.5},
    )
    far = -np.inf  # overlapping labels are left out; hovering shows them
    for at, text in zip(hours.tolist(), texts, strict=True):
        if at - far >= _LABEL * (chart.until - chart.first) / HOUR:
            far = at
            figure.add_annotation(
                x=at, y=1, yref="paper", yanchor="bottom", text=text, showarrow=False,
                font={"size": 11},
            )  # fmt: skip


def _add_node_lines(figure: go.Figure, chart: Schedule) -> None:
    """Add a thin line between the GPUs of adjacent nodes."""
    between = np.flatnonzero(np.diff(chart.layout.gpus["node"][chart.gpus])) + 0.5
    for y in between:
        figure.add_shape(
            type="line", xref="paper", x0=0, x1=1, y0=y, y1=y, layer="below",
            line={"color": "#c0c0c0", "width": 0.7},
        )  # fmt: skip


def compose(
    setting: Setting,
    workload: Workload,
    result: RunResult,
    title: str,
    limits: Limits | None = None,
    naming: Naming | None = None,
) -> go.Figure:
    """Draw the schedule of one run as a figure.

    Args:
        setting: the prepared scenario.
        workload: the jobs and events of the run.
        result: a run with `keep_spans`.
        title: the heading; a note below it says what was left out.
        limits: how much the chart can show; None = the defaults.
        naming: of jobs and nodes; None = by number and type. With several colourings, the traces
            of each have its choice as `meta`, and only those of the first are visible.
    """
    chart = select(setting, workload, result, limits or Limits())
    naming = naming or by_type(setting, workload.jobs)
    names, figure = _gpu_names(chart, naming.nodes), go.Figure()
    _add_node_lines(figure, chart)
    _add_downtime(figure, chart, naming.nodes)
    _add_runs(figure, chart, naming, names)
    _add_speed_changes(figure, chart, names)
    _add_updates(figure, chart)
    for trace in figure.data:
        trace.visible = trace.meta in (None, naming.colourings[0].choice)
    rows = len(names)
    plot_px = rows * min(max(1100 // rows, 13), 26) + 20
    note = f"<br><sup>left out: {chart.left_out}</sup>" if chart.left_out else ""
    figure.update_layout(
        title={"text": html.escape(title) + note, "x": 0.01, "yref": "container", "yanchor": "top",
               "y": 1 - 15 / (plot_px + 190)},
        barmode="overlay",
        template="plotly_white",
        height=plot_px + 190,
        legend={"orientation": "h", "y": 1 + 24 / plot_px, "yanchor": "bottom", "x": 0},
        margin={"l": 10, "r": 20, "t": 130, "b": 60},
        hoverlabel={"align": "left"},
    )  # fmt: skip
    end = (chart.until - chart.first) / HOUR
    figure.update_xaxes(title="hours since the first arrival", range=[0, end * 1.005])
    figure.update_yaxes(
        range=[rows - 0.5, -0.5], tickvals=list(range(rows)), ticktext=names, automargin=True,
        showgrid=False, zeroline=False, tickfont={"size": 11 if rows <= 60 else 9},
    )  # fmt: skip
    return figure


def draw(
    setting: Setting,
    workload: Workload,
    result: RunResult,
    title: str,
    naming: Naming | None = None,
) -> str:
    """Draw the schedule of one run as a self-contained HTML page; the mouse wheel zooms.

    naming: of jobs and nodes, of which only the first colouring is drawn; None = by type.
    """
    if naming is not None:
        naming = naming._replace(colourings=naming.colourings[:1])
    figure = compose(setting, workload, result, title, naming=naming)
    page: str = figure.to_html(include_plotlyjs=True, full_html=True, config={"scrollZoom": True})
    return page
