"""The synthetic truth: nothing over-committed, every constraint kept, the head never delayed."""

import csv

import pytest

from tests import truth
from tests.truth.cluster import NODES, Node
from tests.truth.easy import Easy
from tests.truth.jobs import Job, draw
from tests.truth.slurm_text import hostlist, sacct, show_nodes

COUNT = 500
MINUTE = 60


@pytest.fixture(scope="module", params=[0, 1])
def made(request):
    return truth.make(request.param, COUNT)


def job(seq, minutes, limit, gpus=1, **given):
    """A job of the hand-made examples; a minute of time is 60 s."""
    fields = {
        "seq": seq, "id": str(seq), "name": "x", "user": "u", "account": "a", "partitions": ("p",),
        "gpu": "", "gpus": gpus, "one_node": True, "cores": 1, "memory_mb": 1000, "submit": seq,
        "eligible": seq, "after": -1, "why": "", "limit": limit * MINUTE, "run": minutes * MINUTE,
        "requeued_after": 0, "ends": "COMPLETED",
    }  # fmt: skip
    return Job(**fields | given)


def starts(jobs, *nodes):
    """(start, nodes) by seq of the last run of each job."""
    runs = Easy(tuple(nodes)).schedule(jobs)
    return {run.job.seq: (run.start, list(run.gpus)) for run in runs}


def node(name, gpus=2, cores=8, kind="a100", partitions=("p",)):
    return Node(name, kind, gpus, cores, cores, 64_000, partitions)


def test_no_gpu_core_or_memory_is_given_twice_at_any_instant(made):
    _, runs = made
    for each in NODES:
        changes = []
        for run in runs:
            if each.name in run.gpus:
                count = run.gpus[each.name]
                times = count if run.job.gpus else 1
                need = (count, times * run.job.cores, times * run.job.memory_mb)
                changes += [(run.start, 1, need), (run.end, 0, tuple(-part for part in need))]
        used = [0, 0, 0]
        for _, _, need in sorted(changes):
            used = [a + b for a, b in zip(used, need, strict=True)]
            assert all(
                a <= b for a, b in zip(used, (each.gpus, each.cores, each.memory_mb), strict=True)
            )
        assert used == [0, 0, 0]


def test_every_job_runs_whole_on_nodes_of_its_partition_and_type(made):
    jobs, runs = made
    by_name = {each.name: each for each in NODES}
    for run in runs:
        assert sum(run.gpus.values()) == run.job.gpus
        assert run.partition in run.job.partitions
        for name in run.gpus:
            assert run.partition in by_name[name].partitions
            assert run.job.gpu in ("", by_name[name].gpu)
    assert all(set(each.nodes) <= each.allowed for each in jobs)
    assert {by_name[name].gpu for each in jobs for name in each.nodes} == {"a100", "v100", "mi250"}


def test_one_node_gangs_stay_on_one_node_and_some_others_span(made):
    jobs, _ = made
    assert all(len(each.nodes) == 1 for each in jobs if each.one_node)
    assert any(len(each.nodes) > 1 for each in jobs)


def test_no_job_starts_before_it_is_eligible_and_runs_no_longer_than_slurm_lets_it(made):
    _, runs = made
    for run in runs:
        assert run.submit <= run.eligible <= run.start < run.end
        assert run.end - run.start < run.job.limit + 30
        assert (run.end - run.start > run.job.limit) <= (run.state == "TIMEOUT")


def test_dependent_jobs_are_eligible_when_the_last_run_of_the_other_ends(made):
    _, runs = made
    last = {run.job.seq: run for run in runs}
    children = [run for run in runs if run.job.after >= 0]
    assert len(children) > 10
    for run in children:
        assert run.eligible == max(run.submit, last[run.job.after].end)


def test_a_history_holds_every_kind_of_trouble(made):
    jobs, runs = made
    twice = [run for run in runs if run.state == "REQUEUED"]
    assert twice
    for first in twice:
        second = next(
            r for r in runs if r.job.seq == first.job.seq and r.submit != first.job.submit
        )
        assert (second.submit, second.eligible) == (first.end, first.end + 121)
    on_gpu_nodes = [r for r in runs if not r.job.gpus and r.partition == "gpu"]
    assert on_gpu_nodes
    assert {"hold", "begin", "dependency"} <= {run.job.why for run in runs}
    assert any(run.state == "TIMEOUT" for run in runs)
    assert any(len(run.job.partitions) == 2 and run.partition == "amd" for run in runs)
    assert len({each.id for each in jobs}) == len(jobs)


def test_waits_are_of_the_order_of_run_times():
    jobs, _ = truth.make(0)
    runs = sum(each.end - each.start for each in jobs) / len(jobs)
    assert 0.5 < sum(each.wait for each in jobs) / len(jobs) / runs < 2


def test_the_same_seed_gives_the_same_history(made):
    assert truth.make(3, 200) == truth.make(3, 200)
    assert truth.make(3, 200) != truth.make(4, 200)


