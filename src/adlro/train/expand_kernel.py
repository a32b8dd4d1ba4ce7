"""Simulator-expanded targets, compiled: what every choice of a state leads to, tried on copies.

An episode is played under one policy. At sampled states each choice is made on a copy of the world,
which then plays on under a base policy until the next `horizon` arrivals are done. What arrives is
the same for every choice: the episode's own future, or that of several other episodes in turn, and
then costs are means. (Labels from one future are so noisy that they teach to idle.)
"""

from __future__ import annotations

from collections.abc import Callable

from adlro.compiled import njit
from adlro.encode.candidates_kernel import FEATURES, Choices, look, look_closer
from adlro.model.room import any_feasible, start
from adlro.model.state import Counts, Floats, Records, Row
from adlro.sim.kernel import advance, apply
from adlro.sim.roll_kernel import ask, branch, copy_job

COSTS = ("jct", "weighted_jct", "idle", "span", "energy")  # columns of what a choice leads to


@njit
def _weighted(w: Row, queue: Records, running: Records, jobs: Records, outcome: Records) -> float:
    """Sum of priority x time in the system from w.now on, over all jobs of a copy at its end.

    w, queue and running are the state before it was played.
    """
    total = 0.0
    for q in range(w.head, w.head + w.waiting):
        j = queue[q].job
        total += jobs[j].priority * (outcome[j].finish - w.now)
    for r in range(w.running):
        j = running[r].job
        total += jobs[j].priority * (outcome[j].finish - w.now)
    for j in range(w.arrived, len(jobs)):
        total += jobs[j].priority * (outcome[j].finish - jobs[j].arrival)
    return total


@njit
def _energy(end: float, watts: Floats, nodes: Records, gpus: Records) -> float:
    """Joules since time 0 of a cluster on which nothing runs any more; watts: see `expand`.

    GPUs that are down count as idle.
    """
    total = 0.0
    for g in range(len(gpus)):
        p = nodes[gpus[g].node].pool
        total += (watts[p, 0] - watts[p, 1]) * gpus[g].busy + watts[p, 1] * end
    return total


@njit
def try_choice(
    i: int, choices: Choices, base: Callable[..., int], params: Floats, memory: Floats,
    out: Records, watts: Floats, state: tuple[Records, ...], copy: tuple[Records, ...],
    work: tuple[Records, ...], outcome: Records, spans: Records, share: float, costs: Floats,
) -> bool:  # fmt: skip
    """Make choice i on a copy, play it to its end, add a share of its costs; False = a fault."""
    for k in range(len(memory)):  # so that a policy that draws lots draws the same each time
        memory[k] = 0.0
    w, c, answered = state[0][0], copy[0][0], 0
    if i > 0:
        q = int(choices.places[i])
        answered = start(out, state[1][w.head + q].job, int(choices.pools[i]))
    if not branch(
        answered, base, params, memory, memory, out, state, copy, work, outcome, spans
    ):  # fmt: skip
        return False
    costs[0] += share * (c.job_seconds - w.job_seconds)
    costs[1] += share * _weighted(w, state[1], state[4], work[0], outcome)
    costs[2] += share * (c.idle_seconds - w.idle_seconds)
    costs[3] += share * (c.now - w.now)
    costs[4] += share * _energy(c.now, watts, copy[9], copy[10])
    return True


@njit
def _write_future(
    w: Row, last: int, first: int, others: tuple[Records, ...], longer: tuple[Records, ...]
) -> None:
    """Let jobs w.arrived to `last` be those of another episode, at the same distances.

    `first` is where the other begins in `others`.
    """
    before = others[0][first + w.arrived - 1].arrival
    for j in range(w.arrived, last):
        copy_job(first + j, others, j, longer)
        longer[0][j].arrival = w.now + (others[0][first + j].arrival - before)


