"""Write jobs.sacct.txt and nodes.txt beside this file: ten invented days of a cluster under Slurm.

16 A100, 8 V100 and 8 MI250 in two partitions. A job waits for jobs of its partition and GPU type
that came before it, and starts on the first nodes in order that can hold it.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

FOLDER = Path(__file__).parent
JOBS = 1000
BEGIN = datetime(2026, 3, 2, 0, 0, 0)
DAYS = 10
FIELDS = (
    "JobIDRaw|JobName|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|"
    "TimelimitRaw|ReqNodes|ReqTRES|AllocTRES|NodeList|Constraints"
)
SECONDS = {"a100": 1.0, "v100": 1.9, "mi250": 1.4, "": 1.0}  # of a job, relative to the A100


@dataclass
class Node:
    """One node: what `scontrol show node` says of it, and what is free."""

    name: str
    gpu: str  # "" = none
    gpus: int
    cores: int
    memory_gb: int
    features: str
    partitions: str
    state: str = "MIXED"
    free_gpus: int = field(init=False)
    free_cores: int = field(init=False)

    def __post_init__(self) -> None:
        """Begin empty."""
        self.free_gpus, self.free_cores = self.gpus, self.cores

    def line(self) -> str:
        """Return the node as `scontrol show node --oneliner` prints it."""
        gres = f"gpu:{self.gpu}:{self.gpus}(S:0-1)" if self.gpu else "(null)"
        tres = f",gres/gpu={self.gpus},gres/gpu:{self.gpu}={self.gpus}" if self.gpu else ""
        memory = 1024 * self.memory_gb
        return (
            f"NodeName={self.name} Arch=x86_64 CoresPerSocket={(self.cores + 2) // 2}  CPUAlloc=0 "
            f"CPUEfctv={self.cores} CPUTot={self.cores + 2} CPULoad=0.42 "
            f"AvailableFeatures={self.features} ActiveFeatures={self.features} Gres={gres} "
            f"NodeAddr={self.name} NodeHostName={self.name} Version=23.11.4 "
            f"OS=Linux 5.14.0 #1 SMP PREEMPT_DYNAMIC  RealMemory={memory} AllocMem=0 "
            f"FreeMem={memory // 2} Sockets=2 Boards=1 State={self.state} ThreadsPerCore=1 "
            f"TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions={self.partitions}  "
            f"CfgTRES=cpu={self.cores},mem={memory}M,billing={self.cores}{tres} AllocTRES=\n"
        )


def nodes() -> list[Node]:
    """Return the nodes in the order in which jobs fill them; two cores of each are Slurm's own."""
    return [
        *(Node(f"a0{i}", "a100", 4, 62, 512, "sxm4,80g,ib", "gpu,long") for i in (1, 2)),
        *(Node(f"a0{i}", "a100", 4, 62, 512, "sxm4,40g,ib", "gpu") for i in (3, 4)),
        Node("v01", "v100", 4, 38, 192, "sxm2,32g", "gpu,long"),
        Node("v02", "v100", 4, 38, 192, "sxm2,32g", "gpu,long", "MIXED+DRAIN"),
        Node("m01", "mi250", 8, 126, 512, "rocm", "gpu"),
        Node("c01", "", 0, 126, 512, "cpu", "gpu"),
    ]


@dataclass(frozen=True)
class Kind:
    """A kind of job that a user submits."""

    user: str
    account: str
    name: str
    weight: int
    gpu: str  # "" = any, or none if `gangs` is (0,)
    gangs: tuple[int, ...]  # GPUs; more than 4 are asked for on two nodes
    median_s: int  # on an A100
    spread: float
    minutes: int  # time limit
    partition: str = "gpu"
    constraint: str = ""
    then: str = ""  # name of a job that is submitted with it and depends on it


