"""The summary and the table of a comparison show the same figures."""

import html
import re

import pytest

from adlro.config.files import find_scenario
from adlro.evaluate.comparison import Comparison, JctDifference, PolicyRow
from adlro.evaluate.metrics import Metrics
from adlro.evaluate.regression import Regression, Regressions
from adlro.evaluate.report import assumptions, charts, formatting, summary, table
from adlro.evaluate.stats import Estimate
from adlro.workloads.setting import prepare


def _estimate(mean, half=None):
    return Estimate(mean=mean, sd=half, ci95=None if half is None else (mean - half, mean + half))


def _difference(mean, half, p=None, seeds=None):
    plain = _estimate(mean, half).model_dump()
    return JctDifference(
        **plain, p_wilcoxon=p, p_holm=p, dz=None, rank_biserial=None, seeds_to_settle=seeds
    )


def _row(name, jct, *, half=10.0, is_preemptive=False, versus=None, **metrics):
    """A policy; versus: rival -> (percent, half, p, seeds), 7 ± 3 % for those not named."""
    given = versus or {}
    rivals = ("min-min", "fcfs", "sjf", "tiresias", "las", "<i>mine</i>")
    found = {rival: given.get(rival, (7.0, 3.0)) for rival in rivals if rival != name}
    figures = {key: _estimate(1.0, 0.5) for key in Metrics._fields}
    figures |= {"mean_jct_s": _estimate(jct, half), "p99_jct_s": _estimate(10 * jct, half)}
    figures |= {"longest_wait_s": _estimate(20 * jct, half)}
    figures |= {key: _estimate(value, 0.0) for key, value in metrics.items()}
    return PolicyRow(
        name=name,
        is_preemptive=is_preemptive,
        metrics=figures,
        per_seed={},
        versus={rival: {"mean_jct_pct": _difference(*gap)} for rival, gap in found.items()},
        gap_closed=None,
        decision_us=1.25,
        decisions=10,
        real_decisions=5,
    )


def _comparison(*rows, seeds=20, notes=()):
    return Comparison(
        versions={"adlro": "1"},
        scenario="small",
        seeds=seeds,
        first_seed=0,
        load=0.8,
        estimates="oracle",
        measure="all jobs",
        jobs=400,
        policies=list(rows),
        hindsight=None,
        regression=Regressions(pooled=Regression(n=1, problem="too few."), by_policy={}),
        notes=list(notes),
    )


def _text(result):
    """The summary without its tags."""
    return html.unescape(re.sub(r"<[^>]+>", "", " ".join(summary.summary(result))))


def _numbers(text):
    return set(re.findall(r"\d[\d,]*(?:\.\d+)?", text))


def _cells(result):
    parts = [text for _, text in (*table.tables(result), *table.research_tables(result))]
    return _spaced(html.unescape(re.sub(r"<[^>]+>", " ", " ".join(parts))))


def _spaced(text):
    """The text with plain spaces within its figures."""
    return text.replace("\u00a0±\u00a0", " ± ")


MANY = (
    _row("min-min", 1234.0, versus={"sjf": (12.3, 4.5, 0.0123, None)}),
    _row("fcfs", 9876.0, versus={"sjf": (800.4, 90.0, 0.0001, None), "min-min": (700.0, 80.0)}),
    _row("sjf", 1111.0),
    _row("tiresias", 1500.0, is_preemptive=True, versus={"min-min": (21.6, 3.0)}),
    _row("las", 2500.0, is_preemptive=True, versus={"tiresias": (66.7, 70.0, 0.4, 1021)}),
)


def test_every_figure_of_the_summary_is_in_the_table():
    result = _comparison(*MANY)
    told = _numbers(_text(result)) - {"3", "2", "20", "1"}  # policies of each table, seeds, 1 %
    assert {"1,111", "12.3", "800", "1,500", "1,021", "66.7"} <= told
    assert told - _numbers(_cells(result)) == set()


