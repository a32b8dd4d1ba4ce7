"""adlro/Cluster-v0: one cluster, one decision a step."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from adlro.encode.paper_kernel import Vector
from adlro.envs import picture
from adlro.envs.game import FIRST_SEED, prepared, summary
from adlro.envs.supply import Supply
from adlro.model.state import Mask


class ClusterEnv(gymnasium.Env[Vector, np.int64]):
    """The simulator as an environment; every step is a moment in which something can start.

    Arguments: `render_mode`, None or "ansi", and those of `game.Options`. What is seen, done and
    paid: docs/gymnasium.md.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012  as gymnasium has it

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:  # noqa: ANN401
        self.render_mode = render_mode
        self.game = prepared(options)
        self.worlds = self.game.worlds(Supply(self.game.setting, self.game.draw), 1)
        self.action_space = self.game.action_space
        self.observation_space = self.game.observation_space(self.worlds.observations.shape[1])
        self._is_seeded, self._is_over = False, True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Begin an episode: the jobs of a seed, or of the one after the last.

        Without any seed so far it is a random one, from 1,000,000 on.
        """
        super().reset(seed=seed)
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(FIRST_SEED, 2**31))
        if seed is not None:
            self.worlds.begin(seed)
        elif not self._is_over:
            self.worlds.begin(self.worlds.following)
        self._is_seeded, self._is_over = True, False
        return self.worlds.observations[0].copy(), self._info()

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self.worlds.masks[0].astype(np.int8),
            "seed": int(self.worlds.episodes[0]),
        }

    def step(self, action: np.int64 | int) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Start a job, or wait; then time passes until something can start, or all is done."""
        if self._is_over:
            raise ResetNeeded("the episode is over, or none has begun: call reset() first")
        done = self.game.replaced(np.array([action]), self.worlds.masks)
        self.worlds.step(done)
        reward = float(self.worlds.rewards[0]) / self.game.scale
        info = {**self._info(), "action": int(done[0])}
        self._is_over = bool(self.worlds.dones[0])
        if not self._is_over:
            return self.worlds.observations[0].copy(), reward, False, False, info
        ending = self.worlds.endings[0]
        info["action_mask"][:], info["seed"] = 0, int(ending["episode"])
        info |= {name: float(value) for name, value in summary(ending).items()}
        return self.worlds.finals[0].copy(), reward, True, False, info

    def action_masks(self) -> Mask:
        """Which actions are allowed, as MaskablePPO of sb3-contrib asks for it."""
        mask: Mask = self.worlds.masks[0].copy()
        return mask

    def render(self) -> str | None:
        """What runs where, and who is next, as text; None without a render mode."""
        if self.render_mode is None:
            return None
        return picture.draw(self.game.setting, self.worlds.state(0), self.worlds.workload(0))