KINDS = (
    Kind("ann", "vision", "resnet", 5, "v100", (1, 2, 4), 5_000, 0.8, 720),
    Kind("bob", "vision", "augment", 5, "v100", (1,), 1_300, 0.6, 120),
    Kind("cat", "language", "bert", 5, "a100", (2, 4, 4, 8), 7_500, 0.6, 720, then="score"),
    Kind("gus", "language", "llama", 1, "a100", (4, 4, 8), 20_000, 0.3, 1440, "long", "80g"),
    Kind("dan", "language", "tokens", 3, "", (1,), 900, 0.9, 60),
    Kind("eve", "physics", "lammps", 6, "mi250", (1, 2, 4), 6_000, 0.9, 480),
    Kind("eve", "physics", "mesh", 3, "", (0,), 2_500, 0.7, 240),
    Kind("fay", "chemistry", "fold", 4, "a100", (1, 1, 2), 4_000, 0.8, 480),
)
SCORE = Kind("cat", "language", "score", 0, "a100", (1,), 1_500, 0.4, 120)


@dataclass
class Job:
    """A job, and when and where it ran."""

    number: int
    kind: Kind
    gpus: int
    submit: int  # seconds after BEGIN
    base_s: int  # run time on an A100
    state: str
    after: Job | None = None
    start: int = -1
    held: list[Node] = field(default_factory=list)

    @property
    def limit_s(self) -> int:
        """Time limit in seconds."""
        return 60 * self.kind.minutes

    @property
    def run_s(self) -> int:
        """Run time where it runs; the time limit ends it."""
        return min(self.limit_s, round(self.base_s * SECONDS[self.held[0].gpu]))

    @property
    def end(self) -> int:
        """When it ended."""
        return self.start + self.run_s

    @property
    def spread(self) -> int:
        """Number of nodes that it asks for."""
        return 2 if self.gpus > 4 and self.kind.gpu == "a100" else 1

    @property
    def cores(self) -> int:
        """Cores that it asks for in all."""
        return 8 * self.gpus if self.gpus else 16

    def fits(self, node: Node) -> bool:
        """Return whether a share of it may run on the node now."""
        wanted = self.kind
        return (
            wanted.partition in node.partitions.split(",")
            and wanted.gpu in ("", node.gpu)
            and wanted.constraint in ("", *node.features.split(","))
            and node.free_gpus >= self.gpus // self.spread
            and node.free_cores >= self.cores // self.spread
        )

    def take(self, sign: int) -> None:
        """Take its share of the nodes that it holds (sign 1), or give it back (-1)."""
        for node in self.held:
            node.free_gpus -= sign * self.gpus // self.spread
            node.free_cores -= sign * self.cores // self.spread

    @property
    def listed(self) -> str:
        """Names of its nodes as Slurm abbreviates them."""
        first, last = self.held[0].name, self.held[-1].name
        if first == last:
            return first
        mark = "-" if int(last[1:]) - int(first[1:]) == 1 else ","
        return f"{first[0]}[{first[1:]}{mark}{last[1:]}]"

    def line(self) -> str:
        """Return the job as `sacct -X -P` prints it."""
        kind, asked = self.kind, f"billing={self.cores},cpu={self.cores}"
        eligible = max(self.submit, self.after.end if self.after else 0)
        shape = f"mem={4 * self.cores}G,node={self.spread}"
        typed = f",gres/gpu:{kind.gpu}={self.gpus}" if kind.gpu else ""
        given = (
            f",gres/gpu:{self.held[0].gpu}={self.gpus},gres/gpu={self.gpus}" if self.gpus else ""
        )
        wanted = f"{typed},gres/gpu={self.gpus}" if self.gpus else ""
        state = "TIMEOUT" if self.run_s == self.limit_s else self.state
        times = (clock(t) for t in (self.submit, eligible, self.start, self.end))
        values = (
            *(self.number, f"{kind.name}-{self.number % 5}", kind.user, kind.account),
            *(kind.partition, state, *times, self.run_s, kind.minutes, self.spread),
            *(f"{asked}{wanted},{shape}", f"{asked}{given},{shape}", self.listed, kind.constraint),
        )
        return "|".join(map(str, values)) + "\n"


