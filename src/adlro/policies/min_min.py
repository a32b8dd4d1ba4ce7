"""Min-Min, re-planned at each event: the job that can complete first is planned next.

The completion time c_j of a job is the minimum over pools of ready time + remaining run time, given
the jobs planned before. The job with the smallest c_j is planned next and its reservation is fixed,
even if it begins in the future: this is how a job waits for the right GPU. Ibarra and Kim 1977;
Maheswaran et al. 1999 (batch mode heuristics). Unlike in these papers, only the starts that are due
now are made. Min-Min is the baseline of this project's comparisons.
"""

from adlro.compiled import njit
from adlro.model.feasibility import start
from adlro.planning.min_min import min_min_start, scratch_size


def memory(context):
    """Length of the memory: scratch for the plan; nothing is stored between calls."""
    return scratch_size(len(context.gpus), len(context.pools))


@njit
def decide(view, params, memory, out):
    """Plan the queue anew and make the first planned start that is due now, if any."""
    q, p = min_min_start(view, memory)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
