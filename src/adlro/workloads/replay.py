"""The jobs of a history, made ready to be played on a scenario's cluster; filled gaps are said.

A job's type follows from what is known when it comes: its name, a rule of the scenario, or a hash
of its id (or of its place in the file), never from how long it ran.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.config.history import Recorded
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.model import gpu
from adlro.model.cluster import MB_PER_GB, Layout
from adlro.model.history import History
from adlro.model.state import JOB, WHOLE, Counts, Floats, Mask, Records
from adlro.workloads import capacity, history_file

_SHORTEST = 1.0  # seconds of a job that ran for none
_REQUEST_STEP = 300.0  # the longest run is rounded up to that
_LARGEST = 2**31 - 1


class Replay(NamedTuple):
    """K jobs of a history by submission, P pools."""

    jobs: Records  # [K] JOB; arrival = seconds since the first
    sizes: Floats  # [K] seconds on the reference GPU
    allowed: Mask  # [K, P] by what the job says of GPU models
    filled: tuple[str, ...]  # what the history does not say, and what was put there
    rows: Counts  # [K] their places in the history; none = there is no history
    est: Floats  # [K, M] seconds as foreseen at their submission; [0, M] = not asked for

    @property
    def rate(self) -> float:
        """Arrivals a second as recorded; 0 = all came at once."""
        span = float(self.jobs["arrival"][-1])
        return (len(self.jobs) - 1) / span if span > 0 else 0.0


class _Filled:
    """What was filled in, in words."""

    def __init__(self, jobs: int) -> None:
        self.said: list[str] = []
        self._jobs = jobs

    def say(self, count: int, what: str) -> None:
        """`what` holds for so many jobs, if any."""
        if count:
            who = "all jobs" if count == self._jobs else f"{count:,} of {self._jobs:,} jobs"
            self.said.append(f"{who}: {what}")


def _sizes(
    scenario: Scenario, recorded: Recorded, history: History, rows: Counts, types: Counts
) -> tuple[Floats, Mask]:
    """Seconds [K] on the reference GPU, and for which jobs the recorded GPU was known."""
    run = np.maximum(history.run_s[rows], _SHORTEST)
    if recorded.speeds == "none":
        return run, np.ones(len(rows), np.bool_)
    models = history_file.models_of(history, recorded, "gpu_model")
    speeds = np.full((len(scenario.types), len(models) + 1), np.nan)
    for t, job_type in enumerate(scenario.types):
        for m, model in enumerate(models):
            if model is not None:
                try:
                    speeds[t, m] = capacity.speed_on(job_type, model)
                except ConfigError:
                    continue
    own = speeds[types, history.gpu_model[rows]]
    return run * np.where(np.isnan(own), 1.0, own), ~np.isnan(own)


def _allowed(history: History, recorded: Recorded, rows: Counts, layout: Layout) -> Mask:
    """Where each job's own list of GPU models lets it run, [K, P]."""
    words = history.tables["allowed"]
    table = np.ones((len(words) + 1, len(layout.pools)), np.bool_)
    for w, word in enumerate(words):
        names = [recorded.gpu_names.get(name, name) for name in word.split("|") if name]
        known = set()
        for name in names:
            try:
                known.add(gpu.find(name).name)
            except ConfigError as exc:
                raise ConfigError(
                    f"{recorded.file}: a job may run on {name!r} only; {exc}; say what it is with "
                    f'gpu_names = {{ "{name}" = "…" }}'
                ) from exc
        table[w] = [layout.models[pool["model"]].name in known for pool in layout.pools]
    allowed: Mask = table[history.allowed[rows]]
    return allowed


def _account_numbers(scenario: Scenario, history: History, rows: Counts, filled: _Filled) -> Counts:
    if scenario.accounts == history_file.ONE_ACCOUNT:
        return np.zeros(len(rows), np.int64)
    column = "account" if history.tables["account"] else "queue"
    known = {name: number for number, name in enumerate(scenario.accounts)}
    for word in history.tables[column]:
        if word not in known:
            raise ConfigError(
                f"scenario {scenario.name}: accounts: {word!r} of the history is not there; add it"
            )
    found = history_file.by_code(
        getattr(history, column)[rows], [known[w] for w in history.tables[column]]
    )
    text = f"{column} unknown, charged to {scenario.accounts[0]!r}"
    filled.say(int((found < 0).sum()), text)
    return np.maximum(found, 0)


def _each(amounts: Floats, gangs: Counts, default: float, what: str, filled: _Filled) -> Counts:
    """What each GPU's part of a job needs, rounded up; `default` where the history is silent."""
    is_known = ~np.isnan(amounts)
    filled.say(int((~is_known).sum()), f"{what} = {default:g} for each GPU")
    each = np.ceil(np.where(is_known, amounts, 0.0) / gangs)
    return np.where(is_known, np.minimum(each, _LARGEST), default).astype(np.int64)


