"""Trainings that are compared with each other, each in a folder of its own, and what they give."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from common import Result, parser, run
from comparison_cache import ComparisonCache, fingerprint
from versus import by_name, percent

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.evaluate.compare import compare
from adlro.evaluate.comparison import Comparison
from adlro.evaluate.stats import percent_difference
from adlro.files import write_bytes
from adlro.model.state import Floats
from adlro.nets.q_network import Network
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.train import weights
from adlro.train.adlro import AdlroPlan, AdlroRequest, AdlroTraining
from adlro.train.checkpoint import Checkpoint
from adlro.train.executor import ThreadExecutor
from adlro.train.folder import TrainingFolder
from adlro.train.hyperparameters import (
    SELF,
    AdlroHyperparameters,
    FitSettings,
    LabelRound,
    SelectionSettings,
    TuningSettings,
)
from adlro.train.run import Run
from adlro.workloads.setting import Setting, prepare

REFERENCE = "reference"

BUDGET = AdlroHyperparameters(  # a tenth of the shipped one in states, far less in tuning
    rounds=(
        LabelRound(base="min-min", behaviours=("min-min", "drain-argmin"), states=30_000),
        LabelRound(base="min-min", behaviours=(SELF, SELF, "min-min"), states=15_000),
    ),
    tuning=TuningSettings(
        generations=30, pairs=12, episodes=8, settling=5, averaging=0.9, evaluate_every=30
    ),
    selection=SelectionSettings(seeds=30, final_seeds=10),
)  # fmt: skip
TINY = AdlroHyperparameters(
    hidden=(4, 3),
    rounds=(
        LabelRound(base="min-min", behaviours=("min-min", "drain-argmin"), states=30, horizon=8),
        LabelRound(base="min-min", behaviours=(SELF, SELF, "min-min"), states=20, horizon=8),
    ),
    fit=FitSettings(epochs=2, batch=16),
    tuning=TuningSettings(generations=1, pairs=2, episodes=1, settling=5, averaging=0.9),
    selection=SelectionSettings(loads=(), seeds=1, final_seeds=1),
)


def key(name: str, run: int) -> str:
    """What a training is called."""
    return f"{name}, run {run}"


class Variant(Protocol):
    """One training; its run is the seed of all that is random in it."""

    @property
    def name(self) -> str:
        """Shared by all its runs."""

    @property
    def run(self) -> int:
        """From 1."""

    @property
    def key(self) -> str:
        """Its name among all trainings."""

    @property
    def recipe(self) -> AdlroHyperparameters:
        """What is done."""

    @property
    def shares_labels(self) -> bool:
        """Whether it takes those of the reference's training of the same run."""


V = TypeVar("V", bound=Variant)


class Trained(NamedTuple):
    """What came of a training: the last networks, not the best ever seen."""

    fitted: Network  # that tuning began with
    tuned: Network
    cpu_s: float


def _trained(found: Checkpoint, cpu_s: float) -> Trained:
    fitted = found.networks[found.scores.index(min(found.scores))]
    search = found.search
    tuned = fitted if search is None else weights.from_vector(fitted, search.averaged())
    return Trained(fitted, tuned, cpu_s)


def is_done(found: Checkpoint, used: AdlroHyperparameters) -> bool:
    """Whether all rounds are fitted and nothing is left to tune."""
    tuned = 0 if found.search is None else found.search.generation
    is_fitted = len(found.networks) == len(used.rounds)
    return tuned >= used.tuning.generations and (is_fitted or found.search is not None)


class Workshop(NamedTuple):
    """Where trainings are, one folder each."""

    home: Path
    scenario: Scenario
    is_resumed: bool  # whether what is there already is used
    threads: int

    def _folder(self, name: str) -> TrainingFolder:
        return TrainingFolder(self.home / (re.sub(r"[^a-z0-9]+", "-", name.lower()) + "-training"))

    def train(self, variant: Variant) -> Trained:
        """Label, fit and tune; the training whose labels it uses must be done.

        Raises:
            ConfigError: another process is at work there.
        """

        def work(run: Run[AdlroHyperparameters]) -> Checkpoint:
            if variant.shares_labels:
                _copy_labels(self._folder(key(REFERENCE, variant.run)), run.folder)
            training = AdlroTraining(run)
            if not is_done(training.checkpoint, run.hyperparameters):
                training.train()
            return training.checkpoint

        return self.carry_out(variant, work)

    def carry_out(
        self, variant: Variant, work: Callable[[Run[AdlroHyperparameters]], Checkpoint]
    ) -> Trained:
        """Train in any way.

        Raises:
            ConfigError: another process is at work there.
        """
        folder, executor = self._folder(variant.key), ThreadExecutor(self.threads)
        request = AdlroRequest(
            algorithm="adlro", scenario=self.scenario, seed=variant.run,
            hyperparameters=variant.recipe,
        )  # fmt: skip
        with folder.locked():
            run = Run(self._begin(folder, request), folder, executor)
            try:
                found = _trained(work(run), run.cpu_s)
            finally:
                executor.shutdown()
        sys.stderr.write(f"{variant.key}: trained, {found.cpu_s:,.0f} CPU-s\n")
        return found

    def _begin(self, folder: TrainingFolder, request: AdlroRequest) -> AdlroPlan:
        """The plan of the folder, if it can be resumed; else a new one."""
        ours, found = AdlroPlan(request=request, hyperparameters=request.hyperparameters), None
        if self.is_resumed:
            try:
                found = folder.plan(ours)
            except ConfigError:
                sys.stderr.write(f"{folder.path}: of another training: run anew\n")
        if found is None:
            folder.clear()
            found = ours
            folder.write_plan(found)
        return found


