"""Names and fixed numbers of the random streams of workloads, studies and training.

A stream is a NumPy generator seeded by a tuple of integers, so any part of a run can be repeated
alone. The numbers are fixed: changing one changes the jobs or the weights that a seed gives.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

_FITS_PER_RUN = 16


class WorkloadStream(IntEnum):
    """What a workload draws from a random stream; the stream is seeded with (seed, this number)."""

    ARRIVALS = 0
    DEMANDS = 1
    NOISE = 2  # of the true run times
    ESTIMATES = 3
    EVENTS = 4  # failures, wear, throttling, updates
    RAN_ON = 5  # GPU models of jobs that ended before the first arrival
    PAST = 6  # spawn key of all streams of these earlier jobs; no seed gives the same
    JITTER = 7  # of the estimates; the stream is seeded with the number of the repetition, too


class TrainingPhase(IntEnum):
    """Part of a training: the second entry of a stream's seed (run, phase, number, purpose).

    Each phase of each run also has its own block of workload seeds (train/episode_seeds.py). Only
    one algorithm runs in a training, so FUTURES of round 4 (17 + 3) and PAPER_DQN can share a
    number.
    """

    LABELS = 0  # of round 1; the following rounds, at most 8, have the numbers after it
    TEMPORAL_DIFFERENCES = 11  # of experiments/ablations
    WIDE_SELECTION = 12  # scenarios of the wide family on which networks are selected
    COMPILATION = 13  # the episode that is labelled in order to compile
    MEASUREMENT = 14  # episodes that measure speeds
    TELEMETRY = 15  # episodes whose readings are observed
    TUNING = 16
    FUTURES = 17  # of LABELS; add the phase that is labelled
    PAPER_DQN = 20
    PREEMPTIVE = 25  # tuning of adlro-preemptive


class StreamPurpose(IntEnum):
    """What a stream is for: the fourth entry of its seed (run, phase, number, purpose)."""

    EPISODE = 0  # number = index of the episode
    NOISE = 1  # on the weights; number = index of the generation
    INITIAL_WEIGHTS = 2  # number = 0


class StudyStream(IntEnum):
    """What a study of a history draws; the stream is seeded with (0, this number).

    The numbers are beyond all of WorkloadStream and TrainingPhase.
    """

    SLURM_SEARCH = 64  # settings of Slurm to try


def study_stream(purpose: StudyStream) -> np.random.Generator:
    """Return the random generator of a study; it is the same for every history."""
    return np.random.default_rng((0, int(purpose)))


def training_stream(
    run: int, phase: int, number: int, purpose: StreamPurpose = StreamPurpose.EPISODE
) -> np.random.Generator:
    """Return the random generator of one episode or generation of a training.

    Args:
        run: seed of the training.
        phase: see TrainingPhase.
        number: index of the episode or generation within the phase.
        purpose: what is drawn. NumPy pads seeds with zeros, so EPISODE is the stream of
            (run, phase, number).
    """
    return np.random.default_rng((run, int(phase), number, int(purpose)))


def fit_seed(run: int, number: int) -> int:
    """Seed of the regression of a training round, for its initial weights and its batches.

    The batches of an epoch are drawn from the stream seeded with (fit seed, epoch). An episode,
    also of another run, can have the same stream; that is harmless, as orders of batches and draws
    of scenarios do not interact.
    """
    return run * _FITS_PER_RUN + number