def test_a_backfilled_job_starts_only_if_the_head_is_not_delayed():
    # Two GPUs. 0 holds one until minute 10 by its limit (it ends at 8); 1 wants both: reserved for
    # 10. 2 would still run at 10 and must wait behind 1; 3 ends by then and may start.
    jobs = [job(0, 8, 10), job(1, 5, 5, gpus=2), job(2, 1, 20), job(3, 9, 9)]
    assert starts(jobs, node("n1")) == {
        0: (0, ["n1"]), 3: (3, ["n1"]), 1: (3 + 9 * MINUTE, ["n1"]), 2: (3 + 14 * MINUTE, ["n1"]),
    }  # fmt: skip


def test_a_long_job_may_start_beside_the_reservation_on_other_nodes():
    # n1 is full, n2 has one GPU left. The head, two GPUs of one node, is reserved on n1 after an
    # hour; a job of an hour would end later, but on n2 it leaves n1 alone.
    jobs = [job(0, 10, 10), job(1, 60, 60), job(2, 60, 60), job(3, 5, 5, gpus=2), job(4, 60, 60)]
    done = starts(jobs, node("n1"), node("n2"))
    assert done[2] == (2, ["n2"])
    assert done[4] == (4, ["n2"])
    assert done[3][0] == 1 + 60 * MINUTE  # n1: job 1 has the other GPU for an hour
    # Without the second node's free GPU job 4 would have to wait for the head.
    assert starts([*jobs[:2], *jobs[3:]], node("n1"))[4][0] > 1 + 60 * MINUTE


def test_the_reserved_nodes_are_left_alone_where_the_first_choice_would_delay_the_head():
    # One GPU of n1 is busy for 10 minutes; the head wants two a100 and is reserved there. A long
    # job of any type would take n1's free GPU by the order of nodes; it goes to n2 instead.
    jobs = [job(0, 10, 10, gpu="a100"), job(1, 5, 5, gpus=2, gpu="a100"), job(2, 60, 60)]
    done = starts(jobs, node("n1"), node("n2", kind="v100"))
    assert done == {0: (0, ["n1"]), 1: (600, ["n1"]), 2: (2, ["n2"])}


def test_partition_type_cores_and_one_node_each_make_a_job_wait():
    nodes = (
        node("n1", kind="a100", partitions=("p",)),
        node("n2", kind="v100", partitions=("p", "q")),
    )
    busy = job(0, 10, 10, gpus=2)  # takes n1
    for wants in (
        {"gpu": "a100"},
        {"gpus": 3, "one_node": False},
        {"cores": 9, "partitions": ("p",)},
    ):
        again = job(1, 1, 1, **wants)
        larger = nodes[0]._replace(cores=16), nodes[1]
        assert starts([busy, again], *larger)[1][0] == 600
    assert starts([busy, job(1, 1, 1, gpus=2, partitions=("q",))], *nodes)[1] == (1, ["n2"])
    # Three GPUs may span the two nodes; on one node they need one that has three.
    assert starts([job(0, 1, 1, gpus=3, one_node=False)], *nodes)[0] == (0, ["n1", "n2"])
    assert starts([job(0, 1, 1, gpus=3)], node("n1"), node("n2", gpus=3))[0] == (0, ["n2"])


def test_cpu_only_jobs_hold_cores_and_never_a_reservation():
    cpu = job(0, 10, 10, gpus=0, cores=6)
    gpu = job(1, 1, 1, cores=4)
    assert starts([cpu, gpu], node("n1"))[1][0] == 600
    # A second one waits for all cores; a longer GPU job behind it passes by.
    behind = [job(1, 1, 1, gpus=0, cores=8), job(2, 30, 30, cores=2)]
    assert starts([cpu, *behind], node("n1")) == {
        0: (0, ["n1"]), 2: (2, ["n1"]), 1: (2 + 30 * MINUTE, ["n1"]),
    }  # fmt: skip


class Watched(Easy):
    """Remembers the first reservation of every job."""

    def _reserve(self, head, now):
        at, room = super()._reserve(head, now)
        self.promised = {head.seq: at} | getattr(self, "promised", {})
        return at, room


@pytest.mark.parametrize("seed", [0, 1])
def test_no_job_starts_later_than_its_first_reservation(seed):
    # A CPU-only job before the head takes cores when it can, and a job killed late outlives its
    # limit: neither here.
    jobs = [each._replace(run=min(each.run, each.limit)) for each in draw(seed, COUNT, gap=240.0)]
    jobs = [each if each.gpus else each._replace(gpus=1, cores=1) for each in jobs]
    jobs = [
        each._replace(partitions=("gpu",)) if "cpu" in each.partitions else each for each in jobs
    ]
    watched = Watched(NODES)
    done = {(run.job.seq, run.state == "REQUEUED"): run.start for run in watched.schedule(jobs)}
    assert len(watched.promised) > 20
    for seq, at in watched.promised.items():
        assert done.get((seq, True), done[seq, False]) <= at


