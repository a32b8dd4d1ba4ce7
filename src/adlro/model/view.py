"""The state that a policy sees at one moment, in the simulator and on a live cluster alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import Floats, Mask, Records

RECENT_ARRIVALS = 128  # arrivals listed in a view; a row is not reused before as many jobs arrived
RECENT = 32  # the latest of these, from which features of the arrival process are computed

Rows = NDArray[np.int64]  # [.] rows of the job table


class View(NamedTuple):
    """The state that a policy decides on; dimensions as in model/state.py.

    Only those rows of `jobs` and `est` are meaningful that queue, running, recent or GPU.job refer
    to. None of them refers to a job that has not arrived.
    """

    now: float  # seconds since the start of the run
    jobs: Records  # [rows] JOB
    est: Floats  # [rows, M] estimated seconds
    queue: Records  # [Q] WAITING, sorted by JOB.id: the oldest first
    eligible: Mask  # [Q, P] pools where each waiting job may start
    running: Records  # [R] RUNNING
    pools: Records  # [P] POOL
    nodes: Records  # [N] NODE
    gpus: Records  # [G] GPU
    arrived: int  # number of jobs that have arrived so far
    recent: Rows  # [at most RECENT_ARRIVALS] rows of the last arrivals, the oldest first
