"""Names of all random streams of workload generation and of training, with their numbers.

A stream is a NumPy generator seeded by a tuple of integers, so any part of a run can be repeated
alone. The numbers are fixed: changing one changes the jobs or the weights that a seed gives.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

_FITS_PER_RUN = 16


class WorkloadStream(IntEnum):
    """Second entry of (seed, stream): what a workload draws from it."""

    ARRIVALS = 0
    DEMANDS = 1
    NOISE = 2  # of the true run times
    ESTIMATES = 3
    EVENTS = 4  # failures, wear, throttling, updates
    RAN_ON = 5  # GPU models of jobs that ended before the first arrival
    PAST = 6  # spawn key of the streams of those jobs, which no seed shares


class TrainingPhase(IntEnum):
    """Second entry of (run, phase, number, purpose): the part of a training.

    Each phase of each run also has its own block of workload seeds (train/episode_seeds.py). Only
    one algorithm runs in a training, so FUTURES of round 4 and PAPER_DQN can share a number.
    """

    LABELS = 0  # of round 1; the following rounds, at most 8, have the numbers after it
    TEMPORAL_DIFFERENCES = 11  # of experiments/ablations
    COMPILATION = 13  # the episode that is labelled in order to compile
    MEASUREMENT = 14  # episodes that measure speeds
    TELEMETRY = 15  # episodes whose readings are observed
    TUNING = 16
    FUTURES = 17  # of LABELS; add the phase that is labelled
    PAPER_DQN = 20
    PREEMPTIVE = 25  # tuning of adlro-preemptive


class StreamPurpose(IntEnum):
    """Fourth entry of (run, phase, number, purpose): what a phase draws from the stream."""

    EPISODE = 0  # number: of the episode
    NOISE = 1  # on the weights; number: of the generation
    INITIAL_WEIGHTS = 2  # number: 0


def training_stream(
    run: int, phase: int, number: int, purpose: StreamPurpose = StreamPurpose.EPISODE
) -> np.random.Generator:
    """The random stream of one step of a training.

    Args:
        run: seed of the training.
        phase: see TrainingPhase.
        number: of the episode or generation within the phase.
        purpose: what is drawn. NumPy pads seeds with zeros, so EPISODE is the stream of
            (run, phase, number).
    """
    return np.random.default_rng((run, int(phase), number, int(purpose)))


def fit_seed(run: int, number: int) -> int:
    """Seed of the regression of a round: of its initial weights and of its batches.

    The batches of an epoch have the stream (fit seed, epoch). It can coincide with the stream of an
    episode, also of another run; orders of batches and draws of scenarios do not interact.
    """
    return run * _FITS_PER_RUN + number
