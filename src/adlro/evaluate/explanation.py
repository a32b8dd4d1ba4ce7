"""Explains one decision of a run: its options, their costs and which features decided.

The run is repeated up to that decision. The options (features/start_kernel.py) are listed with
their drain costs and, for a learned policy, the network's predictions. The Min-Min plans after the
choice and after the option it is compared with show which jobs each of them helps. cli/reason.py
turns the explanation into sentences.
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
from adlro.evaluate.out_of_range import DecisionOutOfRange, decision_outside
from adlro.features import start_kernel
from adlro.features.explanation_kernel import CHOICE, PLANNED, write_choices, write_plan
from adlro.features.similarity_kernel import LIKENESS
from adlro.features.start_kernel import FEATURES, MOST_CHOICES
from adlro.features.telemetry_kernel import RANGES, TELEMETRY_FEATURES
from adlro.model.state import START, WAKE, Floats, Records
from adlro.model.view import View
from adlro.nets.q_network import ASKED, MEMBERS, UNITS, predict
from adlro.planning import drain
from adlro.planning.drain import MAX_PLANNED
from adlro.policies import adlro
from adlro.policies.registry import Policy
from adlro.sim.signature import FLOATS, TABLE, VIEW, compile_decide, compiled_steps
from adlro.sim.simulator import is_compiled
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

GROUPS = {  # name shown to users -> features
    "waiting at all": ("wait",),
    "run time": ("seconds", "over_shortest", "area"),
    "speed here and elsewhere": ("slowdown", "is_fastest", "elsewhere"),
    "Min-Min's plan": (
        "planned", "plan_end", "plan_gain", "plan_start", "plan_rank", "plan_here", "plan_now",
    ),
    "drain cost": (
        "drain", "drain_log", "drain_regret", "drain_busy", "drain_wait", "drain_mean",
    ),
    "gang and room": (
        "gpus_log", "gpus_of_pool", "gpus_of_free", "left_free", "spans", "widest", "may_use",
    ),
    "rivals": ("blocked", "blocked_seconds", "rivals", "rival_speed"),
    "pressure": (
        "pool_pressure", "pool_next", "pressure", "next", "free", "asked", "choices", "waiting",
        "pool_queue", "queue",
    ),
    "time waited and priority": ("waited", "priority"),
    "size of the cluster": ("gpus_up", "gpus_free"),
    "estimates": ("overdue", "overdue_by", "progress"),
    "recent arrivals": ("recent_load", "recent_gap", "recent_scale", "recent_spread"),
    "telemetry": TELEMETRY_FEATURES,
    "likeness of jobs": LIKENESS,
}  # fmt: skip
_MOST_SCORE = math.log1p(1e3)  # larger predictions are not meaningful

Observer = Callable[[View, int, Records], bool]


class DecisionQuery(NamedTuple):
    """Which decision to explain; all None = the one that saves most over Min-Min's choice."""

    at: float | None = None  # the first at or after this time, seconds
    decision: int | None = None  # the K-th, from 1
    job: int | None = None  # the one that started this job


class Option(NamedTuple):
    """One option of a decision: a start, or waiting."""

    job: int  # -1 = wait
    pool: int
    seconds: float  # estimated run time with the span penalty; 0 = wait
    drain_s: float  # drain cost
    score: float  # the network's output; 0 without one
    cost_s: float  # predicted cost above Min-Min's choice; without a network the drain cost


class Decision(NamedTuple):
    """A policy's choice among C options with F features each; at least one job could start."""

    number: int  # within the run, from 1
    view: View
    options: tuple[Option, ...]
    features: Floats  # [C, F]
    table: Floats  # [C or C + 1, columns of CHOICE]: contains waiting even if it is no option
    chosen: int  # index of the policy's choice
    planned: int  # index of Min-Min's choice
    network: Floats | None  # params of a learned policy; None for other policies
    out_of_range: DecisionOutOfRange | None = None  # of its features; None for other policies


class Planned(NamedTuple):
    """The pool on which the Min-Min plan runs a job, and start and end in seconds from now."""

    pool: int
    start: float
    end: float


class Explanation(NamedTuple):
    """A decision compared with a rival option: the plan after each, and what separates them."""

    decision: Decision
    rival: int | None  # index of the rival option; None = there was no other option
    plan: dict[int, Planned]  # job -> its place in the Min-Min plan after the policy's choice
    rival_plan: dict[int, Planned]  # the same after the rival option
    shares: dict[str, float]  # feature group -> share of the score difference; see _shares


def compile_all(policy: Policy) -> None:
    """Compile, or load from the compile cache, all compiled functions that an explanation calls."""
    if is_compiled(policy.decide):
        compile_decide(policy.decide)
    compiled_steps()
    dispatcher(write_choices).compile((VIEW, types.int64, FLOATS, FLOATS, TABLE, TABLE))
    dispatcher(write_plan).compile((types.int64, types.int64, TABLE, VIEW, FLOATS, TABLE))


