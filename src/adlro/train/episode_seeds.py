"""Seeds that training may draw jobs from; every workload of a training is generated here.

Seeds 0 to 9,999 are left to users and 200,000 to 201,499 to published claims: nothing is trained or
selected on them. The seeds of this module draw jobs only; all other random numbers of a training
come from the streams in adlro/seeds.py.
"""

from __future__ import annotations

from adlro.policies.loading.card import Seeds
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

SELECTION = range(100_000, 100_500)
FIRST_TRAINING = 1_000_000
MOST_RUNS = 10**6  # values of `adlro train --seed`
_BLOCK = 10**6  # seeds of one phase
_PHASES = 32  # of one training


def jobs(setting: Setting, seed: int) -> Workload:
    """Generate the jobs of a seed that training may use.

    Raises:
        ValueError: the seed is reserved for other uses.
    """
    if seed < FIRST_TRAINING and seed not in SELECTION:
        raise ValueError(
            f"seed {seed} is not for training: these are {FIRST_TRAINING:,} and above, and for "
            f"selection {SELECTION.start:,} to {SELECTION.stop - 1:,}"
        )
    return generate(setting, seed)


def _first(run: int, phase: int) -> int:
    if not (0 <= run < MOST_RUNS and 0 <= phase < _PHASES):
        raise ValueError(f"run {run} or phase {phase} is out of range")
    return FIRST_TRAINING + (run * _PHASES + phase) * _BLOCK


def training(run: int, phase: int, episode: int) -> int:
    """Return the workload seed of an episode; no two runs or phases share a seed.

    Raises:
        ValueError: the run, the phase or the episode is out of range.
    """
    if not 0 <= episode < _BLOCK:
        raise ValueError(f"episode {episode}: a phase has {_BLOCK:,}")
    return _first(run, phase) + episode


def block(run: int) -> Seeds:
    """Return the range of all seeds that a run may train on."""
    return Seeds(first=_first(run, 0), last=_first(run, _PHASES - 1) + _BLOCK - 1)
