"""Writes the page of an assessment: verdict, who gains and loses, schedules, what is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adlro.evaluate.assess import OURS, TODAY, Assessment, Cell, Played, Pooled, Study
from adlro.evaluate.batch import Runs
from adlro.evaluate.durations import change, duration, hours
from adlro.evaluate.group_waits import GroupChange, measured_rows
from adlro.evaluate.report import html_table
from adlro.evaluate.report.assumptions import KEY, assumption_table, calibration_parts
from adlro.evaluate.report.chart import Chart, name_axis, plain_figure, rows_px
from adlro.evaluate.report.folder import make_folder
from adlro.evaluate.report.frame import (
    Figures,
    Page,
    Section,
    bullets,
    compose,
    details,
    paragraph,
    text,
)
from adlro.evaluate.report.html_table import NOTHING, Column, Row
from adlro.evaluate.report.html_table import Cell as TableCell
from adlro.evaluate.report.labels import Labels, labels_of
from adlro.evaluate.report.seed_charts import schedules
from adlro.evaluate.stats import Estimate
from adlro.evaluate.variants import SPEED_WORDS
from adlro.evaluate.verdict import Verdict, percent, verdict
from adlro.files import write_parts
from adlro.workloads.recorded import times

_MOST_JOBS = 15  # rows of the table of jobs
_COLUMN = {"account": "account", "partition": "queue"}  # grouping -> column of the history


class Material(NamedTuple):
    """All that the page of an assessment is made of."""

    study: Study
    results: Sequence[Runs]
    found: Assessment
    told: Verdict
    labels: Labels
    command: str


def write(folder: Path, material: Material) -> Path:
    """Write the page into a folder, which is created if necessary; return the path of the file.

    The twin and ours are run again, for their schedules.

    Raises:
        OutputError: the page cannot be written.
    """
    figures = Figures()
    page = _page(material, figures)
    path = make_folder(folder)
    write_parts(path, list(compose(page, figures)))
    return path


def gather(played: Played, told: Verdict, command: str, *, anonymous: bool) -> Material:
    """Return the material of a page; if it is anonymous, with codes instead of names."""
    labels, found = labels_of(played.study.whole, anonymous=anonymous), played.found
    assert labels is not None
    if anonymous:
        found, command = _without_names(found, labels), "adlro assess …"
        told = verdict(found)
    return Material(played.study, played.results, found, told, labels, command)


def _without_names(found: Assessment, labels: Labels) -> Assessment:
    """Return the assessment with codes for all that the history names."""
    history = labels.history
    codes = {
        (grouping, name): code
        for grouping, column in _COLUMN.items()
        for name, code in zip(history.tables[column], labels.words(column), strict=False)
    }
    kinds = {"starved-account": "account", "overloaded-partition": "partition"}
    findings = []
    for one in found.findings:
        code = codes.get((kinds.get(one.kind, ""), one.name), one.name)
        hidden = one.text.replace(one.name, code)
        findings.append(one.model_copy(update={"name": code, "text": hidden}))
    calibration = found.calibration
    if calibration is not None:
        partitions = [
            one.model_copy(
                update={"partition": codes.get(("partition", one.partition), one.partition)}
            )
            for one in calibration.partitions
        ]
        calibration = calibration.model_copy(update={"partitions": partitions})
    return found.model_copy(
        update={
            "history": "the history",
            "cluster": "the cluster",
            "findings": findings,
            "calibration": calibration,
            "assumptions": [labels.sentence(words) for words in found.assumptions],
            "changes": [
                one.model_copy(update={"name": codes.get((one.grouping, one.name), one.name)})
                for one in found.changes
            ],
        }
    )


def _page(material: Material, figures: Figures) -> Page:
    found = material.found
    count = len(found.assumptions)
    facts = (
        f"{found.jobs:,} GPU jobs in {found.days:.1f} days · {found.gpus:,} GPUs · load "
        f"{found.load:.2f} · {found.windows} windows of {found.window_jobs:,} jobs after a lead-in"
    )
    pointer = f'These figures rest on <a href="#{KEY}">{count} assumptions</a>.'
    return Page(
        f"Assessment of {found.history}",
        facts,
        [text(words) for words in material.told.sentences],
        pointer,
        list(_sections(material, figures)),
    )


def _sections(material: Material, figures: Figures) -> Iterator[Section]:
    found = material.found
    yield Section(
        "gain", "What would be gained", [_cell_table(found), figures.add(_forest(found)), _CAPTION]
    )
    yield Section("losers", "Who would wait longer, and who less", _group_parts(found))
    yield Section("jobs", "Jobs that would wait much longer", [_job_table(material)])
    if found.findings:
        told = bullets(one.text for one in found.findings)
        yield Section("findings", "What stands out today", [told])
    drawn = schedules(material.study.cases[0].setting, (TODAY, OURS), material.labels)
    note = "A row for each GPU, a bar for each run of a job; the same jobs and hours for both."
    yield Section("schedules", "Schedules", [paragraph(note), figures.grid(drawn)])
    assumed = [assumption_table(found.assumptions, None)]
    if found.notes:
        assumed.append(bullets(found.notes))
    if found.calibration is not None:
        assumed += calibration_parts(found.calibration, None)
    yield Section(KEY, "What is assumed", assumed)
    if not material.labels.is_anonymous:
        steps = "".join(
            f'{paragraph(step.purpose)}<pre class="command">{text(step.command)}</pre>'
            for step in material.told.next
        )
        yield Section("next", "What next", [steps])
    yield Section("research", "For researchers", _research(found))
    called = f'<pre class="command">{text(material.command)}</pre>'
    yield Section("repeat", "How to repeat this", [called])


_CAPTION = paragraph(
    "Mean completion times (from when a job could start to its end) in hours, and the change "
    "against slurm, the twin of your scheduler, in percent with its 95 % interval over windows. "
    "Each column is one assumption: speeds of jobs on GPU models / estimates of run times."
)


def _order(found: Assessment) -> list[Pooled]:
    return sorted(found.pooled, key=lambda row: row.versus_today_pct is not None)


def _cell_table(found: Assessment) -> str:
    rows, cells = _order(found), [cell for cell in found.cells if not cell.is_reference]
    columns = [_pooled_column(found, rows)]
    columns += [_cell_column(cell, rows, has_record=found.recorded is not None) for cell in cells]
    names = [Row(row.name, row.name == OURS) for row in rows]
    if found.recorded is not None:
        names = [Row("recorded (not simulated)"), *names]
    return html_table.render("scheduler", names, columns)


def _pooled_column(found: Assessment, rows: Sequence[Pooled]) -> Column:
    cells = [TableCell(hours(row.mean_jct_s), row.mean_jct_s) for row in rows]
    if found.recorded is not None:
        seconds = found.recorded["mean_jct_s"].mean
        cells = [TableCell(hours(seconds), seconds), *cells]
    return Column("mean, h", "mean completion time over all assumptions", cells)


def _cell_column(cell: Cell, rows: Sequence[Pooled], *, has_record: bool) -> Column:
    cells = [NOTHING] if has_record else []
    for row in rows:
        own = cell.row(row.name)
        if own is None:
            cells.append(NOTHING)
        elif own.versus_today_pct is None:
            cells.append(TableCell(f"{hours(own.mean_jct_s.mean)} h", 0.0))
        else:
            cells.append(TableCell(_percent(own.versus_today_pct), own.versus_today_pct.mean))
    return Column(f"{SPEED_WORDS[cell.speeds]} / {cell.estimates}", "speeds / estimates", cells)


def _percent(one: Estimate) -> str:
    if one.ci95 is None:
        return f"{one.mean:+.1f} %"
    return f"{one.mean:+.1f} % ({one.ci95[0]:+.0f} to {one.ci95[1]:+.0f})"


def _forest(found: Assessment) -> Chart:
    """Return a chart of each policy's change against the twin, over all assumptions."""
    rows = [row for row in found.pooled if row.versus_today_pct is not None]
    figure = plain_figure(rows_px(len(rows)), showlegend=False)
    changes = [row.versus_today_pct for row in rows if row.versus_today_pct is not None]
    bounds = [one.ci95 or (one.mean, one.mean) for one in changes]
    figure.add_scatter(
        x=[one.mean for one in changes],
        y=list(range(len(rows))),
        mode="markers",
        marker={
            "size": 9,
            "color": ["#d55e00" if row.name == OURS else "#1f83c4" for row in rows],
            "symbol": ["circle" if one.is_settled else "circle-open" for one in changes],
        },
        error_x={
            "array": [high - one.mean for one, (_, high) in zip(changes, bounds, strict=True)],
            "arrayminus": [one.mean - low for one, (low, _) in zip(changes, bounds, strict=True)],
            "color": "#888888",
            "thickness": 1.2,
            "width": 3,
        },
        text=[f"{row.name}: {percent(one)}" for row, one in zip(rows, changes, strict=True)],
        hovertemplate="%{text}<extra></extra>",
    )
    figure.add_vline(x=0, line={"width": 1.5, "color": "#888888", "dash": "dot"})
    figure.update_xaxes(title="change of the mean completion time against slurm, %")
    name_axis(figure, [row.name for row in rows])
    caption = "Over all assumptions, with 95 % intervals. Left of 0: shorter. Hollow: not settled."
    return Chart(figure, caption)


