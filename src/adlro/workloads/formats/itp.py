"""Reader of Microsoft ITP (2021), the job traces of ElasticFlow.

Gu et al., ASPLOS 2023.
"""

from __future__ import annotations

from adlro.model.state import WHOLE
from adlro.workloads.formats.format import Head, TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows


def _columns(rows: Rows) -> Columns:
    return {
        "id": rows.words("job_id"),
        "submit_s": rows.numbers("submission_time"),
        "run_s": rows.numbers("duration"),
        "gpus": rows.whole("num_gpu") * WHOLE,
    }


_NEEDS = ("job_id", "submission_time", "duration", "num_gpu")


def _has_no_more(head: Head) -> bool:
    """Return whether the file has no other columns; with more it is read as a plain CSV file."""
    return len(head.names) == len(_NEEDS)


FORMAT = of_table(
    TableFormat(
        "itp",
        "Microsoft ITP 2021 (ElasticFlow): job_id,submission_time,duration,num_gpu",
        _NEEDS,
        _columns,
    ),
    _has_no_more,
)
