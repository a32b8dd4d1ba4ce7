"""A drawn site: nodes of three or four GPU models, partitions, accounts and priority weights.

Every site has an overloaded partition of one model, a calm partition of another and a model that
nearly nobody uses. `Site.idle_by` and `Site.starved_by` name the mechanisms, which vary by seed.
"""

import random
from typing import NamedTuple

from tests.truth.cluster import Node

MODELS = {  # Gres type: (GPUs a node, cores for jobs, cores, MB)
    "h100": (8, 120, 128, 2_000_000),
    "a100": (4, 62, 64, 512_000),
    "l40s": (4, 60, 64, 768_000),
    "mi250": (8, 120, 128, 1_024_000),
    "a40": (4, 46, 48, 384_000),
    "rtx6000": (4, 30, 32, 256_000),
    "v100": (4, 38, 40, 384_000),
    "mi210": (4, 60, 64, 512_000),
    "a30": (4, 46, 48, 384_000),
    "rtx3090": (8, 62, 64, 512_000),
}
ACCOUNTS = (
    "vision", "nlp", "genomics", "physics", "climate", "robotics", "chem", "astro", "speech",
    "medimg", "finance", "neuro", "materials", "ecology",
)  # fmt: skip
USERS = (
    "ada", "bert", "cho", "dmitri", "eve", "fatima", "gus", "hana", "ivo", "jia", "kofi", "lena",
    "mateo", "nadia", "omar", "priya", "quinn", "rosa", "sven", "tomoe", "uma", "viktor", "wen",
    "yara",
)  # fmt: skip
BUSY_NAMES = ("gpu", "main", "batch", "normal", "compute")
CALM_NAMES = ("shared", "research", "general", "standard")
THIRD_NAMES = ("dev", "express", "project", "teaching")
IDLE_NAMES = ("legacy", "special", "pilot", "condo")
LOW_NAMES = ("student", "guest", "scavenge", "low")
IDLE_BY = ("unnamed", "own-partition", "reserved")
STARVED_BY = ("size", "partition")


class Partition(NamedTuple):
    """A partition as Slurm knows it."""

    name: str
    job_factor: int  # PriorityJobFactor
    accounts: tuple[str, ...] = ()  # AllowAccounts; empty for all


class Weights(NamedTuple):
    """What priority/multifactor of a site weighs; PriorityFavorSmall is NO."""

    age: int
    size: int
    partition: int
    max_age: int  # seconds


class Site(NamedTuple):
    """A site and what is planted in it; a partition or model that it lacks is empty."""

    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    weights: Weights
    users: dict[str, tuple[str, ...]]  # by account
    idle_by: str  # of IDLE_BY
    starved_by: str  # of STARVED_BY
    busy: str  # the overloaded partition
    calm: str
    third: str  # where the jobs of `third_model` go; may be `calm`
    low: str  # starved_by="partition": shares the nodes of `busy` at a low PriorityJobFactor
    idle: str  # partition of the idle model; `calm` where idle_by="unnamed"
    busy_model: str
    calm_model: str
    third_model: str
    idle_model: str
    starved: str  # account

    @property
    def without_weight(self):
        """The weights with the one that starves the account set to 0."""
        return self.weights._replace(**{self.starved_by: 0})

    def gpus(self, partition="", model=""):
        """How many GPUs there are of a partition or a model."""
        return sum(
            node.gpus for node in self.nodes
            if (not partition or partition in node.partitions) and model in ("", node.gpu)
        )  # fmt: skip


def draw(seed):
    """The site of a seed: the mechanisms go round, everything else is drawn."""
    rng = random.Random(f"planted site {seed}")
    idle_by, starved_by = IDLE_BY[seed % 3], STARVED_BY[seed % 2]
    accounts = rng.sample(ACCOUNTS, rng.randint(5, 7))
    busy_model, calm_model, idle_model, third_model = rng.sample(sorted(MODELS), 4)
    if rng.random() < 0.3:
        third_model = ""
    busy, calm = rng.choice(BUSY_NAMES), rng.choice(CALM_NAMES)
    low = rng.choice(LOW_NAMES) if starved_by == "partition" else ""
    idle = calm if idle_by == "unnamed" else rng.choice(IDLE_NAMES)
    crowded = low and idle != calm  # no more than four partitions
    third = "" if not third_model else calm if crowded else rng.choice(THIRD_NAMES)
    nodes = (
        *_nodes(busy_model, rng.choice((16, 24)), (busy, low) if low else (busy,)),
        *_nodes(calm_model, 16, (calm,)),
        *(_nodes(third_model, 8, (third,)) if third else ()),
        *_nodes(idle_model, 8, (idle,)),
    )
    names = dict.fromkeys(name for name in (busy, low, calm, third, idle) if name)
    owner = (rng.choice(accounts[1:]),) if idle_by == "reserved" else ()
    high = rng.choice((10, 100, 1000))
    partitions = tuple(
        Partition(name, 1 if name == low else high, owner if name == idle else ()) for name in names
    )
    return Site(
        nodes, partitions, _weights(rng, starved_by), _users(rng, accounts), idle_by, starved_by,
        busy, calm, third, low, idle, busy_model, calm_model, third_model, idle_model, accounts[0],
    )  # fmt: skip


def _nodes(model, count, partitions):
    gpus, cores, all_cores, memory = MODELS[model]
    return [
        Node(f"{model}-{i:02}", model, gpus, cores, all_cores, memory, partitions)
        for i in range(1, count // gpus + 1)
    ]


def _weights(rng, starved_by):
    """One weight drowns the age; the other is small or off."""
    huge, small = rng.choice((500_000, 1_000_000, 2_000_000)), rng.choice((0, 100, 1000))
    age, days = rng.choice((500, 1000, 2000)), rng.choice((7, 14))
    if starved_by == "size":
        return Weights(age, huge, small, days * 86_400)
    return Weights(age, small // 10, huge, days * 86_400)


def _users(rng, accounts):
    names = rng.sample(USERS, 3 * len(accounts))
    return {
        account: tuple(names[3 * i : 3 * i + rng.randint(2, 3)])
        for i, account in enumerate(accounts)
    }
