"""The Gymnasium environment adlro/Cluster-v0: one cluster, one decision per step."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from adlro.envs import render
from adlro.envs.env_setup import prepare_env, summary
from adlro.envs.episode_seeds import EpisodeSeeds, checked
from adlro.envs.episode_supply import EpisodeSupply
from adlro.errors import ConfigError, PolicyError
from adlro.features.observation_kernel import Vector
from adlro.model.state import Mask
from adlro.workloads.workload import Workload


class ClusterEnv(gymnasium.Env[Vector, np.int64]):
    """The simulator as a Gymnasium environment; at each step at least one job can start.

    Arguments: `render_mode`, None or "ansi", and those of `env_setup.ClusterEnvOptions`.
    Observations, actions and rewards: docs/gymnasium.md.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012  as in gymnasium.Env

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:  # noqa: ANN401  ClusterEnvOptions
        if render_mode not in (None, "ansi"):
            raise ConfigError(
                f"adlro/Cluster-v0: render_mode: None or 'ansi' is needed, not {render_mode!r}"
            )
        self.render_mode, self.setup = render_mode, prepare_env(options)
        self._seeds = EpisodeSeeds([], self.np_random)
        self.worlds = self.setup.worlds(
            EpisodeSupply(self.setup.setting, self._draw), 1, stops=True
        )
        self.action_space = self.setup.action_space
        self.observation_space = self.setup.observation_space(self.worlds.observations.shape[1])
        self._is_over = True

    def _draw(self, episode: int) -> Workload:
        return self.setup.draw(int(self._seeds.of(episode)))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Begin an episode with the jobs of `seed`, or of a drawn seed if `seed` is None.

        `np_random` draws seeds of at least 1,000,000.

        Raises:
            ConfigError: `seed` is not a whole number from 0 to 2**62.
        """
        if seed is None:
            self.worlds.begin(self.worlds.following)
        else:
            given = checked(seed)
            super().reset(seed=given)
            self._seeds = EpisodeSeeds([given], self.np_random)
            self.worlds.begin(0)
        self._is_over = False
        return self.worlds.observations[0].copy(), self._info()

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "seed": int(self._seeds.of(self.worlds.episodes[0])),
        }

    def step(self, action: np.int64 | int) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Start a job, or wait, and advance to the next decision or the end of the episode.

        Raises:
            PolicyError: there is no such action, or the action is forbidden and the option
                `forbidden` is "error".
        """
        if self._is_over:
            raise ResetNeeded("the episode is over, or none has begun: call reset() first")
        given = np.asarray(action)
        if given.shape not in ((), (1,)) or given.dtype.kind not in "iu":
            raise PolicyError(f"action: a whole number is needed, not {action!r}")
        taken = self.setup.replaced(given.reshape(1), self.worlds.masks)
        self.worlds.step(taken)
        reward = float(self.worlds.rewards[0]) / self.setup.scale
        self._is_over = bool(self.worlds.dones[0])
        info = {**self._info(), "action": int(taken[0])}
        if not self._is_over:
            return self.worlds.observations[0].copy(), reward, False, False, info
        info |= {name: float(v) for name, v in summary(self.worlds.endings[0]).items()}
        return self.worlds.finals[0].copy(), reward, True, False, info

    def action_masks(self) -> Mask:
        """Return which actions are allowed, for MaskablePPO of sb3-contrib; none after the end."""
        mask: Mask = self.worlds.masks[0] & (not self._is_over)
        return mask

    def render(self) -> str | None:
        """Return the running and waiting jobs as text; None without a render mode."""
        if self.render_mode is None:
            return None
        return render.render(self.setup.setting, self.worlds.world(0))
