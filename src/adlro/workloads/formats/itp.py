"""Microsoft ITP (2021), the traces of ElasticFlow.

Gu et al., ASPLOS 2023.
"""

from __future__ import annotations

from adlro.model.state import WHOLE
from adlro.workloads.formats.format import Plan, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows


def _columns(rows: Rows) -> Columns:
    return {
        "id": rows.words("job_id"),
        "submit_s": rows.numbers("submission_time"),
        "run_s": rows.numbers("duration"),
        "gpus": rows.whole("num_gpu") * WHOLE,
    }


FORMAT = of_table(
    Plan(
        "itp",
        "Microsoft ITP 2021 (ElasticFlow): job_id,submission_time,duration,num_gpu",
        ("job_id", "submission_time", "duration", "num_gpu"),
        _columns,
    )
)