def _requested(recorded: Recorded, history: History, rows: Counts, filled: _Filled) -> Floats:
    asked, default = history.requested_s[rows], recorded.requested_s
    if default is None:
        longest = float(np.nanmax(history.run_s))
        default = max(_REQUEST_STEP, np.ceil(longest / _REQUEST_STEP) * _REQUEST_STEP)
    is_known = asked > 0
    origin = "as the scenario says" if recorded.requested_s else "the longest run of the file"
    filled.say(int((~is_known).sum()), f"requested time = {default:g} s ({origin})")
    return np.where(is_known, asked, default)


def _priority(recorded: Recorded, history: History, rows: Counts, filled: _Filled) -> Floats:
    words = history.tables["qos"]
    table = np.array([*(recorded.priorities.get(w, np.nan) for w in words), np.nan])
    found = table[history.qos[rows]]
    filled.say(int(np.isnan(found).sum()), f"priority = {recorded.priority:g}")
    return np.where(np.isnan(found), recorded.priority, found)


def _records(
    scenario: Scenario, recorded: Recorded, history: History, rows: Counts, filled: _Filled
) -> Records:
    """JOB [K], but for types."""
    jobs = np.zeros(len(rows), JOB)
    thousandths = history_file.gpus_of(history, recorded)[rows]
    gangs = np.ceil(thousandths / WHOLE).astype(np.int64)
    is_slice = thousandths < WHOLE
    rounded = ~is_slice & (thousandths % WHOLE != 0)
    filled.say(int(rounded.sum()), "parts of a GPU beyond the first are played as whole GPUs")
    jobs["gpus"], jobs["share"] = gangs, np.where(is_slice, thousandths, WHOLE)
    no_cores = np.full(len(rows), np.nan)
    cores = no_cores if recorded.gpus_from == "cores" else history.cores[rows]
    jobs["cores"] = _each(cores, gangs, recorded.cores_per_gpu, "cores", filled)
    memory = recorded.memory_gb_per_gpu * MB_PER_GB
    jobs["memory"] = _each(history.memory_mb[rows], gangs, memory, "memory MB", filled)
    on_gpu = history.gpu_memory_mb[rows] * gangs
    default = recorded.gpu_memory_gb * MB_PER_GB
    jobs["gpu_memory"] = _each(on_gpu, gangs, default, "GPU memory MB", filled)
    jobs["requested"] = _requested(recorded, history, rows, filled)
    jobs["limit"] = jobs["requested"] if scenario.limit == "kill" else np.inf
    jobs["priority"] = _priority(recorded, history, rows, filled)
    jobs["communication"], jobs["least_run"] = recorded.communication, scenario.least_run_s
    jobs["checkpoint"] = -1.0 if recorded.checkpoint_s is None else recorded.checkpoint_s
    jobs["interval"] = np.inf
    jobs["user"] = np.maximum(history.user[rows], 0)
    filled.say(int((history.user[rows] < 0).sum()), "user unknown, taken as the first one")
    jobs["account"] = _account_numbers(scenario, history, rows, filled)
    jobs["arrival"] = history.submit_s[rows] - history.submit_s[rows[0]]
    return jobs


_ASSUMED = {
    "none": "no speeds are known: all GPU models are alike",
    "measured-mix": "type drawn by a hash of the job from the three measured types of paper16",
    "gavel-types": "type drawn by a hash of the job from the 26 measured types of gavel16",
    "own": "type drawn by a hash of the job from the scenario's types",
}


def _say_types(recorded: Recorded, history: History, rows: Counts, filled: _Filled) -> None:
    text = _ASSUMED[recorded.speeds]
    if recorded.rules or recorded.speeds in ("gavel-types", "own"):
        text += ", where no name or rule says it"
    filled.say(len(rows), text)


