"""Settings of a plan: the same jobs on each alternative cluster, at each assumed speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.config.files import adjusted
from adlro.errors import ConfigError, PolicyError
from adlro.evaluate.batch import Batch, Case, Runs
from adlro.evaluate.purchase import Alternative, unused_name, with_nodes
from adlro.evaluate.variants import (
    SPEED_WORDS,
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
from adlro.evaluate.worth import Steps, steps
from adlro.model.cluster import Cluster, NodeGroup
from adlro.model.state import Counts, Mask
from adlro.policies import registry
from adlro.workloads import capacity
from adlro.workloads.setting import Setting

AS_IT_IS = "as it is"
_MOST_STRANDED = 0.05  # share of the jobs: an option that strands more is not simulated
_LARGEST_WINDOW = 1_000  # jobs
_PLAIN = SPEEDS[0]  # under which the speed of every model is known


class Contender(NamedTuple):
    """An alternative with its whole history prepared, by the assumption on speeds."""

    option: Alternative
    settings: dict[str, Setting]  # by speeds; {} = no job can run there
    stranded: int  # jobs that can run on the cluster as it is, but not here
    notes: tuple[str, ...]


class Study(NamedTuple):
    """What a plan simulates: all contenders play the same jobs in the same windows."""

    variants: Variants
    contenders: list[Contender]  # the first is the cluster as it is
    left_out: list[Contender]  # they strand too many jobs; fewest stranded first
    policies: tuple[str, ...]
    rows: Counts  # of the history, in the order of arrival
    windows: Windows
    grow: float
    jobs: int  # that can run on the cluster as it is
    notes: tuple[str, ...]
    estimated: Estimated
    larger: Steps  # clusters on which today's scheduler may do as well as a policy

    @property
    def base(self) -> Contender:
        """The cluster as it is."""
        return self.contenders[0]

    def cases(self, contender: Contender, policies: tuple[str, ...]) -> list[Case]:
        """Return the cases of a contender, one for each assumption on speeds."""
        return [
            Case(restricted(one, self.rows, self.windows, self.grow), policies, self.windows.seeds)
            for one in contender.settings.values()
        ]

    @property
    def runs(self) -> int:
        """Number of runs of all contenders, and of today's scheduler on larger clusters at most."""
        each = sum(len(one.settings) for one in self.contenders) * len(self.policies)
        more = len(self.larger.clusters) * len(self.base.settings)
        return (each + more) * len(self.windows.seeds)

    def play(
        self, batch: Batch, contenders: Sequence[Contender], policies: tuple[str, ...]
    ) -> list[dict[str, Runs]]:
        """Return the runs of each contender by speeds.

        Raises:
            PolicyError: a policy fails.
        """
        cases = [self.cases(one, policies) for one in contenders]
        found = iter(batch.play([case for some in cases for case in some]))
        return [{speeds: next(found) for speeds in one.settings} for one in contenders]


class Estimated:
    """Prepares clusters with the run times and estimates of one setting that has all GPU models.

    Recorded run times are converted by the models that jobs ran on, which a cluster without them
    no longer names; and estimators need to follow the history only once.
    """

    def __init__(self, variants: Variants, options: Sequence[Alternative]) -> None:
        self._variants = variants
        self._whole = {
            speeds: variants.setting(Variant(speeds, "memory", _union(variants, options, speeds)))
            for speeds in _usable(variants)
        }

    @property
    def speeds(self) -> tuple[str, ...]:
        """Assumptions under which the speeds of all models of the cluster as it is are known."""
        return tuple(self._whole)

    def jobs(self, rows: Counts) -> int:
        """Return how many of these rows are jobs: runs that requeued jobs lost are not."""
        return int((~self._variants.history.is_lost[rows]).sum())

    def setting(self, speeds: str, cluster: Cluster) -> Setting:
        """Prepare the history on a cluster.

        Raises:
            ConfigError: a speed is not known, or no job can run there.
        """
        whole = self._whole[speeds]
        found = self._variants.setting(Variant(speeds, "request", cluster))
        assert whole.played is not None
        assert found.played is not None
        place = np.full(self._variants.history.rows, -1)
        place[whole.played.rows] = np.arange(len(whole.played.rows))
        own, names = place[found.played.rows], [model.name for model in whole.models]
        assert (own >= 0).all(), "a job that the union of all clusters cannot play"
        columns = [names.index(model.name) for model in found.models]
        played = found.played._replace(
            sizes=whole.played.sizes[own], est=whole.played.est[own][:, columns]
        )
        scenario = adjusted(found.scenario, estimates="memory")
        return found._replace(scenario=scenario, played=played)


def _usable(variants: Variants) -> list[str]:
    """Return the assumptions under which the cluster as it is can be simulated.

    Raises:
        ConfigError: there are none.
    """
    found = []
    for speeds in SPEEDS:
        try:
            variants.setting(Variant(speeds, "request"))
        except ConfigError:
            if speeds == _PLAIN:
                raise
            continue
        found.append(speeds)
    return found


def _union(variants: Variants, options: Sequence[Alternative], speeds: str) -> Cluster:
    """Return the cluster with the new nodes of all options that can be simulated."""
    base = variants.source.cluster
    nodes: list[NodeGroup] = list(base.nodes)
    for option in options:
        new = [group for group in option.cluster.nodes if group.name in option.new]
        try:
            if new:
                variants.setting(Variant(speeds, "request", option.cluster))
        except ConfigError:  # _contender says why
            continue
        for group in new:
            nodes.append(group.model_copy(update={"name": unused_name(group.name, nodes)}))
    return with_nodes(base, nodes)


