"""Every public trace that developers have beside the project: as many jobs as its list says."""

import os
import re
from pathlib import Path

import pytest

from adlro.workloads import inventory
from adlro.workloads.formats.registry import read

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("ADLRO_SHARED") or ROOT.parent / "shared") / "data"
pytestmark = pytest.mark.skipif(
    not (DATA / "SOURCES.md").is_file(), reason="there is no ../shared/data beside the project"
)
NOT_JOBS = re.compile(r"cdf_|summary|node|machine|gpu_number|minute_sequence|throughputs|^gpu_")
FOLDERS = {
    "acme": "acme",
    "alibaba_openb_2023": "openb",
    "alibaba_other": "dlrm",
    "alibaba_pai_2020": "pai",
    "helios": "helios",
    "microsoft_itp_2021": "itp",
    "mit_supercloud": "supercloud",
    "nrel_eagle": "eagle",
    "philly": "philly",
    "swf": "swf",
    "thetagpu": "thetagpu",
    "tiresias": "tiresias",
}
OTHERS = {"hydra": "hydra", "gavel_msr": "gavel", "cqsim": "cqsim"}  # by a part of the name


def listed():
    """Folder, file and rows of every table of jobs in SOURCES.md."""
    if not (DATA / "SOURCES.md").is_file():
        return []
    found, folder = [], ""
    for line in (DATA / "SOURCES.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            folder = line[3:].split(" ")[0]
        row = re.match(r"\| (\S+\.(?:csv|swf|rst|trace)(?:\.gz)?) \| [^|]+ \| (\d+) \|", line)
        if row and folder in FOLDERS and not NOT_JOBS.search(row[1]):
            found.append((folder, row[1], int(row[2])))
    return found


@pytest.mark.parametrize(("folder", "name", "rows"), listed())
def test_a_trace_parses_strictly_with_as_many_jobs_as_are_listed(folder, name, rows):
    found = read(DATA / folder / name)
    other = next((of for part, of in OTHERS.items() if part in name), FOLDERS[folder])
    assert (found.jobs, found.header.format) == (rows, other)


def test_nothing_on_the_list_is_passed_over():
    assert len(listed()) == 44


def test_workloads_of_sia_have_960_jobs_each():
    paths = sorted((DATA / "sia_pollux" / "workloads").glob("*/*.csv"))
    assert [read(path).jobs for path in paths] == [960] * 10


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"),
    [
        ("alibaba_openb_2023/openb_node_list_all_node.csv", 1523, 6212),
        ("alibaba_openb_2023/openb_node_list_gpu_node.csv", 1213, 6212),
        ("alibaba_pai_2020/pai_machine_spec.csv.gz", 1897, None),
        ("alibaba_other/spot_gpu_2026_node_info.csv.gz", 4278, None),
    ],
)
def test_lists_of_nodes_have_as_many_as_are_listed(name, nodes, gpus):
    found = inventory.read(DATA / name, {}).nodes
    assert len(found) == nodes
    assert gpus in (None, sum(node.gpus for node in found))


def test_supercloud_has_2401_jobs_with_gpus():
    found = read(DATA / "mit_supercloud" / "slurm_9628_jobs.csv.gz")
    assert int((found.gpus > 0).sum()) == 2401
