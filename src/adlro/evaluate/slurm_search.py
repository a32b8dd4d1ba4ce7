"""Searches the settings of stock Slurm, and the order in which nodes are filled, for better ones.

It plays nothing itself: a function measures candidates on windows of jobs. Half of the trials are
random, thinned out by successive halving: many candidates on a few windows, the better ones on more
of them. The others change the best candidate in one dimension at a time. At the end each change is
taken back that does not help by more than noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from adlro.model.slurm import Slurm, TresWeights
from adlro.model.state import Floats

WEIGHTS = ("weight_age", "weight_fairshare", "weight_job_size", "weight_partition", "weight_qos")
_SCALE = 100_000  # of weights, where the site has none
_LARGEST = 2**32 - 1
_LEVELS = (0.1, 1.0, 10.0)  # weights to try, in units of the scale
_DAY = 86_400.0
_MOST_PARTITIONS = 6  # that are tried as the preferred one
_BACKFILL: dict[str, tuple[float, ...]] = {
    "bf_interval_s": (10, 30, 60, 120),
    "bf_window_min": (1_440, 2_880, 5_760, 10_080),
    "bf_resolution_s": (60, 300, 600),
    "bf_max_job_test": (100, 500, 2_000),
    "bf_max_job_user": (0, 10, 30),
    "default_queue_depth": (100, 500, 2_000),
}
_RANDOM = 0.5  # share of the trials
_KEPT = 1 / 3  # share of the candidates that are measured on more windows
_ERRORS = 2.0  # standard errors that are still noise
_TRIFLE = 0.1  # percent: a change that brings less is not worth a line
_GIVEN_UP = 0.2  # share of the gain that fewer changes may cost
_WORTH = 1.0  # percent: a smaller gain is not worth any change
_ORDER = "order"  # the dimension that is no setting of Slurm's record

Order = tuple[str, ...]  # names of the cluster's groups of nodes, in which they are filled


class Candidate(NamedTuple):
    """A configuration to try."""

    slurm: Slurm
    order: Order

    @property
    def key(self) -> tuple[str, Order]:
        """Return what tells candidates apart."""
        return self.slurm.model_dump_json(), self.order


Measure = Callable[[Sequence[Candidate], int], list[Floats]]
# (candidates, n) -> the objective [n] in each of the first n windows, less is better


class Site(NamedTuple):
    """The present configuration, and what the search may change about it."""

    current: Candidate
    partitions: tuple[str, ...] = ()  # that jobs use, most used first
    orders: tuple[Order, ...] = ()  # other orders of the nodes
    has_qos: bool = False  # jobs differ in the priority of their QOS


class Option(NamedTuple):
    """New values in one dimension."""

    settings: Mapping[str, Any]  # fields of Slurm
    order: Order | None = None  # None = as it was

    def applied(self, to: Candidate) -> Candidate:
        """Return a candidate with these values."""
        slurm = to.slurm.model_copy(update=dict(self.settings)) if self.settings else to.slurm
        return Candidate(slurm, to.order if self.order is None else self.order)


Space = dict[str, list[Option]]  # dimension -> its options


class Trial(NamedTuple):
    """A candidate that was measured."""

    candidate: Candidate
    gain_pct: float  # by which its objective is below the present one, on these windows
    windows: int


class Found(NamedTuple):
    """Result of a search; `best` is the present configuration if nothing is better."""

    best: Candidate
    trials: list[Trial]  # most windows first, then best first


def neutral(slurm: Slurm) -> Slurm:
    """Return the same behaviour as priority/multifactor, on which weights take effect."""
    if slurm.priority_type == "multifactor":
        return slurm
    return slurm.model_copy(update={**_no_weights(), "priority_type": "multifactor"})


def restored(found: Slurm, site: Slurm) -> Slurm:
    """Return a found configuration with the site's priority/basic, if it does without weights."""
    if site.priority_type == "multifactor" or _weights(found):
        return found
    kept = {name: getattr(site, name) for name in (*WEIGHTS, "weight_tres", "priority_type")}
    return found.model_copy(update=kept)


def _no_weights() -> dict[str, Any]:
    return {**dict.fromkeys(WEIGHTS, 0.0), "weight_tres": TresWeights()}


def _weights(slurm: Slurm) -> list[float]:
    """Return the weights of a configuration that are not 0."""
    tres = slurm.weight_tres
    found = [*(getattr(slurm, name) for name in WEIGHTS), tres.cpu, tres.mem, tres.gpu]
    return [weight for weight in found if weight > 0]


