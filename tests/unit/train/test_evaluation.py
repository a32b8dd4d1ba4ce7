"""Selection of networks on the scenario and on the wide family."""

import numpy as np
import pytest

from adlro.evaluate.pooled import Pooled
from adlro.evaluate.stats import Estimate
from adlro.train import episode_seeds, wide_family
from adlro.train.episodes import DRAIN_ARGMIN, MIN_MIN, EpisodeTask, play
from adlro.train.evaluation import Evaluation, Evaluator, SelectionRuns, WideGain
from adlro.train.executor import ThreadExecutor
from adlro.train.window_evaluation import WindowEvaluator
from tests import toys

TOY = toys.bound_and_free(40)
EPISODES = 12


@pytest.fixture
def asked_for(monkeypatch):
    """What the wide family was asked for; it draws a toy."""
    found = []

    def wide(rng, most):
        found.append(most)
        return toys.mixed()

    monkeypatch.setattr(wide_family, "draw", wide)
    return found


def evaluator(wide=EPISODES):
    return Evaluator(TOY, ThreadExecutor(1), wide=wide)


def test_wide_episodes_are_of_all_sizes_half_of_them_with_wrong_estimates(asked_for):
    episodes = evaluator(200)._wide_episodes
    assert asked_for == [wide_family.WHOLE] * 200
    assert [one.seed for one in episodes] == list(episode_seeds.SELECTION[:200])
    wrong = np.mean([one.errors is not None for one in episodes])
    assert wrong == pytest.approx(0.5, abs=3 * 0.5 / 200**0.5)
    assert evaluator(200)._wide_episodes == episodes  # the same for every network


@pytest.mark.usefixtures("asked_for")
def test_the_gain_on_the_wide_family_is_a_geometric_mean_over_its_episodes():
    ours = evaluator()
    found = ours.evaluate(DRAIN_ARGMIN, 3)
    scores = [
        np.array([play(EpisodeTask(one, name)) for one in ours._wide_episodes])
        for name in (DRAIN_ARGMIN, MIN_MIN)
    ]
    jct, p99 = (np.exp(np.log(scores[0][:, k] / scores[1][:, k]).mean()) for k in (1, 2))
    assert found.wide.gain.windows == EPISODES
    assert found.wide.gain.mean_pct == pytest.approx(100 * (jct - 1), rel=1e-9)
    assert found.wide.gain.mean_pct != 0
    assert found.wide.p99_ratio == pytest.approx(p99, rel=1e-12)
    assert ours.play_wide(MIN_MIN) is ours.play_wide(MIN_MIN)  # played only once
    assert Evaluation.model_validate_json(found.model_dump_json()) == found  # as in a checkpoint


@pytest.mark.usefixtures("asked_for")
def test_against_itself_a_policy_gains_nothing():
    found = evaluator().evaluate(MIN_MIN, 3)
    assert (found.wide.gain.mean_pct, found.wide.p99_ratio, found.figure) == (0, 1, 0)
    assert found.is_safe


def test_the_wide_family_is_left_out_where_no_episodes_of_it_are_asked_for(asked_for):
    found = evaluator(0).evaluate(DRAIN_ARGMIN, 3)
    assert found.wide is None
    assert found.figure == found.gain.mean
    assert asked_for == []


def made_up(gain, p99, wide_gain=None, wide_p99=1.0):
    wide = None
    if wide_gain is not None:
        pooled = Pooled(windows=9, mean_pct=wide_gain, ci95=None, worst_pct=5.0)
        wide = WideGain(gain=pooled, p99_ratio=wide_p99)
    return Evaluation(
        seeds=5, gain=Estimate(mean=gain, sd=None, ci95=None), p99_ratio=p99, loads=(), wide=wide
    )


@pytest.mark.parametrize(
    ("found", "figure", "is_safe"),
    [
        (made_up(-4.0, 1.0), -4, True),
        (made_up(-4.0, 1.01), -4, False),
        (made_up(-4.0, 1.0, -1.0), -2.5, True),
        (made_up(-4.0, 1.0, 7.0), 1.5, True),
        (made_up(-4.0, 1.0, -1.0, 1.01), -2.5, False),  # a longer tail there
        (made_up(-4.0, 1.01, -1.0, 0.9), -2.5, False),  # or here
    ],
)
def test_both_count_alike_and_the_tail_must_be_no_longer_on_either(found, figure, is_safe):
    assert found.figure == pytest.approx(figure)
    assert found.is_safe == is_safe


def test_windows_of_a_history_are_selected_on_without_the_wide_family(asked_for):
    class Windows(WindowEvaluator):
        """Two windows, whose results are given."""

        def __init__(self):
            self.loads, self.given = (0.8123,), {"mine": [[9.0, 4.0]], MIN_MIN: [[10.0, 5.0]]}

        def play(self, player, count):
            jct = np.array(self.given[player])
            return SelectionRuns(jct, jct, 2 * jct)

    found = Windows().evaluate("mine", 6)
    assert found.gain.mean == pytest.approx(100 * ((0.9 * 0.8) ** 0.5 - 1))
    assert (found.seeds, found.wide, found.figure) == (2, None, found.gain.mean)
    assert found.p99_ratio == pytest.approx((0.9 * 0.8) ** 0.5)
    assert [at.load for at in found.loads] == [0.812]
    assert asked_for == []
