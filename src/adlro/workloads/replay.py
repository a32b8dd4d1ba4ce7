"""Jobs of a history converted to JOB records, to be replayed on a scenario's cluster.

Values that the history lacks are replaced by assumptions, and each assumption is reported.
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
from adlro.workloads import capacity, constraints, cpu_jobs, history_file
from adlro.workloads.assumptions import Assumptions
from adlro.workloads.cpu_jobs import CoreHolds

_SHORTEST = 1.0  # seconds; shorter run times are played as this
_REQUEST_STEP = 300.0  # seconds; the longest run time is rounded up to a multiple
_LARGEST = 2**31 - 1
_AFTER, _DAY = 1.0, 86_400.0


class Replay(NamedTuple):
    """K jobs to play on a cluster of P pools and M GPU models, in the order of arrival.

    Runs that requeued jobs lost are played like jobs, but not measured.
    """

    jobs: Records  # [K] JOB; arrival = seconds since the first job's
    sizes: Floats  # [K] seconds on the reference GPU
    allowed: Mask  # [K, P] pools that the lists of the job and of its type permit
    filled: tuple[str, ...]  # assumptions about what the history leaves out
    rows: Counts  # [K] rows of the history; [0] = the jobs are drawn
    holds: CoreHolds  # cores of CPU-only jobs
    est: Floats  # [K, M] estimates at submission; [0, M] = made later, by generate
    lost: Mask  # [K] runs that requeued jobs lost
    stride: int = 0  # jobs from the begin of a seed's to that of the next; 0 = those of a seed

    @property
    def rate(self) -> float:
        """Arrivals a second as recorded; 0 = all jobs were submitted at the same time."""
        span = float(self.jobs["arrival"][-1])
        return (len(self.jobs) - 1) / span if span > 0 else 0.0


def _sizes(
    scenario: Scenario, recorded: Recorded, history: History, rows: Counts, types: Counts
) -> tuple[Floats, Mask]:
    """Convert recorded run times to the reference GPU.

    Returns:
        Run times [K] in seconds, and a mask [K] of the jobs that could be converted. The others,
        whose GPU model or speed there is unknown, keep the recorded run time.
    """
    run = np.maximum(history.run_s[rows], _SHORTEST)
    if recorded.speeds == "none":
        return run, np.ones(len(rows), np.bool_)
    models, of_job = history_file.ran_on(history, recorded, scenario.cluster)
    speeds = np.full((len(scenario.types), len(models) + 1), np.nan)
    for t, job_type in enumerate(scenario.types):
        for m, model in enumerate(models):
            try:
                speeds[t, m] = capacity.speed_on(job_type, model)
            except ConfigError:
                continue
    own = speeds[types, of_job[rows]]
    return run * np.where(np.isnan(own), 1.0, own), ~np.isnan(own)


def _account_numbers(
    scenario: Scenario, history: History, rows: Counts, assumed: Assumptions
) -> Counts:
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
    assumed.add(int((found < 0).sum()), text)
    return np.maximum(found, 0)


def _each(
    amounts: Floats, gangs: Counts, default: float, what: str, assumed: Assumptions
) -> Counts:
    """Return the amount [K] for each GPU of a job, rounded up.

    Args:
        amounts: [K] amount for the whole job; nan = unknown.
        gangs: [K] GPUs of the job.
        default: amount for each GPU where `amounts` is unknown.
        what: name of the amount, for the report.
        assumed: receives the report of the jobs that get the default.
    """
    is_known = ~np.isnan(amounts)
    assumed.add(int((~is_known).sum()), f"{what} = {default:g} for each GPU")
    each = np.ceil(np.where(is_known, amounts, 0.0) / gangs)
    return np.where(is_known, np.minimum(each, _LARGEST), default).astype(np.int64)


def _requested(recorded: Recorded, history: History, rows: Counts, assumed: Assumptions) -> Floats:
    asked, default = history.requested_s[rows], recorded.requested_s
    if default is None:
        longest = float(np.nanmax(history.run_s))
        default = max(_REQUEST_STEP, np.ceil(longest / _REQUEST_STEP) * _REQUEST_STEP)
    is_known = asked > 0
    origin = "as the scenario says" if recorded.requested_s else "the longest run of the file"
    assumed.add(int((~is_known).sum()), f"requested time = {default:g} s ({origin})")
    return np.where(is_known, asked, default)


def _priority(recorded: Recorded, history: History, rows: Counts, assumed: Assumptions) -> Floats:
    words = history.tables["qos"]
    table = np.array([*(recorded.priorities.get(w, np.nan) for w in words), np.nan])
    found = table[history.qos[rows]]
    assumed.add(int(np.isnan(found).sum()), f"priority = {recorded.priority:g}")
    return np.where(np.isnan(found), recorded.priority, found)


def _records(
    scenario: Scenario, recorded: Recorded, history: History, rows: Counts, assumed: Assumptions
) -> Records:
    """Return JOB records [K] of these rows of a history, all fields filled in but the type."""
    jobs = np.zeros(len(rows), JOB)
    thousandths = history_file.gpus_of(history, recorded)[rows]
    gangs = np.ceil(thousandths / WHOLE).astype(np.int64)
    is_slice = thousandths < WHOLE
    rounded = ~is_slice & (thousandths % WHOLE != 0)
    assumed.add(int(rounded.sum()), "parts of a GPU beyond the first are played as whole GPUs")
    jobs["gpus"], jobs["share"] = gangs, np.where(is_slice, thousandths, WHOLE)
    no_cores = np.full(len(rows), np.nan)
    cores = no_cores if recorded.gpus_from == "cores" else history.cores[rows]
    jobs["cores"] = _each(cores, gangs, recorded.cores_per_gpu, "cores", assumed)
    memory = recorded.memory_gb_per_gpu * MB_PER_GB
    jobs["memory"] = _each(history.memory_mb[rows], gangs, memory, "memory MB", assumed)
    on_gpu = history.gpu_memory_mb[rows] * gangs
    default = recorded.gpu_memory_gb * MB_PER_GB
    jobs["gpu_memory"] = _each(on_gpu, gangs, default, "GPU memory MB", assumed)
    jobs["requested"] = _requested(recorded, history, rows, assumed)
    jobs["limit"] = jobs["requested"] if scenario.limit == "kill" else np.inf
    jobs["priority"] = _priority(recorded, history, rows, assumed)
    jobs["communication"], jobs["least_run"] = recorded.communication, scenario.least_run_s
    jobs["checkpoint"] = -1.0 if recorded.checkpoint_s is None else recorded.checkpoint_s
    jobs["interval"] = np.inf
    jobs["user"] = np.maximum(history.user[rows], 0)
    assumed.add(int((history.user[rows] < 0).sum()), "user unknown, taken as the first one")
    jobs["account"] = _account_numbers(scenario, history, rows, assumed)
    jobs["one_node"] = (history.one_node[rows] == 1) & (gangs > 1)
    assumed.add(
        int(jobs["one_node"].sum()),
        "gang that stays on one node, as one is recorded as requested (as it is for --gpus alone "
        "where the submitted options are not recorded)",
    )
    many = (history.one_node[rows] == 0) & (history.nodes[rows] > 1) & (gangs > 1)
    assumed.add(int(many.sum()), "ran on several nodes: played on any nodes of a pool")
    unknown = (history.one_node[rows] < 0) & (gangs > 1)
    assumed.add(int(unknown.sum()), "gang that may span nodes: whether it needs one is not known")
    jobs["start_delay"] = scenario.start_delay_s
    ready = history.ready_s()[rows]
    later = int((ready > history.submit_s[rows]).sum())
    assumed.add(later, "held, dependent or with a begin time: waits from when it became eligible")
    if history.missing("eligible_s") == history.rows:
        assumed.add(len(rows), "eligible as soon as it was submitted: nothing else is recorded")
    jobs["arrival"] = ready - ready[0]
    return jobs


_ASSUMED = {
    "none": "no speeds are known: all GPU models are alike",
    "measured-mix": "type drawn by a hash of the job from the three measured types of paper16",
    "gavel-types": "type drawn by a hash of the job from the 26 measured types of gavel16",
    "own": "type drawn by a hash of the job from the scenario's types",
}


def _add_types(recorded: Recorded, history: History, rows: Counts, assumed: Assumptions) -> None:
    text = _ASSUMED[recorded.speeds]
    if recorded.rules or recorded.speeds in ("gavel-types", "own"):
        text += ", where no name or rule says it"
    assumed.add(len(rows), text)


def play(scenario: Scenario, recorded: Recorded, layout: Layout, lists: Mask) -> Replay:
    """Return the jobs of a scenario's history, ready to be played on the cluster.

    Args:
        scenario: with its types, users and accounts.
        recorded: the history, its window and defaults for missing values.
        layout: the empty cluster.
        lists: [T, P] pools that each type's lists of GPU models and partitions permit.

    Raises:
        TraceError: the file cannot be read.
        ConfigError: too few jobs can be played, a job fits no pool and `unfit` is "refuse", or the
            scenario's users, accounts or GPU names do not match the history.
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
    assumed = Assumptions(len(rows))
    jobs = _records(scenario, recorded, history, rows, assumed)
    jobs["type"] = types
    sizes, is_known = _sizes(scenario, recorded, history, rows, types)
    _add_types(recorded, history, rows, assumed)
    assumed.add(
        int(history.is_lost[rows].sum()),
        "run that a requeued job lost: played as load from when it was eligible, not measured",
    )
    assumed.add(int((~is_known).sum()), f"run time taken as that on a {gpu.REFERENCE}")
    assumed.add(int((history.run_s[rows] < _SHORTEST).sum()), f"played as {_SHORTEST:g} s long")
    asked = constraints.allowed_pools(history, recorded, rows, layout, assumed)
    if recorded.partitions == "apply":
        jobs["partitions"] = constraints.partition_bits(history, rows, layout)
    allowed = lists[types] & asked
    home = capacity.may_run(jobs, allowed, layout) & (layout.lasting > 0)
    fits, meets = np.asarray(home.any(axis=1)), np.asarray(asked.any(axis=1))
    if not fits[meets].all():
        _refuse_unfit(scenario, recorded, jobs[meets], fits[meets])
        count = int((meets & ~fits).sum())
        left_out.append(f"left out: {count:,} jobs fit no pool that they may use, even empty")
    if not fits.all():
        _refuse_empty(scenario, recorded, fits, assumed)
        jobs, sizes, allowed, rows = jobs[fits], sizes[fits], allowed[fits], rows[fits]
        jobs["arrival"] -= jobs["arrival"][0]
    cpu = cpu_jobs.of_history(history, recorded, layout, float(history.ready_s()[rows[0]]))
    left_out += _cpu_sentences(cpu)
    if scenario.jobs > len(jobs):
        raise ConfigError(
            f"scenario {scenario.name}: jobs = {scenario.jobs:,}, but the history has "
            f"{len(jobs):,} that can be played; lower it or widen the window"
        )
    sentences = (*left_out, *assumed.sentences)
    lost = history.is_lost[rows]
    return Replay(jobs, sizes, allowed, sentences, rows, cpu.holds, no_estimates(layout), lost)


