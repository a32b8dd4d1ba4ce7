"""What jobs of Slurm, SWF and CSV files asked for: partitions, types, features, nodes, times."""

import json

import numpy as np
import pytest

from adlro.errors import TraceError
from adlro.workloads.export import as_csv
from adlro.workloads.formats import npz
from tests.histories import SAMPLES, history, words

NAN = np.nan
HEAD = (
    "JobIDRaw|JobName|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|ReqTRES|AllocTRES|"
    "ReqNodes|NNodes|NodeList|Constraints|SubmitLine"
)
DAY = "2026-11-18T05:"
ONE = {
    "JobIDRaw": "1",
    "JobName": "x",
    "Partition": "gpu",
    "State": "COMPLETED",
    "Submit": f"{DAY}12:14",
    "Eligible": f"{DAY}12:14",
    "Start": f"{DAY}12:15",
    "End": f"{DAY}12:22",
    "ElapsedRaw": "7",
    "ReqTRES": "cpu=2,gres/gpu=2,node=1",
    "AllocTRES": "cpu=2,gres/gpu:volta=2,gres/gpu=2,node=1",
    "ReqNodes": "1",
    "NNodes": "1",
    "NodeList": "v1",
    "Constraints": "",
    "SubmitLine": "sbatch --gres=gpu:2 run.sh",
}


def sacct(folder, *jobs, without=()):
    """The history of such a file; each job says how it differs from ONE."""
    names = [name for name in HEAD.split("|") if name not in without]
    lines = ["|".join((ONE | job)[name] for name in names) for job in jobs]
    return history(folder, "\n".join(["|".join(names), *lines]) + "\n")


def test_sacct_says_what_a_job_asked_for(tmp_path):
    line = "sbatch -p gpu,lab --gres=gpu:volta:2 -C ib run.sh"
    typed = {"ReqTRES": "cpu=2,gres/gpu:turing=2,gres/gpu=2,node=1", "Constraints": "hdr|ib"}
    found = sacct(
        tmp_path,
        {},
        {"JobIDRaw": "2", "SubmitLine": line},
        {"JobIDRaw": "3", "SubmitLine": line} | typed,
    )
    assert words(found, "allowed") == ["", "volta", "turing"]  # never what it was only given
    assert words(found, "gpu_model") == ["volta"] * 3
    assert words(found, "partitions") == ["", "gpu|lab", "gpu|lab"]
    assert words(found, "features") == ["", "ib", "hdr|ib"]
    assert words(found, "hosts") == ["v1"] * 3
    assert found.one_node.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("constraints", "line"),
    [
        ("a|b", "sbatch -C a|b -p gpu,lab run.sh"),
        ("a|b", "/opt/bin/srun -C a|b -p gpu,lab cat x | sort"),
        ("", "sbatch -C a|b -p gpu,lab --wrap cat x | sort || true"),
    ],
)
def test_sacct_does_not_quote_the_delimiter_in_its_last_fields(tmp_path, constraints, line):
    found = sacct(tmp_path, {"Constraints": constraints, "SubmitLine": line})
    assert words(found, "features") == ["a|b"]
    assert words(found, "partitions") == ["gpu|lab"]
    assert sacct(tmp_path, {"Constraints": "a|b", "SubmitLine": ""}).tables["features"] == ("a|b",)


def test_a_delimiter_in_any_other_field_is_refused(tmp_path):
    with pytest.raises(TraceError, match="expected 15 fields, got 16"):
        sacct(tmp_path, {"Constraints": "a|b"}, without=("SubmitLine",))
    with pytest.raises(TraceError, match="ReqTRES must be a list"):
        sacct(tmp_path, {"JobName": "a|b"})
    with pytest.raises(TraceError, match="expected 16 to 80 fields, got 116"):
        sacct(tmp_path, {"SubmitLine": "|" * 100})


def test_sacct_reads_types_of_reqgres_where_accounting_has_none(tmp_path):
    text = "JobID|Submit|ReqGRES\n1|2026-01-05T10:00:00|gpu:v100:2\n2|2026-01-05T10:00:00|gpu:1\n"
    assert words(history(tmp_path, text), "allowed") == ["v100", ""]