def _group_parts(found: Assessment) -> list[str]:
    losers = found.losers
    parts = [
        _change_table(losers)
        if losers
        else paragraph("No account, partition or gang size waits longer on average.")
    ]
    gainers = [one for one in reversed(found.changes) if not one.is_longer]
    if gainers:
        parts.append(details("Who would wait less", _change_table(gainers), is_open=not losers))
    note = (
        "Mean waits under slurm and under adlro, over all assumptions; the interval is over "
        "windows. Where it contains 0, chance may be all there is."
    )
    return [*parts, paragraph(note)]


def _change_table(groups: Sequence[GroupChange]) -> str:
    def column(heading: str, values: Sequence[float], shown: Sequence[str]) -> Column:
        pairs = zip(shown, values, strict=True)
        return Column(heading, "", [TableCell(words, value) for words, value in pairs])

    moved = [one.change_s for one in groups]
    intervals = ["" if one.ci95 is None else " to ".join(map(change, one.ci95)) for one in moved]
    return html_table.render(
        "jobs of",
        [Row(one.label) for one in groups],
        [
            column("jobs", [one.jobs for one in groups], [f"{one.jobs:,}" for one in groups]),
            column(
                "wait today",
                [one.before_s for one in groups],
                [duration(one.before_s) for one in groups],
            ),
            column(
                "wait then",
                [one.after_s for one in groups],
                [duration(one.after_s) for one in groups],
            ),
            column("change", [one.mean for one in moved], [change(one.mean) for one in moved]),
            column("95 % interval", [one.half_width for one in moved], intervals),
            column(
                "longer under",
                [one.longer_in for one in groups],
                [f"{one.longer_in} of {one.assumptions} assumptions" for one in groups],
            ),
        ],
    )


