"""Job histories: the recorded jobs of a cluster in one schema with units, whatever the source.

Unknown values are nan in a column of numbers, -1 in a column of whole numbers or of codes; ids may
be missing altogether. No default replaces an unknown value.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from adlro.errors import printable
from adlro.model.record import Record
from adlro.model.state import Counts, Floats, Mask

Codes = NDArray[np.int32]
Printable = Annotated[str, AfterValidator(printable)]  # names of files need not be UTF-8
Tables = dict[str, tuple[str, ...]]  # column -> the words behind its codes

NUMBERS = (
    "submit_s",
    "start_s",
    "end_s",
    "eligible_s",
    "run_s",
    "requested_s",
    "cores",
    "memory_mb",
    "gpu_memory_mb",
    "priority",
)
WHOLE_NUMBERS = ("gpus", "nodes", "one_node", "lost")
WORDS = (
    "gpu_model",
    "allowed",
    "partitions",
    "features",
    "hosts",
    "user",
    "account",
    "queue",
    "name",
    "status",
    "qos",
)
TIMES = ("submit_s", "start_s", "end_s", "eligible_s")  # shifted by the origin; others are lengths
FIELDS = ("id", *NUMBERS, *WHOLE_NUMBERS, *WORDS)


class Header(Record):
    """Metadata of a history: file, time origin, machine size, and the defects found in the file."""

    format: str
    source: Printable  # name of the file
    origin_unix_s: float | None = None  # Unix time of 0 s; None = unknown
    clock: str = ""  # time zone, as far as known
    machine_gpus: Annotated[int, Field(ge=1)] | None = None  # size that the source states
    machine_cores: Annotated[int, Field(ge=1)] | None = None
    defects: dict[str, int] = Field(default_factory=dict)  # kind -> count
    notes: tuple[Printable, ...] = ()  # caveats for readers of the figures


class History(NamedTuple):
    """R rows in the order of the file: jobs as recorded, and runs that requeued jobs lost.

    Of a requeued job, the last run is the job. Earlier runs are marked as lost: they used GPUs, but
    are no jobs of their own. Times are seconds since the origin.
    """

    header: Header
    id: tuple[str, ...]  # [R], or () = none; a lost run has the id of its job
    submit_s: Floats  # [R]
    start_s: Floats
    end_s: Floats
    eligible_s: Floats  # when it could start: not held, its dependencies met, its begin time passed
    run_s: Floats  # run time, all runs of a job together
    requested_s: Floats  # requested by the user
    cores: Floats  # CPU cores of the whole job
    memory_mb: Floats  # host memory of the whole job
    gpu_memory_mb: Floats  # on each of its GPUs
    priority: Floats  # as the source counts it
    gpus: Counts  # thousandths of a GPU of the whole job
    nodes: Counts
    one_node: Counts  # 1 = its GPUs were asked for on one node, 0 = they may be on several
    lost: Counts  # 1 = an earlier run of a requeued job
    gpu_model: Codes  # that it ran on
    allowed: Codes  # GPU types that it may run on: names with | between them
    partitions: Codes  # that it was submitted to, with | between them, if `queue` is not all
    features: Codes  # that its nodes must have, as Slurm writes them: a&b, a|b
    hosts: Codes  # nodes that it ran on, as Slurm writes them: n[1-3],m7
    user: Codes
    account: Codes
    queue: Codes  # or partition, or virtual cluster
    name: Codes
    status: Codes
    qos: Codes
    tables: Tables

    @property
    def rows(self) -> int:
        """Number of rows: jobs and lost runs."""
        return len(self.submit_s)

    @property
    def jobs(self) -> int:
        """Number of jobs; lost runs do not count."""
        return self.rows - int(self.is_lost.sum())

    @property
    def is_lost(self) -> Mask:
        """Mask [R] of the earlier runs of requeued jobs."""
        lost: Mask = self.lost == 1
        return lost

    def word(self, column: str, job: int) -> str:
        """Word behind the code of a job in one of the columns WORDS; "" = unknown."""
        code = int(getattr(self, column)[job])
        return self.tables[column][code] if code >= 0 else ""

    def missing(self, column: str) -> int:
        """Number of rows whose value in a column is unknown."""
        if column == "id":
            return 0 if self.id else self.rows
        values = getattr(self, column)
        absent = np.isnan(values) if column in NUMBERS else values < 0
        return int(absent.sum())

    def ready_s(self) -> Floats:
        """Return the time [R] when each job could first start: eligible, or else submitted."""
        return np.fmax(self.submit_s, self.eligible_s)

    def take(self, rows: Counts) -> History:
        """Return a history of only the rows with these indices, in the order given."""
        columns = {name: getattr(self, name)[rows] for name in (*NUMBERS, *WHOLE_NUMBERS, *WORDS)}
        ids = tuple(self.id[row] for row in rows.tolist()) if self.id else ()
        return self._replace(id=ids, **columns)

    def without_lost(self) -> History:
        """Return the history of the jobs alone, without runs that were lost."""
        return self.take(np.flatnonzero(~self.is_lost)) if self.is_lost.any() else self

    def by_submission(self) -> History:
        """Return the history sorted by submission time; ties keep their order."""
        return self.take(np.argsort(self.submit_s, kind="stable"))
