"""Reader of the pods of Alibaba openb (cluster-trace-gpu-v2023), some of which share GPUs.

Weng et al., USENIX ATC 2023. The command `cluster import` reads the nodes of the same trace.
"""

from __future__ import annotations

import numpy as np

from adlro.model.state import WHOLE
from adlro.workloads.formats.format import TableFormat, of_table
from adlro.workloads.formats.gather import Columns
from adlro.workloads.formats.table import Rows

_STATUS = {"Succeeded": "completed", "Failed": "failed", "Running": "running", "Pending": "pending"}
_MOST_GPUS = 64.0  # of a pod


def _columns(rows: Rows) -> Columns:
    count, share = rows.whole("num_gpu", _MOST_GPUS), rows.whole("gpu_milli", WHOLE)
    rows.note_where(
        ((count == 0) != (share == 0)) | ((count > 1) & (share < WHOLE)),
        "impossible number",
        lambda row: (
            f"{count[row]:g} GPUs with gpu_milli {share[row]:g}; a pod has no GPU (0), a part of "
            f"one (1 to {WHOLE}) or several whole ones ({WHOLE})"
        ),
    )
    found: Columns = {
        "id": rows.words("name"),
        "gpus": count * share,
        "cores": rows.whole("cpu_milli") / 1000,
        "memory_mb": rows.whole("memory_mib"),
    }
    if "gpu_spec" in rows:
        found["allowed"] = rows.words("gpu_spec")
    if "qos" in rows:
        found["qos"] = rows.words("qos")
    if "pod_phase" in rows:
        found["status"] = [_STATUS.get(word, word.lower()) for word in rows.words("pod_phase")]
    if "creation_time" in rows:
        found["submit_s"] = rows.numbers("creation_time")
        start, end = rows.numbers("scheduled_time"), rows.numbers("deletion_time")
        found["start_s"] = start
        found["end_s"] = np.where(np.isnan(start), np.nan, end)  # never placed
    return found


FORMAT = of_table(
    TableFormat(
        "openb",
        "Alibaba openb 2023, pods: name,cpu_milli,memory_mib,num_gpu,gpu_milli …",
        ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
        _columns,
    )
)
