"""Many copies of a scenario that a learner steps together."""

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
from adlro.envs.bank import EpisodeBatch
from adlro.envs.supply import EpisodeSupply, widened
from adlro.envs.worlds_kernel import ENDING, Copies, Shown, Terms
from adlro.errors import ConfigError, PolicyError
from adlro.features import full_observation_kernel, observation_kernel
from adlro.model import violations
from adlro.model.state import DECISION, EVENT, Mask
from adlro.sim.signature import ANSWER, FLOATS, MASK, WORLD, entry_point
from adlro.sim.world import STATE_FIELDS, Empty, World, open_world
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

_OWN = (*STATE_FIELDS, *EpisodeBatch._fields)  # fields of a world that each copy has for itself
_LEDGER = ("begins", "episodes", "paid")


def typical_seconds(setting: Setting) -> float:
    """GPU-seconds of a mean job where the cluster is used best."""
    return len(setting.layout.gpus) / setting.capacity_per_s


def _stacked(one: types.Array) -> types.Array:
    """The type of an array with a first dimension more."""
    return types.Array(one.dtype, one.ndim + 1, "C")


def _signature() -> tuple[types.Type, ...]:
    """What `worlds_kernel.step` is compiled for."""
    of_world = dict(zip(World._fields, WORLD.types, strict=True))
    own = {name: _stacked(of_world[name]) for name in _OWN}
    worlds = types.NamedTuple([own.get(name, one) for name, one in of_world.items()], World)
    bank = types.NamedTuple([own[name] for name in EpisodeBatch._fields], EpisodeBatch)
    counts, flags = types.int64[::1], types.boolean[::1]
    copies = types.NamedTuple([worlds, WORLD, bank, counts, flags, counts, FLOATS, ANSWER], Copies)
    seen, endings = types.float32[:, ::1], types.Array(numba.from_dtype(ENDING), 1, "C")
    shown = types.NamedTuple([seen, MASK, FLOATS, flags, seen, endings], Shown)
    terms = types.NamedTuple([*[types.int64] * 5, *[types.float64] * 2], Terms)
    return types.int64, counts, terms, copies, shown


_ONE_AT_A_TIME = threading.Lock()  # two threads may both find that nothing is compiled yet


@functools.cache
def _compiled_once() -> Callable[..., int]:
    return entry_point(worlds_kernel.step, *_signature())


def _compiled() -> Callable[..., int]:
    """The kernel's `step` without its dispatcher, which would look at all types in each call."""
    with _ONE_AT_A_TIME:
        return _compiled_once()