def _refuse_empty(scenario: Scenario, recorded: Recorded, fits: Mask, assumed: Assumptions) -> None:
    """Raise ConfigError if no job at all can be played."""
    if not fits.any():
        why = "; ".join(text for text in assumed.sentences if "left out" in text)
        raise ConfigError(
            f"scenario {scenario.name}: no job of {recorded.file} can run on the cluster ({why}); "
            "is this the cluster of another history?"
        )


def _cpu_sentences(cpu: cpu_jobs.CpuJobs) -> list[str]:
    """Return sentences on the CPU-only jobs that hold cores, and on those left out."""
    sentences = []
    if cpu.played:
        sentences.append(
            f"{cpu.played:,} CPU-only jobs: not scheduled; they hold their cores on their nodes at "
            "their recorded times, as far as free"
        )
    if cpu.left_out:
        sentences.append(
            f"left out: {cpu.left_out:,} jobs ask for no GPU, and hold nothing (no GPU node, "
            "cores or times of theirs are recorded)"
        )
    return sentences


def no_estimates(layout: Layout) -> Floats:
    """Return an empty array [0, M] of estimates, for jobs whose estimates are made later."""
    return np.empty((0, len(layout.models)))


def _refuse_unfit(scenario: Scenario, recorded: Recorded, jobs: Records, fits: Mask) -> None:
    one, count = jobs[~fits][0], int((~fits).sum())
    if recorded.unfit == "drop" and fits.any():
        return
    raise ConfigError(
        f"scenario {scenario.name}: {count:,} of {len(jobs):,} jobs of the history fit no pool of "
        f"the cluster that they may use, even empty (the first: {one['gpus']} GPUs"
        f"{' on one node' if one['one_node'] else ''} with {one['cores']} cores and "
        f"{one['memory'] / MB_PER_GB:g} GB each); add nodes, or leave such jobs out with --unfit "
        "drop (in a file: unfit = 'drop')"
    )


