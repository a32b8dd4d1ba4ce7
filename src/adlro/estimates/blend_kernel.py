"""A second stage of the estimator `memory`: its answer blended with statistics of alike jobs.

Jobs are alike if all of their words, their requested time and their size are equal. The experts are
the memory's answer, and another that it gives if it forgets faster; over the alike jobs that have
ended, the last run time, the mean of the last two, the median of the latest and the mean of the
logs; and such a median and mean over all ended jobs. The blend is their weighted mean in log
seconds. Before an alike job has ended, the statistics say what the memory says.

The weights are learned as jobs end, by exponentiated gradient descent on the absolute error: log
weights are the sum of a row for all jobs and a row for the number of alike jobs, so that a single
alike job need not be trusted as much as forty. What counts is what the experts said when the job
was submitted: when it ends, others that were submitted with it may have ended too, and the last of
them would seem to know more than it did. So what they said is kept until the job ends; an end whose
submission was not followed judges nobody.

Where GPU models are told apart, jobs are alike only on the same model, and experts speak of run
times there; only the statistics over all jobs are converted, by assumed speeds. (Converted by
learned speeds, which move while they are learned, earlier run times would be on another scale than
later ones.)

Dimensions: S slots of groups, P jobs that have not ended, M GPU models (1 without models), K
experts, C rows of weights. Run times are log seconds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, wide
from adlro.features.hypervectors.encode_kernel import mixed
from adlro.model.state import Floats, Records, Row

SLOTS = 1 << 15  # a group whose slot is taken by another one starts again
WAITING = 1 << 14  # a later job may take the place of one that has not ended
LATEST = 10
MEMORY, FORGETFUL, LAST, LAST_TWO, MEDIAN, MEAN, ALL_MEDIAN, ALL_MEAN = range(8)  # experts
EXPERTS = 8
_LIMITS = (1.0, 2.0, 4.0, 10.0, 40.0)  # alike jobs from which on another row of weights counts
ROWS = 2 + len(_LIMITS)
# Chosen on first halves of public histories, as the limits above: see docs/estimators.md.
FORGETS = 1.5  # factor of fading in the other answer of the memory
FIRST_WEIGHTS = (0.48, 0.1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01)  # before anything is learned
_STEP, _STEADY = 0.05, 300.0  # first step of log weights; jobs after which steps become smaller
_REACH = 8.0  # nats: no weight of a row falls further below its largest
ENOUGH = 50.0  # ends that have judged the experts before the memory is blended
_ODD = np.uint64(0x9E3779B97F4A7C15)
_CLIP = 1.0  # log seconds: a farther expert moves weights no further

GROUP = np.dtype(
    [
        ("key", "u8"),  # of the alike jobs; 0 = the slot is free
        ("jobs", "f8"),  # that have ended
        ("mean", "f8"),  # of their log seconds
        ("latest", "f8", (LATEST,)),  # log seconds of job n at n % LATEST
    ],
    align=True,
)
OPINION = np.dtype(
    [
        ("key", "i8"),  # 1 + source of a submitted job; 0 = the slot is free
        ("row", "i8"),  # of weights at its submission
        ("said", "f8", (EXPERTS,)),  # by the experts
    ],
    align=True,
)


class Job(NamedTuple):
    """The fields of a job that the second stage needs."""

    key: np.uint64  # equal for alike jobs, see job_fields.alike_key
    source: int  # id
    asked: float  # log of the requested seconds; nan = no request
    speeds: Floats  # [M] assumed log speed on each GPU model


class Blend(NamedTuple):
    """What the second stage has learned, and scratch arrays."""

    groups: Records  # [S] GROUP, by the lowest bits of the key
    everyone: Records  # [1] GROUP of all jobs, on the reference GPU
    waiting: Records  # [P, M] OPINION of jobs that have not ended, by a hash of their sources
    log_weights: Floats  # [C, K] row 0: of all jobs
    learned: Floats  # [C] jobs that the row has learned from
    experts: Floats  # [K] scratch
    weights: Floats  # [K] scratch
    ranked: Floats  # [LATEST] scratch


def empty(models: int = 1) -> Blend:
    """Return a second stage that has learned nothing, for M = `models` GPU models."""
    log_weights = np.zeros((ROWS, EXPERTS))
    log_weights[0] = np.log(FIRST_WEIGHTS)
    return Blend(
        np.zeros(SLOTS, GROUP),
        np.zeros(1, GROUP),
        np.zeros((WAITING, models), OPINION),
        log_weights,
        np.zeros(ROWS),
        np.zeros(EXPERTS),
        np.zeros(EXPERTS),
        np.zeros(LATEST),
    )


@njit
def _slot(key: np.uint64) -> int:
    return int(wide(key) & (SLOTS - 1))


@njit
def _row(jobs: float) -> int:
    """Return the row of weights for a number of alike jobs."""
    row = 1
    for limit in _LIMITS:
        if jobs >= limit:
            row += 1
    return row


@njit
def _median(blend: Blend, latest: Floats, count: int) -> float:
    ranked = blend.ranked
    for n in range(count):
        at = n
        while at > 0 and ranked[at - 1] > latest[n]:
            ranked[at] = ranked[at - 1]
            at -= 1
        ranked[at] = latest[n]
    return float(0.5 * (ranked[(count - 1) // 2] + ranked[count // 2]))


@njit
def _consult(blend: Blend, group: Row, count: int, speed: float) -> None:
    """Write what the statistics say of a job of this group, with so many ended, to the experts.

    speed: assumed log speed of the GPU model.
    """
    experts = blend.experts
    if count == 0:
        for k in range(LAST, EXPERTS):
            experts[k] = experts[MEMORY]
        return
    last = group.latest[(count - 1) % LATEST]
    before = group.latest[(count - 2) % LATEST] if count > 1 else last
    experts[LAST], experts[MEAN] = last, group.mean
    experts[LAST_TWO] = math.log(0.5 * (math.exp(last) + math.exp(before)))
    experts[MEDIAN] = _median(blend, group.latest, min(count, LATEST))
    every = blend.everyone[0]
    experts[ALL_MEDIAN] = _median(blend, every.latest, min(int(every.jobs), LATEST)) - speed
    experts[ALL_MEAN] = every.mean - speed


@njit
def _mean(blend: Blend, row: int, values: Floats) -> float:
    """Return the mean of values [K] by the weights of a row."""
    every, own, weights = blend.log_weights[0], blend.log_weights[row], blend.weights
    most, total, result = -np.inf, 0.0, 0.0
    for k in range(EXPERTS):
        weights[k] = every[k] + own[k]
        most = max(most, weights[k])
    for k in range(EXPERTS):
        weight = math.exp(weights[k] - most)
        total += weight
        result += weight * values[k]
    return result / total


@njit
def _place(source: int) -> int:
    return int(wide(mixed(np.uint64(1), wide(source))) & (WAITING - 1))


@njit
def _on(key: np.uint64, model: int) -> np.uint64:
    """Return the key of alike jobs on a GPU model."""
    return key + np.uint64(model) * _ODD


@njit
def blended(blend: Blend, job: Job, model: int, keeps: bool) -> float:
    """Return the blend of the memory's answers, the first two of blend.experts, and statistics.

    Before ENOUGH ends have judged the experts, it is the memory's answer. It is never above both
    that answer and the request: where requests bound the memory's answers, they bound the blend.

    Args:
        blend: the second stage.
        job: the job.
        model: index of the GPU model that the memory's answers are for.
        keeps: whether the job is submitted now, so that the experts are judged by its end.
    """
    key = _on(job.key, model)
    group = blend.groups[_slot(key)]
    count = int(group.jobs) if group.key == key else 0
    row = _row(float(count))
    _consult(blend, group, count, job.speeds[model])
    if keeps:
        opinion = blend.waiting[_place(job.source), model]
        opinion.key, opinion.row = job.source + 1, row
        for k in range(EXPERTS):
            opinion.said[k] = blend.experts[k]
    if blend.learned[0] < ENOUGH:
        return float(blend.experts[MEMORY])
    found = _mean(blend, row, blend.experts)
    return found if math.isnan(job.asked) else min(found, max(blend.experts[MEMORY], job.asked))


@njit
def forget_opinion(blend: Blend, source: int, model: int) -> None:
    """Drop what was said of a job on a GPU model, so that its end judges nobody there."""
    blend.waiting[_place(source), model].key = 0


@njit
def _count_in(group: Row, log_s: float) -> None:
    """Add a run time to the statistics of a group."""
    group.latest[int(group.jobs) % LATEST] = log_s
    group.jobs += 1.0
    group.mean += (log_s - group.mean) / group.jobs


@njit
def _bound(log_weights: Floats) -> None:
    """Keep all log weights [K] within _REACH of the largest, so that any expert can come back."""
    most = -np.inf
    for k in range(len(log_weights)):
        most = max(most, log_weights[k])
    for k in range(len(log_weights)):
        log_weights[k] = max(log_weights[k], most - _REACH)


@njit
def _judge(blend: Blend, opinion: Row, log_s: float) -> None:
    """Move the weights towards the experts that were right about a job."""
    found = _mean(blend, opinion.row, opinion.said)
    side = 1.0 if found > log_s else -1.0
    for row in (wide(0), wide(opinion.row)):
        step = _STEP / math.sqrt(1.0 + blend.learned[row] / _STEADY)
        blend.learned[row] += 1.0
        for k in range(EXPERTS):
            gap = side * (opinion.said[k] - found)
            blend.log_weights[row, k] -= step * min(max(gap, -_CLIP), _CLIP)
        _bound(blend.log_weights[row])


@njit
def learn_blend(blend: Blend, job: Job, model: int, log_s: float) -> None:
    """Learn a job that has ended: which experts were right, and its run time.

    Args:
        blend: the second stage, updated in place.
        job: the job.
        model: index of the GPU model that it ran on.
        log_s: its run time there.
    """
    opinion = blend.waiting[_place(job.source), model]
    if opinion.key == job.source + 1:
        opinion.key = 0
        _judge(blend, opinion, log_s)
    key = _on(job.key, model)
    group = blend.groups[_slot(key)]
    if group.key != key:
        group.key, group.jobs, group.mean = key, 0.0, 0.0
    _count_in(group, log_s)
    _count_in(blend.everyone[0], log_s + job.speeds[model])