class Worlds:
    """B copies of a scenario, each at a moment in which at least one job can start.

    One copy can also be told to stop: its last state then stays until `begin`.

    Copies play the episodes of the supply in the order of their numbers: who is done takes the next
    one in the same step. After `step`, and before the first one, these arrays hold what a learner
    needs; they are overwritten by the next step. O and A: see `features.observation_kernel`.

    observations: float32 [B, O]; where dones, already those of the next episode.
    masks: bool [B, A] which actions are allowed.
    rewards: float64 [B] minus (seconds in the system of all jobs + idle_weight * GPU-seconds idle)
        since the last decision; over an episode they add up to -(sum of JCT + weight * idle).
    dones: bool [B] whose episode ended in this step.
    finals: float32 [B, O] what was seen at the end, where dones.
    endings: [B] worlds_kernel.ENDING, where dones: number, jobs, sums of JCT and of idle time.
    """

    def __init__(  # noqa: PLR0913  three of them say no more than yes or no
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
        self._terms = Terms(
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
        self._shown = Shown(*(getattr(self, name) for name in Shown._fields))
        self._copies = self._made(count)
        self.begins, self.episodes = self._copies.begins, self._copies.episodes
        self.paid = self._copies.paid
        self.begin(0)

    def _made(self, count: int) -> Copies:
        """Arrays for so many copies, as large as an episode can need them."""
        bank, layout = self.supply.bank(0, 1), self.supply.setting.layout
        episode = {name: array[0] for name, array in bank._asdict().items()}
        workload = self.supply.draw(0)._replace(**episode)
        empty = open_world(Empty(layout.pools, layout.nodes, layout.gpus), workload)
        jobs = (len(workload.jobs),)
        rooms = {"running": jobs, "ends": jobs}  # all at once, if they are slices
        own = {
            name: np.zeros((count, *rooms.get(name, array.shape)), array.dtype)
            for name, array in empty._asdict().items()
            if name in _OWN
        }
        return Copies(
            empty._replace(**own),
            empty,
            bank,
            np.zeros(2, np.int64),
            np.ones(count, np.bool_),
            np.zeros(count, np.int64),
            np.zeros(count),
            np.zeros(1, DECISION),
        )

    @property
    def count(self) -> int:
        """B."""
        return len(self.rewards)

    @property
    def following(self) -> int:
        """Number of the next episode that a copy will begin."""
        return int(self._copies.cursor.sum())

    def world(self, i: int) -> World:
        """Copy i as a world: its own arrays, not to be changed; its outcome is kept by nobody."""
        worlds = self._copies.worlds
        return worlds._replace(**{name: getattr(worlds, name)[i] for name in _OWN})

    def workload(self, i: int) -> Workload:
        """What comes to copy i."""
        world = self.world(i)
        return Workload._make(getattr(world, name) for name in Workload._fields)

    def begin(self, first: int) -> None:
        """Let every copy begin anew, with episodes from number `first` on."""
        self._empty_bank(first)
        self.begins[:] = True
        self.rewards[:], self.dones[:] = 0.0, False
        self._run(np.zeros(self.count, np.int64))

    def step(self, actions: ArrayLike) -> None:
        """Do one action in each copy, and fill the arrays anew.

        Raises:
            PolicyError: a copy was given an action that its mask forbids (then none has moved), or
                waits for ever.
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
        """An action in words."""
        if not 0 <= action < self.masks.shape[1]:
            return f"action {action} (there are 0 to {self.masks.shape[1] - 1})"
        if action == self.sizes.actions:
            return f"action {action} (wait)"
        slot, gpu = divmod(action, self.sizes.gpus)
        return f"action {action} (start the job of slot {slot} on GPU {gpu})"

    def _run(self, actions: NDArray[np.int64]) -> None:
        first, step = 0, _compiled()
        while True:
            first = step(first, actions, self._terms, self._copies, self._shown)
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

    def _empty_bank(self, following: int) -> None:
        """Let the bank be used up, so that the next step draws the episodes from this number on."""
        rows = len(self._copies.bank.jobs)
        self._copies.cursor[:] = rows, following - rows

    def _refill(self) -> None:
        """Replace a bank that is used up."""
        number, worlds = self.following, self._copies.worlds
        bank = self.supply.bank(number, self.count)
        width = max(bank.events.shape[1], worlds.events.shape[1])
        self._copies = self._copies._replace(
            worlds=worlds._replace(events=widened(worlds.events, width)),
            bank=bank._replace(events=widened(bank.events, width)),
        )
        self._copies.cursor[:] = 0, number

    def _kept(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name, but for the number of the next episode."""
        worlds = self._copies.worlds
        arrays = {f"state.{name}": getattr(worlds, name) for name in STATE_FIELDS}
        arrays |= {f"episode.{name}": getattr(worlds, name) for name in EpisodeBatch._fields}
        return arrays | {name: getattr(self, name) for name in (*_LEDGER, *Shown._fields)}

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Copies of all arrays that `restore` needs to go on with the very same steps."""
        copies = {name: array.copy() for name, array in self._kept().items()}
        return copies | {"following": np.array([self.following], np.int64)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a checkpoint of worlds that were made with the same arguments.

        Raises:
            ConfigError: it is of other worlds.
        """
        following = arrays.get("following")
        if following is None or following.shape != (1,):
            raise ConfigError("checkpoint: 'following' is missing: these are not of worlds")
        worlds = self._copies.worlds
        width = np.shape(arrays.get("episode.events", worlds.events))[-1]
        worlds = worlds._replace(events=np.zeros((self.count, width), EVENT))
        kept = self._kept() | {"episode.events": worlds.events}
        for name, array in kept.items():
            found = arrays.get(name)
            if found is None or (found.shape, found.dtype.names) != (
                array.shape,
                array.dtype.names,
            ):
                raise ConfigError(f"checkpoint: {name!r} is missing or of other worlds than these")
        for name, array in kept.items():
            array[...] = arrays[name]
        self._copies = self._copies._replace(worlds=worlds)
        self._empty_bank(int(following[0]))
