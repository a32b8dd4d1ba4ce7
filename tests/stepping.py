"""Environments that tests step through, and the same starts in the simulator."""

from types import SimpleNamespace

import numpy as np

from adlro.config.files import adjusted, find_scenario
from adlro.envs.episode_supply import EpisodeSupply
from adlro.envs.worlds import Worlds
from adlro.sim import simulator
from adlro.sim.world import EmptyCluster
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.worlds import World, start


def supply_of(*worlds: World, pieces: int = 1) -> EpisodeSupply:
    """Episodes that cycle through hand-made worlds of one cluster."""
    setting = SimpleNamespace(
        layout=worlds[0].empty,
        scenario=SimpleNamespace(types=range(len(worlds[0].workload.colocation))),
        capacity_per_s=1.0,
    )
    return EpisodeSupply(setting, lambda number: worlds[number % len(worlds)].workload, pieces)


def stepped(*worlds: World, count=1, window=1, idle_weight=0.5, **more) -> Worlds:
    """Copies of hand-made worlds."""
    return Worlds(supply_of(*worlds), count, window, idle_weight, **more)


def shipped_supply(
    name: str, jobs: int, pieces: int = 1, load: float | None = None
) -> EpisodeSupply:
    """Episodes of a shipped scenario with this many jobs per workload."""
    setting = prepare(adjusted(find_scenario(name), jobs=jobs, load=load))
    return EpisodeSupply(setting, lambda number: generate(setting, number), pieces)


def random_actions(masks, rng):
    """A random allowed action for each copy."""
    return np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)


def first_actions(masks, rng):
    """The lowest allowed GPU of the first slot, for each copy."""
    return masks.argmax(axis=1)


def play_episode(worlds: Worlds, choose, seed=0):
    """Run copy 0 to its end: starts (time, job, GPU), rewards, and how it ended."""
    rng, starts, rewards = np.random.default_rng(seed), [], []
    while True:
        actions = choose(worlds.masks, rng)
        state = worlds.world(0)
        slot, gpu = divmod(int(actions[0]), worlds.sizes.gpus)
        if slot < worlds.sizes.window:
            head, now = int(state.totals["head"][0]), float(state.totals["now"][0])
            starts.append((now, int(state.queue["job"][head + slot]), gpu))
        worlds.step(actions)
        rewards.append(float(worlds.rewards[0]))
        if worlds.dones[0]:
            return starts, rewards, worlds.endings[0].copy()


class Replay:
    """A policy that makes the given starts, each at its time."""

    name, params, memory = "replay", np.zeros(0), 0

    def __init__(self, starts) -> None:
        self.starts = list(starts)

    def decide(self, view, params, memory, out):
        if not self.starts or self.starts[0][0] != view.now:
            return 0
        _, job, gpu = self.starts.pop(0)
        out[:1] = [start(job, view.nodes[view.gpus[gpu].node].pool, gpu=gpu)]
        return 1


def replayed(supply: EpisodeSupply, episode: int, starts) -> simulator.RunResult:
    """The simulator's result of the same starts."""
    layout = supply.setting.layout
    empty = EmptyCluster(layout.pools, layout.nodes, layout.gpus)
    return simulator.run(empty, supply.draw(episode), Replay(starts))
