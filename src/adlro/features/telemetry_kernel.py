"""Telemetry features: the readings of a pool's GPUs as numbers in [0, 1] for a network.

A run-time estimate does not know that a GPU is worn or throttled, but its telemetry shows it: while
busy, such a GPU draws less power and moves less memory than others of its model, and a GPU that is
throttled for heat is warm even when idle. This is the only place that scales readings; the bounds
of each model come with the policy (telemetry/normalise.py computes them). Missing readings are left
out, and `meters_known` is the share of GPUs that have one: on a cluster without telemetry all
features are 0.

Dimensions: P pools, M GPU models.
"""

from __future__ import annotations

from adlro.compiled import njit
from adlro.model.state import WHOLE, Floats, Records

TELEMETRY_FEATURES = (
    "meters_known",  # share of the pool's GPUs with a reading; GPUs without one count nowhere else
    "meters_busy",  # their mean utilisation
    "meters_drive",  # mean power over utilisation of the busy ones
    "meters_drive_least",  # the smallest such ratio
    "meters_stream",  # mean memory bandwidth over utilisation of the busy ones
    "meters_stream_least",  # the smallest such ratio
    "meters_heat",  # mean temperature
    "meters_heat_free",  # the highest temperature of those with nothing on them
)
KNOWN, BUSY, DRIVE, DRIVE_LEAST, STREAM, STREAM_LEAST, HEAT, HEAT_FREE = range(
    len(TELEMETRY_FEATURES)
)

RANGES = 5  # bounds of a model: degrees and W that become 0 and 1, and GB/s that become 1
_DEGREES_0, _DEGREES_1, _WATTS_0, _WATTS_1, _GB_S = range(RANGES)
_COLDEST = 1.0  # degrees: less is no reading, such as the 0 of a cluster without telemetry
_LEAST_BUSY = 0.05  # utilisation of a busy GPU: below it the other readings are not telling


@njit
def _within(value: float, low: float, high: float) -> float:
    """Return the position of a value between two bounds as a number in [0, 1], clipped."""
    place: float = (value - low) / (high - low)
    return min(max(place, 0.0), 1.0)


@njit
def _read_pool(p: int, ranges: Floats, pools: Records, gpus: Records, x: Floats) -> None:
    """Write the telemetry features of pool p to x [TELEMETRY_FEATURES]."""
    pool, at = pools[p], RANGES * pools[p].model
    known, busy, uses, drives, streams, warm = 0, 0.0, 0, 0, 0, 0.0
    x[DRIVE] = x[STREAM] = x[HEAT_FREE] = 0.0
    x[DRIVE_LEAST] = x[STREAM_LEAST] = 1.0
    for g in range(pool.first_gpu, pool.first_gpu + pool.size):
        gpu = gpus[g]
        if not gpu.temperature >= _COLDEST:  # NaN too
            continue
        heat = _within(gpu.temperature, ranges[at + _DEGREES_0], ranges[at + _DEGREES_1])
        known, warm = known + 1, warm + heat
        if gpu.free == WHOLE:
            x[HEAT_FREE] = max(x[HEAT_FREE], heat)
        if not gpu.utilisation >= 0.0:
            continue
        uses += 1
        if gpu.utilisation < _LEAST_BUSY:
            continue
        used = min(gpu.utilisation, 1.0)
        busy += used
        if gpu.power >= 0.0:
            drive = _within(gpu.power, ranges[at + _WATTS_0], ranges[at + _WATTS_1])
            drive, drives = min(drive / used, 1.0), drives + 1
            x[DRIVE] += drive
            x[DRIVE_LEAST] = min(x[DRIVE_LEAST], drive)
        if gpu.bandwidth >= 0.0:
            stream, streams = min(gpu.bandwidth / ranges[at + _GB_S] / used, 1.0), streams + 1
            x[STREAM] += stream
            x[STREAM_LEAST] = min(x[STREAM_LEAST], stream)
    x[KNOWN], x[BUSY], x[HEAT] = known / pool.size, busy / max(uses, 1), warm / max(known, 1)
    x[DRIVE], x[STREAM] = x[DRIVE] / max(drives, 1), x[STREAM] / max(streams, 1)
    if drives == 0:
        x[DRIVE_LEAST] = 0.0
    if streams == 0:
        x[STREAM_LEAST] = 0.0


@njit
def read_pools(ranges: Floats, pools: Records, gpus: Records, x: Floats) -> None:
    """Write the F telemetry features of every pool to x [P * F].

    ranges [M * RANGES]: the bounds of the readings of each GPU model.
    """
    width = len(TELEMETRY_FEATURES)
    for p in range(len(pools)):
        _read_pool(p, ranges, pools, gpus, x[p * width : (p + 1) * width])
