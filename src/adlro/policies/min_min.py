"""Min-Min, re-planned at each event: plan all waiting jobs, start what the plan starts now.

In the plan the job with the smallest expected completion always goes next and holds its place,
even in the future: that is how a job waits for the right GPU. Source: the classic heuristic of
Ibarra and Kim (1977), with late binding; every bar of this project means this policy.
"""

from adlro.compiled import njit
from adlro.model.feasibility import start
from adlro.planning.min_min import min_min_start, scratch_size


def memory(context):
    """Scratch for the plan; nothing is kept from call to call."""
    return scratch_size(len(context.gpus), len(context.pools))


@njit
def decide(view, params, memory, out):
    """The plan's first start."""
    q, p = min_min_start(view, memory)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
