"""Charts of a comparison: completion times, differences, job groups, waits, scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

import numpy as np
import plotly.graph_objects as go

from adlro.evaluate.comparison import Comparison, PolicyRow
from adlro.evaluate.report import formatting, table
from adlro.evaluate.report.chart import (
    LOG_AXIS,
    Chart,
    Style,
    legend_px,
    line,
    name_axis,
    plain_figure,
    rows_px,
    show_first,
    styles,
)
from adlro.evaluate.report.collect import EDGES, JobStatistics
from adlro.evaluate.report.formatting import BASELINES, PolicyGroup, TimeUnit
from adlro.evaluate.rows import RECORDED
from adlro.evaluate.stats import Estimate
from adlro.model.state import Counts, Floats

_TICKS = (
    1,
    0.1,
    0.2,
    0.5,
    0.7,
    0.8,
    0.9,
    0.95,
    0.98,
    1.02,
    1.05,
    1.1,
    1.2,
    1.5,
    2,
    3,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1000,
)  # ratios; the first is always shown
_TICK_ROOM = 0.09  # share of the axis that a tick label takes up
_TEXT_ROOM = 0.6  # share of the axis on the right for the figures beside the intervals
_COLOUR = "#1f83c4"
_RECORDED_LINE = {
    "name": "recorded (what happened)",
    "mode": "lines",
    "line": {"color": "#888888", "width": 2.2, "dash": "dash"},
    "legendgroup": RECORDED,
}
_LEAST_RATIO = 0.05  # intervals are clipped here: a logarithmic axis has no 0
_LEAST_SHOWN = 1 / 3  # of the smallest mean: intervals that reach lower run off the axis

Axis = dict[str, list[float] | list[str]]  # attribute of a layout -> value


def _cumulated(jobs: Counts, unit: TimeUnit) -> tuple[Floats, Floats]:
    """Return times in `unit`, and the percentage of jobs that took at most each time.

    `jobs` [B] is a histogram over EDGES. The times begin at the last edge with 0 % and end at the
    first with 100 %.
    """
    share = 100 * np.cumsum(jobs) / jobs.sum()
    first = max(int(np.argmax(share > 0)) - 1, 0)
    last = int(np.argmax(share >= 100 - 1e-9)) + 1
    times = EDGES[first:last] / unit.seconds
    return times.astype(np.float32), share[first:last].astype(np.float32)


def distribution(result: Comparison, statistics: dict[str, JobStatistics]) -> Chart:
    """Return a chart of the cumulative distribution of JCTs or, by a select box, of waits."""
    unit, drawn = formatting.time_unit(result), styles(result)
    figure = plain_figure(legend_px(len(drawn), 460))
    choices = ("completion time (JCT)", "wait until the first start")
    for choice, pick in zip(choices, ("jct", "wait"), strict=True):
        for name, style in _grey_first(drawn):
            times, share = _cumulated(getattr(statistics[name], pick), unit)
            figure.add_scatter(
                **line(name, style),
                x=times,
                y=share,
                meta=choice,
                legendrank=list(drawn).index(name),
                hovertemplate=f"{escape(name)}: %{{y:.1f}} % within %{{x:,.4~g}} {unit.unit}"
                "<extra></extra>",
            )
        if RECORDED in statistics:
            times, share = _cumulated(getattr(statistics[RECORDED], pick), unit)
            figure.add_scatter(**_RECORDED_LINE, x=times, y=share, meta=choice)
    show_first(figure, choices)
    figure.update_xaxes(**LOG_AXIS, title=unit.unit + ", logarithmic")
    figure.update_yaxes(title="% of jobs", range=[0, 101])
    caption = (
        "Share of the jobs of all seeds that took at most this long. Further left is better; a "
        "curve that is slow to reach 100 % leaves some jobs behind. A click in the legend hides a "
        "policy, a double click shows it alone."
    )
    return Chart(figure, caption, choices, "Show")


def _grey_first(drawn: dict[str, Style]) -> list[tuple[str, Style]]:
    """Return the policies in drawing order: coloured ones last, so that they are on top."""
    return sorted(drawn.items(), key=lambda item: item[1].is_main)


def _ratio(percent: float) -> float:
    return max(1 + percent / 100, _LEAST_RATIO)


def ticks(low: float, high: float) -> list[float]:
    """Return ratios from _TICKS in 10^low to 10^high, far enough apart for their labels."""
    chosen: list[float] = []
    for ratio in _TICKS:
        at = math.log10(ratio)
        is_free = all(abs(at - math.log10(c)) >= _TICK_ROOM * (high - low) for c in chosen)
        if low <= at <= high and is_free:
            chosen.append(ratio)
    return chosen


def _tick_text(ratio: float) -> str:
    return "0 %" if ratio == 1 else f"{100 * (ratio - 1):+,.0f} %"


def _add_differences(
    figure: go.Figure, rows: list[PolicyRow], rival: PolicyRow, choice: str
) -> Axis:
    """Add each policy's difference to `rival` as dot, interval and text; return a fitting x axis.

    The traces are shown while `choice` is selected.
    """
    others = [
        (i, formatting.percent_difference(row, rival))
        for i, row in enumerate(rows)
        if row.name != rival.name
    ]
    centre = [_ratio(gap.mean) for _, gap in others]
    bounds = [
        (c, c) if gap.ci95 is None else (_ratio(gap.ci95[0]), _ratio(gap.ci95[1]))
        for c, (_, gap) in zip(centre, others, strict=True)
    ]
    reach = [1.0, *centre, *(bound for pair in bounds for bound in pair)]
    common = {"meta": choice, "cliponaxis": False}
    figure.add_scatter(
        **common,
        x=centre,
        y=[i for i, _ in others],
        mode="markers",
        error_x={
            "array": [high - c for (_, high), c in zip(bounds, centre, strict=True)],
            "arrayminus": [c - low for (low, _), c in zip(bounds, centre, strict=True)],
            "thickness": 1.4,
            "width": 3,
        },
        marker={
            "size": 9,
            "color": _COLOUR,
            "symbol": ["circle" if gap.is_settled else "circle-open" for _, gap in others],
        },
        text=[f"{escape(rows[i].name)}: {gap}" for i, gap in others],
        hovertemplate="%{text}<extra></extra>",
    )
    figure.add_scatter(
        **common,
        x=[1, *(high for _, high in bounds)],
        y=[rows.index(rival), *(i for i, _ in others)],
        mode="text",
        text=["  compared with", *(f"  {gap}" for _, gap in others)],
        textposition="middle right",
        textfont={"size": 11},
        hoverinfo="skip",
    )
    low, high = math.log10(min(reach)), math.log10(max(reach))
    room = max(high - low, 0.02)
    low, high = low - 0.05 * room, high + _TEXT_ROOM * room
    shown = ticks(low, high)
    return {
        "xaxis.range": [low, high],
        "xaxis.tickvals": shown,
        "xaxis.ticktext": [_tick_text(ratio) for ratio in shown],
    }


def _underscored(axis: Axis) -> Axis:
    """Return an axis whose attribute names have _ for ., as plotly's Python functions need."""
    return {key.replace(".", "_"): value for key, value in axis.items()}