def watch(setting: Setting, workload: Workload, policy: Policy, seed: int, see: Observer) -> None:
    """Run a policy, and call `see` after each call of decide until `see` returns True.

    `see` gets the view, the number of decisions and the buffer with the decisions.

    The arrays passed change as the run continues: `see` must copy what it needs later.

    Raises:
        PolicyError: the policy made an infeasible decision, or a user's policy failed.
    """
    compiled = is_compiled(policy.decide)
    ask = compile_decide(policy.decide) if compiled else policy.decide
    compiled_steps()

    def decide(view: View, params: Floats, memory: Floats, out: Records) -> int:
        plain = _map_arrays(_writable_copy, view)
        mine = (plain, np.asarray(out)) if compiled else (view, out)
        answered: int = ask(mine[0], params, memory, mine[1])
        if see(plain, answered, out):
            raise _StopRun
        return answered

    try:
        run_one(setting, workload, policy._replace(decide=decide), seed)
    except _StopRun:
        return


class _StopRun(BaseException):
    """Stops an observed run early; not an error of the policy."""


def _map_arrays(change: Callable[[Records], Records], view: View) -> View:
    """Return a view with a function applied to each of its arrays."""
    return View._make(change(part) if isinstance(part, np.ndarray) else part for part in view)


def _writable_copy(array: Records) -> Records:
    """Return a writable copy: a read-only array would make numba compile again."""
    return np.array(array)


class _ChoiceTable(NamedTuple):
    """Buffers that compiled code fills with the options of one state and their features."""

    scratch: Floats
    choices: Floats  # [MOST_CHOICES, columns of CHOICE]
    features: Floats  # [MOST_CHOICES, F]


def _empty_choice_table(view: View) -> _ChoiceTable:
    size = start_kernel.scratch_size(len(view.gpus), len(view.pools))
    shapes = (size,), (MOST_CHOICES, len(CHOICE)), (MOST_CHOICES, len(FEATURES))
    return _ChoiceTable(*(np.zeros(shape) for shape in shapes))


def _optional_features(policy: Policy, view: View) -> tuple[int, Floats]:
    """Return the optional feature kinds of the policy's network, and its telemetry ranges.

    0 and an empty array for policies without such a network.
    """
    params = policy.params
    if policy.decide is not adlro.decide:
        return 0, params[:0]
    return int(params[ASKED]), params[len(params) - RANGES * view.est.shape[1] :]


def _chosen_row(
    view: View, answered: int, out: Records, table: _ChoiceTable, count: int
) -> int | None:
    """Return the row of the table that is the policy's choice; None if no row is.

    Only the first `count` rows of the table are filled; row 0 is waiting.
    """
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
    """Return a policy's decision in a state, with its options; None if no job could start.

    Args:
        view: the state.
        answered: the number of decisions that the policy returned.
        out: the buffer that holds these decisions.
        policy: the policy that made them.

    Raises:
        PolicyError: the policy's answer is not among the options that can be explained.
    """
    table = _empty_choice_table(view)
    count, planned, tau = write_choices(view, *_optional_features(policy, view), *table)
    if count == 0:
        return None
    chosen = _chosen_row(view, answered, out, table, count)
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
    strange = decision_outside(policy, features, len(view.running) == 0)
    return Decision(0, _copied(view), options, features, whole, *at, network, strange)


def _copied(view: View) -> View:
    return _map_arrays(np.copy, view)


def _option(
    i: int, view: View, table: _ChoiceTable, tau: float, network: Floats | None, base: float
) -> Option:
    """Return row i of the table as an option; its score is relative to `base`.

    `base` is the network's score of Min-Min's choice: training gives a meaning only to differences
    of scores within a state. `tau` is the unit of predicted costs in seconds.
    """
    place, pool, seconds, drain_s = table.choices[i]
    job = int(view.queue["job"][int(place)]) if i > 0 else -1
    score = 0.0 if network is None else _score(table.features[i], network) - base
    cost_s = drain_s if network is None else tau * _inverse_symlog(score)
    return Option(job, int(pool), float(seconds), float(drain_s), score, float(cost_s))


def _score(x: Floats, network: Floats) -> float:
    """Return the cost that the network predicts: the mean over its members."""
    scratch = np.empty(UNITS)
    predict(x, network, scratch)
    return float(scratch[: int(network[MEMBERS])].mean())


def _inverse_symlog(score: float) -> float:
    """Return the inverse of symlog, in units of tau, of a score clipped to ±_MOST_SCORE."""
    return math.copysign(math.expm1(min(abs(score), _MOST_SCORE)), score)


