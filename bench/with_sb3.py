"""A double DQN on stable-baselines3 in the Gymnasium environment, the baseline for training speed.

The DQN of stable-baselines3 is not double. This one does the same work per sample as ADLRO's
learner: two forward passes at the next state, one at the current state, one backward pass and one
Adam step without gradient clipping.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3 import DQN
from torch.nn.functional import huber_loss

from adlro.envs.cluster import ClusterEnv

BATCH, EVERY = 64, 4  # batch size; env steps between batches: 16 samples per step
_NEVER = 10**9  # episodes between log lines


class DoubleDQN(DQN):
    """DQN whose next action is chosen by the online network and valued by the target network."""

    def train(self, gradient_steps: int, batch_size: int = BATCH) -> None:
        """Run `gradient_steps` gradient steps."""
        assert self.replay_buffer is not None  # created with the model
        self.policy.set_training_mode(True)
        for _ in range(gradient_steps):
            data = self.replay_buffer.sample(batch_size)
            with torch.no_grad():
                action = self.q_net(data.next_observations).argmax(1, keepdim=True)
                value_next = self.q_net_target(data.next_observations).gather(1, action)
                target = data.rewards + (1 - data.dones) * self.gamma * value_next
            value = self.q_net(data.observations).gather(1, data.actions)
            loss = huber_loss(value, target)
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
            self.policy.optimizer.step()
        self._n_updates += gradient_steps

    def play(self, steps: int) -> None:
        """Train for `steps` more env steps."""
        self.learn(steps, log_interval=_NEVER, reset_num_timesteps=False)


def learner(hidden: int, warm_up: int, replay: int, rate: float, **options: Any) -> DoubleDQN:  # noqa: ANN401  options of the environment
    """Return a learner with two hidden layers that starts learning after `warm_up` steps."""
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
        exploration_fraction=1e-6,  # epsilon is at its final value from the start
        exploration_final_eps=0.05,
        policy_kwargs={"net_arch": [hidden, hidden]},
        seed=0,
        device="cpu",
    )
