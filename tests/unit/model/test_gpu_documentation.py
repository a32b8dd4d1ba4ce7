"""docs/gpus.md shows the catalogue as it is."""

import re
from pathlib import Path

import pytest

from adlro.model import gpu, gpu_catalogue

DOCS = (Path(__file__).parents[3] / "docs" / "gpus.md").read_text(encoding="utf-8")
WHOLE = [model for model in gpu.models() if model.parent is None]
SLICES = [model for model in gpu.models() if model.parent is not None]
MEASURED = [
    (row.workload_class, row.gpu, row.relative)
    for row in gpu_catalogue.catalogue().measured
    if row.gpu != gpu.REFERENCE
]


def by_name(model):
    return model.name


def shown_speed(workload_class, demand, model):
    marks = {"measured": "**{:.3g}**", "stand-in": "*{:.3g}*", "roofline": "{:.3g}"}
    if gpu.missing(demand, model):
        return "?"
    found = gpu.speed(workload_class, demand, model)
    return marks[found.origin].format(found.relative)


def table_row(model):
    figures = [model.fp64_tflops, model.fp32_tflops, model.tensor_tflops or None, model.memory_gb]
    figures += [model.bandwidth_gb_s, model.tdp_w, model.link_gb_s]
    cells = ["?" if figure is None else f"{figure:g}" for figure in figures]
    cells[2] = "none" if model.tensor_tflops == 0 else cells[2]
    speeds = [shown_speed(name, demand, model) for name, demand in gpu.DEMANDS.items()]
    return " | ".join([model.name, *cells, *speeds])


@pytest.mark.parametrize("model", WHOLE, ids=by_name)
def test_the_documentation_shows_every_model(model):
    assert f"| {table_row(model)} |" in DOCS


@pytest.mark.parametrize("part", SLICES, ids=by_name)
def test_the_documentation_shows_every_slice(part):
    rows = [line.split("|") for line in DOCS.splitlines() if re.match(r"\| .* \| `\dg\.", line)]
    shown = next(
        slices for _, wholes, slices, _ in rows if f" {part.parent}," in f"{wholes.rstrip()},"
    )
    assert f"`{part.name.rpartition(' ')[2]}`" in shown


@pytest.mark.parametrize("entry", gpu_catalogue.catalogue().shared, ids=by_name)
def test_the_documentation_shows_every_shared_name(entry):
    assert f"| `{entry.name}` | {', '.join(entry.models)} |" in DOCS


@pytest.mark.parametrize(("workload_class", "name", "measured"), MEASURED)
def test_the_documentation_shows_how_well_the_roofline_fits(workload_class, name, measured):
    roofline = gpu.roofline(gpu.DEMANDS[workload_class], gpu.find(name))
    off = f"{100 * (roofline / measured - 1):+.1f} %"
    assert f"| {workload_class} | {name} | {measured:.3f} | {roofline:.3f} | {off} |" in DOCS


def test_the_documentation_lists_the_cells_that_the_roofline_misses():
    listed = re.search(r"\*\*One is missed:\*\* (.*?)\.", DOCS)[1]
    off = [
        f"{workload_class} on the {name}"
        for workload_class, name, measured in MEASURED
        if abs(gpu.roofline(gpu.DEMANDS[workload_class], gpu.find(name)) / measured - 1) > 0.25
    ]
    assert listed.split(", ") == off


def test_the_documentation_shows_the_slowdown():
    assert f"**{gpu.slowdown('ml', 'ml')}**" in DOCS
