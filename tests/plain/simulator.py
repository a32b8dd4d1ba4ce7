"""The rules of docs/simulator.md in plain Python: slow, obvious, independent of the kernel.

Dimensions: J jobs, M GPU models, P pools, N nodes, G GPUs. Times are seconds.
"""

from __future__ import annotations

from bisect import insort
from itertools import combinations
from math import ceil, inf
from typing import Protocol

from adlro.model.state import (
    CORES,
    DRAIN,
    EVENT_KINDS,
    FAILURE,
    FINISH,
    PLANNED,
    PREEMPTION,
    REPAIR,
    WHOLE,
)
from tests.plain.cases import Case
from tests.plain.placement import PlainCluster
from tests.plain.records import (
    Carried,
    Decision,
    Event,
    Gpu,
    InfeasibleError,
    Job,
    PlainResult,
    Pool,
    Run,
    Span,
    StalledError,
    rows,
)
from tests.plain.rules import Moment, Rules
from tests.plain.timeline import NEAR, RESTORING, SAVING, WORKING, Timeline

MAX_RINGS = 100_000  # consecutive timers without another event between them
MAX_CALLS = 100_000  # calls of decide in one moment


class Policy(Protocol):
    """Interface of a plain policy."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        """Decisions to apply now; an empty list ends the moment."""


class PlainWorld:
    """The state of a cluster and the rules by which it changes."""

    def __init__(self, case: Case) -> None:
        self.jobs: list[Job] = rows(case.jobs, Job)
        self.events: list[Event] = rows(case.events, Event)
        self.est: list[list[float]] = case.est.tolist()
        self._seconds: list[list[float]] = case.seconds.tolist()
        self._colocation: list[list[float]] = case.colocation.tolist()
        self.tick = case.tick
        self.cluster = PlainCluster(case.pools, case.nodes, case.demands)
        self.reset()
        self.rules = Rules(case, self.cluster)

    def reset(self) -> None:
        """Reset to the empty cluster before the first arrival."""
        self.cluster.reset()
        self.now = self.jobs[0].arrival if self.jobs else 0.0
        self.waiting: list[int] = []
        self.runs: dict[int, Run] = {}  # by job
        self.arrived = 0
        self.happened = 0  # number of events applied
        self.timer = inf
        self.carried = [Carried() for _ in self.jobs]
        self._mask: dict[int, list[int]] = {}  # eligible pools by waiting job
        self._cells: dict[tuple[int, int], float] = {}  # by type and model; 1 unless set
        self._rings = 0
        j = len(self.jobs)
        self.result = PlainResult(
            start=[inf] * j,
            finish=[inf] * j,
            lost=[0.0] * j,
            pool=[-1] * j,
            nodes=[0] * j,
            gpus=[()] * j,
            restarts=[0] * j,
            killed=[False] * j,
            busy=[0.0] * len(self.cluster.gpus),
        )

    # State that policies may read.

    @property
    def pools(self) -> list[Pool]:
        """The pools of the cluster."""
        return self.cluster.pools

    @property
    def running(self) -> list[Run]:
        """The running jobs, in the order in which they started."""
        return list(self.runs.values())

    @property
    def arrivals_left(self) -> bool:
        """Whether more jobs will arrive."""
        return self.arrived < len(self.jobs)

    @property
    def events_left(self) -> bool:
        """Whether more failures, repairs or speed changes will happen."""
        return self.happened < len(self.events)

    def eligible(self, job: int) -> list[int]:
        """The pools where a waiting job may start."""
        return self._mask[job]

    @property
    def moment(self) -> Moment:
        """The state that the eligibility rules depend on."""
        since = {job: self.carried[job].since for job in self.waiting}
        return Moment(self.now, since, {run.job: run.pool for run in self.running})

    def fits(self, job: int, pool: int) -> bool:
        """Whether the whole gang fits on the pool now (eligible or not)."""
        return self.cluster.fits(self.jobs[job], pool)

    def expected_end(self, run: Run) -> float:
        """Expected end of a run as policies see it; later than estimated if it is overdue."""
        if self.now >= run.expected:
            return self.now + max(0.1 * (self.now - run.start), 1.0)
        return run.expected

    def free_at(self, gpu: Gpu) -> float:
        """Expected time when the GPU is free, as policies see it."""
        return max((self.expected_end(self.runs[job]) for job in gpu.jobs), default=self.now)

    # Runs.

    def _start(self, decision: Decision) -> None:
        job = self.jobs[decision.job]
        if decision.job not in self.waiting:
            raise InfeasibleError(f"job {job.id} is not waiting")
        if not 0 <= decision.pool < len(self.pools):
            raise InfeasibleError(f"job {job.id}: there is no pool {decision.pool}")
        if decision.pool not in self._mask[job.id]:
            raise InfeasibleError(f"job {job.id} is not eligible on pool {decision.pool}")
        if self.rules.breaks(job.id, decision.pool, self.moment.on):
            raise InfeasibleError(f"job {job.id} exceeds a quota on pool {decision.pool}")
        gpus = self.cluster.place(job, decision)
        run = self._new_run(job, decision.pool, gpus)
        self.cluster.take(job, gpus)
        self.waiting.remove(job.id)
        self.runs[job.id] = run
        self._refresh(gpus)
        result = self.result
        result.start[job.id] = min(result.start[job.id], self.now)
        result.pool[job.id], result.nodes[job.id] = run.pool, run.nodes
        result.gpus[job.id] = gpus

    def _new_run(self, job: Job, pool: int, gpus: tuple[int, ...]) -> Run:
        home, carried = self.pools[pool], self.carried[job.id]
        nodes = len({self.cluster.gpus[gpu].node.id for gpu in gpus})
        factor = 1 + job.communication * home.span_cost if nodes > 1 else 1.0
        interval = job.interval if job.checkpoint >= 0 else inf
        phase = RESTORING if carried.saved else WORKING
        todo = self._seconds[job.id][home.model] * carried.undone
        line = Timeline(self.now, todo, interval, job.checkpoint, phase, job.start_delay)
        visible = self.est[job.id][home.model] * carried.left * factor
        end = Timeline(self.now, visible, interval, job.checkpoint, phase, job.start_delay).end()
        expected = min(end, self.now + job.limit)
        return Run(job.id, pool, gpus, nodes, self.now, expected, factor, carried.left, line)

    def _slowness(self, run: Run) -> float:
        job_type = self.jobs[run.job].type
        gpus = [self.cluster.gpus[gpu] for gpu in run.gpus]
        others = [job for job in gpus[0].jobs if job != run.job]
        slowdowns = [self._colocation[job_type][self.jobs[job].type] for job in others]
        neighbours = 1 + sum(slowdown - 1 for slowdown in slowdowns)
        cell = self._cells.get((job_type, self.pools[run.pool].model), 1.0)
        return run.factor * neighbours / (min(gpu.speed for gpu in gpus) * cell)

    def _refresh(self, gpus: tuple[int, ...]) -> None:
        """Update the progress, slowness and end of every run on these GPUs."""
        for job in {job for gpu in gpus for job in self.cluster.gpus[gpu].jobs}:
            run = self.runs[job]
            run.line.walk(self.now)
            run.line.slowness = self._slowness(run)
            run.over = run.line.end()
            run.end = min(run.over, run.start + self.jobs[job].limit)

    def _end(self, run: Run, why: int) -> None:
        """Record the end of a run and release its GPUs."""
        job = self.jobs[run.job]
        run.line.walk(self.now)
        for gpu in run.gpus:
            self.result.spans.append(Span(job.id, gpu, run.start, self.now, job.share, why))
            self.result.busy[gpu] += (self.now - run.start) * job.share / WHOLE
        del self.runs[job.id]
        self.cluster.give(job, run.gpus)
        self._refresh(run.gpus)

    def _interrupt(self, run: Run, why: int) -> None:
        """End a run whose job waits again; why is PREEMPTION or FAILURE."""
        self._end(run, why)
        job, carried, line = self.jobs[run.job], self.carried[run.job], run.line
        work = self._seconds[job.id][self.pools[run.pool].model]
        if job.checkpoint < 0:
            self.result.lost[job.id] += work - line.todo
            carried.undone = carried.left = 1.0
        elif why == PREEMPTION:
            carried.undone, carried.left = line.todo / work, self._left(run, line.worked)
            carried.saved = True
        else:
            self.result.lost[job.id] += line.kept - line.todo
            if line.saves > 0:
                carried.undone, carried.left = line.kept / work, self._left(run, line.worked_kept)
                carried.saved = True
        self.result.restarts[job.id] += 1
        carried.since = self.now
        insort(self.waiting, job.id)

    def _left(self, run: Run, worked: float) -> float:
        """Share of its work that a job has left by the estimate."""
        whole = self.est[run.job][self.pools[run.pool].model] * run.factor
        rest = run.left * whole - worked
        if rest <= 0:
            rest = max(0.1 * (self.now - run.start), 1.0)
        return min(rest / whole, run.left)

    # Events.

    def _advance(self) -> None:
        """Move the clock to the next moment and process all events that are due then."""
        arrival = self.jobs[self.arrived].arrival if self.arrivals_left else inf
        event = max(self.events[self.happened].time, self.now) if self.events_left else inf
        end = min((run.end for run in self.runs.values()), default=inf)
        first = not self.arrived
        moment = arrival if first else min(end, event, arrival, self.timer)
        if moment == inf:
            raise StalledError(f"jobs {self.waiting} wait at {self.now} and nothing can happen")
        self._pass_time(moment)
        kinds = self._finish_due() + self._events_due() + self._arrivals_due()
        if kinds:
            self._rings = 0
        if self.timer == moment:
            self.timer = inf
            self._rings += 1
            kinds.append("timer")
        self.result.seen.update(f"{a} with {b}" for a, b in combinations(sorted(set(kinds)), 2))
        self.result.seen[f"{len(set(kinds))} kinds at once"] += 1

    def _pass_time(self, moment: float) -> None:
        elapsed = moment - self.now
        gpus = [gpu for gpu in self.cluster.gpus if gpu.node.up or gpu.jobs]
        sliced = [gpu for gpu in gpus if gpu.jobs and not self.jobs[gpu.jobs[0]].whole]
        self.result.job_seconds += elapsed * (len(self.waiting) + len(self.runs))
        self.result.wait_seconds += elapsed * len(self.waiting)
        self.result.idle_seconds += elapsed * sum(gpu.left for gpu in gpus) / WHOLE
        self.result.stranded_seconds += elapsed * sum(gpu.left for gpu in sliced) / WHOLE
        self.now = moment

    def _finish_due(self) -> list[str]:
        kinds = []
        while due := [job for job, run in self.runs.items() if run.end <= self.now]:
            run = self.runs[min(due)]
            self._end(run, FINISH)
            self.result.finish[run.job] = self.now
            self.result.killed[run.job] = run.over > run.start + self.jobs[run.job].limit
            kinds.append("finish")
        return kinds

    def _events_due(self) -> list[str]:
        kinds = []
        while self.events_left and self.events[self.happened].time <= self.now:
            event = self.events[self.happened]
            self.happened += 1
            kinds.append(EVENT_KINDS[event.kind])
            if event.kind == FAILURE:
                self._fail(event)
            elif event.kind == REPAIR:
                self.cluster.set_up(self.cluster.nodes[event.node], up=True)
            elif event.kind == CORES:
                self.cluster.change_cores(self.cluster.nodes[event.node], int(event.value))
            else:
                self._change_speed(event)
        return kinds

    def _arrivals_due(self) -> list[str]:
        kinds = []
        while self.arrivals_left and self.jobs[self.arrived].arrival == self.now:
            self.waiting.append(self.arrived)
            self.carried[self.arrived].since = self.now
            self.arrived += 1
            kinds.append("arrival")
        return kinds

    def _fail(self, event: Event) -> None:
        node = self.cluster.nodes[event.node]
        planned = event.value == PLANNED
        for run in self.running:
            on_node = any(self.cluster.gpus[gpu].node is node for gpu in run.gpus)
            if on_node and event.value == DRAIN:
                self.result.seen["drain under a run"] += 1
            elif on_node:
                self.result.seen["failure of a draining node"] += not node.up
                self._interrupt(run, PREEMPTION if planned else FAILURE)
                self._note_failure(run, "planned failure" if planned else "failure")
        if not node.up:
            self.result.seen["failure of a node that is down"] += 1
        self.cluster.set_up(node, up=False)

    def _note_failure(self, run: Run, what: str) -> None:
        seen, line = self.result.seen, run.line
        seen[f"{what} in {line.phase}"] += 1
        seen[f"{what} of one node of several"] += run.nodes > 1
        seen[f"{what} just as a save is complete"] += abs(line.saved_at - self.now) <= NEAR
        seen[f"{what} after a save"] += line.saves > 0
        starts_to_save = (
            line.phase == SAVING and abs(line.boundary() - line.cost - self.now) <= NEAR
        )
        seen[f"{what} just as a save begins"] += starts_to_save and line.cost > 0

    def _change_speed(self, event: Event) -> None:
        if event.gpu >= 0:
            self.cluster.gpus[event.gpu].speed = event.value
            self._refresh((event.gpu,))
            return
        self._cells[event.type, event.model] = event.value
        for run in self.running:
            if self.pools[run.pool].model == event.model:
                self._refresh(run.gpus)

    # Decisions.

    def _ask(self, policy: Policy) -> None:
        """Call the policy until its answer changes nothing."""
        for _ in range(MAX_CALLS):
            self._mask = self.rules.mask(self.moment)
            answer = list(policy.decide(self))
            self.result.decisions += 1
            self.result.trace.append(answer)
            for decision in answer:
                self._apply(decision)
            if all(decision.kind == "wake" for decision in answer):
                break
        else:
            raise StalledError(f"asked more than {MAX_CALLS} times at {self.now}")
        if self._rings >= MAX_RINGS:
            raise StalledError(f"{self._rings} timers in a row and nothing finished")

    def _apply(self, decision: Decision) -> None:
        if decision.kind == "wake":
            if not decision.at > self.now:
                raise InfeasibleError(f"wake at {decision.at} is not after {self.now}")
            self.timer = min(self.timer, decision.at)
            return
        if decision.kind not in ("start", "preempt", "migrate"):
            raise InfeasibleError(f"there is no decision of kind {decision.kind!r}")
        if not 0 <= decision.job < len(self.jobs):
            raise InfeasibleError(f"there is no job {decision.job}")
        if decision.kind != "start":
            self._preempt(decision.job, and_start=decision.kind == "migrate")
        if decision.kind != "preempt":
            self._start(decision)
        self.result.seen[decision.kind] += 1

    def _preempt(self, job: int, *, and_start: bool) -> None:
        if job not in self.runs:
            raise InfeasibleError(f"job {job} is not running")
        run = self.runs[job]
        if self.now - run.start < self.jobs[job].least_run - NEAR:
            raise InfeasibleError(f"job {job} runs since {run.start}: too young to be preempted")
        self._interrupt(run, PREEMPTION)
        self.result.preemptions += 1
        self._mask[job] = self.rules.mask(self.moment)[job] + [run.pool] * and_start
        self.result.seen[f"preemption in {run.line.phase}"] += 1

    def play(self, policy: Policy) -> PlainResult:
        """Simulate from the first arrival until every job has finished."""
        self.reset()
        while self.arrivals_left or self.waiting or self.runs:
            self._advance()
            if (self.arrivals_left or self.waiting or self.runs) and self._in_cycle():
                self._ask(policy)
        return self.result

    def _in_cycle(self) -> bool:
        """Whether a scheduling cycle is due now; else the timer is set to the next one."""
        if self.tick is None:
            return True
        due = ceil(self.now / self.tick - NEAR) * self.tick
        if due <= self.now + NEAR * self.tick:
            return True
        self.timer = min(self.timer, due)
        self.result.seen["event between two cycles"] += 1
        return False


def run(world: PlainWorld, policy: Policy) -> PlainResult:
    """Result of a policy on the world, which is reset first.

    Raises:
        InfeasibleError: the policy made an infeasible decision.
        StalledError: the policy lets jobs wait for ever.
    """
    try:
        return world.play(policy)
    except (InfeasibleError, StalledError) as exc:
        raise type(exc)(f"{type(policy).__name__} at {world.now}: {exc}") from exc
