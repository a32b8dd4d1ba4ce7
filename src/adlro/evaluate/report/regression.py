"""The regression section of the report: coefficients and scatter plots over all runs."""

from __future__ import annotations

from html import escape

import numpy as np
import plotly.graph_objects as go

from adlro.evaluate.comparison import Comparison
from adlro.evaluate.regression import REGRESSORS, RESPONSE, Regression
from adlro.evaluate.report import formatting
from adlro.evaluate.report.chart import Chart, Style, plain_figure, styles
from adlro.evaluate.report.table import METRICS
from adlro.model.state import Floats

_MOST_POINTS = 4_000  # over all policies: more slow a browser down


def _name(term: str) -> str:
    return METRICS[term].heading if term in METRICS else term


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}"


def _lines(label: str, fit: Regression, seconds: float) -> str:
    """Return the rows of a fit; coefficients are times of `seconds` seconds."""
    if fit.problem is not None:
        why = f'<td colspan="5">{escape(fit.problem)}</td>'
        return f'<tr><th scope="row">{escape(label)}</th>{why}</tr>'
    lines = []
    for i, term in enumerate(fit.coefficients):
        # For columns shown in percent, the coefficient is per 1 %.
        one = _factor(term.name) * seconds
        interval = f"{term.ci95[0] / one:,.4g} to {term.ci95[1] / one:,.4g}"
        head = f'<th scope="row">{escape(label) if i == 0 else ""}</th>'
        tail = f"{_number(fit.r2)} ({fit.n:,} runs)" if i == 0 else ""
        lines.append(
            f"<tr>{head}<td>{escape(_name(term.name))}</td>"
            f"<td>{_number(term.value / one)}</td>"
            f"<td>{interval}</td><td>{_number(term.standardised)}</td><td>{tail}</td></tr>"
        )
    return "".join(lines)


def _table(head: str, body: str) -> str:
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table class="plain">{inner}</table></div>'


def coefficients(result: Comparison) -> str:
    """Return HTML tables of the coefficients: over all runs, and per policy in a folded section."""
    overall, each = result.regression.pooled, result.regression.by_policy
    unit = formatting.time_unit(result)
    name = {"s": "seconds", "min": "minutes", "h": "hours"}.get(unit.unit, unit.unit)
    headings = (
        "runs of",
        "term",
        f"{name} of mean JCT for 1 more",
        "95 % interval",
        "standardised",
        "R²",
    )
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    own = "".join(
        _lines(row.name, each[row.name], unit.seconds)
        for row in formatting.ranked(result)
        if row.name in each
    )
    return (
        _table(head, _lines("all policies", overall, unit.seconds))
        + (f"<p>Intervals: {escape(overall.intervals)}.</p>" if overall.intervals else "")
        + f"<details><summary>Policy by policy</summary>{_table(head, own)}</details>"
    )


def scatters(result: Comparison) -> list[Chart]:
    """Return a scatter plot of mean JCT against each regressor: a point per run, a fitted line."""
    unit, fit = formatting.time_unit(result), result.regression.pooled
    seeds = max(_MOST_POINTS // len(result.policies), 1)
    slopes = {term.name: term.value for term in fit.coefficients if term.name in REGRESSORS}
    charts = []
    for key in slopes:
        figure = plain_figure(360)
        _add_points(figure, result, key, seeds)
        _add_line(figure, result, key, slopes[key])
        figure.update_xaxes(title=_name(key))
        figure.update_yaxes(title=f"mean JCT {unit.unit}", rangemode="tozero", tickformat=",~f")
        left_out = f" The first {seeds:,} seeds are drawn." if result.seeds > seeds else ""
        caption = (
            f"Mean JCT against {_name(key)}, one point per run. The line is the fit of all runs, "
            f"with the other terms at their means.{left_out}"
        )
        charts.append(Chart(figure, caption))
    return charts


def _add_points(figure: go.Figure, result: Comparison, key: str, seeds: int) -> None:
    unit, factor = formatting.time_unit(result), _factor(key)
    rows = {row.name: row for row in result.policies}
    drawn: dict[str, Style] = styles(result)
    for name, style in sorted(drawn.items(), key=lambda item: item[1].is_main):
        own = rows[name].per_seed
        figure.add_scatter(
            name=escape(name),
            x=(factor * np.array(own[key][:seeds])).astype(np.float32),
            y=(np.array(own[RESPONSE][:seeds]) / unit.seconds).astype(np.float32),
            mode="markers",
            marker={"size": 5, "color": style.colour, "opacity": 0.8 if style.is_main else 0.4},
            legendrank=list(drawn).index(name),
            hovertemplate=f"{escape(name)}: %{{y:,.4~g}} {unit.unit} at %{{x:,.4~g}}"
            "<extra></extra>",
        )


def _factor(key: str) -> float:
    return METRICS[key].factor if key in METRICS else 1.0


def _add_line(figure: go.Figure, result: Comparison, key: str, slope: float) -> None:
    """Add the fitted line of mean JCT on the metric `key`.

    It needs no intercept, because a least-squares fit passes through the means.
    """

    def pooled(name: str) -> Floats:
        return np.concatenate([row.per_seed[name] for row in result.policies])

    x, y = pooled(key), pooled(RESPONSE)
    ends = np.array([x.min(), x.max()])
    figure.add_scatter(
        name="fit",
        x=_factor(key) * ends,
        y=(y.mean() + slope * (ends - x.mean())) / formatting.time_unit(result).seconds,
        mode="lines",
        line={"color": "#d00000", "width": 2, "dash": "dash"},
        hoverinfo="skip",
    )
