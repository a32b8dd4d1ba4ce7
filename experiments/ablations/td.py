"""Temporal differences in place of expanded targets: the same network, learned by Q-learning.

Double Q-learning on transitions of whole episodes, with what is said to help: a slow copy for the
targets, a value of the state beside the cost of a choice (duelling), costs above the episode's mean
rate (centring), and the plan as a potential. Q = what the jobs at hand will cost by the plan + the
network, which so learns only what comes on top: new arrivals, and plans that change. That part has
a horizon of 60 tau. Costs are job-seconds, in the tau of their state; the smallest Q is taken.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from ablations.tape_kernel import Tape, recorder, tape
from numpy.typing import NDArray

from adlro.evaluate.compare import run_one
from adlro.features.start_kernel import MOST_CHOICES, PLAIN
from adlro.model.state import Counts, Floats, Mask
from adlro.nets.q_network import Network
from adlro.seeds import TrainingPhase
from adlro.train import weights
from adlro.train.episodes import EpisodeKey, EpisodeSource
from adlro.train.hyperparameters import Shares

PHASE = TrainingPhase.TEMPORAL_DIFFERENCES
_RESIDUAL = (1.0, 0.0)  # the plain drain difference: Q is no log
_FLAT = 1e-6  # a feature that spreads less is left as it is
_FADE = 0.005  # of the slow copy that a step renews
_LAST_RATE = 0.05  # share of the learning rate in the last step


class Td(NamedTuple):
    """The numbers of it."""

    turns: int = 8  # of recording and learning
    episodes: int = 200  # recorded a turn
    steps: int = 400  # of learning a turn
    batch: int = 512  # decisions
    rate: float = 2e-4  # learning rate at first
    huber: float = 2.0  # tau: errors beyond count linearly
    horizon: float = 60.0  # tau
    stray: float = 0.1  # share of the decisions that are random
    family_share: float = 0.5
    hidden: tuple[int, int] = (64, 32)


class Transitions(NamedTuple):
    """S decisions, N choices of them in all, at most C of one; see `transitions`."""

    features: NDArray[np.float32]  # [N, F]
    rows: Counts  # [S, C] of features; the last one repeats where there are fewer
    known: Mask  # [S, C]
    planned: Counts  # [S] which choice is Min-Min's
    taken: Counts  # [S] which was taken
    plans: NDArray[np.float32]  # [N] cost of all jobs at hand by the plan after a choice, tau
    cost: NDArray[np.float32]  # [S] until the next decision, above the mean rate, tau
    scale: NDArray[np.float32]  # [S] tau of the next decision in that of this one; 0 = none follows
    fade: NDArray[np.float32]  # [S] what is left of later costs at the next decision
    next: Counts  # [S] the next decision


def job_seconds(times: Floats, arrival: Floats, finish: Floats) -> Floats:
    """Sum over jobs of the seconds spent in the system by each of the times [S]."""
    until = np.minimum(finish[None], times[:, None])
    found: Floats = np.maximum(until - arrival[None], 0.0).sum(axis=1)
    return found


def transitions(
    one: Tape, arrival: Floats, finish: Floats, horizon: float = Td().horizon
) -> Transitions:
    """A tape with what came of each decision; arrival and finish [J] are those of the jobs."""
    times, tau = one.steps[:, 0], one.steps[:, 1]
    count, planned, taken = one.steps[:, 2:].astype(np.int64).T
    ends = np.append(times, finish.max())
    passed = np.diff(ends)
    spent = np.diff(job_seconds(ends, arrival, finish))
    first = np.cumsum(count) - count
    left = one.plans[first[0] + taken[0]]  # which the costs of the episode pay for in any case
    usual = (spent.sum() - left) / passed.sum()
    place = np.arange(MOST_CHOICES)[None]
    numbers = np.arange(len(times))
    return Transitions(
        one.features.astype(np.float32),
        first[:, None] + np.minimum(place, count[:, None] - 1),
        place < count[:, None],
        planned,
        taken,
        (one.plans / np.repeat(tau, count)).astype(np.float32),
        ((spent - usual * passed) / tau).astype(np.float32),
        np.append(tau[1:] / tau[:-1], 0.0).astype(np.float32),
        np.exp(-passed / (horizon * tau)).astype(np.float32),
        np.minimum(numbers + 1, len(times) - 1),
    )


def joined(parts: Sequence[Transitions]) -> Transitions:
    """Several episodes as one."""
    rows = np.cumsum([0, *(len(part.features) for part in parts[:-1])])
    steps = np.cumsum([0, *(len(part.cost) for part in parts[:-1])])
    moved = [
        part._replace(rows=part.rows + row, next=part.next + step)
        for part, row, step in zip(parts, rows, steps, strict=True)
    ]
    return Transitions(*(np.concatenate(arrays) for arrays in zip(*moved, strict=True)))


class Recording(NamedTuple):
    """Where the transitions come from."""

    source: EpisodeSource
    run: int  # seed of the training
    td: Td

    def record(self, episode: int, plays: Network) -> Transitions:
        """Play an episode: even ones with the network's choices, odd ones with Min-Min's."""
        key = EpisodeKey(self.run, PHASE, episode)
        rng = key.rng
        drawn = self.source.draw(key, Shares(self.td.family_share), rng)
        policy = recorder(
            plays, drawn.setting, as_min_min=episode % 2 == 1, stray=self.td.stray, rng=rng
        )
        result = run_one(drawn.setting, drawn.workload, policy, drawn.seed)
        jobs, outcome = drawn.workload.jobs, result.outcome
        return transitions(tape(policy), jobs["arrival"], outcome["finish"], self.td.horizon)


def _layers(inputs: int, hidden: tuple[int, int], *, bias: bool) -> torch.nn.Sequential:
    one, two = hidden
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, one), torch.nn.ReLU(), torch.nn.Linear(one, two), torch.nn.ReLU(),
        torch.nn.Linear(two, 1, bias=bias),
    )  # fmt: skip


class _Batch(NamedTuple):
    """B decisions, K choices of them in all."""

    x: torch.Tensor  # [K, F] of the choices
    plans: torch.Tensor  # [K] tau
    known: torch.Tensor  # [B, C] where they belong
    planned: torch.Tensor  # [B]
    planned_x: torch.Tensor  # [B, F] of Min-Min's choices


class Q(torch.nn.Module):
    """What follows from Min-Min's choice beyond the plan, and what each choice costs above it."""

    def __init__(self, hidden: tuple[int, int]) -> None:
        super().__init__()
        self.cost = _layers(len(PLAIN), hidden, bias=False)
        self.value = _layers(len(PLAIN), hidden, bias=True)
        with torch.no_grad():
            self.cost[-1].weight *= 0.1  # at first the drain difference decides

    def forward(self, batch: _Batch) -> torch.Tensor:
        """[B, C] what comes on top of the plan; where there is no choice, infinite."""
        cost = torch.full(batch.known.shape, math.inf)
        cost[batch.known] = self.cost(batch.x).squeeze(-1)
        above = cost - cost.gather(1, batch.planned[:, None])
        found: torch.Tensor = self.value(batch.planned_x) + above
        return found


