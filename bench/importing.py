"""Speed of reading job histories, compared with pandas.read_csv on the same file if installed."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adlro.workloads.formats.registry import read
from bench.clock import Setup, best_times
from bench.figure import Bar, Figure, figure, ratio

JOBS = 300_000
_BAR = Bar(">=", 200_000)
_RUN_TIME_SIGMA = 2.0  # lognormal
_SACCT = (
    "JobIDRaw|JobName|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|"
    "AllocTRES\n"
)


def has_pandas() -> bool:
    """Whether pandas is installed; it comes with the extra `bench`."""
    return importlib.util.find_spec("pandas") is not None


class _Job(NamedTuple):
    """One line of a history; times in whole seconds."""

    number: int
    submit: int
    wait: int
    run: int
    gpus: int
    user: int


def _jobs(count: int) -> Iterator[_Job]:
    rng = np.random.default_rng(0)
    submit = np.cumsum(rng.exponential(30, count))
    run = np.exp(rng.normal(7, _RUN_TIME_SIGMA, count)) + 1
    columns = (
        np.arange(1, count + 1),
        submit.astype(np.int64),
        rng.exponential(600, count).astype(np.int64),
        run.astype(np.int64),
        2 ** rng.integers(0, 5, count),
        rng.integers(1, 500, count),
    )
    for values in zip(*(column.tolist() for column in columns), strict=True):
        yield _Job._make(values)


def _swf(job: _Job) -> str:
    asked = f"{job.gpus} {2 * job.run} -1 1 {job.user} {job.user % 20} -1 1 1 -1 -1"
    return f"{job.number} {job.submit} {job.wait} {job.run} {job.gpus} -1 -1 {asked}\n"


def _csv(job: _Job) -> str:
    return (
        f"j{job.number},{job.submit},{job.submit + job.wait},{job.run},{job.gpus},u{job.user},"
        f"{2 * job.run},queue{job.user % 5},COMPLETED\n"
    )


def _date(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    days, hour = divmod(hours, 24)
    month, day = divmod(days, 28)
    year, month = divmod(month, 12)
    return f"{2020 + year}-{month + 1:02}-{day + 1:02}T{hour:02}:{rest // 60:02}:{rest % 60:02}"


def _sacct(job: _Job) -> str:
    begin, minutes = job.submit + job.wait, job.run // 30 + 1
    return (
        f"{job.number}|train{job.user % 50}|u{job.user}|a{job.user % 20}|gpu|COMPLETED|"
        f"{_date(job.submit)}|{_date(begin)}|{_date(begin + job.run)}|{job.run}|{minutes}|"
        f"cpu={4 * job.gpus},gres/gpu={job.gpus},mem={16 * job.gpus}G,node=1\n"
    )


class HistoryFormat(NamedTuple):
    """How a format is written here and read by pandas."""

    head: str
    line: Callable[[_Job], str]
    pandas: dict[str, object]  # arguments of read_csv


FORMATS = {
    "swf": HistoryFormat("; Version: 2.2\n", _swf, {"sep": r"\s+", "comment": ";", "header": None}),
    "csv": HistoryFormat(
        "id,submit_time,start_time,run_s,gpus,user,requested_s,queue,status\n", _csv, {"sep": ","}
    ),
    "sacct": HistoryFormat(_SACCT, _sacct, {"sep": "|"}),
}


def write(path: Path, history: HistoryFormat, count: int) -> None:
    """Write a history of `count` random jobs."""
    with path.open("w", encoding="utf-8") as file:
        file.write(history.head)
        file.writelines(map(history.line, _jobs(count)))


def _theirs(path: Path, history: HistoryFormat) -> Setup:
    import pandas

    return lambda: lambda: pandas.read_csv(path, **history.pandas)


def speed(name: str, count: int, repeats: int) -> list[Figure]:
    """Jobs per CPU second in one of FORMATS, and the ratio to pandas."""
    history = FORMATS[name]
    with tempfile.TemporaryDirectory(prefix="adlro-bench-") as folder:
        path = Path(folder) / "jobs.txt"
        write(path, history, count)
        setups: list[Setup] = [lambda: lambda: read(path)]
        if has_pandas():
            setups.append(_theirs(path, history))
        # pandas may use threads of its own; all of their CPU time counts
        speeds = [count / seconds for seconds in best_times(setups, repeats, time.process_time)]
    found = [figure(f"import of {name}", speeds[0], "jobs/CPU-s", _BAR)]
    if len(speeds) > 1:
        versus = f"import of {name} / pandas.read_csv"
        found.append(ratio(versus, speeds[0], speeds[1], "x, of jobs/CPU-s"))
    return found
