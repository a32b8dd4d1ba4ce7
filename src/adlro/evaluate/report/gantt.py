"""A schedule as a picture: jobs on GPUs over time, one HTML file that works offline."""

from __future__ import annotations

import html

import numpy as np
import plotly.graph_objects as go

from adlro.model.state import Records
from adlro.sim.simulator import Result
from adlro.workloads.synthetic import Setting
from adlro.workloads.workload import Workload

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b")
_HOUR = 3600.0


def _gpu_names(setting: Setting) -> list[str]:
    """Names [G] of the GPUs: node/GPU (model)."""
    layout = setting.layout
    names = []
    for g, gpu in enumerate(layout.gpus):
        node = layout.nodes[gpu["node"]]
        model = layout.models[layout.pools[node["pool"]]["model"]].name
        names.append(f"{layout.node_names[gpu['node']]}/{g - node['first_gpu']} ({model})")
    return names


def _texts(spans: Records, jobs: Records, origin: float) -> list[str]:
    rows = []
    for span in spans:
        job = jobs[span["job"]]
        wait = span["start"] - job["arrival"]
        rows.append(
            f"job {span['job']} · {job['gpus']} GPU{'s' if job['gpus'] > 1 else ''}"
            f"<br>arrived {job['arrival'] - origin:,.0f} s, waited {wait:,.0f} s"
            f"<br>ran {span['end'] - span['start']:,.0f} s · priority {job['priority']:.2f}"
        )
    return rows


def draw(setting: Setting, workload: Workload, result: Result, title: str) -> str:
    """The schedule of one run as a self-contained HTML page; zoom with the mouse.

    Args:
        setting: names of GPUs and job types.
        workload: the jobs.
        result: a run with its spans kept.
        title: the heading.
    """
    jobs, spans = workload.jobs, result.spans
    origin, names = float(jobs["arrival"][0]), np.array(_gpu_names(setting))
    figure = go.Figure()
    for t, job_type in enumerate(setting.scenario.types):
        own = spans[jobs["type"][spans["job"]] == t]
        figure.add_bar(
            name=html.escape(job_type.name),
            orientation="h",
            base=(own["start"] - origin) / _HOUR,
            x=(own["end"] - own["start"]) / _HOUR,
            y=names[own["gpu"]],
            customdata=_texts(own, jobs, origin),
            hovertemplate="%{customdata}<extra>%{y}</extra>",
            marker={"color": _COLOURS[t % len(_COLOURS)], "line": {"color": "white", "width": 0.5}},
        )
    figure.update_layout(
        title=html.escape(title),
        barmode="overlay",
        bargap=0.15,
        template="plotly_white",
        height=min(200 + 24 * len(names), 4000),
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1, "xanchor": "right"},
        margin={"l": 10, "r": 20, "t": 70, "b": 50},
    )
    figure.update_xaxes(title="hours since the first arrival", rangemode="tozero")
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], automargin=True)
    page: str = figure.to_html(include_plotlyjs=True, full_html=True, config={"scrollZoom": True})
    return page
