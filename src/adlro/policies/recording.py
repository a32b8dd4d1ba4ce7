"""adlro's decisions, with the features of some of them recorded.

A decision counts if the network is asked: a job can start, and at least one other is running. A run
with `record` in place of adlro's `decide` makes the same decisions. It is a run of its own
(evaluate/out_of_range.py), so that adlro itself is not slowed down.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.compiled import njit, njit_apart
from adlro.features.start_kernel import FEATURES, MOST_CHOICES, describe_choices, describe_more
from adlro.features.telemetry_kernel import RANGES
from adlro.model.feasibility import any_feasible
from adlro.model.state import Floats, Mask
from adlro.nets.q_network import ASKED, UNITS
from adlro.policies import adlro

_OWN, _PARAMS = range(2)  # params: length of adlro's memory; then its params
_COUNTED, _USED, _EVERY, _ROWS = range(4)  # memory after adlro's own; the last: of the records
_RECORD = 1 + MOST_CHOICES * len(FEATURES)  # numbers of a record: its options, and their features


class Recorded(NamedTuple):
    """S recorded decisions with up to C options of F features each."""

    is_option: Mask  # [S, C] False = the decision has fewer options
    features: NDArray[np.float32]  # [S, C, F] in the precision that networks are trained in


def recording_params(params: Floats, own: int) -> Floats:
    """Return the params of `record`, given those of adlro and the length of its memory."""
    return np.concatenate([[own], params])


def recording_memory(own: int, most: int) -> int:
    """Return the length of the memory of `record`, for `most` decisions, an even number."""
    return own + _ROWS + most * _RECORD


def read_records(memory: Floats, own: int) -> Recorded:
    """Return the decisions that a run has recorded in its memory."""
    used = int(memory[own + _USED])
    rows = memory[own + _ROWS :][: used * _RECORD].reshape(used, _RECORD)
    features = rows[:, 1:].reshape(used, MOST_CHOICES, len(FEATURES))
    return Recorded(np.arange(MOST_CHOICES) < rows[:, :1], features.astype(np.float32))


@njit_apart
def _write(view, params, scratch, row):
    """Write the options of a decision and their features to row [_RECORD]."""
    choices = describe_choices(view, scratch)
    if params[ASKED] > 0.0:
        ranges = params[len(params) - RANGES * view.est.shape[1] :]
        describe_more(int(params[ASKED]), ranges, choices, view, scratch)
    row[0] = choices.count
    for i in range(choices.count):
        at = 1 + i * len(FEATURES)
        for f in range(len(FEATURES)):
            row[at + f] = choices.features[i, f]


@njit
def _thin_out(mine):
    """Keep every second record, and record half as often from now on."""
    for k in range(1, int(mine[_USED]) // 2):
        to, at = _ROWS + k * _RECORD, _ROWS + 2 * k * _RECORD
        for i in range(_RECORD):
            mine[to + i] = mine[at + i]
    mine[_USED], mine[_EVERY] = mine[_USED] // 2, 2.0 * mine[_EVERY]


@njit_apart
def record(view, params, memory, out):
    """Decide as adlro does, and record decisions at equal intervals.

    The first decisions are all recorded. Whenever the memory is full, every second record is
    dropped and the interval is doubled, so that the records are spread over the whole run.
    """
    own, mine = memory[: int(params[_OWN])], memory[int(params[_OWN]) :]
    if len(view.running) > 0 and any_feasible(view):
        mine[_EVERY] = max(mine[_EVERY], 1.0)
        if mine[_COUNTED] % mine[_EVERY] == 0.0:
            at = _ROWS + int(mine[_USED]) * _RECORD
            _write(view, params[_PARAMS:], own[UNITS:], mine[at : at + _RECORD])
            mine[_USED] += 1.0
            if at + 2 * _RECORD > len(mine):
                _thin_out(mine)
        mine[_COUNTED] += 1.0
    decided: int = adlro.decide(view, params[_PARAMS:], own, out)
    return decided
