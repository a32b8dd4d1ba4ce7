"""Max-Min, re-planned at each event: the job with the largest earliest completion is planned next.

c_j = min over pools of ready time + est * left, given the jobs planned before; the job with the
largest c_j is planned next and keeps its reservation, even in the future. Long jobs get the GPUs
they need, and short ones fill the gaps. Ibarra and Kim 1977; Maheswaran et al. 1999 (batch mode
heuristics). Unlike there, only the starts that are due now are made.
"""

from adlro.compiled import njit, wide
from adlro.model.feasibility import start
from adlro.planning.list_order import BY_END, largest_first_start


@njit
def decide(view, params, memory, out):
    """Make the first start of the plan that is due now."""
    q, p = largest_first_start(wide(BY_END), view)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