@pytest.mark.parametrize(
    ("job", "without", "one_node"),
    [
        ({}, (), 1),
        ({"SubmitLine": "sbatch --gpus=2 run.sh"}, (), 0),
        ({"SubmitLine": "sbatch --gpus=2 --nodes=1 run.sh"}, (), 1),
        ({"SubmitLine": "sbatch run.sh"}, (), 1),
        ({"SubmitLine": "sbatch run.sh", "NNodes": "2"}, (), 0),  # what ran on two may
        ({"AllocTRES": "cpu=2,gres/gpu=2,node=2"}, ("NNodes",), 0),
        ({"ReqNodes": "2", "ReqTRES": "cpu=2,gres/gpu=2,node=2"}, (), 0),
        ({}, ("ReqNodes",), 1),  # ReqTRES says it too
        ({}, ("ReqNodes", "ReqTRES"), -1),
    ],
)
def test_sacct_says_whether_a_gang_must_be_on_one_node(tmp_path, job, without, one_node):
    assert sacct(tmp_path, job, without=without).one_node.tolist() == [one_node]


def test_times_of_held_and_dependent_jobs_are_those_when_they_became_eligible(tmp_path):
    found = sacct(
        tmp_path,
        {},
        {"JobIDRaw": "2", "Eligible": f"{DAY}12:22", "Start": f"{DAY}12:22", "ElapsedRaw": "0"},
        {"JobIDRaw": "3", "Eligible": "Unknown"},
    )
    np.testing.assert_array_equal(found.eligible_s, [0, 8, NAN])
    np.testing.assert_array_equal(found.ready_s(), [0, 8, 0])
    assert sacct(tmp_path, {}, without=("Eligible",)).ready_s().tolist() == [0]


def test_of_the_records_of_a_requeued_job_the_last_counts(tmp_path):
    later = {"Submit": f"{DAY}12:18", "Eligible": f"{DAY}12:24", "Start": f"{DAY}12:24"}
    found = sacct(
        tmp_path,
        {"JobIDRaw": "5", "State": "REQUEUED", "End": f"{DAY}12:15", "ElapsedRaw": "0"},
        {"JobIDRaw": "6"},
        {"JobIDRaw": "5", "End": f"{DAY}12:30", "ElapsedRaw": "6"} | later,
    )
    assert found.id == ("6", "5")
    assert words(found, "status") == ["completed", "completed"]
    np.testing.assert_array_equal(found.submit_s, [0, 4])
    np.testing.assert_array_equal(found.eligible_s, [0, 10])
    np.testing.assert_array_equal(found.run_s, [7, 6])
    # The record that does not count has no defects: it ran for 0 s.
    assert found.header.defects == {"earlier records of requeued jobs that had not run": 1}


LATER = {"Submit": f"{DAY}12:23", "Eligible": f"{DAY}12:24", "Start": f"{DAY}12:30"}
LATER |= {"End": f"{DAY}12:40", "ElapsedRaw": "10"}


def test_earlier_runs_of_a_requeued_job_are_lost_runs(tmp_path):
    found = sacct(tmp_path, LATER, {"State": "NODE_FAIL"}, {"JobIDRaw": "2"})  # last = latest
    assert found.id == ("1", "1", "2")
    assert found.is_lost.tolist() == [False, True, False]
    assert (found.rows, found.jobs, found.without_lost().id) == (3, 2, ("1", "2"))
    assert found.without_lost().run_s.tolist() == [10, 7]
    again = history(tmp_path, "".join(as_csv(found)), "again.csv")
    assert (again.id, again.lost.tolist()) == (found.id, found.lost.tolist())
    stored = history(tmp_path, npz.pack(found), "again.npz")
    assert stored.lost.tolist() == found.lost.tolist()


@pytest.mark.parametrize(
    "other", [{"JobName": "y"}, {"Submit": "2026-11-19T05:12:23", "Eligible": "Unknown"}]
)
def test_a_job_id_that_was_used_again_names_two_jobs(tmp_path, other):
    late = {name: f"2026-11-19T{LATER[name][-8:]}" for name in ("Start", "End")}
    found = sacct(tmp_path, {}, LATER | late | other)
    assert found.id == ("1#1", "1")
    assert not found.is_lost.any()
    assert found.header.defects["job ids that a later job used again"] == 1


def test_lost_runs_alone_are_no_history(tmp_path):
    with pytest.raises(TraceError, match="there are no jobs in it"):
        history(tmp_path, "id,submit,run_s,lost\na,1,2,1\n")


def test_two_jobs_of_one_id_are_still_refused_elsewhere(tmp_path):
    with pytest.raises(TraceError, match=r":3: there is a job 'a' already"):
        history(tmp_path, "id,submit,run_s\na,1,2\na,3,4\n")