def play(scenario: Scenario, recorded: Recorded, layout: Layout, lists: Mask) -> Replay:
    """The jobs of a scenario's history; lists [T, P] = where each type may run.

    Raises:
        TraceError: the file cannot be read.
        ConfigError: no job can be played, or one fits no pool and `unfit` is "refuse".
    """
    history = history_file.history_of(recorded)
    rows, left_out = history_file.window(history, recorded)
    left_out = [*history_file.skipped(history), *left_out]
    if history_file.users_of(history) > scenario.users:
        raise ConfigError(
            f"scenario {scenario.name}: users = {scenario.users}, but the history has "
            f"{history_file.users_of(history):,}; correct it"
        )
    types = history_file.types_of(scenario, recorded, history, rows)
    filled = _Filled(len(rows))
    jobs = _records(scenario, recorded, history, rows, filled)
    jobs["type"] = types
    sizes, is_known = _sizes(scenario, recorded, history, rows, types)
    _say_types(recorded, history, rows, filled)
    filled.say(int((~is_known).sum()), f"run time taken as that on a {gpu.REFERENCE}")
    filled.say(int((history.run_s[rows] < _SHORTEST).sum()), f"played as {_SHORTEST:g} s long")
    allowed = lists[types] & _allowed(history, recorded, rows, layout)
    home = capacity.may_run(jobs, allowed, layout) & (layout.lasting > 0)
    fits: Mask = np.asarray(home.any(axis=1))
    if not fits.all():
        _refuse_unfit(scenario, recorded, jobs, fits)
        left_out.append(f"left out: {(~fits).sum():,} jobs fit no pool of the cluster, even empty")
        jobs, sizes, allowed, rows = jobs[fits], sizes[fits], allowed[fits], rows[fits]
        jobs["arrival"] -= jobs["arrival"][0]
    if scenario.jobs > len(jobs):
        raise ConfigError(
            f"scenario {scenario.name}: jobs = {scenario.jobs:,}, but the history has "
            f"{len(jobs):,} that can be played; lower it or widen the window"
        )
    return Replay(jobs, sizes, allowed, (*left_out, *filled.said), rows, nothing_foreseen(layout))


def nothing_foreseen(layout: Layout) -> Floats:
    """Estimates of no job on the models of a cluster."""
    return np.empty((0, len(layout.models)))


def _refuse_unfit(scenario: Scenario, recorded: Recorded, jobs: Records, fits: Mask) -> None:
    one, count = jobs[~fits][0], int((~fits).sum())
    if recorded.unfit == "drop" and fits.any():
        return
    raise ConfigError(
        f"scenario {scenario.name}: {count:,} of {len(jobs):,} jobs of the history fit no pool of "
        f"the cluster, even empty (the first: {one['gpus']} GPUs with {one['cores']} cores and "
        f"{one['memory'] / MB_PER_GB:g} GB each); add nodes, or leave such jobs out with --unfit "
        "drop (in a file: unfit = 'drop')"
    )


def windows(played: Replay, count: int) -> int:
    """How many seeds have jobs of their own: those from 0 on, each with `count` in a row."""
    return len(played.jobs) // count


def part(played: Replay, count: int, stretch: float, seed: int) -> Replay:
    """The jobs of one seed: the seed-th run of `count` jobs in a row, round and round.

    Times between arrivals are multiplied by `stretch`.
    """
    first = seed * count % (len(played.jobs) - count + 1)
    some = slice(first, first + count)
    jobs = played.jobs[some].copy()
    jobs["arrival"] = (jobs["arrival"] - jobs["arrival"][0]) * stretch
    return played._replace(
        jobs=jobs,
        sizes=played.sizes[some],
        allowed=played.allowed[some],
        rows=played.rows[some],
        est=played.est[some],
    )


def classes(played: Replay, layout: Layout, speeds: Floats) -> capacity.Classes:
    """Group the jobs by type and by where they may run; see capacity.classes."""
    jobs = played.jobs
    allowed = capacity.may_run(jobs, played.allowed, layout)
    keys = np.column_stack((jobs["type"], allowed)).astype(np.int64)
    kinds, of = np.unique(keys, axis=0, return_inverse=True)
    of = of.ravel()
    count = np.bincount(of).astype(np.float64)
    spans = jobs["gpus"][:, None] > layout.pools["node_gpus"]
    factor = 1 + spans * jobs["communication"][:, None] * layout.pools["span_cost"]
    seconds = played.sizes[:, None] / speeds[jobs["type"]][:, layout.pools["model"]] * factor
    work = (jobs["gpus"] * jobs["share"] / WHOLE)[:, None] * seconds
    mean = np.stack([np.bincount(of, work[:, p]) / count for p in range(work.shape[1])], axis=1)
    return capacity.Classes(kinds[:, 0], count / len(jobs), mean, kinds[:, 1:].astype(np.bool_))


def demand_weights(played: Replay, layout: Layout) -> dict[tuple[int, ...], float]:
    """How often each demand comes: share of the jobs by all fields of DEMAND but the weight."""
    bits = 1 << np.arange(len(layout.pools))
    jobs = played.jobs
    pools = capacity.may_run(jobs, played.allowed, layout) @ bits
    fields = (pools, *(jobs[name] for name in ("gpus", "share", "cores", "memory")))
    kinds, count = np.unique(np.column_stack(fields), axis=0, return_counts=True)
    weights = count / len(jobs)
    return {tuple(kind): float(w) for kind, w in zip(kinds.tolist(), weights, strict=True)}
