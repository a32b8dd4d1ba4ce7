"""Plays configurations of Slurm on the first and on the later half of a history's jobs."""

from __future__ import annotations

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


BySpeeds = dict[str, list[StoredRun]]  # assumption on speeds -> run of each window


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
        self._values: dict[tuple[tuple[str, Order], str], dict[int, float]] = {}
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
        return len(SPEEDS) * (trials * max(2, first // 2) + 12 * first + 5 * later)

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
        """Play candidates on all windows of a half under every assumption on speeds."""
        cases = [
            Case(self.setting(half, speeds, one), (TWIN,), half.windows.seeds)
            for one in candidates
            for speeds in SPEEDS
        ]
        played = iter(self._play(cases))
        return [{speeds: next(played)[TWIN] for speeds in SPEEDS} for _ in candidates]

    def policies(self, half: Half, names: Sequence[str], estimates: str) -> dict[str, BySpeeds]:
        """Play other policies on all windows of a half under every assumption on speeds."""
        cases = [
            Case(self.part(half, speeds, estimates), tuple(names), half.windows.seeds)
            for speeds in SPEEDS
        ]
        played = dict(zip(SPEEDS, self._play(cases), strict=True))
        return {name: {speeds: played[speeds][name] for speeds in SPEEDS} for name in names}

    def measure(self, candidates: Sequence[Candidate], count: int, metric: str) -> list[Floats]:
        """Return a metric, mean over the assumptions, in the first `count` windows of the search.

        They are spread over the first half.
        """
        seeds = [self.first.windows.seeds[i] for i in spread(len(self.first.windows.seeds))][:count]
        known = [self._values.setdefault((one.key, metric), {}) for one in candidates]
        cases = [
            (values, Case(self.setting(self.first, speeds, one), (TWIN,), range(seed, seed + 1)))
            for one, values in zip(candidates, known, strict=True)
            for seed in seeds
            if seed not in values
            for speeds in SPEEDS
        ]
        played = self._play([case for _, case in cases])
        sums: dict[tuple[int, int], float] = {}
        for (values, case), runs in zip(cases, played, strict=True):
            place = (id(values), case.seeds[0])
            sums[place] = sums.get(place, 0.0) + float(by_window(runs[TWIN], metric)[0])
        for (values, case), _ in zip(cases, played, strict=True):
            values[case.seeds[0]] = sums[id(values), case.seeds[0]] / len(SPEEDS)
        return [np.array([values[seed] for seed in seeds]) for values in known]


def pooled(runs: BySpeeds, metric: str) -> Floats:
    """Return a metric [W] of each window, mean over the assumptions on speeds."""
    found: Floats = np.mean([by_window(some, metric) for some in runs.values()], axis=0)
    return found
