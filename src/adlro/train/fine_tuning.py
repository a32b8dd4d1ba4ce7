"""The algorithm `fine-tuning`: evolution strategies from a trained policy, on one's own history.

The network is tuned on the first part of the history and selected on the next one. On the last part
it is compared once with the network that it started from, and takes its place only if it is better
there (see held_out.py). No jobs of the last part are read before.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError, PolicyError
from adlro.nets.paper_network import PaperNetwork
from adlro.policies.loading import learned
from adlro.policies.loading.card import Card, Figure
from adlro.policies.registry import LEARNED
from adlro.sim.simulator import warm_up as warm_up_policies
from adlro.train import budget, family, held_out, history_parts
from adlro.train.checkpoint import Candidate
from adlro.train.episodes import MIN_MIN, EpisodeSource, policy
from adlro.train.held_out import HeldOut, Pair
from adlro.train.hyperparameters import FineTuningHyperparameters, reduced
from adlro.train.plan import TrainingPlan, TrainingRequest
from adlro.train.run import Algorithm, Run, Status, TrainedPolicy
from adlro.train.tuning import TunedTraining, Tuner
from adlro.train.window_evaluation import WindowEvaluator
from adlro.workloads.setting import prepare

FineTuningRequest = TrainingRequest[FineTuningHyperparameters]
FineTuningPlan = TrainingPlan[FineTuningHyperparameters]

NAME, SHIPPED = "fine-tuning", "shipped"
_MOST_ABOUT = 600  # characters of what the card of the start says


class Start:
    """The policy that a fine-tuning starts from: its network, its card and where they are."""

    def __init__(self, name: str) -> None:
        """Read it: "shipped", or the path of a policy's file.

        Raises:
            PolicyError: a file is missing or invalid, or of another kind of policy.
        """
        self.name = name
        self.file = learned.shipped_file() if name == SHIPPED else Path(name)
        found = learned.load(self.file)
        if isinstance(found.network, PaperNetwork) or found.card.policy != LEARNED:
            raise PolicyError(
                f"{self.file}: is a policy of {found.card.policy}, and only those of {LEARNED} can "
                "be tuned on a history; name another"
            )
        assert isinstance(found.card, Card)
        self.network, self.card = found.network, found.card

    @property
    def words(self) -> str:
        """A phrase that names the policy and its weights."""
        what = "the shipped policy" if self.name == SHIPPED else f"the policy {self.card.name}"
        return f"{what} (sha256 of weights {self.card.sha256_weights[:12]})"


def hyperparameters(scenario: Scenario, name: str) -> dict[str, object]:
    """Return the hyperparameters that a start and a history determine, after all checks of both.

    Raises:
        ConfigError: the scenario plays no history, or one that cannot be played or is too short.
        PolicyError: the policy cannot be used.
        TraceError: the history cannot be read.
    """
    if scenario.history is None:
        raise ConfigError(
            f"--from {name}: fine-tuning is for scenarios that play a history, and "
            f"{scenario.name} does not; leave it out"
        )
    start = Start(name)
    history_parts.cut_of(scenario)
    data = Path(scenario.history.file).read_bytes()
    return {
        "start": name,
        "start_sha256": start.card.sha256_weights,
        "history_sha256": hashlib.sha256(data).hexdigest(),
    }


def _source(part: Scenario, used: FineTuningHyperparameters, related: Scenario) -> EpisodeSource:
    low, high = used.loads
    return EpisodeSource(part, (low * part.load, high * part.load), related=related)


class FineTuning(TunedTraining[FineTuningHyperparameters]):
    """One fine-tuning: tunes the start, selects the best network and compares both in the end."""

    def __init__(self, run: Run[FineTuningHyperparameters]) -> None:
        scenario, used, folder = run.request.scenario, run.hyperparameters, run.folder.path
        run.report(Status("reading the history", 0.0))
        self.start, self.cut = Start(used.start), history_parts.cut_of(scenario)
        selection = history_parts.selection_part(scenario, self.cut, folder)
        self.windows = WindowEvaluator(selection, run.executor)
        super().__init__(run, self.windows, self.start.network, self.start.name)
        part = history_parts.training_part(scenario, self.cut, folder)
        source = _source(part, used, history_parts.recent_part(scenario, self.cut, folder))
        network = self.start.network
        self._tuner = Tuner(source, used.tuning, network, run.executor, network)
        self.held_out: HeldOut | None = None  # of a complete training
        self.notes = history_parts.notes_on(scenario, self.cut)

    @property
    def _is_guarded(self) -> bool:
        """Networks with a longer p99 JCT than the start's are rejected."""
        return True

    def train(self) -> None:
        """Run the steps of the training that the checkpoint does not hold yet.

        Raises:
            Stopped: the executor was stopped; all but the generation under way is saved.
        """
        try:
            if not self.checkpoint.candidates:
                self.report("first evaluation", 0.0)
                network = self.start.network
                first = Candidate(network, self.evaluate(network), self.start.name)
                self.checkpoint = self.checkpoint._replace(candidates=(first,))
            self.tune(self._tuner, self.checkpoint.search or self._tuner.begin(), 0.0, 0)
            self._judge()
        finally:
            self.save()

    def _judge(self) -> None:
        """Compare the best network with the start on the held-out part."""
        self.report("held-out comparison", 1.0)
        part = history_parts.held_out_part(self.run.request.scenario, self.cut)
        pair = Pair(self.start.network, self.best.network if self._is_changed else None)
        count = self.run.hyperparameters.selection.final_seeds
        evaluator = WindowEvaluator(part, self.run.executor)
        self.held_out = held_out.compare(evaluator, pair, self.cut.held_out, count)

    @property
    def _is_changed(self) -> bool:
        """Whether a tuned network was better than the start on the selection windows."""
        return len(self.checkpoint.candidates) > 1

    def chosen(self) -> Candidate:
        """Return the candidate whose network is written, evaluated against Min-Min.

        It is the best one on the selection windows if there was no comparison yet.

        Raises:
            KeyboardInterrupt: no network was evaluated yet.
        """
        if not self.checkpoint.candidates:
            raise KeyboardInterrupt
        is_tuned = self.held_out is None or self.held_out.is_shipped
        found = self.best if is_tuned else self.checkpoint.candidates[0]
        count = self.run.hyperparameters.selection.seeds
        return found._replace(evaluation=self.windows.evaluate(found.network, count))

    def policy(self) -> TrainedPolicy:
        """Return the network to write, with what its card says about it.

        Raises:
            KeyboardInterrupt: no network was evaluated yet.
        """
        chosen, card = self.chosen(), self.start.card
        is_start = chosen.source == self.start.name
        return TrainedPolicy(
            chosen.network,
            self._about(chosen),
            "jct",
            card.family if is_start else self._family(),
            chosen.evaluation,
            self.checkpoint.episodes,
            ranges=card.ranges,
            final=self._final(),
            has_seeds=False,
            seeds=card.seeds if is_start else None,
        )

    def _about(self, chosen: Candidate) -> str:
        start, name = self.start, self.run.request.scenario.name
        if self.held_out is None:
            told = f"Stopped before the comparison on held-out jobs: {chosen.source} of a tuning"
            return f"{told} of {start.words} on {name}."
        if self.held_out.is_shipped:
            first = f"Tuned on {name} from {start.words}; taken from {chosen.source}."
        else:
            first = f"Unchanged weights of {start.words}: fine-tuning on {name} kept them."
        told = f"{self.held_out.where.capitalize()}; {self.held_out.reason}."
        return f"{first} {told} Card of the start: {start.card.about[:_MOST_ABOUT]}"

    def _family(self) -> str:
        part, (low, high) = self._tuner.source.scenario, self._tuner.source.loads
        return (
            f"{self.start.card.family[:_MOST_ABOUT]}; then windows of {part.jobs:,} of the first "
            f"{self.cut.first:,} jobs of {part.name} at load {low:.3g} to {high:.3g}, and random "
            f"relatives of them: load {family.LOADS[0]:g} to {family.OVERLOADS[1]:g}, other mixes "
            "and nodes"
        )

    def _final(self) -> tuple[Figure, ...]:
        if self.held_out is None:
            return ()
        found = self.held_out.versus_min_min
        assert found.ci95 is not None, "there are several windows"
        name = self.run.request.scenario.name
        load, jct = self.held_out.load, found.mean_pct
        return (Figure(scenario=name, load=load, mean_jct_pct=jct, ci95=found.ci95),)


