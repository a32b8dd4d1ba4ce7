"""Why a policy decided as it did: one decision of a run, what else could have been done, the odds.

A run is played again until the decision that is meant. There the choices of the learned policy
(features/start_kernel.py) are laid out with their drain costs and, if a network decided, its
predictions; and Min-Min's plan shows whom a choice would help. The words are made in cli/reason.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import types

from adlro.compiled import dispatcher
from adlro.errors import ConfigError, PolicyError
from adlro.evaluate.compare import run_one
from adlro.features import start_kernel
from adlro.features.explanation_kernel import CHOICE, PLANNED, write_choices, write_plan
from adlro.features.similarity_kernel import LIKENESS
from adlro.features.start_kernel import FEATURES, MOST_CHOICES
from adlro.features.telemetry_kernel import RANGES, TELEMETRY_FEATURES
from adlro.model.state import START, WAKE, Floats, Records
from adlro.model.view import View
from adlro.nets.q_network import ASKED, MOST_UNITS, predict
from adlro.planning import drain
from adlro.planning.drain import MOST_PLANNED
from adlro.policies import adlro
from adlro.policies.registry import Policy
from adlro.sim.signature import FLOATS, TABLE, VIEW, compile_decide, compiled_steps
from adlro.sim.simulator import is_compiled
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

GROUPS = {  # what people call the features
    "waiting at all": ("wait",),
    "run time": ("seconds", "over_shortest", "area"),
    "speed here and elsewhere": ("slowdown", "is_fastest", "elsewhere"),
    "Min-Min's plan": (
        "planned", "plan_end", "plan_gain", "plan_start", "plan_rank", "plan_here",
    ),
    "drain cost": (
        "drain", "drain_log", "drain_regret", "drain_busy", "drain_wait", "drain_mean",
    ),
    "gang and room": (
        "gpus_log", "gpus_of_pool", "gpus_of_free", "left_free", "spans", "widest",
    ),
    "rivals": ("blocked", "blocked_seconds", "rivals", "rival_speed"),
    "pressure": (
        "pool_pressure", "pool_next", "pressure", "next", "free", "asked", "choices", "waiting",
    ),
    "time waited and priority": ("waited", "priority"),
    "estimates": ("overdue",),
    "recent arrivals": ("recent_load", "recent_gap", "recent_scale"),
    "telemetry": TELEMETRY_FEATURES,
    "likeness of jobs": LIKENESS,
}  # fmt: skip
_MOST_SCORE = math.log1p(1e3)  # beyond that a prediction says no more than: very bad

See = Callable[[View, int, Records], bool]


class DecisionQuery(NamedTuple):
    """Which decision of a run is meant; nothing named = the one that differs most from Min-Min."""

    at: float | None = None  # the first at or after this time
    decision: int | None = None  # the K-th, from 1
    job: int | None = None  # the one that started this job


class Option(NamedTuple):
    """A choice that a decision had."""

    job: int  # -1 = to wait
    pool: int
    seconds: float  # run time by the estimate, with the span penalty; 0 = to wait
    drain_s: float  # drain cost
    score: float  # the network's output; 0 without one
    cost_s: float  # predicted cost above that of Min-Min's choice; without a network the drain cost


class Decision(NamedTuple):
    """A decision at which something could start: C options, F features."""

    number: int  # of those of the run, from 1
    view: View
    options: tuple[Option, ...]
    features: Floats  # [C, F]
    table: Floats  # [C or C + 1, columns of CHOICE]: to wait is in it even where it is no option
    chosen: int
    planned: int  # what Min-Min would do
    network: Floats | None  # params of the learned policy; None = another kind of policy


class Planned(NamedTuple):
    """When and where a job would run by the plan; seconds from now."""

    pool: int
    start: float
    end: float


class Explanation(NamedTuple):
    """A decision, the option that it is compared with, and what speaks for one or the other."""

    decision: Decision
    rival: int | None  # None = there was no other option
    plan: dict[int, Planned]  # by job, after the choice
    rival_plan: dict[int, Planned]  # after the other option
    shares: dict[str, float]  # of groups of features in the two scores' difference; see _shares


def compile_all(policy: Policy) -> None:
    """Compile (or load) all that an explanation needs, now."""
    if is_compiled(policy.decide):
        compile_decide(policy.decide)
    compiled_steps()
    dispatcher(write_choices).compile((VIEW, types.int64, FLOATS, FLOATS, TABLE, TABLE))
    dispatcher(write_plan).compile((types.int64, types.int64, TABLE, VIEW, FLOATS, TABLE))


def watch(setting: Setting, workload: Workload, policy: Policy, seed: int, see: See) -> None:
    """Play a run and show each call of decide, with its answer, until `see` returns True.

    What is shown changes as the run goes on: copy what is to be kept.

    Raises:
        PolicyError: the policy asked for what cannot be, or a user's own failed.
    """
    compiled = is_compiled(policy.decide)
    ask = compile_decide(policy.decide) if compiled else policy.decide
    compiled_steps()

    def decide(view: View, params: Floats, memory: Floats, out: Records) -> int:
        plain = _of_arrays(_unlocked, view)
        mine = (plain, np.asarray(out)) if compiled else (view, out)
        answered: int = ask(mine[0], params, memory, mine[1])
        if see(plain, answered, out):
            raise _Seen
        return answered

    try:
        run_one(setting, workload, policy._replace(decide=decide), seed)
    except _Seen:
        return


class _Seen(BaseException):
    """Ends a run that has been watched for long enough; not an error of the policy's."""


