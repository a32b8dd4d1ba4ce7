"""The paper's HyperScore: completion time, throughput and utilisation in one number."""

from __future__ import annotations

import math

BETA, GAMMA, KAPPA = 5.0, -math.log(2), 2.1


def value(jct: float, throughput: float, utilisation: float) -> float:
    """Return V in [0, 1], the geometric mean of three ratios that are 1 at best.

    Args:
        jct: lower bound on the mean completion time / mean completion time.
        throughput: throughput / fluid-LP capacity.
        utilisation: busy share of the GPUs.
    """
    return math.cbrt(max(jct, 0.0) * max(throughput, 0.0) * max(utilisation, 0.0))


def hyperscore(v: float) -> float:
    """Return the HyperScore of V (see `value`): 100 * [1 + sigmoid(5 ln V - ln 2)^2.1].

    The sigmoid compresses: V = 1 gives 109.96, 0.9 gives 104.48, and every V below about 0.75
    gives less than 101. Compare completion times, not HyperScores.
    """
    if v <= 0:
        return 100.0
    sigmoid = 1 / (1 + math.exp(-(BETA * math.log(v) + GAMMA)))
    return 100 * (1 + math.pow(sigmoid, KAPPA))
