"""AlloX: waiting jobs are assigned to positions in GPU queues to minimise total completion time.

A position (i, k) is the k-th place from the end of the queue of GPU i. With R_i the seconds until
GPU i is free and p the remaining run time of a job there, the job ends after R_i, the p of the jobs
before it and its own p. So each p counts for the job itself and for the k - 1 jobs behind it, and
the sum of all completion times is the sum of R_i + k p: a linear assignment problem (Le et al.
2020, EuroSys). It is solved at each event for the Q waiting jobs, at first with ceil(Q / GPUs) + 3
positions per GPU. The number of positions of a GPU is doubled (to at most Q) as long as its last
position is used; after that, more positions cannot improve the optimum. On each idle GPU the job
with the largest k starts.

The optimum is seldom unique: jobs of one gang size with the same k can swap GPUs within a pool,
because R_i and k p are separate terms of the cost. The policy takes the optimum that starts the
shortest of them: for each k, the GPUs on which this job is next come first, sorted by R_i, and are
filled by rising p. This matters because more jobs arrive before the plan is carried out.

Gangs (our extension): the GPUs of a pool are sorted by R_i. A gang of n GPUs at the i-th GPU takes
that GPU and the n - 1 before it, delays the jobs behind it on all n, and so costs
R_i + p (1 + n (k - 1)). If a gang is next on a GPU that is still busy for R_i, the idle GPUs among
its n start only jobs that end within R_i. Larger gangs start first. A slice counts as a whole GPU
in the assignment; slices start after the gangs, as soon as they fit their pool. If nothing runs and
nothing starts, the pair of a job and a pool with the smallest p, of those that fit, starts.

Fairness: only the share alpha (rounded up) of the users with waiting jobs takes part, those with
the least service; the default alpha of 1 means all users.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from adlro.model.feasibility import fits, smallest_feasible, start
from adlro.model.state import WHOLE

_NOW, _WAITING, _RUNNING, _NEXT, _COUNT, _STARTS = 1, 2, 3, 4, 5, 6  # memory; the seed is 0
_MORE = 3  # positions per GPU beyond an even spread


def params(context):
    """Alpha [1]: share of the users with waiting jobs that takes part, 1 = all."""
    return np.array([1.0])


def memory(context):
    """Length of the memory: the planned starts (job and pool), and the state they were planned for.

    A slice may be listed twice: as next on its GPU, and as a job that may start beside others.
    """
    return _STARTS + 4 * int(context.rows)


def busy_for(now, most, jobs, running, pools):
    """Return the pool [M] and the seconds until free [M] of M GPUs that are up.

    They are sorted by pool, within a pool the soonest free first. Only the first `most` GPUs of
    each pool are listed: the waiting jobs cannot use more.
    """
    age = now - running["start"]
    late = running["expected"] <= now
    rest = np.where(late, np.maximum(0.1 * age, 1.0), running["expected"] - now)
    whole = jobs["share"][running["job"]] == WHOLE
    gangs = np.where(whole, jobs["gpus"][running["job"]], 0)
    sliced, first, of = np.unique(running["gpu"][~whole], return_index=True, return_inverse=True)
    last = np.zeros(len(sliced))
    np.maximum.at(last, of, rest[~whole])
    home = np.concatenate(
        [
            np.repeat(np.arange(len(pools)), pools["free"]),
            np.repeat(running["pool"], gangs),
            running["pool"][~whole][first],
        ]
    )
    seconds = np.concatenate([np.zeros(pools["free"].sum()), np.repeat(rest, gangs), last])
    order = np.lexsort((seconds, home))
    home, seconds = home[order], seconds[order]
    listed = np.arange(len(home)) - np.searchsorted(home, home) < most
    return home[listed], seconds[listed]


def assign(seconds, gangs, busy):
    """Assign jobs to positions so that the sum of R + p (1 + n (k - 1)) is least.

    Args:
        seconds: [J, M] run time p of each job on each GPU; infinite = not allowed. Each job must be
            allowed on at least one GPU.
        gangs: [J] number n of GPUs that each job takes.
        busy: [M] seconds R until each GPU is free.

    Returns:
        The GPU [J] and the position k [J] of each job; 1 = last in the GPU's queue.
    """
    count, gpus = seconds.shape
    places = np.full(gpus, min(count, -(-count // gpus) + _MORE))
    order = np.argsort(
        -seconds.min(axis=1), kind="stable"
    )  # long jobs first halves the solver's time
    while True:
        machine = np.repeat(np.arange(gpus), places)
        k = np.arange(len(machine)) - np.repeat(np.cumsum(places) - places, places)
        cost = seconds[order][:, machine] * (1 + gangs[order, None] * k) + busy[machine]
        try:
            column = linear_sum_assignment(cost)[1][np.argsort(order)]
            full = machine[column[k[column] == places[machine[column]] - 1]]
            full = full[places[full] < count]
        except ValueError:  # too few positions where these jobs may run
            full = np.flatnonzero(places < count)
        if len(full) == 0:
            return machine[column], k[column] + 1
        places[full] = np.minimum(count, 2 * places[full])


def start_shortest(seconds, gangs, home, busy, assigned):
    """Return the GPU [J] of each job in the equal optimum that starts the shortest jobs.

    seconds, gangs and busy as in `assign`, with equal seconds on the GPUs of a pool that a job may
    use; home [M]: pool of each GPU; assigned: GPU [J] and position k [J], from `assign`.
    """
    machine, place = assigned
    jobs, length = np.arange(len(machine)), np.zeros(len(busy), np.int64)
    np.maximum.at(length, machine, place)
    group = (gangs, place, home[machine])
    by_time = np.lexsort((jobs, seconds[jobs, machine], *group))
    by_start = np.lexsort((machine, busy[machine], place < length[machine], *group))
    found = np.empty_like(machine)
    found[by_time] = machine[by_start]
    return found


def _taking_part(share, view):
    """Return a mask [Q] of the waiting jobs of the `share` of users with the least service."""
    jobs, queue, running = view.jobs, view.queue, view.running
    if share >= 1.0:
        return np.ones(len(queue), np.bool_)
    runs = jobs[running["job"]]
    had = running["served"] + (view.now - running["start"]) * runs["gpus"] * runs["share"] / WHOLE
    user = jobs["user"][queue["job"]]
    users = np.unique(user)
    served = np.array(
        [queue["served"][user == u].sum() + had[runs["user"] == u].sum() for u in users]
    )
    chosen = users[np.argsort(served, kind="stable")[: int(np.ceil(share * len(users)))]]
    return np.isin(user, chosen)


def _starts(seconds, gangs, sliced, home, busy):
    """Return the starts that are due now, as (GPUs of the job, row of `seconds`, pool).

    Every slice is listed as well, with 0 GPUs: it starts if it fits.
    """
    machine, place = assign(seconds, gangs, busy)
    machine = start_shortest(seconds, gangs, home, busy, (machine, place))
    first = {}
    for row in np.argsort(place):
        first[machine[row]] = row  # the last one written has the largest position
    until = np.full(len(busy), np.inf)
    for i, row in first.items():
        if busy[i] > 0.0:
            group = slice(i - gangs[row] + 1, i + 1)
            until[group] = np.minimum(until[group], busy[i])
    started = [
        (gangs[row], row, home[i])
        for i, row in first.items()
        if busy[i] == 0.0 and seconds[row, i] <= until[i]
    ]
    return started + [(0, row, home[machine[row]]) for row in np.flatnonzero(sliced)]


def _plan(view, share):
    """Solve the assignment and return (job, pool) of all starts that are due now, in order."""
    jobs, queue, pools, waiting = view.jobs, view.queue, view.pools, view.queue["job"]
    gangs, sliced = jobs["gpus"][waiting], jobs["share"][waiting] < WHOLE
    home, busy = busy_for(view.now, gangs.sum(), jobs, view.running, pools)
    if len(home) == 0 or (busy.min() > 0.0 and not sliced.any()):
        return []
    rank = np.arange(len(home)) - np.searchsorted(home, home)
    seconds = view.est[waiting][:, pools["model"][home]] * queue["left"][:, None]
    seconds = np.where(view.eligible[:, home] & (rank >= gangs[:, None] - 1), seconds, np.inf)
    able = np.isfinite(seconds).any(axis=1) & _taking_part(share, view)
    places = np.flatnonzero(able)
    if len(places) == 0:
        return []
    found = _starts(seconds[places], gangs[places], sliced[places], home, busy)
    found.sort(key=lambda one: (-one[0], one[1]))
    return [(waiting[places[k]], pool) for _, k, pool in found]


def decide(view, params, memory, out):
    """Make the next start of the plan; a new plan is computed once per event time."""
    queue, running = view.queue, view.running
    if len(queue) == 0:
        return 0
    if tuple(memory[_NOW:_NEXT]) != (view.now, len(queue), len(running)):
        plan = _plan(view, params[0])
        memory[_NOW:_STARTS] = view.now, len(queue), len(running), 0, len(plan)
        memory[_STARTS : _STARTS + 2 * len(plan)] = np.ravel(plan)
    while memory[_NEXT] < memory[_COUNT]:
        at = _STARTS + 2 * int(memory[_NEXT])
        j, p = int(memory[at]), int(memory[at + 1])
        memory[_NEXT] += 1
        waits = queue["job"] == j  # false for a slice that has started already
        may = view.eligible[waits, p].any()
        if may and fits(view.jobs[j], view.pools[p], view.nodes, view.gpus):
            memory[_WAITING] -= 1
            memory[_RUNNING] += 1
            return start(out, j, p)
    if len(running) > 0:
        return 0
    q, p = smallest_feasible(view)
    return start(out, queue[q].job, p) if q >= 0 else 0
