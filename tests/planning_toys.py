"""A small history and clusters for `adlro plan`, whose completion times can be computed by hand.

One job of one GPU every 100 s, each 500 s long, on four V100: five GPUs would be enough.
"""

from adlro.config.files import find_cluster
from adlro.evaluate.variants import Variants
from adlro.workloads.history_scenario import Source

HEAD = "id,submit,start,end,run_s,gpus,queue,requested_s,allowed\n"
EVERY, RUN = 100, 500
VOLTA = """
[[nodes]]
name = "volta"
gpu = "V100"
gpu_type = "v100"
gpus = 4
cores = 64
memory_gb = 64
partitions = ["main"]
"""
IDLE = """
[[nodes]]
name = "turing"
count = 2
gpu = "T4"
gpus = 4
cores = 64
memory_gb = 64
partitions = ["unused"]
"""


def rows(jobs=480, queue=lambda i: "main", asks=lambda i: ""):
    """Lines of a history; all jobs started as soon as they were submitted."""
    lines = [HEAD]
    for i in range(jobs):
        at = 1000 + EVERY * i
        lines.append(f"j{i},{at},{at},{at + RUN},{RUN},1,{queue(i)},600,{asks(i)}\n")
    return "".join(lines)


def write(folder, text=None, cluster=VOLTA):
    (folder / "jobs.csv").write_text(rows() if text is None else text)
    (folder / "cluster.toml").write_text(cluster)
    return folder / "jobs.csv", folder / "cluster.toml"


def variants(folder, text=None, cluster=VOLTA):
    file, toml = write(folder, text, cluster)
    return Variants(Source(file, find_cluster(str(toml)), {"unfit": "drop"}, None))


def mean_jct(jobs, measured, gpus=4):
    """Mean JCT of the measured jobs of a window: each GPU serves every `gpus`-th job in turn."""
    late = max(0, RUN - gpus * EVERY)  # seconds that each round is later than the one before
    return sum(RUN + late * (i // gpus) for i in range(jobs)[measured]) / len(range(jobs)[measured])
