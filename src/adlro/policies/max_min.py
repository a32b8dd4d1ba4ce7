"""Max-Min, re-planned at each event: the job that would be completed last is planned next.

c_j = min over pools of ready time + est * left, given those planned before; the job with the
largest c_j goes next and holds its place, even in the future. Long jobs get the GPUs they need and
short ones fill the gaps. Source: Ibarra and Kim (1977), Maheswaran et al. (1999); late binding.
"""

from adlro.compiled import njit, wide
from adlro.model.feasibility import start
from adlro.planning.list_order import BY_END, largest_first_start


@njit
def decide(view, params, memory, out):
    """The plan's first start."""
    q, p = largest_first_start(wide(BY_END), view)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
