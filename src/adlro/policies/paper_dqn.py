"""The DQN of the ADLRO paper: a convolutional Q-network selects the GPU for the first waiting job.

The observation and the actions are defined in features/observation_kernel.py, the network in
nets/paper_network.py.
"""

from adlro.compiled import njit
from adlro.features.observation_kernel import Sizes, act, allow, observe, sizes
from adlro.nets import paper_network
from adlro.nets.paper_network import best, sizes_of, values
from adlro.policies.loading import learned

NAME = "paper-dqn"


def params(context, weights=None):
    """Weights of the network: the given ones, or those shipped for the cluster of paper16."""
    return learned.shipped(NAME).params if weights is None else weights


def _words(found):
    return (
        f"{found.rows} nodes of up to {found.columns} GPUs, {found.gpus} GPUs and {found.types} "
        "job types"
    )


def refuses(context, weights=None):
    """Refuse a cluster of another shape than the weights are for; return the reason, or None.

    The shape is the number of nodes, of GPUs per node, of GPUs in all and of job types.
    """
    made_for = sizes_of(params(context, weights))
    there = sizes(context, context.types, made_for.window)
    if there == made_for:
        return None
    return (
        f"its weights are for {_words(made_for)}, and here are {_words(there)}; train some with "
        "adlro train SCENARIO --algorithm paper-dqn"
    )


def memory(context, weights=None):
    """Length of the memory: scratch for the network; nothing is stored between calls."""
    known = params(context, weights)
    shape: Sizes = sizes_of(known)
    return shape.observation + 2 * shape.actions + paper_network.scratch_size(known)


@njit
def decide(view, params, memory, out):
    """Take the feasible action with the largest value; wait if none is feasible."""
    columns, types, window = int(params[1]), int(params[2]), int(params[3])
    actions = window * len(view.gpus)
    allowed = memory[:actions]
    if allow(view, window, allowed) == 0:
        return 0
    q = memory[actions : 2 * actions]
    width = len(view.nodes) * columns + 1 + window * (1 + types)
    x, scratch = memory[2 * actions : 2 * actions + width], memory[2 * actions + width :]
    observe(view, window, types, columns, x)
    values(x, params, scratch, q)
    return act(best(q, allowed), view, out)
