"""How closely policy `slurm` reproduces the public histories that record when jobs started."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from common import Result, main, shared

from adlro.config.files import adjusted, scenario_of
from adlro.evaluate.calibration import TWIN, Calibration
from adlro.evaluate.compare import compare
from adlro.policies import registry
from adlro.sim import simulator
from adlro.workloads import history_file
from adlro.workloads.replay import windows
from adlro.workloads.setting import Setting, prepare

FOLDER = Path(__file__).parent
MOST, FEW = 5, 1  # windows of a history; of a quick run
AMPLE = 10_000  # cores and GB of a node where they must not bind
HEAD = (
    "history", "machine", "jobs", "wait h, recorded", "simulated", "JCT h, recorded", "simulated",
    "off by %", "rank correlation",
)  # fmt: skip


class Machine(NamedTuple):
    """A history and the machine that ran it."""

    name: str
    file: str  # in the folder of shared data
    nodes: int
    gpus: int  # of a node; processors where the history has no GPUs
    gpus_from: str
    about: str  # where its size comes from
    window: int = 5_000  # jobs

    def setting(self, file: Path) -> Setting:
        """Return the jobs of the history on its machine, at the recorded load."""
        group = {"name": "node", "count": self.nodes, "gpu": "A100 40GB", "gpus": self.gpus}
        group |= {"cores": AMPLE, "memory_gb": AMPLE}
        recorded = {"file": str(file.resolve()), "unfit": "drop", "gpus_from": self.gpus_from}
        recorded |= {"partitions": "ignore"}
        tables = {"jobs": 1, "load": 1.0, "cluster": {"nodes": [group]}, "history": recorded}
        wanted = scenario_of(tables, Path(f"{self.name}.toml"))
        assert wanted.history is not None
        history = history_file.history_of(wanted.history)
        users, accounts = history_file.users_of(history), history_file.accounts_of(history)
        tried = prepare(adjusted(wanted, users=users, accounts=accounts))
        assert tried.played is not None
        load = tried.played.rate / tried.capacity_per_s
        jobs = min(self.window, len(tried.played.jobs))
        return prepare(adjusted(tried.scenario, load=load, jobs=jobs))


MACHINES = (
    Machine(
        "SDSC SP2 as CQSim played it", "swf/SDSC-SP2-1998-4_cqsim_output.rst.gz", 128, 1, "cores",
        "the most processors in use at once",
    ),
    Machine(
        "HPC2N Seth 2002", "swf/HPC2N-2002-2-first3170.swf.gz", 240, 1, "cores",
        "MaxNodes and MaxProcs of the file; Maui scheduled it",
    ),
    Machine(
        "RIKEN RICC 2010", "swf/RICC-2010-2.swf.gz", 1024, 8, "cores",
        "MaxNodes and MaxProcs of the file",
    ),
    Machine(
        "ALCF ThetaGPU", "thetagpu/thetagpu_jobs.dev.csv.gz", 24, 8, "gpus",
        "docs.alcf.anl.gov, ThetaGPU Machine Overview; Cobalt scheduled it",
    ),
    Machine(
        "MIT Supercloud, a sample", "mit_supercloud/slurm_9628_jobs.csv.gz", 148, 1, "gpus",
        "the most GPUs in use at once",
    ),
)  # fmt: skip


def calibrate(machine: Machine, file: Path, most: int) -> Calibration:
    """Compare the simulation of at most so many windows with the record."""
    setting = machine.setting(file)
    assert setting.played is not None
    policy = registry.load(TWIN, setting)
    simulator.warm_up([policy])
    seeds = range(min(most, windows(setting.played, setting.scenario.jobs)))
    found = compare(setting, [policy], seeds).calibration
    assert found is not None
    return found


def _line(machine: Machine, found: Calibration) -> list[str]:
    wait, jct, rank = found.wait_s, found.jct_s, found.rank_correlation
    hours = (wait.recorded, wait.simulated, jct.recorded, jct.simulated)
    kind = "processors" if machine.gpus_from == "cores" else "GPUs"
    return [
        machine.name,
        f"{machine.nodes * machine.gpus:,} {kind} ({machine.about})",
        f"{found.jobs:,}",
        *(f"{value / 3600:.2f}" for value in hours),
        "" if found.within_pct is None else f"{found.within_pct:.0f}",
        "-" if rank is None else f"{rank:.2f}",
    ]


def make(is_quick: bool) -> Result:
    """Make the table of all machines."""
    lines, figures, details = [], {}, {}
    reasons = []
    for machine in MACHINES:
        sys.stderr.write(f"{machine.name}\n")
        most = FEW if is_quick else MOST
        found = calibrate(machine, shared() / "data" / machine.file, most)
        lines.append(_line(machine, found))
        figures[machine.name] = {"mean JCT s": found.jct_s.simulated}
        details[machine.name] = found.model_dump()
        reasons += [f"- {machine.name}: {reason}." for reason in found.reasons]
    note = "Likely reasons, as `adlro trace calibrate` lists them:\n" + "\n".join(reasons)
    return Result(HEAD, lines, figures, details, note=note)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return main(__doc__ or "", FOLDER, make, arguments)


if __name__ == "__main__":
    sys.exit(run())
