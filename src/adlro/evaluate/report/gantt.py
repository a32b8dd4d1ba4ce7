"""Draws the Gantt chart of a schedule (jobs on GPUs over time) as one offline HTML file."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from adlro.evaluate.downtime import Downtime, Window, downtime, window
from adlro.evaluate.report.runs import RunDetails, lanes, run_details
from adlro.model.cluster import Layout
from adlro.model.state import FAILURE, FINISH, PREEMPTION, SPEED, WHOLE, Floats, Records
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b")
_INK = "#707070"  # visible on white and on black
_HOUR = 3600.0
_LABEL = 0.15  # share of the width that a label takes up
_ROW = 0.84  # share of a row's height that its bars fill
_ENDS = {FINISH: "finished", PREEMPTION: "preempted", FAILURE: "lost to a failure"}


class Limits(NamedTuple):
    """Largest numbers of GPUs and bars in one chart, and the length of its hover texts."""

    gpus: int = 256  # more rows are unreadable
    bars: int = 20_000  # more slow a browser down
    is_brief: bool = False  # shorter hover texts, for pages with several schedules


class _Chart(NamedTuple):
    """The data that a chart shows: a whole run, or the part of it that is within the limits."""

    layout: Layout
    types: tuple[str, ...]  # names, escaped
    nodes: list[str]  # names, escaped
    jobs: Records
    outcome: Records
    first: float  # seconds: left end of the time axis
    until: float  # seconds: right end
    gpus: NDArray[np.intp]  # GPUs with a row, ascending
    spans: Records
    runs: RunDetails
    changes: Records  # EVENT of kind SPEED
    down: Downtime
    left_out: str  # what the limits exclude, in words
    is_brief: bool

    def hours(self, times: Floats) -> Floats:
        """Return times in hours since the left end of the time axis."""
        shown: Floats = (times - self.first) / _HOUR
        return shown

    def rows(self, gpus: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """Return the row of the chart that shows each GPU."""
        return np.searchsorted(self.gpus, gpus)


def _chosen_gpus(layout: Layout, most: int) -> NDArray[np.intp]:
    """Return all GPUs, or if these are more than `most`, those of each pool's first nodes."""
    nodes = layout.nodes
    rank = np.arange(len(nodes)) - layout.pools["first_node"][nodes["pool"]]
    order = np.lexsort((nodes["pool"], rank))
    count = max(int((np.cumsum(nodes["gpus"][order]) <= most).sum()), 1)
    return np.flatnonzero(np.isin(layout.gpus["node"], order[:count]))


def _last_start_shown(starts: Floats, within: Window, most: int) -> float:
    """Return the end of the part of the window in which at most `most` intervals start.

    The part is never empty: its end is later than the start of the window.
    """
    if len(starts) <= most:
        return within.last
    return float(max(np.partition(starts, most)[most], np.nextafter(within.first, within.last)))


def _select(setting: Setting, workload: Workload, result: RunResult, limits: Limits) -> _Chart:
    layout, time = setting.layout, window(workload, result)
    gpus = _chosen_gpus(layout, limits.gpus)
    within = np.isin(result.spans["gpu"], gpus)
    spans = result.spans[within]
    runs = RunDetails._make(fact[within] for fact in run_details(result.spans, workload.jobs))
    changes = workload.events[workload.events["kind"] == SPEED]
    changes = changes[(changes["gpu"] < 0) | np.isin(changes["gpu"], gpus)]
    down = downtime(workload.events, time)
    seen = np.isin(down.node, layout.gpus["node"][gpus])
    down = Downtime._make(column[seen] for column in down)
    starts = (spans["start"], changes["time"], down.start)
    until = min(_last_start_shown(own, time, limits.bars) for own in starts)
    early = spans["start"] < until if until < time.last else np.ones(len(spans), np.bool_)
    known = down.start < until
    notes = []
    if len(gpus) < len(layout.gpus):
        notes.append(f"{len(layout.gpus) - len(gpus):,} of {len(layout.gpus):,} GPUs")
    if until < time.last:
        hours = (until - time.first) / _HOUR, time.length / _HOUR
        notes.append(f"what began after {hours[0]:,.2f} of {hours[1]:,.2f} h")
    return _Chart(
        layout=layout,
        types=tuple(html.escape(job_type.name) for job_type in setting.scenario.types),
        nodes=[html.escape(name) for name in layout.node_names],
        jobs=workload.jobs,
        outcome=result.outcome,
        first=time.first,
        until=until,
        gpus=gpus,
        spans=spans[early],
        runs=RunDetails._make(fact[early] for fact in runs),
        changes=changes[changes["time"] < until],
        down=Downtime._make(column[known] for column in down),
        left_out=" and ".join(notes),
        is_brief=limits.is_brief,
    )