SUMMER = "2026-10-25T"


def test_a_job_across_the_end_of_summer_time_ends_after_its_run_time(tmp_path):
    # Clocks go back from 03:00 to 02:00: 02:50 to 02:10 are 20 minutes, 01:50 to 03:20 2.5 hours.
    times = {"Submit": f"{SUMMER}01:40:00", "Eligible": f"{SUMMER}01:40:00"}
    short = {"Start": f"{SUMMER}02:50:00", "End": f"{SUMMER}02:10:00", "ElapsedRaw": "1200"}
    long = {"Start": f"{SUMMER}01:50:00", "End": f"{SUMMER}03:20:00", "ElapsedRaw": "9000"}
    plain = {"Start": f"{SUMMER}01:50:00", "End": f"{SUMMER}02:00:00", "ElapsedRaw": "600"}
    rows = [times | short, {"JobIDRaw": "2"} | times | long, {"JobIDRaw": "3"} | times | plain]
    found = sacct(tmp_path, *rows)
    np.testing.assert_array_equal(found.end_s - found.start_s, [1200, 9000, 600])
    assert found.header.defects == {"times corrected across the end of summer time": 2}


def test_a_start_within_the_hour_before_its_submission_is_taken_as_the_submission(tmp_path):
    times = {"Submit": f"{SUMMER}02:50:00", "Eligible": f"{SUMMER}02:50:00"}
    run = {"Start": f"{SUMMER}02:10:00", "End": f"{SUMMER}02:20:00", "ElapsedRaw": "600"}
    found = sacct(tmp_path, times | run)
    assert (found.start_s[0], found.end_s[0]) == (0, 600)
    assert found.header.defects == {"times corrected across the end of summer time": 1}


@pytest.mark.parametrize(
    ("day", "is_long"),
    [
        ("2026-10-25", True),  # Europe
        ("2026-11-01", True),  # North America
        ("2026-04-05", True),  # Australia
        ("2026-10-24", False),  # a Saturday
        ("2026-06-07", False),  # no Sunday on which summer time ends
    ],
)
def test_a_start_before_the_submission_at_any_other_time_is_a_wait_of_0_s(tmp_path, day, is_long):
    times = {"Submit": f"{day}T02:50:00", "Eligible": f"{day}T02:50:00"}
    run = {"Start": f"{day}T02:10:00", "End": f"{day}T02:20:00", "ElapsedRaw": "600"}
    found = sacct(tmp_path, times | run)
    np.testing.assert_array_equal(found.start_s - found.submit_s, [0])
    np.testing.assert_array_equal(found.end_s - found.start_s, [600])
    assert found.eligible_s[0] - found.start_s[0] == (0 if is_long else 2400)
    kinds = ("times corrected across the end of summer time",)
    if not is_long:
        kinds = ("starts before the submission, with a wait of 0 s",)
    assert tuple(found.header.defects) == kinds


def test_an_end_an_hour_early_is_corrected_only_if_the_run_crosses_such_a_night(tmp_path):
    def lasted(day, last):
        times = {"Submit": f"{day}T05:00:00", "Eligible": f"{day}T05:00:00"}
        seconds = (np.datetime64(last) - np.datetime64(day)).astype(int) * 86_400
        run = {"Start": f"{day}T05:00:00", "End": f"{last}T04:00:00", "ElapsedRaw": str(seconds)}
        found = sacct(tmp_path, times | run)
        return found.end_s[0] - found.start_s[0] == seconds

    assert lasted("2026-10-20", "2026-10-27")
    assert lasted("2025-12-20", "2026-12-20")  # over both
    assert not lasted("2026-10-25", "2026-10-31")  # clocks had gone back by 05:00
    assert not lasted("2026-06-01", "2026-06-20")


@pytest.mark.parametrize(("hosts", "starts"), [("None assigned", 0), ("v1", 1)])
def test_a_job_that_was_cancelled_while_it_waited_has_not_started(tmp_path, hosts, starts):
    gone = {"State": "CANCELLED by 0", "End": f"{DAY}12:15", "ElapsedRaw": "0", "NodeList": hosts}
    found = sacct(tmp_path, gone, {"JobIDRaw": "2"})
    assert np.isfinite(found.start_s[0]) == np.isfinite(found.run_s[0]) == starts
    assert "ran for 0 s" not in found.header.defects or starts


