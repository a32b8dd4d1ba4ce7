"""Sufferage, re-planned at each event: the job that loses most without its best pool goes next.

With c_jg = ready time + est * left, given those planned before, a job's sufferage is its second
smallest c_jg less its smallest, in whole microseconds, infinite if one pool alone can take it. The
largest goes next (of equals the smaller completion) and holds its place, even in the future.
Source: Maheswaran et al. (1999), with late binding.
"""

from adlro.compiled import njit, wide
from adlro.model.feasibility import start
from adlro.planning.list_order import BY_LOSS, largest_first_start


@njit
def decide(view, params, memory, out):
    """The plan's first start."""
    q, p = largest_first_start(wide(BY_LOSS), view)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
