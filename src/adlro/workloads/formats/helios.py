"""Reader of Helios (SenseTime, 2020) in a derived form: id, arrival, run time and GPUs of each job.

Hu et al., SC 2021. The logs as published, with user, queue and state, are plain CSV files:
csv_columns.py reads them. An id of the derived form has its row after a #.
"""

from __future__ import annotations

import re

from adlro.model.state import WHOLE
from adlro.workloads.formats.format import Head, TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows

NEEDS = ("job_id", "arrival_s", "service_sec", "gpu_count")


def columns(rows: Rows) -> Columns:
    """Return the columns of a history: id, submission, run time and GPUs of each row's job."""
    return {
        "id": rows.words("job_id"),
        "submit_s": rows.numbers("arrival_s"),
        "run_s": rows.numbers("service_sec"),
        "gpus": rows.whole("gpu_count") * WHOLE,
    }


def _is_helios(head: Head) -> bool:
    return re.fullmatch(r"\d+#\d+", head.first_field(1)) is not None


FORMAT = of_table(
    TableFormat(
        "helios",
        "Helios (SenseTime 2020), derived: job_id,arrival_s,service_sec,gpu_count",
        NEEDS,
        columns,
        notes=("run times are capped at 172,800 s by whoever derived the file",),
    ),
    _is_helios,
)