def _levels(slurm: Slurm) -> list[float]:
    """Return the weights to try, whole numbers, commensurate with the site's largest weight."""
    scale = max(_weights(slurm), default=_SCALE)
    return sorted({float(min(_LARGEST, max(1, round(level * scale)))) for level in _LEVELS})


def _weight_options(slurm: Slurm, levels: Sequence[float]) -> Space:
    highest = levels[-1]
    small = [{"weight_job_size": level, "favor_small": True} for level in levels]
    large = [{"weight_job_size": level, "favor_small": False} for level in levels[:2]]
    ages: list[dict[str, Any]] = [{"weight_age": level} for level in (0.0, *levels)]
    ages += [{"weight_age": levels[1], "max_age_s": days * _DAY} for days in (1, 30)]
    if slurm.weight_age > 0:
        ages += [{"max_age_s": days * _DAY} for days in (1, 7, 30)]
    tres = [TresWeights(), *(slurm.weight_tres.model_copy(update={"gpu": w}) for w in levels)]
    listed: dict[str, list[dict[str, Any]]] = {
        "job size": [{"weight_job_size": 0.0}, *small, *large],
        "age": ages,
        "fair share": [{"weight_fairshare": level} for level in (0.0, *levels)],
        "TRES": [{"weight_tres": one} for one in tres],
        "all weights": [
            _no_weights(),
            {**_no_weights(), "weight_job_size": highest, "favor_small": True},
        ],
    }
    return {name: [Option(one) for one in some] for name, some in listed.items()}


def _partition_options(site: Site, levels: Sequence[float]) -> Space:
    slurm, names = site.current.slurm, site.partitions
    factors: list[dict[str, Any]] = [{"weight_partition": level} for level in (0.0, *levels)]
    tiers: list[dict[str, Any]] = [{"partition_tiers": {}}]
    for name in names[:_MOST_PARTITIONS]:
        others = dict.fromkeys((other for other in names if other != name), 0.0)
        weight = max(slurm.weight_partition, levels[1])
        factors.append({"weight_partition": weight, "partition_factors": others})
        tiers.append({"partition_tiers": {name: 2}})
    return {
        "partition factors": [Option(one) for one in factors],
        "partition tiers": [Option(one) for one in tiers],
    }


def space_of(site: Site) -> Space:
    """Return the dimensions of the search; options that change nothing are left out."""
    slurm = site.current.slurm
    levels = _levels(slurm)
    space = _weight_options(slurm, levels)
    if site.has_qos:
        space["QOS"] = [Option({"weight_qos": level}) for level in (0.0, *levels)]
    if len(site.partitions) > 1:
        space |= _partition_options(site, levels)
    if slurm.scheduler == "builtin":
        space["scheduler"] = [Option({"scheduler": "backfill"})]
    for name, values in _BACKFILL.items():
        space[name] = [Option({name: value}) for value in values]
    space[_ORDER] = [Option({}, order) for order in site.orders]
    now = site.current.key
    kept = {
        name: [one for one in options if one.applied(site.current).key != now]
        for name, options in space.items()
    }
    return {name: options for name, options in kept.items() if options}


