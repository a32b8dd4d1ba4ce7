"""The search of Slurm's settings finds what helps, and no more, on objectives made by hand."""

import numpy as np
import pytest

from adlro.evaluate.slurm_search import (
    Candidate,
    Site,
    neutral,
    restored,
    search_best,
    space_of,
)
from adlro.model.slurm import Slurm, TresWeights
from adlro.seeds import StudyStream, study_stream

WINDOWS = 8


def searched(site, cost, trials=60):
    """What the search finds where cost(candidate) is the objective of a window, up to noise."""
    calls = []

    def measure(candidates, count):
        calls.extend((one.key, count) for one in candidates)
        windows = 1 + 0.1 * np.arange(count)
        return [cost(one) * windows for one in candidates]

    found = search_best(site, measure, (2, WINDOWS), trials, study_stream(StudyStream.SLURM_SEARCH))
    return found, calls


def site(slurm=None, **more):
    return Site(Candidate(slurm or Slurm(), ("a", "b")), **more)


def small_first(candidate):
    slurm = candidate.slurm
    return 80.0 if slurm.favor_small and slurm.weight_job_size > 0 else 100.0


def test_a_change_of_two_settings_that_only_help_together_is_found_and_nothing_else_is_changed():
    found, _ = searched(site(), small_first)
    slurm = found.best.slurm
    assert small_first(found.best) == 80
    weight = slurm.weight_job_size
    assert slurm == Slurm(weight_job_size=weight, favor_small=True)
    assert found.best.order == ("a", "b")


def test_the_present_configuration_is_kept_where_nothing_is_better():
    present = site(Slurm(weight_job_size=10, favor_small=True))
    found, _ = searched(present, small_first)
    assert found.best == present.current


@pytest.mark.parametrize(("gain", "is_kept"), [(0.5, False), (2.0, True)])
def test_a_gain_below_one_percent_is_not_worth_a_change(gain, is_kept):
    found, _ = searched(site(), lambda one: 100 - gain * (one.slurm.bf_interval_s == 10))
    assert (found.best.slurm.bf_interval_s == 10) is is_kept


def test_a_change_within_the_noise_is_taken_back():
    noise = np.array([-5.0, -5, 5, 5, -5, 5, 5, -5]) - 1  # helps by 1 on average

    def measure(candidates, count):
        return [
            small_first(one) + (noise * (one.slurm.bf_interval_s == 10))[:count]
            for one in candidates
        ]

    start = site(Slurm(bf_interval_s=60))
    found = search_best(start, measure, (2, WINDOWS), 300, study_stream(StudyStream.SLURM_SEARCH))
    assert found.trials[0].candidate.slurm.bf_interval_s == 10
    assert found.best.slurm.favor_small
    assert found.best.slurm.bf_interval_s == 60


def test_a_better_order_of_nodes_is_found():
    found, _ = searched(site(orders=(("b", "a"),)), lambda one: 90.0 + (one.order[0] == "a"))
    assert found.best == Candidate(Slurm(), ("b", "a"))


def test_it_is_the_same_each_time_and_keeps_to_its_trials():
    first, calls = searched(site(), small_first, trials=20)
    again, more = searched(site(), small_first, trials=20)
    assert (first, calls) == (again, more)
    assert len(first.trials) <= 20
    few = {key for key, count in calls if count < WINDOWS}
    assert len({key for key, count in calls if count == WINDOWS}) < len(few)


def test_dimensions_that_the_site_does_not_have_vanish():
    plain = space_of(site())
    assert not {"order", "QOS", "partition tiers", "partition factors"} & set(plain)
    more = space_of(site(partitions=("x", "y"), orders=(("b", "a"),), has_qos=True))
    assert {"order", "QOS", "partition tiers", "partition factors"} <= set(more)
    assert "scheduler" not in more
    assert "scheduler" in space_of(site(Slurm(scheduler="builtin")))


def test_every_option_is_a_configuration_that_slurm_accepts_and_changes_something():
    present = site(Slurm(weight_age=2**32 - 1, weight_qos=7), partitions=("x", "y"), has_qos=True)
    for options in space_of(present).values():
        for option in options:
            slurm = option.applied(present.current).slurm
            assert Slurm.model_validate(slurm.model_dump()) == slurm
            assert slurm != present.current.slurm
            assert slurm.weight_job_size == round(slurm.weight_job_size)


def test_priority_basic_is_searched_as_multifactor_without_weights_and_restored_if_none_is_used():
    basic = Slurm(priority_type="basic", weight_age=5, weight_tres=TresWeights(gpu=3))
    start = neutral(basic)
    assert start == Slurm()
    assert restored(start, basic) == basic
    faster = start.model_copy(update={"bf_interval_s": 10})
    assert restored(faster, basic) == basic.model_copy(update={"bf_interval_s": 10})
    weighted = start.model_copy(update={"weight_job_size": 9})
    assert restored(weighted, basic) == weighted