class Learner:
    """Learns from all transitions so far; one thread, the same bytes by seed."""

    def __init__(self, td: Td, seed: int) -> None:
        torch.set_num_threads(1)
        self._td, self._rng, self._done = td, np.random.default_rng((seed, PHASE)), 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._q = Q(td.hidden)
        self._slow = copy.deepcopy(self._q)
        self._adam = torch.optim.Adam(self._q.parameters(), lr=td.rate)
        self._middle = np.zeros(len(PLAIN), np.float32)
        self._spread = np.ones(len(PLAIN), np.float32)

    def measure(self, data: Transitions) -> None:
        """Scale features by how these are spread; once, before the first step."""
        spread = data.features.std(axis=0)
        self._middle = data.features.mean(axis=0)
        self._spread = np.where(spread > _FLAT, spread, 1.0).astype(np.float32)

    def _batch(self, data: Transitions, states: Counts) -> _Batch:
        known, planned, rows = data.known[states], data.planned[states], data.rows[states]
        features, plans = data.features[rows[known]], data.plans[rows[known]]
        named = data.features[rows[np.arange(len(states)), planned]]
        x, planned_x = ((part - self._middle) / self._spread for part in (features, named))
        arrays = x, plans, known, planned, planned_x
        return _Batch(*map(torch.from_numpy, arrays))

    def _target(self, data: Transitions, states: Counts) -> torch.Tensor:
        """Cost, and the next state's Q, of the choice that we would take there by the slow copy."""
        after = self._batch(data, data.next[states])
        cost, scale, fade = (
            torch.from_numpy(part[states]) for part in (data.cost, data.scale, data.fade)
        )
        with torch.no_grad():
            plans = torch.full(after.known.shape, math.inf)
            plans[after.known] = after.plans
            best = (plans + self._q(after)).argmin(1, keepdim=True)
            plan, rest = (part.gather(1, best).squeeze(1) for part in (plans, self._slow(after)))
        return cost + scale * (plan + fade * rest)

    def step(self, data: Transitions) -> float:
        """One batch; returns the mean absolute error, in tau."""
        td = self._td
        states = self._rng.integers(0, len(data.cost), td.batch)
        share = self._done / (td.turns * td.steps)
        for group in self._adam.param_groups:
            group["lr"] = td.rate * (1 - (1 - _LAST_RATE) * min(share, 1.0))
        target, now = self._target(data, states), self._batch(data, states)
        taken = data.taken[states]
        plan = torch.from_numpy(data.plans[data.rows[states, taken]])
        found = plan + self._q(now).gather(1, torch.from_numpy(taken)[:, None]).squeeze(1)
        loss = torch.nn.functional.huber_loss(found, target, delta=td.huber)
        self._adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._q.parameters(), 10.0)
        self._adam.step()
        self._done += 1
        with torch.no_grad():
            for slow, fast in zip(self._slow.parameters(), self._q.parameters(), strict=True):
                slow.lerp_(fast, _FADE)
        return float((found.detach() - target).abs().mean())

    def network(self) -> Network:
        """What the slow copy says of a choice, without the value of the state."""
        first, first_bias, second, second_bias, last = (
            weight.detach().numpy().astype(np.float64) for weight in self._slow.cost.parameters()
        )
        scaled = first / self._spread
        return Network(
            PLAIN, np.array(_RESIDUAL), np.ascontiguousarray(scaled.T),
            first_bias - scaled @ self._middle.astype(np.float64),
            np.ascontiguousarray(second.T), second_bias, last.ravel(),
        )  # fmt: skip


def learned(recording: Recording) -> Iterable[tuple[int, float, Network]]:
    """Turn by turn: its number, the mean absolute error of its steps in tau, the network."""
    td = recording.td
    learner, plays = Learner(td, recording.run), weights.like_drain_argmin(td.hidden)
    parts = list[Transitions]()
    episodes = itertools.count()
    for turn in range(td.turns):
        parts += [recording.record(next(episodes), plays) for _ in range(td.episodes)]
        data = joined(parts)
        if turn == 0:
            learner.measure(data)
        errors = [learner.step(data) for _ in range(td.steps)]
        plays = learner.network()
        yield turn, float(np.mean(errors)), plays
