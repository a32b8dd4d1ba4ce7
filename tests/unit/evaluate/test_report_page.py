"""The report of a comparison is one complete file, safe to open and of limited size."""

import json
import re
import tomllib
from html import unescape

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.errors import OutputError
from adlro.evaluate.compare import compare, run_one
from adlro.evaluate.report import charts, formatting, page, regression, seed_charts
from adlro.evaluate.report.chart import styles
from adlro.evaluate.report.collect import Collector
from adlro.evaluate.report.folder import check_folder
from adlro.policies import registry
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare

MARKUP = "</script><img src=x onerror=alert(1)>"
SECTIONS = (
    "table", "times", "differences", "course", "schedules", "groups", "waits", "assumed", "repeat",
    "research",
)  # fmt: skip


def _compared(setting, names, seeds):
    """Policies (NAME=POLICY renames one), comparison and statistics."""
    policies = []
    for name in names:
        policy, _, shown = name.partition("=")
        ready = registry.load(policy, setting)
        policies.append(ready._replace(name=shown or policy))
    collector = Collector(setting)
    result = compare(setting, policies, range(seeds), watch=collector.watch)
    return setting, policies, result, collector.statistics()


@pytest.fixture(scope="module")
def compared():
    scenario = adjusted(find_scenario("paper16"), name=MARKUP, about=MARKUP, jobs=50)
    names = ("fcfs", "min-min", f"sjf={MARKUP}", "tiresias", "mct", "pair-sjf")
    setting, policies, result, statistics = _compared(prepare(scenario), names, 6)
    told = {"command": f"adlro compare {MARKUP}", "notes": [MARKUP]}
    return setting, policies, result.model_copy(update=told), statistics


@pytest.fixture(scope="module")
def written(compared, tmp_path_factory):
    setting, policies, result, statistics = compared
    folder = tmp_path_factory.mktemp("out") / "new"
    return page.write(folder, setting, policies, result, statistics)


@pytest.fixture(scope="module")
def text(written):
    return written.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def own(text):
    """The page without plotly's own code."""
    start = text.index("<script>", text.index("</main>"))
    end = text.index("</script>", start) + len("</script>")
    return text[:start] + text[end:]


@pytest.fixture(scope="module")
def figures(own):
    found = re.findall(r'<script type="application/json" id="(.*?)">(.*?)</script>', own, re.DOTALL)
    return {key: json.loads(data) for key, data in found}


def test_the_page_is_written_whole_into_a_folder_that_is_made(written, text):
    assert [path.name for path in written.parent.iterdir()] == ["report.html"]
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
    assert written.stat().st_size < 8e6


def test_the_sections_stand_in_their_order_and_are_linked(own):
    assert tuple(re.findall(r'<h2 id="(\w+)">', own)) == SECTIONS
    assert tuple(re.findall(r'<a href="#(\w+)">', own)) == SECTIONS


def test_research_metrics_stand_in_a_section_of_their_own_at_the_end(own):
    before, _, research = own.partition('<h2 id="research">')
    for word in ("HyperScore</button>", "least squares", "p\u00a0(Holm)", "Jain, users</button>"):
        assert word not in before
        assert word in research


def test_nothing_is_loaded_from_anywhere(own, text):
    assert re.findall(r"(?:src|href|action|data)\s*=\s*[\"']?\s*(?:https?:)?//", own) == []
    assert re.findall(r"@import|url\(|<link|<iframe|<object|fetch\(|XMLHttpRequest", own) == []
    assert "default-src 'none'" in own
    assert text.count("plotly.js v") == 1


def test_markup_in_names_is_text_on_the_page(own):
    assert MARKUP not in own
    assert "onerror=alert" in own  # as text
    assert re.findall(r"<img|<script>alert", own) == []
    assert own.count("</script>") == own.count("<script")


def test_markup_in_names_is_text_in_the_charts(figures):
    assert "<img" not in json.dumps([_named(figure) for figure in figures.values()])
    assert "&lt;img" in json.dumps([_named(figure) for figure in figures.values()])


def _named(figure):
    """Strings that plotly could interpret as markup, without keys that it only compares."""
    hidden = {"meta", "legendgroup"}
    traces = [{k: v for k, v in trace.items() if k not in hidden} for trace in figure["data"]]
    return traces, {k: v for k, v in figure["layout"].items() if k not in hidden}


def test_every_place_of_a_chart_has_its_figure(own, figures):
    assert re.findall(r'data-figure="(.*?)"', own) == list(figures)
    assert set(re.findall(r'<select data-for="(.*?)"', own)) <= set(figures)


def test_a_select_box_offers_what_the_traces_are_of(own, figures):
    boxes = re.findall(r'<select data-for="(.*?)">(.*?)</select>', own)
    assert len(boxes) == 3  # completion times, differences, GPUs in use
    for key, options in boxes:
        offered = [unescape(option) for option in re.findall(r"<option>(.*?)</option>", options)]
        traces = figures[key]["data"]
        assert {trace["meta"] for trace in traces} == set(offered)
        assert {trace["meta"] for trace in traces if trace["visible"]} == {offered[0]}


def test_the_page_carries_the_scenario_as_it_was_run(compared, own):
    toml = re.search(r"<pre>(.*?)</pre>", own, re.DOTALL)[1]
    assert Scenario.model_validate(tomllib.loads(unescape(toml))) == compared[0].scenario


def test_the_best_four_and_fcfs_have_their_schedule_drawn(compared, own):
    result = compared[2]
    ranked = [row.name for row in formatting.ranked(result)]
    assert seed_charts.drawn_schedules(result) == [*ranked[:4], "fcfs"]
    assert ranked.index("fcfs") >= 4
    assert "Shown: 5 of 6" in own


