"""`adlro cluster`: what a cluster file says."""

from __future__ import annotations

import click

from adlro.cli.options import stdout


@click.group("cluster")
def command() -> None:
    """Look at clusters."""


@command.command("show")
@click.argument("cluster", default="paper16")
def show(cluster: str) -> None:
    """The pools of a cluster. CLUSTER is a cluster file (TOML) or a scenario's name or file."""
    from pathlib import Path

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.config import find_cluster
    from adlro.model.cluster import MB_PER_GB, lay_out

    layout = lay_out(find_cluster(cluster))
    table = Table(box=SIMPLE_HEAD)
    headings = ("pool", "GPU model", "GPUs", "nodes", "GPU GB", "cores", "GB", "TDP W", "span cost")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="left" if i == 1 else "right")
    for p, pool in enumerate(layout.pools):
        node, model = layout.nodes[pool["first_node"]], layout.models[pool["model"]]
        figures = (pool["gpus"], pool["nodes"], pool["gpu_memory"] // MB_PER_GB)
        rest = (node["cores"], node["memory"] // MB_PER_GB, round(model.tdp_w))
        cells = (f"{figure:,}" for figure in (*figures, *rest))
        table.add_row(str(p), layout.pool_names[p], *cells, f"{pool['span_cost']:.2f}")
    stdout().print(table)
    click.echo(f"{len(layout.gpus):,} GPUs on {len(layout.nodes):,} nodes ({Path(cluster).name})")
