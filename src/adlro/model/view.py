"""What a policy sees at one moment; the same in every world."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import Floats, Mask, Records

RECENT_ARRIVALS = 128  # arrivals that a view names, and that a row outlives before it is reused
RECENT = 32  # the last of them, which tell what comes: how much, how often, how long

Rows = NDArray[np.int64]  # [.] places in the table of jobs


class View(NamedTuple):
    """The state that a policy decides on; dimensions as in model/state.py.

    The rows of `jobs` and `est` that mean anything are those that queue, running, recent or GPU.job
    name. Jobs that have not arrived stand in none of them.
    """

    now: float  # seconds since the start of the run
    jobs: Records  # [rows] JOB
    est: Floats  # [rows, M] seconds by the estimate
    queue: Records  # [Q] WAITING, by JOB.id: the oldest first
    eligible: Mask  # [Q, P] where each of them may start
    running: Records  # [R] RUNNING
    pools: Records  # [P] POOL
    nodes: Records  # [N] NODE
    gpus: Records  # [G] GPU
    arrived: int  # how many jobs have arrived so far
    recent: Rows  # [at most RECENT_ARRIVALS] rows of the last arrivals, the oldest first
