"""The ratio of Gavel's LAS without speeds to LAS with them, under two rules for ties.

The program of the blind policy has many optima. The shipped policy divides time as an
interior-point solver would; here it also takes the vertex that the simplex finds.

    python experiments/gavel16/ties.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import markdown
from gavel16.run import AWARE, AWARE_JOBS, AWARE_LOADS, AWARE_SEEDS, BLIND, ratio_cell
from versus import by_name, compared

from adlro.config.files import adjusted, find_scenario
from adlro.model.view import View
from adlro.planning.active_jobs import ActiveJobs, Indices
from adlro.planning.allocation import max_min_shares
from adlro.policies import gavel_max_min_blind


def vertex(view: View, active: ActiveJobs, own: Indices) -> np.ndarray:
    """Return the shares of the vertex, always of the program."""
    mask, gangs = active.open(), view.jobs["gpus"][active.rows]
    where = f"{BLIND} at {view.now:.0f} s"
    return max_min_shares(mask.astype(np.float64), 1.0 / gangs, active, mask, where)


def main() -> None:
    """Print a table with a line for each load."""
    lines, shipped = [], gavel_max_min_blind._solve
    for load in AWARE_LOADS:
        scenario = adjusted(find_scenario("gavel16"), load=load, jobs=AWARE_JOBS)
        found = []
        for solve in (shipped, vertex):
            gavel_max_min_blind._solve = solve
            rows = by_name(compared(scenario, [AWARE, BLIND], AWARE_SEEDS))
            found += [ratio_cell(rows), f"{rows[BLIND].metrics['restarts'].mean:.1f}"]
        lines.append([f"{load:g}", *found])
    head = ("load", "ratio as shipped", "restarts a job", "ratio, simplex vertex", "restarts a job")
    sys.stdout.write(markdown(head, lines))


if __name__ == "__main__":
    main()
