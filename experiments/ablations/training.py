"""Carries out a variant's training in a folder of its own, or goes on with it."""

from __future__ import annotations

import re
import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

from ablations.td import Recording, Td, learned
from ablations.variants import REFERENCE, Variant, key

from adlro.config import Scenario
from adlro.encode.network import Network
from adlro.errors import ConfigError
from adlro.train import standing as standings
from adlro.train import weights
from adlro.train.crew import Crew
from adlro.train.episodes import Ground
from adlro.train.objective import find
from adlro.train.standing import Standing
from adlro.train.store import Folder, Plan, Wish
from adlro.train.trainer import TUNING, Trainer
from adlro.train.tuning import Tuner

_OBJECTIVE = "jct"


class Trained(NamedTuple):
    """What came of a training: the last networks, not the best ever seen."""

    fitted: Network  # that tuning began with
    tuned: Network
    cpu_s: float


def _trained(standing: Standing) -> Trained:
    fitted = standing.networks[standing.scores.index(min(standing.scores))]
    search = standing.search
    tuned = fitted if search is None else weights.from_vector(fitted, search.averaged())
    return Trained(fitted, tuned, standing.cpu_s)


class Workshop(NamedTuple):
    """Where trainings are, one folder each."""

    home: Path
    scenario: Scenario
    is_resumed: bool  # whether what is there already is used
    threads: int

    def _folder(self, name: str) -> Folder:
        return Folder(self.home / (re.sub(r"[^a-z0-9]+", "-", name.lower()) + "-training"))

    def train(self, variant: Variant) -> Trained:
        """Train; the training whose labels it uses must be done.

        Raises:
            ConfigError: another process is at work there.
        """
        folder, crew = self._folder(variant.key), Crew(self.threads)
        wish = Wish(
            scenario=self.scenario, objective=_OBJECTIVE, seed=variant.run, budget_s=None,
            episodes=None, recipe=variant.recipe,
        )  # fmt: skip
        with folder.held():
            plan = self._begin(folder, wish)
            try:
                if variant.td is not None:
                    return _trained(_ByTd(plan, variant.td, folder, crew).run())
                if variant.shares_labels:
                    _copy_labels(self._folder(key(REFERENCE, variant.run)), folder)
                trainer = Trainer(plan, folder, crew, lambda _: None)
                if not _is_done(trainer.standing, plan):
                    trainer.run()
                return _trained(trainer.standing)
            finally:
                crew.dismiss()

    def _begin(self, folder: Folder, wish: Wish) -> Plan:
        """The plan of the folder, if it may be gone on with; else a new one."""
        found = None
        if self.is_resumed:
            try:
                found = folder.plan(wish)
            except ConfigError:
                sys.stderr.write(f"{folder.path}: of another training: run anew\n")
        if found is None:
            folder.clear()
            found = Plan(wish=wish, recipe=wish.recipe)
            folder.write_plan(found)
        return found


def _is_done(standing: Standing, plan: Plan) -> bool:
    generations = plan.recipe.tuning.generations
    return standing.search is not None and standing.search.generation >= generations


def _copy_labels(source: Folder, to: Folder) -> None:
    for file in sorted(source.path.glob("labels-*.npz")):
        if not (to.path / file.name).exists():
            beside = to.path / f".{file.name}.beside"
            shutil.copyfile(file, beside)
            beside.replace(to.path / file.name)


class _ByTd(NamedTuple):
    """Temporal differences, then the same tuning as of all others."""

    plan: Plan
    td: Td
    folder: Folder
    crew: Crew

    @property
    def _ground(self) -> Ground:
        return Ground(self.plan.wish.scenario, self.plan.recipe.loads)

    @property
    def _mark(self) -> str:
        """What the checkpoint is of."""
        return str(self.td)

    def run(self) -> Standing:
        """Do what is left to do."""
        found = self.folder.checkpoint()
        if found is not None and found[1]["td"] == self._mark:
            standing = standings.unpack(*found)
        else:
            standing = self._kept(self._learn())
        return standing if _is_done(standing, self.plan) else self._kept(self._tune(standing))

    def _kept(self, standing: Standing) -> Standing:
        arrays, meta = standings.pack(standing)
        self.folder.write_checkpoint(arrays, meta | {"td": self._mark})
        return standing

    def _learn(self) -> Standing:
        begin, standing = time.process_time(), Standing()
        recording = Recording(self._ground, self.plan.wish.seed, self.td)
        for turn, error, network in learned(recording):
            self.folder.note("td", turn + 1, {"error_tau": error})
            spent = time.process_time() - begin
            standing = Standing((network,), (0.0,), cpu_s=spent)
        return standing

    def _tune(self, standing: Standing) -> Standing:
        begin, (network,), tuning = time.process_time(), standing.networks, self.plan.recipe.tuning
        tuner = Tuner(self._ground, find(_OBJECTIVE), tuning, self.crew, network)
        search = tuner.begin(network)
        for _ in range(tuning.generations):
            search = tuner.step(search, self.plan.wish.seed, TUNING).search
        spent = standing.cpu_s + time.process_time() - begin
        return standing._replace(search=search, cpu_s=spent)
