"""Labels of a round, episode by episode."""

from __future__ import annotations

from typing import NamedTuple

from adlro.nets.q_network import Network
from adlro.policies.registry import Policy
from adlro.telemetry.normalise import Norm
from adlro.train import expansion, seeds, weights
from adlro.train.episodes import Ground, Place, named
from adlro.train.expansion import Labels
from adlro.train.recipe import SELF, Round
from adlro.workloads.setting import Setting

FUTURES = 17  # phase of round 1's futures, see seeds.training; later rounds have those above


class Labelling(NamedTuple):
    """One round: any of its episodes can be labelled by itself."""

    ground: Ground
    round: Round
    run: int
    phase: int
    network: Network  # that "self" stands for
    norm: Norm | None = None  # by which readings are scaled

    def _policy(self, name: str, setting: Setting) -> Policy:
        return weights.policy(self.network, setting) if name == SELF else named(name, setting)

    def label(self, episode: int) -> Labels:
        """Play an episode and label some of its states."""
        place = Place(self.run, self.phase, episode)
        rng, wanted = place.rng, self.round
        world = self.ground.draw(place, wanted.family_share, rng)
        first = episode * wanted.futures
        others = [
            seeds.jobs(world.setting, seeds.training(self.run, FUTURES + self.phase, first + k))
            for k in range(wanted.futures)
        ]
        behaviour = wanted.behaviours[episode % len(wanted.behaviours)]
        plan = expansion.Plan(wanted.horizon, wanted.rate, wanted.stray, self.norm)
        return expansion.expand(
            world.setting,
            world.workload,
            self._policy(behaviour, world.setting),
            self._policy(wanted.base, world.setting),
            plan,
            rng,
            others,
        )
