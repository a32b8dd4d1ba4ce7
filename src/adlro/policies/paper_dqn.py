"""The paper's DQN: a convolutional network says which GPU the first waiting job starts on.

State and action: features/observation_kernel.py; network: nets/paper_network.py.
"""

from adlro.compiled import njit
from adlro.features.observation_kernel import Sizes, act, allow, observe, sizes
from adlro.nets import paper_network
from adlro.nets.paper_network import best, sizes_of, values
from adlro.policies.loading import learned

NAME = "paper-dqn"


def params(context, weights=None):
    """The weights that come with the package, for the cluster of paper16, unless told others."""
    return learned.shipped(NAME).params if weights is None else weights


def _words(found):
    return (
        f"{found.rows} nodes of up to {found.columns} GPUs, {found.gpus} GPUs and {found.types} "
        "job types"
    )


def refuses(context, weights=None):
    """A cluster of another shape than that of the weights: other nodes, GPUs or job types."""
    made_for = sizes_of(params(context, weights))
    there = sizes(context, context.types, made_for.window)
    if there == made_for:
        return None
    return (
        f"its weights are for {_words(made_for)}, and here are {_words(there)}; train some with "
        "adlro train SCENARIO --algorithm paper-dqn"
    )


def memory(context, weights=None):
    """Scratch; nothing is kept from call to call."""
    known = params(context, weights)
    shape: Sizes = sizes_of(known)
    return shape.observation + 2 * shape.actions + paper_network.scratch_size(known)


@njit
def decide(view, params, memory, out):
    """The allowed action of the largest value; none where none of the first W jobs can start."""
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
