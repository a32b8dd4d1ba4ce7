"""README and docs: what they promise is what the program does, and every link leads somewhere."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from adlro.config.files import find_scenario, load_scenario
from adlro.evaluate.compare import compare
from adlro.evaluate.metrics import Metrics
from adlro.policies import registry
from adlro.sim.simulator import is_compiled
from adlro.workloads.setting import prepare
from tests.commands import called

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
EXAMPLE = ROOT / "examples" / "01_own_policy.py"
WIDEST, LONGEST = 120, 150  # characters of a line, lines of README
# Relative differences of mean JCT that pass. Solvers decide between equal costs by the last bit:
# for allox on paper16, 1,014.4 s and 1,016.4 s were seen on different machines.
COMPILED_WITHIN, SOLVERS_WITHIN = 0.001, 0.005


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def block(name, language):
    """The first block of a language in a page."""
    return re.search(rf"```{language}\n(.*?)```", read(name), re.DOTALL)[1]


TABLES = pytest.mark.parametrize(
    ("page", "scenario", "policies"),
    [("README.md", "paper16", 9), ("docs/results.md", "rough64", 5)],
)


@pytest.mark.slow
@TABLES
def test_each_table_is_what_its_command_prints(page, scenario, policies):
    check_table(page, scenario, policies, lambda policy: True)


@TABLES
def test_the_rows_of_compiled_policies_are_what_the_command_prints(page, scenario, policies):
    check_table(page, scenario, policies, lambda policy: is_compiled(policy.decide))


def check_table(page, scenario, policies, is_played):
    table = re.search(rf"```\n{scenario} · load .*?```", read(page), re.DOTALL)[0]
    rows = re.findall(r"^  ([a-z-]+) +([\d,]+) ± ([\d,]+) ", table, re.MULTILINE)
    setting = prepare(find_scenario(scenario))
    ready = [registry.load(name, setting) for name, _, _ in rows]
    played = [policy for policy in ready if is_played(policy)]
    result = compare(setting, played, range(50))
    means = {row.name: row.metrics["mean_jct_s"].mean for row in result.policies}
    assert len(rows) == policies
    assert len(played) > policies / 2
    shown = {name: float(mean.replace(",", "")) for name, mean, _ in rows if name in means}
    within = {p.name: COMPILED_WITHIN if is_compiled(p.decide) else SOLVERS_WITHIN for p in played}
    assert shown == {name: pytest.approx(mean, rel=within[name]) for name, mean in means.items()}


def test_the_commands_for_a_history_print_what_stands_below_them(tmp_path):
    pairs = re.findall(r"```\n(adlro .*?)```\n```\n(.*?)```", read("README.md"), re.DOTALL)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert len(pairs) == 2
    for commands, shown in pairs:
        printed = {"  …"}
        for line in commands.splitlines():
            done = called(*line.partition("#")[0].split()[1:], cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            printed.update(line.rstrip() for line in done.stdout.splitlines())
        assert [line for line in shown.splitlines() if line not in printed] == []


def test_readme_is_short_and_fits_a_terminal():
    lines = read("README.md").splitlines()
    assert len(lines) <= LONGEST
    assert [line for line in lines if len(line) > WIDEST] == []


def test_the_python_of_readme_runs_and_ranks_three_policies():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block("README.md", "python"), "README.md", "exec"), {})
    first, *ranked = out.getvalue().splitlines()
    assert re.fullmatch(r"\d+ s", first)
    assert [line.split()[0] for line in ranked] == ["adlro", "drain-argmin", "min-min"]


def test_the_counts_of_readme_are_right():
    assert f"{len(registry.names())} policies" in read("README.md")
    assert f"{len(Metrics._fields)} metrics" in read("README.md")


def test_the_first_scenario_of_its_page_loads(tmp_path):
    (tmp_path / "mine.toml").write_text(block("docs/scenarios.md", "toml"))
    scenario = load_scenario(tmp_path / "mine.toml")
    assert [job_type.name for job_type in scenario.types] == ["training"]
    assert prepare(scenario).capacity_per_s > 0


def test_the_example_policy_runs():
    setting = prepare(find_scenario("paper16"))
    policy = registry.load(str(EXAMPLE), setting)
    assert compare(setting, [policy], range(1)).policies[0].name == "01_own_policy"


def links(path):
    """Relative links of a Markdown file: the file and the heading that each names."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            file, _, heading = target.partition("#")
            yield (path.parent / file).resolve() if file else path, heading


def headings(path):
    """The anchors of a page, as web pages make them."""
    found = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in found}


LINKING = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES,
    *sorted(ROOT.glob("experiments/*/README.md")), *sorted(ROOT.glob("examples/*/README.md")),
]  # fmt: skip


def test_every_link_leads_to_a_file_and_a_heading():
    broken = [
        f"{page.relative_to(ROOT)}: {file.name}#{heading}"
        for page in LINKING
        for file, heading in links(page)
        if not file.exists() or (heading and heading not in headings(file))
    ]
    assert broken == []


def test_the_index_links_every_page_in_a_line_each():
    index = ROOT / "docs" / "README.md"
    listed = re.findall(r"^- \[(\w+\.md)\]\(\1\): .+\.$", read("docs/README.md"), re.MULTILINE)
    assert sorted(listed) == [page.name for page in PAGES if page != index]
