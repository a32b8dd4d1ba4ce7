"""A simulator in plain Python with heapq and lists, the baseline for the kernel's speed.

Written from docs/simulator.md and optimised within plain Python: numbers are taken out of the
arrays beforehand, and the loop keeps them in local variables. As in the kernel, any function can be
the policy, decisions are checked and the same totals are kept, so a run gives the same result. Only
the wake timer is missing.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace

from adlro.errors import PolicyError
from bench.world import Option, Pool, Run, Schedule, Task, any_feasible, fits, release, start

Answer = tuple[int, Option] | None  # the job to start and its option; None = wait
# now, tasks, queue (oldest first), running (in no order), pools
Choose = Callable[[float, list[Task], list[int], list[Run], list[Pool]], Answer]


def fcfs(
    now: float, tasks: list[Task], queue: list[int], running: list[Run], pools: list[Pool]
) -> Answer:
    """Start the oldest job on the first pool that fits."""
    if queue:
        _, gpus, cores, memory, _, _, options = tasks[queue[0]]
        for option in options:
            if fits(pools[option[0]], gpus, cores, memory):
                return queue[0], option
    return None


def pair_sjf(
    now: float, tasks: list[Task], queue: list[int], running: list[Run], pools: list[Pool]
) -> Answer:
    """Start the feasible pair with the shortest estimate."""
    best, found = math.inf, None
    for j in queue:
        _, gpus, cores, memory, _, _, options = tasks[j]
        for option in options:
            if option[1] < best and fits(pools[option[0]], gpus, cores, memory):
                best, found = option[1], (j, option)
    return found


def _free_times(
    now: float, tasks: list[Task], running: list[Run], pools: list[Pool]
) -> list[list[float]]:
    """Times at which the GPUs of each pool are expected to be free, ascending."""
    times = [[now] * pool.free for pool in pools]
    for _, j, began, expected, p, _ in running:
        ready = expected if expected > now else now + max(0.1 * (now - began), 1.0)
        times[p] += [ready] * tasks[j][1]
    for row in times:
        row.sort()
    return times


def _completion(task: Task, times: list[list[float]]) -> tuple[float, Option]:
    """Return the earliest expected completion of a job, and its option."""
    best, last, options = math.inf, task[1] - 1, task[6]
    choice = options[0]
    for option in options:
        end = times[option[0]][last] + option[1]
        if end < best:
            best, choice = end, option
    return best, choice


def min_min(
    now: float, tasks: list[Task], queue: list[int], running: list[Run], pools: list[Pool]
) -> Answer:
    """Start the first job of the Min-Min plan.

    The heap holds lower bounds on completions; the top is recomputed when it is outdated.
    """
    if not any_feasible(tasks, queue, pools):
        return None
    times = _free_times(now, tasks, running, pools)
    plan = []
    for j in queue:
        end, option = _completion(tasks[j], times)
        plan.append((end, j, option))
    heapify(plan)
    free = sum(pool.free for pool in pools)  # GPUs that the plan still has free now
    while free > 0 and plan:
        end, j, option = plan[0]
        task, row = tasks[j], times[option[0]]
        gpus = task[1]
        if row[gpus - 1] + option[1] > end:
            end, option = _completion(task, times)
            heapreplace(plan, (end, j, option))
            continue
        if row[gpus - 1] <= now and fits(pools[option[0]], gpus, task[2], task[3]):
            return j, option
        free -= sum(time <= now for time in row[:gpus])
        row[:gpus] = [end] * gpus
        row.sort()
        heappop(plan)
    return None


POLICIES: dict[str, Choose] = {"fcfs": fcfs, "min-min": min_min, "pair-sjf": pair_sjf}


def _check(queue: list[int], q: int, j: int, task: Task, pool: Pool) -> None:
    if q == len(queue) or queue[q] != j:
        raise PolicyError(f"asked to start job {j}, which is not waiting")
    if not fits(pool, task[1], task[2], task[3]):
        raise PolicyError(f"asked to start job {j} where there is no room for it now")


def run(tasks: list[Task], pools: list[Pool], choose: Choose) -> Schedule:
    """Run a workload to its end.

    Args:
        tasks: the jobs, by arrival.
        pools: the empty cluster; it is empty again afterwards.
        choose: the policy.

    Raises:
        PolicyError: the policy made an infeasible decision.
    """
    count, free = len(tasks), sum(pool.free for pool in pools)
    began, finish, where, spans = [0.0] * count, [0.0] * count, [0] * count, [0] * count
    busy = [0.0] * free
    queue: list[int] = []
    running: list[Run] = []
    now = arrival = tasks[0].arrival
    arrived = decisions = real = 0
    job_seconds = idle_seconds = 0.0
    while True:
        moment = min(arrival, running[0][0]) if running else arrival
        job_seconds += (moment - now) * (len(queue) + len(running))
        idle_seconds += (moment - now) * free
        now = moment
        while running and running[0][0] <= now:
            ended = heappop(running)
            task = tasks[ended[1]]
            finish[ended[1]] = now
            free += task[1]
            release(ended, task, pools, busy)
        while arrival <= now:
            queue.append(arrived)
            arrived += 1
            arrival = tasks[arrived][0] if arrived < count else math.inf
        if arrived == count and not running and not queue:
            break
        while True:
            decisions += 1
            real += free > 0 and any_feasible(tasks, queue, pools)
            answer = choose(now, tasks, queue, running, pools)
            if answer is None:
                break
            j, option = answer
            task, q = tasks[j], bisect_left(queue, j)
            _check(queue, q, j, task, pools[option[0]])
            del queue[q]
            started = start(now, j, task, option, pools)
            heappush(running, started)
            free -= task[1]
            began[j], where[j], spans[j] = now, option[0], len(started[5])
    return Schedule(
        began, finish, where, spans, busy, job_seconds, idle_seconds, 2 * count, decisions, real
    )
