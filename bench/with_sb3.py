"""A double DQN on stable-baselines3, playing the Gymnasium environment: the learners' rival.

Its own DQN is not double. This one does per sample what `train.dqn.learner` does: two networks at
the next state, one at this one, one way back, one step of Adam; gradients are not clipped.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3 import DQN
from torch.nn.functional import huber_loss

from adlro.envs.cluster import ClusterEnv

BATCH, EVERY = 64, 4  # samples of a batch, env steps between two: 16 samples a step
_NEVER = 10**9  # episodes between two lines of its log


class DoubleDQN(DQN):
    """The online network names the next action, the target network says what it is worth."""

    def train(self, gradient_steps: int, batch_size: int = BATCH) -> None:
        """Learn so many batches."""
        assert self.replay_buffer is not None  # it is made with the model
        self.policy.set_training_mode(True)
        for _ in range(gradient_steps):
            data = self.replay_buffer.sample(batch_size)
            with torch.no_grad():
                named = self.q_net(data.next_observations).argmax(1, keepdim=True)
                worth = self.q_net_target(data.next_observations).gather(1, named)
                goal = data.rewards + (1 - data.dones) * self.gamma * worth
            value = self.q_net(data.observations).gather(1, data.actions)
            loss = huber_loss(value, goal)
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
            self.policy.optimizer.step()
        self._n_updates += gradient_steps

    def play(self, steps: int) -> None:
        """Go on for so many env steps."""
        self.learn(steps, log_interval=_NEVER, reset_num_timesteps=False)


def learner(hidden: int, warm_up: int, replay: int, rate: float, **options: Any) -> DoubleDQN:  # noqa: ANN401  those of the environment
    """A learner with two hidden layers that begins to learn after so many steps."""
    torch.set_num_threads(1)
    return DoubleDQN(
        "MlpPolicy",
        ClusterEnv(**options),
        learning_rate=rate,
        buffer_size=replay,
        learning_starts=warm_up,
        batch_size=BATCH,
        train_freq=EVERY,
        gradient_steps=1,
        exploration_fraction=1e-6,  # greedy all the while, but for the last share
        exploration_final_eps=0.05,
        policy_kwargs={"net_arch": [hidden, hidden]},
        seed=0,
        device="cpu",
    )