def _copy_labels(source: TrainingFolder, to: TrainingFolder) -> None:
    for file in sorted(source.path.glob("labels-*.npz")):
        if not (to.path / file.name).exists():
            write_bytes(to.path / file.name, file.read_bytes())


class Case(Protocol):
    """A scenario, and how many seeds are played."""

    @property
    def name(self) -> str:
        """In the tables."""

    @property
    def scenario(self) -> Scenario:
        """As it is played."""

    @property
    def seeds(self) -> range:
        """The same for every policy."""


class Row(NamedTuple):
    """A line of a table: policies that are trained alike, of which the mean counts."""

    shown: str
    policies: tuple[str, ...]


def rows_of(trainings: Sequence[Variant]) -> list[Row]:
    """One for each name, with all its runs."""
    names = dict.fromkeys(one.name for one in trainings)
    return [Row(name, tuple(one.key for one in trainings if one.name == name)) for name in names]


class Found(NamedTuple):
    """What came out of a case."""

    case: Case
    result: Comparison

    def _jct(self, row: Row) -> Floats:
        """Of each seed, mean over the runs of a training."""
        rows = by_name(self.result)
        return np.mean([rows[name].per_seed["mean_jct_s"] for name in row.policies], axis=0)

    def versus(self, row: Row, rival: Row) -> str:
        """By how much the mean JCT of one is above that of another; "-" beside itself."""
        if row.policies == rival.policies:
            return "-"
        found = percent_difference(self._jct(row), self._jct(rival))
        return percent(found.mean, found.ci95)

    def each_versus(self, row: Row, rival: str | Row) -> str:
        """The same for each run alone, without intervals; a rival row's runs one by one."""
        rivals = (rival,) * len(row.policies) if isinstance(rival, str) else rival.policies
        pairs = zip(row.policies, rivals, strict=False)
        jcts = ((self._jct(Row("", (name,))), self._jct(Row("", (one,)))) for name, one in pairs)
        return ", ".join(f"{percent_difference(*each).mean:+.1f}" for each in jcts)


def played(
    case: Case, policies: Callable[[Setting], list[Policy]], shelf: ComparisonCache, threads: int
) -> Found:
    """All policies on the seeds of a case, or what is kept of that."""
    setting = prepare(case.scenario)
    ready = policies(setting)
    mark = fingerprint(case.scenario, ready, case.seeds)

    def play() -> Comparison:
        sys.stderr.write(f"{case.name}: {len(ready)} policies, {len(case.seeds)} seeds\n")
        simulator.warm_up(ready)
        return compare(setting, ready, case.seeds, threads=threads)

    return Found(case, shelf.get(case.name, mark, play))


def figures_of(found: Sequence[Found]) -> dict[str, dict[str, float]]:
    """What is checked: the mean JCT of every policy in every case."""
    return {
        each.case.name: {f"{row.name}: mean JCT s": row.jct for row in each.result.policies}
        for each in found
    }


def with_cpu_s(result: Result, trained: Mapping[V, Trained]) -> Result:
    """Add the CPU seconds of every training to the details of a result."""
    spent = {one.key: networks.cpu_s for one, networks in trained.items()}
    return result._replace(details={"cpu_s": spent, "comparisons": result.details})


def command_line(
    about: str,
    folder: Path,
    make: Callable[[argparse.Namespace], Result],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run an experiment that compares trainings, with the further option --threads.

    Args:
        about: one sentence for --help.
        folder: the folder of the experiment.
        make: computes the result from the parsed options.
        arguments: of the command line; None = sys.argv.

    Returns:
        The exit status of `common.run`.
    """
    own = parser(about, folder)
    own.add_argument("--threads", type=int, default=2, help="results do not depend on it")
    options = own.parse_args(arguments)

    def checked() -> Result:
        if options.quick and (options.check or options.expect):
            raise ConfigError(
                "--check and --expect are about the whole experiment; leave out --quick"
            )
        return make(options)

    return run(options, folder, checked)
