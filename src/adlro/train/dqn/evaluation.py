"""Looks at the greedy policy: whole runs of the scenario on the selection seeds."""

from __future__ import annotations

import numpy as np

from adlro.config.scenario import Scenario
from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.model.state import Floats
from adlro.nets.paper_network import PaperNetwork, flat
from adlro.policies import paper_dqn
from adlro.policies.registry import Policy
from adlro.train import seeds
from adlro.train.episodes import named
from adlro.workloads.setting import Setting, prepare


def policy(network: PaperNetwork, setting: Setting) -> Policy:
    """A network made ready for a scenario."""
    params = flat(network)
    memory: int = paper_dqn.memory(setting, params)  # type: ignore[no-untyped-call]  # as of every policy
    return Policy(paper_dqn.NAME, paper_dqn.decide, params, memory, None, 0, False)


class Track:
    """The scenario as it stands, which is not cut into short episodes."""

    def __init__(self, scenario: Scenario) -> None:
        self.setting = prepare(scenario)
        self._rivals: dict[tuple[str, int], Floats] = {}

    def play(self, player: Policy, count: int) -> Floats:
        """Mean JCT in seconds on each of the first so many selection seeds."""
        found = []
        for seed in seeds.SELECTION[:count]:
            jobs = seeds.jobs(self.setting, seed)
            result = run_one(self.setting, jobs, player, seed)
            found.append(measure(self.setting, jobs, result).mean_jct_s)
        return np.array(found)

    def play_network(self, network: PaperNetwork, count: int) -> Floats:
        """As `play`."""
        return self.play(policy(network, self.setting), count)

    def rival(self, name: str, count: int) -> Floats:
        """As `play`, of a policy of the package; played once."""
        key = name, count
        if key not in self._rivals:
            self._rivals[key] = self.play(named(name, self.setting), count)
        return self._rivals[key]
