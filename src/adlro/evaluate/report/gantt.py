"""A schedule as a picture: jobs on GPUs over time, one HTML file that works offline."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from adlro.evaluate.downtime import Downtime, Window, downtime, window
from adlro.evaluate.report.runs import Runs, lanes, retrace
from adlro.model.cluster import Layout
from adlro.model.state import FAILURE, FINISH, PREEMPTION, SPEED, WHOLE, Floats, Records
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b")
_INK = "#707070"  # seen on white and on black
_HOUR = 3600.0
_LABEL = 0.15  # of the picture's width that a label takes up
_ROW = 0.84  # of a row's height that is drawn on
_ENDS = {FINISH: "finished", PREEMPTION: "preempted", FAILURE: "lost to a failure"}


class Limits(NamedTuple):
    """How much one page holds."""

    gpus: int = 256  # more rows than this nobody can look at
    bars: int = 20_000  # more make a browser crawl
    is_brief: bool = False  # say less of each run, where a page holds several schedules


class _Picture(NamedTuple):
    """What is drawn: all of a run, or what a page can hold of it."""

    layout: Layout
    types: tuple[str, ...]  # names, escaped
    nodes: list[str]  # names, escaped
    jobs: Records
    outcome: Records
    first: float  # seconds: where the picture begins
    until: float  # and where it ends
    gpus: NDArray[np.intp]  # GPUs that have a row, rising
    spans: Records
    runs: Runs
    changes: Records  # EVENT of kind SPEED
    down: Downtime
    left_out: str
    is_brief: bool

    def hours(self, times: Floats) -> Floats:
        """Times on the picture's axis."""
        shown: Floats = (times - self.first) / _HOUR
        return shown

    def rows(self, gpus: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """Where GPUs stand on the picture."""
        return np.searchsorted(self.gpus, gpus)


def _chosen_gpus(layout: Layout, most: int) -> NDArray[np.intp]:
    """All GPUs, or those of the first nodes of every pool in turn."""
    nodes = layout.nodes
    rank = np.arange(len(nodes)) - layout.pools["first_node"][nodes["pool"]]
    order = np.lexsort((nodes["pool"], rank))
    count = max(int((np.cumsum(nodes["gpus"][order]) <= most).sum()), 1)
    return np.flatnonzero(np.isin(layout.gpus["node"], order[:count]))


def _end_of_room(starts: Floats, within: Window, most: int) -> float:
    """The time until which a page can hold all that begins, which is more than nothing."""
    if len(starts) <= most:
        return within.last
    return float(max(np.partition(starts, most)[most], np.nextafter(within.first, within.last)))


def _choose(setting: Setting, workload: Workload, result: RunResult, limits: Limits) -> _Picture:
    layout, time = setting.layout, window(workload, result)
    gpus = _chosen_gpus(layout, limits.gpus)
    within = np.isin(result.spans["gpu"], gpus)
    spans = result.spans[within]
    runs = Runs._make(fact[within] for fact in retrace(result.spans, workload.jobs))
    changes = workload.events[workload.events["kind"] == SPEED]
    changes = changes[(changes["gpu"] < 0) | np.isin(changes["gpu"], gpus)]
    down = downtime(workload.events, time)
    seen = np.isin(down.node, layout.gpus["node"][gpus])
    down = Downtime._make(column[seen] for column in down)
    starts = (spans["start"], changes["time"], down.start)
    until = min(_end_of_room(own, time, limits.bars) for own in starts)
    early = spans["start"] < until if until < time.last else np.ones(len(spans), np.bool_)
    known = down.start < until
    notes = []
    if len(gpus) < len(layout.gpus):
        notes.append(f"{len(layout.gpus) - len(gpus):,} of {len(layout.gpus):,} GPUs")
    if until < time.last:
        hours = (until - time.first) / _HOUR, time.length / _HOUR
        notes.append(f"what began after {hours[0]:,.2f} of {hours[1]:,.2f} h")
    return _Picture(
        layout=layout,
        types=tuple(html.escape(job_type.name) for job_type in setting.scenario.types),
        nodes=[html.escape(name) for name in layout.node_names],
        jobs=workload.jobs,
        outcome=result.outcome,
        first=time.first,
        until=until,
        gpus=gpus,
        spans=spans[early],
        runs=Runs._make(fact[early] for fact in runs),
        changes=changes[changes["time"] < until],
        down=Downtime._make(column[known] for column in down),
        left_out=" and ".join(notes),
        is_brief=limits.is_brief,
    )


def _gpu_names(picture: _Picture) -> list[str]:
    """Names of the GPUs that have a row: node/GPU (model), escaped."""
    layout, names = picture.layout, []
    for g in picture.gpus:
        n = layout.gpus["node"][g]
        model = layout.models[layout.pools["model"][layout.nodes["pool"][n]]].name
        place = g - layout.nodes["first_gpu"][n]
        names.append(f"{picture.nodes[n]}/{place} ({html.escape(model)})")
    return names


def _size(job: Records) -> str:
    if job["share"] < WHOLE:
        return f"{job['share'] / WHOLE:g} of a GPU"
    return f"{job['gpus']} GPU{'s' if job['gpus'] > 1 else ''}"


def _brief_texts(picture: _Picture) -> NDArray[np.object_]:
    """Who, how long it waited and ran, [S]."""
    spans, jobs = picture.spans, picture.jobs
    texts = [
        f"job {span['job']} · {picture.types[jobs['type'][span['job']]]} · "
        f"{_size(jobs[span['job']])}<br>waited {waited:,.0f} s, "
        f"ran {span['end'] - span['start']:,.0f} s"
        for span, waited in zip(spans, picture.runs.waited, strict=True)
    ]
    return np.array(texts, object)


def _texts(picture: _Picture, names: list[str]) -> NDArray[np.object_]:
    """What is shown when the mouse is on a run, [S]."""
    if picture.is_brief:
        return _brief_texts(picture)
    texts = []
    for i, span in enumerate(picture.spans):
        j, number = span["job"], int(picture.runs.number[i])
        job, outcome = picture.jobs[j], picture.outcome[j]
        begun = "since its last run" if number else f"from {job['arrival'] - picture.first:,.0f} s"
        lines = [
            f"<b>job {j}</b> · {picture.types[job['type']]} · {_size(job)}",
            f"waited {picture.runs.waited[i]:,.0f} s {begun}, "
            f"ran {span['end'] - span['start']:,.0f} s",
        ]
        if outcome["restarts"]:
            lines.append(f"run {number + 1} of {outcome['restarts'] + 1}")
        if picture.runs.restoring[i] > 0:
            lines[-1] += f", the first {picture.runs.restoring[i]:,.0f} s restoring a checkpoint"
        ended = "killed by its limit" if _is_killed(span, outcome) else _ENDS[int(span["why"])]
        lines.append(f"{ended} at {picture.hours(span['end']):,.3f} h")
        lines.append(f"priority {job['priority']:.2f} · user {job['user']}")
        lines.append(names[picture.rows(span["gpu"])])
        texts.append("<br>".join(lines))
    return np.array(texts, object)


def _is_killed(span: Records, outcome: Records) -> bool:
    return bool(outcome["killed"] and span["why"] == FINISH)


def _lighter(colour: str) -> str:
    """Two thirds of the way to white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{(part + 2 * 255) // 3:02x}" for part in parts)


def _add_runs(figure: go.Figure, picture: _Picture, names: list[str]) -> None:
    """A bar for each run on each GPU, in the colour of its type; hatched if it was cut short."""
    spans, texts = picture.spans, _texts(picture, names)
    low, height = lanes(spans)
    middle = picture.rows(spans["gpu"]) + _ROW * (low + height / 2 - 0.5)
    own_type, is_cut = picture.jobs["type"][spans["job"]], spans["why"] != FINISH
    for t, name in enumerate(picture.types):
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
                base=picture.hours(spans["start"][own]),
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
        _add_marks(figure, label, picture.hours(spans["end"][own]), middle[own], texts[own], marker)


def _add_marks(
    figure: go.Figure,
    name: str,
    x: Floats,
    y: Floats,
    texts: NDArray[np.object_],
    marker: Mapping[str, object],
) -> None:
    """Small symbols with a legend entry; none if there is nothing to mark."""
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


def _add_downtime(figure: go.Figure, picture: _Picture) -> None:
    """A grey bar over all GPUs of a node while it is down."""
    down, nodes = picture.down, picture.layout.nodes
    if len(down.node) == 0:
        return
    texts = [
        f"<b>{picture.nodes[n]} down</b> ({'planned' if planned else 'failure'})"
        f"<br>{picture.hours(start):,.3f} h to {picture.hours(end):,.3f} h"
        for n, start, end, planned in zip(*down, strict=True)
    ]
    figure.add_bar(
        name="node down",
        orientation="h",
        base=picture.hours(down.start),
        x=(down.end - down.start) / _HOUR,
        y=picture.rows(nodes["first_gpu"][down.node]) + (nodes["gpus"][down.node] - 1) / 2,
        width=nodes["gpus"][down.node].astype(np.float64),
        customdata=np.array(texts, object),
        hovertemplate="%{customdata}<extra></extra>",
        marker={"color": "#d4d4d4", "line": {"color": "#a0a0a0", "width": 0.5}},
    )


def _add_wear(figure: go.Figure, picture: _Picture, names: list[str]) -> None:
    """A mark where a GPU changes its speed: down = slower than before, up = faster."""
    changes = picture.changes[picture.changes["gpu"] >= 0]
    before: dict[int, float] = {}
    slower, texts = np.zeros(len(changes), np.bool_), []
    x = picture.hours(np.maximum(changes["time"], picture.first))
    for i, change in enumerate(changes):
        g, speed = int(change["gpu"]), float(change["value"])
        slower[i] = speed < before.get(g, 1.0)
        before[g] = speed
        heat = f", {change['heat']:+g} °C" if change["heat"] else ""
        texts.append(
            f"<b>{names[picture.rows(change['gpu'])]}</b>"
            f"<br>speed {speed:g}{heat} from {x[i]:,.3f} h"
        )
    y, shown = picture.rows(changes["gpu"]).astype(np.float64), np.array(texts, object)
    for own, label, symbol in (
        (slower, "GPU slower", "triangle-down"),
        (~slower, "GPU faster", "triangle-up"),
    ):
        look = {"symbol": symbol, "color": "#ffd400", "line": {"width": 1, "color": _INK}}
        _add_marks(figure, label, x[own], y[own], shown[own], look)


def _add_updates(figure: go.Figure, picture: _Picture) -> None:
    """A dotted line where a type becomes faster or slower on a model."""
    updates = picture.changes[picture.changes["gpu"] < 0]
    if len(updates) == 0:
        return
    hours = picture.hours(np.maximum(updates["time"], picture.first))
    models = [html.escape(picture.layout.models[m].name) for m in updates["model"]]
    texts = [
        f"{picture.types[update['type']]} on {model}: speed {update['value']:g}"
        for update, model in zip(updates, models, strict=True)
    ]
    bottom = len(picture.gpus) - 0.5
    figure.add_scatter(
        name="type on a model changes speed",
        x=np.column_stack((hours, hours, np.full(len(hours), np.nan))).ravel(),
        y=np.tile([-0.5, bottom, np.nan], len(hours)),
        customdata=np.repeat(np.array(texts, object), 3),
        hovertemplate="%{customdata}<extra></extra>",
        mode="lines",
        line={"dash": "dot", "color": _INK, "width": 1.5},
    )
    far = -np.inf  # labels that would overlap are left to the mouse
    for at, text in zip(hours.tolist(), texts, strict=True):
        if at - far >= _LABEL * (picture.until - picture.first) / _HOUR:
            far = at
            figure.add_annotation(
                x=at, y=1, yref="paper", yanchor="bottom", text=text, showarrow=False,
                font={"size": 11},
            )  # fmt: skip


def _add_node_lines(figure: go.Figure, picture: _Picture) -> None:
    """A thin line between the GPUs of one node and the next."""
    between = np.flatnonzero(np.diff(picture.layout.gpus["node"][picture.gpus])) + 0.5
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
    """The schedule of one run as a figure.

    Args:
        setting: names of GPUs and job types.
        workload: the jobs, and what happened to the cluster.
        result: a run with its spans kept.
        title: the heading; what did not find room is told below it.
        limits: what there is room for.
    """
    picture = _choose(setting, workload, result, limits or Limits())
    names, figure = _gpu_names(picture), go.Figure()
    _add_node_lines(figure, picture)
    _add_downtime(figure, picture)
    _add_runs(figure, picture, names)
    _add_wear(figure, picture, names)
    _add_updates(figure, picture)
    rows = len(names)
    plot_px = rows * min(max(1100 // rows, 13), 26) + 20
    note = f"<br><sup>left out: {picture.left_out}</sup>" if picture.left_out else ""
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
    end = (picture.until - picture.first) / _HOUR
    figure.update_xaxes(title="hours since the first arrival", range=[0, end * 1.005])
    figure.update_yaxes(
        range=[rows - 0.5, -0.5], tickvals=list(range(rows)), ticktext=names, automargin=True,
        showgrid=False, zeroline=False, tickfont={"size": 11 if rows <= 60 else 9},
    )  # fmt: skip
    return figure


def draw(setting: Setting, workload: Workload, result: RunResult, title: str) -> str:
    """The schedule of one run as a self-contained HTML page; zoom with the mouse."""
    figure = compose(setting, workload, result, title)
    page: str = figure.to_html(include_plotlyjs=True, full_html=True, config={"scrollZoom": True})
    return page