def test_schedules_stand_side_by_side_with_the_same_hours(compared):
    setting, policies, result, _ = compared
    seed = seed_charts.replay(setting, policies, result)
    ranges = {tuple(chart.figure.layout.xaxis.range) for chart in seed.schedules}
    workload = generate(setting, 0)
    ends = [run_one(setting, workload, p, 0).outcome["finish"].max() for p in policies]
    drawn = seed_charts.drawn_schedules(result)
    last = max(e for e, p in zip(ends, policies, strict=True) if p.name in drawn)
    assert len(ranges) == 1
    assert ranges.pop()[1] >= (last - workload.jobs["arrival"][0]) / 3600


def test_the_distribution_ends_with_all_jobs_and_is_right_at_the_median(compared):
    _, _, result, statistics = compared
    figure = charts.distribution(result, statistics).figure
    traces = {trace.legendgroup: trace for trace in figure.data if trace.visible}
    assert set(traces) == {row.name for row in result.policies}
    for trace in traces.values():
        assert trace.y[0] == 0
        assert trace.y[-1] == pytest.approx(100)
    # fcfs: half of all jobs of all seeds took no longer than their true median.
    setting, fcfs = compared[0], compared[1][0]
    jct = []
    for seed in range(6):
        workload = generate(setting, seed)
        outcome = run_one(setting, workload, fcfs, seed).outcome
        jct.extend(outcome["finish"] - workload.jobs["arrival"])
    at = np.interp(np.median(jct), traces["fcfs"].x, traces["fcfs"].y)
    assert at == pytest.approx(50, abs=1.5)


def test_the_differences_drawn_are_those_of_the_table(compared):
    group = formatting.groups(compared[2])[0]
    figure = charts.forest(group).figure
    dots = figure.data[0]
    for i, x, plus, minus in zip(
        dots.y, dots.x, dots.error_x.array, dots.error_x.arrayminus, strict=True
    ):
        gap = formatting.percent_difference(group.rows[i], group.best)
        found = [100 * (value - 1) for value in (x, x + plus, x - minus)]
        assert found == pytest.approx([gap.mean, gap.ci95[1], max(gap.ci95[0], -95)])
    assert len(dots.x) == len(group.rows) - 1


def test_an_axis_of_differences_is_there_before_anything_is_chosen(compared):
    figure = charts.forest(formatting.groups(compared[2])[0]).figure
    assert "0 %" in figure.layout.xaxis.ticktext
    low, high = figure.layout.xaxis.range
    assert low < np.log10(min(figure.data[0].x)) <= np.log10(max(figure.data[0].x)) < high


def test_an_axis_of_differences_has_its_zero_and_no_crowd_of_ticks():
    for low, high in ((-0.01, 0.02), (-1.0, 3.0), (0.0, 0.5)):
        ticks = np.sort(np.log10(charts.ticks(low, high)))
        assert 0 in ticks
        assert (np.diff(ticks) >= 0.09 * (high - low)).all()


def test_the_fitted_line_goes_through_the_means_with_the_slope_of_the_table(compared):
    result = compared[2]
    fit = {term.name: term.value for term in result.regression.pooled.coefficients}
    chart = regression.scatters(result)[0]  # against GPU use in percent
    line, runs = chart.figure.data[-1], [row.per_seed for row in result.policies]
    slope = (line.y[1] - line.y[0]) / (line.x[1] - line.x[0])
    assert slope == pytest.approx(fit["gpu_utilisation"] / 100)
    x = 100 * np.mean([run["gpu_utilisation"] for run in runs])
    y = np.mean([run["mean_jct_s"] for run in runs])
    assert np.interp(x, line.x, line.y) == pytest.approx(y)


def test_a_regression_that_has_no_answer_says_why_and_draws_nothing():
    setting = prepare(adjusted(find_scenario("paper16"), jobs=20))
    _, policies, result, statistics = _compared(setting, ("fcfs",), 1)
    assert "too few" in regression.coefficients(result)
    assert regression.scatters(result) == []
    parts = "".join(page.compose(page.gather(setting, policies, result, statistics)))
    assert 'id="differences"' not in parts


def test_of_many_policies_those_that_matter_stand_out(compared):
    result = compared[2]
    row = formatting.ranked(result)[-1]
    many = [row.model_copy(update={"name": f"p{i}"}) for i in range(20)]
    drawn = styles(result.model_copy(update={"policies": [*result.policies, *many]}))
    main = {name for name, look in drawn.items() if look.is_main}
    best = [row.name for row in formatting.ranked(result)]
    assert {*best[:3], "min-min", "fcfs", "tiresias"} == main
    assert len({drawn[name].colour for name in main}) == len(main)
    assert all(look.is_main for look in styles(result).values())


def test_a_crowd_of_runs_on_a_rough_cluster_stays_below_the_promised_size(tmp_path):
    setting = prepare(adjusted(find_scenario("rough64"), jobs=3000))
    names = ("tiresias", *(f"tiresias=t{i}" for i in range(3)), "fcfs")
    made = _compared(setting, names, 1)
    path = page.write(tmp_path, *made)
    assert "left out: what began after" in path.read_text(encoding="utf-8")
    assert path.stat().st_size < 8e6


def test_a_folder_that_cannot_be_written_to_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "report.html").mkdir(parents=True)
    for folder, words in (
        (tmp_path / "file", "is a file; name a folder"),
        (tmp_path / "none" / "new", "there is no folder"),
        (tmp_path / "folder", "is a folder; name a file"),
    ):
        with pytest.raises(OutputError, match=words) as caught:
            check_folder(folder)
        assert "\n" not in str(caught.value)
    check_folder(tmp_path)
    check_folder(tmp_path / "new")
    assert not (tmp_path / "new").exists()
