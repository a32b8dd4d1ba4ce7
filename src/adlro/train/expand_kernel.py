"""Labels states by simulation, compiled: finds the cost of every choice in a state by rollouts.

An episode is played under one policy. Sampled states are expanded: each choice is made on a copy of
the world, and a rollout under a base policy follows until the next `horizon` arrivals are
completed. Arrivals are the same for every choice. They are the episode's own, or those of several
other episodes in turn; costs are then means over these futures. (From a single future, costs are so
noisy that a network learns to idle.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from numpy import float32
from numpy.typing import NDArray

from adlro.compiled import njit
from adlro.features.start_kernel import FEATURES, Choices, describe_choices, describe_more
from adlro.model.feasibility import any_feasible, start
from adlro.model.state import Counts, Floats, Records
from adlro.sim.kernel import advance, apply
from adlro.sim.rollout_kernel import PolicyCall, ask, branch, copy_job
from adlro.sim.world import World, view_of

EFFORT = 1e5  # of a state's rollouts; larger states are expanded less often
_RARER = 0.7  # exponent of that: below 1, as there is more to learn in a large state
_LARGE = 1.0  # times that effort: with one future, as what comes matters little there,
_SOME_CHOICES = 4  # and with the main choices and about so many others
COSTS = ("jct", "weighted_jct", "idle", "span", "energy")  # columns of the cost of a choice


class Handed(NamedTuple):
    """Parameters and memory of the policy that plays (behave) and of that in rollouts (base)."""

    behave_params: Floats
    behave_memory: Floats
    base_params: Floats
    base_memory: Floats  # zeros at the start of each rollout


class Task(NamedTuple):
    """Settings and random numbers for the expansion of an episode, on a cluster of P pools."""

    horizon: int  # a rollout lasts until this many more arrivals are completed
    futures: int  # other episodes that supply the arrivals; 0 = the episode itself does
    rate: float  # share of the states with a choice that are expanded
    stray: float  # share of the decisions that are random starts
    kinds: int  # of features to compute, see `describe_more`
    ranges: Floats  # of telemetry readings, see `describe_more`
    draws: Floats  # random numbers in [0, 1), three per decision
    watts: Floats  # [P, 2] power of a GPU in each pool, busy and idle


class Scene(NamedTuple):
    """The world of the episode, the copy of it for rollouts, and buffers."""

    world: World  # of the episode
    copy: World  # of the rollouts; the jobs of all futures follow its own in its table
    out: Records  # buffer for decisions in the world
    copy_out: Records  # buffer for decisions in the copy
    scratch: Floats  # of `describe_choices`


class Rows(NamedTuple):
    """Output of an expansion: N rows, one for each choice of each expanded state, F features."""

    features: NDArray[float32]  # [N, F]
    costs: Floats  # [N, 5] see COSTS
    # [N, 6] in a state's first row: rows, that of Min-Min's choice, tau in us, jobs of the rollout,
    # rarity: thousandths of the usual share of states; in each row: number of the choice
    groups: Counts


@njit
def _until(last: int, world: World) -> World:
    """Return the world with only its first `last` arrivals."""
    return World(
        world.totals,
        world.queue,
        world.eligible,
        world.undone,
        world.running,
        world.ends,
        world.wear,
        world.cells,
        world.pools,
        world.nodes,
        world.gpus,
        world.arrivals[:last],
        world.jobs,
        world.est,
        world.allowed,
        world.seconds,
        world.events,
        world.colocation,
        world.demands,
        world.readings,
        world.holders,
        world.quotas,
        world.caps,
        world.ageing,
        world.tick,
        world.outcome,
        world.spans,
    )


@njit
def _weighted(world: World, copy: World) -> float:
    """Sum priority x time in the system since the rollout began, over all jobs of the rollout.

    The rollout is finished; `world` is the state before it.
    """
    w, queue, running, total = world.totals[0], world.queue, world.running, 0.0
    jobs, outcome, arrivals = copy.jobs, copy.outcome, copy.arrivals
    for q in range(w.head, w.head + w.waiting):
        j = queue[q].job
        total += jobs[j].priority * (outcome[j].finish - w.now)
    for r in range(w.running):
        j = running[r].job
        total += jobs[j].priority * (outcome[j].finish - w.now)
    for k in range(w.arrived, len(arrivals)):
        j = arrivals[k]
        total += jobs[j].priority * (outcome[j].finish - jobs[j].arrival)
    return total


@njit
def _energy(end: float, watts: Floats, nodes: Records, gpus: Records) -> float:
    """Return the joules that all GPUs used from time 0 to `end`, when no job runs any more.

    GPUs that are down count as idle.
    """
    total = 0.0
    for g in range(len(gpus)):
        p = nodes[gpus[g].node].pool
        total += (watts[p, 0] - watts[p, 1]) * gpus[g].busy + watts[p, 1] * end
    return total


@njit
def _add_costs(share: float, watts: Floats, world: World, copy: World, costs: Floats) -> None:
    """Add `share` times the costs of a finished rollout, which began at the state of `world`."""
    w, c = world.totals[0], copy.totals[0]
    costs[0] += share * (c.job_seconds - w.job_seconds)
    costs[1] += share * _weighted(world, copy)
    costs[2] += share * (c.idle_seconds - w.idle_seconds)
    costs[3] += share * (c.now - w.now)
    costs[4] += share * _energy(c.now, watts, copy.nodes, copy.gpus)


@njit
def _try_choice(
    i: int, choices: Choices, base: PolicyCall, out: Records, world: World, copy: World
) -> bool:
    """Make choice i (0 = wait) on the copy and run the rollout to its end; False = a fault."""
    for k in range(len(base.memory)):  # so that a random policy draws the same each time
        base.memory[k] = 0.0
    answered = 0
    if i > 0:
        q = world.totals[0].head + int(choices.places[i])
        answered = start(out, world.queue[q].job, int(choices.pools[i]))
    return branch(answered, base, base.memory, out, world, copy)


@njit
def _write_future(last: int, first: int, scene: Scene) -> None:
    """Replace the copy's arrivals from now up to number `last` by those of another episode.

    The times between arrivals are those of that episode; `first` is the row of its first job in the
    copy's table.
    """
    w, copy, jobs = scene.world.totals[0], scene.copy, scene.copy.jobs
    before = jobs[first + w.arrived - 1].arrival
    for j in range(w.arrived, last):
        copy_job(first + j, copy, j, copy)
        jobs[j].id = j
        jobs[j].arrival = w.now + (jobs[first + j].arrival - before)


@njit
def _effort(world: World) -> float:
    """Estimate what the rollouts of a state cost, in units of its events times rows looked at."""
    w = world.totals[0]
    effort: float = 32.0 * (w.waiting + w.running + 60.0) * (w.waiting + len(world.gpus))
    return effort


@njit
def _rarity(world: World) -> float:
    """Return the share of the usual states that are expanded of states of this size."""
    share: float = min(1.0, EFFORT / _effort(world)) ** _RARER
    return share


@njit
def _write_features(choices: Choices, is_large: bool, rows: Rows) -> int:
    """Write the features of the choices to be tried, one row each; return how many these are.

    Also writes the number of each choice, and the row of Min-Min's, to the groups. In a large state
    some choices are left out, but never waiting, Min-Min's or the cheapest to drain.
    """
    cheapest, step, tried = 0, 1, 0
    for i in range(choices.count):
        if choices.costs[i] < choices.costs[cheapest]:
            cheapest = i
    if is_large:
        step = max(choices.count // _SOME_CHOICES, 1)
    for i in range(choices.count):
        if i % step == 0 or i == choices.planned or i == cheapest:
            for f in range(len(FEATURES)):
                rows.features[tried, f] = choices.features[i, f]
            for c in range(len(COSTS)):
                rows.costs[tried, c] = 0.0
            if i == choices.planned:
                rows.groups[0, 1] = tried
            rows.groups[tried, 5] = i
            tried += 1
    return tried


@njit
def _expand_state(choices: Choices, base: PolicyCall, task: Task, scene: Scene, rows: Rows) -> int:
    """Roll out the choices of the current state; return the number of rows written, -1 = a fault.

    Rows are written from the first row of `rows` on. Rollouts have no arrivals beyond the horizon.
    """
    world = scene.world
    w, jobs = world.totals[0], len(world.arrivals)
    last = min(w.arrived + task.horizon, jobs)
    copy = _until(last, scene.copy)
    futures, is_large = max(task.futures, 1), _effort(world) > _LARGE * EFFORT
    if is_large or last == w.arrived:
        futures = 1
    tried = _write_features(choices, is_large, rows)
    for k in range(futures):
        if task.futures > 0:
            _write_future(last, (1 + k) * jobs, scene)
        for i in range(tried):
            number = rows.groups[i, 5]
            if not _try_choice(number, choices, base, scene.copy_out, world, copy):
                return -1
            _add_costs(1.0 / futures, task.watts, world, copy, rows.costs[i])
    group = rows.groups[0]
    group[0], group[2] = tried, int(choices.tau * 1e6)
    group[3] = w.waiting + w.running + last - w.arrived
    group[4] = max(int(1000.0 * _rarity(world)), 1)
    return tried


@njit
def expand(
    behave: Callable[..., int],
    base: Callable[..., int],
    handed: Handed,
    task: Task,
    scene: Scene,
    rows: Rows,
) -> int:
    """Play an episode, and expand a share of those of its states that offer a choice.

    A share `stray` of the decisions are random starts. States in which nothing runs are not
    expanded, as waiting is not allowed there; once the rows are used up, no more states are
    expanded. Both policies are first-class compiled functions, see sim/signature.py.

    Returns:
        The number of rows written, or -1 after a fault.
    """
    world, out, scratch, draws = scene.world, scene.out, scene.scratch, task.draws
    w, used, drawn, known = world.totals[0], 0, 0, 0
    player = PolicyCall(behave, handed.behave_params, handed.behave_memory)
    rest = PolicyCall(base, handed.base_params, handed.base_memory)
    while advance(world):
        done = 1
        while done > 0:
            done = 0
            if w.waiting == 0 or w.busy_gpus == w.up_gpus:
                break
            view = view_of(world)
            if not any_feasible(view):
                break
            rate = task.rate * _rarity(world)
            sampled, strays = draws[drawn] < rate, draws[drawn + 1] < task.stray
            picked = draws[drawn + 2]
            drawn = (drawn + 3) % (len(draws) - 3)
            if sampled or strays:
                choices = describe_choices(view, scratch)
                if sampled and w.running > 0 and used + choices.count <= len(rows.groups):
                    describe_more(task.kinds, task.ranges, choices, view, scratch)
                    for j in range(known, w.arrived):  # arrivals since the last expansion
                        copy_job(j, world, j, scene.copy)
                    known = w.arrived
                    left = Rows(rows.features[used:], rows.costs[used:], rows.groups[used:])
                    written = _expand_state(choices, rest, task, scene, left)
                    if written < 0:
                        return -1
                    used += written
            if strays:
                i = 1 + int(picked * (choices.count - 1))
                j = view.queue[int(choices.places[i])].job
                answered = start(out, j, int(choices.pools[i]))
            else:
                answered = ask(player, out, world)
            if answered > 0:
                done = apply(answered, out, world)
        if done < 0:
            return -1
    return used if w.fault == 0 else -1
