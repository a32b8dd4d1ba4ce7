"""Stock Slurm's twin: order, blocked partitions, backfill by time limits, nodes in order."""

import numpy as np
import pytest

from tests.worlds import build, gpus_of, job, nodes, play

AT_ONCE = {"bf_interval_s": 0, "bf_resolution_s": 1}  # backfill after every event, to the second


def wait(arrival, seconds, limit=None, **more):
    """A job that runs for `seconds`, with a time limit of as many unless it is given."""
    return job(arrival, seconds, requested=seconds if limit is None else limit, **more)


def starts(groups, jobs, **slurm):
    outcome = play(build(groups, jobs, slurm={**AT_ONCE, **slurm}), "slurm").outcome
    return outcome["start"].tolist()


def test_without_weights_jobs_start_in_order_of_submission():
    jobs = [wait(0, 10), wait(1, 2, priority=0.1), wait(1, 3, priority=0.9)]
    assert starts([nodes()], jobs) == [0, 10, 12]
