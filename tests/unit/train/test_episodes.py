"""Which episodes a training draws: kinds, sizes and wrong estimates by their shares."""

import collections

import numpy as np
import pytest

from adlro.config.files import adjusted
from adlro.train import family, wide_family
from adlro.train.episodes import EpisodeKey, EpisodeSource
from adlro.train.hyperparameters import (
    AdlroHyperparameters,
    LabelRound,
    PreemptiveHyperparameters,
    Shares,
    TuningSettings,
    focused,
)
from tests import toys

TOY = toys.bound_and_free()
SOURCE = EpisodeSource(TOY, (0.6, 1.0))
COUNT = 600


@pytest.fixture
def asked_for(monkeypatch):
    """What the wide family was asked for; it and the relatives are scenarios that say so."""
    found = []

    def wide(rng, most):
        found.append(most)
        return adjusted(TOY, name="wide")

    monkeypatch.setattr(wide_family, "draw", wide)
    monkeypatch.setattr(family, "draw", lambda base, rng: adjusted(base, name="relative"))
    return found


def drawn(shares, count=COUNT, source=SOURCE):
    keys = [EpisodeKey(0, 1, number) for number in range(count)]
    return [source.draw(key, shares, key.rng) for key in keys]


def about(share, among=COUNT):
    """A share of random draws, within three standard deviations."""
    return pytest.approx(share, abs=3 * (share * (1 - share) / among) ** 0.5)


def round_of(**changes):
    return LabelRound(base="min-min", behaviours=("min-min",), states=1, **changes)


@pytest.mark.usefixtures("asked_for")
def test_the_kinds_of_episodes_have_their_shares():
    episodes = drawn(Shares(relatives=0.2, wide=0.5, errors=0.3))
    kinds = collections.Counter(episode.scenario.name for episode in episodes)
    shares = {kind: count / COUNT for kind, count in kinds.items()}
    assert shares == {"relative": about(0.2), "wide": about(0.5), TOY.name: about(0.3)}
    for kind in kinds:  # errors are no matter of the kind
        with_errors = [one.errors is not None for one in episodes if one.scenario.name == kind]
        assert np.mean(with_errors) == about(0.3, len(with_errors))
    assert len({one.errors for one in episodes}) > 0.25 * COUNT
    assert len({one.seed for one in episodes}) == COUNT


def test_without_shares_it_is_the_scenario_at_some_load_with_its_own_estimates():
    episodes = drawn(Shares(relatives=0.0), 100)
    loads = [episode.scenario.load for episode in episodes]
    assert 0.6 <= min(loads) < 0.65 < 0.95 < max(loads) <= 1.0
    assert all(adjusted(episode.scenario, load=TOY.load) == TOY for episode in episodes)
    assert {episode.errors for episode in episodes} == {None}


@pytest.mark.parametrize("are_small", [False, True])
def test_wide_clusters_are_small_ones_if_that_is_asked_for(asked_for, are_small):
    assert len(drawn(Shares(0.0, wide=1.0, are_small=are_small), 3)) == 3
    assert asked_for == [wide_family.SMALL if are_small else wide_family.WHOLE] * 3


def test_an_episode_follows_from_its_key():
    shares = Shares(relatives=0.3, wide=0.4, errors=0.5, are_small=True)
    some = drawn(shares, 6)
    assert drawn(shares, 6) == some
    assert drawn(shares, 6)[3] == SOURCE.draw(EpisodeKey(0, 1, 3), shares, EpisodeKey(0, 1, 3).rng)
    assert len({one.scenario.name for one in some}) > 1


def test_labels_are_made_on_clusters_of_all_sizes_and_tuning_plays_small_ones():
    shares = {"family_share": 0.2, "wide_share": 0.3, "error_share": 0.1}
    assert round_of(**shares).shares == Shares(0.2, 0.3, 0.1, are_small=False)
    assert TuningSettings(**shares).shares == Shares(0.2, 0.3, 0.1, are_small=True)
    assert round_of().shares == Shares(0.5)  # no more than relatives, if nothing is said
    assert PreemptiveHyperparameters().tuning.shares == Shares(0.3, are_small=True)


def parts(used):
    return [each.shares for each in (*used.rounds, used.tuning)]


def test_the_recipe_begins_wide_and_its_last_labels_are_mostly_of_the_scenario():
    shares = parts(AdlroHyperparameters())
    assert all(one.relatives + one.wide < 1 for one in shares)  # the scenario itself is in each
    wide = [one.wide for one in shares[:-1]]
    assert wide == sorted(wide, reverse=True)
    assert wide[0] > 0.5
    assert wide[-1] < 0.25
    assert min(one.errors for one in shares) > 0


def test_a_focused_recipe_gives_half_of_the_wide_share_to_relatives():
    full = AdlroHyperparameters()
    few = focused(full)
    for before, after in zip(parts(full), parts(few), strict=True):
        assert after == before._replace(wide=0.0, relatives=before.relatives + before.wide / 2)
    assert (full.selection.wide > 0, few.selection.wide) == (True, 0)
