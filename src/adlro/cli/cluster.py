"""`adlro cluster`: what a cluster file says."""

from __future__ import annotations

import click

from adlro.cli.options import stdout


@click.group("cluster")
def command() -> None:
    """Look at clusters."""


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
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=SIMPLE_HEAD)
    for heading in rows[0]:
        table.add_column(heading, justify="left" if heading == "pool" else "right")
    for row in rows:
        table.add_row(
            *(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row.values())
        )
    stdout().print(table)
    click.echo(f"{len(layout.gpus):,} GPUs on {len(layout.nodes):,} nodes")
