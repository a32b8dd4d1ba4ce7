"""Fragmentation gradient descent over the whole cluster, oldest job first.

The world places by best fit here: what differs from that is the policy's own choice.
"""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.model.state import DEMAND, WHOLE
from adlro.policies import registry
from adlro.workloads.setting import prepare
from tests.worlds import build, fill, gpus_of, job, nodes, play

ALL = 2**62 - 1


def kind(share=WHOLE, gpus=1, weight=1.0, **more):
    return {"share": share, "gpus": gpus, "weight": weight, "pools": ALL, **more}


def looking_ahead(groups, jobs, *kinds):
    world = build(groups, jobs)
    world.setting.demands = fill(DEMAND, list(kinds))
    return world


def test_a_slice_goes_where_typical_jobs_still_fit():
    # Typical jobs want 700. Job 0 leaves 700 on GPU 0. Job 1 there would leave 400, of no use:
    # fragments grow by 400. On GPU 1 it leaves 700: by nothing. Best fit would take GPU 0.
    slices = [job(0, 9, share=300), job(0, 9, share=300)]
    result = play(looking_ahead([nodes(gpus=2)], slices, kind(700)), "fgd")
    assert [gpus_of(result, j) for j in range(2)] == [[0], [1]]


def test_kinds_count_by_their_weight():
    # Half a GPU is left on GPU 0. A slice of 250 beside it leaves 250 and 1000: of no use to jobs
    # of 500 is the 250, to whole ones the 250 too. On GPU 1 it leaves 500 and 750: of no use to
    # whole jobs are all 1250, to jobs of 500 nothing. Before, the 500 was of no use to whole ones.
    # Growth with weight w of the whole ones: 250 - 500 w, and 1250 w - 500 w = 750 w.
    slices = [job(0, 9, share=500), job(0, 9, share=250)]
    few = looking_ahead([nodes(gpus=2)], slices, kind(500, weight=0.9), kind(weight=0.1))
    many = looking_ahead([nodes(gpus=2)], slices, kind(500, weight=0.5), kind(weight=0.5))
    assert gpus_of(play(few, "fgd"), 1) == [1]  # 200 against 75
    assert gpus_of(play(many, "fgd"), 1) == [0]  # 0 against 375


def test_a_job_takes_what_is_of_no_use_to_others_even_if_it_is_slower_there():
    # Typical jobs may use the V100s alone. There the slice spoils 500; of the T4, where all 1000
    # are of no use, it takes 500 away.
    jobs = [job(0, 1, 9, share=500)]
    world = looking_ahead([nodes("V100"), nodes("T4")], jobs, kind(pools=1))
    assert play(world, "fgd").outcome["pool"].tolist() == [1]


def test_a_gang_leaves_the_large_node_to_large_gangs():
    # Typical jobs want four GPUs of a node: two taken there spoil the other two (+2000); two of a
    # node of two were of no use anyway (-2000).
    world = looking_ahead([nodes("V100", 4), nodes("T4", 2)], [job(0, 1, 9, gpus=2)], kind(gpus=4))
    assert play(world, "fgd").outcome["pool"].tolist() == [1]


def test_a_job_that_would_strand_gpus_without_cores_goes_elsewhere():
    # Typical jobs want a GPU and 8 cores. With 6 of 12 taken a GPU is left without (+1000); with 6
    # of 16 it is not.
    groups = [nodes("V100", 2, cores=12), nodes("T4", 2, cores=16)]
    world = looking_ahead(groups, [job(0, 1, 9, cores=6)], kind(cores=8))
    assert play(world, "fgd").outcome["pool"].tolist() == [1]


def test_ties_go_to_the_lower_node_and_gpu():
    # No kind can use anything: all that is taken was of no use, wherever.
    world = looking_ahead([nodes(gpus=2, count=2)], [job(0, 9)] * 3, kind(gpus=3))
    result = play(world, "fgd")
    assert [gpus_of(result, j) for j in range(3)] == [[0], [1], [2]]


def test_a_gang_that_no_node_can_hold_begins_on_the_roomiest():
    groups = [nodes("V100", 2, count=2), nodes("T4", 3, count=2)]
    result = play(looking_ahead(groups, [job(0, 1, 9, gpus=4)], kind()), "fgd")
    assert gpus_of(result, 0) == [4, 5, 6, 7]


def test_who_does_not_fit_is_passed_by_but_starts_as_soon_as_it_does():
    jobs = [job(0, 10), job(0, 3, gpus=2), job(0, 5)]
    outcome = play(looking_ahead([nodes(gpus=2)], jobs, kind()), "fgd").outcome
    assert outcome["start"].tolist() == [0, 10, 0]


def test_a_job_goes_only_where_it_may():
    jobs = [job(0, 9, 1, share=500, allowed=[0])]
    world = looking_ahead([nodes("V100"), nodes("T4")], jobs, kind(pools=1))
    assert play(world, "fgd").outcome["pool"].tolist() == [0]


def test_it_looks_ahead_to_the_scenarios_jobs_whatever_the_scenarios_placement_is():
    scenario = find_scenario("hetero64")
    settings = [
        prepare(adjusted(scenario, placement=placement)) for placement in ("best-fit", "fgd")
    ]
    params = [registry.load("fgd", setting).params for setting in settings]
    assert params[0].tobytes() == params[1].tobytes()
    assert params[0].view(DEMAND).tolist() == settings[1].placement.tolist()
    assert len(settings[1].placement) > 1


@pytest.mark.parametrize(("count", "refused"), [(63, False), (64, True)])
def test_more_pools_than_a_mask_has_bits_are_refused(count, refused):
    groups = [
        {"name": f"n{i}", "gpu": "V100", "gpus": 4, "cores": 64 + i, "memory_gb": 256}
        for i in range(count)
    ]
    types = [
        {
            "name": "a",
            "share": 1,
            "kind": "ml",
            "size": {"law": "constant", "seconds": 9},
            "cores": 0,
        }
    ]
    made = adjusted(find_scenario("paper16"), cluster={"nodes": groups}, types=types, affinity={})
    setting = prepare(made)
    if refused:
        assert registry.refusal("fgd", setting) == (
            "it needs typical demands, which this cluster does not know"
        )
    else:
        top = registry.load("fgd", setting).params.view(DEMAND)["pools"]
        assert np.all(top == 2**63 - 1)