def _of_arrays(change: Callable[[Records], Records], view: View) -> View:
    """A view with all of its arrays changed."""
    return View._make(change(part) if isinstance(part, np.ndarray) else part for part in view)


def _unlocked(array: Records) -> Records:
    """A plain copy that may be written: for a read-only array numba would compile anew."""
    return np.array(array)


class _Table(NamedTuple):
    """What the compiled code fills in for a state."""

    scratch: Floats
    choices: Floats  # [MOST_CHOICES, columns of CHOICE]
    features: Floats  # [MOST_CHOICES, F]


def _empty_table(view: View) -> _Table:
    size = start_kernel.scratch_size(len(view.gpus), len(view.pools))
    shapes = (size,), (MOST_CHOICES, len(CHOICE)), (MOST_CHOICES, len(FEATURES))
    return _Table(*(np.zeros(shape) for shape in shapes))


def _closer(policy: Policy, view: View) -> tuple[int, Floats]:
    """Which kinds of features the policy's network asks for, and the ranges of its telemetry."""
    params = policy.params
    if policy.decide is not adlro.decide:
        return 0, params[:0]
    return int(params[ASKED]), params[len(params) - RANGES * view.est.shape[1] :]


def _answer(view: View, answered: int, out: Records, table: _Table, count: int) -> int | None:
    """Which of the choices an answer is; None = none of them."""
    given = out[:answered]
    if (given["kind"] == WAKE).all():
        return 0
    if answered > 1 or given["kind"][0] != START:
        return None
    for i in range(1, count):
        place, pool = table.choices[i, :2].astype(int)
        if (view.queue["job"][place], pool) == (given["job"][0], given["pool"][0]):
            return i
    return None


def decision_of(view: View, answered: int, out: Records, policy: Policy) -> Decision | None:
    """What a policy chose in a state, and from what; None = nothing could start there.

    Raises:
        PolicyError: its answer is none of the choices that can be weighed.
    """
    table = _empty_table(view)
    count, planned, tau = write_choices(view, *_closer(policy, view), *table)
    if count == 0:
        return None
    chosen = _answer(view, answered, out, table, count)
    if chosen is None:
        raise PolicyError(
            f"policy {policy.name} did at {view.now:.0f} s what cannot be explained: explain "
            f"weighs waiting and one start out of the {MOST_CHOICES - 1} shortest that are possible"
        )
    first = 0 if len(view.running) > 0 or 0 in (chosen, planned) else 1
    network = policy.params if policy.decide is adlro.decide else None
    base = 0.0 if network is None else _score(table.features[planned], network)
    options = tuple(_option(i, view, table, tau, network, base) for i in range(first, count))
    features, whole = table.features[first:count], table.choices[:count]
    at = (chosen - first, planned - first)
    return Decision(0, _kept(view), options, features, whole, *at, network)


def _kept(view: View) -> View:
    return _of_arrays(np.copy, view)


def _option(
    i: int, view: View, table: _Table, tau: float, network: Floats | None, base: float
) -> Option:
    """Base is the score of Min-Min's choice: only what is above it was trained to mean anything."""
    place, pool, seconds, drain_s = table.choices[i]
    job = int(view.queue["job"][int(place)]) if i > 0 else -1
    score = 0.0 if network is None else _score(table.features[i], network) - base
    cost_s = drain_s if network is None else tau * _unsqueezed(score)
    return Option(job, int(pool), float(seconds), float(drain_s), score, float(cost_s))


def _score(x: Floats, network: Floats) -> float:
    return float(predict(x, network, np.empty(MOST_UNITS), np.empty(MOST_UNITS)))


def _unsqueezed(score: float) -> float:
    """The inverse of symlog, in tau; scores that are off any scale count as _MOST_SCORE."""
    return math.copysign(math.expm1(min(abs(score), _MOST_SCORE)), score)


class _Search:
    """Sees every call of decide, and keeps the decision that is meant."""

    def __init__(self, wish: DecisionQuery, policy: Policy) -> None:
        self.wish, self.policy = wish, policy
        self.count, self.last = 0, 0.0  # real decisions so far, and when the last one was
        self.found: Decision | None = None
        self.table: _Table | None = None

    def see(self, view: View, answered: int, out: Records) -> bool:
        """True = the run may end."""
        self.table = self.table or _empty_table(view)
        count, planned, _ = write_choices(view, *_closer(self.policy, view), *self.table)
        if count == 0:
            return False
        self.count, self.last = self.count + 1, view.now
        if self.wish == DecisionQuery():
            chosen = _answer(view, answered, out, self.table, count)
            if chosen is not None and chosen != planned:
                self._keep_if_better(decision_of(view, answered, out, self.policy))
            return False
        if self._is_meant(view, out[:answered]):
            self._keep(decision_of(view, answered, out, self.policy))
        return self.found is not None

    def _is_meant(self, view: View, given: Records) -> bool:
        at, decision, job = self.wish
        if at is not None:
            return view.now >= at
        if decision is not None:
            return self.count == decision
        return bool(((given["kind"] == START) & (given["job"] == job)).any())

    def _keep_if_better(self, other: Decision | None) -> None:
        if other and (self.found is None or _gain(other) > _gain(self.found)):
            self._keep(other)

    def _keep(self, decision: Decision | None) -> None:
        self.found = decision and decision._replace(number=self.count)