class _Search:
    """Observer of a run that finds the decision a query asks for."""

    def __init__(self, query: DecisionQuery, policy: Policy) -> None:
        self.query, self.policy = query, policy
        self.count, self.last = 0, 0.0  # real decisions so far; time of the last one
        self.found: Decision | None = None
        self.table: _ChoiceTable | None = None

    def see(self, view: View, answered: int, out: Records) -> bool:
        """Examine one call of decide; True = the run may stop."""
        self.table = self.table or _empty_choice_table(view)
        count, planned, _ = write_choices(view, *_optional_features(self.policy, view), *self.table)
        if count == 0:
            return False
        self.count, self.last = self.count + 1, view.now
        if self.query == DecisionQuery():
            chosen = _chosen_row(view, answered, out, self.table, count)
            if chosen is not None and chosen != planned:
                self._keep_if_better(decision_of(view, answered, out, self.policy))
            return False
        if self._is_meant(view, out[:answered]):
            self._keep(decision_of(view, answered, out, self.policy))
        return self.found is not None

    def _is_meant(self, view: View, given: Records) -> bool:
        at, decision, job = self.query
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
    """Return by how many seconds the policy's choice costs less than Min-Min's choice."""
    options = decision.options
    return options[decision.planned].cost_s - options[decision.chosen].cost_s


def find(
    setting: Setting, workload: Workload, policy: Policy, seed: int, query: DecisionQuery
) -> Decision:
    """Run a policy up to the decision that a query asks for, and return that decision.

    Raises:
        ConfigError: the run has no such decision.
        PolicyError: the policy failed, or its answer cannot be explained.
    """
    if query.job is not None and query.job >= len(workload.jobs):
        last = len(workload.jobs) - 1
        raise ConfigError(f"--job {query.job}: there is no such job; this run has 0 to {last}")
    search = _Search(query, policy)
    watch(setting, workload, policy, seed, search.see)
    if search.found is None:
        raise ConfigError(_not_found_message(search))
    return search.found


def _not_found_message(search: _Search) -> str:
    query, count = search.query, search.count
    if query.at is not None:
        return f"--at {query.at:g}: nothing is decided then; the last time is {search.last:.0f} s"
    if query.decision is not None:
        return f"--decision {query.decision}: there is no such decision; this run has {count}"
    if query.job is not None:
        return f"--job {query.job}: no decision of this run starts it"
    name = search.policy.name
    return (
        f"{name} never decides otherwise than Min-Min in this run, as far as can be told: name "
        f"one of its {count} decisions with --decision, --at or --job"
    )


def ranked(decision: Decision) -> list[int]:
    """Return the options' indices by ascending cost; the chosen one first among equals."""
    options, chosen = decision.options, decision.chosen
    return sorted(range(len(options)), key=lambda i: (options[i].cost_s, i != chosen))


def explain(decision: Decision) -> Explanation:
    """Compare the policy's choice with Min-Min's choice.

    If the two are the same, compare with the cheapest of the other options.
    """
    chosen, planned = decision.chosen, decision.planned
    others = [i for i in ranked(decision) if i != chosen]
    plan = _plan_after(decision, chosen)
    if not others:
        return Explanation(decision, None, plan, {}, {})
    rival = planned if planned != chosen else others[0]
    shares = _shares(decision, rival)
    return Explanation(decision, rival, plan, _plan_after(decision, rival), shares)


def _plan_after(decision: Decision, i: int) -> dict[int, Planned]:
    """Return where and when Min-Min would run each planned job after option i was taken."""
    view, table = decision.view, decision.table
    scratch = np.zeros(drain.scratch_size(len(view.gpus), len(view.pools)))
    plan = np.zeros((MAX_PLANNED, len(PLANNED)))
    row = i + len(table) - len(decision.options)
    count = write_plan(row, len(table), table, view, scratch, plan)
    return {
        int(view.queue["job"][int(place)]): Planned(
            int(pool), float(start - view.now), float(end - view.now)
        )
        for place, pool, start, end in plan[:count]
    }


def _shares(decision: Decision, rival: int) -> dict[str, float]:
    """Return each feature group's share in the score difference between choice and rival.

    Largest first. The shares are Shapley values: the features of the choice are replaced by the
    rival's, group by group, and the change due to each group is averaged over all orders of the
    groups, so that the values sum to the difference. They are normalised so that their absolute
    values sum to 1; a negative share favours the rival.
    """
    network = decision.network
    x, y = decision.features[decision.chosen], decision.features[rival]
    if network is None or _score(x, network) == _score(y, network):
        return {}
    groups = {name: [FEATURES.index(f) for f in members] for name, members in GROUPS.items()}
    groups = {name: at for name, at in groups.items() if (x[at] != y[at]).any()}
    scores = np.empty(2 ** len(groups))  # indexed by the bit set of groups taken from the rival
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
    """Return the Shapley value of one feature group: its mean contribution over all orders.

    `scores` is indexed by bit sets of groups; `bit` is the group's place in them.
    """
    count, value = len(scores).bit_length() - 1, 0.0
    for mask in range(len(scores)):
        if not mask >> bit & 1:
            orders = count * math.comb(count - 1, mask.bit_count())
            value += (scores[mask | 1 << bit] - scores[mask]) / orders
    return value
