"""EASY backfilling by multifactor priority, in plain Python: what really happened at a site.

Jobs are taken by priority, then by submission. On each set of nodes that jobs may use, the first
that does not fit gets a reservation: the earliest time at which it fits if every running job takes
its whole limit. Later jobs start now if they delay no reservation. Cores and memory never bind:
a job asks no more of them for a GPU than its node has for one.
"""

import heapq
from typing import NamedTuple

from tests.planted.jobs import Job
from tests.planted.priority import Priorities

END, SUBMIT = 0, 1  # ends come first at one moment


class Run(NamedTuple):
    """A job, its priority when it started, its times in seconds since the history begins."""

    job: Job
    start: int
    end: int
    nodes: tuple[str, ...]
    priority: int

    @property
    def wait(self):
        """Seconds from submission to start."""
        return self.start - self.job.submit


class Reservation(NamedTuple):
    """The head of a set of nodes, when it can start, and the free GPUs by node there are then."""

    job: Job
    allowed: tuple[str, ...]
    at: int
    later: dict[str, int]


def allowed(job, nodes):
    """Names of the nodes that a job may use, in order."""
    fit = (n for n in nodes if job.partition in n.partitions and job.model in ("", n.gpu))
    return tuple(node.name for node in fit)


def place(job, free, names):
    """The first nodes that hold a job with `free` GPUs, or None."""
    fit = [name for name in names if free[name] >= job.per_node]
    return tuple(fit[: job.nodes]) if len(fit) >= job.nodes else None


def schedule(site, jobs, weights):
    """Runs of all jobs in order of submission; partitions without common nodes are independent."""
    runs = []
    for names in _apart(site):
        inside = [job for job in jobs if job.partition in names]
        runs += Backfill(site, weights).schedule(inside)
    return sorted(runs, key=lambda run: run.job.seq)


def _apart(site):
    """Partitions in groups that share nodes."""
    groups = {frozenset(node.partitions) for node in site.nodes}
    assert sum(map(len, groups)) == len(site.partitions)
    return sorted(groups, key=sorted)


class Backfill:
    """The scheduler of a site; `schedule` is called once."""

    def __init__(self, site, weights):
        self.nodes = site.nodes
        self.free = {node.name: node.gpus for node in site.nodes}
        self.priorities = Priorities(site, weights)
        self.queue: dict[int, tuple[Job, float, tuple[str, ...]]] = {}
        self.running: dict[int, Run] = {}
        self.done: list[Run] = []
        self.events: list[tuple[int, int, int]] = []  # time, kind, job

    def schedule(self, jobs):
        """All runs in order of their ends."""
        by_seq = {job.seq: job for job in jobs}
        self.events = [(job.submit, SUBMIT, job.seq) for job in jobs]
        heapq.heapify(self.events)
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                _, kind, seq = heapq.heappop(self.events)
                if kind == SUBMIT:
                    job = by_seq[seq]
                    self.queue[seq] = job, self.priorities.fixed(job), allowed(job, self.nodes)
                else:
                    self._finish(seq)
            self._start_what_may(now)
        assert not self.queue
        return self.done

    def _finish(self, seq):
        run = self.running.pop(seq)
        self.done.append(run)
        for name in run.nodes:
            self.free[name] += run.job.per_node

    def _start_what_may(self, now):
        reserved: dict[tuple[str, ...], Reservation] = {}
        full = set()  # shapes of jobs that do not fit
        ranked = sorted(
            (-self.priorities.at(job, now, fixed), job.submit, seq)
            for seq, (job, fixed, _) in self.queue.items()
        )
        for rank, _, seq in ranked:
            job, _, names = self.queue[seq]
            shape = names, job.nodes, job.per_node
            if shape in full:
                continue
            if place(job, self.free, names) is None:
                full.add(shape)
                if names not in reserved:
                    reserved[names] = self._reserve(job, names, now)
            elif spot := self._harmless(job, names, now, reserved.values()):
                self._start(job, now, spot, -rank)

    def _reserve(self, head, names, now):
        """When the head fits by the time limits, and the free GPUs there are then."""
        room, at = dict(self.free), now
        ends = sorted((max(r.start + r.job.limit, now + 1), s) for s, r in self.running.items())
        for end, seq in ends:
            if end > at and place(head, room, names):
                break
            at, run = end, self.running[seq]
            for name in run.nodes:
                room[name] += run.job.per_node
        return Reservation(head, names, at, room)

    def _harmless(self, job, names, now, reserved):
        """Nodes on which a job delays no reservation if it starts now, or None."""
        over = [each for each in reserved if now + job.limit > each.at]
        taken = {name for each in over for name in place(each.job, each.later, each.allowed)}
        for choice in (names, tuple(name for name in names if name not in taken)):
            spot = place(job, self.free, choice)
            if spot and all(self._beside(job, spot, each) for each in over):
                for each in over:
                    each.later.update(self._less(job, spot, each))
                return spot
        return None

    def _beside(self, job, spot, reservation):
        room = reservation.later | self._less(job, spot, reservation)
        return place(reservation.job, room, reservation.allowed)

    @staticmethod
    def _less(job, spot, reservation):
        return {name: reservation.later[name] - job.per_node for name in spot}

    def _start(self, job, now, spot, priority):
        del self.queue[job.seq]
        self.running[job.seq] = Run(job, now, now + job.run, spot, priority)
        for name in spot:
            self.free[name] -= job.per_node
        heapq.heappush(self.events, (now + job.run, END, job.seq))
