"""ADLRO: a Q-network trained on the simulator predicts the cost of every start and of waiting.

The choice with the smallest predicted cost is made. The choices and their features are defined in
features/start_kernel.py, the network in nets/q_network.py; train/ has the training.
"""

from adlro.compiled import njit_apart
from adlro.features.start_kernel import describe_choices, describe_more
from adlro.features.telemetry_kernel import RANGES
from adlro.model.feasibility import start
from adlro.nets import q_network
from adlro.nets.q_network import ASKED, UNITS, choose
from adlro.planning.drain import next_finish
from adlro.policies.loading import learned

PATIENCE = 20.0  # longest wait for the next end, in run times of the shortest feasible job


def params(context, weights=None):
    """Weights of the network: the given ones, or those shipped with the package."""
    return learned.shipped().params_for(context) if weights is None else weights


def memory(context, weights=None):
    """Length of the memory: scratch for choices and network; nothing is stored between calls."""
    return q_network.scratch_size(len(context.gpus), len(context.pools))


@njit_apart
def decide(view, params, memory, out):
    """Make the choice with the smallest predicted cost; if nothing runs, Min-Min's choice.

    If nothing runs, waiting is pointless, so such states have no labels in training. If the network
    prefers to wait but the next expected end is more than PATIENCE run times of the shortest job
    away, that job starts instead.
    """
    units, scratch = memory[:UNITS], memory[UNITS:]
    choices, running = describe_choices(view, scratch), view.running
    if choices.count == 0:
        return 0
    i = choices.planned if len(running) == 0 else 0
    if i == 0:
        if params[ASKED] > 0.0:
            ranges = params[len(params) - RANGES * view.est.shape[1] :]
            describe_more(int(params[ASKED]), ranges, choices, view, scratch)
        i = choose(choices, len(running) > 0, params, units)
    if i == 0:
        if next_finish(view.now, running) - view.now <= PATIENCE * choices.seconds[1]:
            return 0
        i = 1  # the shortest job, which completes long before any run ends
    return start(out, view.queue[int(choices.places[i])].job, int(choices.pools[i]))
