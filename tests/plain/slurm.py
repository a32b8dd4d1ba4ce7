"""Stock Slurm's twin in plain Python, as close to its line in docs/simulator.md as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import floor, inf, isinf
from typing import NamedTuple

from adlro.model.slurm import Slurm
from tests.plain.cases import Case
from tests.plain.policies import feasible
from tests.plain.priority import Multifactor, n, wait
from tests.plain.records import Decision, Node
from tests.plain.simulator import PlainWorld, Policy

YEAR = 365 * 86_400.0
HASTY = Slurm(  # for random cases, which are much shorter than real ones
    weight_age=90,
    weight_fairshare=110,
    weight_job_size=70,
    weight_partition=40,
    weight_qos=100,
    weight_tres={"gpu": 50, "cpu": 30, "mem": 20},
    max_age_s=64,
    partition_factors={"0": 0.5},
    default_queue_depth=6,
    sched_interval_s=16,
    bf_interval_s=4,
    bf_resolution_s=2,
    bf_window_min=2,
    bf_max_job_test=12,
    bf_max_job_user=5,
)


class Reserved(NamedTuple):
    """A node that is reserved for a waiting job."""

    node: int
    begin: float
    end: float


class SlurmTwin:
    """Slurm's main scheduler, and its backfill at multiples of an interval."""

    def __init__(self, case: Case, slurm: Slurm) -> None:
        self.slurm = slurm
        self.fair = Multifactor(case).fair
        self.user: list[int] = case.jobs["user"].tolist()
        self.priority: list[float] = case.jobs["priority"].tolist()
        self.requested: list[float] = case.jobs["requested"].tolist()
        self.of_pool = [bits(mask) for mask in case.pools["partitions"].tolist()]
        self.of_job = [bits(mask) for mask in case.jobs["partitions"].tolist()]
        self.cores: list[int] = case.nodes["cores"].tolist()
        self.memory: list[int] = case.nodes["memory"].tolist()
        self.look_at_all = self.backfill_at = inf
        self.counted = (0, 0)

    def decide(self, world: PlainWorld) -> list[Decision]:
        if not world.waiting:
            self.look_at_all = self.backfill_at = inf
            return []
        slurm, order = self.slurm, sorted(world.waiting, key=lambda job: self.key(world, job))
        all_of_them, cycle = world.now >= self.look_at_all, world.now >= self.backfill_at
        depth = len(order) if all_of_them else slurm.default_queue_depth
        answer = self.main(world, order[:depth])
        if not answer and slurm.scheduler == "backfill" and (cycle or slurm.bf_interval_s == 0):
            answer = self.backfill(world, order)
        if answer:
            return answer
        count = (world.arrived, world.arrived - len(world.waiting) - len(world.running))
        is_event = count != self.counted or not (all_of_them or cycle)
        self.counted = count
        if is_event and any(feasible(world, job) for job in world.waiting):
            if len(order) > slurm.default_queue_depth:
                later = next_multiple(world.now, slurm.sched_interval_s)
                self.look_at_all = min(self.look_at_all, later)
            if slurm.scheduler == "backfill" and slurm.bf_interval_s > 0:
                later = next_multiple(world.now, slurm.bf_interval_s)
                self.backfill_at = min(self.backfill_at, later)
        if all_of_them:
            self.look_at_all = inf
        if cycle:
            self.backfill_at = inf
        at = min(self.look_at_all, self.backfill_at)
        return [Decision("wake", at=at)] if at < inf else []

    # Order.

    def key(self, world: PlainWorld, job: int) -> tuple[int, int, int]:
        """What jobs are sorted by: tier, priority, age."""
        names = [str(number) for number in self.of_job[job]]
        tier = max((self.slurm.partition_tiers.get(name, 1) for name in names), default=0)
        return -tier, -floor(self.rank(world, job, names)), job

    def rank(self, world: PlainWorld, job: int, names: list[str]) -> float:
        slurm = self.slurm
        size = n(world, job) / sum(len(node.gpus) for node in world.cluster.nodes)
        factor = max((slurm.partition_factors.get(name, 1.0) for name in names), default=0.0)
        return (
            slurm.weight_age * min(1, wait(world, job) / slurm.max_age_s)
            + slurm.weight_fairshare * self.fair(world, self.user[job])
            + slurm.weight_job_size * (1 - size if slurm.favor_small else size)
            + slurm.weight_partition * factor
            + (slurm.weight_qos * self.priority[job] + self.tres(world, job))
        )

    def tres(self, world: PlainWorld, job: int) -> float:
        need, weights = world.jobs[job], self.slurm.weight_tres
        nodes = [node for pool in world.eligible(job) for node in world.pools[pool].nodes]
        if not nodes:
            return 0.0
        cores = sum(self.cores[node.id] for node in nodes)
        memory = sum(self.memory[node.id] for node in nodes)
        total = weights.gpu * (n(world, job) / sum(len(node.gpus) for node in nodes))
        total += weights.cpu * (need.gpus * need.cores / cores)
        return total + weights.mem * (need.gpus * need.memory / memory)

    # Main scheduler.

    def main(self, world: PlainWorld, order: list[int]) -> list[Decision]:
        closed: set[int] = set()  # partitions
        for job in order:
            for pool in feasible(world, job):
                if not self.of_pool[pool] & closed:
                    nodes = world.pools[pool].nodes
                    rooms = [world.cluster.capacity(world.jobs[job], node) for node in nodes]
                    return self.start(world, job, nodes, rooms)
            closed |= self.of_job[job] if world.eligible(job) else set()
        return []

    def start(
        self, world: PlainWorld, job: int, nodes: list[Node], rooms: list[int]
    ) -> list[Decision]:
        node = nodes[self.choose(world, job, rooms)[0]]
        return [Decision("start", job, node.pool, node.id)]

    def choose(self, world: PlainWorld, job: int, rooms: list[int]) -> list[int]:
        """Positions of the nodes of a gang: the first that holds it, or those in order."""
        need = world.jobs[job].gpus
        whole = [i for i, room in enumerate(rooms) if room >= need]
        if whole:
            return whole[:1]
        some = [i for i, room in enumerate(rooms) if room > 0]
        return [i for i in some if sum(rooms[:i]) < need]

    # Backfill.

    def backfill(self, world: PlainWorld, order: list[int]) -> list[Decision]:
        reserved: list[Reserved] = []
        of_user: Counter[int] = Counter()
        tested = 0
        for job in order:
            of_user[self.user[job]] += 1
            if self.slurm.bf_max_job_user and of_user[self.user[job]] > self.slurm.bf_max_job_user:
                continue
            if tested == self.slurm.bf_max_job_test:
                break
            tested += 1
            steps = self.steps(world, job)
            for at in self.moments(world, steps, reserved):
                pools = [
                    p for p in world.eligible(job) if self.holds(world, job, p, at, steps, reserved)
                ]
                if pools:
                    nodes = world.pools[pools[0]].nodes
                    rooms = [self.room(world, job, node, at, steps, reserved) for node in nodes]
                    if at == world.now:
                        return self.start(world, job, nodes, rooms)
                    taken = [nodes[i].id for i in self.choose(world, job, rooms)]
                    reserved += self.reserve(world, taken, at, at + self.limit(world, job))
                    break
        return []

    def steps(self, world: PlainWorld, job: int) -> dict[int, float]:
        """When each run on the job's pools counts as over: at the end of its step."""
        pools, window = world.eligible(job), 30.0
        runs = sorted(
            (self.end(world, run.job), run.job)
            for run in world.running
            if run.pool in pools and self.returns(world, run.job)
        )
        steps: dict[int, float] = {}
        while runs:
            together = [pair for pair in runs if pair[0] <= runs[0][0] + window]
            steps |= {run: together[-1][0] for _, run in together}
            runs, window = runs[len(together) :], 2 * window
        return steps

    def returns(self, world: PlainWorld, job: int) -> bool:
        """Whether a run is on a node in service."""
        return any(world.cluster.gpus[gpu].node.up for gpu in world.runs[job].gpus)

    def moments(
        self, world: PlainWorld, steps: dict[int, float], reserved: list[Reserved]
    ) -> list[float]:
        """When a job could start: now, at the end of a step, and when a reservation ends."""
        ends = {*steps.values()} | {one.end for one in reserved}
        until = world.now + self.slurm.bf_window_min * 60
        return [world.now, *sorted(at for at in ends if world.now < at <= until)]

    def limit(self, world: PlainWorld, job: int) -> float:
        limit = world.jobs[job].limit
        return (self.requested[job] or YEAR) if isinf(limit) else limit

    def end(self, world: PlainWorld, job: int) -> float:
        end = world.runs[job].start + self.limit(world, job)
        return end if end > world.now else world.now + 1

    def holds(
        self,
        world: PlainWorld,
        job: int,
        pool: int,
        at: float,
        steps: dict[int, float],
        reserved: list[Reserved],
    ) -> bool:
        nodes = world.pools[pool].nodes
        rooms = [self.room(world, job, node, at, steps, reserved) for node in nodes]
        return (max(rooms) if world.jobs[job].one_node else sum(rooms)) >= world.jobs[job].gpus

    def room(
        self,
        world: PlainWorld,
        job: int,
        node: Node,
        at: float,
        steps: dict[int, float],
        reserved: list[Reserved],
    ) -> int:
        """GPUs of the node that the job finds at a time, if nothing reserves the node."""
        need, length = world.jobs[job], self.limit(world, job)
        mine = [one for one in reserved if one.node == node.id]
        if not node.up or any(one.begin - length < at < one.end for one in mine):
            return 0
        if at == world.now:
            return world.cluster.capacity(need, node)
        left = {run for run in world.runs if steps.get(run, inf) > at}
        gone = [job for gpu in node.gpus for job in gpu.jobs if job not in left]
        cores = node.cores + sum(world.jobs[job].cores for job in gone)
        memory = node.memory + sum(world.jobs[job].memory for job in gone)
        rooms = [sum(not left & set(gpu.jobs) for gpu in node.gpus)]
        rooms += [cores // need.cores] if need.cores else []
        rooms += [memory // need.memory] if need.memory else []
        return min(rooms)

    def reserve(
        self, world: PlainWorld, nodes: list[int], begin: float, end: float
    ) -> list[Reserved]:
        step = self.slurm.bf_resolution_s
        begin = max(floor(begin / step) * step, world.now)
        end = max(floor(end / step) * step, begin + step)
        return [Reserved(node, begin, end) for node in nodes]


def bits(mask: int) -> set[int]:
    """The numbers of the bits that are set."""
    return {number for number in range(31) if mask >> number & 1}


def next_multiple(now: float, step: float) -> float:
    """The next multiple of `step` after now."""
    return (floor(now / step) + 1) * step


MAKERS: dict[str, Callable[[Case, int], Policy]] = {
    "slurm": lambda case, seed: SlurmTwin(case, HASTY),
}
