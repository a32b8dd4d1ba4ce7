import sys

import pytest

from adlro.train import episode_seeds, episodes
from adlro.train.adlro import AdlroTraining
from adlro.train.executor import ThreadExecutor
from adlro.train.folder import TrainingFolder
from adlro.train.run import Run
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests import toys


@pytest.mark.parametrize("seed", [0, 9_999, 99_999, 100_500, 200_000, 201_499, 999_999, -1])
def test_seeds_of_users_and_of_claims_are_refused(seed):
    with pytest.raises(ValueError, match=f"seed {seed} is not for training"):
        episode_seeds.jobs(prepare(toys.bound_and_free()), seed)


@pytest.mark.parametrize("seed", [100_000, 100_499, 1_000_000, 10**12])
def test_seeds_of_selection_and_training_make_jobs(seed):
    setting = prepare(toys.bound_and_free(jobs=3))
    assert (
        episode_seeds.jobs(setting, seed).jobs.tobytes() == generate(setting, seed).jobs.tobytes()
    )


def test_no_two_phases_of_two_runs_share_a_seed():
    firsts = [episode_seeds.training(run, phase, 0) for run in range(3) for phase in range(32)]
    lasts = [episode_seeds.training(run, phase, 999_999) for run in range(3) for phase in range(32)]
    assert firsts[0] == 1_000_000
    assert [last + 1 for last in lasts[:-1]] == firsts[1:]
    assert (episode_seeds.block(1).first, episode_seeds.block(1).last) == (firsts[32], lasts[63])


@pytest.mark.parametrize("place", [(0, 0, 10**6), (0, 0, -1), (0, 32, 0), (-1, 0, 0)])
def test_places_beyond_a_block_are_refused(place):
    with pytest.raises(ValueError, match=r"episode|out of range"):
        episode_seeds.training(*place)


def test_a_whole_training_never_draws_the_jobs_of_any_other_seed(tmp_path, monkeypatch):
    drawn, original = set(), generate

    def spy(setting, seed):
        drawn.add(seed)
        return original(setting, seed)

    for module in list(sys.modules.values()):
        if getattr(module, "generate", None) is original:
            monkeypatch.setattr(module, "generate", spy)
    episodes._jobs.cache_clear()  # of jobs that were drawn before
    folder = TrainingFolder(tmp_path / "t")
    with folder.locked():
        plan = toys.plan(toys.bound_and_free(), toys.tiny())
        AdlroTraining(Run(plan, folder, ThreadExecutor(1))).train()
    selected = {seed for seed in drawn if seed < 1_000_000}
    assert selected == set(range(100_000, 100_006))
    assert len(drawn - selected) >= 10
    assert max(drawn) <= episode_seeds.block(0).last