def test_the_best_of_each_table_is_named_first_and_compared_with_min_min():
    never, may = summary.summary(_comparison(*MANY))[0::3][:2]
    assert never.startswith("<b>sjf</b> has the shortest mean completion time")
    assert "3 policies that never preempt: 1,111 ± 10 s" in never
    assert may.startswith("<b>tiresias</b> has the shortest mean")
    against = "tiresias against min-min: +21.6 % (+18.6 to +24.6) mean JCT."
    assert against in _text(_comparison(*MANY))


def test_a_settled_lead_is_called_settled():
    text = _text(_comparison(*MANY))
    assert "Next comes min-min, +12.3 % (+7.8 to +16.8): 20 seeds settle that it is slower." in text
    assert "fcfs takes +800 % (+710 to +890) against the best." in text


def test_a_lead_that_is_settled_without_a_test_says_so():
    rows = _row("fcfs", 1.0), _row("sjf", 1.1, versus={"fcfs": (9.0, 2.0)})
    assert "settle that it is slower, by the interval; for a test" in _text(_comparison(*rows))


def test_a_lead_that_is_not_settled_says_how_many_seeds_would_do():
    text = _text(_comparison(*MANY))
    assert "las, +66.7 % (-3.3 to +136.7): 20 seeds do not settle which is better" in text
    assert "≈ 1,021 seeds would, if the difference is as seen." in text


@pytest.mark.parametrize(
    ("gap", "is_settled"),
    [
        ((5.0, 4.0, 0.01), True),
        ((5.0, 4.0, None), True),
        ((5.0, 4.0, 0.06), False),  # the test does not agree
        ((5.0, 6.0, 0.01), False),  # 0 is in the interval
        ((5.0, None, None), False),  # one seed
    ],
)
def test_a_difference_is_settled_if_its_interval_and_its_test_say_so(gap, is_settled):
    row, rival = _row("sjf", 2.0, versus={"fcfs": gap}), _row("fcfs", 1.0)
    assert formatting.percent_difference(row, rival).is_settled is is_settled


def test_huge_numbers_of_seeds_are_not_spelled_out():
    rows = _row("fcfs", 1.0), _row("sjf", 1.1, versus={"fcfs": (0.1, 9.0, 0.9, 123_456)})
    assert "more than 100,000 seeds would" in _text(_comparison(*rows))


def test_identical_policies_are_called_exactly_as_good():
    rows = _row("fcfs", 1.0), _row("sjf", 1.0, versus={"fcfs": (0.0, 0.0)})
    assert "sjf is exactly as good over 20 seeds." in _text(_comparison(*rows))


def test_one_seed_settles_nothing():
    alone = {"half": None, "versus": {"fcfs": (50.0, None)}}
    text = _text(_comparison(_row("fcfs", 800.0, half=None), _row("sjf", 900.0, **alone), seeds=1))
    assert "800 s. There is only one seed: there are no intervals, and nothing is settled." in text
    assert "sjf, +50.0 %: 1 seed does not settle which is better." in text


def test_a_single_policy_is_described_without_rivals():
    text = _text(_comparison(_row("fcfs", 800.0)))
    assert text.startswith("fcfs has a mean completion time (JCT, from arrival to end) of 800 ± 10")
    assert "Next comes" not in text


def test_the_policy_with_the_longest_wait_is_named():
    rows = (
        _row("fcfs", 100.0, longest_wait_s=500.0),
        _row("sjf", 200.0, longest_wait_s=7000.0),
        _row("las", 300.0, longest_wait_s=40.0),
    )
    text = _text(_comparison(*rows))
    assert "Under fcfs the unluckiest job of a seed waits 500 ± 0 s" in text
    assert "shortest such wait is las with 40 ± 0 s, the longest is sjf with 7,000 ± 0 s." in text


def test_notes_are_not_among_the_conclusions():
    noted = _comparison(_row("fcfs", 1.0), notes=["a < b is left out", "Stopped."])
    assert summary.summary(noted) == summary.summary(_comparison(_row("fcfs", 1.0)))