@njit
def _expand_state(
    choices: Choices, base: Callable[..., int], params: Floats, memory: Floats, horizon: int,
    futures: int, watts: Floats, out: Records, state: tuple[Records, ...],
    copy: tuple[Records, ...], work: tuple[Records, ...], others: tuple[Records, ...],
    longer: tuple[Records, ...], outcome: Records, spans: Records, features: Floats, costs: Floats,
    group: Counts,
) -> bool:  # fmt: skip
    """Try every choice of a state; fills features [C, F], costs [C, 5], group [3]. False = a fault.

    Copies know of no arrival beyond the horizon.
    """
    w, source = state[0][0], longer if futures > 0 else work
    last = min(w.arrived + horizon, len(work[0]))
    part = (
        source[0][:last], source[1][:last], source[2][:last], source[3][:last], work[4], work[5],
        work[6], work[7], source[8][:last], work[9], work[10], work[11],
    )  # fmt: skip
    for i in range(choices.count):
        for f in range(len(FEATURES)):
            features[i, f] = choices.features[i, f]
        for c in range(len(COSTS)):
            costs[i, c] = 0.0
    count = max(futures, 1) if last > w.arrived else 1
    for k in range(count):
        if futures > 0:
            _write_future(w, last, k * len(work[0]), others, longer)
        for i in range(choices.count):
            if not try_choice(
                i, choices, base, params, memory, out, watts, state, copy, part, outcome, spans,
                1.0 / count, costs[i],
            ):  # fmt: skip
                return False
    group[0], group[1], group[2] = choices.count, choices.planned, int(choices.tau * 1e6)
    return True


@njit
def expand(
    behave: Callable[..., int], behave_params: Floats, behave_memory: Floats,
    base: Callable[..., int], base_params: Floats, base_memory: Floats,
    horizon: int, futures: int, rate: float, stray: float, kinds: int, ranges: Floats,
    draws: Floats, watts: Floats, scratch: Floats, out: Records, out_copy: Records,
    state: tuple[Records, ...], copy: tuple[Records, ...], work: tuple[Records, ...],
    others: tuple[Records, ...],
    longer: tuple[Records, ...], outcome: Records, outcome_copy: Records, spans: Records,
    features: Floats, costs: Floats, groups: Counts,
) -> int:  # fmt: skip
    """Play an episode and expand a share `rate` of its states with something to choose.

    Now and then (`stray`) the behaviour policy's choice is replaced by a random start. States in
    which nothing runs are not expanded: there it is not allowed to wait. Nor are any once the rows
    are used up. Filled in, one row a choice: features [N, F], costs [N, 5], groups [N, 3] (choices
    of the state; which is Min-Min's; tau in microseconds) for the first row of each state. watts
    [P, 2]: of a GPU while busy and while idle. `kinds` and `ranges`: see `look_closer`. `others`:
    so many (`futures`) other episodes, one behind the other, each of as many jobs; 0 = the
    episode's own future. `longer`: a copy of the workload to write on.

    Returns:
        How many rows were written, or -1 after a fault.
    """
    w, used, drawn, known = state[0][0], 0, 0, 0
    while advance(*state, *work, outcome, spans):
        done = 1
        while done > 0:
            done = 0
            waiting = state[1][w.head : w.head + w.waiting]
            mask = state[2][w.head : w.head + w.waiting]
            if w.waiting == 0 or w.busy_gpus == w.up_gpus:
                break
            if not any_feasible(work[0], waiting, mask, state[8], state[9], state[10]):
                break
            sampled, strays = draws[drawn] < rate, draws[drawn + 1] < stray
            picked = draws[drawn + 2]
            drawn = (drawn + 3) % (len(draws) - 3)
            if sampled or strays:
                choices = look(
                    w.now, work[0][: w.arrived], work[1][: w.arrived], waiting, mask,
                    state[4][: w.running], state[8], state[9], state[10], scratch,
                )  # fmt: skip
                if sampled and w.running > 0 and used + choices.count <= len(groups):
                    look_closer(
                        kinds, ranges, choices, work[0][: w.arrived], work[1][: w.arrived], waiting,
                        state[4][: w.running], state[8], state[10], scratch,
                    )  # fmt: skip
                    for j in range(known, w.arrived):  # who has really come meanwhile
                        copy_job(j, work, j, longer)
                    known = w.arrived
                    if not _expand_state(
                        choices, base, base_params, base_memory, horizon, futures, watts, out_copy,
                        state, copy, work, others, longer, outcome_copy, spans, features[used:],
                        costs[used:], groups[used],
                    ):  # fmt: skip
                        return -1
                    used += choices.count
            if strays:
                i = 1 + int(picked * (choices.count - 1))
                j = waiting[int(choices.places[i])].job
                answered = start(out, j, int(choices.pools[i]))
            else:
                answered = ask(behave, behave_params, behave_memory, out, state, work)
            if answered > 0:
                done = apply(answered, out, *state, *work, outcome, spans)
        if done < 0:
            return -1
    return used if w.fault == 0 else -1
