"""adlro/Cluster-v0 as a vector: many clusters, all stepped by one compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from adlro.encode.paper_kernel import Vector
from adlro.envs.game import FIRST_SEED, prepared, summary
from adlro.envs.supply import Supply
from adlro.errors import ConfigError
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
        **options: Any,  # noqa: ANN401
    ) -> None:
        if render_mode is not None:
            raise ConfigError(f"adlro/Cluster-v0: many have no render mode {render_mode!r}")
        self.num_envs, self.game = num_envs, prepared(options)
        self._seeds, self._is_seeded = np.arange(num_envs), False
        self.worlds = self.game.worlds(Supply(self.game.setting, self._draw), num_envs)
        self.single_action_space = self.game.action_space
        length = self.worlds.observations.shape[1]
        self.single_observation_space = self.game.observation_space(length)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def _seeds_of(self, episodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those asked for, then one after the other from the last of them on."""
        asked = self._seeds[np.minimum(episodes, self.num_envs - 1)]
        return asked + np.maximum(episodes - (self.num_envs - 1), 0)

    def _draw(self, episode: int) -> Workload:
        return self.game.draw(int(self._seeds_of(np.array(episode))))

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Vector, dict[str, Any]]:
        """Let all begin: seed n means n, n + 1, ...; a list has a seed for each.

        Later episodes go on from the last of these, in the order in which copies get to them.
        Without any seed so far the first is a random one, from 1,000,000 on.
        """
        super().reset(seed=seed if isinstance(seed, int) else None)
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(FIRST_SEED, 2**31))
        if isinstance(seed, Sequence):
            if len(seed) != self.num_envs or None in seed:
                raise ConfigError(f"seed: {self.num_envs} whole numbers are needed, not {seed}")
            self._seeds = np.array(seed, np.int64)
        elif seed is not None:
            self._seeds = seed + np.arange(self.num_envs)
        self._is_seeded = True
        self.worlds.begin(self.worlds.following if seed is None else 0)
        return self.worlds.observations.copy(), self._info()

    def _info(self) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, np.bool_)
        return {
            "action_mask": self.worlds.masks.astype(np.int8),
            "_action_mask": everywhere,
            "seed": self._seeds_of(self.worlds.episodes),
            "_seed": everywhere.copy(),
        }

    def step(self, actions: NDArray[np.int64]) -> Step:
        """One action for each; see `cluster.ClusterEnv.step`."""
        done = self.game.replaced(actions, self.worlds.masks)
        self.worlds.step(done)
        over, info = self.worlds.dones.copy(), self._info()
        info["action"], info["_action"] = done, np.ones(self.num_envs, np.bool_)
        if over.any():
            info |= self._final(over)
        return (
            self.worlds.observations.copy(),
            self.worlds.rewards / self.game.scale,
            over,
            np.zeros(self.num_envs, np.bool_),
            info,
        )

    def _final(self, over: NDArray[np.bool_]) -> dict[str, Any]:
        """What gymnasium wants to be told of episodes that ended in this step."""
        seen = np.full(self.num_envs, None, object)
        final: dict[str, Any] = {}
        for i in np.flatnonzero(over):
            seen[i] = self.worlds.finals[i].copy()
        for name, values in summary(self.worlds.endings[over]).items():
            final[name], final[f"_{name}"] = np.zeros(self.num_envs), over.copy()
            final[name][over] = values
        final["seed"] = np.where(over, self._seeds_of(self.worlds.endings["episode"]), 0)
        final["_seed"] = over.copy()
        return {
            "final_obs": seen,
            "_final_obs": over.copy(),
            "final_info": final,
            "_final_info": over.copy(),
        }
