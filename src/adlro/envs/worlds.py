"""Steps many copies of a scenario together, for a learner that acts in all of them at once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import ArrayLike, NDArray

from adlro.envs import worlds_kernel
from adlro.envs.episode_batch import EpisodeBatch
from adlro.envs.episode_supply import EpisodeSupply, widened
from adlro.envs.worlds_kernel import ENDING, Copies, StepOptions, StepOutputs
from adlro.errors import ConfigError, PolicyError
from adlro.features import full_observation_kernel, observation_kernel
from adlro.model import violations
from adlro.model.state import DECISION, EVENT, Mask
from adlro.sim.signature import ANSWER, FLOATS, MASK, WORLD, entry_point
from adlro.sim.world import STATE_FIELDS, EmptyCluster, World, open_world
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

_OWN = (*STATE_FIELDS, *EpisodeBatch._fields)  # fields of a world of which each copy has its own
_LEDGER = ("begins", "episodes", "paid")


def typical_seconds(setting: Setting) -> float:
    """Return the mean GPU-seconds of a job: GPUs / jobs per second at the fluid-LP capacity."""
    return len(setting.layout.gpus) / setting.capacity_per_s


def _stacked(one: types.Array) -> types.Array:
    """Return the numba type of an array with an additional first dimension."""
    return types.Array(one.dtype, one.ndim + 1, "C")


def _signature() -> tuple[types.Type, ...]:
    """Return the argument types of `worlds_kernel.step`."""
    of_world = dict(zip(World._fields, WORLD.types, strict=True))
    own = {name: _stacked(of_world[name]) for name in _OWN}
    worlds = types.NamedTuple([own.get(name, one) for name, one in of_world.items()], World)
    batch = types.NamedTuple([own[name] for name in EpisodeBatch._fields], EpisodeBatch)
    counts, flags = types.int64[::1], types.boolean[::1]
    copies = types.NamedTuple([worlds, WORLD, batch, counts, flags, counts, FLOATS, ANSWER], Copies)
    seen, endings = types.float32[:, ::1], types.Array(numba.from_dtype(ENDING), 1, "C")
    outputs = types.NamedTuple([seen, MASK, FLOATS, flags, seen, endings], StepOutputs)
    options = types.NamedTuple([*[types.int64] * 5, *[types.float64] * 2], StepOptions)
    return types.int64, counts, options, copies, outputs


_ONE_AT_A_TIME = threading.Lock()  # two threads may find nothing compiled


@functools.cache
def _compiled_once() -> Callable[..., int]:
    return entry_point(worlds_kernel.step, *_signature())


def _compiled() -> Callable[..., int]:
    """Return the compiled `step` without its dispatcher, which would check types in each call."""
    with _ONE_AT_A_TIME:
        return _compiled_once()


class Worlds:
    """B copies of a scenario, each stepped from one decision (a job can start) to the next.

    Copies play the episodes of the supply in the order of their numbers. A copy whose episode ends
    begins the next one in the same step; with `stops`, the only copy stays in its last state until
    `begin`. The constructor, `begin` and `step` fill the arrays below; each step overwrites them.
    O numbers of an observation and A actions: see `features.observation_kernel`.

    observations: float32 [B, O]; if dones, the first observation of the next episode.
    masks: bool [B, A], True = the action is allowed.
    rewards: float64 [B], minus (seconds in the system of all jobs + idle_weight * idle GPU-seconds)
        since the last decision; over an episode they add up to
        -(sum of JCTs + idle_weight * idle GPU-seconds).
    dones: bool [B], whether the episode ended in this step.
    finals: float32 [B, O], the last observation of the episode; valid only if dones.
    endings: [B] worlds_kernel.ENDING, the sums of the episode; valid only if dones.
    """

    def __init__(  # noqa: PLR0913  three of them are flags
        self,
        supply: EpisodeSupply,
        count: int,
        window: int,
        idle_weight: float,
        *,
        full: bool = False,
        wait: bool = False,
        stops: bool = False,
    ) -> None:
        if count < 1:
            raise ConfigError(f"copies: at least 1, not {count}")
        if stops and (count, supply.pieces) != (1, 1):
            raise ConfigError("copies: to stop at the end, 1 that plays whole workloads is needed")
        self._stops = stops
        layout, scenario = supply.setting.layout, supply.setting.scenario
        self.supply, self.idle_weight = supply, float(idle_weight)
        self.sizes = observation_kernel.sizes(layout, len(scenario.types), window)
        self.tau = typical_seconds(supply.setting)
        self._options = StepOptions(
            window,
            self.sizes.types,
            self.sizes.columns,
            int(full),
            int(wait),
            self.tau,
            self.idle_weight,
        )
        length = self.sizes.observation
        length += full_observation_kernel.more(len(layout.pools), window) if full else 0
        self.observations = np.zeros((count, length), np.float32)
        self.masks: Mask = np.zeros((count, self.sizes.actions + int(wait)), np.bool_)
        self.rewards, self.dones = np.zeros(count), np.zeros(count, np.bool_)
        self.finals, self.endings = np.zeros_like(self.observations), np.zeros(count, ENDING)
        self._outputs = StepOutputs(*(getattr(self, name) for name in StepOutputs._fields))
        self._copies = self._new_copies(count)
        self.begins, self.episodes = self._copies.begins, self._copies.episodes
        self.paid = self._copies.paid
        self.begin(0)

    def _new_copies(self, count: int) -> Copies:
        """Return empty arrays for `count` copies, large enough for any episode."""
        batch, layout = self.supply.batch(0, 1), self.supply.setting.layout
        episode = {name: array[0] for name, array in batch._asdict().items()}
        workload = self.supply.draw(0)._replace(**episode)
        empty = open_world(EmptyCluster(layout.pools, layout.nodes, layout.gpus), workload)
        jobs = (len(workload.jobs),)
        shapes = {"running": jobs, "ends": jobs}  # slices may all run at once
        own = {
            name: np.zeros((count, *shapes.get(name, array.shape)), array.dtype)
            for name, array in empty._asdict().items()
            if name in _OWN
        }
        return Copies(
            empty._replace(**own),
            empty,
            batch,
            np.zeros(2, np.int64),
            np.ones(count, np.bool_),
            np.zeros(count, np.int64),
            np.zeros(count),
            np.zeros(1, DECISION),
        )

    @property
    def count(self) -> int:
        """The number of copies, B."""
        return len(self.rewards)

    @property
    def following(self) -> int:
        """The number of the next episode to begin."""
        return int(self._copies.cursor.sum())

    def world(self, i: int) -> World:
        """Return copy i as a world with the copy's own arrays, which must not be changed.

        The outcomes of its jobs are not recorded.
        """
        worlds = self._copies.worlds
        return worlds._replace(**{name: getattr(worlds, name)[i] for name in _OWN})

    def workload(self, i: int) -> Workload:
        """Return the workload that copy i is playing; all of its jobs count in rewards."""
        world = self.world(i)
        arrays = [getattr(world, name) for name in Workload._fields[:-1]]
        return Workload._make([*arrays, np.zeros(len(world.jobs), np.bool_)])

    def begin(self, first: int) -> None:
        """Begin an episode in every copy; the episodes are numbered from `first` on."""
        self._empty_batch(first)
        self.begins[:] = True
        self.rewards[:], self.dones[:] = 0.0, False
        self._run(np.zeros(self.count, np.int64))

    def step(self, actions: ArrayLike) -> None:
        """Take one action in each copy, and fill the arrays of the class with the results.

        Raises:
            PolicyError: an action is forbidden by the mask of its copy (then no copy has moved), or
                jobs of a copy are left waiting for ever, with nothing running.
        """
        given = np.asarray(actions)
        if given.shape != (self.count,) or given.dtype.kind not in "iu":
            raise PolicyError(
                f"actions: a whole number for each of {self.count} copies is needed, "
                f"not {given.dtype} {given.shape}"
            )
        wanted = np.ascontiguousarray(given, np.int64)
        i = worlds_kernel.first_forbidden(wanted, self.begins, self.masks)
        if i >= 0:
            who = "" if self._stops else f"copy {i}: "
            raise PolicyError(f"{who}{self.meaning(int(wanted[i]))} is not allowed now")
        self._run(wanted)

    def meaning(self, action: int) -> str:
        """Return a description of an action in words, for messages."""
        if not 0 <= action < self.masks.shape[1]:
            return f"action {action} (there are 0 to {self.masks.shape[1] - 1})"
        if action == self.sizes.actions:
            return f"action {action} (wait)"
        slot, gpu = divmod(action, self.sizes.gpus)
        return f"action {action} (start the job of slot {slot} on GPU {gpu})"

    def _run(self, actions: NDArray[np.int64]) -> None:
        first, step = 0, _compiled()
        while True:
            first = step(first, actions, self._options, self._copies, self._outputs)
            if first == self.count:
                return
            if first < 0:
                who = "the player" if self._stops else f"copy {-1 - first}"
                raise PolicyError(
                    f"{who} {violations.message(self._copies.worlds.totals[-1 - first, 0])}"
                )
            if self._stops and self.dones[0]:
                return
            self._refill()

    def _empty_batch(self, following: int) -> None:
        """Mark the batch as used up, so that the next step draws episodes from `following` on."""
        rows = len(self._copies.batch.jobs)
        self._copies.cursor[:] = rows, following - rows

    def _refill(self) -> None:
        """Replace the batch, which is used up, by the next episodes of the supply."""
        number, worlds = self.following, self._copies.worlds
        batch = self.supply.batch(number, self.count)
        width = max(batch.events.shape[1], worlds.events.shape[1])
        self._copies = self._copies._replace(
            worlds=worlds._replace(events=widened(worlds.events, width)),
            batch=batch._replace(events=widened(batch.events, width)),
        )
        self._copies.cursor[:] = 0, number

    def _mutable_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that steps change, by name; without the number of the next episode."""
        worlds = self._copies.worlds
        arrays = {f"state.{name}": getattr(worlds, name) for name in STATE_FIELDS}
        arrays |= {f"episode.{name}": getattr(worlds, name) for name in EpisodeBatch._fields}
        return arrays | {name: getattr(self, name) for name in (*_LEDGER, *StepOutputs._fields)}

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays that `restore` needs to continue with identical steps."""
        copies = {name: array.copy() for name, array in self._mutable_arrays().items()}
        return copies | {"following": np.array([self.following], np.int64)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a checkpoint, taken from `Worlds` created with the same arguments.

        Raises:
            ConfigError: the checkpoint belongs to other worlds.
        """
        following = arrays.get("following")
        if following is None or following.shape != (1,):
            raise ConfigError("checkpoint: 'following' is missing: these are not of worlds")
        worlds = self._copies.worlds
        width = np.shape(arrays.get("episode.events", worlds.events))[-1]
        worlds = worlds._replace(events=np.zeros((self.count, width), EVENT))
        present = self._mutable_arrays() | {"episode.events": worlds.events}
        for name, array in present.items():
            found = arrays.get(name)
            if found is None or (found.shape, found.dtype.names) != (
                array.shape,
                array.dtype.names,
            ):
                raise ConfigError(f"checkpoint: {name!r} is missing or of other worlds than these")
        for name, array in present.items():
            array[...] = arrays[name]
        self._copies = self._copies._replace(worlds=worlds)
        self._empty_batch(int(following[0]))
