"""Sufferage, re-planned at each event: the job that loses most without its best pool is next.

With c_jg = ready time + est * left, given the jobs planned before, the sufferage of a job is its
second smallest c_jg minus its smallest, in whole microseconds, and infinite if only one pool can
run it. The job with the largest sufferage (among equals the smaller completion) is planned next and
keeps its reservation, even in the future. Maheswaran et al. 1999 (batch mode heuristics). Unlike
there, only the starts that are due now are made.
"""

from adlro.compiled import njit, wide
from adlro.model.feasibility import start
from adlro.planning.list_order import BY_LOSS, largest_first_start


@njit
def decide(view, params, memory, out):
    """Make the first start of the plan that is due now."""
    q, p = largest_first_start(wide(BY_LOSS), view)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
