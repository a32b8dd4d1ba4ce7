"""`tune` proposes what helps on jobs that it has not seen, names what starves, or leaves it."""

import numpy as np
import pytest

from adlro.config.files import find_cluster
from adlro.config.slurm import read_slurm
from adlro.config.slurm_lines import Written
from adlro.evaluate.batch import Batch
from adlro.evaluate.history_halves import Halves, ordered, spread
from adlro.evaluate.run_store import RunStore
from adlro.evaluate.stats import Estimate
from adlro.evaluate.tune import Request, is_worth_it, tune, units
from adlro.evaluate.variants import Variants
from adlro.model.cluster import Cluster
from adlro.workloads.history_scenario import Source
from tests import tuned
from tests.histories import write


def halves_of(folder, text, config, cluster=tuned.CLUSTER):
    folder.mkdir(exist_ok=True)
    jobs = write(folder, text, "jobs.csv")
    slurm = read_slurm(write(folder, config, "slurm.conf"), ["main"]).slurm
    place = write(folder, cluster, "cluster.toml")
    table = slurm.model_dump(exclude_defaults=True)
    source = Source(jobs, find_cluster(str(place)), {"unfit": "drop"}, table)
    halves = Halves(Variants(source))
    halves.play_with(Batch(RunStore(jobs, folder / "runs"), 1))
    return halves


def tuned_on(folder, text, config, trials=16):
    request = Request(trials=trials, written=Written(("main",)))
    return tune(halves_of(folder, text, config), request)


@pytest.fixture(scope="module")
def large_first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    return tuned_on(folder, tuned.csv(), tuned.LARGE_FIRST)


def test_gangs_first_is_found_to_hurt_and_the_lines_say_so(large_first):
    assert large_first.verdict == "change"
    assert large_first.gain.ci95[0] > 0
    assert 1 <= len(large_first.changes) <= 4
    keys = {change.key for change in large_first.changes}
    assert keys & {"PriorityWeightJobSize", "PriorityFavorSmall"}
    assert any("PriorityFavorSmall=Yes" in one or "JobSize" in one for one in large_first.lines)
    assert large_first.rejected == []
    assert set(large_first.by_speeds) == {"none", "measured-mix", "gavel-types"}


def test_the_starved_account_and_the_weight_that_starves_it_are_named(large_first):
    [starved] = [one for one in large_first.findings if one.kind == "starved-account"]
    assert starved.name == "bio"
    assert starved.text.startswith("PriorityWeightJobSize starves account bio: ")


def test_who_gains_and_who_loses_is_told(large_first):
    assert ("account", "bio") in {(one.grouping, one.name) for one in large_first.gainers}
    assert all(one.change_s.mean > 0 for one in large_first.losers)
    assert all(one.change_s.mean < 0 for one in large_first.gainers)


def test_what_adlro_would_gain_beyond_is_told(large_first):
    ours = large_first.adlro
    assert ours.gain.mean > ours.left.mean
    assert [one.policy for one in large_first.others] == ["easy-backfill", "min-min"]


def test_assumptions_on_speeds_that_cannot_differ_are_said_to_count_as_one(large_first):
    assert len({one.mean for one in large_first.by_speeds.values()}) == 1
    assert any("count as one" in text for text in large_first.assumptions)


def test_trials_are_listed_best_first(large_first):
    assert 0 < len(large_first.trials) <= 20
    whole = [one.gain_pct for one in large_first.trials if one.windows == large_first.first_windows]
    assert whole == sorted(whole, reverse=True)


def test_the_same_again_plays_nothing(tmp_path):
    halves = halves_of(tmp_path, tuned.csv(jobs=820), tuned.LARGE_FIRST)
    request = Request(trials=4, written=Written(("main",)))
    first = tune(halves, request)
    again = halves_of(tmp_path, tuned.csv(jobs=820), tuned.LARGE_FIRST)
    batch = Batch(RunStore(halves.variants.file, tmp_path / "runs"), 1)
    again.play_with(batch)
    assert tune(again, request) == first
    assert batch.played == 0


def test_a_cluster_that_is_run_best_already_is_left_alone(tmp_path):
    found = tuned_on(tmp_path, tuned.csv(), tuned.SMALL_FIRST)
    assert found.verdict == "leave it"
    assert (found.changes, found.lines) == ([], [])
    assert found.trials


def test_an_idle_cluster_has_nothing_to_gain(tmp_path):
    halves = halves_of(tmp_path, tuned.csv(gap=5000), tuned.LARGE_FIRST)
    found = tune(halves, Request("mean-wait", 4, Written(("main",))))
    assert found.verdict == "leave it"
    assert found.gain.mean == 0
    assert found.gains["mean-wait"] is None


@pytest.mark.parametrize(
    ("mean", "low", "is_enough"),
    [(5.0, 1.0, True), (5.0, -0.1, False), (0.9, 0.5, False), (-5.0, -9.0, False)],
)
def test_only_a_settled_gain_of_a_percent_is_worth_a_change(mean, low, is_enough):
    assert is_worth_it(Estimate(mean=mean, sd=1.0, ci95=(low, 10.0))) is is_enough
    assert not is_worth_it(Estimate(mean=mean, sd=None, ci95=None))


def test_any_beginning_of_the_windows_is_spread():
    assert spread(8) == [0, 4, 2, 6, 1, 5, 3, 7]
    assert sorted(spread(11)) == list(range(11))


def test_groups_that_share_a_host_or_a_pool_stay_together_in_the_order():
    group = {"gpus": 4, "cores": 8, "memory_gb": 64}
    nodes = [
        {"name": "a", "gpu": "A100 80GB", "hosts": ["a1"], **group},
        {"name": "v", "gpu": "V100", "hosts": ["v100@m1"], **group},
        {"name": "a2", "gpu": "A100 80GB", "hosts": ["a2"], **group},
        {"name": "t", "gpu": "T4", "hosts": ["t4@m1"], **group},
    ]
    cluster = Cluster.model_validate({"nodes": nodes})
    assert units(cluster) == [("a", "a2"), ("v", "t")]
    turned = ordered(cluster, ("v", "t", "a", "a2"))
    assert [one.name for one in turned.nodes] == ["v", "t", "a", "a2"]


@pytest.mark.slow
def test_nothing_is_proposed_that_is_worse_on_the_later_half(tmp_path):
    verdicts = []
    for seed in range(6):
        config = (tuned.LARGE_FIRST, tuned.SMALL_FIRST)[seed % 2]
        text = tuned.csv(seed, 900, load=(0.6, 0.9, 1.1)[seed % 3])
        found = tuned_on(tmp_path / str(seed), text, config, trials=30)
        verdicts.append(found.verdict)
        assert (found.verdict == "change") is bool(found.lines)
        if found.verdict == "change":
            assert found.gain.ci95[0] > 0
            assert np.mean([one.mean for one in found.by_speeds.values()]) > 0
    assert "change" in verdicts
    assert "leave it" in verdicts
