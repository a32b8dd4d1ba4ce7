"""`adlro cluster`: what a cluster file says."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import click

from adlro.cli.options import stdout

if TYPE_CHECKING:
    from adlro.model.cluster import NodeGroup


@click.group("cluster")
def command() -> None:
    """Look at clusters."""


def _comings(groups: Collection[NodeGroup]) -> str:
    """When groups join and leave, those that do: "old leaves at 5 h"."""
    texts = [f"{group.name} joins at {group.joins_h:g} h" for group in groups if group.joins_h]
    texts += [
        f"{group.name} leaves at {group.leaves_h:g} h"
        for group in groups
        if group.leaves_h is not None
    ]
    return ", ".join(texts)


@command.command("show")
@click.argument("cluster", default="paper16")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON instead.")
def show(cluster: str, as_json: bool) -> None:
    """The pools of a cluster. CLUSTER is a cluster file (TOML) or a scenario's name or file."""
    import json

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.config import find_cluster
    from adlro.model.cluster import MB_PER_GB, lay_out

    layout = lay_out(find_cluster(cluster))
    rows: list[dict[str, str | int | float]] = []
    for p, pool in enumerate(layout.pools):
        node, model = layout.nodes[pool["first_node"]], layout.models[pool["model"]]
        groups = layout.groups[pool["first_node"] : pool["first_node"] + pool["nodes"]]
        rows.append(
            {
                "pool": layout.pool_names[p],
                "GPUs": int(pool["gpus"]),
                "nodes": int(pool["nodes"]),
                "GPU GB": int(pool["gpu_memory"]) // MB_PER_GB,
                "cores": int(node["cores"]),
                "GB": int(node["memory"]) // MB_PER_GB,
                "TDP W": round(model.tdp_w),
                "span cost": round(float(pool["span_cost"]), 3),
                "comes and goes": _comings(dict.fromkeys(groups)),
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=SIMPLE_HEAD)
    headings = [heading for heading in rows[0] if any(row[heading] != "" for row in rows)]
    for heading in headings:
        is_text = isinstance(rows[0][heading], str)
        table.add_column(heading, justify="left" if is_text else "right")
    for row in rows:
        cells = [row[heading] for heading in headings]
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells))
    stdout().print(table)
    click.echo(f"{len(layout.gpus):,} GPUs on {len(layout.nodes):,} nodes")
