"""Arrival times: Poisson arrivals at rate 1, rescaled in time to the scenario's arrival rate."""

from __future__ import annotations

import numpy as np

from adlro.config.scenario import Bursty, Diurnal, Scenario, Surge
from adlro.model.state import Floats

_STEPS = 96  # pieces of constant rate in one period of the daily wave


def _bent(unit: Floats, times: Floats, rates: Floats) -> Floats:
    """Rescale arrival times of rate 1 so that they follow a piecewise constant rate.

    Args:
        unit: [J] sorted arrival times of a process of rate 1.
        times: [S + 1] seconds, the borders of S pieces.
        rates: [S] arrivals a second in each piece.
    """
    passed = np.concatenate(([0.0], np.cumsum(np.diff(times) * rates)))
    bent: Floats = np.interp(unit, passed, times)
    return bent


def _bursty(process: Bursty, unit: Floats, rate: float, rng: np.random.Generator) -> Floats:
    quiet = rate * (1 - process.peak * process.share) / (1 - process.share)
    pause = process.length_s * (1 - process.share) / process.share
    needed = unit[-1] / rate
    lengths: list[float] = []
    rates: list[float] = []
    served, in_burst = 0.0, bool(rng.random() < process.share)
    while served <= unit[-1]:
        length = rng.exponential(process.length_s if in_burst else pause)
        lengths.append(min(length, 100 * needed))
        rates.append(max(rate * process.peak if in_burst else quiet, 1e-12))
        served += lengths[-1] * rates[-1]
        in_burst = not in_burst
    return _bent(unit, np.concatenate(([0.0], np.cumsum(lengths))), np.array(rates))


def _diurnal(process: Diurnal, unit: Floats, rate: float) -> Floats:
    periods = int(unit[-1] / rate / process.period_s) + 2
    times: Floats = np.arange(periods * _STEPS + 1.0) * (process.period_s / _STEPS)
    middle = (times[1:] + times[:-1]) / 2
    wave = 1 + process.amplitude * np.sin(2 * np.pi * middle / process.period_s)
    return _bent(unit, times, rate * np.maximum(wave, 1e-9))


def draw(
    scenario: Scenario, rate: float, rng: np.random.Generator
) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Draw arrival times [J] in seconds, sorted, and the job type [J] that each arrival must have.

    A type of -1 means that the job's type is drawn freely; only a surge sets other types.

    Args:
        scenario: with its arrival process and number of jobs.
        rate: mean arrivals a second; the jobs of a surge come on top.
        rng: random stream that is used for arrivals only.
    """
    process, jobs = scenario.arrivals, scenario.jobs
    wave = min(round(process.share * jobs), jobs - 1) if isinstance(process, Surge) else 0
    unit = np.cumsum(rng.exponential(size=jobs - wave))
    forced = np.full(jobs, -1)
    if isinstance(process, Bursty):
        return _bursty(process, unit, rate, rng), forced
    if isinstance(process, Diurnal):
        return _diurnal(process, unit, rate), forced
    times = unit / rate
    if isinstance(process, Surge):
        start = process.at * (jobs - wave) / rate
        times = np.concatenate((times, start + process.length_s * rng.random(wave)))
        forced[jobs - wave :] = [t.name for t in scenario.types].index(process.type)
        order = np.argsort(times, kind="stable")
        return times[order], forced[order]
    return times, forced
