"""Least JCT plus rent of every job at given prices of GPU time (compiled); see lower_bound.py."""

from __future__ import annotations

import math
from typing import NamedTuple

from adlro.compiled import njit
from adlro.model.state import Counts, Floats

_HALVINGS = 18  # of the interval that holds the best worth of a job's work


class Relaxation(NamedTuple):
    """The jobs of a relaxed instance: J jobs that count, P pools."""

    arrival: Floats  # [J] seconds
    seconds: Floats  # [J, P] > 0: a job holds its GPUs at least this long; inf = not on this pool
    width: Floats  # [J] GPUs that a job holds
    gpus: Floats  # [P] GPUs of each pool, up or down


class Dual(NamedTuple):
    """Buffers of an evaluation; prices are constant in each of K cells of equal length."""

    prices: Floats  # [P, K] rent of one GPU for a second, >= 0; 0 after the last cell
    cumulated: Floats  # [P, K + 1] rent of one GPU from 0 until the beginning of each cell
    excess: Floats  # [P, K] GPU-seconds that jobs choose beyond those that the cell has
    visits: Counts  # [1] cells visited so far, a measure of the work done


@njit
def _open(cell: float, relaxed: Relaxation, dual: Dual) -> float:
    """Fill `cumulated` and `excess` for the prices; returns minus the rent of all GPUs."""
    prices, cumulated, excess = dual.prices, dual.cumulated, dual.excess
    pools, cells = prices.shape
    total = 0.0
    for p in range(pools):
        cumulated[p, 0] = 0.0
        for k in range(cells):
            cumulated[p, k + 1] = cumulated[p, k] + cell * prices[p, k]
            excess[p, k] = -relaxed.gpus[p] * cell
        total -= relaxed.gpus[p] * cumulated[p, cells]
    return total


@njit
def _rent(time: float, p: int, cell: float, dual: Dual) -> float:
    """Rent of one GPU of pool p from 0 until `time`."""
    k, cells = int(time / cell), dual.prices.shape[1]
    rent: float = dual.cumulated[p, min(k, cells)]
    if k < cells:
        rent += (time - k * cell) * dual.prices[p, k]
    return rent


@njit
def _occupy(begin: float, end: float, p: int, gpus: float, cell: float, dual: Dual) -> None:
    """Add GPUs of pool p from begin to end to `excess`."""
    k, cells = int(begin / cell), dual.prices.shape[1]
    while k < cells and k * cell < end:
        dual.excess[p, k] += gpus * (min(end, (k + 1) * cell) - max(begin, k * cell))
        k += 1


@njit
def without_preemption(cell: float, relaxed: Relaxation, dual: Dual) -> float:
    """Lower bound on the total JCT of schedules in which every job runs once, without a break.

    Each job takes the pool and start with the least JCT plus rent. As the rent of a run is
    piecewise linear in its start, the best start is the arrival or one where the run begins or ends
    between two cells. Later starts than the best JCT plus rent so far need not be tried: rent is
    not negative. Fills `dual.excess`, which is a supergradient of the bound.
    """
    total = _open(cell, relaxed, dual)
    cells = dual.prices.shape[1]
    for j in range(len(relaxed.arrival)):
        arrival, width = relaxed.arrival[j], relaxed.width[j]
        best, best_start, best_pool = math.inf, 0.0, 0
        for p in range(len(relaxed.gpus)):
            seconds = relaxed.seconds[j, p]
            begins, ends = int(arrival / cell) + 1, int((arrival + seconds) / cell) + 1
            if seconds == math.inf:
                continue
            start = arrival
            while start - arrival + seconds < best:
                dual.visits[0] += 1
                end = start + seconds
                rent = width * (_rent(end, p, cell, dual) - _rent(start, p, cell, dual))
                if start - arrival + seconds + rent < best:
                    best = start - arrival + seconds + rent
                    best_start, best_pool = start, p
                if begins > cells:
                    break
                if begins * cell <= ends * cell - seconds:
                    start = begins * cell
                    begins += 1
                else:
                    start = max(ends * cell - seconds, arrival)
                    ends += 1
        total += best
        end = best_start + relaxed.seconds[j, best_pool]
        _occupy(best_start, end, best_pool, width, cell, dual)
    return total


@njit
def _gain(j: int, k: int, worth: float, relaxed: Relaxation, dual: Dual) -> tuple[float, int]:
    """Most that a second of work in cell k gains if all work is worth `worth`, and on which pool.

    (0, -1) if no pool gains.
    """
    gain, pool = 0.0, -1
    for p in range(len(relaxed.gpus)):
        price = dual.prices[p, k] if k < dual.prices.shape[1] else 0.0
        found = worth / relaxed.seconds[j, p] - relaxed.width[j] * price
        if found > gain:
            gain, pool = found, p
    return gain, pool


class _Part(NamedTuple):
    """What a job does until a time if it works wherever that gains."""

    gained: float
    done: float  # share of the work
    rate: float  # at which it would work next
    gain: float  # of a second there


