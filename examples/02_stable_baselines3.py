"""Two learners of stable-baselines3 on adlro/Cluster-v0: DQN, and PPO with action masks.

Needs the extras train and sb3:  pip install 'adlro[train,sb3]'
Run it:  python examples/02_stable_baselines3.py --steps 20000
It writes dqn.zip and maskable_ppo.zip, which 03_policy_of_sb3.py plays as policies.
"""

import argparse
import os
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN

import adlro.envs  # noqa: F401  registers adlro/Cluster-v0
from adlro.config.files import find_scenario
from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.policies import registry
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare

POLICY = str(Path(__file__).with_name("03_policy_of_sb3.py"))
FIRST_SEED = 1_000_000  # of the jobs to learn on; those of the table begin at 0


class Forbidden(gymnasium.Wrapper):
    """Counts the actions that the environment replaced because they were forbidden."""

    steps = replaced = 0

    def step(self, action):
        """As before, and counted."""
        result = self.env.step(action)
        self.steps += 1
        self.replaced += int(result[4]["action"] != action)
        return result


def learn(name, model, steps):
    """Train, save, and say how long it took."""
    began = time.process_time()
    model.learn(steps)
    seconds = time.process_time() - began
    model.save(f"{name}.zip")
    print(f"{name}: {model.num_timesteps:,} steps in {seconds:.0f} CPU-s -> {name}.zip")


def mean_jct(setting, name, seeds):
    """Seconds, over the jobs of some seeds, played by the simulator."""
    policy = registry.load(name, setting)
    means = []
    for seed in range(seeds):
        jobs = generate(setting, seed)
        result = run_one(setting, jobs, policy, seed)
        means.append(measure(setting, jobs, result).mean_jct_s)
    return np.mean(means)


def main():
    """Learn twice, then a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=20_000)
    options.add_argument("--scenario", default="paper16-single")
    options.add_argument("--seeds", type=int, default=10)
    args = options.parse_args()
    torch.set_num_threads(1)
    env = Forbidden(
        gymnasium.make(
            "adlro/Cluster-v0", scenario=args.scenario, jobs=100, window=4, observation="full"
        )
    )
    env.reset(seed=FIRST_SEED)
    # DQN knows no masks: the environment plays the nearest allowed action where one is forbidden.
    first = min(1_000, args.steps // 4)  # steps before it begins to learn
    dqn = DQN("MlpPolicy", env, learning_starts=first, gamma=0.99, seed=FIRST_SEED)
    learn("dqn", dqn, args.steps)
    share = env.replaced / env.steps
    print(f"  {share:.0%} of its actions were forbidden; the nearest allowed ones were played")
    rounds = min(512, args.steps)
    ppo = MaskablePPO("MlpPolicy", env, n_steps=rounds, batch_size=64, seed=FIRST_SEED)
    learn("maskable_ppo", ppo, args.steps)
    setting = prepare(find_scenario(args.scenario))
    print(f"\nMean JCT on {args.scenario}, {args.seeds} seeds from 0 on, in seconds:")
    for name in ("fcfs", "min-min"):
        print(f"  {name:<14}{mean_jct(setting, name, args.seeds):10,.0f}")
    os.environ["ADLRO_SB3_SCENARIO"] = args.scenario
    for name in ("dqn", "maskable_ppo"):
        os.environ["ADLRO_SB3_MODEL"] = f"{name}.zip"
        print(f"  {name:<14}{mean_jct(setting, POLICY, args.seeds):10,.0f}")


if __name__ == "__main__":
    main()
