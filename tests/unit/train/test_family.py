"""Random relatives of a scenario: all valid, and none of those kept for claims."""

from itertools import pairwise

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario, scenario_of
from adlro.errors import ConfigError
from adlro.evaluate.metrics import fastest_possible
from adlro.train.family import draw
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare


@pytest.fixture(scope="module", params=[100, pytest.param(300, marks=pytest.mark.slow)])
def relatives(request):
    rng = np.random.default_rng(0)
    return [draw(find_scenario("paper16"), rng) for _ in range(request.param)]


def test_one_seed_gives_the_same_relatives():
    def some(seed):
        rng = np.random.default_rng(seed)
        return [draw(find_scenario("paper16"), rng) for _ in range(20)]

    assert some(5) == some(5)
    assert some(5) != some(6)


def test_no_relative_is_as_loaded_as_what_claims_are_made_on(relatives):
    loads = [scenario.load for scenario in relatives]
    assert min(loads) >= 0.5
    assert max(loads) < 2.1
    assert sum(load > 1.1 for load in loads) > 5


def test_no_type_of_job_has_more_than_a_share_of_0_6(relatives):
    for scenario in relatives:
        shares = np.array([job_type.share for job_type in scenario.types])
        assert (shares / shares.sum()).max() <= 0.6
        assert shares.min() > 0


def test_of_two_types_none_has_more_than_a_share_of_0_6():
    two = [job_type.model_dump() for job_type in find_scenario("paper16").types[:2]]
    for job_type in two:
        job_type["share"] = 0.5
    base, rng = find_scenario("paper16"), np.random.default_rng(1)
    base = adjusted(base, types=two, affinity={})
    shares = np.array([[t.share for t in draw(base, rng).types] for _ in range(40)])
    assert (shares.max(axis=1) / shares.sum(axis=1)).max() <= 0.6
    assert len(np.unique(shares[:, 0])) > 10


def test_estimates_are_never_noisier_than_0_4(relatives):
    noisy = [s.estimates.sigma for s in relatives if s.estimates.source == "noisy"]
    assert len(noisy) > 0.2 * len(relatives)
    assert max(noisy) <= 0.4


def test_bursts_are_weaker_than_a_peak_of_3(relatives):
    bursty = [s.arrivals for s in relatives if s.arrivals.process == "bursty"]
    assert len(bursty) > 0.1 * len(relatives)
    assert max(arrivals.peak for arrivals in bursty) < 3
    assert {s.arrivals.process for s in relatives} == {"poisson", "bursty", "diurnal"}


def test_clusters_differ_in_size_and_in_models(relatives):
    layouts = [prepare(scenario).layout for scenario in relatives[:40]]
    assert len({len(layout.gpus) for layout in layouts}) > 5
    assert len({model.name for layout in layouts for model in layout.models}) > 6


def test_every_job_of_a_relative_fits_somewhere(relatives):
    for seed, scenario in enumerate(relatives[:40]):
        setting = prepare(scenario)
        workload = generate(setting, 1_000_000 + seed)
        assert workload.allowed.any(axis=1).all()
        assert np.isfinite(fastest_possible(workload, setting.layout)).all()
        assert all(a <= b for a, b in pairwise(workload.jobs["arrival"]))


def test_the_scenario_itself_is_not_changed():
    base = find_scenario("paper16")
    before = base.model_dump_json()
    for seed in range(20):
        draw(base, np.random.default_rng(seed))
    assert base.model_dump_json() == before


def test_if_no_relative_fits_that_is_said():
    # A job of more memory than any GPU has.
    base = find_scenario("paper16")
    huge = [{**job_type.model_dump(), "gpu_memory_gb": 10_000} for job_type in base.types]
    impossible = adjusted(base, types=huge)
    with pytest.raises(ConfigError, match=r"^no relative of paper16 in 100 tries: "):
        draw(impossible, np.random.default_rng(0))


def test_a_relative_has_some_of_the_scenario_s_changes_and_none_of_its_own(relatives):
    assert all(scenario.changes == () for scenario in relatives)
    rough, rng = find_scenario("rough64"), np.random.default_rng(2)
    drawn = [draw(rough, rng) for _ in range(30)]
    counts = [len(scenario.changes) for scenario in drawn]
    assert min(counts) < 2 < 4 < max(counts)
    assert all(set(scenario.changes) <= set(rough.changes) for scenario in drawn)


def test_relatives_of_a_history_keep_its_arrivals_and_leave_out_what_fits_no_cluster(tmp_path):
    rows = "".join(f"{100 * job},60,{1 if job else 8}\n" for job in range(50))
    (tmp_path / "jobs.csv").write_text(f"submit_time,run_s,gpus\n{rows}")
    nodes = {"name": "a", "gpu": "V100", "gpus": 4, "cores": 64, "memory_gb": 64}
    cluster = {"nodes": [{**nodes, "hosts": ["gpu01", "gpu02"]}]}
    tables = {"history": {"file": "jobs.csv", "speeds": "measured-mix"}, "cluster": cluster}
    base = scenario_of({**tables, "jobs": 20}, tmp_path / "mine.toml")
    found = [draw(base, np.random.default_rng(seed)) for seed in range(40)]
    assert {one.arrivals.process for one in found} == {"poisson"}
    assert {one.history.unfit for one in found} == {"drop"}
    assert len({one.cluster.model_dump_json() for one in found}) > 5
    assert any(len(prepare(one).played.jobs) == 49 for one in found)  # one node: 4 GPUs
