"""Policies in Python for the kernel: replay of decisions, recording, and random decisions."""

from __future__ import annotations

from math import ceil

import numpy as np

from adlro.model.feasibility import capacity, fits, least_on_node
from adlro.model.state import DECISION_KINDS, WHOLE
from tests.plain.records import Decision


def write(answer, out):
    """Write decisions to the kernel's buffer; returns their number."""
    for i, decision in enumerate(answer):
        out[i] = (DECISION_KINDS.index(decision.kind), *decision[1:])
    return len(answer)


class Played:
    """Replays decisions recorded in the plain simulator."""

    name, params, memory = "played", np.zeros(0), 0

    def __init__(self, trace):
        self.answers = iter(trace)

    def decide(self, view, params, memory, out):
        return write(next(self.answers), out)


class Recorder:
    """Calls another policy from Python and records its answers."""

    def __init__(self, policy):
        self.name, self.params, self.memory = policy.name, policy.params, policy.memory
        self.recorded = policy.decide
        self.trace = []

    def decide(self, view, params, memory, out):
        count = self.recorded(view, params, memory, out)
        rows = out[:count].tolist()
        self.trace.append([Decision(DECISION_KINDS[kind], *rest) for kind, *rest in rows])
        return count


class Scribe:
    """Makes random feasible decisions and records them.

    It cannot try a decision on a copy. Therefore an answer begins with preemptions, which only free
    GPUs, and then changes each pool at most once, so that each decision stays feasible. With quotas
    it starts one job per answer, as that job may use up the quota of another.
    """

    name, params, memory = "scribe", np.zeros(0), 0

    def __init__(self, seed, whole, *, quotas=False):
        self.rng = np.random.default_rng(seed)
        self.quotas = quotas
        self.whole = whole  # whole seconds: timers ring at quarters of a second
        self.budget = int(self.rng.choice([0, 5, 40]))  # preemptions and migrations still allowed
        self.trace = []

    def decide(self, view, params, memory, out):
        now, jobs, running = view.now, view.jobs, view.running
        answer = []
        preemptible = [r for r in running if now - r.start >= jobs[r.job].least_run - 1e-9]
        self.rng.shuffle(preemptible)
        while preemptible and self.budget > 0 and self.rng.random() < 0.15:
            answer.append(Decision("preempt", int(preemptible.pop().job)))
            self.budget -= 1
        touched = set()
        if preemptible and self.budget > 0 and self.rng.random() < 0.15:
            answer.append(self.migrate(preemptible.pop(), view, touched))
            self.budget -= 1
        while len(running) == 0 or self.rng.random() < 0.5:
            if not self.start(view, touched, answer) or self.quotas:
                break
        if self.rng.random() < 0.3:
            answer.append(self.wake(now, running))
        del answer[len(out) :]
        self.trace.append(answer)
        return write(answer, out)

    def start(self, view, touched, answer):
        """Add the start of a random job on a pool not yet touched; False if there is none."""
        jobs, pools, nodes, gpus = view.jobs, view.pools, view.nodes, view.gpus
        chosen = {decision.job for decision in answer}
        for q, p in self.rng.permutation(np.argwhere(view.eligible)):
            job, pool = int(view.queue[q].job), int(p)
            taken = pool in touched or job in chosen
            if not taken and fits(jobs[job], pools[pool], nodes, gpus):
                touched.add(pool)
                answer.append(Decision("start", job, pool, *self.names(job, pool, view), 0.0))
                return True
        return False

    def migrate(self, run, view, touched):
        """A migration within its pool: to named GPUs if it fits twice, else to where it runs."""
        jobs, pools, nodes, gpus = view.jobs, view.pools, view.nodes, view.gpus
        job, pool = int(run.job), int(run.pool)
        touched.add(pool)
        roll = self.rng.random()
        if roll < 0.7 and fits(jobs[job], pools[pool], nodes, gpus):
            return Decision("migrate", job, pool, *self.names(job, pool, view), 0.0)
        if pools[pool].draining > 0:  # it may not start again where it runs
            return Decision("preempt", job, at=0.0)
        gpu = int(run.gpu) if roll > 0.5 else -1
        return Decision("migrate", job, pool, -1, gpu, 0.0)

    def names(self, job, pool, view):
        """Random node and GPU for a start to name; -1 = none."""
        jobs, pools, nodes, gpus = view.jobs, view.pools, view.nodes, view.gpus
        need, first = jobs[job], pools[pool].first_node
        room = range(first, first + pools[pool].nodes)
        room = [n for n in room if capacity(need, nodes[n], gpus) >= least_on_node(need)]
        node = int(self.rng.choice(room))
        on_node = range(nodes[node].first_gpu, nodes[node].first_gpu + nodes[node].gpus)
        share, memory = int(need.share), int(need.gpu_memory) if need.share < WHOLE else 0
        able = [g for g in on_node if gpus[g].free >= share and gpus[g].free_memory >= memory]
        gpu = int(self.rng.choice(able))
        return ((-1, -1), (node, -1), (-1, gpu), (node, gpu))[self.rng.integers(4)]

    def wake(self, now, running):
        """A timer soon, or at the expected end of a run."""
        soon = [now + 1.0, now + 7.5, now + 0.25]
        if self.whole:  # two correct simulators may differ in the last bit of real numbers
            soon += [ceil(4 * run.expected) / 4 for run in running if run.expected > now]
        return Decision("wake", at=float(self.rng.choice(soon)))
