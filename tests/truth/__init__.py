"""A synthetic truth for the import and replay of histories, written without sight of the importer.

`write(folder, seed)` draws a realistic history, schedules it by a plain EASY scheduler of its own
and writes it as Slurm would; the returned Truth has what really happened. `drop` makes mutants:
files that lack a constraint, with which a replay must not agree with the truth.
"""

from pathlib import Path
from typing import NamedTuple

from tests.truth import easy, slurm_text
from tests.truth.cluster import NODES
from tests.truth.jobs import Run, draw
from tests.truth.slurm_text import BEGIN

__all__ = ["BEGIN", "DROPS", "TrueJob", "Truth", "make", "write"]
DROPS = frozenset({"partition", "type", "one-node", "eligible", "submit-line", "cpu-only"})


class TrueJob(NamedTuple):
    """A GPU job of the history: its last run."""

    id: str
    wait: int  # seconds from eligible to start
    start: int  # seconds since BEGIN
    end: int
    gpus: int
    one_node: bool
    partition: str  # that it ran in
    nodes: tuple[str, ...]
    allowed: frozenset[str]  # nodes that its partitions and its type permit
    run: Run


class Truth(NamedTuple):
    """The files of a history and what really happened."""

    sacct: Path
    nodes: Path
    nodes_one_line: Path
    partitions: Path
    jobs: tuple[TrueJob, ...]  # GPU jobs in order of submission
    runs: tuple[Run, ...]  # every record: CPU-only jobs and requeued runs too

    @property
    def mean_wait(self):
        """Mean seconds from eligible to start of all GPU jobs."""
        return sum(job.wait for job in self.jobs) / len(self.jobs)

    @property
    def mean_jct(self):
        """Mean seconds from eligible to end of all GPU jobs."""
        return sum(job.end - job.start + job.wait for job in self.jobs) / len(self.jobs)


def make(seed, count=1500, requeues=True):
    """(jobs, runs) of a seed: the last run of every GPU job, and all runs."""
    jobs = draw(seed, count)
    if not requeues:
        jobs = [job._replace(requeued_after=0) for job in jobs]
    runs = easy.Easy(NODES).schedule(jobs)
    runs.sort(key=lambda run: (run.submit, run.job.seq))
    last = {run.job.id: run for run in runs}
    return tuple(_true(run) for run in last.values() if run.job.gpus), tuple(runs)


def _true(run):
    permitted = frozenset(n for names in easy.allowed(run.job, NODES).values() for n in names)
    return TrueJob(
        run.job.id, run.start - run.eligible, run.start, run.end, run.job.gpus, run.job.one_node,
        run.partition, tuple(run.gpus), permitted, run,
    )  # fmt: skip


def write(folder, seed, drop=(), count=1500, requeues=True):
    """Write the history of a seed below `folder` and return its truth.

    Args:
        folder: created if absent; receives sacct.txt, nodes.txt, nodes-oneline.txt, partitions.txt.
        seed: of the draw.
        drop: what the files conceal, any of DROPS: `partition` (column and --partition), `type`
            (of the request; AllocTRES keeps it), `one-node` (ReqNodes is blank and --gres becomes
            --gpus), `eligible` (shows Submit), `submit-line` (the column is absent), `cpu-only`
            (jobs without GPUs are absent).
        count: jobs to draw.
    """
    if unknown := set(drop) - DROPS:
        raise ValueError(f"cannot drop {sorted(unknown)}; choose of {sorted(DROPS)}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    jobs, runs = make(seed, count, requeues)
    seen = [run for run in runs if run.job.gpus or "cpu-only" not in drop]
    texts = {
        "sacct.txt": slurm_text.sacct(seen, NODES, drop),
        "nodes.txt": slurm_text.show_nodes(NODES),
        "nodes-oneline.txt": slurm_text.show_nodes(NODES, one_line=True),
        "partitions.txt": slurm_text.show_partitions(NODES),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return Truth(*(folder / name for name in texts), jobs, runs)
