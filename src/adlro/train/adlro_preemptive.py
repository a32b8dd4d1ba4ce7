"""The algorithm `adlro-preemptive`: evolution strategies that start from Hetero-SRPT.

The network scores pairs of a job and a pool. Its initial weights decide as Hetero-SRPT does; tuning
improves them by the mean JCT of whole episodes, divided by that of the initial weights on the same
jobs.
"""

from __future__ import annotations

import numpy as np

from adlro.config.files import adjusted
from adlro.features.pair_kernel import PAIR_FEATURES
from adlro.model.state import Floats
from adlro.nets.q_network import Network
from adlro.seeds import StreamPurpose, TrainingPhase, training_stream
from adlro.sim.simulator import warm_up as warm_up_policies
from adlro.train import budget, evolve, weights
from adlro.train.checkpoint import Candidate
from adlro.train.episodes import MIN_MIN, EpisodeSource, policy
from adlro.train.evaluation import Evaluator
from adlro.train.evolve import Search
from adlro.train.hyperparameters import PreemptiveHyperparameters, Shares, reduced
from adlro.train.plan import TrainingPlan, TrainingRequest
from adlro.train.run import Algorithm, Run, TrainedPolicy
from adlro.train.tuning import TunedTraining, Tuner
from adlro.workloads.setting import prepare

PreemptiveRequest = TrainingRequest[PreemptiveHyperparameters]
PreemptivePlan = TrainingPlan[PreemptiveHyperparameters]

START = "start"  # name of the initial weights in reports
_OPEN = 5.0  # bias of the linear unit
_SPREAD = 0.5  # step size of the last layer, whose weights begin as zeros
_EVALUATE_EVERY = 5  # generations, at most, in trainings with a small budget


def initial_network(hidden: tuple[int, int], run: int) -> Network:
    """Return a network that decides as Hetero-SRPT, with random weights in the hidden layers.

    The last layer ignores the random units. One more unit begins as a constant that is always
    active: through its weights the cost can become any linear function of the features, which is
    the first thing that a search finds.
    """
    phase, purpose = TrainingPhase.PREEMPTIVE, StreamPurpose.INITIAL_WEIGHTS
    rng = training_stream(run, phase, 0, purpose)
    inputs, (units, more) = len(PAIR_FEATURES), hidden
    first = rng.normal(0.0, np.sqrt(2 / inputs), (inputs, units))
    second = rng.normal(0.0, np.sqrt(2 / units), (units, more))
    first_bias, last = np.zeros(units), np.zeros(more)
    first[:, 0], second[:, 0], second[0] = 0.0, 0.0, 0.0
    first_bias[0], second[0, 0], last[0] = _OPEN, 1.0, 1.0
    residual = np.array([1.0, 0.0])
    return Network(PAIR_FEATURES, residual, first, first_bias, second, np.zeros(more), last)


def _scale(network: Network) -> Floats:
    """Return the step size [D] of each of the D weights: the spread of its layer's random weights.

    The last layer, which has no random weights, has the step size _SPREAD.
    """
    first, second = network.first.shape[1], network.second.shape[1]
    of_first, of_second = np.sqrt(2 / len(network.first)), np.sqrt(2 / first)
    sizes = (network.first.size, first, network.second.size, second, second)
    return np.repeat((of_first, of_first, of_second, of_second, _SPREAD), sizes)


def episode_source(request: PreemptiveRequest) -> EpisodeSource:
    """Return the source of the training episodes, which have at most `jobs` jobs each.

    In random relatives of the scenario, checkpoints are cheaper or more expensive.
    """
    used = request.hyperparameters
    short = adjusted(request.scenario, jobs=min(used.jobs, request.scenario.jobs))
    return EpisodeSource(short, used.loads, used.costs)


class PreemptiveTraining(TunedTraining[PreemptiveHyperparameters]):
    """One training by `adlro-preemptive`: tunes the initial network and saves checkpoints."""

    def __init__(self, run: Run[PreemptiveHyperparameters]) -> None:
        request, used = run.request, run.hyperparameters
        evaluator = Evaluator(request.scenario, run.executor, used.selection.loads)
        network = initial_network(used.hidden, request.seed)
        super().__init__(run, evaluator, network, START)
        self._tuner = Tuner(
            episode_source(request),
            used.tuning,
            network,
            run.executor,
            network,
            phase=TrainingPhase.PREEMPTIVE,
        )

    def train(self) -> None:
        """Run the steps of the training that the checkpoint does not hold yet.

        Raises:
            Stopped: the executor was stopped; all but the generation under way is saved.
        """
        try:
            if not self.checkpoint.candidates:
                self.report("first evaluation", 0.0)
                network = self._tuner.network
                first = Candidate(network, self.evaluate(network), START)
                self.checkpoint = self.checkpoint._replace(candidates=(first,))
            self.tune(self._tuner, self.checkpoint.search or self._begin(), 0.0, 0)
            self.finish({MIN_MIN: MIN_MIN, START: self._tuner.network})
        finally:
            self.save()

    def _begin(self) -> Search:
        network = self._tuner.network
        return evolve.begin(weights.vector(network), _scale(network))

    def policy(self) -> TrainedPolicy:
        """Return the best network, with what its card says about it.

        Raises:
            KeyboardInterrupt: no network was evaluated yet.
        """
        chosen, name = self.chosen(), self.run.request.scenario.name
        jobs = self._tuner.source.scenario.jobs
        return TrainedPolicy(
            chosen.network,
            "Weighs pairs of a job and a pool, for clusters that may preempt; from Hetero-SRPT, "
            f"{chosen.source}",
            "mean JCT",
            f"{name} and relatives, {jobs} jobs, checkpoints expensive and cheap",
            chosen.evaluation,
            self.checkpoint.episodes,
        )


def _reduced(full: PreemptiveHyperparameters) -> PreemptiveHyperparameters:
    """Apply `reduced`, and evaluate more often: a short training needs several candidates too."""
    used = reduced(full)
    every = min(used.tuning.evaluate_every, _EVALUATE_EVERY)
    return used.model_copy(
        update={"tuning": used.tuning.model_copy(update={"evaluate_every": every})}
    )


def _speeds(request: PreemptiveRequest, used: PreemptiveHyperparameters) -> budget.Speeds:
    network, seed = initial_network(used.hidden, request.seed), request.seed
    source, shares = episode_source(request), used.tuning.shares
    own, rival = budget.measure_playing(source, seed, (network, MIN_MIN), shares)
    whole = source._replace(scenario=request.scenario)
    (evaluation,) = budget.measure_playing(whole, seed, (network,), Shares(0.0))
    return budget.Speeds((), 0.0, own, own, rival, evaluation)


def scaled(request: PreemptiveRequest) -> PreemptiveHyperparameters:
    """Return the hyperparameters of a request, scaled to its budget or number of episodes."""
    return budget.scaled_search(request, _reduced, lambda used: _speeds(request, used))


def warm_up(request: PreemptiveRequest) -> None:
    """Compile all code that the training will run, or load it from the cache.

    Compiling takes about a minute.
    """
    setting = prepare(request.scenario)
    network = initial_network((1, 1), request.seed)
    warm_up_policies([policy(one, setting) for one in (network, MIN_MIN)])


ALGORITHM = Algorithm(
    weights.PREEMPTIVE, "gavel16", PreemptiveRequest, PreemptivePlan, warm_up, scaled,
    PreemptiveTraining,
)  # fmt: skip