@njit
def _work(
    j: int, until: float, worth: float, cell: float, relaxed: Relaxation, dual: Dual
) -> _Part:
    """What job j gains and does from its arrival until a time, see `_Part`."""
    time, gained, done = relaxed.arrival[j], 0.0, 0.0
    k = int(time / cell)
    gain, pool = _gain(j, k, worth, relaxed, dual)
    rate = 1 / relaxed.seconds[j, pool] if pool >= 0 else 0.0
    while (k + 1) * cell <= until:
        passed = (k + 1) * cell - time
        gained += passed * gain
        done += passed * rate
        time = (k + 1) * cell
        k += 1
        gain, pool = _gain(j, k, worth, relaxed, dual)
        rate = 1 / relaxed.seconds[j, pool] if pool >= 0 else 0.0
    dual.visits[0] += k - int(relaxed.arrival[j] / cell) + 1
    return _Part(gained + (until - time) * gain, done + (until - time) * rate, rate, gain)


@njit
def _hold(
    j: int, until: float, worth: float, share: float, cell: float, relaxed: Relaxation, dual: Dual
) -> None:
    """Add a share of the GPUs that job j holds, working wherever that gains, to `excess`."""
    time, cells = relaxed.arrival[j], dual.prices.shape[1]
    k = int(time / cell)
    while time < until and k < cells:
        end = min(until, (k + 1) * cell)
        _, pool = _gain(j, k, worth, relaxed, dual)
        if pool >= 0:
            dual.excess[pool, k] += share * relaxed.width[j] * (end - time)
        time = end
        k += 1


class _Found(NamedTuple):
    """The best worth of a job's work for completion within a cell, between `low` and `high`."""

    value: float  # JCT plus rent, at least
    low: float  # worth
    low_until: float  # completion with the least value at `low`
    low_done: float  # share of the work done until then
    high: float
    high_until: float
    high_done: float


@njit
def _search(
    j: int, first: float, last: float, most: float, cell: float, relaxed: Relaxation, dual: Dual
) -> _Found:
    """Least JCT plus rent of job j if it completes between two times within one cell.

    For any worth of the work, JCT + worth - gained is a lower bound, and linear in the time of
    completion; the worth of the highest bound is searched between 0 and `most`.
    """
    arrival = relaxed.arrival[j]
    low, high, value = 0.0, most, 0.0
    low_until, low_done, high_until, high_done = first, 0.0, first, 0.0
    for _ in range(_HALVINGS):
        worth = 0.5 * (low + high)
        part = _work(j, first, worth, cell, relaxed, dual)
        until, done = first, part.done
        bound = first - arrival + worth - part.gained
        if bound + (last - first) * (1.0 - part.gain) < bound:
            until, done = last, part.done + (last - first) * part.rate
            bound += (last - first) * (1.0 - part.gain)
        value = max(value, bound)
        if done < 1.0:
            low, low_until, low_done = worth, until, done
        else:
            high, high_until, high_done = worth, until, done
    return _Found(value, low, low_until, low_done, high, high_until, high_done)


@njit
def with_preemption(cell: float, relaxed: Relaxation, dual: Dual) -> float:
    """Lower bound on the total JCT of any schedule, with free preemption and migration.

    For each cell in which a job may complete, `_search` gives its least JCT plus rent. Later cells
    than the best found so far need not be tried. Fills `dual.excess` with nearly a supergradient.
    """
    total = _open(cell, relaxed, dual)
    cells = dual.prices.shape[1]
    highest = 0.0
    for p in range(len(relaxed.gpus)):
        for k in range(cells):
            highest = max(highest, dual.prices[p, k])
    for j in range(len(relaxed.arrival)):
        arrival, shortest, longest = relaxed.arrival[j], math.inf, 0.0
        for p in range(len(relaxed.gpus)):
            seconds = relaxed.seconds[j, p]
            shortest = min(shortest, seconds)
            if seconds < math.inf:
                longest = max(longest, seconds)
        most = 1.0 + 2 * relaxed.width[j] * longest * highest
        first, best = arrival + shortest, _Found(math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        k = int(first / cell)
        while k < cells and first - arrival < best.value:
            found = _search(j, first, (k + 1) * cell, most, cell, relaxed, dual)
            if found.value < best.value:
                best = found
            k += 1
            first = k * cell
        if first - arrival < best.value:  # after all prices: JCT alone, whatever the rent before
            best = _Found(first - arrival, 0.0, first, 0.0, 0.0, first, 0.0)
        total += best.value
        more = best.high_done - best.low_done
        share = min(max((1.0 - best.low_done) / more, 0.0), 1.0) if more > 0 else 1.0
        _hold(j, best.low_until, best.low, 1.0 - share, cell, relaxed, dual)
        _hold(j, best.high_until, best.high, share, cell, relaxed, dual)
    return total
