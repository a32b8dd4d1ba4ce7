"""The invented cluster: 16 A100, 8 V100, 8 dies of MI250, a node without GPUs; four partitions."""

from typing import NamedTuple


class Node(NamedTuple):
    """A node as Slurm knows it."""

    name: str
    gpu: str  # type of its GPUs, empty for none
    gpus: int
    cores: int  # CPUEfctv: what jobs may use
    all_cores: int  # CPUTot: with those kept for the system
    memory_mb: int
    partitions: tuple[str, ...]


NODES = (
    *(Node(f"a{i:02}", "a100", 4, 62, 64, 512_000, ("gpu",)) for i in range(1, 5)),
    *(Node(f"v{i:02}", "v100", 4, 38, 40, 384_000, ("gpu", "long")) for i in range(1, 3)),
    Node("m01", "mi250", 8, 120, 128, 1_024_000, ("amd",)),
    Node("c01", "", 0, 64, 64, 256_000, ("cpu",)),
)
LONGEST = {"gpu": 2, "long": 7, "amd": 2, "cpu": 7}  # days that a job of a partition may take
