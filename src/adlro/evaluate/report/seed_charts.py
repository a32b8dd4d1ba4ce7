"""Charts of the runs on one seed: GPUs in use and jobs waiting over time, and Gantt charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from adlro.evaluate.compare import run_one
from adlro.evaluate.comparison import Comparison
from adlro.evaluate.report import formatting, gantt
from adlro.evaluate.report.chart import (
    NO_THEME,
    Chart,
    legend_px,
    line,
    plain_figure,
    show_first,
    styles,
)
from adlro.evaluate.report.labels import Labels
from adlro.evaluate.report.naming import Naming, naming_of
from adlro.evaluate.report.schedule import Limits
from adlro.evaluate.report.timeline import UsageTimeline, usage_timeline
from adlro.model.state import Floats
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting

_MOST_SCHEDULES = 4  # in addition to fcfs
_LIMITS = Limits(gpus=64, bars=2_500, is_brief=True)  # about 300 KB per schedule
_TITLE_PX = 55
_LEGEND_COLUMNS = 3
_COLOURS = ("#1f83c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#a6761d")


class SeedReplay(NamedTuple):
    """Data of the charts over time, from repeating a comparison's first seed with `keep_spans`."""

    number: int  # the seed
    timelines: dict[str, UsageTimeline]  # by policy
    schedules: list[Chart]  # Gantt charts of the policies in `drawn_schedules`


def drawn_schedules(result: Comparison) -> list[str]:
    """Return the policies whose schedule is drawn: the best few by mean JCT, and fcfs."""
    ranked = [row.name for row in formatting.ranked(result)]
    return ranked[:_MOST_SCHEDULES] + [name for name in ranked[_MOST_SCHEDULES:] if name == "fcfs"]


def replay(
    setting: Setting,
    policies: Sequence[Policy],
    result: Comparison,
    labels: Labels | None = None,
) -> SeedReplay:
    """Run every policy on the first seed again and return the data of the charts over time.

    labels: names of a history's jobs and nodes in the Gantt charts; None = its own.

    Raises:
        PolicyError: a policy made an infeasible decision, unlike in its first run.
    """
    seed, timelines, figures = result.first_seed, {}, {}
    workload, wanted = generate(setting, seed), drawn_schedules(result)
    naming = naming_of(setting, workload.jobs, seed, labels=labels)
    for policy in policies:
        run = run_one(setting, workload, policy, seed, keep_spans=True)
        timelines[policy.name] = usage_timeline(setting, workload, run)
        if policy.name in wanted:
            figures[policy.name] = gantt.compose(
                setting, workload, run, policy.name, _LIMITS, naming
            )
    return SeedReplay(seed, timelines, as_grid([figures[name] for name in wanted], naming))


def as_grid(figures: Sequence[go.Figure], naming: Naming) -> list[Chart]:
    """Return Gantt charts of the same jobs as charts for a grid, all with the same time axis."""
    end = max(figure.layout.xaxis.range[1] for figure in figures)
    for figure in figures:
        _fit_into_grid(figure, end)
    choices = tuple(colouring.choice for colouring in naming.colourings)
    return [Chart(figure, "", choices, "Colour by") for figure in figures]


def schedules(setting: Setting, policies: Sequence[str], labels: Labels | None) -> list[Chart]:
    """Run policies on the first seed again and return their Gantt charts."""
    workload = generate(setting, 0)
    naming = naming_of(setting, workload.jobs, 0, labels=labels)
    figures = []
    for name in policies:
        policy = registry.load(name, setting)
        run = run_one(setting, workload, policy, 0, keep_spans=True)
        figures.append(gantt.compose(setting, workload, run, policy.name, _LIMITS, naming))
    return as_grid(figures, naming)


def _fit_into_grid(figure: go.Figure, end: float) -> None:
    """Adapt a Gantt chart to the grid: time axis from 0 to `end` h, legend below, float32 data."""
    choices = {trace.meta for trace in figure.data} - {None} or {None}
    entries = max(
        len({trace.name for trace in figure.data if trace.meta in (None, choice)})
        for choice in choices
    )
    lines = math.ceil(entries / _LEGEND_COLUMNS)
    below = 70 + 20 * lines
    rows_px = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    height = rows_px + _TITLE_PX + below
    figure.update_layout(
        template=NO_THEME,
        height=height,
        margin={"t": _TITLE_PX, "b": below},
        title={"y": 1 - 12 / height, "font": {"size": 15}},
        legend={"yref": "container", "y": 5 / height, "font": {"size": 11}},
    )
    figure.layout.annotations = ()  # hovering over the lines shows the same text
    figure.update_xaxes(range=[0, end])
    for trace in figure.data:
        for key in ("x", "y", "base", "width"):
            if key in trace and isinstance(trace[key], np.ndarray):
                trace[key] = trace[key].astype(np.float32)


def _even_spacing(hours: Floats) -> dict[str, float]:
    """Return the plotly attributes x0 and dx of evenly spaced x values."""
    return {"x0": float(hours[0]), "dx": float(hours[1] - hours[0])}


def gpu_use(result: Comparison, seed: SeedReplay, models: list[str]) -> Chart:
    """Return a chart of the busy share of each GPU model over time; a box selects the policy."""
    figure = plain_figure(380)
    ranked = tuple(row.name for row in formatting.ranked(result))
    for name in ranked:
        timeline = seed.timelines[name]
        hours = _even_spacing(timeline.hours)
        for m, model in enumerate(models):
            figure.add_scatter(
                name=escape(model),
                meta=name,
                **hours,
                y=(100 * timeline.use[m]).astype(np.float32),
                mode="lines",
                line={"width": 1.5, "color": _COLOURS[m % len(_COLOURS)], "shape": "hvh"},
                hovertemplate=f"{escape(model)}: %{{y:.0f}} % at %{{x:.2f}} h<extra></extra>",
            )
        figure.add_scatter(
            name="all GPUs",
            meta=name,
            **hours,
            y=(100 * timeline.use_of_all).astype(np.float32),
            mode="lines",
            line={"width": 3, "color": "#888888", "shape": "hvh"},
            hovertemplate="all GPUs: %{y:.0f} % at %{x:.2f} h<extra></extra>",
        )
    show_first(figure, ranked)
    figure.update_xaxes(title="hours since the first arrival", rangemode="tozero")
    figure.update_yaxes(title="% of GPUs that are up", range=[0, 103])
    caption = (
        f"GPUs in use by model, seed {seed.number}. A gap: no GPU of that model was up. GPUs "
        "that idle while jobs wait are what a better policy could use."
    )
    return Chart(figure, caption, ranked, "Policy")


def queue_length(result: Comparison, seed: SeedReplay) -> Chart:
    """Return a chart of the number of waiting jobs over time, with a line for each policy."""
    figure, drawn = plain_figure(legend_px(len(result.policies), 400)), styles(result)
    for name, style in sorted(drawn.items(), key=lambda item: item[1].is_main):
        timeline = seed.timelines[name]
        figure.add_scatter(
            **line(name, style),
            **_even_spacing(timeline.hours),
            y=timeline.queue.astype(np.float32),
            legendrank=list(drawn).index(name),
            hovertemplate=f"{escape(name)}: %{{y:.1f}} waiting at %{{x:.2f}} h<extra></extra>",
        )
    figure.update_xaxes(title="hours since the first arrival", rangemode="tozero")
    figure.update_yaxes(title="jobs waiting", rangemode="tozero", tickformat=",~f")
    return Chart(figure, f"Jobs waiting, seed {seed.number}; every policy has the same jobs.")
