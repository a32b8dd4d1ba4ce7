"""Colours of the policies, axes and sizes that all charts of the report share.

The page sets the colours of text, grid and background for its light and dark themes.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

import plotly.graph_objects as go

from adlro.evaluate.comparison import Comparison
from adlro.evaluate.report import formatting

_COLOURS = ("#1f83c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#a6761d")
_OTHERS = "#9a9a9a"
_ROW_PX = 22
_LEGEND_PX = 19
LOG_AXIS = {"type": "log", "dtick": "D2", "tickformat": ",~f"}
NO_THEME = go.layout.Template()


class Chart(NamedTuple):
    """A figure with its caption and, optionally, a select box."""

    figure: go.Figure
    caption: str  # plain text
    choices: tuple[str, ...] = ()  # of the select box: each shows the traces with this meta
    label: str = ""  # of the select box


class Style(NamedTuple):
    """Colour and line width in which a policy is drawn."""

    colour: str
    width: float
    is_main: bool  # False = grey, one of the less important of many policies


def styles(result: Comparison) -> dict[str, Style]:
    """Return the style of each policy: colours, or grey for the less important of many policies.

    Always in colour: the best three, the best of each group, min-min and fcfs.
    """
    ranked = [row.name for row in formatting.ranked(result)]
    main = ranked
    if len(ranked) > len(_COLOURS):
        wanted = [
            *ranked[:3],
            *(group.best.name for group in formatting.groups(result)),
            *formatting.BASELINES,
        ]
        main = [name for name in dict.fromkeys(wanted) if name in ranked]
    drawn = {name: Style(_COLOURS[i], 2.2, True) for i, name in enumerate(main)}
    return {name: drawn.get(name, Style(_OTHERS, 1.0, False)) for name in ranked}


def plain_figure(height: int, **layout: object) -> go.Figure:
    """Return an empty figure without a plotly theme; `layout` adds or replaces attributes."""
    figure = go.Figure()
    figure.update_layout(
        **{
            "template": NO_THEME,
            "height": height,
            "margin": {"l": 10, "r": 15, "t": 30, "b": 50},
            "legend": {"font": {"size": 11}, "tracegroupgap": 0},
            "hoverlabel": {"align": "left", "namelength": -1},
            **layout,
        }
    )
    figure.update_xaxes(automargin=True, zeroline=False)
    figure.update_yaxes(automargin=True, zeroline=False)
    return figure


def name_axis(figure: go.Figure, names: list[str]) -> None:
    """Label the y axis with policy names, the first on top."""
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[escape(name) for name in names],
        range=[len(names) - 0.4, -0.6],
        automargin=True,
    )


def show_first(figure: go.Figure, choices: tuple[str, ...]) -> None:
    """Hide all traces but those of the first choice of the select box."""
    for trace in figure.data:
        trace.visible = trace.meta == choices[0]


def rows_px(rows: int, extra: int = 90) -> int:
    """Return the height in pixels of a chart with one row per policy."""
    return max(rows, 2) * _ROW_PX + extra


def legend_px(entries: int, least: int) -> int:
    """Return the height in pixels of a chart that fits its legend and is at least `least`."""
    return max(least, entries * _LEGEND_PX + 90)


def line(name: str, style: Style) -> dict[str, object]:
    """Return the plotly attributes of a policy's line."""
    return {
        "name": escape(name),
        "mode": "lines",
        "line": {"color": style.colour, "width": style.width},
        "opacity": 1.0 if style.is_main else 0.55,
        "legendgroup": name,
    }
