"""The requests of a site: who asks for what, when and for how long; no schedule yet.

A stream of jobs has its number of jobs and its GPU-hours: run times are drawn and then scaled to
them, so the load that a site plants on a partition is met closely and not only on average.
"""

import math
import random
from typing import NamedTuple

MINUTE, HOUR, DAY = 60, 3600, 86_400
SHORTEST, LONGEST = 4 * MINUTE, 44 * HOUR  # of a run
MAX_LIMIT = 3 * DAY  # MaxTime of every partition
GENEROUS = (12 * HOUR, DAY, 2 * DAY)  # limits of users who do not look closely
ENDS = (("COMPLETED", 89), ("FAILED", 7), ("CANCELLED by 1004", 3), ("OUT_OF_MEMORY", 1))
NAMES = ("train", "resnet50", "finetune_7b", "eval", "diffusion", "sweep", "md_run", "fold")


class Job(NamedTuple):
    """A request: the same number of GPUs on each of its nodes. Cores and memory are for a GPU."""

    seq: int  # order of submission
    id: str
    name: str
    user: str
    account: str
    partition: str
    model: str  # type asked for, empty for any
    nodes: int
    per_node: int  # GPUs
    cores: int
    memory_gb: int
    submit: int  # seconds since the history begins
    limit: int  # seconds
    run: int  # seconds that it takes
    state: str

    @property
    def gpus(self):
        """GPUs of all its nodes."""
        return self.nodes * self.per_node


class Stream(NamedTuple):
    """Jobs of one kind; `sizes` has the weight of each number of GPUs."""

    accounts: dict[str, float]  # weights
    partition: str
    model: str
    count: int
    sizes: dict[int, float]
    gpu_hours: float
    generous: bool = False  # asks for half a day, one or two whatever the run takes


def draw(site, seed):
    """Jobs in order of submission, over 15 to 19 days."""
    rng = random.Random(f"planted jobs {seed}")
    span = rng.randint(15, 19) * DAY
    drawn = [job for stream in streams(site, span, rng) for job in _draw(site, stream, span, rng)]
    drawn.sort(key=lambda job: job.submit)
    first, number = drawn[0].submit, rng.randint(20_000, 900_000)
    return [
        job._replace(seq=i, id=str(number + i), submit=job.submit - first)
        for i, job in enumerate(drawn)
    ]


def streams(site, span, rng):
    """The kinds of jobs at a site; loads are shares of what the GPUs can do in the span."""
    others = {name: rng.uniform(0.7, 1.3) for name in site.users if name != site.starved}
    starved = {site.starved: 1.0}
    hours = span / HOUR

    def work(load, *place):
        return load * hours * site.gpus(*place)

    if site.starved_by == "size":  # the favoured alone fill the partition
        favoured, behind = rng.uniform(0.98, 1.03), rng.uniform(0.16, 0.24)
        sizes, large = {1: 1}, {4: 6, 8: 3}
    else:
        favoured, behind = rng.uniform(1.11, 1.15), rng.uniform(0.11, 0.14)
        sizes, large = {1: 6, 2: 3, 4: 1}, {1: 1, 2: 2, 4: 5, 8: 2}
    asked = [
        Stream(others, site.busy, site.busy_model, rng.randint(240, 280), large,
               work(favoured, site.busy)),
        Stream(starved, site.low or site.busy, site.busy_model, rng.randint(270, 320), sizes,
               work(behind, site.busy), generous=True),
    ]  # fmt: skip
    mixed, calm_load = {1: 6, 2: 3, 4: 2}, rng.uniform(0.6, 0.72)
    if site.idle_by == "unnamed":  # the named model carries nearly all of the partition's work
        calm_load = rng.uniform(0.77, 0.82)
    calm, own = rng.randint(430, 510), rng.randint(25, 35)
    calm += 0 if site.third else 200
    asked += [
        Stream(others, site.calm, site.calm_model, calm, mixed,
               work(calm_load, "", site.calm_model) * 0.94),
        Stream(starved, site.calm, site.calm_model, own, {1: 1},
               work(calm_load, "", site.calm_model) * 0.06),
    ]  # fmt: skip
    if site.third:
        load = work(rng.uniform(0.56, 0.68), "", site.third_model)
        count = rng.randint(220, 260)
        asked.append(Stream(others, site.third, site.third_model, count, {1: 7, 2: 3, 4: 1}, load))
    return [*asked, *_hardly_any(site, others, work, rng)]


def _hardly_any(site, others, work, rng):
    """The few jobs of the idle model: of any type, or in a partition of its own."""
    load = work(rng.uniform(0.01, 0.03), "", site.idle_model)
    if site.idle_by == "unnamed":
        yield Stream(others, site.calm, "", rng.randint(6, 12), {1: 1}, 0.7 * load)
        yield Stream(others, site.calm, site.idle_model, 2, {1: 1}, 0.3 * load)
        return
    owner = next(part.accounts for part in site.partitions if part.name == site.idle)
    who = {owner[0]: 1.0} if owner else others
    yield Stream(who, site.idle, "", rng.randint(5, 9), {1: 3, 2: 1}, 0.6 * load)
    yield Stream(who, site.idle, site.idle_model, rng.randint(3, 5), {1: 3, 2: 1}, 0.4 * load)


def _draw(site, stream, span, rng):
    shapes = rng.choices(list(stream.sizes), list(stream.sizes.values()), k=stream.count)
    runs = _scaled([rng.lognormvariate(0, 0.9) for _ in shapes], shapes, stream.gpu_hours * HOUR)
    most = min(n.gpus for n in site.nodes if stream.partition in n.partitions)
    room = [n for n in site.nodes if stream.partition in n.partitions]
    cores = min(n.cores // n.gpus for n in room)
    memory = min(n.memory_mb // 1024 // n.gpus for n in room)
    for gpus, run in zip(shapes, runs, strict=True):
        account = rng.choices(list(stream.accounts), list(stream.accounts.values()))[0]
        nodes = max(1, gpus // most)
        limit = _limit(run, stream.generous, rng)
        state = rng.choices([name for name, _ in ENDS], [weight for _, weight in ENDS])[0]
        if rng.random() < 0.03 and run > 0.7 * limit:
            run, state = limit, "TIMEOUT"
        yield Job(
            0, "", rng.choice(NAMES), rng.choice(site.users[account]), account, stream.partition,
            stream.model, nodes, gpus // nodes, rng.choice((cores // 2, cores, cores)),
            rng.choice((16, 24, memory)), _moment(span, rng), limit, run, state,
        )  # fmt: skip


def _scaled(runs, shapes, gpu_seconds):
    """Whole seconds of the runs, stretched until they and their GPUs make `gpu_seconds`."""
    for _ in range(8):
        by = gpu_seconds / sum(run * gpus for run, gpus in zip(runs, shapes, strict=True))
        runs = [min(max(run * by, SHORTEST), LONGEST) for run in runs]
    return [int(run) for run in runs]


def _limit(run, generous, rng):
    """What users ask for: more than they need, in round figures."""
    if generous:
        return min(limit for limit in GENEROUS if limit > run)
    step = 10 * MINUTE if run < HOUR else HOUR
    return min(step * math.ceil(run * rng.uniform(1.1, 3.0) / step), MAX_LIMIT)


def _moment(span, rng):
    """When a job is submitted: more by day than by night, fewer at weekends."""
    while True:
        at = rng.uniform(0, span)
        rate = 1 + 0.6 * math.sin(2 * math.pi * at / DAY)  # the history begins at six
        if at // DAY % 7 >= 5:
            rate *= 0.6
        if rng.random() * 1.6 < rate:
            return int(at)
