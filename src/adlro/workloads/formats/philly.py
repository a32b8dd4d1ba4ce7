"""Reader of Philly (Microsoft, 2017) in the form of the Pollux and Sia artifacts.

Jeon et al., USENIX ATC 2019.
"""

from __future__ import annotations

from adlro.model.state import WHOLE
from adlro.workloads.formats.format import LOCAL, TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows


def _columns(rows: Rows) -> Columns:
    return {
        "submit_s": rows.times("timestamp"),
        "run_s": rows.numbers("duration"),
        "gpus": rows.whole("num_gpus") * WHOLE,
        "queue": rows.words("cluster"),
    }


FORMAT = of_table(
    TableFormat(
        "philly",
        "Philly (Microsoft 2017), derived: timestamp,duration,num_gpus,gpu_time,cluster",
        ("timestamp", "duration", "num_gpus", "gpu_time", "cluster"),
        _columns,
        clock=LOCAL,
    )
)
