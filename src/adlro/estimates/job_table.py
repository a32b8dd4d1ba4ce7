"""Tables of jobs as estimators see them, with the order in which ends and submissions occur.

An estimate is made when a job is submitted, from jobs that have ended by then: an end at that very
moment counts, the job's own never does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.estimates import job_fields
from adlro.features.hypervectors.schema import Words
from adlro.model.history import History
from adlro.model.state import Counts, Floats, Mask

SHORTEST_S = 1.0  # shorter run times count as this


class EventOrder(NamedTuple):
    """Ends and submissions of J jobs in the order of time; E events."""

    log_s: Floats  # [J] log of the run time in seconds; nan = never known
    order: Counts  # [E] by time: j = job j ends, -1 - j = it is submitted
    time: Floats  # [E] seconds


class JobTable(NamedTuple):
    """J jobs, their fields and their events; E events, F fillers, C classes of jobs, M models."""

    source: Counts  # [J] id of each job, >= 0
    fillings: Words  # [J, F] see job_fields.py; [J, 0] = only requests are known
    requested_s: Floats  # [J] nan = no request
    asked: Floats  # [J] log of it
    log_s: Floats  # [J] log of the run time: must not be read before the job ends
    model: Counts  # [J] GPU model that it ran on; -1 = unknown
    kind: Counts  # [J] class, a row of `prior`
    prior: Floats  # [C, M] assumed log speed of each class on each model
    order: Counts  # [E] see EventOrder
    time: Floats  # [E]
    truth: Floats  # [J, M] true seconds on each model, for `oracle` and `noisy`; [J, 0] = unknown


def end_times(history: History) -> Floats:
    """When each job ended [J]: as recorded, else its start (or submission) + its run time."""
    start = np.where(np.isnan(history.start_s), history.submit_s, history.start_s)
    return np.where(np.isnan(history.end_s), start + history.run_s, history.end_s)


def event_order(submit: Floats, end: Floats, run_s: Floats) -> EventOrder:
    """Order the ends and submissions of J jobs; nan in any of the three = unknown."""
    jobs = np.arange(len(submit))
    is_known = ~np.isnan(submit + end + run_s)
    log_s = np.where(is_known, np.log(np.maximum(run_s, SHORTEST_S)), np.nan)
    end = np.maximum(end, np.nextafter(submit, np.inf))  # no job is learned before its submission
    submitted, ended = jobs[~np.isnan(submit)], jobs[is_known]
    time = np.concatenate((end[ended], submit[submitted]))
    is_submission = np.repeat((0, 1), (len(ended), len(submitted)))
    places = np.lexsort((is_submission, time))
    return EventOrder(log_s, np.concatenate((ended, -1 - submitted))[places], time[places])


def event_order_of(history: History) -> EventOrder:
    """Order the ends and submissions of a history's jobs."""
    return event_order(history.submit_s, end_times(history), history.run_s)


def table(fillings: Words, requested_s: Floats, events: EventOrder) -> JobTable:
    """Table of jobs whose GPU models are unknown; requested_s [J], nan or 0 = no request."""
    count = len(fillings)
    requested = np.where(requested_s > 0, requested_s, np.nan)
    return JobTable(
        source=np.arange(count),
        fillings=fillings,
        requested_s=requested,
        asked=np.log(requested),
        log_s=events.log_s,
        model=np.full(count, -1),
        kind=np.zeros(count, np.int64),
        prior=np.zeros((1, 0)),
        order=events.order,
        time=events.time,
        truth=np.zeros((count, 0)),
    )


def table_of(history: History) -> JobTable:
    """Table of a history's jobs."""
    return table(job_fields.of_history(history), history.requested_s, event_order_of(history))


def requests(requested_s: Floats, truth: Floats) -> JobTable:
    """Table of jobs of which only requests [J] and true run times [J, M] are known."""
    nothing = EventOrder(np.full(len(truth), np.nan), np.zeros(0, np.int64), np.zeros(0))
    found = table(np.zeros((len(truth), 0), np.uint64), requested_s, nothing)
    return found._replace(truth=truth)


def with_events(jobs: JobTable, wanted: Mask) -> JobTable:
    """The same jobs with some of the events [E] only."""
    return jobs._replace(order=jobs.order[wanted], time=jobs.time[wanted])
