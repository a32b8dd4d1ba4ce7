"""What the single and the vector environment have in common."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from adlro.config.files import adjusted, find_scenario, validated
from adlro.config.scenario import Load
from adlro.envs.supply import EpisodeSupply
from adlro.envs.worlds import Worlds, typical_seconds
from adlro.model.record import Record
from adlro.model.state import Mask, Records
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting, prepare
from adlro.workloads.workload import Workload


class Options(Record):
    """Arguments of `gymnasium.make("adlro/Cluster-v0", ...)`."""

    scenario: str = "paper16-single"  # name or file
    load: Load | None = None  # None = the scenario's, as with jobs
    jobs: PositiveInt | None = None
    window: PositiveInt = 1  # waiting jobs that are seen and may be started
    idle_weight: Annotated[float, Field(ge=0, le=1)] = 0.5  # lambda of the reward
    observation: Literal["paper", "full"] = "paper"
    wait: bool = False  # True = a last action: wait for the next event
    reward_scale: PositiveFloat | None = None  # seconds; None = those of a typical job
    forbidden: Literal["nearest", "error"] = "nearest"  # what becomes of a forbidden action


class Game(NamedTuple):
    """A scenario ready to be played."""

    options: Options
    setting: Setting
    scale: float  # of rewards, seconds

    @property
    def action_space(self) -> spaces.Discrete:
        """All actions, allowed or not."""
        gpus = len(self.setting.layout.gpus)
        return spaces.Discrete(self.options.window * gpus + int(self.options.wait))

    def observation_space(self, length: int) -> spaces.Box[np.float32]:
        """The bounds of an observation of so many numbers."""
        low = 0.0 if self.options.observation == "paper" else -1.0
        return spaces.Box(low, 1.0, (length,), np.float32)

    def replaced(self, actions: NDArray[np.int64], masks: Mask) -> NDArray[np.int64]:
        """Actions [B], forbidden ones as the options say: the nearest allowed by [B, A], or as is.

        Of two that are as near the lower one; what is no action at all stays as it is.
        """
        done = np.array(actions)
        fits = done.shape == (len(masks),) and done.dtype.kind in "iu"
        if self.options.forbidden == "nearest" and fits:
            known = (done >= 0) & (done < masks.shape[1])
            may = masks[np.arange(len(masks)), np.where(known, done, 0)]
            for i in np.flatnonzero(known & ~may):
                allowed = np.flatnonzero(masks[i])
                done[i] = allowed[np.argmin(np.abs(allowed - done[i]))]
        return done

    def draw(self, seed: int) -> Workload:
        """The jobs of `adlro simulate --seed`."""
        return generate(self.setting, seed)

    def worlds(self, supply: EpisodeSupply, count: int, *, stops: bool = False) -> Worlds:
        """So many copies; stops: see there."""
        wanted = self.options
        return Worlds(
            supply,
            count,
            wanted.window,
            wanted.idle_weight,
            full=wanted.observation == "full",
            wait=wanted.wait,
            stops=stops,
        )


def prepared(options: dict[str, Any]) -> Game:
    """Read the arguments of an environment.

    Raises:
        ConfigError: one is unknown or out of range.
    """
    wanted = validated(Options, options, "adlro/Cluster-v0")
    scenario = adjusted(find_scenario(wanted.scenario), load=wanted.load, jobs=wanted.jobs)
    setting = prepare(scenario)
    return Game(wanted, setting, wanted.reward_scale or typical_seconds(setting))


def summary(ending: Records) -> dict[str, NDArray[Any]]:
    """What is told of an episode that has ended: the mean JCT, idle GPU-seconds, the makespan."""
    return {
        "mean_jct_s": ending["job_seconds"] / ending["jobs"],
        "idle_gpu_s": ending["idle_seconds"],
        "makespan_s": ending["span"],
    }
