"""adlro/Cluster-v0 as a vector environment: one compiled call steps many clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from adlro.envs.env_setup import prepare_env, summary
from adlro.envs.episode_seeds import EpisodeSeeds, first_seeds
from adlro.envs.episode_supply import EpisodeSupply
from adlro.errors import ConfigError
from adlro.features.observation_kernel import Vector
from adlro.workloads.workload import Workload

Step = tuple[Vector, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class ClusterVectorEnv(VectorEnv[Vector, NDArray[np.int64], NDArray[Any]]):
    """`num_envs` clusters; a cluster whose episode ends begins its next one in the same step.

    Arguments as in `cluster.ClusterEnv`, without rendering.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  as in VectorEnv

    def __init__(
        self,
        num_envs: int = 1,
        render_mode: str | None = None,
        **options: Any,  # noqa: ANN401  ClusterEnvOptions
    ) -> None:
        if render_mode is not None:
            raise ConfigError(f"adlro/Cluster-v0: many have no render mode {render_mode!r}")
        self.num_envs, self.setup = num_envs, prepare_env(options)
        self._seeds = EpisodeSeeds([], self.np_random)
        self.worlds = self.setup.worlds(EpisodeSupply(self.setup.setting, self._draw), num_envs)
        self.single_action_space = self.setup.action_space
        length = self.worlds.observations.shape[1]
        self.single_observation_space = self.setup.observation_space(length)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def _draw(self, episode: int) -> Workload:
        return self.setup.draw(int(self._seeds.of(episode)))

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | NDArray[np.int64] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Vector, dict[str, Any]]:
        """Begin an episode in every cluster.

        A number n gives the clusters the seeds n, n + 1, ...; a sequence gives each its own. The
        seeds of all later episodes (with None, of these too) are drawn by `np_random` in the order
        in which the episodes begin; drawn seeds are at least 1,000,000.

        Raises:
            ConfigError: a seed is not a whole number from 0 to 2**62, or the sequence does not have
                `num_envs` entries.
        """
        if seed is None:
            self.worlds.begin(self.worlds.following)
        else:
            given = first_seeds(seed, self.num_envs)
            if isinstance(seed, int | np.integer):
                super().reset(seed=int(given[0]))
            else:
                self.np_random = np.random.default_rng(given)
            self._seeds = EpisodeSeeds(given, self.np_random)
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
        """Take one action in each cluster; see `cluster.ClusterEnv.step`."""
        taken = self.setup.replaced(actions, self.worlds.masks)
        self.worlds.step(taken)
        over, info = self.worlds.dones.copy(), self._info()
        info["action"], info["_action"] = np.where(over, 0, taken), ~over
        if over.any():
            info |= self._final(over, taken)
        return (
            self.worlds.observations.copy(),
            self.worlds.rewards / self.setup.scale,
            over,
            np.zeros(self.num_envs, np.bool_),
            info,
        )

    def _final(self, over: NDArray[np.bool_], taken: NDArray[np.int64]) -> dict[str, Any]:
        """Return the entries of `info` about episodes that ended in this step, in Gymnasium's form.

        The arrays in `final_info` have a row for every cluster, 0 where no episode ended; the array
        named _KEY is the mask of KEY. `over` [B]: clusters whose episode ended; `taken` [B]: the
        last actions.
        """
        observed = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(over):
            observed[i] = self.worlds.finals[i].copy()
        final: dict[str, Any] = {
            "action_mask": np.zeros(self.worlds.masks.shape, np.int8),
            "seed": np.where(over, self._seeds.of(self.worlds.endings["episode"]), 0),
            "action": np.where(over, taken, 0),
        }
        for name, values in summary(self.worlds.endings[over]).items():
            final[name] = np.zeros(self.num_envs)
            final[name][over] = values
        final |= {f"_{name}": over.copy() for name in final}
        return {
            "final_obs": observed,
            "_final_obs": over.copy(),
            "final_info": final,
            "_final_info": over.copy(),
        }
