"""A seeded history of requests: who asks for what, when, for how long; no schedule yet."""

import math
import random
from typing import NamedTuple

MINUTE, HOUR = 60, 3600


class Job(NamedTuple):
    """A request; cores and memory are for each GPU, or for the whole job if it has no GPU."""

    seq: int  # order of submission
    id: str
    name: str
    user: str
    account: str
    partitions: tuple[str, ...]
    gpu: str  # type asked for, empty for any
    gpus: int
    one_node: bool
    cores: int
    memory_mb: int
    submit: int  # seconds since the history begins
    eligible: int  # no earlier: held until then, or asked for by --begin
    after: int  # seq of the job that must have ended, or -1
    why: str  # of a late eligibility: hold, begin, dependency
    limit: int  # seconds
    run: int  # seconds it would take
    requeued_after: int  # seconds of its first run; 0 = there is only one run
    ends: str  # state unless the time limit cuts it


class Run(NamedTuple):
    """One run of a job: one record of `sacct -D`. Times are seconds since the history begins."""

    job: Job
    submit: int
    eligible: int
    start: int
    end: int
    state: str
    partition: str
    gpus: dict[str, int]  # by node; 0 on the node of a job without GPUs


# (weight, partitions, type, GPUs, one node, median hours)
KINDS = (
    (15, ("gpu",), "a100", 1, True, 0.9),
    (8, ("gpu",), "a100", 2, True, 0.9),
    (8, ("gpu",), "a100", 4, True, 0.9),
    (2, ("gpu",), "a100", 6, False, 0.7),
    (2, ("gpu",), "a100", 8, False, 0.7),
    (14, ("gpu",), "", 1, True, 0.8),
    (6, ("gpu",), "", 2, True, 0.8),
    (3, ("gpu",), "", 4, True, 0.8),
    (6, ("gpu",), "v100", 1, True, 1.0),
    (4, ("gpu",), "v100", 3, False, 0.8),
    (4, ("long",), "", 1, True, 2.0),
    (2, ("long",), "", 2, False, 1.6),
    (9, ("amd",), "", 1, True, 1.1),
    (5, ("amd",), "mi250", 2, True, 1.1),
    (3, ("amd",), "", 4, True, 1.0),
    (1, ("amd",), "mi250", 8, True, 0.6),
    (6, ("gpu", "amd"), "", 1, True, 0.8),
    (2, ("gpu", "amd"), "", 2, True, 0.8),
    (7, ("gpu",), "", 0, True, 0.7),
    (4, ("cpu",), "", 0, True, 1.0),
)
ENDS = (("COMPLETED", 88), ("FAILED", 7), ("CANCELLED by 1004", 3), ("OUT_OF_MEMORY", 2))
USERS = {"ada": "vision", "bert": "vision", "cho": "language", "dmitri": "language", "eve": "bio",
         "fatima": "bio", "gus": "physics"}  # fmt: skip
NAMES = ("train", "resnet50", "finetune_7b", "eval, lr=0.1", "diffusion", "bash", "md run")


def draw(seed, count=1500, gap=340.0):
    """Jobs in order of submission, `gap` seconds apart on average and more by day than by night."""
    rng = random.Random(seed)
    jobs, clock, number = [], 0.0, 41_000
    while len(jobs) < count:
        clock += rng.expovariate((1 + 0.5 * math.sin(2 * math.pi * clock / (24 * HOUR))) / gap)
        tasks = rng.randint(3, 8) if rng.random() < 0.02 else 1
        number += 1
        first = _draw_one(rng, len(jobs), str(number), int(clock), tasks > 1)
        jobs.append(first if tasks == 1 else first._replace(id=f"{number}_0"))
        for task in range(1, tasks):  # a job array: the same request, its own run time
            jobs.append(first._replace(seq=len(jobs), id=f"{number}_{task}", run=_run(rng, 0.6)))
        number += tasks - 1
    return jobs


def _draw_one(rng, seq, id_, submit, is_array):
    _, partitions, kind, gpus, one_node, median = rng.choices(KINDS, [k[0] for k in KINDS])[0]
    if is_array:
        partitions, kind, gpus, one_node, median = ("gpu",), "", 1, True, 0.6
    run = _run(rng, median)
    over = rng.uniform(0.6, 0.95) if rng.random() < 0.05 else rng.uniform(1.1, 4.0)
    step = 5 * MINUTE if run * over < HOUR else 30 * MINUTE
    user = rng.choice(list(USERS))
    why, eligible, after = _late(rng, seq, submit, is_array)
    return Job(
        seq, id_, rng.choice(NAMES), user, USERS[user], partitions, kind, gpus, one_node,
        cores=rng.choice((4, 6, 8, 8, 12)) if gpus else rng.choice((4, 8, 16)),
        memory_mb=1000 * (rng.choice((16, 32, 64)) if gpus else rng.choice((8, 32))),
        submit=submit, eligible=eligible, after=after, why=why,
        limit=step * math.ceil(run * over / step), run=run,
        requeued_after=int(run * rng.uniform(0.1, 0.6)) if not why and rng.random() < 0.02 else 0,
        ends=rng.choices([name for name, _ in ENDS], [weight for _, weight in ENDS])[0],
    )  # fmt: skip


def _run(rng, median):
    """Seconds of a run: log-normal, between two minutes and twelve hours."""
    return int(min(max(rng.lognormvariate(math.log(median * HOUR), 1.0), 2 * MINUTE), 12 * HOUR))


def _late(rng, seq, submit, is_array):
    """(why, earliest time, job waited for) of a job that is not eligible when it is submitted."""
    chance = rng.random()
    if is_array or seq < 20 or chance > 0.09:
        return "", submit, -1
    if chance > 0.03:
        return "dependency", submit, seq - rng.randint(1, 12)
    return ("begin" if chance > 0.015 else "hold"), submit + rng.randint(1, 10) * HOUR, -1
