"""The frame of an HTML page: head, title, summary, linked sections, charts and scripts.

A page is one file that works offline. Text from elsewhere is escaped here or where it is put in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib import resources
from typing import NamedTuple

from plotly.offline import get_plotlyjs

from adlro.errors import printable
from adlro.evaluate.report.chart import Chart

# The page may load nothing, not even what markup in a name would request.
_SAFE = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)


class Section(NamedTuple):
    """A part of a page with a heading, to which the page's list of sections links."""

    key: str  # of the link: letters only
    title: str  # plain text
    parts: list[str]  # HTML


class Page(NamedTuple):
    """What a page shows."""

    title: str  # plain text
    facts: str  # plain text: one line below the title
    summary: list[str]  # HTML: the conclusions, a sentence each
    pointer: str  # HTML: what a reader of the summary must know; "" = nothing
    sections: Sequence[Section]


class Figures:
    """Collects the charts of a page, and makes their HTML elements and their data."""

    def __init__(self) -> None:
        self._charts: list[Chart] = []

    def add(self, chart: Chart) -> str:
        """Add a chart; return its HTML element with caption and select box."""
        key = f"figure-{len(self._charts)}"
        self._charts.append(chart)
        menu = ""
        if len(chart.choices) > 1:
            options = "".join(f"<option>{escape(choice)}</option>" for choice in chart.choices)
            menu = f'<label>{chart.label}: <select data-for="{key}">{options}</select></label>'
        height = int(chart.figure.layout.height)
        caption = f"<figcaption>{escape(chart.caption)}</figcaption>" if chart.caption else ""
        return (
            f'<figure>{menu}<div class="chart" style="min-height:{height}px" '
            f'data-figure="{key}"></div>{caption}</figure>'
        )

    def grid(self, several: Iterable[Chart]) -> str:
        """Add several charts; return their HTML, side by side where the page is wide enough."""
        return f'<div class="grid">{"".join(self.add(chart) for chart in several)}</div>'

    def scripts(self) -> Iterator[str]:
        """Yield a script element for each chart, with the JSON from which page.js draws it."""
        for i, chart in enumerate(self._charts):
            text = chart.figure.to_json()  # plotly escapes <, so no tag can end the data
            yield f'<script type="application/json" id="figure-{i}">{text}</script>\n'


def text(words: str) -> str:
    """Return plain text as HTML: escaped, and without control or bidirectional characters."""
    return escape("\u00a0".join(printable(part) for part in words.split("\u00a0")))


def paragraph(words: str) -> str:
    """Return an HTML paragraph of plain text."""
    return f"<p>{text(words)}</p>"


def bullets(sentences: Iterable[str]) -> str:
    """Return an HTML list of plain sentences, each of which ends with a full stop."""
    return f"<ul>{''.join(f'<li>{text(sentence(words))}</li>' for words in sentences)}</ul>"


def details(title: str, inner: str, *, is_open: bool = False) -> str:
    """Return HTML below a title of plain text that folds it away."""
    start = "<details open>" if is_open else "<details>"
    return f"{start}<summary>{text(title)}</summary>{inner}</details>"


def sentence(words: str) -> str:
    """Return words that end with a full stop, or as they end if that closes a sentence."""
    return words if words.endswith((".", "!", "?")) else words + "."


def compose(page: Page, figures: Figures) -> Iterator[str]:
    """Yield the HTML of a page part by part; the sections' charts are in `figures`."""
    yield _head(page)
    for section in page.sections:
        yield f'<h2 id="{section.key}">{text(section.title)}</h2>\n' + "\n".join(section.parts)
    yield "</main>\n"
    yield from figures.scripts()
    yield f"<script>{get_plotlyjs()}</script>\n"
    yield f"<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"


def _head(page: Page) -> str:
    title = text(page.title)
    links = "".join(f'<a href="#{s.key}">{text(s.title)}</a>' for s in page.sections)
    conclusions = "".join(f"<li>{words}</li>" for words in page.summary)
    pointer = f'<p class="pointer">{page.pointer}</p>\n' if page.pointer else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_SAFE}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_asset('page.css')}</style>\n</head>\n<body>\n"
        f'<header><h1>{title}</h1><button class="theme" type="button">light / dark</button>'
        f'<p class="facts">{text(page.facts)}</p></header>\n'
        f'<section class="summary" aria-label="Summary"><ul>{conclusions}</ul></section>\n'
        f'{pointer}<nav aria-label="Sections">{links}</nav>\n<main>\n'
    )


def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
