"""`adlro cluster`: shows a cluster, or makes a cluster file from a list of nodes."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adlro.cli.options import FILE, as_json, named_pairs, refuse_same, say, stdout

if TYPE_CHECKING:
    from adlro.model.cluster import NodeGroup


@click.group("cluster")
def command() -> None:
    """Look at clusters, and make one from a list of nodes."""


def _comings(groups: Collection[NodeGroup]) -> str:
    """Say when node groups join and leave, as in "old leaves at 5 h"; empty if none does."""
    texts = [f"{group.name} joins at {group.joins_h:g} h" for group in groups if group.joins_h]
    texts += [
        f"{group.name} leaves at {group.leaves_h:g} h"
        for group in groups
        if group.leaves_h is not None
    ]
    return ", ".join(texts)


@command.command("show")
@click.argument("cluster", default="paper16")
@click.option("--json", "is_json", is_flag=True, help="Print everything as JSON instead.")
def show(cluster: str, is_json: bool) -> None:
    """Show a cluster's pools. CLUSTER is a cluster file (TOML) or a scenario's name or file."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.config.files import find_cluster
    from adlro.model.cluster import MB_PER_GB, lay_out

    layout = lay_out(find_cluster(cluster))
    rows: list[dict[str, str | int | float | None]] = []
    for p, pool in enumerate(layout.pools):
        node, model = layout.nodes[pool["first_node"]], layout.models[pool["model"]]
        groups = layout.groups[pool["first_node"] : pool["first_node"] + pool["nodes"]]
        rows.append(
            {
                "pool": layout.pool_names[p],
                "type": layout.pool_types[p],
                "features": ", ".join(sorted(layout.pool_features[p])),
                "GPUs": int(pool["gpus"]),
                "nodes": int(pool["nodes"]),
                "GPU GB": int(pool["gpu_memory"]) // MB_PER_GB,
                "cores": int(node["cores"]),
                "GB": int(node["memory"]) // MB_PER_GB,
                "TDP W": None if model.tdp_w is None else round(model.tdp_w),
                "span cost": round(float(pool["span_cost"]), 3),
                "comes and goes": _comings(dict.fromkeys(groups)),
            }
        )
    if is_json:
        click.echo(as_json(rows))
        return
    table = Table(box=SIMPLE_HEAD)
    headings = [heading for heading in rows[0] if any(row[heading] != "" for row in rows)]
    for heading in headings:
        is_text = isinstance(rows[0][heading], str)
        table.add_column(heading, justify="left" if is_text else "right")
    for row in rows:
        cells = [row[heading] for heading in headings]
        texts = ["?" if cell is None else cell for cell in cells]
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in texts))
    stdout().print(table)
    click.echo(f"{len(layout.gpus):,} GPUs on {len(layout.nodes):,} nodes")


_SCONTROL_S = 60.0  # time limit of scontrol
_MOST_BYTES = 64 << 20  # of what it printed of partitions


def _from_scontrol(what: str) -> str:
    """Run `scontrol show node` or `scontrol show partition` on this host; return its output."""
    import subprocess

    from adlro.errors import TraceError

    asked = ["scontrol", "show", what, "--oneliner"]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=_SCONTROL_S, check=True)
    except FileNotFoundError as exc:
        raise TraceError(
            "scontrol: is not installed here; run `scontrol show node` where it is, and give the "
            "file instead of --slurm"
        ) from exc
    except (OSError, subprocess.SubprocessError) as exc:
        said = getattr(exc, "stderr", None) or str(exc).encode()
        raise TraceError(f"{' '.join(asked)}: {said.decode('utf-8', 'replace')}") from exc
    return done.stdout.decode("utf-8", "replace")


@command.command("import")
@click.argument("file", type=FILE, required=False)
@click.option("--slurm", is_flag=True, help="Ask scontrol here instead of reading a file.")
@click.option(
    "--partitions", type=FILE, help="Output of `scontrol show partition`, if nodes do not say."
)
@click.option(
    "--gpu", "gpus", multiple=True, metavar="NAME=MODEL", help="What a GPU is in the catalogue."
)
@click.option(
    "--features", metavar="A,B", help="The features of nodes to keep; '' = none.  [default: all]"
)
@click.option("--name", default="cluster", show_default=True, help="Of the cluster.")
@click.option("--out", type=FILE, required=True, help="The cluster file to write (TOML).")
def import_(
    file: Path | None,
    slurm: bool,
    partitions: Path | None,
    gpus: tuple[str, ...],
    features: str | None,
    name: str,
    out: Path,
) -> None:
    """Make a cluster file from a list of nodes.

    FILE is what `scontrol show node` prints (also with --oneliner or --json), or a list of the
    openb or PAI traces. Nodes that are alike become one group; those without GPUs are left out.
    """
    from adlro.config.files import cluster_of
    from adlro.config.to_toml import to_toml
    from adlro.files import check_writable, write_text
    from adlro.workloads import inventory
    from adlro.workloads.slurm_nodes import counted

    if slurm == (file is not None):
        raise click.UsageError("name a file or give --slurm, one of the two")
    kept = None if features is None else [one.strip() for one in features.split(",") if one.strip()]
    wanted = inventory.Request(name, named_pairs(gpus, "--gpu", "volta=V100 32GB"), kept)
    if file is not None:
        refuse_same(file, out)
    check_writable(out)
    hosts = {} if partitions is None else _partitions(partitions)
    if file is None:
        listed = inventory.from_slurm(_from_scontrol("node"), "scontrol show node", hosts)
    else:
        listed = inventory.read(file, hosts)
    tables, lines = inventory.as_cluster(listed, wanted)
    cluster = cluster_of(tables, str(file or "scontrol"))
    write_text(out, to_toml(tables))
    for line in lines:
        say(line)
    total = sum(group.count * group.gpus for group in cluster.nodes)
    count = sum(group.count for group in cluster.nodes)
    sizes = (counted(total, "GPU"), counted(count, "node"), counted(len(cluster.nodes), "group"))
    say(f"{out}: {sizes[0]} on {sizes[1]} in {sizes[2]}")


def _partitions(path: Path) -> dict[str, list[str]]:
    """Return the hosts of each partition from a file that `scontrol show partition` printed.

    Raises:
        TraceError: the file cannot be read, or has no partition with nodes.
    """
    from adlro.errors import TraceError
    from adlro.files import read_bytes
    from adlro.workloads.slurm_nodes import partitions

    try:
        return partitions(read_bytes(path, _MOST_BYTES).decode())
    except (OSError, UnicodeDecodeError) as exc:
        raise TraceError(f"{path}: cannot be read: {exc}") from exc
    except TraceError as exc:
        raise TraceError(f"{path}: {exc}") from exc