def test_sacct_is_written_as_slurm_writes_it():
    asked = job(7, 90, 120, gpus=2, gpu="v100", cores=6, memory_mb=32_000, submit=10, eligible=10,
                partitions=("gpu", "long"), name="eval, lr=0.1")  # fmt: skip
    text = sacct(Easy(NODES).schedule([asked]), NODES)
    assert text.splitlines()[:3] == [
        "JobID|JobName|User|Account|Partition|QOS|State|ExitCode|Submit|Eligible|Start|End|ElapsedRaw|"
        "TimelimitRaw|ReqTRES|AllocTRES|ReqNodes|NNodes|NodeList|ReqCPUS|AllocCPUS|ReqMem|Priority|"
        "Restarts|Reason|SubmitLine",
        "7|eval, lr=0.1|u|a|gpu|normal|COMPLETED|0:0|2026-01-12T06:00:10|2026-01-12T06:00:10|"
        "2026-01-12T06:00:10|2026-01-12T07:30:10|5400|120|"
        "billing=12,cpu=12,gres/gpu:v100=2,gres/gpu=2,mem=64G,node=1|"
        "billing=12,cpu=12,gres/gpu:v100=2,gres/gpu=2,mem=64G,node=1|1|1|v01|12|12|64G|4294901752|0|None|"
        "sbatch --job-name=eval, lr=0.1 --partition=gpu,long --nodes=1 --gres=gpu:v100:2 "
        "--cpus-per-gpu=6 --mem-per-gpu=32000 --time=120 job.sh",
        "7.batch|batch||a|||COMPLETED|0:0|2026-01-12T06:00:10|2026-01-12T06:00:10|2026-01-12T06:00:10|"
        "2026-01-12T07:30:10|5400|||cpu=12,gres/gpu:v100=2,gres/gpu=2,mem=64G,node=1||1|v01|12|12|||||",
    ]


def test_nodes_are_written_as_slurm_writes_them():
    lines = show_nodes(NODES).split("\n\n")[4].split("\n")
    assert lines[0] == "NodeName=v01 Arch=x86_64 CoresPerSocket=20 "
    assert "   CPUAlloc=0 CPUEfctv=38 CPUTot=40 CPULoad=0.31" in lines
    assert "   Gres=gpu:v100:4(S:0-1)" in lines
    assert "   Partitions=gpu,long " in lines
    assert "   CfgTRES=cpu=38,mem=384000M,billing=38,gres/gpu=4,gres/gpu:v100=4" in lines
    one_line = show_nodes(NODES, one_line=True).splitlines()
    assert len(one_line) == len(NODES)
    assert one_line[4].split() == " ".join(lines).split()


@pytest.mark.parametrize(
    ("names", "short"),
    [(["a01"], "a01"), (["a01", "a02"], "a[01-02]"), (["a01", "a03", "v02"], "a[01,03],v02")],
)
def test_names_of_nodes_are_shortened_as_slurm_does(names, short):
    assert hostlist(names) == short


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE))


def test_the_files_tell_the_truth(tmp_path):
    said = truth.write(tmp_path, 0, count=200)
    rows = [row for row in read(said.sacct) if "." not in row["JobID"]]
    assert len(rows) == len(said.runs) > 200
    last = {row["JobID"]: row for row in rows}
    for each in said.jobs:
        row = last[each.id]
        assert int(row["ElapsedRaw"]) == each.end - each.start
        assert row["NodeList"] == hostlist(list(each.nodes))
        assert f"gres/gpu={each.gpus}," in row["ReqTRES"]
    assert said.mean_jct > said.mean_wait > 0
    assert "PartitionName=long" in said.partitions.read_text()


TOLD = {  # whether a row of sacct tells of it
    "partition": lambda row: row["Partition"] or "--partition" in row["SubmitLine"],
    "type": lambda row: "gres/gpu:" in row["ReqTRES"] or "100:" in row["SubmitLine"],
    "one-node": lambda row: row["ReqNodes"] or "--gres" in row["SubmitLine"],
    "eligible": lambda row: row["Eligible"] != row["Submit"],
    "submit-line": lambda row: "SubmitLine" in row,
    "cpu-only": lambda row: row["ReqTRES"] and "gres" not in row["ReqTRES"],
}


@pytest.mark.parametrize("drop", sorted(truth.DROPS))
def test_a_mutant_conceals_what_it_says_and_keeps_the_truth(tmp_path, drop):
    whole = truth.write(tmp_path / "whole", 0, count=200)
    mutant = truth.write(tmp_path / "mutant", 0, drop=[drop], count=200)
    assert (mutant.jobs, mutant.runs) == (whole.jobs, whole.runs)
    assert not any(TOLD[drop](row) for row in read(mutant.sacct))
    assert any(TOLD[drop](row) for row in read(whole.sacct))


def test_an_unknown_drop_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot drop"):
        truth.write(tmp_path, 0, drop=["cores"])