def clock(seconds: int) -> str:
    """Return a time as Slurm writes it."""
    return (BEGIN + timedelta(seconds=seconds)).isoformat()


def submitted(rng: random.Random) -> list[Job]:
    """Return all jobs in order of submission, more of them by day than by night."""
    jobs: list[Job] = []
    now = 0.0
    while len(jobs) < JOBS:
        rate = 1 + 0.8 * math.sin(2 * math.pi * (now / 86_400 - 0.33))
        now += rng.expovariate(rate * 0.95 * JOBS / (DAYS * 86_400))
        kind = rng.choices(KINDS, [kind.weight for kind in KINDS])[0]
        jobs.append(drawn(len(jobs) + 1001, kind, round(now), rng))
        if kind.then and rng.random() < 0.4 and len(jobs) < JOBS:
            jobs.append(drawn(len(jobs) + 1001, SCORE, round(now) + 1, rng))
            jobs[-1].after = jobs[-2]
    return jobs


def drawn(number: int, kind: Kind, submit: int, rng: random.Random) -> Job:
    """Return a job of a kind, with random size and length."""
    seconds = round(kind.median_s * math.exp(rng.gauss(0, kind.spread))) + 20
    state = rng.choices(["COMPLETED", "FAILED"], [12, 1])[0]
    return Job(number, kind, rng.choice(kind.gangs), submit, seconds, state)


def room_at(job: Job, running: list[Job], cluster: list[Node]) -> int:
    """When a job will fit if all that run take their whole time limits."""
    gone: list[Job] = []
    for other in sorted(running, key=lambda run: run.start + run.limit_s):
        other.take(-1)
        gone.append(other)
        if len([node for node in cluster if job.fits(node)]) >= job.spread:
            break
    for other in gone:
        other.take(1)
    return gone[-1].start + gone[-1].limit_s


def started(waiting: list[Job], running: list[Job], cluster: list[Node], now: int) -> list[Job]:
    """Start what fits, in order.

    Behind a job that must wait, only those of its queue start that end before it will have room, by
    their time limits (backfilling).
    """
    begun: list[Job] = []
    room: dict[object, int] = {}  # by queue: when its first waiting job will have room
    for job in waiting:
        if job.after and not 0 <= job.after.start <= now - job.after.run_s:
            continue
        queue = (job.kind.partition, job.kind.gpu, job.gpus > 0)
        able = [node for node in cluster if job.fits(node)]
        if len(able) < job.spread:
            room.setdefault(queue, room_at(job, running + begun, cluster))
        elif now + job.limit_s <= room.get(queue, now + job.limit_s):
            job.start, job.held = now, able[: job.spread]
            job.take(1)
            begun.append(job)
    return begun


def schedule(jobs: list[Job], cluster: list[Node]) -> None:
    """Decide when and where each job runs, going from event to event."""
    coming, waiting, running = list(jobs), list[Job](), list[Job]()
    while coming or waiting:
        now = min(itertools.chain((j.submit for j in coming[:1]), (j.end for j in running)))
        for job in [job for job in running if job.end <= now]:
            job.take(-1)
            running.remove(job)
        while coming and coming[0].submit <= now:
            waiting.append(coming.pop(0))
        for job in started(waiting, running, cluster, now):
            waiting.remove(job)
            running.append(job)


if __name__ == "__main__":
    cluster, jobs = nodes(), submitted(random.Random(17))
    schedule(jobs, cluster)
    (FOLDER / "nodes.txt").write_text("".join(node.line() for node in cluster), encoding="utf-8")
    lines = [FIELDS + "\n", *(job.line() for job in jobs)]
    (FOLDER / "jobs.sacct.txt").write_text("".join(lines), encoding="utf-8")