class _Search:
    """State of one search: what was measured so far."""

    def __init__(
        self, current: Candidate, measure: Measure, windows: tuple[int, int], trials: int
    ) -> None:
        self.current, self._measure = current, measure
        self.few, self.windows = windows
        self._left = trials
        self._trials: dict[tuple[str, Order], Trial] = {}

    @property
    def left(self) -> int:
        """Candidates that may still be tried."""
        return self._left

    def new(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return the candidates that were not tried yet, each once, as many as are left."""
        unique = {one.key: one for one in candidates if one.key not in self._trials}
        unique.pop(self.current.key, None)
        return list(unique.values())[: self._left]

    def gains(self, candidates: Sequence[Candidate], count: int) -> list[float]:
        """Measure candidates on the first `count` windows; returns their gains in percent."""
        now, *values = self._measure([self.current, *candidates], count)
        base = float(now.mean())
        gains = [100 * (1 - float(one.mean()) / base) if base > 0 else 0.0 for one in values]
        for one, gain in zip(candidates, gains, strict=True):
            if one.key == self.current.key:
                continue
            before = self._trials.get(one.key)
            self._left -= before is None
            if before is None or before.windows <= count:
                self._trials[one.key] = Trial(one, gain, count)
        return gains

    def values(self, candidates: Sequence[Candidate]) -> list[Floats]:
        """Return the objective [W] of candidates in all windows."""
        return self._measure(candidates, self.windows)

    def trials(self) -> list[Trial]:
        """Return all trials, those on most windows first, then the best first."""
        return sorted(self._trials.values(), key=lambda one: (-one.windows, -one.gain_pct))


def _drawn(current: Candidate, space: Space, rng: np.random.Generator) -> Candidate:
    """Return the present configuration with random options in one to three dimensions."""
    names, found = list(space), current
    count = min(len(names), int(rng.integers(1, 4)))
    for index in rng.choice(len(names), count, replace=False).tolist():
        options = space[names[index]]
        found = options[int(rng.integers(len(options)))].applied(found)
    return found


def _halving(search: _Search, space: Space, count: int, rng: np.random.Generator) -> Candidate:
    """Return the best of random candidates, after rounds on more and more windows."""
    presets = [option.applied(search.current) for option in space.get("all weights", [])]
    presets += [option.applied(search.current) for option in space.get(_ORDER, [])[:2]]
    pool = search.new(presets)[:count]
    for _ in range(20 * count):
        if len(pool) >= count:
            break
        drawn = _drawn(search.current, space, rng)
        pool = search.new([*pool, drawn])
    windows = search.few
    while True:
        gains = search.gains(pool, windows)
        ranked = [pool[i] for i in np.argsort(-np.array(gains), kind="stable").tolist()]
        if windows == search.windows:
            best = max(gains, default=0.0)
            return ranked[0] if best > 0 else search.current
        pool = ranked[: max(2, math.ceil(len(ranked) * _KEPT))]
        windows = min(search.windows, 2 * windows)


def _climb(search: _Search, best: Candidate, space: Space, rng: np.random.Generator) -> Candidate:
    """Improve a candidate in one dimension at a time, until none helps or no trial is left."""
    [gain] = search.gains([best], search.windows)
    names, failed = list(space), 0
    while search.left > 0 and failed < len(names):
        for index in rng.permutation(len(names)).tolist():
            options = search.new(one.applied(best) for one in space[names[index]])
            failed += 1
            if options:
                [base] = search.gains([best], search.few)
                short = search.gains(options, search.few)
                first = int(np.argmax(short))
                better = (
                    search.gains([options[first]], search.windows) if short[first] > base else []
                )
                if better and better[0] > gain:
                    best, gain, failed = options[first], better[0], 0
            if search.left <= 0 or failed >= len(names):
                break
    return best


def _taken_back(candidate: Candidate, current: Candidate) -> list[Candidate]:
    """Return the candidate with each of its changes taken back alone."""
    found = []
    for name in Slurm.model_fields:
        now = getattr(current.slurm, name)
        if getattr(candidate.slurm, name) != now:
            found.append(Candidate(candidate.slurm.model_copy(update={name: now}), candidate.order))
    if candidate.order != current.order:
        found.append(Candidate(candidate.slurm, current.order))
    return found


def _simplified(search: _Search, found: Candidate) -> Candidate:
    """Take back every change that does not help by more than noise, the least helpful first.

    What goes is within the noise of that step, and all that goes costs at most a fifth of the gain.
    The whole goes if it gains less than a percent.
    """
    now, first = (float(one.mean()) for one in search.values([search.current, found]))
    least, most = _TRIFLE / 100 * now, _GIVEN_UP * (now - first)
    best = found
    while best.key != search.current.key and now - first >= _WORTH / 100 * now:
        without = _taken_back(best, search.current)
        kept, *values = search.values([best, *without])
        losses = [float((one - kept).mean()) for one in values]
        noise = [_ERRORS * float((one - kept).std(ddof=1)) / len(kept) ** 0.5 for one in values]
        needless = [
            i
            for i, one in enumerate(values)
            if losses[i] <= max(noise[i], least) and float(one.mean()) - first <= max(most, least)
        ]
        if not needless:
            return best
        best = without[min(needless, key=lambda i: losses[i])]
    return search.current


def search_best(
    site: Site, measure: Measure, windows: tuple[int, int], trials: int, rng: np.random.Generator
) -> Found:
    """Search for the configuration with the lowest objective, with as few changes as possible.

    Args:
        site: where the search begins.
        measure: plays candidates.
        windows: those of the first measurement of a candidate, and all W >= 2 that there are.
        trials: candidates to try; those of the last phase, which takes changes back, do not count.
        rng: draws candidates.
    """
    space = space_of(site)
    search = _Search(site.current, measure, windows, trials)
    best = _halving(search, space, math.ceil(_RANDOM * trials), rng)
    best = _climb(search, best, space, rng)
    return Found(_simplified(search, best), search.trials())
