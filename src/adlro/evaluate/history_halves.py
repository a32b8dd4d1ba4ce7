"""Plays configurations of Slurm on the first and on the later half of a history's jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.evaluate.batch import Batch, Case, Runs, by_window
from adlro.evaluate.run_store import StoredRun
from adlro.evaluate.slurm_search import Candidate, Order
from adlro.evaluate.variants import (
    SPEEDS,
    Variant,
    Variants,
    Windows,
    check_fit,
    refuse_short,
    restricted,
    rows_of,
    windows_of,
)
from adlro.model.cluster import Cluster
from adlro.model.state import Counts, Floats
from adlro.workloads.setting import Setting

TWIN = "slurm"
_FEWEST = 4  # windows of each half


class Half(NamedTuple):
    """Jobs of one half of a history, and the windows that they are played in."""

    rows: Counts
    windows: Windows


BySpeeds = dict[str, list[StoredRun]]  # assumption on speeds -> run of each seed


def spread(count: int) -> list[int]:
    """Return the numbers below `count` in an order whose every beginning is spread over them."""
    width = max(1, (count - 1).bit_length())
    return sorted(range(count), key=lambda i: int(f"{i:0{width}b}"[::-1], 2))


def ordered(cluster: Cluster, order: Order) -> Cluster:
    """Return the cluster with its groups of nodes in another order."""
    groups = {group.name: group for group in cluster.nodes}
    return cluster.model_copy(update={"nodes": tuple(groups[name] for name in order)})


class Halves:
    """A history whose first half is searched on, and whose later half is measured on."""

    def __init__(self, variants: Variants) -> None:
        """Prepare both halves; `play_with` says how they are played.

        Raises:
            ConfigError: the history cannot be played on the cluster, or hardly any job of it.
            TraceError: it has too few jobs.
        """
        self.variants = variants
        self._batch: Batch | None = None
        self.order: Order = tuple(group.name for group in variants.source.cluster.nodes)
        self._whole: dict[tuple[str, str, Order], Setting] = {}
        self._parts: dict[tuple[str, str, Order, int], Setting] = {}
        self._values: dict[tuple[tuple[str, Order], str], dict[int, Floats]] = {}
        for speeds in SPEEDS:
            check_fit(variants, self.whole(speeds))
        rows = rows_of(self.whole(SPEEDS[0]))
        for speeds in SPEEDS[1:]:
            rows = rows[np.isin(rows, rows_of(self.whole(speeds)))]
        middle = len(rows) // 2
        first, later = windows_of(middle), windows_of(len(rows) - middle)
        if first is None or later is None:
            raise refuse_short(variants, len(rows), 2 * _FEWEST)
        self.first, self.later = Half(rows[:middle], first), Half(rows[middle:], later)

    def play_with(self, batch: Batch) -> None:
        """Set what plays the runs."""
        self._batch = batch

    def _play(self, cases: Sequence[Case]) -> list[Runs]:
        assert self._batch is not None, "play_with comes first"
        return self._batch.play(cases)

    def expected_runs(self, trials: int) -> int:
        """Return about how many runs a search with so many trials and its measurement need."""
        first, later = len(self.first.windows.seeds), len(self.later.windows.seeds)
        return len(SPEEDS) * (trials * max(1, first // 2) + 12 * first + 5 * later)

    @property
    def few(self) -> int:
        """Windows of the first half that the fewest runs measure."""
        return self.first.windows.per_run

    def whole(self, speeds: str, estimates: str = "request", order: Order | None = None) -> Setting:
        """Prepare all jobs under an assumption on speeds, at the recorded rate of arrivals."""
        order = self.order if order is None else order
        key = (speeds, estimates, order)
        if key not in self._whole:
            cluster = None
            if order != self.order:
                cluster = ordered(self.variants.source.cluster, order)
            self._whole[key] = self.variants.setting(Variant(speeds, estimates, cluster))
        return self._whole[key]

    def part(
        self, half: Half, speeds: str, estimates: str = "request", order: Order | None = None
    ) -> Setting:
        """Prepare the jobs of one half."""
        order = self.order if order is None else order
        key = (speeds, estimates, order, int(half.rows[0]))
        if key not in self._parts:
            whole = self.whole(speeds, estimates, order)
            self._parts[key] = restricted(whole, half.rows, half.windows)
        return self._parts[key]

    def setting(self, half: Half, speeds: str, candidate: Candidate) -> Setting:
        """Prepare the jobs of one half under a candidate."""
        found = self.part(half, speeds, order=candidate.order)
        scenario = found.scenario.model_copy(update={"slurm": candidate.slurm})
        return found._replace(scenario=scenario)

    def runs(self, half: Half, candidates: Sequence[Candidate]) -> list[BySpeeds]:
        """Play candidates on a half under every assumption on speeds."""
        cases = [
            Case(self.setting(half, speeds, one), (TWIN,), half.windows.seeds)
            for one in candidates
            for speeds in SPEEDS
        ]
        played = iter(self._play(cases))
        return [{speeds: next(played)[TWIN] for speeds in SPEEDS} for _ in candidates]

    def policies(self, half: Half, names: Sequence[str], estimates: str) -> dict[str, BySpeeds]:
        """Play other policies on a half under every assumption on speeds."""
        cases = [
            Case(self.part(half, speeds, estimates), tuple(names), half.windows.seeds)
            for speeds in SPEEDS
        ]
        played = dict(zip(SPEEDS, self._play(cases), strict=True))
        return {name: {speeds: played[speeds][name] for speeds in SPEEDS} for name in names}

    def measure(self, candidates: Sequence[Candidate], count: int, metric: str) -> list[Floats]:
        """Return a metric, mean over the assumptions, in the first `count` windows of the search.

        Only whole runs are played: as many as these windows need, spread over the first half.
        """
        windows = self.first.windows
        runs = math.ceil(count / windows.per_run)
        seeds = [windows.seeds[i] for i in spread(len(windows.seeds))][:runs]
        known = [self._values.setdefault((one.key, metric), {}) for one in candidates]
        missing = [
            (values, one, seed)
            for one, values in zip(candidates, known, strict=True)
            for seed in seeds
            if seed not in values
        ]
        played = iter(
            self._play(
                [
                    Case(self.setting(self.first, speeds, one), (TWIN,), range(seed, seed + 1))
                    for _, one, seed in missing
                    for speeds in SPEEDS
                ]
            )
        )
        for values, _, seed in missing:
            own = windows._replace(total=windows.per_run, seeds=range(seed, seed + 1))
            values[seed] = pooled({s: next(played)[TWIN] for s in SPEEDS}, own, metric)
        return [np.concatenate([values[seed] for seed in seeds])[:count] for values in known]


def pooled(runs: BySpeeds, windows: Windows, metric: str) -> Floats:
    """Return a metric [W] of each window, mean over the assumptions on speeds."""
    found: Floats = np.mean([by_window(some, windows, metric) for some in runs.values()], axis=0)
    return found
