"""ADLRO: a Q-network, trained on the simulator, weighs every start against waiting.

Choices and features: features/start_kernel.py; network: nets/q_network.py; training: train/.
"""

from adlro.compiled import njit_apart
from adlro.features.start_kernel import describe_choices, describe_more
from adlro.features.telemetry_kernel import RANGES
from adlro.model.feasibility import start
from adlro.nets import q_network
from adlro.nets.q_network import ASKED, MOST_UNITS, choose
from adlro.planning.drain import next_finish
from adlro.policies.loading import learned

PATIENCE = 20.0  # times the run time of the shortest job that could start


def params(context, weights=None):
    """The weights that come with the package, unless told others."""
    return learned.shipped().params_for(context) if weights is None else weights


def memory(context, weights=None):
    """Scratch; nothing is kept from call to call."""
    return q_network.scratch_size(len(context.gpus), len(context.pools))


@njit_apart
def decide(view, params, memory, out):
    """The choice with the smallest predicted cost; where nothing runs, Min-Min's.

    Such states are not labelled in training, for there it makes no sense to wait. Nor does it
    where no end is near: then the shortest job starts, whatever the network says of waiting.
    """
    units, scratch = memory[: 2 * MOST_UNITS], memory[2 * MOST_UNITS :]
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
        i = 1  # the shortest: it will be done long before anything ends
    return start(out, view.queue[int(choices.places[i])].job, int(choices.pools[i]))
