"""Small histories with accounts, and studies of them, for tests of `adlro assess`."""

import numpy as np

from adlro.evaluate.metrics import Metrics
from adlro.evaluate.run_store import StoredRun
from adlro.evaluate.variants import Variants
from adlro.model.cluster import Cluster
from adlro.workloads.history_scenario import Source

HEAD = "id,submit,start,end,run_s,gpus,queue,requested_s,account,user\n"
CLUSTER = """
[[nodes]]
name = "volta"
gpu = "V100"
gpus = 4
cores = 64
memory_gb = 64
partitions = ["main", "long"]
"""
V100S = {
    "name": "volta", "gpu": "V100", "gpus": 4, "cores": 64, "memory_gb": 64,
    "partitions": ["main", "long"],
}  # fmt: skip


def row(i, submit, run, **more):
    """A line of a history: a job of one GPU that waited 30 s, unless `more` says otherwise."""
    wait = more.get("wait", 30)
    times = "," if wait is None else f"{submit + wait},{submit + wait + run}"
    return (
        f"j{i},{submit},{times},{run},{more.get('gpus', 1)},{more.get('queue', 'main')},"
        f"{more.get('limit', 3600)},{more.get('account', 'vision')},{more.get('user', 'ann')}\n"
    )


def text(jobs=360, **more):
    """A history of busy days: gangs of 1, 2 and 4, the accounts vision and speech."""
    return HEAD + "".join(
        row(
            i, 800 * i, 600 + 97 * i % 2400, gpus=(1, 2, 1, 1, 4)[i % 5],
            account=("vision", "speech", "vision")[i % 3], user=("ann", "bob")[i % 2], **more,
        )
        for i in range(jobs)
    )  # fmt: skip


def variants(folder, content=None, nodes=(V100S,), **source):
    """The variants of a history with this text on these nodes."""
    file = folder / "jobs.csv"
    file.write_text(text() if content is None else content)
    cluster = Cluster.model_validate({"name": "small", "nodes": list(nodes)})
    recorded = {"unfit": "drop", **source.pop("recorded", {})}
    return Variants(Source(file, cluster, recorded, source.pop("slurm", None)))


def run_of(waits, runs=10.0):
    """A stored run with these waits; every job ran for `runs` seconds."""
    wait = np.array(waits, np.float64)
    return StoredRun(wait, wait + runs, Metrics(*np.arange(len(Metrics._fields), dtype=float)))