def windows(played: Replay, count: int) -> int:
    """Return the number of seeds, counted from 0, whose windows of `count` jobs do not overlap."""
    return len(played.jobs) // count


def part(played: Replay, count: int, stretch: float, seed: int) -> Replay:
    """Return the jobs that a seed plays: its window of `count` consecutive jobs.

    The window of seed s begins s * stride jobs after the first job; beyond the end of the history,
    this offset wraps around. Times between arrivals are multiplied by `stretch`.

    Raises:
        ConfigError: all jobs of the window are lost runs.
    """
    first = seed * (played.stride or count) % (len(played.jobs) - count + 1)
    some = slice(first, first + count)
    if played.lost[some].all():
        raise ConfigError(
            f"seed {seed}: plays only runs that requeued jobs lost; play more jobs (--jobs)"
        )
    jobs = played.jobs[some].copy()
    jobs["arrival"] = (jobs["arrival"] - jobs["arrival"][0]) * stretch
    begin, last = played.jobs["arrival"][[first, first + count - 1]]
    rest = _AFTER * (last - begin) + _DAY  # the last jobs wait and run after the last arrival
    return played._replace(
        holds=played.holds.within(begin, last + rest, stretch),
        jobs=jobs,
        sizes=played.sizes[some],
        allowed=played.allowed[some],
        rows=played.rows[some],
        est=played.est[some],
        lost=played.lost[some],
    )


def classes(played: Replay, layout: Layout, speeds: Floats) -> capacity.Classes:
    """Group the jobs by type and permitted pools into the classes of the capacity LP.

    Each class has the mean GPU-seconds of its jobs on each pool. speeds [T, M]: speed of each job
    type on each GPU model.
    """
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
    """Return the share of the jobs that have each distinct demand.

    The keys are tuples of the fields of DEMAND without its weight: mask of pools, GPUs, share,
    cores, memory.
    """
    bits = 1 << np.arange(len(layout.pools))
    jobs = played.jobs
    pools = capacity.may_run(jobs, played.allowed, layout) @ bits
    fields = (pools, *(jobs[name] for name in ("gpus", "share", "cores", "memory")))
    kinds, count = np.unique(np.column_stack(fields), axis=0, return_counts=True)
    weights = count / len(jobs)
    return {tuple(kind): float(w) for kind, w in zip(kinds.tolist(), weights, strict=True)}