def _speeds(request: FineTuningRequest, used: FineTuningHyperparameters) -> budget.Speeds:
    """Measure the speeds, in a copy of some jobs of the history that is removed again."""
    network, shares, run = Start(used.start).network, used.tuning.shares, request.seed
    with tempfile.TemporaryDirectory() as place:
        cut = history_parts.cut_of(request.scenario)
        part = history_parts.recent_part(request.scenario, cut, Path(place))
        source = _source(part, used, part)
        rival, own = budget.measure_playing(source, run, (MIN_MIN, network), shares)
        drawing = budget.measure_drawing(source, run, shares)
    return budget.Speeds((), 0.0, own, own + drawing, rival)


def scaled(request: FineTuningRequest) -> FineTuningHyperparameters:
    """Return the hyperparameters of a request, scaled to its budget or number of episodes."""
    return budget.scaled_search(request, reduced, lambda used: _speeds(request, used))


def warm_up(request: FineTuningRequest) -> None:
    """Compile all code that the training will run, or load it from the cache."""
    setting = prepare(request.scenario)
    network = Start(request.hyperparameters.start).network
    warm_up_policies([policy(one, setting) for one in (network, MIN_MIN)])


ALGORITHM = Algorithm(
    NAME, "paper16", FineTuningRequest, FineTuningPlan, warm_up, scaled, FineTuning
)