def _gain(decision: Decision) -> float:
    """Seconds that the choice saves over Min-Min's, as predicted or by the drain cost."""
    options = decision.options
    return options[decision.planned].cost_s - options[decision.chosen].cost_s


def find(
    setting: Setting, workload: Workload, policy: Policy, seed: int, wish: DecisionQuery
) -> Decision:
    """Play a run until the decision that is meant.

    Raises:
        ConfigError: the run has no such decision.
        PolicyError: the policy failed, or its answer there cannot be explained.
    """
    if wish.job is not None and wish.job >= len(workload.jobs):
        last = len(workload.jobs) - 1
        raise ConfigError(f"--job {wish.job}: there is no such job; this run has 0 to {last}")
    search = _Search(wish, policy)
    watch(setting, workload, policy, seed, search.see)
    if search.found is None:
        raise ConfigError(_what_is_missing(search))
    return search.found


def _what_is_missing(search: _Search) -> str:
    wish, count = search.wish, search.count
    if wish.at is not None:
        return f"--at {wish.at:g}: nothing is decided then; the last time is {search.last:.0f} s"
    if wish.decision is not None:
        return f"--decision {wish.decision}: there is no such decision; this run has {count}"
    if wish.job is not None:
        return f"--job {wish.job}: no decision of this run starts it"
    name = search.policy.name
    return (
        f"{name} never decides otherwise than Min-Min in this run, as far as can be told: name "
        f"one of its {count} decisions with --decision, --at or --job"
    )


def ranked(decision: Decision) -> list[int]:
    """The options from the cheapest to the dearest; the choice before its equals."""
    options, chosen = decision.options, decision.chosen
    return sorted(range(len(options)), key=lambda i: (options[i].cost_s, i != chosen))


def explain(decision: Decision) -> Explanation:
    """Compare a choice with Min-Min's, or if it is that with the next best option."""
    chosen, planned = decision.chosen, decision.planned
    others = [i for i in ranked(decision) if i != chosen]
    plan = _plan_after(decision, chosen)
    if not others:
        return Explanation(decision, None, plan, {}, {})
    rival = planned if planned != chosen else others[0]
    shares = _shares(decision, rival)
    return Explanation(decision, rival, plan, _plan_after(decision, rival), shares)


def _plan_after(decision: Decision, i: int) -> dict[int, Planned]:
    view, table = decision.view, decision.table
    scratch = np.zeros(drain.scratch_size(len(view.gpus), len(view.pools)))
    plan = np.zeros((MOST_PLANNED, len(PLANNED)))
    row = i + len(table) - len(decision.options)
    count = write_plan(row, len(table), table, view, scratch, plan)
    return {
        int(view.queue["job"][int(place)]): Planned(
            int(pool), float(start - view.now), float(end - view.now)
        )
        for place, pool, start, end in plan[:count]
    }


def _shares(decision: Decision, rival: int) -> dict[str, float]:
    """How much each group of features did to the difference of two scores, most first.

    These are Shapley values: the features of the choice are replaced by those of the rival group by
    group, in every order, and what each group changes is averaged; so they add up to the
    difference. They are given as shares of all that was moved: their sizes add up to 1, and one
    below 0 spoke for the rival.
    """
    network = decision.network
    x, y = decision.features[decision.chosen], decision.features[rival]
    if network is None or _score(x, network) == _score(y, network):
        return {}
    groups = {name: [FEATURES.index(f) for f in members] for name, members in GROUPS.items()}
    groups = {name: at for name, at in groups.items() if (x[at] != y[at]).any()}
    scores = np.empty(2 ** len(groups))  # by the set of groups that are the rival's, as bits
    for mask in range(len(scores)):
        mixed = x.copy()
        for bit, at in enumerate(groups.values()):
            if mask >> bit & 1:
                mixed[at] = y[at]
        scores[mask] = _score(mixed, network)
    values = {name: _shapley(bit, scores) for bit, name in enumerate(groups)}
    total = sum(abs(value) for value in values.values())
    largest = sorted(values.items(), key=lambda item: -abs(item[1]))
    return {name: value / total for name, value in largest}


def _shapley(bit: int, scores: Floats) -> float:
    """What one member adds to a set, on average over all orders in which a set can grow."""
    count, value = len(scores).bit_length() - 1, 0.0
    for mask in range(len(scores)):
        if not mask >> bit & 1:
            orders = count * math.comb(count - 1, mask.bit_count())
            value += (scores[mask | 1 << bit] - scores[mask]) / orders
    return value
