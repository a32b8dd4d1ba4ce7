"""Tables of jobs that estimators read, with the job ends and submissions as events in time order.

An estimate is made when a job is submitted, from the jobs that have ended by then. Jobs that end
exactly at that time are included; the submitted job itself never is.
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
    """Run times of J jobs, and their E events (job ends and submissions) sorted by time."""

    log_s: Floats  # [J] log of the run time in seconds; nan = never known
    order: Counts  # [E] by time: j = job j ends, -1 - j = job j is submitted
    time: Floats  # [E] time of each event, seconds


class JobTable(NamedTuple):
    """J jobs with their fields, run times and E events.

    F is the number of fillers of a job's pattern, C of job classes, M of GPU models.
    """

    source: Counts  # [J] id of each job, >= 0
    fillings: Words  # [J, F] see job_fields.py; [J, 0] = only requests are known
    requested_s: Floats  # [J] nan = no request
    asked: Floats  # [J] log of requested_s
    log_s: Floats  # [J] log of the run time: must not be read before the job ends
    model: Counts  # [J] GPU model that the job ran on; -1 = unknown
    kind: Counts  # [J] class, a row of `prior`
    prior: Floats  # [C, M] assumed log speed of each class on each model
    order: Counts  # [E] see EventOrder
    time: Floats  # [E]
    utilisation: Floats  # [J] measured mean of its GPUs, 0 to 1; must not be read before it ends
    truth: Floats  # [J, M] true seconds on each model, for `oracle` and `noisy`; [J, 0] = unknown


def end_times(history: History) -> Floats:
    """Return the time [J] at which each job ended, in seconds of the history; nan = unknown.

    A missing end is computed as start + run time, or submission + run time if there is no start.
    """
    start = np.where(np.isnan(history.start_s), history.submit_s, history.start_s)
    return np.where(np.isnan(history.end_s), start + history.run_s, history.end_s)


def event_order(submit: Floats, end: Floats, run_s: Floats) -> EventOrder:
    """Sort the ends and submissions of J jobs by time; at equal times, ends come first.

    Args:
        submit: [J] seconds; nan = unknown, and the job has no events.
        end: [J] seconds.
        run_s: [J] run times in seconds. If it or the end is nan, the job has no end event.
    """
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
    """Sort the ends and submissions of a history's rows by time.

    Runs that requeued jobs lost have no end event: how long the job takes is not known by it.
    """
    run_s = np.where(history.is_lost, np.nan, history.run_s)
    return event_order(history.submit_s, end_times(history), run_s)


def table(fillings: Words, requested_s: Floats, events: EventOrder) -> JobTable:
    """Return a table of jobs whose GPU models and true run times on each model are unknown.

    Args:
        fillings: [J, F] fillers of each job's pattern, see job_fields.py.
        requested_s: [J] requested seconds; nan or 0 = no request.
        events: run times and events of the jobs.
    """
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
        utilisation=np.full(count, np.nan),
        truth=np.zeros((count, 0)),
    )


def table_of(history: History) -> JobTable:
    """Return a table of a history's jobs, without GPU models."""
    return table(job_fields.of_history(history), history.requested_s, event_order_of(history))


def requests(requested_s: Floats, truth: Floats) -> JobTable:
    """Return a table without events from requested seconds [J] and true seconds `truth` [J, M].

    All other fields of the jobs are unknown.
    """
    nothing = EventOrder(np.full(len(truth), np.nan), np.zeros(0, np.int64), np.zeros(0))
    found = table(np.zeros((len(truth), 0), np.uint64), requested_s, nothing)
    return found._replace(truth=truth)


def with_events(jobs: JobTable, wanted: Mask) -> JobTable:
    """Return a table of the same jobs with only the events where the mask `wanted` [E] is True."""
    return jobs._replace(order=jobs.order[wanted], time=jobs.time[wanted])


def one_job(jobs: JobTable, job: int) -> JobTable:
    """Return a table of one job of a table, whose only event is its submission at time 0."""
    names = ("source", "fillings", "requested_s", "asked", "log_s", "model", "kind", "utilisation")
    rows = {name: getattr(jobs, name)[job : job + 1] for name in (*names, "truth")}
    return jobs._replace(order=np.full(1, -1), time=np.zeros(1), **rows)
