"""Carries out a variant's training, temporal differences included."""

from __future__ import annotations

import time
from typing import NamedTuple

import trainings
from ablations.td import Recording, Td, learned
from ablations.variants import Variant
from adlro.train.trainer import TUNING
from trainings import OBJECTIVE, Trained, is_done

from adlro.train import checkpoint as standings
from adlro.train.checkpoint import Checkpoint
from adlro.train.episodes import EpisodeSource
from adlro.train.executor import ThreadExecutor
from adlro.train.folder import TrainingFolder, TrainingPlan
from adlro.train.objective import find
from adlro.train.tuning import Tuner


class Workshop(trainings.Workshop):
    """One that can do all variants."""

    def train(self, variant: Variant) -> Trained:
        """Train; the training whose labels it uses must be done.

        Raises:
            ConfigError: another process is at work there.
        """
        td = variant.td
        if td is None:
            return super().train(variant)
        return self.carry_out(
            variant, lambda plan, folder, crew: _ByTd(plan, td, folder, crew).run()
        )


class _ByTd(NamedTuple):
    """Temporal differences, then the same tuning as of all others."""

    plan: TrainingPlan
    td: Td
    folder: TrainingFolder
    crew: ThreadExecutor

    @property
    def _ground(self) -> EpisodeSource:
        return EpisodeSource(self.plan.wish.scenario, self.plan.recipe.loads)

    @property
    def _mark(self) -> str:
        """What the checkpoint is of."""
        return str(self.td)

    def run(self) -> Checkpoint:
        """Do what is left to do."""
        found = self.folder.checkpoint()
        if found is not None and found[1]["td"] == self._mark:
            standing = standings.unpack(*found)
        else:
            standing = self._kept(self._learn())
        return standing if is_done(standing, self.plan) else self._kept(self._tune(standing))

    def _kept(self, standing: Checkpoint) -> Checkpoint:
        arrays, meta = standings.pack(standing)
        self.folder.write_checkpoint(arrays, meta | {"td": self._mark})
        return standing

    def _learn(self) -> Checkpoint:
        begin, standing = time.process_time(), Checkpoint()
        recording = Recording(self._ground, self.plan.wish.seed, self.td)
        for turn, error, network in learned(recording):
            self.folder.note("td", turn + 1, {"error_tau": error})
            spent = time.process_time() - begin
            standing = Checkpoint((network,), (0.0,), cpu_s=spent)
        return standing

    def _tune(self, standing: Checkpoint) -> Checkpoint:
        begin, (network,), tuning = time.process_time(), standing.networks, self.plan.recipe.tuning
        tuner = Tuner(self._ground, find(OBJECTIVE), tuning, self.crew, network)
        search = tuner.begin(network)
        for _ in range(tuning.generations):
            search = tuner.step(search, self.plan.wish.seed, TUNING).search
        spent = standing.cpu_s + time.process_time() - begin
        return standing._replace(search=search, cpu_s=spent)