def test_notes_are_copied_and_end_with_a_full_stop():
    noted = _comparison(_row("fcfs", 1.0), notes=["a < b is left out", "Stopped."])
    setting = prepare(find_scenario("paper16"))
    found = assumptions.section(setting, noted, None)
    assert found.title == "Notes"
    assert found.parts == ["<ul><li>a &lt; b is left out.</li><li>Stopped.</li></ul>"]


def test_long_times_are_shown_in_hours():
    result = _comparison(_row("fcfs", 36_000.0, half=360.0))
    assert "10.00 ± 0.10 h" in _text(result)
    assert "mean JCT\u00a0h" in _cells(result)


def test_markup_in_names_is_escaped_in_summary_and_table():
    result = _comparison(_row("<i>mine</i>", 1.0), _row("fcfs", 2.0), notes=["<i>note</i>"])
    page = " ".join(summary.summary(result)) + " ".join(text for _, text in table.tables(result))
    assert "<i>" not in page
    assert page.count("&lt;i&gt;mine") >= 3


def test_the_best_of_a_column_is_bold_whichever_way_is_better():
    rows = (
        _row("fcfs", 1.0, p99_jct_s=30.0, gpu_utilisation=0.5),
        _row("sjf", 2.0, p99_jct_s=20.0, gpu_utilisation=0.25),
    )
    ((_, text),) = table.tables(_comparison(*rows))
    bold = re.findall(r"<b>([^<]+)</b>", _spaced(text))
    assert {"20 ± 0", "50.0 ± 0.0"} <= set(bold)
    assert {"30 ± 0", "25.0 ± 0.0"}.isdisjoint(bold)


def test_a_table_has_an_order_for_every_cell_that_has_a_figure():
    result = _comparison(_row("fcfs", 1.5), _row("sjf", 2.5))
    ((_, text),), ((_, tests),) = table.tables(result), table.research_tables(result)
    assert '<td data-order="1.5">' in text
    assert '<td data-order="2.5">' in text
    assert "<td>\u2013</td>" in tests  # no p: sorted last


def test_rare_columns_are_left_out_if_they_are_0_for_every_policy():
    calm, rough = (
        _cells(_comparison(_row("fcfs", 1.0, lost_gpu_s=lost, restarts=0.0, fragmentation=0.0)))
        for lost in (0.0, 3600.0)
    )
    assert "lost\u00a0GPU-h" not in calm
    assert "lost\u00a0GPU-h" in rough
    assert "restarts" in calm


def test_fairness_over_accounts_is_left_out_where_there_is_one_account():
    one, two = (_cells(_comparison(_row("fcfs", 1.0, jain_accounts=j))) for j in (1.0, 0.9))
    assert "Jain, accounts" not in one
    assert "Jain, accounts" in two


def test_an_interval_that_reaches_0_does_not_stretch_a_logarithmic_axis():
    rows = (_row("fcfs", 1000.0, half=999.999), _row("sjf", 900.0, half=2000.0))
    low, high = charts.starvation(_comparison(*rows)).figure.layout.xaxis.range
    assert 200 < 10**low < 300  # a third of the smallest mean, and some room
    assert 20_999 < 10**high < 30_000


def test_an_axis_holds_every_interval_where_none_reaches_far_down():
    low, high = charts.starvation(_comparison(_row("sjf", 900.0))).figure.layout.xaxis.range
    assert 700 < 10**low < 890
    assert 18_010 < 10**high < 25_000


def test_figures_against_references_are_shown_where_they_are_known():
    row = _row("fcfs", 1.0).model_copy(update={"gap_closed": _estimate(37.0, 5.0)})
    assert "gap closed" not in _cells(_comparison(_row("fcfs", 1.0)))
    assert "37 ± 5" in _cells(_comparison(row))
    bounded = _row("fcfs", 1.0).model_copy(update={"times_lower_bound": _estimate(1.37, 0.05)})
    assert "lower bound" not in _cells(_comparison(row))
    assert "1.37 ± 0.05" in _cells(_comparison(bounded))


def test_every_metric_has_a_heading_and_a_meaning():
    assert set(Metrics._fields) <= set(table.METRICS)
