"""What every chart of the page has in common: colours of policies, axes, sizes.

Colours of text, grid and background are left to the page, which is light or dark.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

import plotly.graph_objects as go

from adlro.evaluate.comparison import Comparison
from adlro.evaluate.report import facts

_COLOURS = ("#1f83c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#a6761d")
_OTHERS = "#9a9a9a"
_ROW_PX = 22
_LEGEND_PX = 19
LOG_AXIS = {"type": "log", "dtick": "D2", "tickformat": ",~f"}
NO_THEME = go.layout.Template()


class Chart(NamedTuple):
    """A figure and what stands around it."""

    figure: go.Figure
    caption: str  # plain text
    choices: tuple[str, ...] = ()  # of a select box: shows the traces whose meta it is
    label: str = ""  # of the select box


class Style(NamedTuple):
    """How a policy is drawn."""

    colour: str
    width: float
    is_main: bool


def styles(result: Comparison) -> dict[str, Style]:
    """A colour for each of a few policies; of many, for those that matter, and grey for others.

    Those that matter: the best three, the best that may preempt, min-min and fcfs.
    """
    ranked = [row.name for row in facts.best_first(result)]
    main = ranked
    if len(ranked) > len(_COLOURS):
        wanted = [*ranked[:3], *(group.best.name for group in facts.groups(result)), *facts.BARS]
        main = [name for name in dict.fromkeys(wanted) if name in ranked]
    drawn = {name: Style(_COLOURS[i], 2.2, True) for i, name in enumerate(main)}
    return {name: drawn.get(name, Style(_OTHERS, 1.0, False)) for name in ranked}


def plain_figure(height: int, **layout: object) -> go.Figure:
    """A figure without a theme of its own."""
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
    """Policies down the side, the first one on top."""
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[escape(name) for name in names],
        range=[len(names) - 0.4, -0.6],
        automargin=True,
    )


def show_first(figure: go.Figure, choices: tuple[str, ...]) -> None:
    """Hide the traces of all choices but the first."""
    for trace in figure.data:
        trace.visible = trace.meta == choices[0]


def rows_px(rows: int, extra: int = 90) -> int:
    """Height of a chart with a line for each policy."""
    return max(rows, 2) * _ROW_PX + extra


def legend_px(entries: int, least: int) -> int:
    """Height of a chart with a legend beside it."""
    return max(least, entries * _LEGEND_PX + 90)


def line(name: str, look: Style) -> dict[str, object]:
    """What a line of a policy looks like."""
    return {
        "name": escape(name),
        "mode": "lines",
        "line": {"color": look.colour, "width": look.width},
        "opacity": 1.0 if look.is_main else 0.55,
        "legendgroup": name,
    }
