"""The planted histories: each trouble is as strong as promised, and the files tell of it."""

import csv
import datetime
import re

import pytest

from tests import planted
from tests.planted import backfill
from tests.planted.jobs import HOUR, Job
from tests.planted.priority import Priorities
from tests.planted.site import IDLE_BY, STARVED_BY, Partition, Weights
from tests.planted.texts import COLUMNS
from tests.truth.cluster import Node
from tests.truth.slurm_text import BEGIN, hostlist

QUICK = (0, 1, 5)
every_seed = pytest.mark.parametrize(
    "seeds", [QUICK, pytest.param(planted.SEEDS, marks=pytest.mark.slow)], ids=["some", "all"]
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A function of the seed; each is written once."""
    known = {}

    def get(seed):
        if seed not in known:
            known[seed] = planted.write(tmp_path_factory.mktemp(f"seed{seed}"), seed)
        return known[seed]

    return get


@every_seed
def test_one_model_is_hardly_used_while_others_have_a_queue(written, seeds):
    for seed in seeds:
        true = written(seed)
        use = true.figures.use
        assert use[true.idle_model] < 0.05, seed
        assert all(share > 0.5 for model, share in use.items() if model != true.idle_model), seed
        idle = [node.name for node in true.site.nodes if node.gpu == true.idle_model]
        on_others = [run for run in true.runs if not set(run.nodes) & set(idle)]
        assert sum(run.wait > HOUR for run in on_others) > 300, seed


@every_seed
def test_one_account_waits_for_several_times_as_long_and_only_by_the_weight(written, seeds):
    for seed in seeds:
        true = written(seed)
        told, account = true.figures, true.starved_account
        others = [wait for name, wait in told.waits.items() if name != account]
        assert told.waits[account] > 4 * max(others), seed
        assert told.waits_equal[account] < 0.45 * told.waits[account], seed
        assert told.wait_equal < told.wait, seed


@every_seed
def test_one_partition_is_asked_for_more_than_its_nodes_have(written, seeds):
    for seed in seeds:
        true = written(seed)
        told, busy = true.figures, true.overloaded_partition
        assert 1.10 <= told.load[busy] <= told.load_of_nodes[busy] <= 1.30, seed
        idle = {true.site.idle} if true.site.idle != true.site.calm else set()
        for name in told.load.keys() - {busy} - true.sharing - idle:
            assert 0.5 <= told.load[name] <= 0.75, (seed, name)
        assert all(told.load[name] < 0.2 for name in true.sharing | idle), seed
        # More than a tenth of what the nodes do in the span is left at its end.
        left = sum(told.backlog[name] for name in {busy} | true.sharing)
        assert left > 0.1 * told.span * true.site.gpus(busy), seed


@every_seed
def test_a_history_has_the_promised_shape(written, seeds):
    for seed in seeds:
        true = written(seed)
        assert 1200 <= len(true.runs) <= 1500
        assert 14 <= true.figures.span / (24 * HOUR) <= 21
        assert 40 <= true.site.gpus() <= 64
        assert 3 <= len(true.models) <= 4
        assert 2 <= len(true.site.partitions) <= 4
        assert {run.job.partition for run in true.runs} == {p.name for p in true.site.partitions}


def test_mechanisms_and_names_vary_by_seed():
    sites = [planted.site.draw(seed) for seed in planted.SEEDS]
    assert {(each.idle_by, each.starved_by) for each in sites} == {
        (idle, starved) for idle in IDLE_BY for starved in STARVED_BY
    }
    for name in ("idle_model", "busy_model", "starved", "busy"):
        assert len({getattr(each, name) for each in sites}) >= 4, name


@every_seed
def test_no_gpu_core_or_memory_is_given_twice_at_any_instant(written, seeds):
    for seed in seeds:
        true = written(seed)
        changes = {node.name: [] for node in true.site.nodes}
        for run in true.runs:
            job = run.job
            need = (1, job.cores, job.memory_gb * 1024)
            for name in run.nodes:
                changes[name] += [(run.start, 1, *(job.per_node * part for part in need))]
                changes[name] += [(run.end, 0, *(-job.per_node * part for part in need))]
        for node in true.site.nodes:
            used = [0, 0, 0]
            for _, _, *need in sorted(changes[node.name]):
                used = [a + b for a, b in zip(used, need, strict=True)]
                has = (node.gpus, node.cores, node.memory_mb)
                assert all(a <= b for a, b in zip(used, has, strict=True)), (seed, node.name)
            assert used == [0, 0, 0]


@every_seed
def test_every_job_runs_whole_where_its_partition_and_type_permit(written, seeds):
    for seed in seeds:
        true = written(seed)
        for run in (*true.runs, *true.equal):
            assert set(run.nodes) <= set(backfill.allowed(run.job, true.site.nodes))
            assert len(set(run.nodes)) == run.job.nodes
            assert run.wait >= 0
            assert run.end - run.start == run.job.run <= run.job.limit
        permitted = {part.name: part.accounts for part in true.site.partitions}
        assert all(
            r.job.account in (permitted[r.job.partition] or true.site.users) for r in true.runs
        )
        assert [run.job for run in true.runs] == [run.job for run in true.equal]


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE))


@every_seed
def test_the_files_agree_with_the_truth_and_with_each_other(written, seeds):
    for seed in seeds:
        true = written(seed)
        rows = rows_of(true.sacct)
        assert len({row["JobID"] for row in rows}) == len(rows) == len(true.runs)
        for row, run in zip(rows, true.runs, strict=True):
            start, end, submit = (
                (datetime.datetime.fromisoformat(row[name]) - BEGIN).total_seconds()
                for name in ("Start", "End", "Submit")
            )
            assert (submit, start, end) == (run.job.submit, run.start, run.end)
            assert row["Account"] == run.job.account
            assert int(row["ElapsedRaw"]) == end - start
            assert row["NodeList"] == hostlist(list(run.nodes))
            assert f"gres/gpu={run.job.gpus}," in row["AllocTRES"]
            assert (f"gres/gpu:{run.job.model}=" in row["ReqTRES"]) == bool(run.job.model)
        shown = re.findall(r"NodeName=(\S+).*?\bState=(\S+)", true.nodes.read_text(), re.DOTALL)
        assert shown == [(node.name, "IDLE") for node in true.site.nodes]
        config = true.config.read_text()
        weights = dict(re.findall(r"^(PriorityWeight\w+) *= (\S+)$", config, re.MULTILINE))
        assert int(weights[true.cures[0]]) >= 500_000
        factors = dict(
            re.findall(r"PartitionName=(\S+).*?PriorityJobFactor=(\d+)", config, re.DOTALL)
        )
        assert factors == {part.name: str(part.job_factor) for part in true.site.partitions}
        assert all(row["Partition"] in factors for row in rows)


def test_the_same_seed_gives_the_same_files(written, tmp_path):
    again, other = planted.write(tmp_path / "again", 1), planted.write(tmp_path / "other", 3)
    for name in ("sacct", "nodes", "config"):
        text = getattr(written(1), name).read_text()
        assert getattr(again, name).read_text() == text
        assert getattr(other, name).read_text() != text


def job(seq, minutes, limit, gpus=1, **given):
    """A job of the hand-made examples, submitted `seq` seconds after they begin."""
    fields = {
        "seq": seq, "id": str(seq), "name": "x", "user": "u", "account": "a", "partition": "p",
        "model": "", "nodes": 1, "per_node": gpus, "cores": 4, "memory_gb": 1, "submit": seq,
        "limit": limit * 60, "run": minutes * 60, "state": "COMPLETED",
    }  # fmt: skip
    return Job(**fields | given)


def small_site(*counts):
    """Partitions p and q on nodes of so many GPUs; q has a tenth of p's factor."""
    nodes = tuple(
        Node(f"n{i}", "a100", count, 16, 16, 64_000, ("p", "q")) for i, count in enumerate(counts)
    )
    return planted.site.draw(0)._replace(
        nodes=nodes, partitions=(Partition("p", 10), Partition("q", 1))
    )


def starts(jobs, *counts, weights):
    return {r.job.seq: r.start for r in backfill.schedule(small_site(*counts), jobs, weights)}


def test_a_priority_is_the_weighted_sum_in_whole_numbers():
    # Four nodes of 16 cores. Two of the nodes and 16 of the cores: (0.5 + 0.25) / 2 of 1000. A day
    # of ten is a tenth of 500; a tenth of the highest partition factor counts a tenth of 300.
    told = Priorities(small_site(2, 2, 2, 2), Weights(500, 1000, 300, 864_000))
    wide = job(0, 1, 1, gpus=2, nodes=2, partition="q")
    assert told.at(wide, 0) == 375 + 30
    assert told.at(wide, 86_400) == 375 + 30 + 50
    assert told.at(wide, 10**8) == 375 + 30 + 500
    assert Priorities(small_site(2), Weights(0, 0, 0, 1)).at(wide, 0) == 1


@pytest.mark.parametrize(
    ("weights", "first"),
    [(Weights(1000, 0, 0, 3600), 1), (Weights(0, 1000, 0, 3600), 2), (Weights(0, 0, 1000, 60), 2)],
)
def test_age_size_and_partition_each_set_the_order(weights, first):
    jobs = [job(0, 10, 10, 2), job(1, 10, 10, partition="q", cores=2), job(2, 10, 10, 2)]
    begun = starts(jobs, 2, weights=weights)
    assert begun[first] == 600
    assert begun[3 - first] == 1200


def test_a_backfilled_job_starts_only_if_the_head_is_not_delayed():
    # Two GPUs. 0 holds one until minute 10 by its limit (it ends at 8); 1 wants both: reserved for
    # 10. 2 would still run at 10 and must wait behind 1; 3 ends by then and may start.
    jobs = [job(0, 8, 10), job(1, 5, 5, gpus=2), job(2, 1, 20), job(3, 9, 9)]
    begun = starts(jobs, 2, weights=Weights(1000, 0, 0, 86_400))
    assert begun == {0: 0, 3: 3, 1: 3 + 9 * 60, 2: 3 + 14 * 60}


def test_a_long_job_starts_beside_the_reservation_on_other_nodes():
    jobs = [job(0, 10, 10), job(1, 60, 60, 2), job(2, 5, 5, gpus=2), job(3, 60, 60)]
    begun = starts(jobs, 2, 3, weights=Weights(1000, 0, 0, 86_400))
    assert (begun[2], begun[3]) == (600, 3)


def test_a_line_of_sacct_is_as_slurm_writes_it(written):
    lines = written(0).sacct.read_text().splitlines()
    assert lines[0] == "|".join(COLUMNS)
    assert all(line.count("|") == len(COLUMNS) - 1 for line in lines)
    asked = re.compile(
        r"sbatch --job-name=\S+ --partition=\S+ --nodes=[12] --gres=gpu:(\w+:)?[1248] "
        r"--cpus-per-gpu=\d+ --mem-per-gpu=\d+G --time=\d+ job\.sh"
    )
    assert all(asked.fullmatch(line.rpartition("|")[2]) for line in lines[1:])
