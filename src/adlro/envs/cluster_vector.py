"""adlro/Cluster-v0 as a vector: many clusters, all stepped by one compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from adlro.envs.game import prepared, summary
from adlro.envs.seeds import Seeds, of_copies
from adlro.envs.supply import EpisodeSupply
from adlro.errors import ConfigError
from adlro.features.observation_kernel import Vector
from adlro.workloads.workload import Workload

Step = tuple[Vector, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class ClusterVectorEnv(VectorEnv[Vector, NDArray[np.int64], NDArray[Any]]):
    """`num_envs` clusters; who is done begins the next episode in the same step.

    Arguments as those of `cluster.ClusterEnv`; there is nothing to render.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  as gymnasium has it

    def __init__(
        self,
        num_envs: int = 1,
        render_mode: str | None = None,
        **options: Any,  # noqa: ANN401  those of game.Options
    ) -> None:
        if render_mode is not None:
            raise ConfigError(f"adlro/Cluster-v0: many have no render mode {render_mode!r}")
        self.num_envs, self.game = num_envs, prepared(options)
        self._seeds = Seeds([], self.np_random)
        self.worlds = self.game.worlds(EpisodeSupply(self.game.setting, self._draw), num_envs)
        self.single_action_space = self.game.action_space
        length = self.worlds.observations.shape[1]
        self.single_observation_space = self.game.observation_space(length)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def _draw(self, episode: int) -> Workload:
        return self.game.draw(int(self._seeds.of(episode)))

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | NDArray[np.int64] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Vector, dict[str, Any]]:
        """Let all begin: seed n means n, n + 1, ...; a list or an array has a seed for each.

        All other episodes have seeds drawn by `np_random`, from 1,000,000 on, in the order in which
        copies get to them.

        Raises:
            ConfigError: the seed is none.
        """
        if seed is None:
            self.worlds.begin(self.worlds.following)
        else:
            asked = of_copies(seed, self.num_envs)
            if isinstance(seed, int | np.integer):
                super().reset(seed=int(asked[0]))
            else:
                self.np_random = np.random.default_rng(asked)
            self._seeds = Seeds(asked, self.np_random)
            self.worlds.begin(0)
        return self.worlds.observations.copy(), self._info()

    def _info(self) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, np.bool_)
        return {
            "action_mask": self.worlds.masks.astype(np.int8),
            "_action_mask": everywhere,
            "seed": self._seeds.of(self.worlds.episodes),
            "_seed": everywhere.copy(),
        }

    def step(self, actions: NDArray[np.int64]) -> Step:
        """One action for each; see `cluster.ClusterEnv.step`."""
        done = self.game.replaced(actions, self.worlds.masks)
        self.worlds.step(done)
        over, info = self.worlds.dones.copy(), self._info()
        info["action"], info["_action"] = np.where(over, 0, done), ~over
        if over.any():
            info |= self._final(over, done)
        return (
            self.worlds.observations.copy(),
            self.worlds.rewards / self.game.scale,
            over,
            np.zeros(self.num_envs, np.bool_),
            info,
        )

    def _final(self, over: NDArray[np.bool_], done: NDArray[np.int64]) -> dict[str, Any]:
        """What Gymnasium tells of episodes that ended in this step, whose last actions are `done`.

        Whatever is nested has a row for every copy, 0 where none has ended, and who has one stands
        beside it.
        """
        seen = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(over):
            seen[i] = self.worlds.finals[i].copy()
        final: dict[str, Any] = {
            "action_mask": np.zeros(self.worlds.masks.shape, np.int8),
            "seed": np.where(over, self._seeds.of(self.worlds.endings["episode"]), 0),
            "action": np.where(over, done, 0),
        }
        for name, values in summary(self.worlds.endings[over]).items():
            final[name] = np.zeros(self.num_envs)
            final[name][over] = values
        final |= {f"_{name}": over.copy() for name in final}
        return {
            "final_obs": seen,
            "_final_obs": over.copy(),
            "final_info": final,
            "_final_info": over.copy(),
        }
