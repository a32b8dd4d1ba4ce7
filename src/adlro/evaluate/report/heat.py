"""Heat maps of mean JCT by policy and group of jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from adlro.evaluate.comparison import Comparison
from adlro.evaluate.report import formatting
from adlro.evaluate.report.chart import Chart, name_axis, plain_figure, rows_px
from adlro.evaluate.report.collect import GroupTotals, JobStatistics
from adlro.evaluate.report.formatting import TimeUnit
from adlro.evaluate.report.groups import Grouping, group_names
from adlro.evaluate.report.labels import Labels, shortened
from adlro.model.state import Counts

_MOST_TEXTS = 12  # columns up to which cells have room for a number
_MOST_COLUMNS = 60  # the largest groups are shown
_LEAST_SCALE = 6  # policies from which the colour bar is tall enough to read
_DARKEST = 3.0  # ratio to the best of the column
_HEADING = 14  # characters of a column's heading; hovering shows the rest


class _Shown(NamedTuple):
    """The groups of jobs that are the columns of a heat map."""

    columns: list[str]  # plain
    groups: Counts  # indices of these groups

    @property
    def headings(self) -> list[str]:
        """Names of the columns, escaped, short enough to stand side by side."""
        return [escape(shortened(name, _HEADING), quote=False) for name in self.columns]


def _columns(names: Sequence[str], jobs: Counts) -> _Shown:
    """Return the groups that have jobs, at most _MOST_COLUMNS of them, in their order."""
    order = np.argsort(-jobs, kind="stable")[: min(int((jobs > 0).sum()), _MOST_COLUMNS)]
    groups: Counts = np.sort(order)
    return _Shown([names[k] for k in groups.tolist()], groups)


def heat(
    policies: list[str], columns: Sequence[str], totals: list[GroupTotals], unit: TimeUnit
) -> go.Figure:
    """Return a heat map of mean JCT by policy and group of jobs.

    The colour shows the ratio to the best policy in the same group.
    """
    shown = _columns(columns, totals[0].jobs)
    mean = np.array([own.mean_s[shown.groups] for own in totals]) / unit.seconds
    ratio = mean / mean.min(axis=0)
    margin = {"l": 10, "r": 15, "t": 55, "b": 15}
    figure = plain_figure(rows_px(len(policies), 80), margin=margin)
    texts = [[f"{value:,.{unit.digits}f}" for value in row] for row in mean.tolist()]
    hover = [
        [
            f"{escape(name)}, {escape(column, quote=False)}: {text} {unit.unit}, "
            f"{times:.2f} × the best"
            for column, text, times in zip(shown.columns, row, own, strict=True)
        ]
        for name, row, own in zip(policies, texts, ratio.tolist(), strict=True)
    ]
    has_texts = len(shown.columns) <= _MOST_TEXTS
    figure.add_heatmap(
        z=np.log2(ratio).astype(np.float32),
        x=list(range(len(shown.columns))),
        y=list(range(len(policies))),
        zmin=0,
        zmax=math.log2(_DARKEST),
        colorscale="Blues",
        showscale=len(policies) >= _LEAST_SCALE,
        text=texts,
        texttemplate="%{text}" if has_texts else None,
        hovertext=hover,
        hoverinfo="text",
        colorbar={
            "title": {"text": "× best", "side": "top"},
            "tickvals": [0, math.log2(1.5), 1, math.log2(_DARKEST)],
            "ticktext": ["1", "1.5", "2", "≥ 3"],
            "thickness": 12,
            "len": 1,
        },
        xgap=1,
        ygap=1,
    )  # fmt: skip
    figure.update_xaxes(
        side="top",
        tickvals=list(range(len(shown.columns))),
        ticktext=shown.headings,
        tickangle=0 if has_texts else -45,
    )
    name_axis(figure, policies)
    return figure


def by_groups(
    result: Comparison,
    statistics: dict[str, JobStatistics],
    ways: Sequence[Grouping],
    labels: Labels | None,
) -> list[Chart]:
    """Return a heat map of mean JCT for each grouping.

    A heat map is left out if all jobs are in one of its groups.
    """
    unit = formatting.time_unit(result)
    policies = [row.name for row in formatting.ranked(result)]
    charts = []
    for way in ways:
        totals = [statistics[name].groups[way.key] for name in policies]
        if (totals[0].jobs > 0).sum() > 1:
            figure = heat(policies, group_names(way, labels), totals, unit)
            caption = (
                f"Mean JCT in {unit.unit} {way.title}, jobs of all seeds together. Darker: further "
                "from the best of that column."
            )
            charts.append(Chart(figure, caption))
    return charts
