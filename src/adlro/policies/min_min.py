"""Min-Min, re-planned at each event: the job with the smallest completion time is planned next.

c_j = min over pools of ready time + est * left, given the jobs planned before; the job with the
smallest c_j is planned next and keeps its reservation, even in the future: this is how a job waits
for the right GPU. Ibarra and Kim 1977; Maheswaran et al. 1999 (batch mode heuristics). Unlike
there, only the starts that are due now are made. The baseline of this project's comparisons.
"""

from adlro.compiled import njit
from adlro.model.feasibility import start
from adlro.planning.min_min import min_min_start, scratch_size


def memory(context):
    """Scratch for the plan; nothing is stored between calls."""
    return scratch_size(len(context.gpus), len(context.pools))


@njit
def decide(view, params, memory, out):
    """Make the first start of the plan that is due now."""
    q, p = min_min_start(view, memory)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