def _contender(option: Alternative, estimated: Estimated, before: Counts | None) -> Contender:
    """Prepare an alternative; before: rows that the cluster as it is plays."""
    settings: dict[str, Setting] = {}
    notes = list(option.notes)
    for speeds in estimated.speeds:
        try:
            settings[speeds] = estimated.setting(speeds, option.cluster)
        except ConfigError as exc:
            if speeds != _PLAIN:
                notes.append(f"{option.name}: not simulated with {SPEED_WORDS[speeds]}: {exc}")
                continue
            if option.new or before is None:
                raise
            return Contender(option, {}, estimated.jobs(before), (*notes, f"{option.name}: {exc}"))
    rows = rows_of(settings[_PLAIN])
    if before is None:
        return Contender(option, settings, 0, tuple(notes))
    stranded = estimated.jobs(before[~np.isin(before, rows)])
    gained = estimated.jobs(rows[~np.isin(rows, before)])
    if gained:
        notes.append(
            f"{option.name}: {gained:,} more jobs, which fit nowhere today, could run; they are "
            "not counted"
        )
    return Contender(option, settings, stranded, tuple(notes))


def _new_pools(setting: Setting, option: Alternative) -> Mask:
    """Return a mask [P] of the pools that have new nodes only."""
    layout = setting.layout
    is_new = np.array([group.name in option.new for group in layout.groups])
    old = np.bincount(layout.nodes["pool"][~is_new], minlength=len(layout.pools))
    mask: Mask = old == 0
    return mask


def who_may_use(study: Study, contender: Contender) -> str | None:
    """Say how many jobs can use an option's new nodes, and how many are bound to other GPU types.

    None = the option adds nothing, or nodes just like existing ones.
    """
    option, history = contender.option, study.variants.history
    setting = contender.settings[_PLAIN]
    pools = _new_pools(setting, option)
    if not option.new or not pools.any():
        return None
    played, recorded = setting.played, setting.scenario.history
    assert played is not None
    assert recorded is not None
    able = capacity.may_run(played.jobs, played.allowed, setting.layout)[:, pools].any(axis=1)
    rows = played.rows
    typed = np.zeros(len(rows), np.bool_)
    if recorded.gpu_types != "ignore":
        typed = history.allowed[rows] >= 0
    if recorded.gpu_types == "allocated":
        typed = typed | (history.gpu_model[rows] >= 0)
    counted = np.isin(rows, study.rows) & ~history.is_lost[rows]
    usable, bound = int((able & counted).sum()), int((~able & typed & counted).sum())
    rest = int(counted.sum()) - usable - bound
    text = f"{option.name}: {usable:,} of {int(counted.sum()):,} jobs can use the new GPUs"
    text += f"; {bound:,} cannot, as they ask for another GPU type by name" if bound else ""
    return text + (f"; {rest:,} do not fit them" if rest else "")


def _playable(names: Sequence[str], contenders: Sequence[Contender]) -> tuple[list[str], list[str]]:
    """Return the policies that can run on all contenders, and a note on each other one.

    Raises:
        PolicyError: a policy is unknown, or none can run.
    """
    able, notes = [], []
    for name in names:
        reasons = [
            (one.option.name, registry.refusal(name, setting))
            for one in contenders
            for setting in one.settings.values()
        ]
        why = next(((where, reason) for where, reason in reasons if reason is not None), None)
        if why is None:
            able.append(name)
        else:
            notes.append(f"{name} is left out: it cannot run on the option {why[0]!r}: {why[1]}")
    if not able:
        raise PolicyError("; ".join(notes) or "name at least one policy")
    return able, notes


def make_study(
    variants: Variants, options: Sequence[Alternative], policies: Sequence[str], grow: float = 1.0
) -> Study:
    """Prepare the history on all options, and choose the jobs that all of them can play.

    Raises:
        ConfigError: the cluster is that of another history.
        TraceError: the history is too short.
        PolicyError: a policy is unknown, or none can run.
    """
    larger = steps(variants.source.cluster)
    largest = Alternative("", larger.clusters[-1], None, (larger.clusters[-1].nodes[-1].name,))
    estimated = Estimated(variants, (*options, largest))
    base = _contender(Alternative(AS_IT_IS, variants.source.cluster, None), estimated, None)
    check_fit(variants, base.settings[_PLAIN])
    before = rows_of(base.settings[_PLAIN])
    others = [_contender(option, estimated, before) for option in options]
    most = _MOST_STRANDED * estimated.jobs(before)
    kept = [base, *(one for one in others if one.stranded <= most)]
    rest = sorted((one for one in others if one.stranded > most), key=lambda one: one.stranded)
    rows = before
    for one in kept:
        for setting in one.settings.values():
            rows = rows[np.isin(rows, rows_of(setting))]
    windows = windows_of(len(rows), largest=_LARGEST_WINDOW)
    if windows is None:
        raise refuse_short(variants, len(rows))
    able, notes = _playable(policies, kept)
    notes += [
        f"{SPEED_WORDS[speeds]}: left out, the speed of a model of the cluster is not known"
        for speeds in SPEEDS
        if speeds not in estimated.speeds
    ]
    return Study(
        variants=variants,
        contenders=kept,
        left_out=rest,
        policies=tuple(able),
        rows=rows,
        windows=windows,
        grow=grow,
        jobs=estimated.jobs(before),
        notes=tuple(notes),
        estimated=estimated,
        larger=larger,
    )
