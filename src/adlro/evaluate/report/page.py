"""Writes the report of a comparison, one HTML file: summary, table, charts, how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from plotly.offline import get_plotlyjs

from adlro.config.to_toml import as_toml
from adlro.evaluate.comparison import Comparison
from adlro.evaluate.report import charts, formatting, regression, seed_charts, summary, table
from adlro.evaluate.report.chart import Chart
from adlro.evaluate.report.collect import JobStatistics
from adlro.evaluate.report.folder import make_folder
from adlro.evaluate.stats import FEWEST_SEEDS, MOST_SEEDS
from adlro.files import write_parts
from adlro.policies.registry import Policy
from adlro.workloads.setting import Setting

# The page may load nothing, not even what markup in a name would request.
_SAFE = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
_HYPERSCORE = (
    "HyperScore is here because the paper defines it. It squeezes nearly all policies into the "
    "last percent above 100: two whose mean JCT differs by a factor of ten can both read 100.0. "
    "A difference in it says little, and the lack of one says nothing; compare completion times."
)
_REGRESSION = (
    "Ordinary least squares of the mean JCT of a run on how busy the GPUs were, how much work "
    "arrived and how many jobs waited. It describes what goes along with a long JCT in these runs; "
    "it does not say what causes it: a long queue and a long JCT are nearly the same thing."
)
_PREEMPTION = (
    "Preempting is not free: a job that is stopped saves and restores a checkpoint at the cost "
    "that its type has in the scenario (checkpoint_s), the same for every policy; one that cannot "
    "starts over."
)
_HINDSIGHT = (
    "The hindsight reference never preempts but knows the future. It is not a bound: a policy "
    "can beat it."
)
_STATISTICS = (
    f"Intervals of means are Student's t over seeds. Those of differences are from a studentised "
    f"bootstrap of whole seeds (fewer than {FEWEST_SEEDS} or more than {MOST_SEEDS:,} seeds: "
    "Student's t). p: Wilcoxon's signed ranks, two-sided, corrected by Holm for all rivals of the "
    "best of a table. Effect sizes are in the JSON (--json)."
)


class _Section(NamedTuple):
    key: str
    title: str
    parts: list[str]  # HTML


def write(
    folder: Path,
    setting: Setting,
    policies: Sequence[Policy],
    result: Comparison,
    statistics: dict[str, JobStatistics],
) -> Path:
    """Write the report of a comparison into a folder, and return the path of the HTML file.

    The folder is created if necessary. Every policy is run on the first seed again, for the charts
    over time.

    Raises:
        OutputError: the report cannot be written.
        PolicyError: a policy failed when run again.
    """
    seed = seed_charts.replay(setting, policies, result)
    parts = list(compose(setting, result, statistics, seed))
    path = make_folder(folder)
    write_parts(path, parts)
    return path


def compose(
    setting: Setting,
    result: Comparison,
    statistics: dict[str, JobStatistics],
    seed: seed_charts.SeedReplay,
) -> Iterator[str]:
    """Yield the HTML of the report part by part."""
    page_charts = _Charts()
    sections = list(_sections(setting, result, statistics, seed, page_charts))
    title = escape(f"{result.scenario}: {_policies(result)}")
    links = "".join(f'<a href="#{s.key}">{escape(s.title)}</a>' for s in sections)
    sentences = "".join(f"<li>{sentence}</li>" for sentence in summary.summary(result))
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_SAFE}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_asset('page.css')}</style>\n</head>\n<body>\n"
        f'<header><h1>{title}</h1><button class="theme" type="button">light / dark</button>'
        f'<p class="facts">{escape(_subtitle(result))}</p></header>\n'
        f'<section class="summary" aria-label="Summary"><ul>{sentences}</ul></section>\n'
        f'<nav aria-label="Sections">{links}</nav>\n<main>\n'
    )
    for section in sections:
        yield f'<h2 id="{section.key}">{escape(section.title)}</h2>\n' + "\n".join(section.parts)
    yield "</main>\n"
    yield from page_charts.scripts()
    yield f"<script>{get_plotlyjs()}</script>\n"
    yield f"<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"


def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _policies(result: Comparison) -> str:
    count = len(result.policies)
    return f"{count} policies compared" if count > 1 else result.policies[0].name


def _subtitle(result: Comparison) -> str:
    last = result.first_seed + result.seeds - 1
    seeds = f"seed {last}" if result.seeds == 1 else f"{result.first_seed} to {last}"
    return (
        f"scenario {result.scenario} · load {result.load:g} · {result.jobs:,} jobs × "
        f"{formatting.plural(result.seeds, 'seed')} ({seeds}) · run-time estimates: "
        f"{result.estimates} · measured: {result.measure} · adlro {result.version}"
    )


class _Charts:
    """Collects the charts of a page, and makes their HTML elements and their data."""

    def __init__(self) -> None:
        self._figures: list[Chart] = []

    def add(self, chart: Chart) -> str:
        """Add a chart; return its HTML element with caption and select box."""
        key = f"figure-{len(self._figures)}"
        self._figures.append(chart)
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
        for i, chart in enumerate(self._figures):
            text = chart.figure.to_json()  # plotly escapes <, so no tag can end the data
            yield f'<script type="application/json" id="figure-{i}">{text}</script>\n'


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _sections(
    setting: Setting,
    result: Comparison,
    statistics: dict[str, JobStatistics],
    seed: seed_charts.SeedReplay,
    page_charts: _Charts,
) -> Iterator[_Section]:
    yield _Section("table", "Table", _tables(result))
    yield _Section(
        "times", "Completion times", [page_charts.add(charts.distribution(result, statistics))]
    )
    pairs = [group for group in formatting.groups(result) if len(group.rows) > 1]
    if pairs:
        forests = [page_charts.add(charts.forest(group)) for group in pairs]
        yield _Section("differences", "Paired differences", forests)
    models = [model.name for model in setting.layout.models]
    over = [
        page_charts.add(seed_charts.gpu_use(result, seed, models)),
        page_charts.add(seed_charts.queue_length(result, seed)),
    ]
    yield _Section("course", "GPUs in use and jobs waiting over time", over)
    note = _paragraph(_schedules(result, seed))
    yield _Section("schedules", "Schedules", [note, page_charts.grid(seed.schedules)])
    types = [job_type.name for job_type in setting.scenario.types]
    groups = charts.by_groups(result, statistics, types)
    if groups:
        yield _Section(
            "groups", "Groups of jobs", [page_charts.add(groups[0]), page_charts.grid(groups[1:])]
        )
    waits = [page_charts.add(charts.starvation(result)), page_charts.add(charts.fairness(result))]
    yield _Section("waits", "Starvation and fairness", waits)
    fit = [_paragraph(_REGRESSION), regression.coefficients(result)]
    yield _Section(
        "regression", "Regression", [*fit, page_charts.grid(regression.scatters(result))]
    )
    score = [_paragraph(_HYPERSCORE), page_charts.add(charts.hyperscore(result))]
    yield _Section("hyperscore", "HyperScore", score)
    yield _Section("repeat", "How to repeat this", _repeat(setting, result))


def _tables(result: Comparison) -> list[str]:
    parts = []
    for title, text in table.tables(result):
        parts += [f"<h3>{title}</h3>", text]
    if any(group.is_preemptive for group in formatting.groups(result)):
        parts.append(_paragraph(_PREEMPTION))
    if result.hindsight is not None:
        unit = formatting.time_unit(result)
        known = f"{formatting.format_time(result.hindsight, unit)} {unit.unit}"
        parts.append(_paragraph(f"{_HINDSIGHT} Its mean JCT is {known}."))
    return [
        *parts,
        _paragraph(
            "± and brackets: 95 % intervals over seeds; differences are paired seed by seed. "
            "Bold: the best of a column. JCT: completion time, finish - arrival; all jobs run to "
            "the end. Click a heading to sort, hover over it to see what it means; wide tables "
            "scroll."
        ),
    ]


def _schedules(result: Comparison, seed: seed_charts.SeedReplay) -> str:
    text = (
        f"Seed {seed.number}: a row for each GPU, a bar for each run of a job, in the colour of "
        "its type; the same hours for all."
    )
    if len(seed.schedules) == len(result.policies):
        return text
    return f"{text} Shown: {len(seed.schedules)} of {len(result.policies)}, the best and fcfs."


def _repeat(setting: Setting, result: Comparison) -> list[str]:
    last = result.first_seed + result.seeds
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    command = f'<pre class="command">{escape(result.command)}</pre>' if result.command else ""
    return [
        command,
        _paragraph(f"Seeds {result.first_seed}:{last} (the last not included). "
                   f"Versions: {versions or 'adlro ' + result.version}."),
        _paragraph(_STATISTICS),
        "<details><summary>The scenario with its base and all options applied (TOML)</summary>"
        f"<pre>{escape(as_toml(setting.scenario))}</pre></details>",
        "<details><summary>What each metric means</summary>"
        f"{table.definitions(result)}</details>",
    ]  # fmt: skip
