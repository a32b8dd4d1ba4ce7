"""Many copies of a scenario that a learner steps together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adlro.encode import full_kernel, paper_kernel
from adlro.envs import worlds_kernel
from adlro.envs.supply import COMMON, Bank, Supply, widened
from adlro.envs.worlds_kernel import ENDING
from adlro.errors import ConfigError, PolicyError
from adlro.model.state import DECISION, EVENT, OUTCOME, SPAN, Mask
from adlro.sim import faults
from adlro.sim.state import Empty, State, fresh
from adlro.workloads.synthetic import Setting
from adlro.workloads.workload import Workload

_STATE = State._fields[:11]
_SHOWN = ("observations", "masks", "rewards", "dones", "finals", "endings")
_LEDGER = ("begins", "episodes", "paid")


def typical_seconds(setting: Setting) -> float:
    """GPU-seconds of a mean job where the cluster is used best."""
    return len(setting.layout.gpus) / setting.capacity_per_s


class Worlds:
    """B copies of a scenario, each at a moment in which at least one job can start.

    One copy can also be told to stop: its last state then stays until `begin`.

    Copies play the episodes of the supply in the order of their numbers: who is done takes the next
    one in the same step. After `step`, and before the first one, these arrays hold what a learner
    needs; they are overwritten by the next step. O and A: see `encode.paper_kernel`.

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
        supply: Supply,
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
        self.sizes = paper_kernel.sizes(layout, len(scenario.types), window)
        self.tau = typical_seconds(supply.setting)
        self._sizes = np.array(
            [window, self.sizes.types, self.sizes.columns, int(full), int(wait)], np.int64
        )
        length = self.sizes.observation
        length += full_kernel.more(len(layout.pools), window) if full else 0
        self.observations = np.zeros((count, length), np.float32)
        self.masks: Mask = np.zeros((count, self.sizes.actions + int(wait)), np.bool_)
        self.rewards, self.dones = np.zeros(count), np.zeros(count, np.bool_)
        self.finals, self.endings = np.zeros_like(self.observations), np.zeros(count, ENDING)
        self._bank, self._cursor = supply.bank(0, 1), np.zeros(2, np.int64)
        self._make_copies(count)
        self.begin(0)

    def _make_copies(self, count: int) -> None:
        """Arrays for all copies, as large as an episode can need them."""
        workload = self.supply.draw(0)
        self._common = tuple(getattr(workload, name) for name in COMMON)
        layout, own = self.supply.setting.layout, Bank._make(array[:1] for array in self._bank)
        episode = workload._replace(jobs=own.jobs[0], est=own.est[0])
        empty = fresh(Empty(layout.pools, layout.nodes, layout.gpus), episode, 0, 0)
        self._empty = tuple(empty[:11])
        jobs = own.jobs.shape[1]
        rooms = {"running": (jobs,), "ends": (jobs,)}  # all at once, if they are slices
        self._copies = tuple(
            np.zeros((count, *rooms.get(name, array.shape)), array.dtype)
            for name, array in zip(_STATE, self._empty, strict=True)
        )
        self._own = Bank._make(np.zeros((count, *a.shape[1:]), a.dtype) for a in own)
        self.begins, self.episodes = np.ones(count, np.bool_), np.zeros(count, np.int64)
        self.paid = np.zeros(count)
        self._scratch = (
            np.zeros(0), np.zeros(1, DECISION), np.zeros(jobs, OUTCOME), np.zeros(0, SPAN)
        )  # fmt: skip

    @property
    def count(self) -> int:
        """B."""
        return len(self.rewards)

    @property
    def following(self) -> int:
        """Number of the next episode that a copy will begin."""
        return int(self._cursor.sum())

    def state(self, i: int) -> State:
        """The state of copy i: not a copy, and not to be changed."""
        return State._make([*(array[i] for array in self._copies), self._scratch[0]])

    def workload(self, i: int) -> Workload:
        """What comes to copy i."""
        own = {name: array[i] for name, array in self._own._asdict().items()}
        return Workload(**own, **dict(zip(COMMON, self._common, strict=True)))

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
        first = 0
        while True:
            first = worlds_kernel.step(
                first, actions, self._sizes, self.tau, self.idle_weight, self._copies,
                tuple(self._own), self._common, tuple(self._bank), self._cursor, self._empty,
                *self._scratch, self.begins, self.episodes, self.paid,
                self.observations, self.masks, self.rewards, self.dones, self.finals, self.endings,
            )  # fmt: skip
            if first == self.count:
                return
            if first < 0:
                who = "the player" if self._stops else f"copy {-1 - first}"
                raise PolicyError(f"{who} {faults.message(self._copies[0][-1 - first, 0])}")
            if self._stops and self.dones[0]:
                return
            self._refill()

    def _empty_bank(self, following: int) -> None:
        """Let the bank be used up, so that the next step draws the episodes from this number on."""
        self._cursor[:] = len(self._bank.jobs), following - len(self._bank.jobs)

    def _refill(self) -> None:
        """Replace a bank that is used up."""
        number = self.following
        bank = self.supply.bank(number, self.count)
        width = max(bank.events.shape[1], self._own.events.shape[1])
        self._bank = bank._replace(events=widened(bank.events, width))
        self._own = self._own._replace(events=widened(self._own.events, width))
        self._cursor[:] = 0, number

    def _kept(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name, but for the number of the next episode."""
        arrays = {f"state.{name}": a for name, a in zip(_STATE, self._copies, strict=True)}
        arrays |= {f"episode.{name}": array for name, array in self._own._asdict().items()}
        return arrays | {name: getattr(self, name) for name in (*_LEDGER, *_SHOWN)}

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
        width = np.shape(arrays.get("episode.events", self._own.events))[-1]
        own = self._own._replace(events=np.zeros((self.count, width), EVENT))
        kept = self._kept() | {"episode.events": own.events}
        for name, array in kept.items():
            found = arrays.get(name)
            if found is None or (found.shape, found.dtype.names) != (
                array.shape,
                array.dtype.names,
            ):
                raise ConfigError(f"checkpoint: {name!r} is missing or of other worlds than these")
        for name, array in kept.items():
            array[...] = arrays[name]
        self._own = own
        self._empty_bank(int(following[0]))
