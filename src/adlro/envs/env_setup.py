"""Code that the single and the vector environment share: arguments, spaces, actions."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from adlro.config.files import adjusted, find_scenario, validated
from adlro.config.scenario import Load
from adlro.envs.episode_supply import EpisodeSupply
from adlro.envs.worlds import Worlds, typical_seconds
from adlro.model.record import Record
from adlro.model.state import Mask, Records
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting, prepare
from adlro.workloads.workload import Workload


class ClusterEnvOptions(Record):
    """Arguments of `gymnasium.make("adlro/Cluster-v0", ...)`."""

    scenario: str = "paper16-single"  # name or file
    load: Load | None = None  # None = that of the scenario
    jobs: PositiveInt | None = None  # None = that of the scenario
    window: PositiveInt = 1  # waiting jobs that are observed and can be started
    idle_weight: Annotated[float, Field(ge=0, le=1)] = 0.5  # lambda of the reward
    observation: Literal["paper", "full"] = "paper"
    wait: bool = False  # True = the last action waits for the next event
    reward_scale: PositiveFloat | None = None  # seconds; None = GPU-seconds of a typical job
    forbidden: Literal["nearest", "error"] = "nearest"  # nearest = replaced by it, error = refused


class EnvSetup(NamedTuple):
    """A prepared scenario with the options of the environment."""

    options: ClusterEnvOptions
    setting: Setting
    scale: float  # seconds that rewards are divided by

    @property
    def action_space(self) -> spaces.Discrete:
        """The space of all action numbers, allowed or not."""
        gpus = len(self.setting.layout.gpus)
        return spaces.Discrete(self.options.window * gpus + int(self.options.wait))

    def observation_space(self, length: int) -> spaces.Box[np.float32]:
        """Return the space of observations of `length` numbers."""
        low = 0.0 if self.options.observation == "paper" else -1.0
        return spaces.Box(low, 1.0, (length,), np.float32)

    def replaced(self, actions: NDArray[np.int64], masks: Mask) -> NDArray[np.int64]:
        """Return actions [B] with each forbidden one replaced by the nearest allowed one.

        masks [B, A] is True for allowed actions; of two equally near ones the lower is taken.
        Numbers outside 0 to A - 1 are not replaced, and with `forbidden="error"` no action is:
        `Worlds.step` refuses them.
        """
        taken = np.array(actions)
        fits = taken.shape == (len(masks),) and taken.dtype.kind in "iu"
        if self.options.forbidden == "nearest" and fits:
            known = (taken >= 0) & (taken < masks.shape[1])
            may = masks[np.arange(len(masks)), np.where(known, taken, 0)]
            for i in np.flatnonzero(known & ~may):
                allowed = np.flatnonzero(masks[i])
                taken[i] = allowed[np.argmin(np.abs(allowed - taken[i]))]
        return taken

    def draw(self, seed: int) -> Workload:
        """Return the workload of a seed, the same as of `adlro simulate --seed`."""
        return generate(self.setting, seed)

    def worlds(self, supply: EpisodeSupply, count: int, *, stops: bool = False) -> Worlds:
        """Return `count` copies of the scenario, which play episodes of `supply`.

        `stops`: see `Worlds`.
        """
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


def prepare_env(options: dict[str, Any]) -> EnvSetup:
    """Check the arguments of an environment and prepare its scenario.

    Raises:
        ConfigError: an argument is unknown or out of range.
    """
    wanted = validated(ClusterEnvOptions, options, "adlro/Cluster-v0")
    scenario = adjusted(find_scenario(wanted.scenario), load=wanted.load, jobs=wanted.jobs)
    setting = prepare(scenario)
    return EnvSetup(wanted, setting, wanted.reward_scale or typical_seconds(setting))


def summary(ending: Records) -> dict[str, NDArray[Any]]:
    """Return mean JCT, idle GPU-seconds and makespan of episodes that have ended.

    `ending`: one record of worlds_kernel.ENDING, or an array of them.
    """
    return {
        "mean_jct_s": ending["job_seconds"] / ending["jobs"],
        "idle_gpu_s": ending["idle_seconds"],
        "makespan_s": ending["span"],
    }
