"""The page of an assessment: conclusions, losers and jobs, by name or by anonymous code."""

import re

import pytest

from adlro.evaluate import assess
from adlro.evaluate.batch import Batch
from adlro.evaluate.report import assessment
from adlro.evaluate.run_store import RunStore
from adlro.evaluate.verdict import verdict
from tests import assessed

HOSTILE = "<script>alert(1)</script>'&"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("assessed")
    content = assessed.text(360).replace(",speech,", f",{HOSTILE},")
    study = assess.make_study(assessed.variants(folder, content))
    results = Batch(RunStore(study.variants.file, folder / "runs"), 1).play(study.cases)
    return assess.Played(study, results, assess.assessment(study, results))


def page_of(played, folder, **more):
    """The page without scripts, and the data of its charts."""
    told = verdict(played.found, " --cluster c.toml")
    material = assessment.gather(played, told, "adlro assess jobs.csv", **more)
    text = assessment.write(folder, material).read_text()
    data = re.findall(r'<script type="application/json" id=".*?">(.*?)</script>', text, re.DOTALL)
    return text.split("</main>")[0], "".join(data)


@pytest.fixture(scope="module")
def named(played, tmp_path_factory):
    return page_of(played, tmp_path_factory.mktemp("named"), anonymous=False)


@pytest.fixture(scope="module")
def anonymous(played, tmp_path_factory):
    return page_of(played, tmp_path_factory.mktemp("anonymous"), anonymous=True)


def section(text, key):
    return text.split(f'<h2 id="{key}">')[1].split("<h2")[0]


def test_the_summary_is_the_verdict(played, named):
    summary = named[0].split('aria-label="Summary"')[1].split("</section>")[0]
    assert summary.count("<li>") == len(verdict(played.found).sentences)
    assert "against your scheduler" in summary
    assert "all jobs:" not in summary  # assumptions stand apart


def test_every_scheduler_and_every_assumption_has_its_place(named):
    table = section(named[0], "gain")
    for word in ("recorded (not simulated)", *assess.POLICIES, "measured mix / request"):
        assert word in table
    assert "oracle" not in table
    assert "oracle" in section(named[0], "research")


def test_losers_jobs_assumptions_and_next_commands_are_sections(named):
    text, data = named
    assert "chance may be all there is" in section(text, "losers")
    assert re.search(r"<th[^>]*>j\d+</th>", section(text, "jobs"))
    assert "what is assumed of them" in section(text, "assumed")
    assert "adlro tune" in section(text, "next")
    assert '"j1' in data or "j1" in data  # hovers of the Gantt charts


def test_hostile_names_are_escaped(named):
    text, data = named
    assert "<script>alert" not in text + data
    assert "&lt;script&gt;alert(1)" in text


def test_an_anonymous_page_has_codes_and_no_names(played, anonymous):
    text, data = anonymous
    history = played.study.variants.history
    shown = re.sub(r"<[^>]+>", " ", text) + data
    for name in ("speech", "vision", "alert(1)", "jobs.csv", "ann", "bob"):
        assert not re.search(rf"\b{re.escape(name)}\b", shown), name
    assert not re.search(r"\bj\d+\b", shown)
    assert len(history.id) == 360
    assert "account A1" in text or "account A2" in text
    assert 'id="next"' not in text  # commands name files