def _gpu_names(chart: _Chart) -> list[str]:
    """Return the escaped names of the GPUs with a row: node/GPU (model)."""
    layout, names = chart.layout, []
    for g in chart.gpus:
        n = layout.gpus["node"][g]
        model = layout.models[layout.pools["model"][layout.nodes["pool"][n]]].name
        place = g - layout.nodes["first_gpu"][n]
        names.append(f"{chart.nodes[n]}/{place} ({html.escape(model)})")
    return names


def _size(job: Records) -> str:
    if job["share"] < WHOLE:
        return f"{job['share'] / WHOLE:g} of a GPU"
    return f"{job['gpus']} GPU{'s' if job['gpus'] > 1 else ''}"


def _brief_texts(chart: _Chart) -> NDArray[np.object_]:
    """Return a short hover text for each span [S]: job, type, size, wait and run time."""
    spans, jobs = chart.spans, chart.jobs
    texts = [
        f"job {span['job']} · {chart.types[jobs['type'][span['job']]]} · "
        f"{_size(jobs[span['job']])}<br>waited {waited:,.0f} s, "
        f"ran {span['end'] - span['start']:,.0f} s"
        for span, waited in zip(spans, chart.runs.waited, strict=True)
    ]
    return np.array(texts, object)


def _texts(chart: _Chart, names: list[str]) -> NDArray[np.object_]:
    """Return the hover text of each span [S]."""
    if chart.is_brief:
        return _brief_texts(chart)
    texts = []
    for i, span in enumerate(chart.spans):
        j, number = span["job"], int(chart.runs.number[i])
        job, outcome = chart.jobs[j], chart.outcome[j]
        begun = "since its last run" if number else f"from {job['arrival'] - chart.first:,.0f} s"
        lines = [
            f"<b>job {j}</b> · {chart.types[job['type']]} · {_size(job)}",
            f"waited {chart.runs.waited[i]:,.0f} s {begun}, "
            f"ran {span['end'] - span['start']:,.0f} s",
        ]
        if outcome["restarts"]:
            lines.append(f"run {number + 1} of {outcome['restarts'] + 1}")
        if chart.runs.restoring[i] > 0:
            lines[-1] += f", the first {chart.runs.restoring[i]:,.0f} s restoring a checkpoint"
        ended = "killed by its limit" if _is_killed(span, outcome) else _ENDS[int(span["why"])]
        lines.append(f"{ended} at {chart.hours(span['end']):,.3f} h")
        lines.append(f"priority {job['priority']:.2f} · user {job['user']}")
        lines.append(names[chart.rows(span["gpu"])])
        texts.append("<br>".join(lines))
    return np.array(texts, object)


def _is_killed(span: Records, outcome: Records) -> bool:
    return bool(outcome["killed"] and span["why"] == FINISH)


