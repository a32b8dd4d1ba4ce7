"""The charts of one seed: GPUs in use and jobs waiting over time, and schedules side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from adlro.evaluate.compare import run_one
from adlro.evaluate.comparison import Comparison
from adlro.evaluate.report import facts, gantt
from adlro.evaluate.report.chart import (
    NO_THEME,
    Chart,
    legend_px,
    line,
    plain_figure,
    show_first,
    styles,
)
from adlro.evaluate.report.timeline import Timeline, follow
from adlro.model.state import Floats
from adlro.policies.registry import Policy
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting

_MOST_SCHEDULES = 4  # besides fcfs
_LIMITS = gantt.Limits(gpus=64, bars=2_500, is_brief=True)  # some 300 KB a schedule
_TITLE_PX = 55
_LEGEND_COLUMNS = 3
_COLOURS = ("#1f83c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#a6761d")


class Seed(NamedTuple):
    """The first seed of a comparison, run once more with a log of every run."""

    number: int
    courses: dict[str, Timeline]
    schedules: list[Chart]


def drawn_schedules(result: Comparison) -> list[str]:
    """The policies whose schedule is drawn: the best few, and fcfs."""
    ranked = [row.name for row in facts.best_first(result)]
    return ranked[:_MOST_SCHEDULES] + [name for name in ranked[_MOST_SCHEDULES:] if name == "fcfs"]


def replay(setting: Setting, policies: Sequence[Policy], result: Comparison) -> Seed:
    """Run every policy on the first seed again and keep what the charts need.

    Raises:
        PolicyError: a policy asked for what cannot be, which it did not when first run.
    """
    seed, courses, figures = result.first_seed, {}, {}
    workload, wanted = generate(setting, seed), drawn_schedules(result)
    for policy in policies:
        run = run_one(setting, workload, policy, seed, keep_spans=True)
        courses[policy.name] = follow(setting, workload, run)
        if policy.name in wanted:
            figures[policy.name] = gantt.compose(setting, workload, run, policy.name, _LIMITS)
    end = max(figure.layout.xaxis.range[1] for figure in figures.values())
    for figure in figures.values():
        _settle_in(figure, end)
    return Seed(seed, courses, [Chart(figures[name], "") for name in wanted])


def _settle_in(figure: go.Figure, end: float) -> None:
    """Make a schedule one of several: the same hours, a legend below, half of the digits."""
    lines = math.ceil(len({trace.name for trace in figure.data}) / _LEGEND_COLUMNS)
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
    figure.layout.annotations = ()  # what they say, the lines tell the mouse
    figure.update_xaxes(range=[0, end])
    for trace in figure.data:
        for key in ("x", "y", "base", "width"):
            if key in trace and isinstance(trace[key], np.ndarray):
                trace[key] = trace[key].astype(np.float32)


def _even(hours: Floats) -> dict[str, float]:
    """Places at equal distances, in two numbers."""
    return {"x0": float(hours[0]), "dx": float(hours[1] - hours[0])}


def use(result: Comparison, seed: Seed, models: list[str]) -> Chart:
    """Busy share of the GPUs of each model; a policy at a time."""
    figure = plain_figure(380)
    ranked = tuple(row.name for row in facts.best_first(result))
    for name in ranked:
        course = seed.courses[name]
        hours = _even(course.hours)
        for m, model in enumerate(models):
            figure.add_scatter(
                name=escape(model),
                meta=name,
                **hours,
                y=(100 * course.use[m]).astype(np.float32),
                mode="lines",
                line={"width": 1.5, "color": _COLOURS[m % len(_COLOURS)], "shape": "hvh"},
                hovertemplate=f"{escape(model)}: %{{y:.0f}} % at %{{x:.2f}} h<extra></extra>",
            )
        figure.add_scatter(
            name="all GPUs",
            meta=name,
            **hours,
            y=(100 * course.use_of_all).astype(np.float32),
            mode="lines",
            line={"width": 3, "color": "#888888", "shape": "hvh"},
            hovertemplate="all GPUs: %{y:.0f} % at %{x:.2f} h<extra></extra>",
        )
    show_first(figure, ranked)
    figure.update_xaxes(title="hours since the first arrival", rangemode="tozero")
    figure.update_yaxes(title="% of GPUs that are up", range=[0, 103])
    caption = (
        f"GPUs in use by model, seed {seed.number}. A gap: no GPU of that model was up. What is "
        "idle while jobs wait is what a better policy could use."
    )
    return Chart(figure, caption, ranked, "Policy")


def queue(result: Comparison, seed: Seed) -> Chart:
    """Jobs waiting under each policy."""
    figure, drawn = plain_figure(legend_px(len(result.policies), 400)), styles(result)
    for name, look in sorted(drawn.items(), key=lambda item: item[1].is_main):
        course = seed.courses[name]
        figure.add_scatter(
            **line(name, look),
            **_even(course.hours),
            y=course.queue.astype(np.float32),
            legendrank=list(drawn).index(name),
            hovertemplate=f"{escape(name)}: %{{y:.1f}} waiting at %{{x:.2f}} h<extra></extra>",
        )
    figure.update_xaxes(title="hours since the first arrival", rangemode="tozero")
    figure.update_yaxes(title="jobs waiting", rangemode="tozero", tickformat=",~f")
    return Chart(figure, f"Jobs that wait, seed {seed.number}, every policy with the same jobs.")
