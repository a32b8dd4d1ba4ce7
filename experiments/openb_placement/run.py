"""GPUs allocated to the pods of Alibaba's openb trace, by placement policy and tie-breaking."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common import Result, main, plus_minus, shared
from openb_placement import openb, placement

FOLDER = Path("data/alibaba_openb_2023")
NODES = FOLDER / "openb_node_list_gpu_node.csv"
PODS = FOLDER / "openb_pod_list_default.dev.csv.gz"
SEEDS, QUICK_SEEDS = range(10), range(3)
HEAD = ("policy", "ties", "GPUs handed out, %", "published, %")


def make(quick: bool) -> Result:
    """Make the table of all rules."""
    trace = openb.read(shared() / NODES, shared() / PODS)
    rows = placement.compare(trace, QUICK_SEEDS if quick else SEEDS)
    table = [
        (
            row.policy,
            row.ties,
            plus_minus(row.allocation_pct.mean, row.allocation_pct.ci95),
            "" if row.published is None else f"{row.published:.2f}",
        )
        for row in rows
    ]
    figures = {f"{r.policy}, {r.ties}": {"allocation_pct": r.allocation_pct.mean} for r in rows}
    return Result(HEAD, table, figures, [row.model_dump() for row in rows])


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", Path(__file__).parent, make))