def _lighter(colour: str) -> str:
    """Mix a colour with two thirds of white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{(part + 2 * 255) // 3:02x}" for part in parts)


def _add_runs(figure: go.Figure, chart: _Chart, names: list[str]) -> None:
    """Add a bar for each span in the colour of its type; hatched if the run was cut short."""
    spans, texts = chart.spans, _texts(chart, names)
    low, height = lanes(spans)
    middle = chart.rows(spans["gpu"]) + _ROW * (low + height / 2 - 0.5)
    own_type, is_cut = chart.jobs["type"][spans["job"]], spans["why"] != FINISH
    for t, name in enumerate(chart.types):
        colour = _COLOURS[t % len(_COLOURS)]
        pattern = {"shape": "/", "fgcolor": colour, "bgcolor": _lighter(colour), "size": 5}
        for own, look in (
            ((own_type == t) & ~is_cut, {"color": colour}),
            ((own_type == t) & is_cut, {"color": colour, "pattern": pattern}),
        ):
            if "pattern" in look and not own.any():
                continue
            figure.add_bar(
                name=name,
                legendgroup=f"type {t}",
                showlegend="pattern" not in look,
                orientation="h",
                base=chart.hours(spans["start"][own]),
                x=(spans["end"] - spans["start"])[own] / _HOUR,
                y=middle[own],
                width=_ROW * height[own],
                customdata=texts[own],
                hovertemplate="%{customdata}<extra></extra>",
                marker={**look, "line": {"color": "white", "width": 0.5}},
            )
    for why, label, marker in (
        (PREEMPTION, "preempted", {"symbol": "line-ns", "line": {"width": 3, "color": _INK}}),
        (FAILURE, "lost to a failure", {"symbol": "x", "color": "#d00000"}),
    ):
        own = spans["why"] == why
        _add_marks(figure, label, chart.hours(spans["end"][own]), middle[own], texts[own], marker)


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


def _add_downtime(figure: go.Figure, chart: _Chart) -> None:
    """Add a grey bar over all GPUs of a node while it is down."""
    down, nodes = chart.down, chart.layout.nodes
    if len(down.node) == 0:
        return
    texts = [
        f"<b>{chart.nodes[n]} down</b> ({'planned' if planned else 'failure'})"
        f"<br>{chart.hours(start):,.3f} h to {chart.hours(end):,.3f} h"
        for n, start, end, planned in zip(*down, strict=True)
    ]
    figure.add_bar(
        name="node down",
        orientation="h",
        base=chart.hours(down.start),
        x=(down.end - down.start) / _HOUR,
        y=chart.rows(nodes["first_gpu"][down.node]) + (nodes["gpus"][down.node] - 1) / 2,
        width=nodes["gpus"][down.node].astype(np.float64),
        customdata=np.array(texts, object),
        hovertemplate="%{customdata}<extra></extra>",
        marker={"color": "#d4d4d4", "line": {"color": "#a0a0a0", "width": 0.5}},
    )


def _add_speed_changes(figure: go.Figure, chart: _Chart, names: list[str]) -> None:
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


def _add_updates(figure: go.Figure, chart: _Chart) -> None:
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
        if at - far >= _LABEL * (chart.until - chart.first) / _HOUR:
            far = at
            figure.add_annotation(
                x=at, y=1, yref="paper", yanchor="bottom", text=text, showarrow=False,
                font={"size": 11},
            )  # fmt: skip


def _add_node_lines(figure: go.Figure, chart: _Chart) -> None:
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
) -> go.Figure:
    """Draw the schedule of one run as a figure.

    Args:
        setting: the prepared scenario.
        workload: the jobs and events of the run.
        result: a run with `keep_spans`.
        title: the heading; a note below it says what was left out.
        limits: how much the chart can show; None = the defaults.
    """
    chart = _select(setting, workload, result, limits or Limits())
    names, figure = _gpu_names(chart), go.Figure()
    _add_node_lines(figure, chart)
    _add_downtime(figure, chart)
    _add_runs(figure, chart, names)
    _add_speed_changes(figure, chart, names)
    _add_updates(figure, chart)
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
    end = (chart.until - chart.first) / _HOUR
    figure.update_xaxes(title="hours since the first arrival", range=[0, end * 1.005])
    figure.update_yaxes(
        range=[rows - 0.5, -0.5], tickvals=list(range(rows)), ticktext=names, automargin=True,
        showgrid=False, zeroline=False, tickfont={"size": 11 if rows <= 60 else 9},
    )  # fmt: skip
    return figure


def draw(setting: Setting, workload: Workload, result: RunResult, title: str) -> str:
    """Draw the schedule of one run as a self-contained HTML page; the mouse wheel zooms."""
    figure = compose(setting, workload, result, title)
    page: str = figure.to_html(include_plotlyjs=True, full_html=True, config={"scrollZoom": True})
    return page
