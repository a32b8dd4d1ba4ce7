"""Sufferage, re-planned at each event: the job that loses most without its best pool is next.

The completion time c_jg of job j on pool g is ready time + remaining run time, given the jobs
planned before. The sufferage of a job is its second smallest c_jg minus its smallest, in whole
microseconds, and infinite if only one pool can run it. The job with the largest sufferage (among
equals, the one that completes first) is planned next, and its reservation is fixed, even if it
begins in the future. Maheswaran et al. 1999 (batch mode heuristics). Unlike in that paper, only the
starts that are due now are made.
"""

from adlro.compiled import njit, wide
from adlro.model.feasibility import start
from adlro.planning.list_order import BY_LOSS, largest_first_start


@njit
def decide(view, params, memory, out):
    """Plan the queue anew and make the first planned start that is due now, if any."""
    q, p = largest_first_start(wide(BY_LOSS), view)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
