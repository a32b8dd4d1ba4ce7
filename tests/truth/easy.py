"""EASY backfilling on nodes, in plain Python: what really happened on the invented cluster.

Jobs are taken in order of eligibility. The first that does not fit gets a reservation: the earliest
time at which it fits if every running job takes its whole time limit. Later jobs may start now if
they end before that time, or if the reserved job would still fit beside them. Nodes are filled in
order; a gang starts whole. A job without GPUs never holds a reservation. (Lifka 1995, JSSPP.)
"""

import heapq
from typing import NamedTuple

from tests.truth.cluster import Node
from tests.truth.jobs import Job, Run

REQUEUE_DELAY = 121  # seconds until a requeued job is eligible again: Slurm's default
KILLED_LATE = 30  # Slurm ends a job up to so many seconds after its limit
END, ELIGIBLE = 0, 1  # ends come first at one moment


class Room(NamedTuple):
    """What is free on a node."""

    gpus: int
    cores: int
    memory_mb: int

    def less(self, job, gpus, sign=-1):
        """The room without (sign 1: with) a job's `gpus` GPUs on the node."""
        by = sign * (gpus if job.gpus else 1)
        return Room(self.gpus + sign * gpus, self.cores + by * job.cores,
                    self.memory_mb + by * job.memory_mb)  # fmt: skip


def allowed(job, nodes):
    """Names of the nodes that a job may use, by partition it was submitted to, both in order."""
    fits = [node for node in nodes if (not job.gpus or node.gpus) and job.gpu in ("", node.gpu)]
    return {p: [n.name for n in fits if p in n.partitions] for p in job.partitions}


def place(job, free, nodes, avoid=()):
    """(partition, GPUs by node) of a job that starts with `free` room, or None. Nodes in order."""
    for partition, names in allowed(job, nodes).items():
        gpus, left = {}, job.gpus
        for name in (name for name in names if name not in avoid):
            room = free[name]
            beside = min(room.cores // job.cores, room.memory_mb // job.memory_mb)
            if not job.gpus and beside:
                return partition, {name: 0}
            count = min(room.gpus, beside, left)
            if count and (count == job.gpus or not job.one_node):
                gpus[name] = count
                left -= count
            if gpus and not left:
                return partition, gpus
    return None


class Easy:
    """The scheduler of some nodes; `schedule` is called once."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self.free = {node.name: Room(node.gpus, node.cores, node.memory_mb) for node in nodes}
        self.queue: list[tuple[int, int, int, Job]] = []  # eligible, order, submitted
        self.running: dict[int, Run] = {}
        self.done: list[Run] = []
        self.events: list[tuple[int, int, int, int]] = []  # time, kind, order, submitted

    def schedule(self, jobs):
        """All runs in order of their ends."""
        jobs = {job.seq: job for job in jobs}
        waiting = {seq for seq, job in jobs.items() if job.after >= 0}
        alone = [job for job in jobs.values() if job.after < 0]
        self.events = [(job.eligible, ELIGIBLE, job.seq, job.submit) for job in alone]
        heapq.heapify(self.events)
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                _, kind, seq, submit = heapq.heappop(self.events)
                if kind == ELIGIBLE:
                    self.queue.append((now, seq, submit, jobs[seq]))
                elif self._finish(seq, now):
                    for child in [c for c in waiting if jobs[c].after == seq]:
                        waiting.remove(child)
                        at = max(now, jobs[child].eligible)
                        heapq.heappush(self.events, (at, ELIGIBLE, child, jobs[child].submit))
            self._start_what_may(now)
        return self.done

    def _finish(self, seq, now):
        """End a run; False if the job was requeued and comes back."""
        run = self.running.pop(seq)
        self.done.append(run)
        for name, gpus in run.gpus.items():
            self.free[name] = self.free[name].less(run.job, gpus, 1)
        if run.state == "REQUEUED":
            heapq.heappush(self.events, (now + REQUEUE_DELAY, ELIGIBLE, seq, now))
        return run.state != "REQUEUED"

    def _start_what_may(self, now):
        head, at, later = None, 0, {}
        for entry in sorted(self.queue):
            job = entry[3]
            if head is None:
                found = place(job, self.free, self.nodes)
                if not found and job.gpus:
                    head, (at, later) = job, self._reserve(job, now)
            else:
                found = self._harmless(job, now, head, (at, later))
            if found:
                self._start(entry, now, *found)

    def _reserve(self, head, now):
        """Time at which the head fits by the time limits, and the room there is then."""
        room, at = dict(self.free), now
        ends = sorted((max(r.start + r.job.limit, now + 1), seq) for seq, r in self.running.items())
        for end, seq in ends:
            if end > at and place(head, room, self.nodes):
                break
            at, run = end, self.running[seq]
            for name, gpus in run.gpus.items():
                room[name] = room[name].less(run.job, gpus, 1)
        return at, room

    def _harmless(self, job, now, head, reservation):
        """Where a job may start now without delaying the head's reservation, or None."""
        at, later = reservation
        reserved = place(head, later, self.nodes)
        for avoid in ((), tuple(reserved[1])):
            found = place(job, self.free, self.nodes, avoid)
            ends_before = now + job.limit <= at
            used = found[1] if found and not ends_before else {}
            beside = {name: later[name].less(job, gpus) for name, gpus in used.items()}
            if found and place(head, later | beside, self.nodes):
                later.update(beside)
                return found
        return None

    def _start(self, entry, now, partition, gpus):
        eligible, seq, submit, job = entry
        self.queue.remove(entry)
        lasts, state = job.run, job.ends
        if submit == job.submit and job.requeued_after:
            lasts, state = job.requeued_after, "REQUEUED"
        if lasts > job.limit:
            lasts, state = job.limit + seq % KILLED_LATE, "TIMEOUT"
        self.running[seq] = Run(job, submit, eligible, now, now + lasts, state, partition, gpus)
        for name, count in gpus.items():
            self.free[name] = self.free[name].less(job, count)
        heapq.heappush(self.events, (now + lasts, END, seq, submit))
