"""`adlro cluster`: what is printed, and what is written."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from adlro.cli import cluster, trace
from adlro.config.files import load_cluster, load_scenario
from adlro.errors import AdlroError
from adlro.workloads import replay
from adlro.workloads.setting import prepare
from tests.histories import write


def run(command, *args):
    return CliRunner().invoke(command, [str(arg) for arg in args])


def printed(*args, command=cluster.command):
    result = run(command, *args)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_a_cluster_is_imported_from_scontrol(tmp_path):
    text = "NodeName=n1 CPUTot=16 RealMemory=2048 Gres=gpu:volta:4 Partitions=gpu State=IDLE\n"
    text += "NodeName=login CPUTot=4 RealMemory=2048 Gres=(null) State=IDLE\n"
    path, out = write(tmp_path, text), tmp_path / "cluster.toml"
    result = run(cluster.command, "import", path, "--out", out)
    assert "does not know 'volta' (4 GPUs)" in str(result.exception)
    assert not out.exists()
    result = run(cluster.command, "import", path, "--out", out, "--gpu", "vota=V100")
    assert "--gpu vota: the list has no such GPU; did you mean 'volta'?" in str(result.exception)
    assert not out.exists()
    args = ("import", path, "--out", out, "--gpu", "volta=V100")
    said = printed(*args, command=cluster.command)
    assert said.splitlines() == [
        "gpu:volta on 1 node → V100 32GB (--gpu)",
        "1 node without GPUs left out",
        f"{out}: 4 GPUs on 1 node in 1 group",
    ]
    assert load_cluster(out).nodes[0].gpu == "V100 32GB"


MIXED = """NodeName=g1 CPUTot=9 RealMemory=3072 Gres=gpu:a10:2,gpu:t4:1 State=IDLE Partitions=a,b
NodeName=g2 CPUTot=9 RealMemory=3072 Gres=gpu:t4:1 State=DOWN Partitions=a ActiveFeatures=ib,r2
"""


def test_what_was_imported_is_shown_with_partitions_types_and_features(tmp_path):
    path, out = write(tmp_path, MIXED), tmp_path / "cluster.toml"
    more = write(tmp_path, "PartitionName=c Nodes=g[2-3]\nPartitionName=d Nodes=x\n", "parts.txt")
    args = ("import", path, "--partitions", more, "--features", "ib", "--out", out)
    assert printed(*args).splitlines() == [
        "gpu:a10 on 1 node → A10",
        "gpu:t4 on 2 nodes → T4",
        "1 node down now (g2): nothing runs there; kept as if in service, take those that stay "
        "away out of `hosts`",
        "1 node with several types of GPU (g1): split into one node for each type, TYPE@HOST, "
        "with cores and memory in proportion to its GPUs",
        "partition 'c' names 1 host that the list lacks: g3",
        "partition 'd' has no node of the list: its jobs fit nowhere",
        f"{out}: 4 GPUs on 3 nodes in 3 groups",
    ]
    rows = json.loads(printed("show", out, "--json"))
    assert [
        (row["pool"], row["type"], row["features"], row["cores"], row["GB"]) for row in rows
    ] == [
        ("A10 (a, b)", "a10", "", 6, 2),
        ("T4 (a, b)", "t4", "", 3, 1),
        ("T4 (a, c)", "t4", "ib", 9, 3),
    ]
    assert "T4 (a, c)" in printed("show", out)
    names = [name for group in load_cluster(out).nodes for name in group.node_names]
    assert names == ["a10@g1", "t4@g1", "g2"]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (MIXED + MIXED, (), "node 'a10@g1' is in the list more than once; correct the list"),
        (MIXED, ("--features", "r3"), "--features: no node has 'r3'; did you mean 'r2'?"),
        (MIXED, ("--gpu", "t4=V10"), "--gpu t4: unknown GPU model 'V10': did you mean"),
        (MIXED.replace("gpu:t4:1", "gpu:x:y:1"), (), "Gres has 'gpu:x:y:1', which is not gpu:"),
        (MIXED.replace("CPUTot=9", "CPUTot=-9"), (), "CPUTot must be a whole number, not '-9'"),
        (MIXED.replace("g2", "n" * 300), (), "hosts.0: string should have at most 255 characters"),
    ],
)
def test_a_list_that_makes_no_cluster_is_refused_in_a_line_and_nothing_is_written(
    tmp_path, text, options, said
):
    path, out = write(tmp_path, text), tmp_path / "cluster.toml"
    result = run(cluster.command, "import", path, "--out", out, *options)
    assert isinstance(result.exception, AdlroError)
    assert said in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not out.exists()


def test_a_bad_list_of_partitions_is_named(tmp_path):
    nodes = write(tmp_path, "NodeName=a CPUTot=4 Gres=gpu:T4:1 RealMemory=1024\n", "nodes.txt")
    wrong = write(tmp_path, "nothing", "partitions.txt")
    result = run(
        cluster.command, "import", nodes, "--partitions", wrong, "--out", tmp_path / "c.toml"
    )
    assert isinstance(result.exception, AdlroError)
    assert str(result.exception).startswith(f"{wrong}: there is no partition")


EXAMPLE = Path(__file__).parents[3] / "examples" / "history"


def test_the_example_is_what_its_script_writes(tmp_path):
    shutil.copy(EXAMPLE / "make.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "make.py"], check=True)
    for name in ("jobs.sacct.txt", "nodes.txt"):
        assert (tmp_path / name).read_bytes() == (EXAMPLE / name).read_bytes()


def test_the_commands_of_the_example_work(tmp_path, monkeypatch):
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "history")
    monkeypatch.chdir(tmp_path)
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    called = [shlex.split(line)[1:] for line in re.findall(r"^adlro .*", text, re.M)]
    assert [words[:2] for words in called] == [
        ["cluster", "import"],
        ["trace", "info"],
        ["trace", "scenario"],
        ["compare", "mine.toml"],
        ["train", "mine.toml"],
        ["policy", "show"],
    ]
    imported, info, made = (words[1:] for words in called[:3])
    said = printed(*imported, command=cluster.command)
    assert said in text
    assert "cluster.toml: 32 GPUs on 7 nodes in 4 groups" in said
    assert "1,000" in printed(*info, command=trace.command)
    assert "mine.toml: 908 jobs, 18 seeds of 50 jobs in a row" in printed(
        *made, command=trace.command
    )
    setting = prepare(load_scenario(tmp_path / "mine.toml"))
    assert replay.windows(setting.played, setting.scenario.jobs) == 18
    assert not [line for line in setting.filled if "run time" in line]  # each GPU is known