def test_sacct_json_knows_jobs_that_were_cancelled_while_they_waited(tmp_path):
    data = json.loads(SAMPLES["sacct-json"])
    first = data["jobs"][0]
    first["time"] |= {"elapsed": 0, "end": first["time"]["start"]}
    first["state"]["current"], first["nodes"] = ["CANCELLED"], "None assigned"
    found = history(tmp_path, json.dumps(data))
    assert np.isnan(found.start_s[0])
    assert np.isnan(found.run_s[0])


def test_negative_waits_and_runs_that_no_clock_explains_are_refused(tmp_path):
    with pytest.raises(TraceError, match=r":2: it starts at .*, before it was submitted"):
        sacct(tmp_path, {"Start": "2026-11-18T03:00:00"})
    with pytest.raises(TraceError, match=r":2: it ends at .*, before it starts"):
        sacct(tmp_path, {"End": f"{DAY}12:10"})


def in_json(folder, **changes):
    """The history of the JSON sample, with these keys of all jobs changed."""
    data = json.loads(SAMPLES["sacct-json"])
    for job in data["jobs"]:
        job |= changes
    return history(folder, json.dumps(data))


def test_sacct_json_says_the_same(tmp_path):
    tres = {"requested": [{"type": "node", "name": "", "count": 1}]}
    tres["requested"] += [{"type": "gres", "name": "gpu:volta", "count": 4}]
    line = "sbatch --job-name=a b -p gpu,lab -C ib --gres=gpu:4 run.sh"
    more = {"name": "a b", "submit_line": line, "nodes": "v[1-2]", "tres": tres}
    found = in_json(tmp_path, **more)
    assert words(found, "allowed") == ["volta"] * 2
    assert words(found, "partitions") == ["gpu|lab"] * 2
    assert words(found, "features") == ["ib"] * 2
    assert words(found, "hosts") == ["v[1-2]"] * 2
    assert found.one_node.tolist() == [1, 1]
    spans = in_json(tmp_path, **more | {"submit_line": "sbatch --gpus=4 run.sh"})
    assert spans.one_node.tolist() == [0, 0]
    blank = in_json(tmp_path, nodes="None assigned", constraints="", tres={})
    assert words(blank, "hosts") == words(blank, "allowed") == ["", ""]
    assert blank.one_node.tolist() == [-1, -1]
    assert in_json(tmp_path, constraints="a|b", partition="x,y").tables["partitions"] == ("x|y",)


def test_sacct_json_knows_eligible_times_and_requeues(tmp_path):
    data = json.loads(SAMPLES["sacct-json"])
    first, last = data["jobs"]
    first["time"]["eligible"], last["time"]["eligible"] = 0, 1794766830
    last["job_id"] = first["job_id"]
    found = history(tmp_path, json.dumps(data))
    assert found.id == ("5", "5")
    assert found.lost.tolist() == [1, -1]
    assert found.without_lost().eligible_s.tolist() == [30]


def test_columns_of_a_csv_file_say_the_same(tmp_path):
    text = (
        "id,submit,eligible,gpus,one_node,partitions,partition,constraint,nodelist,allowed\n"
        "a,5,9,4,1,gpu|lab,gpu,ib&hdr,v[1-2],volta|turing\nb,6,,4,0,,lab,,,\nc,7,,1,,,,,,\n"
    )
    found = history(tmp_path, text)
    np.testing.assert_array_equal(found.ready_s(), [9, 6, 7])
    assert found.one_node.tolist() == [1, 0, -1]
    assert words(found, "partitions") == ["gpu|lab", "", ""]
    assert words(found, "queue") == ["gpu", "lab", ""]
    assert words(found, "features") == ["ib&hdr", "", ""]
    assert words(found, "hosts") == ["v[1-2]", "", ""]
    assert words(found, "allowed") == ["volta|turing", "", ""]


@pytest.mark.parametrize("value", ["2", "-1", "0.5"])
def test_one_node_of_a_csv_file_is_0_or_1(tmp_path, value):
    with pytest.raises(TraceError, match=rf":2: one_node must be 0 or 1, not {value}"):
        history(tmp_path, f"submit,gpus,one_node\n1,4,{value}\n")


def test_swf_names_partitions_by_number(tmp_path):
    found = history(tmp_path, "1 0 5 60 4 -1 -1 4 90 -1 1 3 2 5 1 7 -1 -1\n")
    assert (words(found, "partitions"), words(found, "queue")) == (["7"], ["1"])
    assert words(history(tmp_path, SAMPLES["swf"]), "partitions") == [""] * 3
