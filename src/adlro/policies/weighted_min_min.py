"""Min-Min weighted by priority, re-planned at each event: important jobs are planned earlier.

c_j = min over pools of ready time + est * left, given the jobs planned before; the job with the
smallest (c_j - now) / sqrt(priority) is planned next and keeps its reservation, even in the future.
A priority below 0.01 counts as 0.01. Smith's rule (weighted shortest processing time, Smith 1956)
divides by the priority itself; the root gave a smaller weighted JCT on paper16 at loads 0.6, 0.8
and 0.95, and costs the mean JCT less.
"""

from adlro.compiled import njit, wide
from adlro.model.feasibility import start
from adlro.planning.list_order import BY_WEIGHT, largest_first_start


@njit
def decide(view, params, memory, out):
    """Make the first start of the plan that is due now."""
    q, p = largest_first_start(wide(BY_WEIGHT), view)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
