"""The page of a comparison on a history: real names, human times, and assumptions set apart."""

import json
import re
from html import unescape

import pytest

from adlro.evaluate.compare import compare
from adlro.evaluate.report import assumptions, formatting, page
from adlro.evaluate.report.collect import Collector
from adlro.evaluate.report.labels import Labels, labels_of
from adlro.policies import registry
from adlro.workloads.history_file import history_of
from adlro.workloads.jitter import Jitter
from tests.recorded import at_recorded_load, scenario

HOSTILE = "<script>alert(1)</script>\"'&\u202eabc\x07"
HEAD = "id,submit,start,end,run_s,gpus,queue,requested_s,user,account,name\n"
USERS = ("zorblatt", "quixby")
ACCOUNTS = ("wumpus-lab", "grelnik")
PARTITIONS = ("main", "long")
WAIT_S = 7200


def _rows():
    """Twelve jobs of four GPUs, each three hours long, which waited up to two hours."""
    lines = []
    for i in range(12):
        submit, wait = 1000 + 3000 * i, WAIT_S * (i % 2)
        name = '"' + HOSTILE.replace('"', '""') + '"' if i == 3 else f"frobnicate-{i}"
        lines.append(
            f"job{7000 + i},{submit},{submit + wait},{submit + wait + 10_800},10800,4,"
            f"{PARTITIONS[i % 2]},14400,{USERS[i % 2]},{ACCOUNTS[i // 6]},{name}\n"
        )
    return HEAD + "".join(lines)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("history")
    more = f"accounts = {json.dumps(ACCOUNTS)}"
    wanted = scenario(folder, _rows(), jobs=6, more=more)
    setting = at_recorded_load(wanted)
    policies = [registry.load(name, setting) for name in ("slurm", "fcfs")]
    collector = Collector(setting)
    result = compare(setting, policies, range(2), watch=collector.watch)
    result = result.model_copy(update={"command": f"adlro compare {folder}/mine.toml"})
    return setting, policies, result, collector.statistics()


def test_repetitions_with_jitter_count_each_job_once(compared):
    setting, policies, _, _ = compared
    collector = Collector(setting)
    result = compare(setting, policies, range(2), watch=collector.watch, jitter=Jitter(3))
    found = collector.statistics()["fcfs"]
    for totals in found.groups.values():
        assert sum(totals.jobs) == 12
    assert len({(one.seed, one.job) for one in found.longest}) == len(found.longest)
    assert result.calibration.jobs == 12
    text = _own(page.compose(page.gather(setting, policies, result, collector.statistics())))
    assert "Each seed ran 3 times with estimates changed by about 1 %" in text
    assert "Tables of jobs are of one run of each seed" in text


def test_the_pooled_ratios_are_among_the_further_columns(compared):
    setting = compared[0]
    policies = [registry.load(name, setting) for name in ("min-min", "fcfs")]
    collector = Collector(setting)
    result = compare(setting, policies, range(2), watch=collector.watch)
    text = _own(page.compose(page.gather(setting, policies, result, collector.statistics())))
    table = _section(text, "table")
    assert "pooled vs min-min" in table
    assert "worst window" in table
    shown = str(result.policies[1].pooled["min-min"])
    assert shown in table.replace("\u00a0", " ")


def _own(parts):
    """The page without plotly's own code."""
    text = "".join(parts)
    start = text.index("<script>", text.index("</main>"))
    return text[:start] + text[text.index("</script>", start) :]


@pytest.fixture(scope="module")
def named(compared):
    return _own(page.compose(page.gather(*compared)))


@pytest.fixture(scope="module")
def anonymous(compared):
    return _own(page.compose(page.gather(*compared, anonymous=True)))


def _section(text, key):
    return text.split(f'<h2 id="{key}">')[1].split("<h2")[0]


def _figures(text):
    found = re.findall(r'<script type="application/json" id=".*?">(.*?)</script>', text, re.DOTALL)
    return [json.loads(data) for data in found]


def test_the_jobs_that_wait_longest_are_named_with_what_was_recorded(named):
    table = _section(named, "longest")
    headings = unescape(re.sub(r"<[^>]+>", " ", table.split("</thead>")[0]))
    for word in ("job", "name", "user", "account", "partition", "GPUs", "wait under", "recorded"):
        assert word in headings
    row = next(row for row in table.split("<tr") if "job7011" in row)
    for word in ("frobnicate-11", "quixby", "grelnik", "long"):
        assert word in row
    assert 'data-order="7200">2.00</td>' in row  # recorded, in hours


def test_groups_are_those_of_the_history_and_not_invented_types(named):
    groups = _section(named, "groups")
    assert re.findall(r"<h3>(.*?)</h3>", groups) == ["By account", "By partition"]
    assert "wumpus-lab" in groups
    assert "job type" not in groups


def test_the_mean_waits_of_a_group_are_those_of_its_jobs(named):
    by_partition = _section(named, "groups").split("<h3>By partition</h3>")[1]
    row = next(row for row in by_partition.split("<tr") if ">long<" in row)
    cells = re.findall(r'data-order="(.*?)"', row)
    assert cells[:2] == ["6", "7200"]  # jobs, and their mean wait as recorded


def test_times_are_in_units_that_people_read(named, compared):
    assert formatting.time_unit(compared[2]).unit in ("h", "min", "days")
    shown = re.sub(r"<[^>]+>", " ", named.split("<main>")[0].split("</style>")[1])
    assert re.findall(r"\d s\b", shown) == []
    assert "\u00a0s<" not in _section(named, "table")


