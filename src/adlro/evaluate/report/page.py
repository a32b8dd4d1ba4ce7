"""Writes the page of a comparison, one HTML file: conclusions, tables, charts, assumptions.

For a history the page speaks of its jobs, users, accounts, partitions and nodes; otherwise of the
scenario's job types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from adlro.config.to_toml import as_toml
from adlro.evaluate.comparison import Comparison
from adlro.evaluate.report import (
    assumptions,
    charts,
    formatting,
    frame,
    heat,
    research,
    seed_charts,
    summary,
    table,
    waits,
)
from adlro.evaluate.report.collect import JobStatistics, recorded_statistics
from adlro.evaluate.report.folder import make_folder
from adlro.evaluate.report.frame import Figures, Section, details, paragraph
from adlro.evaluate.report.groups import groupings
from adlro.evaluate.report.labels import Labels, labels_of
from adlro.evaluate.rows import RECORDED
from adlro.files import write_parts
from adlro.policies.registry import Policy
from adlro.workloads.setting import Setting

_PREEMPTION = (
    "Preempting is not free: a job that is stopped saves and restores a checkpoint at the cost "
    "that its type has in the scenario (checkpoint_s), the same for every policy; one that cannot "
    "starts over."
)
_LOOK_AHEAD = (
    "The look-ahead with foresight never preempts but knows the future. It is no policy, and no "
    "bound: a policy can beat it."
)
_FIRST_OF_EACH = (
    "Tables of jobs are of one run of each seed, schedules of one with unchanged estimates."
)
_LONGEST = (
    "The jobs that wait longest for their start under each policy, over all seeds, with what was "
    "recorded of the same jobs."
)
_GROUPS = "Mean waits until the first start, over the measured jobs of all seeds."
_ANONYMOUS = (
    "This page is anonymous: J, U, A, P and N with a number stand for jobs, users, accounts, "
    "partitions and nodes. The command and the scenario, which name them, are left out."
)


class Material(NamedTuple):
    """Everything that the page of a comparison is made from."""

    setting: Setting
    result: Comparison
    statistics: dict[str, JobStatistics]  # by policy; "recorded" = by the record, if known
    seed: seed_charts.SeedReplay
    labels: Labels | None  # of the history; None = there is none

    @property
    def is_anonymous(self) -> bool:
        """True if the page may not name anything of the history."""
        return self.labels is not None and self.labels.is_anonymous


def write(
    folder: Path,
    setting: Setting,
    policies: Sequence[Policy],
    result: Comparison,
    statistics: dict[str, JobStatistics],
    *,
    anonymous: bool = False,
) -> Path:
    """Write the page of a comparison into a folder, and return the path of the HTML file.

    The folder is created if necessary. Every policy is run on the first seed again, for the charts
    over time. An anonymous page has codes in place of all names and ids of a history.

    Raises:
        OutputError: the page cannot be written.
        PolicyError: a policy failed when run again.
    """
    parts = list(compose(gather(setting, policies, result, statistics, anonymous=anonymous)))
    path = make_folder(folder)
    write_parts(path, parts)
    return path


def gather(
    setting: Setting,
    policies: Sequence[Policy],
    result: Comparison,
    statistics: dict[str, JobStatistics],
    *,
    anonymous: bool = False,
) -> Material:
    """Return what the page of a comparison is made from; runs every policy on the first seed."""
    labels = labels_of(setting, anonymous=anonymous)
    seed = seed_charts.replay(setting, policies, result, labels)
    if result.recorded is not None:
        seeds = range(result.first_seed, result.first_seed + result.seeds)
        recorded = recorded_statistics(setting, seeds)
        if recorded is not None:
            statistics = {**statistics, RECORDED: recorded}
    return Material(setting, result, statistics, seed, labels)


def compose(made: Material) -> Iterator[str]:
    """Yield the HTML of the page part by part."""
    figures = Figures()
    result = made.result
    sections = list(_sections(made, figures))
    name = "a history" if made.is_anonymous else result.scenario
    page = frame.Page(
        f"{name}: {_policies(result)}",
        _facts(made),
        summary.summary(result),
        assumptions.pointer(made.setting, result),
        sections,
    )
    yield from frame.compose(page, figures)


def _policies(result: Comparison) -> str:
    count = len(result.policies)
    return f"{count} policies compared" if count > 1 else result.policies[0].name


def _facts(made: Material) -> str:
    result = made.result
    last = result.first_seed + result.seeds - 1
    seeds = f"seed {last}" if result.seeds == 1 else f"{result.first_seed} to {last}"
    scenario = "" if made.is_anonymous else f"scenario {result.scenario} · "
    return (
        f"{scenario}load {result.load:.3g} · {result.jobs:,} jobs × "
        f"{formatting.plural(result.seeds, 'seed')} ({seeds}) · run-time estimates: "
        f"{result.estimates} · measured: {result.measure} · adlro {result.version}"
    )


def _sections(made: Material, figures: Figures) -> Iterator[Section]:
    result, statistics, seed = made.result, made.statistics, made.seed
    yield Section("table", "Table", _tables(result))
    if made.labels is not None:
        yield Section("longest", "Jobs that wait longest", _longest(made, made.labels))
        yield Section("groups", "Groups of jobs", _history_groups(made, figures))
    yield Section(
        "times", "Completion times", [figures.add(charts.distribution(result, statistics))]
    )
    pairs = [group for group in formatting.groups(result) if len(group.rows) > 1]
    if pairs:
        forests = [figures.add(charts.forest(group)) for group in pairs]
        yield Section("differences", "Paired differences", forests)
    models = [model.name for model in made.setting.layout.models]
    over = [
        figures.add(seed_charts.gpu_use(result, seed, models)),
        figures.add(seed_charts.queue_length(result, seed)),
    ]
    yield Section("course", "GPUs in use and jobs waiting over time", over)
    note = paragraph(_schedules(made))
    yield Section("schedules", "Schedules", [note, figures.grid(seed.schedules)])
    if made.labels is None and (maps := _heat_maps(made, figures)):
        yield Section("groups", "Groups of jobs", maps)
    yield Section("waits", "Longest waits", [figures.add(charts.starvation(result))])
    assumed = assumptions.section(made.setting, result, made.labels)
    if assumed is not None:
        yield assumed
    yield Section("repeat", "How to repeat this", _repeat(made))
    yield research.section(result, figures)


def _longest(made: Material, labels: Labels) -> list[str]:
    recorded = [RECORDED] if RECORDED in made.statistics else []
    names = [*waits.shown_policies(made.result), *recorded]
    tables = waits.longest_waits(made.setting, labels, made.statistics, names)
    return [paragraph(_LONGEST), *tables]


def _history_groups(made: Material, figures: Figures) -> list[str]:
    """Return a table of mean waits for each grouping, and the heat maps of completion times."""
    policies = waits.shown_policies(made.result)
    names = [*([RECORDED] if RECORDED in made.statistics else []), *policies]
    parts = [paragraph(_GROUPS)]
    for way in groupings(made.setting):
        totals = {name: made.statistics[name].groups[way.key] for name in names}
        columns = [waits.GroupWaits(name, own) for name, own in totals.items()]
        text = waits.group_table(way, columns, totals[policies[0]].jobs, made.labels)
        if text:
            parts += [f"<h3>{escape(way.title.capitalize())}</h3>", text]
    maps = _heat_maps(made, figures)
    if maps:
        parts.append(details("Completion times by group", "".join(maps)))
    return parts


def _heat_maps(made: Material, figures: Figures) -> list[str]:
    ways = groupings(made.setting)
    found = heat.by_groups(made.result, made.statistics, ways, made.labels)
    return [figures.add(found[0]), figures.grid(found[1:])] if found else []


def _tables(result: Comparison) -> list[str]:
    parts = []
    for title, text in table.tables(result):
        parts += [f"<h3>{title}</h3>", text]
    if any(group.is_preemptive for group in formatting.groups(result)):
        parts.append(paragraph(_PREEMPTION))
    parts += _references(result)
    if result.jitter is not None:
        parts.append(paragraph(" ".join((*result.jitter_notes(), _FIRST_OF_EACH))))
    return [
        *parts,
        paragraph(
            "± and brackets: 95 % intervals over seeds; differences are paired seed by seed. "
            "Bold: the best of a column. JCT: completion time, finish - arrival; all jobs run to "
            "the end. Click a heading to sort, hover over it to see what it means."
        ),
    ]


def _references(result: Comparison) -> list[str]:
    """Return paragraphs on the look-ahead with foresight and the lower bounds, if known."""
    unit, parts = formatting.time_unit(result), []
    if result.hindsight is not None:
        known = f"{formatting.format_time(result.hindsight, unit)} {unit.unit}"
        parts.append(paragraph(f"{_LOOK_AHEAD} Its mean JCT is {known}."))
    if result.lower_bound is not None and result.lower_bound_preemptive is not None:
        once, free = (
            f"{formatting.format_time(bound, unit)} {unit.unit}"
            for bound in (result.lower_bound, result.lower_bound_preemptive)
        )
        parts.append(
            paragraph(
                f"No schedule without preemption has a lower mean JCT than {once}, and none at all "
                f"than {free}: lower bounds, which hold even if the future is known."
            )
        )
    return parts


def _schedules(made: Material) -> str:
    result, drawn = made.result, len(made.seed.schedules)
    colour = "of its type" if made.labels is None else "chosen"
    text = (
        f"Seed {made.seed.number}: a row for each GPU, a bar for each run of a job, in the colour "
        f"{colour}; the same hours for all."
    )
    if drawn == len(result.policies):
        return text
    return f"{text} Shown: {drawn} of {len(result.policies)}, the best and fcfs."


def _repeat(made: Material) -> list[str]:
    setting, result = made.setting, made.result
    last = result.first_seed + result.seeds
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    seeds = paragraph(
        f"Seeds {result.first_seed}:{last} (the last not included). "
        f"Versions: {versions or 'adlro ' + result.version}."
    )
    meanings = details("What each metric means", table.definitions(result))
    if made.is_anonymous:
        return [paragraph(_ANONYMOUS), seeds, meanings]
    command = f'<pre class="command">{escape(result.command)}</pre>' if result.command else ""
    toml = f"<pre>{escape(as_toml(setting.scenario))}</pre>"
    title = "The scenario with its base and all options applied (TOML)"
    return [command, seeds, details(title, toml), meanings]
