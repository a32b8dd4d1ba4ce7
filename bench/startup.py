"""Start-up times: the first comparison with an empty cache, a later one, and the help."""

from __future__ import annotations

import os
import sys
import tempfile

from bench.clock import ProcessCost, program
from bench.figure import Bar, Figure, figure, ratio

_COMPARE = "compare paper16 --policies fcfs,min-min --seeds 2"
_COLD, _WARM, _HELP = Bar("<", 30), Bar("<", 3), Bar("<", 0.5)


def _least(costs: list[ProcessCost]) -> ProcessCost:
    return ProcessCost(min(each.cpu_s for each in costs), min(each.wall_s for each in costs))


def compare_starts(warm_starts: int) -> list[Figure]:
    """Time `adlro compare` as a process, with an empty compile cache and with a full one."""
    command = [sys.executable, "-m", "adlro", *_COMPARE.split()]
    with tempfile.TemporaryDirectory(prefix="adlro-bench-") as folder:
        environment = {**os.environ, "ADLRO_CACHE_DIR": folder}
        cold = program(command, environment)
        warm = _least([program(command, environment) for _ in range(warm_starts)])
    return [
        figure("cold start of compare: CPU", cold.cpu_s, "CPU-s", _COLD),
        figure("cold start of compare: wall", cold.wall_s, "s"),
        figure("warm start of compare: CPU", warm.cpu_s, "CPU-s"),
        figure("warm start of compare: wall", warm.wall_s, "s", _WARM),
    ]


def help_cost(rounds: int) -> list[Figure]:
    """Ratio of `adlro --help` to `import numpy`, measured alternately."""
    python, environment = sys.executable, dict(os.environ)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(program([python, "-m", "adlro", "--help"], environment))
        theirs.append(program([python, "-c", "import numpy"], environment))
    name = "adlro --help / import numpy"
    return [ratio(name, _least(ours).cpu_s, _least(theirs).cpu_s, "x, of CPU-s", _HELP)]
