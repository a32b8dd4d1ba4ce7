"""Max-Min, re-planned at each event: the job that completes last even on its best pool is next.

The completion time c_j of a job is the minimum over pools of ready time + remaining run time, given
the jobs planned before. The job with the largest c_j is planned next, and its reservation is fixed,
even if it begins in the future. Long jobs get the GPUs they need, and short ones fill the gaps.
Ibarra and Kim 1977; Maheswaran et al. 1999 (batch mode heuristics). Unlike in these papers, only
the starts that are due now are made.
"""

from adlro.compiled import njit, wide
from adlro.model.feasibility import start
from adlro.planning.list_order import BY_END, largest_first_start


@njit
def decide(view, params, memory, out):
    """Plan the queue anew and make the first planned start that is due now, if any."""
    q, p = largest_first_start(wide(BY_END), view)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