def test_gantt_charts_name_jobs_and_colour_them_by_account(named):
    figures = [f for f in _figures(named) if any(t.get("name") == "runs" for t in f["data"])]
    assert len(figures) == 2
    for figure in figures:
        shown = {t["name"] for t in figure["data"] if t["visible"] and t.get("meta") == "account"}
        assert shown == {"wumpus-lab"}  # the account of all jobs of the first seed
        assert {t.get("meta") for t in figure["data"] if not t["visible"]} >= {"partition", "user"}
        (runs,) = (t for t in figure["data"] if t.get("name") == "runs")
        text = next(t for t in runs["customdata"] if "job7001" in t)
        assert "frobnicate-1<br>account wumpus-lab · partition long · user quixby · 4 GPUs" in text
        assert "ran 3.0 h" in text
        assert figure["layout"]["yaxis"]["ticktext"][0].startswith("volta/0")


def test_hostile_names_are_harmless_text(named):
    assert "<script>alert" not in named
    assert "&lt;script&gt;alert(1)" in _section(named, "longest")
    for character in ("\u202e", "\x07"):
        assert character not in named
    texts = json.dumps(_figures(named))
    assert "<script" not in texts
    assert "&lt;script&gt;alert" in texts
    assert "\\u202e" not in texts.replace("\\\\u202e", "")


def test_an_anonymous_page_leaks_no_name_of_the_history(compared, named, anonymous):
    history = history_of(compared[0].scenario.history)
    secrets = {*history.id, *history.tables["user"], *history.tables["account"], "volta"}
    secrets |= {"frobnicate", "alert(1)", "mine.toml", "jobs.csv"}
    assert [word for word in secrets if word not in named] == []  # each could have leaked
    assert [word for word in secrets if word in anonymous] == []
    words = unescape(re.sub(r"<[^>]+>", " ", _section(anonymous, "groups")))
    assert {"A1", "A2", "P1", "P2"} <= set(words.split())
    assert {"long"}.isdisjoint(words.split())


def test_a_code_stands_for_the_same_thing_throughout(anonymous):
    table = _section(anonymous, "longest")
    found = re.findall(
        r'<th scope="row">(J\d+)</th><td class="words">(U\d)</td><td class="words">(A\d)</td>',
        table,
    )
    assert len(found) > 10
    by_job = {}
    for job, *rest in found:
        assert by_job.setdefault(job, rest) == rest
    hovers = json.dumps(_figures(anonymous))
    for job, account, user in re.findall(r"job (J\d+)<br>account (A\d) .*?user (U\d)", hovers):
        assert by_job.get(job, [user, account]) == [user, account]


def test_names_in_sentences_become_codes(compared):
    history = history_of(compared[0].scenario.history)
    hidden, open_ = (Labels(history, anonymous=is_so) for is_so in (True, False))
    told = "3 of 6 jobs: account unknown, charged to 'grelnik' (the first: job 'job7002'), 'ib'"
    assert open_.sentence(told) == told
    assert hidden.sentence(told) == (
        "3 of 6 jobs: account unknown, charged to A2 (the first: job J3), …"
    )


def test_long_names_are_cut(compared):
    history = history_of(compared[0].scenario.history)
    long = history._replace(id=("x" * 5000, *history.id[1:]))
    assert len(Labels(long, anonymous=False).job(0).id) == 60


def test_a_scenario_without_a_history_has_no_labels(compared):
    setting = compared[0]
    plain = setting._replace(scenario=setting.scenario.model_copy(update={"history": None}))
    assert labels_of(plain) is None


def test_assumptions_are_apart_from_conclusions(compared, named):
    setting, _, result, _ = compared
    top = named.split("<main>")[0].split("</style>")[1]
    conclusions = top.split('<section class="summary"')[1].split("</section>")[0]
    section = unescape(re.sub(r"<[^>]+>", " ", _section(named, "assumed")))
    assert setting.filled
    for sentence in setting.filled:
        what = assumptions.assumption(sentence).what
        assert what in section
        assert what not in unescape(conclusions)
    assert result.calibration.verdict() in section
    assert result.calibration.verdict() not in unescape(conclusions)
    assert 'href="#assumed"' in top


def test_assumed_times_are_in_units_that_people_read():
    told = ["all jobs: requested time = 1.2096e+06 s (a)", "3 of 9 jobs: played as 1 s long"]
    table = assumptions.assumption_table(told, None)
    assert "requested time = 14.0 days (a)" in table
    assert "played as 1 s long" in table


@pytest.mark.parametrize(
    ("sentence", "jobs", "what"),
    [
        ("all jobs: priority = 0.5", "all jobs", "priority = 0.5"),
        ("8 of 1,182 jobs: a: b", "8 of 1,182 jobs", "a: b"),
        ("18 CPU-only jobs: not scheduled", "18 CPU-only jobs", "not scheduled"),
        ("left out: 3 jobs fit no pool", "3 jobs", "left out: fit no pool"),
        ("skipped: odd: 2 lines of the file", "2 lines of the file", "skipped: odd"),
        ("something else", "", "something else"),
    ],
)
def test_an_assumption_says_how_many_jobs_it_touches(sentence, jobs, what):
    assert assumptions.assumption(sentence) == (jobs, what)