def _job_table(material: Material) -> str:
    """Return the table of the jobs whose waits grow most, under the first assumption."""
    study, runs = material.study, material.results[0]
    setting, windows = study.cases[0].setting, study.windows
    rows = np.concatenate(measured_rows(setting, windows))
    before, after = (
        np.concatenate([run.wait_s[windows.lead_in :] for run in runs[name]])
        for name in (TODAY, OURS)
    )
    worst = np.argsort(before - after, kind="stable")[:_MOST_JOBS]  # lost runs, nan, come last
    worst = worst[after[worst] > before[worst]]
    if not len(worst):
        return paragraph("No job would wait longer.")
    happened = times(study.variants.history, rows[worst]).wait_s
    jobs = [material.labels.job(int(row)) for row in rows[worst]]
    gpus = study.variants.history.gpus[rows[worst]] / 1000
    words = {"name": [job.name for job in jobs], "account": [job.account for job in jobs],
             "partition": [job.partition for job in jobs]}  # fmt: skip
    columns = [html_table.words(key, own) for key, own in words.items() if any(own)]
    columns.append(Column("GPUs", "", [TableCell(f"{size:g}", float(size)) for size in gpus]))
    for heading, waits in (
        ("wait today", before[worst]),
        ("wait then", after[worst]),
        ("wait recorded", happened),
    ):
        cells = [TableCell(duration(s), s) if np.isfinite(s) else NOTHING for s in waits.tolist()]
        columns.append(Column(heading, "", cells))
    table = html_table.render("job", [Row(job.id) for job in jobs], columns)
    return table + paragraph("With all GPUs alike and estimates by request.")


def _research(found: Assessment) -> list[str]:
    cells = list(found.cells)
    names = [f"{row.name}, {SPEED_WORDS[cell.speeds]} / {cell.estimates}"
             for cell in cells for row in cell.policies]  # fmt: skip
    rows = [row for cell in cells for row in cell.policies]
    columns = [
        Column(f"{heading}, s", "", [TableCell(f"{one.mean:,.0f}", one.mean) for one in figures])
        for heading, figures in (
            ("mean JCT", [row.mean_jct_s for row in rows]),
            ("mean wait", [row.mean_wait_s for row in rows]),
            ("p99 JCT", [row.p99_jct_s for row in rows]),
        )
    ]
    uses = [100 * row.gpu_utilisation.mean for row in rows]
    columns.append(Column("GPU use, %", "", [TableCell(f"{use:.1f}", use) for use in uses]))
    errors = ", ".join(
        f"{name} {error:.2f}"
        for name, error in sorted(found.estimator.errors.items(), key=lambda pair: pair[1])
    )
    return [
        paragraph(
            f"Estimators by their mean |log error| on the lead-in: {errors}. The estimator oracle "
            "knows run times in advance, which no scheduler does: a reference only."
        ),
        details("All figures", html_table.render("policy", [Row(name) for name in names], columns)),
    ]
