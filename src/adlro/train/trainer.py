"""A training from its plan to a policy: label, fit, once more, tune; it can be put down anywhere.

All that is random follows from the run's seed and from the number of the episode, epoch or
generation, so a training that was interrupted ends with the same weights as one that was not.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

from adlro.errors import ConfigError
from adlro.evaluate.stats import Estimate, percent_difference
from adlro.model.record import Record
from adlro.nets.q_network import Network
from adlro.telemetry.normalise import Norm
from adlro.train import checkpoint as standings
from adlro.train import objective as objectives
from adlro.train import readings, weights
from adlro.train.checkpoint import Kept, Standing
from adlro.train.episodes import DRAIN_ARGMIN, Ground, named
from adlro.train.evolve import Search
from adlro.train.executor import Crew
from adlro.train.expansion import Labels
from adlro.train.fit import Fitting, targets
from adlro.train.labelling import Labelling
from adlro.train.selection import Court, Look
from adlro.train.store import Folder, Plan
from adlro.train.tuning import Tuner

TUNING = 16  # phase, see seeds.training; rounds have those below
SHARES = (0.45, 0.10, 0.45)  # of the time, that labels, fit and tuning take about
_SAVE_EVERY_S = 20.0
_MOST_KEPT = 5
_MOST_EPISODES = 10**6  # of a round: it has no more seeds
_MOST_EMPTY = 100  # episodes without a choice after which there is nothing to learn


class Status(NamedTuple):
    """How far it is."""

    phase: str
    done: float  # share of all work
    best: Kept | None
    cpu_s: float


class Row(Record):
    """The policy at one load, on the selection seeds; percent, below 0 = better."""

    load: float
    jct_vs_min_min: Estimate
    jct_vs_drain_argmin: Estimate
    p99_vs_min_min: Estimate


class Outcome(NamedTuple):
    """What came of it."""

    kept: Kept
    table: tuple[Row, ...]  # empty = it was stopped before
    standing: Standing


class Trainer:
    """Carries out a plan in a folder."""

    def __init__(
        self, plan: Plan, folder: Folder, crew: Crew, tell: Callable[[Status], object]
    ) -> None:
        wish, recipe = plan.wish, plan.recipe
        self._wish, self._recipe = wish, recipe
        self._folder, self._crew, self._tell = folder, crew, tell
        self._objective = objectives.find(wish.objective)
        self._ground = Ground(wish.scenario, recipe.loads)
        self._court = Court(wish.scenario, self._objective, recipe.selection, crew)
        self._labels: list[list[Labels]] = []
        found = folder.checkpoint()
        self.standing = Standing()
        if found is not None:
            self.standing = standings.unpack(*found)
        folder.open_journal(0 if found is None else int(found[1]["journal_bytes"]))
        self._saved_at, self._cpu_at = time.monotonic(), time.process_time()

    def run(self) -> Outcome:
        """Do all that is left to do.

        Raises:
            Stopped: the crew was told so; the folder holds all but the last seconds.
        """
        try:
            if self.standing.episodes == 0:
                self._look_at_heuristics()
            for number in range(len(self._recipe.rounds)):
                if number >= len(self.standing.networks):
                    self._label_up_to(number)
                    self._fit(number)
            self._labels.clear()
            self._tune()
            return self._finish()
        finally:
            self._save()

    def _cpu_s(self) -> float:
        now = time.process_time()
        spent, self._cpu_at = now - self._cpu_at, now
        self.standing = self.standing._replace(cpu_s=self.standing.cpu_s + spent)
        return self.standing.cpu_s

    def _save(self) -> None:
        self._cpu_s()
        self._folder.write_checkpoint(*standings.pack(self.standing))
        self._saved_at = time.monotonic()

    def _is_due(self) -> bool:
        return time.monotonic() - self._saved_at > _SAVE_EVERY_S

    def _say(self, phase: str, done: float) -> None:
        best = self.standing.kept[-1] if self.standing.kept else None
        self._tell(Status(phase, done, best, self._cpu_s()))

    @functools.cached_property
    def _norm(self) -> Norm | None:
        """What the meters of this ground show; always the same, so it is not kept."""
        if not self._wish.scenario.telemetry:
            return None
        return readings.learned(self._ground, self._wish.seed)

    def _look_at_heuristics(self) -> None:
        """What is kept if nothing better comes: Min-Min's choices, or those of the drain cost."""
        self._say("first look", 0.0)
        count = self._recipe.selection.seeds
        network = weights.like_min_min(self._recipe.hidden)
        kept = Kept(network, self._court.look(network, count), "min-min")
        self.standing = self.standing._replace(kept=(kept,))
        self._consider(weights.like_drain_argmin(self._recipe.hidden), "drain-argmin", 0)

    def _consider(self, network: Network, source: str, step: int) -> Look:
        """Look at a network and keep it if it is safe and the best so far."""
        count = self._recipe.selection.seeds
        look = self._court.look(network, count)
        kept, best = self.standing.kept, self.standing.kept[-1].look.gain.mean
        is_better = look.is_safe and look.gain.mean < best
        if is_better:
            kept = (*kept, Kept(network, look, source))
            kept = (kept[0], *kept[1:][-_MOST_KEPT:])
        played = self.standing.episodes + count * len(self._court.loads)
        self.standing = self.standing._replace(kept=kept, episodes=played)
        low, high = look.gain.ci95 or (look.gain.mean, look.gain.mean)
        self._folder.note(
            "selection",
            step,
            {
                "gain_pct": look.gain.mean, "gain_low": low, "gain_high": high,
                "p99_ratio": look.p99_ratio, "is_kept": float(is_better),
                "best_gain_pct": kept[-1].look.gain.mean,
            },
        )  # fmt: skip
        return look

    def _label_up_to(self, number: int) -> None:
        """Have the labels of all rounds up to this one at hand."""
        for k in range(len(self._labels), number + 1):
            self._labels.append(self._label(k))

    def _label(self, number: int) -> list[Labels]:
        wanted = self._recipe.rounds[number]
        done, parts = self._folder.labels(number)
        states, fresh = sum(len(part.groups) for part in parts), list[Labels]()
        network = self.standing.networks[number - 1] if number else self.standing.kept[-1].network
        work = Labelling(self._ground, wanted, self._wish.seed, number, network, self._norm)
        results = self._crew.do(work.label, itertools.count(done))
        last = min(wanted.episodes or _MOST_EPISODES, _MOST_EPISODES // wanted.futures)
        try:
            while states < wanted.states and done + len(fresh) < last:
                so_far = max(states / wanted.states, (done + len(fresh)) / last)
                self._say(f"labels, round {number + 1}", self._share(number, so_far, 0.0))
                fresh.append(next(results))
                states += len(fresh[-1].groups)
                self._refuse_empty(states, done + len(fresh), last)
                if self._is_due():
                    self._flush(number, done, fresh, states)
                    done, parts, fresh = done + len(fresh), [*parts, *fresh], []
        finally:
            results.close()
            if fresh:
                self._flush(number, done, fresh, states)
        return [*parts, *fresh]

    def _refuse_empty(self, states: int, episodes: int, last: int) -> None:
        if states == 0 and episodes >= min(_MOST_EMPTY, last):
            raise ConfigError(
                f"{self._wish.scenario.name}: in {episodes} episodes no state with a choice was "
                "labelled; raise --episodes or --budget, the load or the number of jobs"
            )

    def _flush(self, number: int, first: int, fresh: list[Labels], states: int) -> None:
        self._folder.write_labels(number, first, fresh)
        self._folder.note(f"labels{number + 1}", first + len(fresh), {"states": float(states)})
        self._save()

    def _share(self, number: int, labels: float, epochs: float) -> float:
        """Of all work, with these shares of a round's labels and epochs done."""
        rounds = len(self._recipe.rounds)
        return (SHARES[0] * (number + labels) + SHARES[1] * (number + epochs)) / rounds

    def _fit(self, number: int) -> None:
        fit = self._recipe.fit
        parts = list(itertools.chain.from_iterable(self._labels))
        data = targets(parts, self._objective.weights(self._wish.scenario))
        fitting = Fitting(data, self._recipe.hidden, fit, self._wish.seed * TUNING + number)
        if self.standing.fitting is not None:
            fitting.take_up(self.standing.fitting)
        while not fitting.is_done:
            share = self._share(number, 1.0, fitting.epoch / fit.epochs)
            self._say(f"fit, round {number + 1}", share)
            quality = fitting.run_epoch(self._crew.check)
            self._folder.note(f"fit{number + 1}", fitting.epoch, quality._asdict())
            self.standing = self.standing._replace(fitting=fitting.arrays())
            if self._is_due():
                self._save()
        network = fitting.network()
        norm = self._norm if network.reads_telemetry else None
        self._add(network._replace(norm=norm), number)

    def _add(self, network: Network, number: int) -> None:
        """Look at what a round has led to."""
        look = self._consider(network, f"round {number + 1}", number + 1)
        labelled, _ = self._folder.labels(number)
        now = self.standing
        self.standing = now._replace(
            networks=(*now.networks, network),
            scores=(*now.scores, look.score(self._recipe.tuning.tail_weight)),
            fitting=None,
            states=sum(len(part.groups) for parts in self._labels for part in parts),
            episodes=now.episodes + labelled,
        )
        self._save()

    def _tune(self) -> None:
        """Until all generations are done, or nothing better was seen for long."""
        tuning, now = self._recipe.tuning, self.standing
        start = now.networks[now.scores.index(min(now.scores))]
        tuner = Tuner(self._ground, self._objective, tuning, self._crew, start)
        search = now.search or tuner.begin(start)
        while search.generation < tuning.generations:
            if self.standing.stale >= self._recipe.selection.patience:
                return
            share = search.generation / tuning.generations
            self._say(
                f"tuning, generation {search.generation + 1} of {tuning.generations}",
                SHARES[0] + SHARES[1] + SHARES[2] * share,
            )
            generation = tuner.step(search, self._wish.seed, TUNING)
            search = generation.search
            self._look_at_search(start, search)
            figures = {"ratio": generation.ratio, "p99_ratio": generation.p99_ratio}
            self._folder.note("tuning", search.generation, figures)
            played = self.standing.episodes + tuning.episodes * (2 * tuning.pairs + 1)
            self.standing = self.standing._replace(search=search, episodes=played)
            if self._is_due():
                self._save()

    def _look_at_search(self, start: Network, search: Search) -> None:
        """Now and then, and at the end; no note may be written before it, as it may be stopped."""
        tuning, g = self._recipe.tuning, search.generation
        if g % tuning.look_every and g != tuning.generations:
            return
        network, before = weights.from_vector(start, search.averaged()), self.standing.kept[-1]
        self._consider(network, f"generation {g}", len(self._recipe.rounds) + g)
        stale = 0 if self.standing.kept[-1] is not before else self.standing.stale + 1
        self.standing = self.standing._replace(stale=stale)

    def _finish(self) -> Outcome:
        """Of the best ones, the first that is safe on all the final seeds too."""
        self._say("last look", 1.0)
        count = self._recipe.selection.final_seeds
        for kept in reversed(self.standing.kept):
            runs = self._court.play_network(kept.network, count)
            chosen = kept._replace(look=self._court.compare(runs, count))
            if chosen.look.is_safe:
                break
        rival = self._court.min_min(count)
        drain = self._court.play(lambda setting: named(DRAIN_ARGMIN, setting), count)
        table = tuple(
            Row(
                load=load,
                jct_vs_min_min=percent_difference(runs.jct_s[k], rival.jct_s[k]),
                jct_vs_drain_argmin=percent_difference(runs.jct_s[k], drain.jct_s[k]),
                p99_vs_min_min=percent_difference(runs.p99_jct_s[k], rival.p99_jct_s[k]),
            )
            for k, load in enumerate(self._court.loads)
        )
        self._cpu_s()
        return Outcome(chosen, table, self.standing)
