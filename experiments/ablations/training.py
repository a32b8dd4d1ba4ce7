"""Carries out a variant's training, temporal differences included."""

from __future__ import annotations

from typing import NamedTuple

import trainings
from ablations.td import Recording, Td, learned
from ablations.variants import Variant
from trainings import Trained, is_done

from adlro.train import checkpoint as checkpoints
from adlro.train.checkpoint import Checkpoint
from adlro.train.episodes import EpisodeSource
from adlro.train.hyperparameters import AdlroHyperparameters
from adlro.train.run import Run
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
        return self.carry_out(variant, lambda run: _ByTd(run, td).train())


class _ByTd(NamedTuple):
    """Temporal differences, then the same tuning as in all other variants."""

    run: Run[AdlroHyperparameters]
    td: Td

    @property
    def _episodes(self) -> EpisodeSource:
        return EpisodeSource(self.run.request.scenario, self.run.hyperparameters.loads)

    @property
    def _mark(self) -> str:
        """Identifies the numbers that a checkpoint was made with."""
        return str(self.td)

    def train(self) -> Checkpoint:
        """Do what is left to do."""
        stored = self.run.stored
        if stored is not None and stored[1]["td"] == self._mark:
            found = checkpoints.unpack(*stored)
        else:
            found = self._saved(self._learn())
        return found if is_done(found, self.run.hyperparameters) else self._saved(self._tune(found))

    def _saved(self, found: Checkpoint) -> Checkpoint:
        arrays, meta = checkpoints.pack(found)
        self.run.save(arrays, meta | {"td": self._mark})
        return found

    def _learn(self) -> Checkpoint:
        found = Checkpoint()
        recording = Recording(self._episodes, self.run.request.seed, self.td)
        for turn, error, network in learned(recording):
            self.run.folder.log("td", turn + 1, {"error_tau": error})
            found = Checkpoint((network,), (0.0,))
        return found

    def _tune(self, found: Checkpoint) -> Checkpoint:
        (network,), settings = found.networks, self.run.hyperparameters.tuning
        tuner = Tuner(self._episodes, settings, network, self.run.executor)
        search = tuner.begin()
        for _ in range(settings.generations):
            search = tuner.step(search, self.run.request.seed).search
        return found._replace(search=search)