def forest(group: PolicyGroup) -> Chart:
    """Return a forest plot of paired differences in mean JCT to the best policy or a baseline."""
    names = [row.name for row in group.rows]
    figure = plain_figure(rows_px(len(names)), showlegend=False)
    rivals = {f"{group.best.name}, the best": group.best}
    rivals |= {row.name: row for row in group.rows[1:] if row.name in BASELINES}
    axes = {
        choice: _add_differences(figure, group.rows, rival, choice)
        for choice, rival in rivals.items()
    }
    show_first(figure, tuple(rivals))
    figure.update_xaxes(type="log", title="mean JCT, more or less than the chosen policy")
    figure.update_layout(**_underscored(next(iter(axes.values()))))
    figure.update_layout(meta=axes)  # page.js reads the axis of the selected choice from here
    name_axis(figure, names)
    figure.add_vline(x=1, line={"width": 1.5, "color": "#888888", "dash": "dot"})
    caption = (
        "Differences of the mean JCT, paired seed by seed, with their 95 % intervals. Hollow: "
        "not settled. The axis counts in ratios: twice and half are equally far from 0 %."
    )
    return Chart(figure, caption, tuple(rivals), "Against")


def _add_dots(
    figure: go.Figure, figures: list[Estimate], factor: float, style: Mapping[str, object]
) -> None:
    """Add a dot with its interval for each policy, the first policy on top."""
    figure.add_scatter(
        x=[figure.mean * factor for figure in figures],
        y=list(range(len(figures))),
        mode="markers",
        error_x={
            "array": [0.0 if f.ci95 is None else f.half_width * factor for f in figures],
            "thickness": 1.2,
            "width": 3,
        },
        hovertemplate="%{text}<extra></extra>",
        **style,
    )


