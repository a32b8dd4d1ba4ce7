"""Gantt charts show every run, event and downtime."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate.compare import run_one
from adlro.evaluate.downtime import downtime, window
from adlro.evaluate.report.gantt import Limits, compose, draw
from adlro.evaluate.report.runs import lanes, run_details
from adlro.model.state import FAILURE, FINISH, PREEMPTION, SPAN, SPEED
from adlro.policies import registry
from adlro.sim.world import EmptyCluster
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.looped import every
from tests.worlds import InPython, World, fill, play, random_world


def _rough(seed=3, **changes):
    setting = prepare(adjusted(find_scenario("rough64"), jobs=250, **changes))
    workload, layout = generate(setting, seed), setting.layout
    world = World(EmptyCluster(layout.pools, layout.nodes, layout.gpus), workload, setting)
    return setting, workload, play(world, "restless", seed)


@pytest.fixture(scope="module")
def rough():
    return _rough()


@pytest.fixture(scope="module")
def calm():
    setting = prepare(adjusted(find_scenario("paper16"), jobs=60))
    workload = generate(setting, 0)
    policy = registry.load("min-min", setting)
    return setting, workload, run_one(setting, workload, policy, 0, keep_spans=True)


def _legend(figure):
    return {trace.name for trace in figure.data if trace.showlegend is not False}


def _count(figure, name):
    return sum(len(trace.x) for trace in figure.data if trace.name == name)


def _bars(figure, *, hatched):
    bars = [trace for trace in figure.data if trace.type == "bar" and trace.name != "node down"]
    return sum(len(bar.x) for bar in bars if (bar.marker.pattern.shape is not None) == hatched)


def test_the_page_shows_every_run_and_needs_no_network(calm):
    page = draw(*calm, "a title with <b>marks</b>")
    assert page.count("waited") == int(calm[1].jobs["gpus"].sum())
    assert "(V100 32GB)" in page
    assert "&lt;b&gt;" in page
    assert 'src="http' not in page


def test_without_events_the_legend_has_job_types_only(calm):
    assert _legend(compose(*calm, "")) == {"simulation", "ml", "data"}


def test_with_events_the_legend_has_an_entry_for_each_kind(rough):
    types = {"simulation", "training", "inference", "data", "notebook"}
    happened = {
        "preempted", "lost to a failure", "node down", "GPU slower", "GPU faster",
        "type on a model changes speed",
    }  # fmt: skip
    assert _legend(compose(*rough, "")) == types | happened


def test_runs_that_were_cut_short_are_hatched_and_marked_at_their_end(rough):
    spans, figure = rough[2].spans, compose(*rough, "")
    assert _bars(figure, hatched=False) == (spans["why"] == FINISH).sum()
    assert _bars(figure, hatched=True) == (spans["why"] != FINISH).sum() > 0
    assert _count(figure, "preempted") == (spans["why"] == PREEMPTION).sum() > 0
    assert _count(figure, "lost to a failure") == (spans["why"] == FAILURE).sum() > 0


def test_a_node_that_is_down_is_grey_over_all_of_its_gpus(rough):
    setting, workload, result = rough
    down, nodes = downtime(workload.events, window(workload, result)), setting.layout.nodes
    (bars,) = (trace for trace in compose(*rough, "").data if trace.name == "node down")
    first, gpus = nodes["first_gpu"][down.node], nodes["gpus"][down.node]
    assert (np.array(bars.y) - np.array(bars.width) / 2 == first - 0.5).all()
    assert (np.array(bars.width) == gpus).all()
    begin = (down.start - workload.jobs["arrival"][0]) / 3600
    np.testing.assert_allclose(np.array(bars.base, np.float64), begin)
    np.testing.assert_allclose(bars.x, (down.end - down.start) / 3600)


def test_changes_of_speed_are_marked_on_their_gpu_and_updates_by_a_line(rough):
    _, workload, result = rough
    events = workload.events[workload.events["time"] < window(workload, result).last]
    speeds, figure = events[events["kind"] == SPEED], compose(*rough, "")
    of_gpu = speeds["gpu"] >= 0
    marks = _count(figure, "GPU slower") + _count(figure, "GPU faster")
    assert marks == of_gpu.sum() > 0
    assert _count(figure, "type on a model changes speed") == 3 * (~of_gpu).sum() > 0
    assert "training on A100 80GB: speed 1.15" in {note.text for note in figure.layout.annotations}


def test_hover_texts_show_shares_restarts_restoring_and_how_a_run_ended(rough):
    texts = [t for trace in compose(*rough, "").data for t in trace.customdata]
    words = (
        "0.25 of a GPU", "run 2 of ", " s restoring a checkpoint", "finished at", "preempted at",
        "lost to a failure at", "(planned)", "(failure)", "°C",
    )  # fmt: skip
    assert [word for word in words if not any(word in text for text in texts)] == []


def test_names_of_the_scenario_are_escaped_wherever_they_stand():
    named = find_scenario("rough64").model_dump()
    named["cluster"]["nodes"][0]["name"] = "<i>node</i>"
    named["types"][1]["name"] = "<i>type</i>"
    named["affinity"], named["colocation"] = {}, ()
    named["changes"][2]["type"] = "<i>type</i>"
    del named["jobs"]
    figure = compose(*_rough(**named), "<i>title</i>")
    assert "<i>" not in figure.to_json().replace("\\u003c", "<")
    assert "&lt;i&gt;node" in figure.to_json().replace("\\u0026", "&")


def test_what_does_not_fit_is_left_out_and_noted(rough):
    figure = compose(*rough, "title", Limits(gpus=16, bars=200))
    assert "left out: 48 of 64 GPUs and what began after" in figure.layout.title.text
    assert 0 < _bars(figure, hatched=True) + _bars(figure, hatched=False) <= 200
    assert len(figure.layout.yaxis.ticktext) == 16
    assert "left out" not in compose(*rough, "title").layout.title.text


def test_many_runs_make_a_page_that_a_browser_can_open():
    setting = prepare(adjusted(find_scenario("hetero64"), jobs=20_000))
    workload = generate(setting, 0)
    policy = registry.load("pair-sjf", setting)
    result = run_one(setting, workload, policy, 0, keep_spans=True)
    assert len(result.spans) > 20_000
    assert len(draw(setting, workload, result, "")) < 20e6


def _spans(*rows):
    """Slices on GPU 0: (share, start, end)."""
    return fill(SPAN, [{"share": s, "start": a, "end": b} for s, a, b in rows])


def test_slices_are_stacked_each_as_high_as_its_share():
    low, height = lanes(_spans((500, 0, 9), (250, 0, 4), (250, 2, 9), (200, 4, 9)))
    assert low.tolist() == [0, 0.5, 0.75, 0.5]
    assert height.tolist() == [0.5, 0.25, 0.25, 0.2]


def test_slices_without_a_gap_for_the_last_are_all_drawn_thinner_until_the_gpu_is_empty():
    low, height = lanes(_spans((300, 0, 9), (300, 0, 5), (300, 0, 9), (400, 5, 9), (500, 9, 12)))
    assert low == pytest.approx([0, 0.3 / 1.3, 0.6 / 1.3, 0.9 / 1.3, 0])
    assert height == pytest.approx([0.3 / 1.3, 0.3 / 1.3, 0.3 / 1.3, 0.4 / 1.3, 0.5])


@every("seed", range(30))
def test_no_two_runs_are_drawn_on_top_of_each_other(seed):
    spans = play(random_world(seed), "restless", seed).spans
    low, height = lanes(spans)
    high = low + height
    assert ((low >= 0) & (high <= 1 + 1e-9)).all()
    one, other = np.triu_indices(len(spans), 1)
    same = (
        (spans["gpu"][one] == spans["gpu"][other])
        & (spans["start"][one] < spans["end"][other])
        & (spans["start"][other] < spans["end"][one])
    )
    apart = (high[one] <= low[other] + 1e-9) | (high[other] <= low[one] + 1e-9)
    assert apart[same].all()


@every("seed", range(30))
def test_run_details_match_the_simulator(seed):
    world, saved, since = random_world(seed), {}, {}

    def look(view):
        saved.update({(r.job, r.restarts): r.saved for r in view.running})
        since.update({(w.job, w.restarts): w.since for w in view.queue})

    spans, jobs = play(world, InPython("restless", world, look), seed).spans, world.workload.jobs
    runs = run_details(spans, jobs)
    keys = [(int(j), int(n)) for j, n in zip(spans["job"], runs.number, strict=True)]
    seen = np.array([key in saved for key in keys])
    assert seen.mean() > 0.5  # what starts and stops in one answer, nobody sees running
    cost = np.where([saved.get(key, 0) for key in keys], jobs["checkpoint"][spans["job"]], 0)
    assert (runs.restoring == cost)[seen].all()
    waited = spans["start"] - [since.get(key, np.nan) for key in keys]
    known = ~np.isnan(waited)
    assert runs.waited[known] == pytest.approx(waited[known])