def _log_axis(figures: list[Estimate], factor: float) -> dict[str, object]:
    """Return a logarithmic axis for means with intervals; ends of intervals far below are cut off.

    Otherwise an interval that reaches almost to 0 would press the means together.
    """
    means = [figure.mean * factor for figure in figures if figure.mean > 0]
    if not means:
        return dict(LOG_AXIS)
    halves = [0.0 if figure.ci95 is None else figure.half_width * factor for figure in figures]
    low = min(figure.mean * factor - half for figure, half in zip(figures, halves, strict=True))
    high = max(figure.mean * factor + half for figure, half in zip(figures, halves, strict=True))
    ends = math.log10(max(low, _LEAST_SHOWN * min(means))), math.log10(high)
    room = max(0.04 * (ends[1] - ends[0]), 0.02)
    return {**LOG_AXIS, "range": [ends[0] - room, ends[1] + room]}


def starvation(result: Comparison) -> Chart:
    """Return a chart of each policy's mean JCT, 99th percentile of JCT and longest wait."""
    unit, rows = formatting.time_unit(result), formatting.ranked(result)
    figure = plain_figure(
        rows_px(len(rows), 110),
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
    )
    every: list[Estimate] = []
    for key, colour, symbol in (
        ("mean_jct_s", _COLOUR, "circle"),
        ("p99_jct_s", "#e69f00", "diamond"),
        ("longest_wait_s", "#d55e00", "triangle-right"),
    ):
        figures = [row.metrics[key] for row in rows]
        every += figures
        texts = [f"{escape(row.name)}: {table.text_of(row, key, unit)} {unit.unit}" for row in rows]
        _add_dots(
            figure,
            figures,
            1 / unit.seconds,
            {
                "name": table.METRICS[key].heading,
                "marker": {"size": 9, "color": colour, "symbol": symbol},
                "text": texts,
            },
        )
    axis = _log_axis(every, 1 / unit.seconds)
    figure.update_xaxes(**axis, title=unit.unit + ", logarithmic")
    name_axis(figure, [row.name for row in rows])
    caption = (
        "A policy can have a short mean and let a few jobs wait very long. Longest wait: that of "
        "the unluckiest job of a seed, mean over seeds, with 95 % intervals."
    )
    return Chart(figure, caption)


def _panels(result: Comparison, keys: list[str]) -> go.Figure:
    """Return a figure with one panel per metric and one row per policy."""
    unit, rows = formatting.time_unit(result), formatting.ranked(result)
    figure = plain_figure(rows_px(len(rows), 100), showlegend=False)
    width = 1 / len(keys)
    for i, key in enumerate(keys):
        column = table.METRICS[key]
        number = str(i + 1) if i else ""
        texts = [f"{escape(row.name)}: {table.text_of(row, key, unit)}" for row in rows]
        figures = [row.metrics[key] for row in rows]
        _add_dots(
            figure,
            figures,
            column.factor,
            {"xaxis": f"x{number}", "marker": {"size": 9, "color": _COLOUR}, "text": texts},
        )
        figure.layout[f"xaxis{number}"] = {
            "domain": [i * width + (0.02 if i else 0), (i + 1) * width - 0.02],
            "title": {"text": column.heading},
            "automargin": True,
            "zeroline": False,
            "nticks": 6,
            **(_log_axis(figures, 1.0) if key == "finish_time_fairness" else {}),
        }
    name_axis(figure, [row.name for row in rows])
    return figure


def fairness(result: Comparison) -> Chart:
    """Return a chart of Jain's indices over users and accounts, and of finish-time fairness."""
    keys = table.columns_of(result, ("jain_users", "jain_accounts", "finish_time_fairness"))
    caption = "; ".join(f"{table.METRICS[k].heading}: {table.METRICS[k].about}" for k in keys)
    return Chart(_panels(result, keys), caption + ".")


def hyperscore(result: Comparison) -> Chart:
    """Return a chart of the paper's HyperScore of each policy."""
    return Chart(_panels(result, ["hyperscore"]), "HyperScore, mean over seeds with intervals.")
